//! Ways between memories over links that join memories and switches.

use super::Route;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// A link from one place to another, in one direction.
#[derive(Clone, Copy, Debug)]
pub(super) struct Edge {
    pub(super) from: usize,
    pub(super) to: usize,
    /// Its place in the platform's links.
    pub(super) link: usize,
    /// In nanoseconds.
    pub(super) latency: u64,
}

/// The ways of the least latency between the first `memories` of `places`; of equal ones the one over the fewest links,
/// then over those that were written first. `bandwidth` is that of each link, in bytes a nanosecond, and `contention` how
/// many times slower than alone a transfer is expected to be.
pub(super) fn routes(memories: usize, places: usize, edges: &[Edge], bandwidth: &[f64], contention: f64) -> Vec<Route> {
    let mut routes = Vec::with_capacity(memories * memories);
    for from in 0..memories {
        let found = from_place(from, places, edges);
        for to in 0..memories {
            let mut route = Route::default();
            let mut at = to;
            while let Some(edge) = found[at].1.map(|edge| edges[edge]) {
                route.links.push(edge.link);
                at = edge.from;
            }
            route.links.reverse();
            route.latency = if route.links.is_empty() { 0 } else { found[to].0.0 };
            let slowest = route.links.iter().map(|link| bandwidth[*link]).fold(f64::INFINITY, f64::min);
            route.expected = (route.latency, contention / slowest);
            routes.push(route);
        }
    }
    routes
}

/// Latency and number of links.
type Cost = (u64, usize);

/// For each place, what it costs to get there, and the last edge on the way.
fn from_place(from: usize, places: usize, edges: &[Edge]) -> Vec<(Cost, Option<usize>)> {
    let mut found: Vec<(Cost, Option<usize>)> = vec![((u64::MAX, usize::MAX), None); places];
    found[from].0 = (0, 0);
    let mut next = BinaryHeap::from([Reverse(((0, 0), from))]);
    while let Some(Reverse((cost, place))) = next.pop() {
        if cost > found[place].0 {
            continue;
        }
        for (number, edge) in edges.iter().enumerate().filter(|(_, edge)| edge.from == place) {
            let through = (cost.0.saturating_add(edge.latency), cost.1 + 1);
            if through < found[edge.to].0 {
                found[edge.to] = (through, Some(number));
                next.push(Reverse((through, edge.to)));
            }
        }
    }
    found
}

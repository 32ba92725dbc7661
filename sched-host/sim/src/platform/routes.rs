//! Routes between memory nodes over links that join memory nodes and switches.

use super::{Route, TransferCost};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// A link from one place to another, in one direction.
#[derive(Clone, Copy, Debug)]
pub(super) struct Edge {
    pub(super) from: usize,
    pub(super) to: usize,
    /// Place in the platform's list of links.
    pub(super) link: usize,
    /// Latency in nanoseconds.
    pub(super) latency: u64,
}

/// The routes of least latency between the first `memories` of `places`; of equal ones the one over the fewest links,
/// then over those that were written first. `bandwidth` is that of each link in bytes per nanosecond, and `contention`
/// the factor by which a transfer is expected to be slower than alone.
pub(super) fn routes(memories: usize, places: usize, edges: &[Edge], bandwidth: &[f64], contention: f64) -> Vec<Route> {
    let mut routes = Vec::with_capacity(memories * memories);
    for from in 0..memories {
        let found = from_place(from, places, edges);
        for to in 0..memories {
            let mut route = Route::default();
            let mut at = to;
            while let Some(edge) = found[at].last.map(|edge| edges[edge]) {
                route.links.push(edge.link);
                at = edge.from;
            }
            route.links.reverse();
            route.latency = if route.links.is_empty() { 0 } else { found[to].cost.latency };
            let slowest = route.links.iter().map(|link| bandwidth[*link]).fold(f64::INFINITY, f64::min);
            route.expected = TransferCost { latency: route.latency, per_byte: contention / slowest };
            routes.push(route);
        }
    }
    routes
}

/// Cost of a path, compared by latency first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Cost {
    latency: u64,
    links: usize,
}

/// The best path to a place.
#[derive(Clone, Copy)]
struct Path {
    cost: Cost,
    /// Number of its last edge; `None` at its start, and if there is no path.
    last: Option<usize>,
}

/// The best path to each place (Dijkstra's algorithm).
fn from_place(from: usize, places: usize, edges: &[Edge]) -> Vec<Path> {
    let nothing = Cost { latency: 0, links: 0 };
    let mut found = vec![Path { cost: Cost { latency: u64::MAX, links: usize::MAX }, last: None }; places];
    found[from].cost = nothing;
    let mut next = BinaryHeap::from([Reverse((nothing, from))]);
    while let Some(Reverse((cost, place))) = next.pop() {
        if cost > found[place].cost {
            continue;
        }
        for (number, edge) in edges.iter().enumerate().filter(|(_, edge)| edge.from == place) {
            let through = Cost { latency: cost.latency.saturating_add(edge.latency), links: cost.links + 1 };
            if through < found[edge.to].cost {
                found[edge.to] = Path { cost: through, last: Some(number) };
                next.push(Reverse((through, edge.to)));
            }
        }
    }
    found
}

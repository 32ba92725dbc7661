//! Transfers in a plan: which links they pass, and how long they take if others are under way.
//!
//! Where the host knows the routes of the machine, transfers share links as they do there. A link serves transfers in
//! the order in which they begin, each for the time that its bytes take on that link alone, and a transfer ends when
//! the last of its links is done with it, and not before it would end alone. Bandwidth is thus neither lost nor used
//! twice; that simultaneous transfers share it, rather than follow each other, moves the ends of some by a little.
//! Between two memories one transfer at a time is under way in each direction.
//!
//! Where the host does not know the routes, one transfer at a time leaves each memory, and one at a time arrives.

use sched_core::{MemoryNode, Node, Route};
use std::ops::Range;

/// A link that a route passes, and the share of the transfer's time for which it is busy.
#[derive(Clone, Copy, Debug)]
struct Hop {
    link: usize,
    share: f64,
    /// Nanoseconds for a byte.
    per_byte: f64,
}

/// The links of the machine, and the routes over them.
#[derive(Default, Debug)]
pub(super) struct Network {
    memories: usize,
    /// Number of links.
    links: usize,
    /// By source and destination.
    hops_of: Vec<Range<usize>>,
    hops: Vec<Hop>,
    /// Nanoseconds of the latency of each route, and for each byte; empty if the host does not know them.
    lengths: Vec<(u64, f64)>,
    /// By source and destination: share of a link that a transfer gets, relative to others.
    weights: Vec<f64>,
    /// Nanoseconds of an allocation in each memory.
    allocations: Vec<u64>,
}

/// Until when the links are busy.
#[derive(Default, Debug)]
pub(super) struct Traffic {
    links: Vec<u64>,
    /// By source and destination.
    pairs: Vec<u64>,
    /// When the machine can allocate again.
    allocation: u64,
}

impl Clone for Traffic {
    fn clone(&self) -> Traffic {
        let Traffic { links, pairs, allocation } = self;
        Traffic { links: links.clone(), pairs: pairs.clone(), allocation: *allocation }
    }

    fn clone_from(&mut self, other: &Traffic) {
        self.links.clone_from(&other.links);
        self.pairs.clone_from(&other.pairs);
        self.allocation = other.allocation;
    }
}

impl Network {
    /// The machine's network, of the first `memories` memory nodes.
    pub(super) fn of(node: Node<'_>, memories: usize) -> Network {
        let pairs = (0..memories as u32).flat_map(|from| (0..memories as u32).map(move |to| (from, to)));
        let known: Option<Vec<Route>> = pairs.map(|(from, to)| node.route(MemoryNode(from), MemoryNode(to))).collect();
        match known {
            Some(routes) if !routes.is_empty() => Network::over(memories, &routes),
            _ => Network::unknown(memories),
        }
    }

    pub(super) fn over(memories: usize, routes: &[Route]) -> Network {
        let mut network = Network { memories, allocations: vec![0; memories], ..Network::default() };
        let mut numbers: Vec<u32> = Vec::new();
        for (place, route) in routes.iter().enumerate() {
            let from = network.hops.len();
            let mut busy: Vec<(usize, f64)> = Vec::new();
            for passage in &route.links {
                let link = numbers.iter().position(|known| *known == passage.link).unwrap_or(numbers.len());
                if link == numbers.len() {
                    numbers.push(passage.link);
                }
                match busy.iter_mut().find(|(passed, _)| *passed == link) {
                    Some((_, per_byte)) => *per_byte += passage.per_byte,
                    None => busy.push((link, passage.per_byte)),
                }
            }
            let slowest = busy.iter().map(|(_, per_byte)| *per_byte).fold(0.0, f64::max);
            let hop = |(link, per_byte): (usize, f64)| Hop {
                link,
                share: per_byte / slowest.max(f64::MIN_POSITIVE),
                per_byte,
            };
            network.hops.extend(busy.into_iter().map(hop));
            network.hops_of.push(from..network.hops.len());
            let nanos = |time: std::time::Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
            network.lengths.push((nanos(route.latency), slowest));
            network.weights.push(route.weight);
            network.allocations[place % memories] = nanos(route.allocation);
        }
        network.links = numbers.len();
        network
    }

    fn unknown(memories: usize) -> Network {
        let mut network = Network { memories, links: 2 * memories, ..Network::default() };
        network.allocations = vec![0; memories];
        for (from, to) in (0..memories).flat_map(|from| (0..memories).map(move |to| (from, to))) {
            let first = network.hops.len();
            network.hops.extend([from, memories + to].map(|link| Hop { link, share: 1.0, per_byte: 1.0 }));
            network.hops_of.push(first..network.hops.len());
        }
        network
    }

    /// Nanoseconds of a transfer that is alone, if the route is known.
    pub(super) fn alone(&self, from: usize, to: usize, bytes: u64) -> Option<u64> {
        let (latency, per_byte) = *self.lengths.get(from * self.memories + to)?;
        Some(if from == to { 0 } else { latency.saturating_add((bytes as f64 * per_byte) as u64) })
    }

    /// Whether the host knows the routes.
    pub(super) fn is_known(&self) -> bool {
        !self.lengths.is_empty()
    }

    /// Number of links.
    pub(super) fn links(&self) -> usize {
        self.links
    }

    /// Number of pairs of a source and a destination.
    pub(super) fn pairs(&self) -> usize {
        self.memories * self.memories
    }

    /// The number of a pair.
    pub(super) fn pair(&self, from: usize, to: usize) -> usize {
        from * self.memories + to
    }

    /// Nanoseconds before the first byte of a transfer arrives, if the route is known.
    pub(super) fn latency(&self, pair: usize) -> u64 {
        self.lengths.get(pair).map_or(0, |(latency, _)| *latency)
    }

    /// Share of a link that a transfer gets, relative to others.
    pub(super) fn weight(&self, pair: usize) -> f64 {
        self.weights.get(pair).copied().unwrap_or(1.0)
    }

    /// The links that a transfer passes, and the nanoseconds that each of them needs for a byte.
    pub(super) fn passed(&self, pair: usize) -> impl Iterator<Item = (usize, f64)> {
        self.hops[self.hops_of[pair].clone()].iter().map(|hop| (hop.link, hop.per_byte))
    }

    /// No transfers.
    pub(super) fn quiet(&self) -> Traffic {
        Traffic { links: vec![0; self.links], pairs: vec![0; self.memories * self.memories], allocation: 0 }
    }

    /// When memory that is requested at `at` is allocated, and takes note of it.
    pub(super) fn allocate(&self, traffic: &mut Traffic, to: usize, at: u64) -> u64 {
        let cost = self.allocations[to];
        if cost == 0 {
            return at;
        }
        traffic.allocation = traffic.allocation.max(at) + cost;
        traffic.allocation
    }

    /// Nanoseconds of an allocation.
    pub(super) fn allocation(&self, to: usize) -> u64 {
        self.allocations.get(to).copied().unwrap_or_default()
    }

    /// When memory is allocated that was requested before `at`: a transfer that is requested then begins no earlier.
    pub(super) fn allocated(&self, traffic: &Traffic, to: usize, at: u64) -> u64 {
        if self.allocations[to] == 0 { at } else { at.max(traffic.allocation) }
    }

    /// When a transfer ends that takes `length` alone and is requested at `at`.
    #[inline]
    pub(super) fn end(&self, traffic: &Traffic, from: usize, to: usize, at: u64, length: u64) -> u64 {
        let pair = from * self.memories + to;
        let begin = at.max(traffic.pairs[pair]);
        let mut end = begin + length;
        for hop in &self.hops[self.hops_of[pair].clone()] {
            end = end.max(traffic.links[hop.link].max(begin) + (length as f64 * hop.share) as u64);
        }
        end
    }

    /// Takes note of such a transfer. Returns its end.
    pub(super) fn begin(&self, traffic: &mut Traffic, from: usize, to: usize, at: u64, length: u64) -> u64 {
        let end = self.end(traffic, from, to, at, length);
        let pair = from * self.memories + to;
        let begin = at.max(traffic.pairs[pair]);
        for hop in &self.hops[self.hops_of[pair].clone()] {
            let link = &mut traffic.links[hop.link];
            *link = (*link).max(begin) + (length as f64 * hop.share) as u64;
        }
        traffic.pairs[pair] = end;
        end
    }
}

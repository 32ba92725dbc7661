//! The network of a cluster.

use smallvec::SmallVec;
use std::time::Duration;

/// How nodes are connected: each by an interface to a switch, these to switches above them, and so on, as a tree.
///
/// A message is as long on a link as its bytes take at the link's bandwidth; a link carries one message after the
/// other, in the order in which they come to it. A node hands its interface few messages for each other node at a time,
/// the most urgent first, as real ranks do ([`Outbox`](sched_graph::ranks::Outbox)). Its first byte goes on to the next
/// link while others follow (cut-through), so that a message alone takes the latencies of its way, and its bytes at the
/// narrowest link. Each interface sends and receives at once; so does each link between switches in both directions.
/// The switch at the top is never the narrow place.
///
/// Where cores receive messages ([`receive`](Network::receive), [`copy`](Network::copy)), they do so one after the
/// other: a core without a task, or else one with tasks, whose next kernel takes longer by that time.
///
/// That is the LogGP model (Alexandrov et al. 1995) at the interfaces, with links between switches that are queues too.
/// Messages that are under way together go one after the other; real networks may mix them, which changes when the
/// first of them arrives, and not the last.
#[derive(Clone, PartialEq, Debug)]
pub struct Network {
    /// Latency between two nodes at one switch.
    pub latency: Duration,
    /// Bandwidth of each interface in bytes per nanosecond (GB/s), in each direction.
    pub bandwidth: f64,
    /// Levels of switches that have an uplink, from the nodes upwards. Without any, all nodes are at one switch.
    pub switches: Vec<SwitchLevel>,
    /// Time that the program of a node takes for a task of another node, which it submits too.
    pub foreign_task: Duration,
    /// Time that a core of the receiver takes for a message.
    pub receive: Duration,
    /// Speed at which such a core copies a message, in bytes per nanosecond (GB/s); infinite where the interface writes
    /// to the memory of the data.
    pub copy: f64,
    /// Whether messages take no time.
    pub is_free: bool,
}

/// A level of equal switches.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct SwitchLevel {
    /// Number of nodes below each of them, a multiple of that of the level below.
    pub nodes: usize,
    /// Bandwidth of the link to the switch above in bytes per nanosecond (GB/s), in each direction.
    pub uplink: f64,
    /// Latency of that link.
    pub latency: Duration,
}

impl Default for Network {
    /// One switch, and interfaces as of InfiniBand EDR: 100 Gbit/s by its makers, and an assumed latency of 1.5 µs.
    /// They receive without the help of cores.
    /// Foreign tasks take what they take with `sched-cluster` on a machine of 2024.
    fn default() -> Network {
        Network {
            latency: Duration::from_nanos(1500),
            bandwidth: 12.5,
            switches: Vec::new(),
            foreign_task: Duration::from_nanos(50),
            receive: Duration::ZERO,
            copy: f64::INFINITY,
            is_free: false,
        }
    }
}

/// A link, and what follows it.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct Hop {
    /// Its place among the links of the network.
    pub(super) link: usize,
    /// Nanoseconds from its end to the next.
    pub(super) latency: u64,
}

/// Links of a network between a number of nodes: first the interfaces that send, then those that receive, then for each
/// switch of each level the links up and down.
pub(super) struct Links {
    nodes: usize,
    latency: u64,
    levels: SmallVec<[Level; 2]>,
    /// Bytes per nanosecond.
    pub(super) bandwidth: Vec<f64>,
}

struct Level {
    nodes: usize,
    latency: u64,
    /// The first link.
    first: usize,
}

fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

impl Links {
    pub(super) fn new(network: &Network, nodes: usize) -> Links {
        let mut bandwidth = vec![network.bandwidth; 2 * nodes];
        let mut levels = SmallVec::new();
        for level in &network.switches {
            levels.push(Level { nodes: level.nodes, latency: nanos(level.latency), first: bandwidth.len() });
            bandwidth.extend(std::iter::repeat_n(level.uplink, 2 * nodes.div_ceil(level.nodes)));
        }
        Links { nodes, latency: nanos(network.latency), levels, bandwidth }
    }

    /// Link number `hop` between two nodes.
    pub(super) fn hop(&self, from: usize, to: usize, hop: usize) -> Option<Hop> {
        let crossed = self.levels.iter().take_while(|level| from / level.nodes != to / level.nodes).count();
        if hop == 0 {
            return Some(Hop { link: from, latency: self.latency });
        }
        let up = (hop <= crossed).then(|| (&self.levels[hop - 1], from, 0));
        let down = || (hop <= 2 * crossed).then(|| (&self.levels[2 * crossed - hop], to, 1));
        match up.or_else(down) {
            Some((level, node, way)) => {
                Some(Hop { link: level.first + 2 * (node / level.nodes) + way, latency: level.latency })
            }
            None => (hop == 2 * crossed + 1).then_some(Hop { link: self.nodes + to, latency: 0 }),
        }
    }

    /// Name of a link.
    pub(super) fn name(&self, link: usize) -> String {
        if link < self.nodes {
            return format!("node {link} out");
        }
        if link < 2 * self.nodes {
            return format!("node {} in", link - self.nodes);
        }
        let level = self.levels.iter().rposition(|level| level.first <= link).unwrap_or(0);
        let (switch, way) = ((link - self.levels[level].first) / 2, (link - self.levels[level].first) % 2);
        format!("switch {}.{switch} {}", level + 1, ["up", "down"][way])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_go_up_to_the_first_switch_above_both() {
        let level = |nodes, uplink| SwitchLevel { nodes, uplink, latency: Duration::from_nanos(nodes as u64) };
        let switches = vec![level(2, 3.0), level(4, 5.0)];
        let network = Network { latency: Duration::from_nanos(100), bandwidth: 1.0, switches, ..Network::default() };
        let links = Links::new(&network, 8);
        let route = |from, to| -> Vec<(String, u64)> {
            let hops = (0..).map_while(|hop| links.hop(from, to, hop));
            hops.map(|hop| (links.name(hop.link), hop.latency)).collect()
        };
        let named =
            |route: &[(&str, u64)]| route.iter().map(|(name, of)| ((*name).to_owned(), *of)).collect::<Vec<_>>();
        assert_eq!(route(2, 3), named(&[("node 2 out", 100), ("node 3 in", 0)]));
        let near = [("node 1 out", 100), ("switch 1.0 up", 2), ("switch 1.1 down", 2), ("node 2 in", 0)];
        assert_eq!(route(1, 2), named(&near));
        let far = [("node 7 out", 100), ("switch 1.3 up", 2), ("switch 2.1 up", 4)];
        let back = [("switch 2.0 down", 4), ("switch 1.0 down", 2), ("node 0 in", 0)];
        assert_eq!(route(7, 0), named(&[&far[..], &back].concat()));
        let last = links.bandwidth.len() - 1;
        assert_eq!((links.name(last).as_str(), links.bandwidth[last]), ("switch 2.1 down", 5.0));
    }
}

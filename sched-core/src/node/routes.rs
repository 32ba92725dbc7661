//! Routes of transfers, and the capacities of memory nodes, for components that plan transfers.

use super::Node;
use crate::abi::extension::{HostCapacities, HostRoutes, RawPassage, RawRoute, offered};
use crate::workers::MemoryNode;
use std::time::Duration;

/// The route of transfers from one memory node to another. Transfers that pass the same link share its bandwidth.
#[derive(Clone, PartialEq, Debug)]
pub struct Route {
    /// Time before the first byte.
    pub latency: Duration,
    /// Duration of an allocation at the destination, for data that has no memory there yet. The machine makes one at a
    /// time.
    pub allocation: Duration,
    /// The links; none if transfers take no time.
    pub links: Vec<Passage>,
    /// Share of a link that a transfer gets, relative to the weights of others that pass it at the same time. 1.0 where
    /// links are shared evenly.
    pub weight: f64,
}

impl Default for Route {
    fn default() -> Route {
        Route { latency: Duration::ZERO, allocation: Duration::ZERO, links: Vec::new(), weight: 1.0 }
    }
}

/// A link on a [`Route`].
#[derive(Clone, Copy, PartialEq, Default, Debug)]
pub struct Passage {
    /// Number of the link; a link in two directions has two.
    pub link: u32,
    /// Nanoseconds for each byte of a transfer that has the link for itself.
    pub per_byte: f64,
}

impl Node<'_> {
    /// The route of transfers between two memory nodes; `None` if the host does not know it. Constant. (Since 1.1. The
    /// simulator knows all routes.)
    #[must_use]
    pub fn route(&self, from: MemoryNode, to: MemoryNode) -> Option<Route> {
        /// Maximum number of links that are asked for.
        const MOST: usize = 64;
        let table = offered::<HostRoutes>(self.raw.host())?;
        let mut links = [RawPassage { link: 0, per_byte: 0.0 }; MOST];
        let route = (table.route)(self.raw.call(), from.0, to.0, (&mut links[..]).into());
        let RawRoute { latency, allocation, links: count, weight } = route;
        let found = links.get(..count as usize)?;
        let sound = |per_byte: f64| per_byte.is_finite() && per_byte >= 0.0;
        let passage =
            |raw: &RawPassage| sound(raw.per_byte).then_some(Passage { link: raw.link, per_byte: raw.per_byte });
        Some(Route {
            latency: Duration::from_nanos(latency),
            allocation: Duration::from_nanos(allocation),
            links: found.iter().map(passage).collect::<Option<_>>()?,
            weight: if weight.is_finite() && weight > 0.0 { weight } else { 1.0 },
        })
    }

    /// Bytes that a memory node has for data, beyond which the host evicts what was used least recently; `None` if that
    /// is not limited, or the host does not know it. Constant. (Since 1.1.)
    #[must_use]
    pub fn memory_capacity(&self, memory_node: MemoryNode) -> Option<u64> {
        let table = offered::<HostCapacities>(self.raw.host())?;
        Some((table.of)(self.raw.call(), memory_node.0)).filter(|bytes| *bytes != u64::MAX)
    }
}

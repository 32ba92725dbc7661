//! Routes between memory nodes and their capacities, for components: [`HostRoutes`], [`HostCapacities`].

use super::node::record;
use sched_core::MemoryNode;
use sched_core::abi::extension::{HostCapacities, HostRoutes, RawPassage, RawRoute};
use sched_core::abi::std_types::RSliceMut;
use sched_core::abi::wire::CallRef;
use std::time::Duration;

pub(super) static ROUTES: HostRoutes = HostRoutes { route };
pub(super) static CAPACITIES: HostCapacities = HostCapacities { of: capacity };

extern "C" fn route(call: CallRef<'_>, from: u32, to: u32, mut into: RSliceMut<'_, RawPassage>) -> RawRoute {
    let Some(route) = record(call).tree.services.route(MemoryNode(from), MemoryNode(to)) else { return RawRoute::NONE };
    for (place, passage) in into.iter_mut().zip(&route.links) {
        *place = RawPassage { link: passage.link, per_byte: passage.per_byte };
    }
    RawRoute {
        latency: nanos(route.latency),
        allocation: nanos(route.allocation),
        links: u32::try_from(route.links.len()).unwrap_or(RawRoute::UNKNOWN),
        weight: route.weight,
    }
}

extern "C" fn capacity(call: CallRef<'_>, memory_node: u32) -> u64 {
    record(call).tree.services.memory_capacity(MemoryNode(memory_node)).unwrap_or(u64::MAX)
}

fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

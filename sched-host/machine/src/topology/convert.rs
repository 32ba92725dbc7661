//! Converts hwloc's objects to this crate's.

use hwlocality::object::TopologyObject;
use hwlocality::object::attributes::ObjectAttributes;
use hwlocality::object::depth::Depth;
use hwlocality::object::types::ObjectType;

use super::object::{Level, Object};
use std::collections::HashMap;

/// The whole tree below the root of `hwloc`, without its levels of this many groups, which were added for hwloc.
pub(super) fn tree(hwloc: &hwlocality::Topology, added: &[usize]) -> Object {
    let mut of_depth: HashMap<Depth, usize> = HashMap::new();
    hwloc.objects_with_type(ObjectType::Group).for_each(|group| *of_depth.entry(group.depth()).or_default() += 1);
    let left_out = of_depth.into_iter().filter(|(_, count)| added.contains(count));
    let left_out: Vec<Depth> = left_out.map(|(depth, _)| depth).collect();
    let mut roots = convert(hwloc.root_object(), &left_out);
    debug_assert_eq!(roots.len(), 1, "hwloc's root is always a machine");
    roots.swap_remove(0)
}

/// The converted `object`, or its converted children if this crate has no such level or the level is left out.
fn convert(object: &TopologyObject, left_out: &[Depth]) -> Vec<Object> {
    let inside: Vec<Object> = object.normal_children().flat_map(|child| convert(child, left_out)).collect();
    let mut memory = Vec::new();
    object.memory_children().for_each(|child| memory_nodes(child, &mut memory));
    let pus = pus(object);

    // hwloc attaches memory beside the tree of processors. The first memory node that is local to all of this object's
    // PUs becomes the parent of its children, so that `numa` is a level like the others; a second one (such as
    // high-bandwidth memory) or one without PUs becomes an empty sibling.
    let children = match memory.iter().position(|node| node.pus == pus) {
        Some(first) if !inside.is_empty() => {
            memory[first].children = inside;
            memory
        }
        _ => inside.into_iter().chain(memory).collect(),
    };
    match level(object.object_type()).filter(|_| !left_out.contains(&object.depth())) {
        Some(level) => {
            vec![Object {
                level,
                os_index: object.os_index().and_then(|index| u32::try_from(index).ok()),
                logical_index: rank(object),
                pus,
                memory_bytes: bytes(object),
                children,
            }]
        }
        None => children,
    }
}

/// Collects the memory nodes at and below a memory child; a memory-side cache contains the node it caches.
fn memory_nodes(object: &TopologyObject, found: &mut Vec<Object>) {
    if object.object_type() == ObjectType::NUMANode {
        found.push(Object {
            level: Level::Numa,
            os_index: object.os_index().and_then(|index| u32::try_from(index).ok()),
            logical_index: rank(object),
            pus: pus(object),
            memory_bytes: bytes(object),
            children: Vec::new(),
        });
    }
    object.memory_children().for_each(|child| memory_nodes(child, found));
}

fn level(object: ObjectType) -> Option<Level> {
    Some(match object {
        ObjectType::Machine => Level::Machine,
        ObjectType::Group => Level::Group,
        ObjectType::NUMANode => Level::Numa,
        ObjectType::Package => Level::Package,
        ObjectType::Die => Level::Die,
        ObjectType::L5Cache => Level::L5,
        ObjectType::L4Cache => Level::L4,
        ObjectType::L3Cache => Level::L3,
        ObjectType::L2Cache => Level::L2,
        ObjectType::L1Cache => Level::L1,
        ObjectType::Core => Level::Core,
        ObjectType::PU => Level::Pu,
        _ => return None,
    })
}

fn rank(object: &TopologyObject) -> u32 {
    u32::try_from(object.logical_index()).expect("no machine has 2^32 objects of one kind")
}

fn pus(object: &TopologyObject) -> Vec<u32> {
    let set = object.cpuset().map(|set| set.clone_target()).unwrap_or_default();
    set.iter_set().filter_map(|index| u32::try_from(usize::from(index)).ok()).collect()
}

fn bytes(object: &TopologyObject) -> Option<u64> {
    match object.attributes() {
        Some(ObjectAttributes::NUMANode(node)) => node.local_memory().map(u64::from),
        Some(ObjectAttributes::Cache(cache)) => cache.size().map(u64::from),
        _ if object.object_type() == ObjectType::Machine => Some(object.total_memory()).filter(|&bytes| bytes > 0),
        _ => None,
    }
}

//! Services that were appended after 1.0: the costs below all children, and the submitted tasks.

use super::super::tables::{CAccess, CNode, CProspect, CSubmitted};
use super::{Inside, inside, lent};
use crate::abi::extension::{HostGraph, RawSubmitted, offered};
use crate::abi::task::RawTask;
use crate::abi::wire::CallRef;
use crate::estimate::NO_MODEL;

// SAFETY of the functions below: `msched.h` requires that a component passes the node of the call that it is in, and
// room for what is written. Both may be null.

/// The table of the host that knows submitted tasks, with the call.
fn graph<'a>(inside: Option<&'a Inside<'a>>) -> Option<(&'static HostGraph, CallRef<'a>)> {
    let inside = inside?;
    Some((offered::<HostGraph>(inside.raw.host())?, inside.raw.call()))
}

pub(super) unsafe extern "C" fn child_prospects(
    node: *const CNode,
    task: RawTask,
    first: u32,
    with_energy: u32,
    into: *mut CProspect,
    room: u32,
) -> u32 {
    // SAFETY: see above.
    let Some(inside) = (unsafe { inside(node) }).filter(|_| !into.is_null()) else { return 0 };
    let mut written = 0;
    let _ = lent(inside, task, "child_prospects", |task| {
        let end = first.saturating_add(room).min(inside.raw.host().place().children);
        inside.node().prospects_of(first..end, task, with_energy != 0, |_, prospect| {
            let prospect = CProspect {
                able: prospect.able,
                reserved: 0,
                length: prospect.length.unwrap_or(NO_MODEL),
                transfer: prospect.transfer,
                energy: prospect.energy.unwrap_or(f64::NAN),
            };
            // SAFETY: the caller has room for this many.
            unsafe { into.add(written as usize).write(prospect) };
            written += 1;
        });
    });
    written
}

pub(super) unsafe extern "C" fn submitted_range(node: *const CNode, first: *mut u64, end: *mut u64) -> u32 {
    // SAFETY: see above.
    let Some((table, call)) = graph(unsafe { inside(node) }) else { return 0 };
    let range = (table.range)(call);
    for (into, value) in [(first, range.first), (end, range.end.max(range.first))] {
        if !into.is_null() {
            // SAFETY: the caller has room there.
            unsafe { into.write(value) };
        }
    }
    1
}

pub(super) unsafe extern "C" fn submitted_task(node: *const CNode, task: u64, into: *mut CSubmitted) -> u32 {
    // SAFETY: see above.
    let graph = graph(unsafe { inside(node) });
    let found = graph.map_or(RawSubmitted::ABSENT, |(table, call)| (table.task)(call, task));
    let is_there = found.stage <= 3;
    if !into.is_null() {
        let found = if is_there { found } else { RawSubmitted::ABSENT };
        let RawSubmitted { stage, successors, accesses, passes } = found;
        // SAFETY: the caller has room there.
        unsafe { into.write(CSubmitted { stage, successors, accesses, passes: passes.into() }) };
    }
    is_there.into()
}

pub(super) unsafe extern "C" fn submitted_successor(node: *const CNode, task: u64, index: u32) -> u64 {
    // SAFETY: see above.
    let graph = graph(unsafe { inside(node) });
    graph.map_or(RawSubmitted::NO_TASK, |(table, call)| (table.successor)(call, task, index))
}

pub(super) unsafe extern "C" fn submitted_access(node: *const CNode, task: u64, index: u32, into: *mut CAccess) -> u32 {
    // SAFETY: see above.
    let graph = graph(unsafe { inside(node) });
    let Some((table, call)) = graph.filter(|(table, call)| {
        let found = (table.task)(*call, task);
        found.stage <= 3 && index < found.accesses
    }) else {
        return 0;
    };
    let access = (table.access)(call, task, index);
    if !into.is_null() {
        let (reads, writes) = (access.reads.into(), access.writes.into());
        // SAFETY: the caller has room there.
        unsafe { into.write(CAccess { data: access.data, bytes: access.bytes, reads, writes }) };
    }
    1
}

pub(super) unsafe extern "C" fn submitted_length(node: *const CNode, task: u64, worker: u32) -> u64 {
    // SAFETY: see above.
    let graph = graph(unsafe { inside(node) });
    graph.map_or(NO_MODEL, |(table, call)| (table.length)(call, task, worker))
}

pub(super) unsafe extern "C" fn data_copies(node: *const CNode, data: u64) -> u64 {
    // SAFETY: see above.
    let graph = graph(unsafe { inside(node) });
    graph.map_or(0, |(table, call)| (table.copies)(call, data))
}

pub(super) unsafe extern "C" fn data_transfer(node: *const CNode, from: u32, to: u32, bytes: u64) -> u64 {
    // SAFETY: see above.
    let graph = graph(unsafe { inside(node) });
    graph.map_or(0, |(table, call)| (table.transfer)(call, from, to, bytes))
}

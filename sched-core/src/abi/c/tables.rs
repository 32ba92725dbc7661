//! The types of `msched.h`, as Rust sees them.

use crate::abi::extension::RawExecution;
use crate::abi::task::RawTask;
use std::ffi::{c_char, c_void};
use std::mem::offset_of;

/// What a C plugin exports as [`SYMBOL`](super::SYMBOL).
#[repr(C)]
#[derive(Debug)]
pub struct RawPlugin {
    pub(super) size: u32,
    pub(super) count: u32,
    pub(super) components: *const *const Table,
}

/// A parameter's value, in the field of its type.
#[repr(C)]
#[derive(Clone, Copy)]
pub(super) struct RawValue {
    pub(super) integer: i64,
    pub(super) number: f64,
    pub(super) text: *const c_char,
}

/// A parameter; a null name ends a list.
#[repr(C)]
pub(super) struct RawParam {
    pub(super) name: *const c_char,
    pub(super) doc: *const c_char,
    pub(super) unit: *const c_char,
    pub(super) kind: u32,
    pub(super) reserved: u32,
    pub(super) initial: RawValue,
    pub(super) min: RawValue,
    pub(super) max: RawValue,
}

/// A slot; a null name ends a list.
#[repr(C)]
pub(super) struct RawSlot {
    pub(super) name: *const c_char,
    pub(super) doc: *const c_char,
}

/// `msched_node`: lives on the stack of the call.
#[repr(C)]
pub(super) struct CNode {
    pub(super) services: *const Services,
    /// The `Inside` of the call.
    pub(super) host: *const c_void,
}

type Own = *mut c_void;
type At = *const CNode;

/// `msched_component`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub(super) struct Table {
    pub(super) size: u32,
    pub(super) family: u32,
    pub(super) arity: u32,
    pub(super) flags: u32,
    pub(super) lookahead: u32,
    pub(super) reserved: u32,
    pub(super) name: *const c_char,
    pub(super) doc: *const c_char,
    pub(super) bounds: *const *const c_char,
    pub(super) slots: *const RawSlot,
    pub(super) params: *const RawParam,
    pub(super) build: Option<unsafe extern "C" fn(*const RawValue, *mut c_char, usize) -> Own>,
    pub(super) destroy: Option<unsafe extern "C" fn(Own)>,
    pub(super) push_task: Option<unsafe extern "C" fn(Own, At, RawTask) -> u32>,
    pub(super) pull_task: Option<unsafe extern "C" fn(Own, At, u32) -> RawTask>,
    pub(super) can_push: Option<unsafe extern "C" fn(Own, At, u32) -> u32>,
    pub(super) can_pull: Option<unsafe extern "C" fn(Own, At) -> u32>,
    pub(super) estimated_end: Option<unsafe extern "C" fn(Own, At) -> u64>,
    pub(super) estimated_load: Option<unsafe extern "C" fn(Own, At) -> f64>,
    pub(super) notify_change_workers: Option<unsafe extern "C" fn(Own, At)>,
    pub(super) drain: Option<unsafe extern "C" fn(Own, At)>,
    pub(super) describe: Option<unsafe extern "C" fn(Own, At)>,
    pub(super) task_started: Option<unsafe extern "C" fn(Own, At, *const RawExecution)>,
    pub(super) task_ended: Option<unsafe extern "C" fn(Own, At, *const RawExecution)>,
    pub(super) optional_slots: *const *const c_char,
    pub(super) export_state: Option<unsafe extern "C" fn(Own, At)>,
    pub(super) import_state: Option<unsafe extern "C" fn(Own, At, *const c_void, usize)>,
}

/// `msched_prospect`.
#[repr(C)]
pub(super) struct CProspect {
    pub(super) able: u32,
    pub(super) reserved: u32,
    pub(super) length: u64,
    pub(super) transfer: u64,
    pub(super) energy: f64,
}

/// `msched_submitted`.
#[repr(C)]
pub(super) struct CSubmitted {
    pub(super) stage: u32,
    pub(super) successors: u32,
    pub(super) accesses: u32,
    pub(super) passes: u32,
}

/// `msched_access`.
#[repr(C)]
pub(super) struct CAccess {
    pub(super) data: u64,
    pub(super) bytes: u64,
    pub(super) reads: u32,
    pub(super) writes: u32,
}

impl Table {
    /// Bytes that every table has: all up to the one function that every component has.
    pub(super) const LEAST: usize = offset_of!(Table, pull_task);
}

/// `msched_services`.
#[repr(C)]
pub(super) struct Services {
    pub(super) size: u32,
    pub(super) reserved: u32,
    pub(super) push_to: unsafe extern "C" fn(At, u32, RawTask) -> u32,
    pub(super) pull_from: unsafe extern "C" fn(At, u32) -> RawTask,
    pub(super) parents_can_push: unsafe extern "C" fn(At) -> u32,
    pub(super) child_can_pull: unsafe extern "C" fn(At, u32) -> u32,
    pub(super) wake: unsafe extern "C" fn(At, u32) -> u32,
    pub(super) child_estimated_end: unsafe extern "C" fn(At, u32) -> u64,
    pub(super) child_estimated_load: unsafe extern "C" fn(At, u32) -> f64,
    pub(super) end_below: unsafe extern "C" fn(At, u64) -> u64,
    pub(super) node_number: unsafe extern "C" fn(At, u32, u32) -> u32,
    pub(super) node_text: unsafe extern "C" fn(At, u32, *mut c_char, usize) -> usize,
    pub(super) relative_speedup: unsafe extern "C" fn(At, u32) -> f64,
    pub(super) slot: unsafe extern "C" fn(At, *const c_char) -> u32,
    pub(super) next_worker: unsafe extern "C" fn(At, u32, u32) -> u32,
    pub(super) worker_number: unsafe extern "C" fn(At, u32, u32, u32) -> u64,
    pub(super) now: unsafe extern "C" fn(At) -> u64,
    pub(super) random: unsafe extern "C" fn(At) -> u64,
    pub(super) task_get: unsafe extern "C" fn(At, RawTask, u32) -> u64,
    pub(super) task_set: unsafe extern "C" fn(At, RawTask, u32, u64),
    pub(super) can_execute: unsafe extern "C" fn(At, u32, RawTask) -> u32,
    pub(super) child_can_execute: unsafe extern "C" fn(At, u32, RawTask) -> u32,
    pub(super) implementations: unsafe extern "C" fn(At, u32, RawTask) -> u32,
    pub(super) expected_length: unsafe extern "C" fn(At, u32, RawTask, u32) -> u64,
    pub(super) expected_below: unsafe extern "C" fn(At, RawTask) -> u64,
    pub(super) expected_transfer: unsafe extern "C" fn(At, u32, RawTask) -> u64,
    pub(super) expected_energy: unsafe extern "C" fn(At, u32, RawTask, u32) -> f64,
    pub(super) prefetch: unsafe extern "C" fn(At, u32, RawTask),
    pub(super) note_queued: unsafe extern "C" fn(At, u64),
    pub(super) give: unsafe extern "C" fn(At, RawTask),
    pub(super) fact: unsafe extern "C" fn(At, *const c_char, *const c_char),
    pub(super) log: unsafe extern "C" fn(At, u32, *const c_char),
    pub(super) fail: unsafe extern "C" fn(At, *const c_char),
    pub(super) child_prospects: unsafe extern "C" fn(At, RawTask, u32, u32, *mut CProspect, u32) -> u32,
    pub(super) submitted_range: unsafe extern "C" fn(At, *mut u64, *mut u64) -> u32,
    pub(super) submitted_task: unsafe extern "C" fn(At, u64, *mut CSubmitted) -> u32,
    pub(super) submitted_successor: unsafe extern "C" fn(At, u64, u32) -> u64,
    pub(super) submitted_access: unsafe extern "C" fn(At, u64, u32, *mut CAccess) -> u32,
    pub(super) submitted_length: unsafe extern "C" fn(At, u64, u32) -> u64,
    pub(super) data_copies: unsafe extern "C" fn(At, u64) -> u64,
    pub(super) data_transfer: unsafe extern "C" fn(At, u32, u32, u64) -> u64,
    pub(super) neighbour_name: unsafe extern "C" fn(At, u32, u32, *mut c_char, usize) -> usize,
    pub(super) neighbour_family: unsafe extern "C" fn(At, u32, u32) -> u32,
    pub(super) context_name: unsafe extern "C" fn(At, *mut c_char, usize) -> usize,
    pub(super) context_data: unsafe extern "C" fn(At, *mut c_void, usize) -> usize,
    pub(super) leave: unsafe extern "C" fn(At, *const c_void, usize),
    pub(super) note_room: unsafe extern "C" fn(At, u32),
    pub(super) has_room: unsafe extern "C" fn(At, u32) -> u32,
}

/// FNV-1a hash of the places of the frozen fields, as `msched.h` computes it.
#[must_use]
pub const fn layout_number() -> u64 {
    let parts = [
        size_of::<RawTask>(),
        offset_of!(RawTask, generation),
        size_of::<RawValue>(),
        offset_of!(RawValue, number),
        offset_of!(RawValue, text),
        size_of::<RawParam>(),
        offset_of!(RawParam, kind),
        offset_of!(RawParam, initial),
        offset_of!(RawParam, max),
        size_of::<RawSlot>(),
        offset_of!(Table, name),
        offset_of!(Table, params),
        offset_of!(Table, build),
        offset_of!(Table, describe),
        offset_of!(Services, push_to),
        offset_of!(Services, fail),
        size_of::<CNode>(),
        size_of::<RawPlugin>(),
    ];
    let mut hash: u64 = 0xcbf2_9ce4_8422_2325;
    let mut index = 0;
    while index < parts.len() {
        hash = (hash ^ parts[index] as u64).wrapping_mul(0x0100_0000_01b3);
        index += 1;
    }
    hash
}

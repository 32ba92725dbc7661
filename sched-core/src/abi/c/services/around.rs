//! Services that were appended after 1.0: the neighbours of a node, its context, what a component leaves to its
//! successor, and who has room.

use super::super::bridge::Sink;
use super::super::tables::CNode;
use super::{inside, write_text};
use crate::abi::manifest::family_number;
use crate::abi::wire::NO_ID;
use crate::node::{Child, Parent};
use std::ffi::{c_char, c_void};

// SAFETY of the functions below: `msched.h` requires that a component passes the node of the call that it is in, and
// room for what is written. Both may be null.

/// `parent` tells whether the neighbour is a parent or a child.
pub(super) unsafe extern "C" fn neighbour_name(
    node: *const CNode,
    parent: u32,
    number: u32,
    into: *mut c_char,
    room: usize,
) -> usize {
    // SAFETY: see above.
    let Some(inside) = (unsafe { inside(node) }) else { return 0 };
    let node = inside.node();
    let name = if parent == 0 { node.child_component(Child(number)) } else { node.parent_component(Parent(number)) };
    // SAFETY: see above.
    unsafe { write_text(name.unwrap_or_default(), into, room) }
}

pub(super) unsafe extern "C" fn neighbour_family(node: *const CNode, parent: u32, number: u32) -> u32 {
    // SAFETY: see above.
    let Some(inside) = (unsafe { inside(node) }) else { return NO_ID };
    let node = inside.node();
    let family = if parent == 0 { node.child_family(Child(number)) } else { node.parent_family(Parent(number)) };
    family.map_or(NO_ID, |family| family_number(family) + 1)
}

pub(super) unsafe extern "C" fn context_name(node: *const CNode, into: *mut c_char, room: usize) -> usize {
    // SAFETY: see above.
    let Some(inside) = (unsafe { inside(node) }) else { return 0 };
    // SAFETY: see above.
    unsafe { write_text(inside.node().context().unwrap_or_default(), into, room) }
}

pub(super) unsafe extern "C" fn context_data(node: *const CNode, into: *mut c_void, room: usize) -> usize {
    // SAFETY: see above.
    let Some(inside) = (unsafe { inside(node) }) else { return 0 };
    let node = inside.node();
    let data = node.context_data();
    if !into.is_null() {
        // SAFETY: the caller has this much room there.
        unsafe { data.as_ptr().copy_to_nonoverlapping(into.cast(), data.len().min(room)) };
    }
    data.len()
}

pub(super) unsafe extern "C" fn leave(node: *const CNode, bytes: *const c_void, size: usize) {
    // SAFETY: see above.
    let Some(inside) = (unsafe { inside(node) }) else { return };
    if let Sink::State(state) = &mut *inside.sink.lock() {
        let state = state.get_or_insert_default();
        if !bytes.is_null() {
            // SAFETY: the component has this many bytes there.
            state.extend_from_slice(unsafe { std::slice::from_raw_parts(bytes.cast::<u8>(), size) });
        }
        return;
    }
    inside.fault("`leave` was called outside of `export_state`");
}

pub(super) unsafe extern "C" fn note_room(node: *const CNode, has_room: u32) {
    // SAFETY: see above.
    if let Some(inside) = unsafe { inside(node) } {
        inside.node().note_room(has_room != 0);
    }
}

/// Any child is meant without a number.
pub(super) unsafe extern "C" fn has_room(node: *const CNode, child: u32) -> u32 {
    // SAFETY: see above.
    let Some(inside) = (unsafe { inside(node) }) else { return 0 };
    let node = inside.node();
    u32::from(if child == NO_ID { node.has_room_below() } else { node.child_has_room(Child(child)) })
}

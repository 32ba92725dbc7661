//! Panics of a component that is examined: they are findings, and not printed thousands of times.

use crate::export::note_location;
use std::cell::Cell;
use std::panic::{set_hook, take_hook};
use std::sync::Once;

thread_local! {
    static EXAMINES: Cell<u32> = const { Cell::new(0) };
}

static HOOK: Once = Once::new();

/// While it is there, panics of this thread are noted only. Those of other threads go where they went before.
pub(super) struct Quiet;

impl Quiet {
    pub(super) fn new() -> Quiet {
        HOOK.call_once(|| {
            let previous = take_hook();
            set_hook(Box::new(move |panic| match EXAMINES.try_with(Cell::get) {
                Ok(1..) => note_location(panic),
                _ => previous(panic),
            }));
        });
        EXAMINES.with(|examines| examines.set(examines.get() + 1));
        Quiet
    }
}

impl Drop for Quiet {
    fn drop(&mut self) {
        EXAMINES.with(|examines| examines.set(examines.get() - 1));
    }
}

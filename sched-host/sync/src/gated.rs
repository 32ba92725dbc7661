//! A value behind a gate, used by many calls at once and exchanged between them: a tree of components.
//!
//! # Protocol
//!
//! The [gate](super::gate) separates two kinds of access. A call enters, reads the value, and leaves; while it is
//! inside, the value is not exchanged. A thread that exchanges the value closes the gate, waits until no call is
//! inside, and is then alone.
//!
//! A call must read *after* it has entered: what it saw before may have been exchanged meanwhile. So
//! [`inside`](Gated::inside) and [`alone`](Gated::alone) are the only ways to the value.

#[cfg(all(test, loom))]
mod models;

use super::gate::{Gate, Lane};
use crate::primitives::UnsafeCell;

/// See the [module](self).
pub struct Gated<T> {
    gate: Gate,
    value: UnsafeCell<T>,
}

// SAFETY: calls inside share `&T`, also across threads; a thread that is alone has `&mut T`. The gate separates the
// two and orders one after the other.
unsafe impl<T: Send + Sync> Sync for Gated<T> {}

impl<T> Gated<T> {
    /// The first value, behind `gate`.
    pub fn new(gate: Gate, value: T) -> Gated<T> {
        Gated { gate, value: UnsafeCell::new(value) }
    }

    /// Enters through a lane, waiting while another thread is alone, and passes the value to `body`.
    #[inline(always)]
    pub fn inside<R>(&self, lane: Lane, body: impl FnOnce(&T) -> R) -> R {
        let _inside = self.gate.enter(lane);
        // SAFETY: a thread that is alone has closed the gate and waited until no call is inside.
        self.value.with(|value| body(unsafe { &*value }))
    }

    /// Waits until no call is inside, then lets `body` exchange the value. `None` when `give_up` returned true before.
    ///
    /// The caller must not be inside.
    pub fn alone<R>(&self, give_up: impl FnMut() -> bool, body: impl FnOnce(&mut T) -> R) -> Option<R> {
        let _closed = self.gate.close_until(give_up)?;
        // SAFETY: no call is inside while the gate is closed, and there is one closer at a time.
        self.value.with_mut(|value| Some(body(unsafe { &mut *value })))
    }
}

//! Where something stands that many calls use at once and that can be exchanged between them: a tree of components.
//!
//! # Protocol
//!
//! The [gate](super::gate) keeps two kinds of access apart. A call enters, looks at what stands there, and leaves; while it
//! is inside, nothing is exchanged. Whoever exchanges it closes the gate, waits until nobody is inside, and then is alone.
//!
//! A call must look *after* it has entered: what it saw before may have been exchanged meanwhile. So there is no way to
//! look but through [`inside`](Stand::inside) and [`alone`](Stand::alone).

use super::gate::{Gate, Lane};
use crate::primitives::UnsafeCell;

#[cfg(all(test, loom))]
mod models;

/// See the [module](self).
pub struct Stand<T> {
    gate: Gate,
    standing: UnsafeCell<T>,
}

// SAFETY: those inside share `&T`, also across threads; who is alone has `&mut T`. The gate keeps the two apart, and orders
// the one after the other.
unsafe impl<T: Send + Sync> Sync for Stand<T> {}

impl<T> Stand<T> {
    /// Puts the first one there.
    pub fn new(gate: Gate, standing: T) -> Stand<T> {
        Stand { gate, standing: UnsafeCell::new(standing) }
    }

    /// Enters through a lane, waiting while somebody is alone; `body` sees what stands there.
    #[inline(always)]
    pub fn inside<R>(&self, lane: Lane, body: impl FnOnce(&T) -> R) -> R {
        let _inside = self.gate.enter(lane);
        // SAFETY: whoever is alone has closed the gate and waited until nobody is inside.
        self.standing.with(|standing| body(unsafe { &*standing }))
    }

    /// Waits until nobody is inside, or until `give_up` says so: then `body` may exchange what stands there.
    ///
    /// The caller is not inside.
    pub fn alone<R>(&self, give_up: impl FnMut() -> bool, body: impl FnOnce(&mut T) -> R) -> Option<R> {
        let _closed = self.gate.close_until(give_up)?;
        // SAFETY: nobody is inside while the gate is closed, and there is one closer at a time.
        self.standing.with_mut(|standing| Some(body(unsafe { &mut *standing })))
    }
}

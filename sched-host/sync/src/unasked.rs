//! What may begin without a question, as long as nobody takes it back.
//!
//! # Protocol
//!
//! Whoever begins a task takes it from its record, under a lock, and whoever takes the task back does the same: one of
//! them gets it. Where hardly anything is taken back, that lock and the line of the record are paid in vain. So tasks
//! of a replay begin *unasked*:
//!
//! - **begin**: the worker marks the task as running, then, behind a light fence, looks whether beginning unasked
//!   [still holds](Unasked::is_still). If so it has the task. If not it asks the record.
//! - **take back**: the other thread [ends](Unasked::end) beginning unasked, which takes a heavy fence, and looks at
//!   the mark. If the task is marked, it counts as begun. If not, whoever begins it later will ask the record, from
//!   which it is taken now.
//!
//! Of the two looks one at least sees the other's step, so never do both have the task. Both may leave it to the other:
//! then the worker asks the record, and finds the task there.
//!
//! Others need no fence once one has been taken: the state says so. It counts how often tasks began anew, so that
//! whoever has ended it for earlier ones, and comes back from the fence, says nothing of later ones.

#[cfg(all(test, loom))]
mod models;

use crate::fence::{heavy_fence, light_fence};
use crate::primitives::{AtomicU32, Ordering::*};

/// Whether tasks begin unasked; see the [module](self). At first they do not.
///
/// One of the states below, above which the number of beginnings is counted.
pub struct Unasked(AtomicU32);

const ENDED: u32 = 0;
/// It has ended, but not every worker may know.
const ENDING: u32 = 1;
const HOLDS: u32 = 2;
const STATE: u32 = 3;

impl Default for Unasked {
    fn default() -> Unasked {
        Unasked(AtomicU32::new(ENDED))
    }
}

impl Unasked {
    /// Begins anew, before any of the tasks is handed out. One thread does so at a time.
    pub fn begin(&self, holds: bool) {
        let number = (self.0.load(Relaxed) & !STATE).wrapping_add(STATE + 1);
        // An exchange, as all changes are: they have one order.
        self.0.swap(number | if holds { HOLDS } else { ENDED }, AcqRel);
    }

    /// Whether tasks begin unasked that this thread has marked, or numbered.
    #[inline]
    pub fn is_still(&self) -> bool {
        light_fence();
        self.0.load(Acquire) & STATE == HOLDS
    }

    /// From now on, a task that is not marked begins with a question.
    pub fn end(&self) {
        let mut seen = self.0.load(Acquire);
        while seen & STATE != ENDED {
            let ending = seen & !STATE | ENDING;
            match self.0.compare_exchange(seen, ending, AcqRel, Acquire) {
                Ok(_) => {
                    heavy_fence();
                    let _ = self.0.compare_exchange(ending, ending & !STATE | ENDED, AcqRel, Acquire);
                    return;
                }
                Err(now) => seen = now,
            }
        }
    }
}

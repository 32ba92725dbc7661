//! What a rank has sent, and has in flight.

use crate::data::Courier;
use parking_lot::{Condvar, Mutex};
use sched_runtime::{DataError, RunError, Runtime, TaskRef};
use std::collections::VecDeque;
use std::sync::Arc;

/// What a rank has sent to others, or will send for the tasks so far.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
#[non_exhaustive]
pub struct Sent {
    /// Number of values.
    pub values: u64,
    /// Their bytes.
    pub bytes: u64,
}

/// See the [module](self).
///
/// A bound cannot stop ranks for ever. Of all tasks and messages that have not ended, look at the first in the order of
/// submission. Who has to submit something for it waits, if at all, for something of its own that it has submitted
/// before, which comes earlier in that order, and there is nothing.
#[derive(Default)]
pub(crate) struct Traffic {
    pub(crate) sent: Sent,
    /// Maximum number of those in flight, if they are bounded.
    most: Option<usize>,
    in_flight: VecDeque<InFlight>,
    /// Values that are being sent or received.
    pub(crate) flights: Flights,
}

/// Something of this rank that may not have ended.
pub(crate) enum InFlight {
    Task(TaskRef),
    Sent(Arc<dyn Courier>),
    Received(Arc<dyn Courier>),
}

impl Traffic {
    /// Sets the bound.
    pub(crate) fn bound(&mut self, most: usize) {
        self.most = Some(most.max(1));
    }

    /// Waits until one more may be in flight.
    #[inline]
    pub(crate) fn make_room(&mut self, runtime: &Runtime) {
        let Some(most) = self.most else { return };
        while self.in_flight.len() >= most
            && let Some(oldest) = self.in_flight.pop_front()
        {
            if oldest.has_stalled(runtime) {
                // It ends no more, and the next ones would be waited for in vain as well.
                self.most = None;
                self.in_flight.clear();
                return;
            }
        }
    }

    /// Notes that something is in flight.
    #[inline]
    pub(crate) fn note(&mut self, new: impl FnOnce() -> InFlight) {
        if self.most.is_some() {
            self.in_flight.push_back(new());
        }
    }
}

impl InFlight {
    /// Waits until it has ended, in whatever way: what fails is reported to those who wait for all tasks. Returns
    /// whether it has not, since nothing moves any more.
    fn has_stalled(self, runtime: &Runtime) -> bool {
        let waited = match self {
            InFlight::Task(task) => return matches!(runtime.wait(task), Err(RunError::Stalled(_))),
            InFlight::Sent(courier) => courier.await_sent(runtime),
            InFlight::Received(courier) => courier.await_received(runtime),
        };
        matches!(waited, Err(DataError::Stalled(_)))
    }
}

/// Values on their way, from the request until they are there, or will not come.
#[derive(Clone, Default)]
pub(crate) struct Flights(Arc<(Mutex<usize>, Condvar)>);

impl Flights {
    /// One more, until the result is dropped.
    pub(crate) fn begin(&self) -> Flight {
        *self.0.0.lock() += 1;
        Flight(self.clone())
    }

    /// Waits until there are none.
    pub(crate) fn wait(&self) {
        let (number, none) = &*self.0;
        let mut number = number.lock();
        while *number > 0 {
            none.wait(&mut number);
        }
    }
}

/// A value on its way.
pub(crate) struct Flight(Flights);

impl Drop for Flight {
    fn drop(&mut self) {
        let (number, none) = &*self.0.0;
        let mut number = number.lock();
        *number -= 1;
        if *number == 0 {
            none.notify_all();
        }
    }
}

//! What a rank has sent, and has in flight.

use crate::data::Courier;
use sched_runtime::{Runtime, TaskRef};
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
            oldest.wait(runtime);
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
    /// Waits until it has ended, in whatever way: what fails is reported to those who wait for all tasks.
    fn wait(self, runtime: &Runtime) {
        match self {
            InFlight::Task(task) => _ = runtime.wait(task),
            InFlight::Sent(courier) => courier.await_sent(runtime),
            InFlight::Received(courier) => courier.await_received(runtime),
        }
    }
}

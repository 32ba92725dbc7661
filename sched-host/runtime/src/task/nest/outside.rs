//! Data that a nested task names, and the task that it is nested in does not.
//!
//! It must be free: what holds it might wait for the task around. And it must stay so until the nested task has its place
//! in the orders of that data: another thread could submit a task meanwhile that names the data, and data of the task
//! around as well. That task would wait for the task around, the nested one for it, and the task around for the nested
//! one. So nobody else enters from the look to the entry.

use crate::core::Core;
use crate::data::DataHeader;
use crate::recording::OF_RECORDINGS;
use crate::task::parts::PartOrders;
use crate::task::record::TaskKey;
use crate::task::submit::Accessed;
use sched_graph::{AccessMode, AccessOrder};
use sched_sync::sole::{Locked, Right};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

/// The orders of such data, which nobody else enters until this is dropped, and its right.
pub(super) struct Outside<'h> {
    parts: PartOrders<'h>,
    others: Vec<Accessed<'h>>,
    /// The orders of `others`, locked unless this thread is alone.
    locked: Vec<Locked<'h, AccessOrder<TaskKey>>>,
}

impl<'h> Outside<'h> {
    /// Keeps others from the orders of these data, which are in the order of their ids.
    pub(super) fn lock(accesses: &[Accessed<'h>], right: &Right<'_>) -> Outside<'h> {
        let parts = PartOrders::lock(accesses);
        let others: Vec<Accessed<'h>> =
            accesses.iter().filter(|(header, _)| header.part().is_none()).copied().collect();
        let locked = match right {
            Right::Alone(_) => Vec::new(),
            Right::Shared(shared) => others.iter().map(|(header, _)| header.order.shared(*shared)).collect(),
        };
        Outside { parts, others, locked }
    }

    /// Whether all accesses would wait for nothing but tasks for which `is_over` holds.
    pub(super) fn is_free(&mut self, right: &mut Right<'_>, is_over: impl Fn(TaskKey) -> bool + Copy) -> bool {
        let mut are_free = self.parts.are_free(is_over);
        self.each(right, |_, order, mode| are_free &= order.is_free(mode, is_over));
        are_free
    }

    /// Takes the place of a task in the orders. Returns the number of links to those that it must wait for.
    pub(super) fn enter(&mut self, core: &Core, key: TaskKey, right: &mut Right<'_>) -> u32 {
        let mut links = self.parts.enter(core, key);
        let may_stand = matches!(right, Right::Alone(_)) && core.has_standing.load(Relaxed);
        let is_over = |old: TaskKey| match old.sequence & OF_RECORDINGS {
            0 => core.is_ended(old),
            _ => core.is_left(old),
        };
        self.each(right, |header, order, mode| {
            if may_stand {
                core.disturb(header, order, mode, None);
            }
            order.access(key, mode, |before| links += u32::from(core.wait_for(key, before)), is_over);
        });
        links
    }

    /// Passes on each order of data without parts.
    fn each(
        &mut self,
        right: &mut Right<'_>,
        mut body: impl FnMut(&Arc<DataHeader>, &mut AccessOrder<TaskKey>, AccessMode),
    ) {
        match right {
            Right::Alone(alone) => {
                for (header, mode) in &self.others {
                    header.order.alone(alone, |order| body(header, order, *mode));
                }
            }
            Right::Shared(_) => {
                for ((header, mode), order) in self.others.iter().zip(&mut self.locked) {
                    order.with(|order| body(header, order, *mode));
                }
            }
        }
    }
}

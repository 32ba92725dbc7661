//! Number of tasks of a codelet by variant, for measurements.

use parking_lot::Mutex;
use sched_model::{SizeInfo, Variant};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering::*};

/// Counts tasks of one codelet while a [`Count`] exists.
#[derive(Default)]
pub(crate) struct VariantCounts {
    counting: AtomicBool,
    /// By variant and footprint.
    ran: Mutex<BTreeMap<(Variant, u32), Ran>>,
}

/// Tasks with one variant and footprint.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Ran {
    pub(crate) tasks: u64,
    /// Bytes of data of each task.
    pub(crate) bytes: u64,
}

impl VariantCounts {
    /// Counts an executed task.
    pub(crate) fn note(&self, variant: Variant, size: &SizeInfo<'_>) {
        if self.counting.load(Acquire) {
            let mut ran = self.ran.lock();
            ran.entry((variant, size.footprint)).or_insert(Ran { tasks: 0, bytes: size.bytes }).tasks += 1;
        }
    }

    /// Starts to count; `None` if another thread already does.
    pub(crate) fn begin(&self) -> Option<Count<'_>> {
        let begun = !self.counting.swap(true, AcqRel);
        begun.then(|| {
            self.ran.lock().clear();
            Count { variant_counts: self }
        })
    }
}

/// Tasks are counted while this exists.
pub(crate) struct Count<'a> {
    variant_counts: &'a VariantCounts,
}

impl Count<'_> {
    /// Counts so far.
    pub(crate) fn ran(&self) -> BTreeMap<(Variant, u32), Ran> {
        self.variant_counts.ran.lock().clone()
    }
}

impl Drop for Count<'_> {
    fn drop(&mut self) {
        self.variant_counts.counting.store(false, Release);
    }
}

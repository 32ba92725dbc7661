//! Which tasks of a codelet ran, while that is counted.

use parking_lot::Mutex;
use sched_model::{SizeInfo, Variant};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering::*};

/// Counts tasks of one codelet while a [`Count`] is there.
#[derive(Default)]
pub(crate) struct VariantCounts {
    counting: AtomicBool,
    /// By what ran them and their footprint.
    ran: Mutex<BTreeMap<(Variant, u32), Ran>>,
}

/// Tasks that are alike.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Ran {
    pub(crate) tasks: u64,
    /// Bytes of the data of each.
    pub(crate) bytes: u64,
}

impl VariantCounts {
    /// A task was executed.
    pub(crate) fn note(&self, variant: Variant, size: &SizeInfo<'_>) {
        if self.counting.load(Acquire) {
            let mut ran = self.ran.lock();
            ran.entry((variant, size.footprint)).or_insert(Ran { tasks: 0, bytes: size.bytes }).tasks += 1;
        }
    }

    /// Counts from now on; `None` if somebody does already.
    pub(crate) fn begin(&self) -> Option<Count<'_>> {
        let begun = !self.counting.swap(true, AcqRel);
        begun.then(|| {
            self.ran.lock().clear();
            Count { variant_counts: self }
        })
    }
}

/// Tasks are counted as long as it is there.
pub(crate) struct Count<'a> {
    variant_counts: &'a VariantCounts,
}

impl Count<'_> {
    /// What ran so far.
    pub(crate) fn ran(&self) -> BTreeMap<(Variant, u32), Ran> {
        self.variant_counts.ran.lock().clone()
    }
}

impl Drop for Count<'_> {
    fn drop(&mut self) {
        self.variant_counts.counting.store(false, Release);
    }
}

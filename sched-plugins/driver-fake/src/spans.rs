//! Spans that have begun and not ended: nothing is measured by them here, and tests look at what is left.

use super::{locked, next_number};
use sched_core::driver::{DeviceNumber, SpanId};
use std::collections::BTreeSet;
use std::sync::Mutex;

/// By device.
static OPEN: Mutex<BTreeSet<(DeviceNumber, u64)>> = Mutex::new(BTreeSet::new());

/// Number of spans that have begun on a device and not ended.
#[must_use]
pub fn open_spans(device: u32) -> usize {
    locked(&OPEN).iter().filter(|(of, _)| of.0 == device).count()
}

pub(crate) fn begin(device: DeviceNumber) -> SpanId {
    let span = next_number();
    locked(&OPEN).insert((device, span));
    SpanId(span)
}

pub(crate) fn end(device: DeviceNumber, span: SpanId) {
    locked(&OPEN).remove(&(device, span.0));
}

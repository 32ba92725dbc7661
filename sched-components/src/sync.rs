//! Locks and atomics for shared state, in one place so that a model checker can replace them.

pub(crate) use sched_core::Mutex;
pub(crate) use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

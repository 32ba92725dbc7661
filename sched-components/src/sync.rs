//! Locks and atomics of what threads share. Models that try every order of what they do put others in their place.

pub(crate) use sched_core::Mutex;
pub(crate) use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

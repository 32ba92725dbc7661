//! Timing of the examples.

use std::time::{Duration, Instant};

/// What `work` returns, and the least time that it takes of five calls.
pub(crate) fn least<R>(mut work: impl FnMut() -> R) -> (R, Duration) {
    let mut time = || {
        let began = Instant::now();
        (work(), began.elapsed())
    };
    let first = time();
    (1..5).map(|_| time()).fold(first, |best, next| if next.1 < best.1 { next } else { best })
}

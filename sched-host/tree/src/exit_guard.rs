//! Notices that a component ends the process.
//!
//! Whoever calls `exit` ends the program in good order, with the code that it likes: a run without a result would pass
//! as a success. The C library calls the guard before the process ends. What calls `_exit` is not noticed.

use crate::attendance::{LeftCall, left_call};
use parking_lot::Mutex;
use std::sync::Once;

/// Reports the end, with the call of a component in which it came, if that was noted, and returns the exit code.
pub type Report = fn(Option<LeftCall>) -> i32;

static REPORT: Mutex<Option<Report>> = Mutex::new(None);

/// From now on, an end of the process by `exit` is reported, until the program [expects](expect_end) it.
pub fn report_end(report: Report) {
    static REGISTERED: Once = Once::new();
    REGISTERED.call_once(|| {
        // SAFETY: the function takes no arguments and lives as long as the program. Where the system has no room for
        // it, ends are not reported.
        unsafe { libc::atexit(at_exit) };
    });
    *REPORT.lock() = Some(report);
}

/// The program itself is about to end.
pub fn expect_end() {
    *REPORT.lock() = None;
}

extern "C" fn at_exit() {
    // Another call of `exit` meanwhile finds nothing.
    let report = REPORT.lock().take();
    if let Some(report) = report {
        let code = report(left_call());
        // SAFETY: it ends the process at once. Other threads still run, so no more is undone than a signal would.
        unsafe { libc::_exit(code) }
    }
}

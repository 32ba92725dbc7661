//! Notices that a component, or a driver, ends the process.
//!
//! Whoever calls `exit` ends the program in good order, with the code that it likes: a run without a result would pass
//! as a success. The C library calls the guard before the process ends. What calls `_exit` is not noticed.
//!
//! A crash, as by `abort`, a pointer to nowhere or a stack that is too small, ends the process as it would; before, a
//! line names the call in which it came. A library that the program starts later may put its own handlers in the place of
//! those of the guard, which then come back before them ([`keep_naming_crashes`]).
//!
//! Several threads may end the process at the same moment, such as workers that call one component. The first one is
//! reported, and the others wait: they would end the process before the report is written, or with a code of their own.

#[cfg(test)]
mod tests;

use crate::attendance::{LeftCall, left_call, write_this_call};
use parking_lot::Mutex;
use std::mem::zeroed;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::*};
use std::sync::{Once, OnceLock};

/// Whether a crash is named in JSON.
static IN_JSON: AtomicBool = AtomicBool::new(false);

/// What stands before and behind the name of a call in JSON.
const JSON: [&str; 3] =
    [r#"{"error":{"code":"sched::crashed","message":"there is no result, since a "#, r" crashed:\n  ", "\"}}\n"];
/// The same in text.
const TEXT: [&str; 3] = ["error: there is no result, since a ", " crashed:\n  ", "\n"];

/// Reports the end, with the call of a component in which it came, if that was noted, and returns the exit code.
pub type Report = fn(Option<LeftCall>) -> i32;

static REPORT: Mutex<Option<Report>> = Mutex::new(None);

/// The thread that reports an end by `exit`; 0 for none.
static REPORTER: AtomicUsize = AtomicUsize::new(0);

/// Number of entries of the guard in the C library's list of what to call at the end. A thread that calls `exit` takes
/// entries that others have not taken, so that there has to be one for each that does so at the same moment.
const ENTRIES: usize = 8;

/// Signals that end the process because of what a thread does.
const CRASHES: [libc::c_int; 5] = [libc::SIGABRT, libc::SIGSEGV, libc::SIGBUS, libc::SIGILL, libc::SIGFPE];

/// Milliseconds for which a thread that crashes waits for another to name its call.
const NAMING_MS: u32 = 1000;

/// What happened at each of them before.
static FORMER: OnceLock<[libc::sigaction; CRASHES.len()]> = OnceLock::new();

/// What a library has put in the place of the guard's handlers since.
static LATER: OnceLock<[Option<libc::sigaction>; CRASHES.len()]> = OnceLock::new();

unsafe extern "C" {
    /// Registers what `quick_exit` calls (C11, 7.22.4.3), which the `libc` crate lacks.
    #[cfg(target_os = "linux")]
    #[link_name = "at_quick_exit"]
    fn register_for_quick_exit(function: extern "C" fn()) -> libc::c_int;
}

/// From now on, an end of the process by `exit` is reported, until the program [expects](expect_end) it; and a crash
/// inside a component is named. On Linux, an end by `quick_exit` is reported too.
pub fn report_end(report: Report) {
    static REGISTERED: Once = Once::new();
    REGISTERED.call_once(|| {
        for _ in 0..ENTRIES {
            // SAFETY: the functions take no arguments and live as long as the program. Where the system has no room for
            // them, ends are not reported.
            unsafe {
                libc::atexit(at_exit);
                #[cfg(target_os = "linux")]
                register_for_quick_exit(at_quick_exit);
            }
        }
        name_crashes();
    });
    *REPORT.lock() = Some(report);
}

/// From now on, a crash is named by a line `{"error": {"code": "sched::crashed", "message": …}}` on the standard
/// error.
pub fn name_crashes_in_json() {
    IN_JSON.store(true, Relaxed);
}

/// Calls `start`, which starts a library that may replace handlers of signals, as MPI does with UCX. If crashes were
/// [named](report_end) before, they are afterwards, and what the library does comes after that. Only the first call has
/// this effect.
pub fn keep_naming_crashes<R>(start: impl FnOnce() -> R) -> R {
    let was_named = CRASHES.map(|signal| is_named(&action_at(signal)));
    let result = start();
    let later = std::array::from_fn(|at| {
        let action = action_at(CRASHES[at]);
        (was_named[at] && !is_named(&action)).then_some(action)
    });
    if LATER.set(later).is_ok() {
        CRASHES.iter().zip(later).filter(|(_, later)| later.is_some()).for_each(|(signal, _)| name_crash(*signal));
    }
    result
}

/// The program itself is about to end.
pub fn expect_end() {
    *REPORT.lock() = None;
}

/// A number of this thread that is not 0.
fn this_thread() -> usize {
    // SAFETY: it has no requirements.
    unsafe { libc::pthread_self() as usize }
}

extern "C" fn at_exit() {
    // SAFETY: as in `report_end`.
    ends(|| unsafe { libc::atexit(at_exit) });
}

#[cfg(target_os = "linux")]
extern "C" fn at_quick_exit() {
    // SAFETY: as in `report_end`.
    ends(|| unsafe { register_for_quick_exit(at_quick_exit) });
}

/// Reports an end, for which this thread has taken an entry of the guard; `renew` adds another in its place.
fn ends(renew: impl FnOnce() -> libc::c_int) {
    let report = {
        let mut report = REPORT.lock();
        match REPORTER.load(Relaxed) {
            0 if report.is_none() => return,
            0 => REPORTER.store(this_thread(), Relaxed),
            // The report itself calls `exit`.
            reporter if reporter == this_thread() => return,
            _ => {}
        }
        report.take()
    };
    renew();
    let Some(report) = report else {
        loop {
            // Another thread ends the process when it has reported.
            // SAFETY: it has no requirements.
            unsafe { libc::pause() };
        }
    };
    let code = report(left_call());
    // SAFETY: it ends the process at once. Other threads still run, so no more is undone than a signal would.
    unsafe { libc::_exit(code) }
}

fn name_crashes() {
    FORMER.get_or_init(|| CRASHES.map(action_at));
    CRASHES.into_iter().for_each(name_crash);
}

/// Names a crash by this signal from now on.
fn name_crash(signal: libc::c_int) {
    // SAFETY: the handler calls what may be called at any time. A stack that has overflowed has no room for it, hence the
    // other one, which std gives its threads.
    unsafe {
        let mut action: libc::sigaction = zeroed();
        action.sa_sigaction = handler();
        action.sa_flags = libc::SA_ONSTACK | libc::SA_SIGINFO;
        libc::sigaction(signal, &action, std::ptr::null_mut());
    }
}

fn handler() -> libc::sighandler_t {
    at_crash as *const () as libc::sighandler_t
}

/// What happens at a signal now.
fn action_at(signal: libc::c_int) -> libc::sigaction {
    // SAFETY: all zeros are a valid action, and the call only fills it in.
    unsafe {
        let mut action: libc::sigaction = zeroed();
        libc::sigaction(signal, std::ptr::null(), &mut action);
        action
    }
}

fn is_named(action: &libc::sigaction) -> bool {
    action.sa_sigaction == handler()
}

/// Writes a text as part of a string in JSON, without allocating.
fn in_json(text: &str, write: impl Fn(&str)) {
    const DIGITS: &str = "0123456789abcdef";
    let mut rest = text;
    while let Some((at, special)) = rest.char_indices().find(|(_, c)| matches!(c, '"' | '\\') || c.is_control()) {
        let (before, from) = rest.split_at(at);
        write(before);
        // All of these have a number below 0x100.
        let number = special as usize;
        ["\\u00", &DIGITS[number >> 4 & 15..][..1], &DIGITS[number & 15..][..1]].into_iter().for_each(&write);
        rest = &from[special.len_utf8()..];
    }
    write(rest);
}

/// Names the call, and lets the crash happen as it would have.
extern "C" fn at_crash(signal: libc::c_int, info: *const libc::siginfo_t, _: *const libc::c_void) {
    /// The thread that names its call; 0 for none.
    static NAMER: AtomicUsize = AtomicUsize::new(0);
    static IS_NAMED: AtomicBool = AtomicBool::new(false);
    /// Whether a later handler has had its turn.
    static IS_PASSED_ON: AtomicBool = AtomicBool::new(false);
    let me = this_thread();
    let namer = NAMER.compare_exchange(0, me, Relaxed, Relaxed).unwrap_or_else(|namer| namer);
    if namer == 0 {
        let write = |text: &str| {
            // SAFETY: the text is as long as it says.
            unsafe { libc::write(libc::STDERR_FILENO, text.as_ptr().cast(), text.len()) };
        };
        match IN_JSON.load(Relaxed) {
            false => write_this_call(TEXT, write, write),
            true => write_this_call(JSON, write, |text| in_json(text, write)),
        }
        IS_NAMED.store(true, Release);
    } else if namer != me {
        // Until the other thread has written its line, but not for ever: nobody may read what it writes.
        for _ in 0..NAMING_MS {
            if IS_NAMED.load(Acquire) {
                break;
            }
            // SAFETY: it may be called at any time, and looks at no descriptor.
            unsafe { libc::poll(std::ptr::null_mut(), 0, 1) };
        }
    }
    let at = CRASHES.iter().position(|crash| *crash == signal);
    // Once: a library may put back what was there before it, which is this handler, and let the crash happen again.
    let later = at.and_then(|at| LATER.get()?[at]).filter(|_| !IS_PASSED_ON.swap(true, Relaxed));
    if let Some(next) = later.or_else(|| Some(FORMER.get()?[at?])) {
        // SAFETY: it is what was there, and the system passes the information. What crashed is done again when this
        // returns; what somebody sent, as `abort` and `kill` do, is sent again.
        unsafe {
            libc::sigaction(signal, &next, std::ptr::null_mut());
            if (*info).si_code <= 0 {
                libc::raise(signal);
            }
        }
    }
}

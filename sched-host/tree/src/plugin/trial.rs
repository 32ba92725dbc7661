//! Loading a plugin on trial, in a child process.
//!
//! A damaged library can end the process that loads it: in the system's loader, in its own code when it is asked what
//! it offers, or in the comparison of layouts. So the first time that a content is seen, a child loads it: it asks the
//! library for its manifest, builds every component with its default parameters, pushes tasks to it, pulls them, and
//! drains it. It does so in a thread that ends, and then runs what the library has for the end of the process: every
//! program that loads the library comes there, and one that dies then has lost its exit code. If the child does not
//! survive, the file is an error as any other. Errors that the child finds in good order are the parent's as well,
//! which does not load such a file; nor does it compare layouts a second time, since a comparison of damaged ones can
//! end one process and spare another. Contents that passed are remembered in the user's cache directory by their hash,
//! so that a trial is paid for once.
//!
//! Damaged code can depend on memory that nobody has written, which is zero here and something else there: the child
//! fills such memory, and asks the library once more.
//!
//! What a damaged library has the loader write outside of it need not be memory that the child looks at. So a file that
//! does this is refused before ([`reach`]).
//!
//! A trial finds damage in what it executes. It says nothing of code that only other parameters, or a panic, lead to.
//!
//! The child is a fork. It has one thread, the one that called (and starts one more for the trial), and memory as it
//! was at that moment: locks that other threads held are held for ever. It touches none that matter: the allocator's
//! are handled by the C library, loads are one at a time (so the loader's locks are free, unless the application itself
//! loads a library at this moment), and its output goes nowhere. What is left is bounded: an alarm ends a child that
//! takes too long, and the parent one that keeps the alarm away; its file is rejected like one that crashes, until the
//! next search.

use super::copy::Content;
use super::error::LoadErrorKind;
use super::load::{Exports, Layouts, exports_of, open, unreadable};
use super::verdict::Verdict;
use super::{endings, reach, smoke};
use libloading::os::unix::Library;
use object::ReadCache;
use sched_core::ComponentInfo;
use sched_core::abi::stamp::Stamp;
use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::time::{Duration, Instant};

/// Seconds until a child is ended that neither passes nor fails.
static PATIENCE_S: AtomicU32 = AtomicU32::new(10);

/// Sets how long a plugin may take to be loaded on trial, in whole seconds, of which the last may be cut short. (10
/// seconds otherwise.)
pub fn set_trial_patience(patience: Duration) {
    let seconds = u32::try_from(patience.as_secs()).unwrap_or(u32::MAX);
    PATIENCE_S.store(seconds.saturating_add(1), Relaxed);
}

/// What is said of a plugin where loading it panics.
pub(super) const DAMAGED: &str = "what it says of its types is damaged";

/// What is said of a plugin that says one thing and then another.
const DIFFERS: &str = "it describes its components otherwise when it is asked again";

/// Loads a content in a child, unless an earlier trial of it passed.
///
/// # Errors
/// [`LoadErrorKind::Malformed`], without a child: the loader would reach beyond the library. Otherwise what the child
/// found, or [`LoadErrorKind::Fatal`]: it died of it.
pub(super) fn result(content: &Content, stamp: &Stamp) -> Result<Layouts, LoadErrorKind> {
    let passed = Passed::of(content.hash);
    if passed.as_ref().is_some_and(Passed::is_known) {
        // By a host of this version, whose types may have been others.
        return Ok(Layouts::Unknown);
    }
    reach::check(&ReadCache::new(content.open().map_err(unreadable)?))?;
    match try_in_child(content, stamp) {
        Ok(Ok(Verdict::Passed)) => {
            if let Some(passed) = passed {
                passed.remember();
            }
            Ok(Layouts::Agree)
        }
        Ok(Ok(Verdict::Refused(error))) => Err(error),
        Ok(Ok(Verdict::Panicked)) => Err(LoadErrorKind::Fatal(DAMAGED.to_owned())),
        Ok(Ok(Verdict::Differs)) => Err(LoadErrorKind::Fatal(DIFFERS.to_owned())),
        Ok(Ok(Verdict::NotTried)) => Err(LoadErrorKind::NotTried),
        Ok(Err(how)) => Err(LoadErrorKind::Fatal(how)),
        Err(error) => {
            tracing::warn!("a plugin is loaded without a trial, since no process could be started for it: {error}");
            Ok(Layouts::Unknown)
        }
    }
}

/// What a child says, or how it died.
fn try_in_child(content: &Content, stamp: &Stamp) -> std::io::Result<Result<Verdict, String>> {
    let nowhere = File::options().write(true).open("/dev/null")?;
    let (reader, writer) = pipe()?;
    // SAFETY: the child calls `in_child` only, whose text (and the module's) says what it may rely on.
    let child = unsafe { libc::fork() };
    if child < 0 {
        return Err(std::io::Error::last_os_error());
    }
    if child == 0 {
        drop(reader);
        in_child(content, stamp, &nowhere, writer);
    }
    drop(writer);
    let patience = PATIENCE_S.load(Relaxed);
    // Its own alarm comes first.
    let Heard { said, status, is_late } = hear(reader, child, Duration::from_secs(u64::from(patience) + 1));
    if let Some(verdict) = Verdict::of(&said) {
        return Ok(Ok(verdict));
    }
    let is_alarm = |status| libc::WIFSIGNALED(status) && libc::WTERMSIG(status) == libc::SIGALRM;
    Ok(Err(match status {
        _ if is_late || status.is_some_and(is_alarm) => format!("it does not come back within {patience} s"),
        Some(status) if libc::WIFSIGNALED(status) => {
            format!("it ends the process by {}", signal_name(libc::WTERMSIG(status)))
        }
        Some(_) | None => "it ends the process".to_owned(),
    }))
}

/// The trial itself. Never returns.
fn in_child(content: &Content, stamp: &Stamp, nowhere: &File, mut writer: File) -> ! {
    // SAFETY: these change the child only, which has one thread. The handlers that are reset belong to the parent's
    // program.
    unsafe {
        libc::dup2(nowhere.as_raw_fd(), 1);
        libc::dup2(nowhere.as_raw_fd(), 2);
        close_all_but([Some(writer.as_raw_fd()), content.descriptor()].into_iter().flatten());
        let no_core = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
        libc::setrlimit(libc::RLIMIT_CORE, &raw const no_core);
        for signal in [libc::SIGALRM, libc::SIGSEGV, libc::SIGBUS, libc::SIGILL, libc::SIGFPE, libc::SIGABRT] {
            libc::signal(signal, libc::SIG_DFL);
        }
        let mut all: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&raw mut all);
        libc::sigprocmask(libc::SIG_SETMASK, &raw const all, std::ptr::null_mut());
        libc::alarm(PATIENCE_S.load(Relaxed));
    }
    // An error is as good as an end: the parent hears nothing.
    let _ = writer.write_all(verdict(content, stamp).to_text().as_bytes());
    // SAFETY: nothing is run at the exit: no handler of the parent's program, and no destructor of the library.
    unsafe { libc::_exit(0) }
}

/// Loads the library, uses it, and runs what it has for the end of the process.
fn verdict(content: &Content, stamp: &Stamp) -> Verdict {
    // First as the load itself will do it, so that the library comes to lie where it will lie there.
    let loaded = catch_unwind(AssertUnwindSafe(|| {
        let library = open(content)?;
        Ok((library, exports_of(library, stamp, Layouts::Unknown)?))
    }));
    match loaded {
        Ok(Ok((library, exports))) => {
            let trial = || used(library, stamp, &exports);
            let verdict = std::thread::scope(|scope| match std::thread::Builder::new().spawn_scoped(scope, trial) {
                // What the library keeps for a thread is destroyed before the thread is joined.
                Ok(thread) => thread.join(),
                // The system has no thread to give, which is not the library's fault.
                Err(_) => catch_unwind(AssertUnwindSafe(trial)),
            });
            // SAFETY: that the library is whole is what this process finds out, and it skips them at its own end.
            unsafe { endings::run(library) };
            verdict.unwrap_or(Verdict::Panicked)
        }
        Ok(Err(error)) => Verdict::Refused(error),
        Err(_) => Verdict::Panicked,
    }
}

/// Whether the library says the same once more, and its components can be used. What damaged code does can depend on
/// memory that nobody has written, and on the next occasion be something else; so that memory is made to differ.
fn used(library: &'static Library, stamp: &Stamp, exports: &Exports) -> Verdict {
    // SAFETY: it changes what new memory holds, of which nobody may expect anything.
    #[cfg(target_env = "gnu")]
    unsafe {
        libc::mallopt(libc::M_PERTURB, i32::from(SCRIBBLE));
    }
    scribble_on_the_stack();
    let says = |components: &[ComponentInfo]| format!("{components:?}");
    let again = exports_of(library, stamp, Layouts::Unknown).is_ok_and(|again| {
        scribble_on_the_stack();
        let once_more =
            again.plugin.components().is_ok_and(|components| says(&components) == says(&exports.components));
        once_more && says(&again.components) == says(&exports.components)
    });
    scribble_on_the_stack();
    // What panics in the plugin is caught where it is called.
    let tried = catch_unwind(|| smoke::every_component(exports.plugin, &exports.components));
    match (again, tried) {
        (true, Ok(())) => Verdict::Passed,
        (false, _) => Verdict::Differs,
        (true, Err(_)) => Verdict::NotTried,
    }
}

/// What unwritten memory is filled with: as an address or a length it is out of range.
const SCRIBBLE: u8 = 0xa5;

/// Fills the part of the stack that the next calls will use.
#[inline(never)]
fn scribble_on_the_stack() {
    std::hint::black_box(&mut [SCRIBBLE; 128 << 10]);
}

/// Closes the descriptors of the parent's program, whose files and connections are none of the child's business: a
/// program that is being written cannot be executed, and the end of a pipe is not seen, while somebody else has them
/// open.
///
/// # Safety
/// The process uses none of them afterwards, but standard input, output and error, and `kept`.
unsafe fn close_all_but(kept: impl Iterator<Item = RawFd>) {
    let mut kept: Vec<libc::c_uint> = kept.filter_map(|descriptor| libc::c_uint::try_from(descriptor).ok()).collect();
    kept.sort_unstable();
    let mut first = 3;
    for kept in kept.into_iter().chain([libc::c_uint::MAX]) {
        if first < kept {
            // SAFETY: as the caller promises. Where the system has no such call, they stay open.
            unsafe { libc::syscall(libc::SYS_close_range, first, kept - 1, 0) };
        }
        first = kept.saturating_add(1).max(first);
    }
}

fn pipe() -> std::io::Result<(File, File)> {
    let mut ends = [0; 2];
    // SAFETY: the array has room for both ends.
    if unsafe { libc::pipe2(ends.as_mut_ptr(), libc::O_CLOEXEC) } != 0 {
        return Err(std::io::Error::last_os_error());
    }
    // SAFETY: both descriptors are new and nobody else's.
    Ok(unsafe { (OwnedFd::from_raw_fd(ends[0]).into(), OwnedFd::from_raw_fd(ends[1]).into()) })
}

/// What a child said until it ended.
struct Heard {
    said: Vec<u8>,
    /// `None` where somebody else has waited for it.
    status: Option<i32>,
    /// Whether it was ended because its time was over.
    is_late: bool,
}

/// How long a child is waited for before the next look whether it has ended: it may leave the pipe to a process that it
/// has started.
const LOOK: Duration = Duration::from_millis(20);

/// Hears a child to its end, and ends it where it takes longer than `patience`.
fn hear(mut reader: File, child: libc::pid_t, patience: Duration) -> Heard {
    let deadline = Instant::now() + patience;
    let (mut said, mut part, mut has_closed) = (Vec::new(), [0; 4096], false);
    loop {
        let may_say = !has_closed && is_readable(&reader, LOOK);
        if may_say {
            // An error is as good as an end: it is judged by what came before.
            match reader.read(&mut part) {
                Ok(count) if count > 0 => said.extend_from_slice(&part[..count]),
                _ => has_closed = true,
            }
            continue;
        }
        let is_late = Instant::now() >= deadline;
        if is_late {
            // SAFETY: nobody has waited for the child, so that the number is its own.
            unsafe { libc::kill(child, libc::SIGKILL) };
        }
        match wait_for(child, is_late) {
            Waited::Runs if has_closed => std::thread::sleep(Duration::from_millis(1)),
            Waited::Runs => {}
            Waited::Ended(status) => return Heard { said, status, is_late },
        }
    }
}

/// Whether there is something to read within this time, or the other end is closed.
fn is_readable(reader: &File, within: Duration) -> bool {
    let mut poll = libc::pollfd { fd: reader.as_raw_fd(), events: libc::POLLIN, revents: 0 };
    // SAFETY: it is one entry, which lives through the call.
    unsafe { libc::poll(&raw mut poll, 1, within.as_millis() as libc::c_int) > 0 }
}

enum Waited {
    Runs,
    /// Its status, or `None` where somebody else has waited for it.
    Ended(Option<i32>),
}

/// Looks whether a child has ended, or waits until it does.
fn wait_for(child: libc::pid_t, waits: bool) -> Waited {
    let mut status = 0;
    let options = if waits { 0 } else { libc::WNOHANG };
    loop {
        // SAFETY: `status` lives through the call.
        let waited = unsafe { libc::waitpid(child, &raw mut status, options) };
        match waited {
            0 => return Waited::Runs,
            _ if waited == child => return Waited::Ended(Some(status)),
            _ if std::io::Error::last_os_error().kind() != std::io::ErrorKind::Interrupted => {
                return Waited::Ended(None);
            }
            _ => {}
        }
    }
}

fn signal_name(signal: i32) -> String {
    match signal {
        libc::SIGSEGV => "SIGSEGV (a wrong address)".to_owned(),
        libc::SIGBUS => "SIGBUS (memory that is not there)".to_owned(),
        libc::SIGILL => "SIGILL (no instruction)".to_owned(),
        libc::SIGFPE => "SIGFPE (arithmetic)".to_owned(),
        libc::SIGABRT => "SIGABRT (it gave up)".to_owned(),
        libc::SIGKILL => "SIGKILL (somebody killed it, perhaps for memory)".to_owned(),
        libc::SIGTRAP => "SIGTRAP (a trap)".to_owned(),
        other => format!("signal {other}"),
    }
}

/// Changes with what a trial finds, so that contents that passed a weaker one are tried again.
const STRENGTH: u32 = 3;

/// The note that a content has passed its trial: an empty file in the user's cache directory.
struct Passed(PathBuf);

impl Passed {
    /// `None` where there is no cache directory.
    fn of(content: u128) -> Option<Passed> {
        let env =
            |name| std::env::var_os(name).filter(|value: &std::ffi::OsString| !value.is_empty()).map(PathBuf::from);
        let cache = env("XDG_CACHE_HOME").or_else(|| env("HOME").map(|home| home.join(".cache")))?;
        let host = env!("CARGO_PKG_VERSION");
        Some(Passed(cache.join("sched/trials").join(format!("{content:032x}-{host}-{STRENGTH}"))))
    }

    fn is_known(&self) -> bool {
        self.0.symlink_metadata().is_ok_and(|metadata| metadata.is_file())
    }

    /// Best effort: without the note, the next start tries once more.
    fn remember(&self) {
        let Some(folder) = self.0.parent() else { return };
        let _ = std::fs::create_dir_all(folder);
        sweep(folder);
        let _ = File::options().write(true).create_new(true).open(&self.0);
    }
}

/// Number of notes that are kept.
const NOTES: usize = 1024;

/// Forgets everything when there are too many notes: what is in use is tried once more.
fn sweep(folder: &std::path::Path) {
    let Ok(entries) = std::fs::read_dir(folder) else { return };
    let notes: Vec<_> = entries.flatten().collect();
    if notes.len() >= NOTES {
        for note in notes {
            let _ = std::fs::remove_file(note.path());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Forks a child that does `what`, and hears it.
    fn heard(what: fn(File), patience: Duration) -> Heard {
        let (reader, writer) = pipe().expect("there are descriptors");
        // SAFETY: the child calls nothing but the system.
        match unsafe { libc::fork() } {
            0 => {
                drop(reader);
                what(writer);
                // SAFETY: as above.
                unsafe { libc::_exit(0) }
            }
            child => {
                drop(writer);
                hear(reader, child, patience)
            }
        }
    }

    #[test]
    fn a_child_that_keeps_its_alarm_away_is_ended() {
        let hangs = |_: File| loop {
            // SAFETY: it waits for a signal that no handler takes.
            unsafe { libc::pause() };
        };
        let heard = heard(hangs, Duration::from_millis(50));
        assert!(heard.is_late && heard.said.is_empty());
        assert_eq!(heard.status.map(|status| libc::WTERMSIG(status)), Some(libc::SIGKILL));
    }

    #[test]
    fn a_child_that_leaves_its_pipe_to_another_process_is_heard_to_its_end() {
        let leaves = |mut writer: File| {
            // SAFETY: the other process calls nothing but the system, and ends by itself.
            if unsafe { libc::fork() } == 0 {
                // SAFETY: as above.
                unsafe {
                    libc::sleep(5);
                    libc::_exit(0)
                }
            }
            let _ = writer.write_all(b"said");
        };
        // Far longer than the child takes.
        let heard = heard(leaves, Duration::from_secs(60));
        assert!(!heard.is_late && heard.said == b"said");
        assert_eq!(heard.status, Some(0));
    }
}

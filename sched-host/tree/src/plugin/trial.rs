//! Loading a plugin on trial, in a child process.
//!
//! A damaged library can end the process that loads it: in the system's loader, in its own code when it is asked what
//! it offers, or in the comparison of layouts. So the first time that a content is seen, a child loads it: it asks the
//! library for its manifest, builds every component with its default parameters, pushes tasks to it, pulls them, and
//! drains it. It does so in a thread that ends, and then runs what the library has for the end of the process: every
//! program that loads the library comes there, and one that dies then has lost its exit code. If the child does not
//! survive, the file is an error as any other. Contents that passed are remembered in the user's cache directory by
//! their hash, so that a trial is paid for once.
//!
//! A trial finds damage in what it executes. It says nothing of code that only other parameters, or a panic, lead to.
//!
//! The child is a fork. It has one thread, the one that called (and starts one more for the trial), and memory as it was
//! at that moment: locks that other threads held are held for ever. It touches none that matter: the allocator's are handled by the C library, loads are
//! one at a time (so the loader's locks are free, unless the application itself loads a library at this moment), and
//! its output goes nowhere. What is left is bounded: an alarm ends a child that takes too long, and its file is
//! rejected like one that crashes, until the next search.

use super::copy::Content;
use super::error::LoadErrorKind;
use super::load::{Exports, exports_of, open};
use super::{endings, smoke};
use sched_core::abi::stamp::Stamp;
use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;

/// Seconds until a child is ended that neither passes nor fails.
const PATIENCE_S: u32 = 10;

/// What the child writes when it has come through.
const PASSED: u8 = b'y';

/// What it writes after a panic that is not the plugin's own, which are caught: the host, or the comparison of layouts,
/// made nothing of what the plugin says of itself.
const PANICKED: u8 = b'p';

/// What is said of a plugin after such a panic.
pub(super) const DAMAGED: &str = "what it says of its types is damaged";

/// Loads a content in a child, unless an earlier trial of it passed.
///
/// # Errors
/// [`LoadErrorKind::Fatal`]: the child died of it. Errors that the library reports in good order are no failure of the
/// trial: the load itself will report them.
pub(super) fn survives(content: &Content, stamp: &Stamp) -> Result<(), LoadErrorKind> {
    let passed = Passed::of(content.hash);
    if passed.as_ref().is_some_and(Passed::is_known) {
        return Ok(());
    }
    match try_in_child(content, stamp) {
        Ok(Ending::Passed) => {
            if let Some(passed) = passed {
                passed.remember();
            }
            Ok(())
        }
        Ok(Ending::Died(how)) => Err(LoadErrorKind::Fatal(how)),
        Err(error) => {
            tracing::warn!("a plugin is loaded without a trial, since no process could be started for it: {error}");
            Ok(())
        }
    }
}

/// What became of a child.
enum Ending {
    Passed,
    Died(String),
}

fn try_in_child(content: &Content, stamp: &Stamp) -> std::io::Result<Ending> {
    let nowhere = File::options().write(true).open("/dev/null")?;
    let (mut reader, writer) = pipe()?;
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
    let mut word = Vec::new();
    // An error is as good as an end: it is judged by what came before.
    let _ = reader.read_to_end(&mut word);
    let status = wait_for(child);
    match *word {
        [PASSED] => return Ok(Ending::Passed),
        [PANICKED] => return Ok(Ending::Died(DAMAGED.to_owned())),
        _ => {}
    }
    Ok(Ending::Died(match status {
        Some(status) if libc::WIFSIGNALED(status) && libc::WTERMSIG(status) == libc::SIGALRM => {
            format!("it does not come back within {PATIENCE_S} s")
        }
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
        libc::alarm(PATIENCE_S);
    }
    // First as the load itself will do it, so that the library comes to lie where it will lie there.
    let loaded = catch_unwind(AssertUnwindSafe(|| open(content).map(|library| (library, exports_of(library, stamp)))));
    let word = match loaded {
        Ok(Ok((library, exports))) => {
            let used = exports.map_or(Some(()), |exports| use_in_a_thread(&exports));
            // SAFETY: that the library is whole is what this process finds out, and it skips them at its own end.
            unsafe { endings::run(library) };
            used.map_or(PANICKED, |()| PASSED)
        }
        // Errors that it reports in good order are for the load itself.
        Ok(Err(_)) => PASSED,
        Err(_) => PANICKED,
    };
    let passed = writer.write_all(&[word]).is_ok();
    // SAFETY: nothing is run at the exit: no handler of the parent's program, and no destructor of the library.
    unsafe { libc::_exit(i32::from(!passed)) }
}

/// Uses every component in a thread that ends: what the library keeps for a thread is destroyed before the thread is
/// joined. `None` after a panic.
fn use_in_a_thread(exports: &Exports) -> Option<()> {
    let trial = || smoke::every_component(exports.plugin, &exports.components);
    std::thread::scope(|scope| match std::thread::Builder::new().spawn_scoped(scope, trial) {
        Ok(thread) => thread.join().ok(),
        // The system has no thread to give, which is not the library's fault.
        Err(_) => catch_unwind(AssertUnwindSafe(trial)).ok(),
    })
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

/// The status of a child that ended, or `None` where somebody else has waited for it.
fn wait_for(child: libc::pid_t) -> Option<i32> {
    let mut status = 0;
    loop {
        // SAFETY: `status` lives through the call.
        let waited = unsafe { libc::waitpid(child, &raw mut status, 0) };
        if waited == child {
            return Some(status);
        }
        if std::io::Error::last_os_error().kind() != std::io::ErrorKind::Interrupted {
            return None;
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
const STRENGTH: u32 = 2;

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

//! A crash is named, whatever a library does with signals.

use super::*;
use crate::attendance::{Inside, Method, Post, PostNumber};
use std::cell::RefCell;
use std::os::unix::process::ExitStatusExt;
use std::process::Command;

/// Set in the process that is to crash.
const CRASHES_HERE: &str = "SCHED_TEST_CRASHES_HERE";

/// What a library does at a crash that puts back what was there before it, as UCX does.
extern "C" fn of_library(signal: libc::c_int) {
    const WORDS: &str = "the library has its turn\n";
    // SAFETY: these may be called at any time, and the text is as long as it says.
    unsafe {
        libc::write(libc::STDERR_FILENO, WORDS.as_ptr().cast(), WORDS.len());
        let mut before: libc::sigaction = zeroed();
        before.sa_sigaction = handler();
        before.sa_flags = libc::SA_SIGINFO;
        libc::sigaction(signal, &before, std::ptr::null_mut());
    }
}

fn crash_inside_a_component() {
    report_end(|_| 1);
    // SAFETY: the handler calls what may be called at any time.
    let start = || unsafe { libc::signal(libc::SIGSEGV, of_library as *const () as libc::sighandler_t) };
    keep_naming_crashes(start);
    let post = PostNumber::new(Post::component("root", "wild", "test"));
    let _inside = Inside::new(&post, Method::PushTask);
    // SAFETY: nothing is there, so that it ends this process, which was started for that.
    unsafe { std::ptr::without_provenance_mut::<u8>(8).write_volatile(1) };
}

#[test]
fn a_crash_is_named_although_a_library_has_replaced_the_handlers() {
    if std::env::var_os(CRASHES_HERE).is_some() {
        return crash_inside_a_component();
    }
    let name = "exit_guard::tests::a_crash_is_named_although_a_library_has_replaced_the_handlers";
    let mut program = Command::new(std::env::current_exe().expect("this program has a path"));
    let ended = program.args(["--exact", name, "--nocapture"]).env(CRASHES_HERE, "1").output().expect("it starts");
    let said = String::from_utf8_lossy(&ended.stderr);
    assert_eq!(ended.status.signal(), Some(libc::SIGSEGV), "{said}");
    let (named, later) = said.split_once("`push_task`").unwrap_or_else(|| panic!("it is not named: {said}"));
    assert!(named.contains("a component crashed:\n  component `wild` of test, node `root`: "), "{said}");
    assert_eq!(later.matches("the library has its turn").count(), 1, "{said}");
    assert_eq!(said.matches("crashed").count(), 1, "{said}");
}

#[test]
fn any_name_is_a_string_in_json() {
    for (name, expected) in [
        ("", ""),
        ("fifo é", "fifo é"),
        ("a \"b\" \\", r"a \u0022b\u0022 \u005c"),
        ("\u{1b}[2J\n\u{85}.", r"\u001b[2J\u000a\u0085."),
    ] {
        let written = RefCell::new(String::new());
        in_json(name, |part| written.borrow_mut().push_str(part));
        assert_eq!(written.into_inner(), expected);
    }
}

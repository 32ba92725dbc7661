//! Ends the program with an error when a component or a driver ends it, or a mistake in the program itself.

use super::reports;
use miette::{Diagnostic, Report};
use sched_tree::attendance::LeftCall;
use sched_tree::exit_guard;
use std::any::Any;
use std::ffi::OsString;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// The process is ended before the program has done its work.
#[derive(Debug, Diagnostic)]
#[diagnostic(code(sched::ended))]
struct Ended {
    call: Option<LeftCall>,
    #[help]
    help: &'static str,
}

impl Ended {
    fn inside(call: Option<LeftCall>) -> Ended {
        let help = match call.as_ref().is_some_and(|call| call.post.is_driver()) {
            true => "a driver must not end the program: it returns errors, which fail tasks",
            false => {
                "a component must not end the program: a panic ends what is wrong with a task or a component alone"
            }
        };
        Ended { call, help }
    }
}

impl fmt::Display for Ended {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("there is no result, since ")?;
        match &self.call {
            Some(call) => write!(f, "a {} ended the process:\n  {call}", call.post.noun()),
            None => f.write_str("a plugin, or a library that it uses, ended the process"),
        }
    }
}

impl std::error::Error for Ended {}

/// The program itself has panicked. What panics in components and tasks is caught where they are called.
#[derive(Debug, Diagnostic, thiserror::Error)]
#[error("there is no result, since `sched` itself panicked: {0}")]
#[diagnostic(
    code(sched::panicked),
    help("this is a mistake in `sched`, not in a plugin: please report it, with the command and the lines above")
)]
struct Panicked(String);

impl Panicked {
    fn with(payload: &(dyn Any + Send)) -> Panicked {
        let text = payload.downcast_ref::<String>().map(String::as_str);
        Panicked(text.or_else(|| payload.downcast_ref().copied()).unwrap_or("without a message").to_owned())
    }
}

/// Does `work`, and makes an error of its panic.
pub(super) fn or_mistake<T>(work: impl FnOnce() -> miette::Result<T>) -> miette::Result<T> {
    // What it leaves is only shown, or dropped.
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|payload| Err(Panicked::with(&*payload).into()))
}

/// From now on, until the program [expects](exit_guard::expect_end) its end, whoever calls `exit` ends it with an error.
/// Crashes are named, as JSON if requested.
pub(super) fn begin(json: bool) {
    if json {
        exit_guard::name_crashes_in_json();
    }
    exit_guard::report_end(|call| {
        let words: Vec<OsString> = std::env::args_os().collect();
        reports::failed(&Report::new(Ended::inside(call)), reports::json_is_wanted(&words));
        1
    });
}

#[cfg(test)]
mod tests {
    use super::or_mistake;

    #[test]
    fn a_panic_of_the_program_is_its_own_mistake() {
        let said = |error: miette::Report| format!("{error}; {}", error.help().expect("there is one"));
        let bare: Result<(), _> = or_mistake(|| std::panic::panic_any("lost"));
        let formatted: Result<(), _> = or_mistake(|| std::panic::panic_any(format!("lost {}", 2)));
        insta::assert_snapshot!(said(bare.expect_err("it panicked")), @"there is no result, since `sched` itself panicked: lost; this is a mistake in `sched`, not in a plugin: please report it, with the command and the lines above");
        assert!(said(formatted.expect_err("it panicked")).contains("panicked: lost 2;"));
        assert_eq!(or_mistake(|| Ok(3)).expect("it does not panic"), 3);
    }
}

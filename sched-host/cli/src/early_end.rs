//! Ends the program with an error when a component ends it.

use super::reports;
use miette::{Diagnostic, Report};
use sched_tree::attendance::LeftCall;
use sched_tree::exit_guard;
use std::ffi::OsString;
use std::fmt;

/// The process is ended before the program has done its work.
#[derive(Debug, Diagnostic)]
#[diagnostic(
    code(sched::ended),
    help("a component must not end the program: a panic ends what is wrong with a task or a component alone")
)]
struct Ended(Option<LeftCall>);

impl fmt::Display for Ended {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("there is no result, since ")?;
        match &self.0 {
            Some(call) => write!(f, "a component ended the process:\n  {call}"),
            None => f.write_str("a plugin, or a library that it uses, ended the process"),
        }
    }
}

impl std::error::Error for Ended {}

/// From now on, until the program [expects](exit_guard::expect_end) its end, whoever calls `exit` ends it with an error.
/// Crashes are named, as JSON if requested.
pub(super) fn begin(json: bool) {
    if json {
        exit_guard::name_crashes_in_json();
    }
    exit_guard::report_end(|call| {
        let words: Vec<OsString> = std::env::args_os().collect();
        reports::failed(&Report::new(Ended(call)), reports::json_is_wanted(&words));
        1
    });
}

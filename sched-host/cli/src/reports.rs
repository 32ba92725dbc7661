//! Output of errors and warnings, as text or JSON.

mod json;
mod pretty;

use miette::{Diagnostic, Report, miette};
use sched_text::terminal::escaped;
use std::ffi::OsString;
use std::io::{ErrorKind, Write, stderr};
use std::process::ExitCode;

pub(super) use pretty::set_up;

/// Whether a command line requests JSON, even if it cannot be parsed.
pub(super) fn json_is_wanted(words: &[OsString]) -> bool {
    let words: Vec<&str> = words.iter().skip(1).map(|word| word.to_str().unwrap_or_default()).collect();
    let split = words.windows(2).any(|pair| matches!(pair, ["-f" | "--format", "json"]));
    split || words.iter().any(|word| matches!(*word, "--json" | "--format=json" | "-fjson" | "-f=json"))
}

/// Writes the error of the command to the standard error; as one line of JSON if requested.
pub(super) fn failed(report: &Report, json: bool) -> ExitCode {
    // A failure to write this cannot be reported anywhere.
    let _ = match json {
        true => {
            let line = serde_json::json!({ "error": json::error(report.as_ref()) }).to_string();
            writeln!(stderr(), "{}", escaped(&line, false))
        }
        false => writeln!(stderr(), "{}", escaped(&format!("{report:?}"), !pretty::is_plain())),
    };
    ExitCode::FAILURE
}

/// Writes the error about the command line, or the requested help.
pub(super) fn not_understood(error: &clap::Error, json: bool) -> ExitCode {
    if !error.use_stderr() {
        return match error.print().and_then(|()| std::io::stdout().flush()) {
            Err(why) if why.kind() != ErrorKind::BrokenPipe => {
                set_up();
                failed(&miette!("the output could not be written: {why}"), json)
            }
            _ => ExitCode::SUCCESS,
        };
    }
    // A failure to write this cannot be reported anywhere.
    let _ = if json {
        let line = serde_json::json!({ "error": json::usage(error) }).to_string();
        writeln!(stderr(), "{}", escaped(&line, false))
    } else {
        // Arguments are shown in it.
        let plain = pretty::is_plain();
        let text = if plain { error.render().to_string() } else { error.render().ansi().to_string() };
        write!(stderr(), "{}", escaped(&text, !plain))
    };
    ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(2))
}

/// The errors without those that say what an earlier one says.
pub(super) fn without_repetition<E: Diagnostic>(errors: Vec<E>) -> Vec<E> {
    let mut said = Vec::new();
    let is_new = |error: &E| {
        let text = json::error(error);
        let is_new = !said.contains(&text);
        if is_new {
            said.push(text);
        }
        is_new
    };
    errors.into_iter().filter(is_new).collect()
}

/// A warning or a note as it is written to the standard error. In JSON its key says what it is.
pub(super) fn warning(text: &str, json: bool) -> String {
    let shown = match (json, text.strip_prefix("note: ")) {
        (false, _) => text.to_owned(),
        (true, Some(note)) => serde_json::json!({ "note": note }).to_string(),
        (true, None) => {
            let bare = text.strip_prefix("warning: ").unwrap_or(text);
            serde_json::json!({ "warning": bare }).to_string()
        }
    };
    escaped(&shown, false).into_owned()
}

/// Writes a warning to the standard error, where no progress line is.
pub(super) fn warn(text: &str) {
    let words: Vec<OsString> = std::env::args_os().collect();
    // A failure to write this cannot be reported anywhere.
    let _ = writeln!(stderr(), "{}", warning(text, json_is_wanted(&words)));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_warning_says_once_that_it_is_one() {
        for (text, json) in [
            ("warning: two share a core", r#"{"warning":"two share a core"}"#),
            ("two share a core", r#"{"warning":"two share a core"}"#),
            ("note: two share a core", r#"{"note":"two share a core"}"#),
        ] {
            assert_eq!((warning(text, true).as_str(), warning(text, false).as_str()), (json, text));
        }
    }

    #[test]
    fn json_is_recognised_before_the_command_line_is_understood() {
        let wanted = |line: &str| json_is_wanted(&line.split(' ').map(OsString::from).collect::<Vec<_>>());
        for line in ["sched run --json", "sched graph -f json", "sched x --format json y", "sched x --format=json"] {
            assert!(wanted(line), "{line}");
        }
        for line in ["sched run cholesky", "sched run json", "--json", "sched graph --format svg json"] {
            assert!(!wanted(line), "{line}");
        }
    }
}

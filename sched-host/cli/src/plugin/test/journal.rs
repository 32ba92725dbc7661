//! The examination in the child, and what the parent makes of its lines.

use super::TestError;
use super::child::{Guarded, ending};
use super::report::Examined;
use miette::IntoDiagnostic;
use sched_core::rig::conform::Listener;
use sched_core::rig::{Examination, Finding, Property};
use sched_core::{Params, Value};
use sched_tree::plugin::Registered;
use serde::{Deserialize, Serialize};
use std::cell::RefCell;
use std::io::{BufRead, BufReader, Write};
use std::process::{Command, Stdio};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

/// A line.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Line {
    Trial(String),
    Call(String),
    CameBack(String),
    Found { property: String, message: String, setting: String, calls: Vec<String> },
    Done,
}

/// Writes each line at once: the next call may be the last.
struct Writer<'a>(RefCell<&'a mut dyn Write>);

impl Writer<'_> {
    fn write(&self, line: &Line) {
        let mut out = self.0.borrow_mut();
        // A parent that does not read any longer has given up.
        let _ = serde_json::to_writer(&mut **out, line).map(|()| writeln!(out).and_then(|()| out.flush()));
    }
}

impl Listener for Writer<'_> {
    fn trial(&self, setting: &str) {
        self.write(&Line::Trial(setting.to_owned()));
    }

    fn call(&self, words: &str) {
        self.write(&Line::Call(words.to_owned()));
    }

    fn came_back(&self, answer: &str) {
        self.write(&Line::CameBack(answer.to_owned()));
    }

    fn found(&self, finding: &Finding) {
        let Finding { property, message, setting, calls, .. } = finding.clone();
        self.write(&Line::Found { property: property.name().to_owned(), message, setting, calls });
    }
}

/// Examines a component, and writes what happens.
pub(super) fn examine(
    component: &Registered,
    values: &[(String, Value)],
    seed: u64,
    rounds: u64,
    out: &mut dyn Write,
) -> miette::Result<()> {
    let make = |params: &Params| component.build(params).map_err(|error| error.to_string());
    let writer = Writer(RefCell::new(out));
    let examination = Examination::new(component.info(), &make).seed(seed).rounds(rounds).listener(&writer);
    let examination = values.iter().fold(examination, |all, (name, value)| all.param(name, value.clone()));
    let _ = examination.run();
    writer.write(&Line::Done);
    writer.0.into_inner().flush().into_diagnostic()
}

/// Runs an examination, and collects what it finds. A call that does not come back for `patience`, and the end of the
/// process, are findings.
pub(super) fn follow(mut command: Command, patience: Duration, examined: &mut Examined) -> Result<(), TestError> {
    let failed = |error| TestError::NoProcess { what: "a child process does not start", error };
    let mut child = Guarded(command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().map_err(failed)?);
    let (send, receive) = channel();
    if let Some(out) = child.0.stdout.take() {
        // It ends with the child.
        std::thread::spawn(move || {
            let lines = BufReader::new(out).lines().map_while(Result::ok);
            lines.filter_map(|line| serde_json::from_str::<Line>(&line).ok()).all(|line| send.send(line).is_ok())
        });
    }
    let (mut setting, mut calls) = (String::new(), Vec::<String>::new());
    let why = loop {
        match receive.recv_timeout(patience) {
            Ok(Line::Trial(words)) => {
                setting = words;
                calls.clear();
                examined.sequences += 1;
            }
            Ok(Line::Call(words)) => {
                calls.push(words);
                examined.calls += 1;
            }
            Ok(Line::CameBack(answer)) => {
                if let Some(call) = calls.last_mut().filter(|_| !answer.is_empty()) {
                    *call = format!("{call}: {answer}");
                }
            }
            Ok(Line::Found { property, message, setting, calls }) => {
                let property = Property::of_name(&property).unwrap_or(Property::Returns);
                examined.findings.push(Finding::new(property, message, setting, calls));
            }
            Ok(Line::Done) => return Ok(()),
            Err(RecvTimeoutError::Timeout) => break format!("the last call did not come back within {patience:?}"),
            Err(RecvTimeoutError::Disconnected) => {
                let status = child.0.wait().map_err(failed)?;
                break format!("the last call did not come back: {}", ending(status));
            }
        }
    };
    if calls.len() > 1 {
        calls.retain(|call| call != "build");
    }
    examined.is_cut_short = true;
    examined.findings.push(Finding::about_return(why, setting, calls));
    Ok(())
}

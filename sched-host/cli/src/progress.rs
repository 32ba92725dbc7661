//! Progress on a terminal.

use crate::beside::beside;
use crate::{log, reports};
use indicatif::{HumanCount, ProgressBar, ProgressDrawTarget, ProgressState, ProgressStyle};
use sched_runtime::Runtime;
use sched_text::terminal::escaped;
use std::io::Write;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::Duration;

const TICK: Duration = Duration::from_millis(100);

/// Template for counted tasks.
const TASKS: &str = "{msg} {wide_bar} {human_pos}/{human_len} tasks  {rate}/s  {eta} left";

/// One line on stderr, if that is a terminal; removed at the end.
pub(super) struct Progress {
    bar: ProgressBar,
    /// Whether there are several runs, which share the line.
    series: bool,
    /// Whether warnings are JSON.
    json: bool,
}

impl Progress {
    /// Progress of one run, or of a `series`; [warnings](Self::warn) are JSON if `json`.
    pub(super) fn new(series: bool, json: bool) -> Progress {
        // indicatif draws on a terminal only.
        let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
        log::around(&bar);
        Progress { bar, series, json }
    }

    /// Shows a bar for `total` tasks, which is [advanced](Self::advance).
    pub(super) fn expect(&self, total: u64) {
        self.bar.set_length(total);
        self.bar.set_style(style(TASKS));
    }

    /// Shows the current phase.
    pub(super) fn doing(&self, what: &str) {
        self.bar.set_message(escaped(what, false).into_owned());
    }

    /// Shows that this many more tasks are done.
    pub(super) fn advance(&self, tasks: u64) {
        self.bar.inc(tasks);
    }

    /// Shows the progress that `work` reports, from 0 to 1.
    pub(super) fn share<R>(&self, what: &str, work: impl FnOnce(&dyn Fn(f64)) -> R) -> R {
        self.bar.set_length(100);
        self.bar.set_style(style("{msg} {bar:40} {percent}%  {eta} left"));
        self.doing(what);
        let result = work(&|done| self.bar.set_position((done * 100.0) as u64));
        self.clear();
        result
    }

    /// Shows `what` while `work` runs, whose duration is unknown; omitted in a series.
    pub(super) fn phase<R>(&self, what: &'static str, work: impl FnOnce() -> R) -> R {
        if self.series || self.bar.is_hidden() {
            return work();
        }
        self.bar.set_style(style("{spinner} {msg}"));
        self.bar.set_message(what);
        self.each_tick(|| self.bar.tick(), work)
    }

    /// Does `show` a few times a second while `work` runs. (indicatif's own ticker panics where no thread can be
    /// started.)
    fn each_tick<R>(&self, show: impl Fn() + Sync, work: impl FnOnce() -> R) -> R {
        let aside = |ended: &Receiver<()>| {
            while ended.recv_timeout(TICK) == Err(RecvTimeoutError::Timeout) {
                show();
            }
        };
        // Without a thread there is no progress to be seen, and the same result.
        beside(&aside, work).0
    }

    /// Shows the number of executed tasks out of `total`: `earlier` ones, and those of `runtime` while `work` runs,
    /// which is polled a few times a second.
    pub(super) fn tasks<R>(
        &self,
        what: &str,
        runtime: &Runtime,
        earlier: u64,
        total: u64,
        work: impl FnOnce() -> R,
    ) -> R {
        if self.bar.is_hidden() {
            return work();
        }
        let executed = || runtime.stats().iter().map(|worker| worker.tasks).sum::<u64>();
        let before = executed();
        if earlier == 0 {
            self.expect(total);
            self.bar.set_position(0);
            self.bar.reset();
        }
        self.doing(what);
        self.each_tick(|| self.bar.set_position(earlier + executed() - before), work)
    }

    /// Writes a warning to stderr, without disturbing the progress line.
    pub(super) fn warn(&self, line: &str) {
        // A failure to write to stderr cannot be reported anywhere.
        self.bar.suspend(|| {
            let _ = writeln!(std::io::stderr(), "{}", reports::warning(line, self.json));
        });
    }

    /// [Writes](Self::warn) a warning, unless it was given before: how often it was, is written when the program ends.
    pub(super) fn warn_once(&self, line: &str) {
        if log::is_new_warning(line) {
            self.warn(line);
        }
    }

    /// Removes the line.
    pub(super) fn clear(&self) {
        self.bar.finish_and_clear();
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.clear();
    }
}

fn style(template: &str) -> ProgressStyle {
    let rate = |state: &ProgressState, out: &mut dyn std::fmt::Write| {
        let _ = write!(out, "{}", HumanCount(state.per_sec() as u64));
    };
    ProgressStyle::with_template(template).expect("the templates are good").with_key("rate", rate)
}

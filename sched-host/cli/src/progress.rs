//! What a command shows on a terminal while it works.

use crate::reports;
use indicatif::{HumanCount, ProgressBar, ProgressDrawTarget, ProgressState, ProgressStyle};
use sched_runtime::Runtime;
use std::io::Write;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

const TICK: Duration = Duration::from_millis(100);

/// How tasks are counted.
const TASKS: &str = "{msg} {wide_bar} {human_pos}/{human_len} tasks  {rate}/s  {eta} left";

/// One line on stderr, if that is a terminal; gone at the end.
pub(super) struct Progress {
    bar: ProgressBar,
    /// Whether there are several runs, which share the line.
    series: bool,
    /// Whether programs read the standard error.
    json: bool,
}

impl Progress {
    /// For one run, or for a `series` of them; what is [said](Self::warn) is `json`, if programs read it.
    pub(super) fn new(series: bool, json: bool) -> Progress {
        // indicatif draws on a terminal only.
        Progress { bar: ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr()), series, json }
    }

    /// Shows that `total` tasks are to be done; [`done`](Self::done) says how many are.
    pub(super) fn expect(&self, total: u64) {
        self.bar.set_length(total);
        self.bar.set_style(style(TASKS));
    }

    /// Shows what is being done.
    pub(super) fn doing(&self, what: &str) {
        self.bar.set_message(what.to_owned());
    }

    /// Shows how many tasks are done.
    pub(super) fn done(&self, tasks: u64) {
        self.bar.set_position(tasks);
    }

    /// Shows how much of `work` is done, from 0 to 1, as it reports.
    pub(super) fn share<R>(&self, what: &str, work: impl FnOnce(&dyn Fn(f64)) -> R) -> R {
        self.bar.set_length(100);
        self.bar.set_style(style("{msg} {bar:40} {percent}%  {eta} left"));
        self.doing(what);
        let result = work(&|done| self.bar.set_position((done * 100.0) as u64));
        self.clear();
        result
    }

    /// Shows `what` while `work` is done, of which nobody knows how long it takes; in a series it goes without saying.
    pub(super) fn phase<R>(&self, what: &'static str, work: impl FnOnce() -> R) -> R {
        if self.series {
            return work();
        }
        self.bar.set_style(style("{spinner} {msg}"));
        self.bar.set_message(what);
        self.bar.enable_steady_tick(TICK);
        let result = work();
        self.bar.disable_steady_tick();
        result
    }

    /// Shows how many of `total` tasks have been executed: by `runtime` while `work` is done, which is only looked at, a few
    /// times a second, and `earlier` ones.
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
        self.bar.set_message(what.to_owned());
        std::thread::scope(|scope| {
            // Dropped when the work is done, or panics.
            let (alive, ended) = channel::<()>();
            scope.spawn(move || {
                while ended.recv_timeout(TICK) == Err(RecvTimeoutError::Timeout) {
                    self.bar.set_position(earlier + executed() - before);
                }
            });
            let result = work();
            drop(alive);
            result
        })
    }

    /// Writes a line to stderr, around what is shown: something that did not keep the command from its work.
    pub(super) fn warn(&self, line: &str) {
        // Nothing can be done where even stderr cannot be written.
        self.bar.suspend(|| {
            let _ = writeln!(std::io::stderr(), "{}", reports::warning(line, self.json));
        });
    }

    /// Shows nothing any more.
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

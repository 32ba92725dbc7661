//! What follows the events of a simulation.

use sched_sim::SimRecorder;
use sched_trace::{Digest, Event, Explainer, Observer};
use sched_tree::TreeObserver;
use std::io::{self, Write};
use std::sync::Arc;

/// Folds all events, and records them on request.
pub(super) struct Watcher<'a> {
    pub(super) digest: Digest,
    /// Whether there are `lines`, a recorder or an explainer.
    pub(super) records: bool,
    pub(super) lines: Option<Box<dyn Write + Send + 'a>>,
    pub(super) error: Option<io::Error>,
    pub(super) recorder: Option<SimRecorder>,
    pub(super) explainer: Option<Explainer>,
    /// Ended tasks; each member of a team ends one.
    pub(super) ended: u64,
    pub(super) progress: &'a dyn Fn(u64),
}

impl Watcher<'_> {
    pub(super) fn tree_observer(&self) -> Option<Arc<dyn TreeObserver>> {
        let recorder = self.recorder.as_ref().map(SimRecorder::tree_observer);
        match &self.explainer {
            Some(explainer) => Some(explainer.tree_observer(recorder)),
            None => recorder,
        }
    }

    /// Passes an event on to what records it. Most simulations record nothing.
    #[inline(never)]
    fn record(&mut self, nanos: u64, event: &Event) {
        if let Some(recorder) = &mut self.recorder {
            recorder.event(nanos, event);
        }
        if let Some(explainer) = &mut self.explainer {
            explainer.event(nanos, event);
        }
        if let Some(lines) = &mut self.lines
            && let Err(error) = writeln!(lines, "{nanos} {event}")
        {
            self.error.get_or_insert(error);
        }
    }
}

impl Observer for Watcher<'_> {
    fn event(&mut self, nanos: u64, event: &Event) {
        /// Updating the terminal takes longer than an event.
        const SELDOM: u64 = 1024;
        self.digest.event(nanos, event);
        if self.records {
            self.record(nanos, event);
        }
        if matches!(event, Event::Ended { .. } | Event::Passed { .. }) {
            self.ended += 1;
            if self.ended.is_multiple_of(SELDOM) {
                (self.progress)(self.ended);
            }
        }
    }

    fn contexts(&mut self, names: &[String]) {
        if let Some(recorder) = &mut self.recorder {
            recorder.contexts(names);
        }
    }
}

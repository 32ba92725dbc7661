//! What is recorded of a run: taken by the program, which may add events of its own.

use crate::Runtime;
use crate::backend::ThreadBackend;
use sched_core::MemoryNode;
use sched_trace::{Event, Trace, WorkerTrack};
use sched_tree::Services;
use std::fmt;
use std::sync::Arc;

/// Adds events of the program's own to what a runtime records, such as messages from and to other processes. Any thread
/// may use it.
///
/// ```
/// use sched_runtime::Runtime;
/// use sched_trace::{Event, RankMessage};
/// # use std::sync::Arc;
/// # let components = Arc::new(sched_tree::plugin::Registry::compiled_in());
/// let runtime = Runtime::builder().registry(components).workers(1).trace(1000).build()?;
/// let writer = runtime.trace_writer().expect("it records events");
/// writer.note(Event::Sent(RankMessage { data: None, from: 0, to: 1, bytes: 8 }));
/// let trace = runtime.take_trace().expect("it records events");
/// assert!(trace.events.iter().any(|event| matches!(event.event, Event::Sent(_))));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct TraceWriter {
    /// Records events.
    backend: Arc<ThreadBackend>,
}

impl fmt::Debug for TraceWriter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TraceWriter").field("now", &self.now()).finish_non_exhaustive()
    }
}

impl TraceWriter {
    /// Records an event of the application at the current time.
    pub fn note(&self, event: Event) {
        self.backend.record(None, || event);
    }

    /// The current time in nanoseconds since the start of the runtime: the clock of [`Trace::origin`].
    #[must_use]
    pub fn now(&self) -> u64 {
        self.backend.now().as_nanos()
    }
}

impl Runtime {
    /// Adds events to those that are recorded; `None` unless the runtime was [built](crate::Builder::trace) to record
    /// any.
    #[must_use]
    pub fn trace_writer(&self) -> Option<TraceWriter> {
        let backend = &self.core.backend;
        backend.recorder.is_some().then(|| TraceWriter { backend: Arc::clone(backend) })
    }

    /// Takes the events recorded since the start of the runtime, or since the last call; `None` unless it was
    /// [built](crate::Builder::trace) to record them.
    ///
    /// Tasks in flight appear in part: wait for them first.
    #[must_use]
    pub fn take_trace(&self) -> Option<Trace> {
        let recorder = self.core.backend.recorder.as_ref()?;
        let workers = self.core.facts.iter().enumerate();
        let workers = workers.map(|(id, facts)| WorkerTrack::new(id, facts.arch.to_string()));
        let codelets = self.core.backend.codelets.names();
        let mut trace = recorder.take(self.policy.clone(), workers.collect(), codelets);
        trace.contexts = self.core.roster.places().map(|context| context.name()).collect();
        if let Some(memories) = &self.core.backend.memories {
            let name = |node: u32| match memories.device(MemoryNode(node)) {
                Some(device) => format!("memory {node} ({})", device.name()),
                None => format!("memory {node}"),
            };
            trace.memories = (0..memories.nodes() as u32).map(name).collect();
        }
        Some(trace)
    }
}

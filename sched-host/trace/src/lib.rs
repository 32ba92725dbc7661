//! Traces of runs and simulations, and pictures of them.
//!
//! A [`Trace`] is a list of [`Event`]s with the names of tasks, workers, data and nodes in them. Both back ends report
//! the same events: the runtime records them by worker (`Runtime::take_trace`), a simulation passes them to an
//! [`Observer`] (`SimRecorder` makes a trace of them). A trace can be written for other programs ([`Format`]: Chrome's
//! and Perfetto's JSON, Paje), divided into a [`Timeline`], and drawn ([`gantt()`]).
//!
//! ```
//! use sched_graph::generate::cholesky;
//! use sched_sim::{Platform, SimRecorder, Simulation};
//! use sched_trace::{Format, Gantt, gantt};
//! use std::sync::Arc;
//! use std::time::Duration;
//! # let registry = sched_tree::plugin::Registry::compiled_in();
//!
//! let graph = Arc::new(cholesky(4, 960));
//! let platform = Arc::new(Platform::flat(2, Duration::from_millis(10)));
//! let mut recorder = SimRecorder::new(Arc::clone(&graph), Arc::clone(&platform));
//! let simulation = Simulation::new(graph, platform).registry(registry.into()).tree_observer(recorder.tree_observer());
//! simulation.observe(&mut recorder)?;
//! let trace = recorder.finish("tree-eager");
//!
//! let mut json = Vec::new();
//! Format::Chrome.write(&trace, &mut json)?;
//! assert!(gantt(&trace, &Gantt::default()).starts_with("<svg"));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod bound;
mod bytes;
mod chain;
mod chrome;
mod event;
mod explanation;
mod format;
mod gantt;
mod notes;
mod observer;
mod paje;
mod plan;
mod queues;
mod ranks;
mod recorder;
#[cfg(test)]
mod tests;
mod timeline;
mod track;

pub use bound::measured_bound;
pub use chain::{Behind, Chain, Link, Parts};
pub use event::{CodeletId, Event, Note, NoteId, RankMessage, Stamped, Transfer};
pub use explanation::{Explained, Explainer, Explanation, Moment, Step};
pub use format::{Format, UnknownFormat};
pub use gantt::{Bound, Gantt, gantt};
pub use notes::Notes;
pub use observer::{Digest, EventLog, Observer};
pub use plan::planned;
pub use ranks::RankTrace;
pub use recorder::{Recorder, add_nodes};
pub use timeline::{Activity, LinkSpan, Span, Timeline};
pub use track::{Trace, WorkerTrack};

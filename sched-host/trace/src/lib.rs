//! Traces: what happened in a run or a simulation, and pictures of it.
//!
//! A [`Trace`] is a list of [`Event`]s with the names of all that occurs in them. Both back ends make it: a runtime of what
//! its workers wrote down (`Runtime::take_trace`), a simulation of what its observer saw (`SimRecorder`). It can be written for other programs ([`Format`]: Chrome's and Perfetto's JSON, Paje), cut into [`Timeline`]s, and drawn
//! ([`gantt()`]).
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
//! let simulation = Simulation::new(graph, platform).registry(registry.into()).witness(recorder.witness());
//! simulation.observe(&mut recorder)?;
//! let trace = recorder.finish("tree-eager");
//!
//! let mut json = Vec::new();
//! Format::Chrome.write(&trace, &mut json)?;
//! assert!(gantt(&trace, &Gantt::default()).starts_with("<svg"));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod bound;
mod chrome;
mod event;
mod format;
mod gantt;
mod observer;
mod paje;
mod plan;
mod queues;
mod recorder;
#[cfg(test)]
mod tests;
mod timeline;
mod track;

pub use bound::measured_bound;
pub use event::{CodeletId, Event, Stamped, Transfer};
pub use format::{Format, UnknownFormat};
pub use gantt::{Bound, Gantt, colour, escaped, gantt};
pub use observer::{Digest, EventLog, Observer};
pub use plan::planned;
pub use recorder::{Recorder, add_nodes};
pub use timeline::{Activity, LinkSpan, Span, Timeline};
pub use track::{Trace, WorkerTrack};

//! Task graphs as data: tasks, their data accesses, and their dependencies.
//!
//! A [`TaskGraph`] holds what an application would submit: kinds of tasks, data, and the tasks in the order of their
//! submission. It is independent of any machine. Its [`Dependencies`] follow from the accesses, by the rule
//! ([`AccessOrder`]) that the runtime follows too, and from the tasks named in [`after`](Task::after).
//!
//! ```
//! use sched_graph::{AccessMode, Datum, Task, TaskGraph, TaskId};
//!
//! let mut graph = TaskGraph::new("two readers of one result");
//! let (make, read) = (graph.add_kind("make"), graph.add_kind("read"));
//! let result = graph.add_data(Datum::new(1 << 20));
//! let maker = graph.add_task(Task::new(make).access(result, AccessMode::Write));
//! let readers = [(); 2].map(|()| graph.add_task(Task::new(read).access(result, AccessMode::Read)));
//!
//! let dependencies = graph.dependencies();
//! assert_eq!(dependencies.successors(maker), readers);
//! assert_eq!(dependencies.predecessors(TaskId(2)), [maker]);
//! ```

mod access;
#[cfg(feature = "bounds")]
pub mod bound;
mod data;
mod dependencies;
mod divided;
pub mod draw;
pub mod factorisation;
#[cfg(feature = "files")]
mod file;
mod flows;
pub mod generate;
mod lengths;
mod order;
pub mod priorities;
pub mod ranks;
pub mod reference;
mod region;
mod restriction;
mod side_by_side;
mod summary;
mod task;
mod task_graph;

pub use access::{Access, AccessMode};
pub use data::{DataId, Datum};
pub use dependencies::Dependencies;
pub use divided::DividedData;
#[cfg(feature = "files")]
pub use file::{FileFormat, GraphFileError, GraphFileProblem, from_bytes, parse, read, read_with_warnings, to_json};
pub use flows::Flows;
pub use lengths::Lengths;
pub use order::AccessOrder;
pub use region::{PartId, Region, RegionOrder};
pub use restriction::Where;
pub use summary::{KindSummary, Summary, Weight};
pub use task::{ContextId, Kind, KindId, Task, TaskId};
pub use task_graph::{TaskGraph, WontUse};

//! Static schedules for comparison: HEFT with insertion, CPOP, PEFT and list scheduling.
//!
//! These know the whole graph in advance and place every task. No runtime can do that; they show what a policy loses
//! that sees ready tasks only. The model is that of the literature: a processor runs one task at a time, to its end;
//! transfers take time between processors in different places and none within one, and do not contend.
//!
//! ```
//! use sched_core::Arch;
//! use sched_graph::generate::cholesky;
//! use sched_graph::reference::{Links, Problem, Processor, heft};
//!
//! let graph = cholesky(4, 960);
//! let processors: Vec<Processor> = (0..2).map(|_| Processor { arch: Arch::CPU, place: 0 }).collect();
//! let seconds_per_flop = 1e-9;
//! let problem = Problem::of(&graph, &processors, Links::FREE, |task, _| Some(task.flops * seconds_per_flop))?;
//! let schedule = heft(&problem);
//! assert!(schedule.check(&problem).is_ok());
//! assert!(schedule.makespan() >= problem.critical_path());
//! # Ok::<(), sched_graph::reference::Unrunnable>(())
//! ```

mod cpop;
mod heft;
mod list;
mod peft;
mod problem;
mod ready;
mod schedule;
#[cfg(test)]
mod tests;

pub use cpop::cpop;
pub use heft::{heft, heft_with};
pub use list::list_schedule;
pub use peft::peft;
pub use problem::{Edge, Links, MeanOver, Problem, Processor, ProcessorId, Unrunnable};
pub use ready::Ties;
pub use schedule::{Placement, Schedule, Violation};

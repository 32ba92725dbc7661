//! Static schedules to compare with: HEFT with insertion, CPOP, PEFT and a list schedule.
//!
//! These know the whole graph before anything runs, and plan every task. No runtime can do that; they tell how much a
//! policy that sees ready tasks only gives away. The model is that of the literature: a processor runs one task at a time,
//! to its end; data takes time between processors in different places, and none within one; transfers do not get in each
//! other's way.
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

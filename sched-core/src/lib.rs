//! sched-core
#![allow(non_local_definitions, non_camel_case_types, reason = "abi_stable's macros write them")]

pub mod abi;
mod adapter;
mod component;
mod estimate;
#[doc(hidden)]
pub mod export;
mod info;
mod mutex;
mod node;
mod params;
#[cfg(feature = "rig")]
pub mod rig;
mod task;
mod workers;

pub use adapter::adapt;
pub use component::{Build, Component, Push, Refusal, Refused, Report};
pub use estimate::{Estimate, Time};
pub use export::Offer;
pub use info::{Arity, ComponentInfo, Family, Info, Slot, SlotInfo, Storage};
pub use mutex::{Mutex, MutexGuard};
pub use node::{Child, LogLevel, Node, Parent};
pub use params::{BuildError, Param, ParamInfo, ParamKind, Params, Value};
pub use task::{Task, TaskId};
pub use workers::{Arch, ArchSet, MemoryNode, WorkerId, WorkerSet};

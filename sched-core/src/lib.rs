//! sched-core

mod estimate;
mod info;
mod params;
mod workers;

pub use estimate::{Estimate, Time};
pub use info::{Arity, ComponentInfo, Family, Info, Slot, SlotInfo, Storage};
pub use params::{BuildError, Param, ParamInfo, ParamKind, Params, Value};
pub use workers::{Arch, ArchSet, MemoryNode, WorkerId, WorkerSet};

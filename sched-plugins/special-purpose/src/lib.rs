//! The special-purpose family as a plugin: components that neither hold tasks nor choose a resource.
#![forbid(unsafe_code)]

use sched_components::special_purpose::{BestImplementation, PerfmodelSelect, Stage, UserChoice};

sched_core::export_components!(BestImplementation, PerfmodelSelect, Stage, UserChoice);

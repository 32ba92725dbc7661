//! The resource-mapping family as a plugin: components that choose among their children.
#![forbid(unsafe_code)]

use sched_components::resource_mapping::{
    BlockCyclic, Eager, EagerCalibration, EagerPrio, Heft, Heteroprio, Mct, Plan, Random, Replan, WorkStealing,
};

sched_core::export_components!(
    BlockCyclic,
    Eager,
    EagerCalibration,
    EagerPrio,
    Heft,
    Heteroprio,
    Mct,
    Plan,
    Random,
    Replan,
    WorkStealing
);

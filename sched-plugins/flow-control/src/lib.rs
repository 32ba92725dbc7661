//! The flow-control family as a plugin: components that hold tasks back and let them go.
#![forbid(unsafe_code)]

use sched_components::flow_control::{Fifo, Prio};

sched_core::export_components!(Fifo, Prio);

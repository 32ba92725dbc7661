//! The resource-mapping family as a plugin: components that choose among their children.
#![forbid(unsafe_code)]

use sched_components::resource_mapping::{Eager, Heft, Heteroprio, Mct};

sched_core::export_components!(Eager, Heft, Heteroprio, Mct);

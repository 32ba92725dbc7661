//! The worker family as a plugin: the leaves, which hand tasks to workers.
#![forbid(unsafe_code)]

use sched_components::worker::{Combined, Simple};

sched_core::export_components!(Simple, Combined);

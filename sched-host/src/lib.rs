//! sched-host

pub mod policy;

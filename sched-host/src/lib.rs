//! sched-host
pub mod topology;

//! sched-host

pub mod linalg;

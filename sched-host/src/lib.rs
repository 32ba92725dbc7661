//! sched-host

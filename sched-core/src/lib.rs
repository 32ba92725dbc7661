//! sched-core

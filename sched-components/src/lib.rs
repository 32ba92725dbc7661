//! sched-components

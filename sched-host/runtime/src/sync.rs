//! The primitives under this crate's protocols; see [`sched_tree::sync`].

pub(crate) use sched_tree::sync::*;

//! How threads meet: the protocols that order what workers, submitters and those who change a tree do at the same moment.
//!
//! - [gate]: calls enter a tree, and it can be closed until none is inside; [stand]: what the gate guards is exchanged.
//! - [sleep]: a worker falls asleep without missing a task.
//! - [gathering]: the members of a combined worker come together without deadlock.
//! - [link]: a task waits for others that may be ending.
//! - [follow]: a list is kept while somebody follows it.
//! - [tally]: a context goes when the last of its tasks has ended.
//!
//! Each module begins with its protocol. They know neither tasks nor trees and stand in a crate of their own, so that a model
//! checker can run them without everything above: under `cfg(loom)` they use loom's primitives, and the module `models` of
//! each tries every order of what threads do. (`SharedSet` of `sched-core` and the queue of `sched-components` have theirs
//! beside them.)

mod fence;
pub mod follow;
pub mod gate;
pub mod gathering;
pub mod link;
#[cfg(all(test, loom))]
mod model;
mod primitives;
pub mod sleep;
pub mod stand;
pub mod tally;

pub use fence::{heavy_fence, light_fence};

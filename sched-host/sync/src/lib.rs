//! Concurrency protocols: how workers, submitters and threads that change a tree act at the same moment.
//!
//! - [gate]: calls enter a tree, and it can be closed until none is inside; [gated]: the value behind a gate is
//!   exchanged.
//! - [sleep]: a worker falls asleep without missing a task.
//! - [gathering]: the members of a combined worker come together without deadlock.
//! - [at_home]: ready tasks of a known graph wait where their workers look.
//! - [at_hand]: a worker goes on with what it has made ready, unless others have nothing to do.
//! - [link]: a task waits for others that may be ending.
//! - [follow]: a list is kept while it has followers.
//! - [in_flight]: a context goes when the last of its tasks has ended.
//! - [turn]: the program waits for its turn at data, or gives it up.
//! - [settle]: what many leave behind is put together by the first who needs it.
//! - [family]: a task ends with those that are nested in it.
//! - [sole]: one thread changes values without locks, until another comes.
//! - [unasked]: a task begins without a question, as long as nobody takes it back.
//! - [counted]: a value goes with the last of its owners, uses and loans.
//! - [waiters]: threads of the program wait, and one of them is a worker meanwhile; [looks]: they look before they
//!   sleep, as workers do; [pace]: they look at regular intervals whether anything moves.
//!
//! Each module begins with its protocol. They know neither tasks nor trees and are a crate of their own, so that a
//! model checker can run them without everything above: under `cfg(loom)` they use loom's primitives, and the module
//! `models` of each tries every order of its steps. (`SharedSet` of `sched-core` and the queue of `sched-components`
//! have theirs beside them.)

pub mod at_hand;
pub mod at_home;
pub mod counted;
pub mod family;
mod fence;
pub mod follow;
pub mod gate;
pub mod gated;
pub mod gathering;
pub mod in_flight;
pub mod link;
pub mod looks;
#[cfg(all(test, loom))]
mod model;
pub mod pace;
mod primitives;
pub mod settle;
pub mod sleep;
pub mod sole;
pub mod turn;
pub mod unasked;
pub mod waiters;

pub use fence::{heavy_fence, light_fence, prepare_fences};

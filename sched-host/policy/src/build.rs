//! Building policies in a program: by hand, from recipes laid over the machine, or from the flags of the simple
//! scheduler.
//!
//! All three produce a [`Policy`](super::Policy) equal to one read from text, which is checked, laid over a machine,
//! printed and drawn like any other.

mod connect;
mod recipe;
mod simple;
mod specs;

pub use connect::{ComponentId, Connect};
pub use recipe::Recipe;
pub use simple::{Decide, Limit, Queue, QueuesBelow, Ready, SimpleFlags};
pub use specs::TopologySpecs;

//! Resource mapping: components that choose among their children.

mod eager;
mod eager_prio;

pub use eager::Eager;
pub use eager_prio::EagerPrio;

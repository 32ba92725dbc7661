//! Resource mapping: components that choose among their children.

mod eager;

pub use eager::Eager;

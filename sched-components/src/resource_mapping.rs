//! Resource mapping: components that choose among their children.

mod completion;
mod eager;
mod heft;
mod mct;
mod promise;
mod turn;

pub use eager::Eager;
pub use heft::Heft;
pub use mct::Mct;

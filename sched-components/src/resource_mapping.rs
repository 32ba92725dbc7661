//! Resource mapping: components that choose among their children.

mod completion;
mod eager;
mod heft;
mod heteroprio;
mod mct;
mod promise;
mod turn;

pub use eager::Eager;
pub use heft::Heft;
pub use heteroprio::Heteroprio;
pub use mct::Mct;

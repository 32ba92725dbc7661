//! Memory nodes: where replicas of data are, and what it takes to bring them from one to another.
//!
//! [`Coherence`] is the state of one piece of data, the same for memories that are simulated and for those that are there.
//! [`measure()`] finds what transfers between the memory nodes of this machine take, and [`known()`] looks whether that is stored.

mod coherence;
mod known;
mod measure;
mod reason;

pub use coherence::{Coherence, State};
pub use known::{Known, known};
pub use measure::{measure, measure_once};
pub use reason::Reason;

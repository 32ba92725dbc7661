//! Memory nodes: the location of replicas, and the cost of transfers between nodes.
//!
//! [`Coherence`] is the state of one piece of data, used for simulated and real memories. [`measure()`] measures the
//! transfers between the memory nodes of this machine, and [`known()`] reads stored measurements first.

mod coherence;
mod known;
mod measure;
mod reason;

pub use coherence::{Coherence, State};
pub use known::{Known, known};
pub use measure::{measure, measure_once};
pub use reason::Reason;

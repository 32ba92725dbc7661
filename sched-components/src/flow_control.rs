//! Flow control: components that hold tasks back and let them go.

mod fifo;
mod prio;
mod reservoir;

pub use fifo::Fifo;
pub use prio::Prio;

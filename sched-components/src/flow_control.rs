//! Flow control: components that hold tasks back and let them go.

mod fifo;

pub use fifo::Fifo;

//! Performance models: the duration and energy of tasks, learned from executions or imported from StarPU.
//!
//! A codelet declares a [`Model`]: its name and its kind. Each execution of one of its tasks is a sample of its time,
//! and each task of a batch (`Runtime::measure_energy`) a sample of its energy. Samples are kept by [`Variant`]
//! (architecture, number of workers, implementation), [`Quantity`] (time or energy) and footprint (the sizes of its
//! data) in a [`Distribution`], whose location a few outliers cannot move. From [`MINIMUM_SAMPLES`] samples on there is
//! an estimate: by footprint, or by a regression over the sizes ([`Power`]) or over parameters ([`Linear`]), computed
//! from the same samples. Before that, [`Estimate::Uncalibrated`](sched_core::Estimate::Uncalibrated) sends tasks to
//! workers that measure them.
//!
//! [`Models`] holds the [`CodeletModel`]s of a run; a [`Store`] keeps them between runs, for each [`Fingerprint`] of a
//! machine; [`starpu`] reads and writes StarPU's files; [`plot`] draws models.

mod bus;
mod codelet;
mod declare;
mod distribution;
mod fingerprint;
mod fit;
mod flaw;
mod footprint;
mod measured;
pub mod plot;
mod set;
pub mod starpu;
mod store;
mod table;

pub use bus::{Bus, BusConfig, NodeMatrix};
pub use codelet::CodeletModel;
pub use declare::{Kind, Model};
pub use distribution::{Bin, Distribution};
pub use fingerprint::Fingerprint;
pub use fit::{Linear, Monomial, Point, Power};
pub use flaw::{Flaw, Flaws, ModelError};
pub use footprint::{DataShape, crc32, fold_footprint, size_footprint, task_footprint};
pub use measured::{Entry, Fit, Measured, Measurements, Prior, Quantity, SizeInfo, Variant};
pub use set::{MINIMUM_SAMPLES, Models};
pub use store::write_whole;
pub use store::{MovedAside, Store, Stored, default_directory};

//! Resource mapping: components that choose among their children.

mod block_cyclic;
mod by_speed;
mod completion;
mod eager;
mod eager_calibration;
mod eager_prio;
mod heft;
mod heteroprio;
#[cfg(test)]
mod keepers;
mod mct;
mod plan;
mod promise;
mod random;
mod replan;
mod soonest;
mod turn;
mod work_stealing;

pub use block_cyclic::BlockCyclic;
pub use eager::Eager;
pub use eager_calibration::EagerCalibration;
pub use eager_prio::EagerPrio;
pub use heft::Heft;
pub use heteroprio::Heteroprio;
pub use mct::Mct;
pub use plan::Plan;
pub use random::Random;
pub use replan::Replan;
pub use work_stealing::WorkStealing;

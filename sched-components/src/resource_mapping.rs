//! Resource mapping: components that choose among their children.

mod eager;
mod eager_calibration;
mod eager_prio;
mod random;
mod work_stealing;

pub use eager::Eager;
pub use eager_calibration::EagerCalibration;
pub use eager_prio::EagerPrio;
pub use random::Random;
pub use work_stealing::WorkStealing;

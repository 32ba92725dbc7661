//! Execution times that a graph gives for a task.

use sched_core::{Arch, ArchSet};
use smallvec::SmallVec;
use std::time::Duration;

/// Execution time of a task on each architecture, in whole nanoseconds, where the graph gives one.
///
/// A task with any such time runs on the architectures that have one, and on others where a platform names the kernel
/// of the task, or has a speed for every kernel and the operations of the task are known: so the graph of a run, which
/// has the measured times of this machine's cores, can be simulated with accelerators. Most graphs give no time: then
/// the platform or the performance models, which know kinds and footprints, decide.
///
/// ```
/// use sched_core::Arch;
/// use sched_graph::Lengths;
/// use std::time::Duration;
///
/// let lengths = Lengths::default().with(Arch::CPU, Duration::from_micros(70));
/// assert_eq!(lengths.get(Arch::CPU), Some(Duration::from_micros(70)));
/// assert_eq!(lengths.get(Arch::CUDA), None);
/// ```
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Lengths(SmallVec<[(Arch, u64); 1]>);

impl Lengths {
    /// Whether the graph gives no time.
    #[inline]
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Execution time on `arch`, if the graph gives it.
    #[inline]
    #[must_use]
    pub fn get(&self, arch: Arch) -> Option<Duration> {
        self.0.iter().find(|(known, _)| *known == arch).map(|(_, nanos)| Duration::from_nanos(*nanos))
    }

    /// Sets the execution time on `arch`. Times beyond 64 bits of nanoseconds (584 years) are cut to that.
    #[must_use]
    pub fn with(mut self, arch: Arch, length: Duration) -> Lengths {
        let nanos = u64::try_from(length.as_nanos()).unwrap_or(u64::MAX);
        match self.0.iter_mut().find(|(known, _)| *known == arch) {
            Some(known) => known.1 = nanos,
            None => self.0.push((arch, nanos)),
        }
        self
    }

    /// Architectures with an execution time.
    #[inline]
    #[must_use]
    pub fn archs(&self) -> ArchSet {
        self.0.iter().map(|(arch, _)| *arch).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_length_is_replaced_by_a_later_one() {
        let ms = Duration::from_millis;
        let lengths = Lengths::default().with(Arch::CPU, ms(3)).with(Arch::CUDA, ms(1)).with(Arch::CPU, ms(2));
        assert_eq!(lengths.get(Arch::CPU), Some(ms(2)));
        assert_eq!(lengths.get(Arch::CUDA), Some(ms(1)));
        assert_eq!(lengths.archs(), ArchSet::EMPTY.with(Arch::CPU).with(Arch::CUDA));
    }

    #[test]
    fn a_length_beyond_all_measure_is_the_longest_that_there_is() {
        let lengths = Lengths::default().with(Arch::CPU, Duration::MAX);
        assert_eq!(lengths.get(Arch::CPU), Some(Duration::from_nanos(u64::MAX)));
    }
}

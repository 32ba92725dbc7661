//! Execution times of tasks on each class of workers.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// Execution time of the tasks of one kind on one class of workers.
#[derive(Clone, PartialEq, Debug)]
pub enum KernelTime {
    /// A constant.
    Fixed(Duration),
    /// Proportional to the floating-point operations of a task, after a fixed time.
    Rate {
        /// Operations per nanosecond (GFlop/s).
        gflops: f64,
        /// The fixed time of each task.
        overhead: Duration,
    },
    /// A power of the size of a task's data: µs = a·bytes^b.
    Power {
        /// The factor.
        a: f64,
        /// The exponent.
        b: f64,
    },
    /// Measured at some sizes of a task's data, in ascending order, at least one; interpolated and extrapolated
    /// linearly in logarithmic scale.
    Measured(Vec<Sized>),
    /// Measured for each footprint of a task's data. A task with another footprint cannot run there; for one without a
    /// footprint the size counts, as for [`Measured`](KernelTime::Measured).
    History {
        /// Times by footprint.
        times: BTreeMap<u32, Duration>,
        /// Times by size, in ascending order, at least one.
        measured: Vec<Sized>,
    },
}

/// Execution time of the tasks of one kind on several workers of a class, a combined worker, together.
#[derive(Clone, PartialEq, Debug)]
pub enum Parallel {
    /// Amdahl's law: a fraction of a task is divided evenly among the members, and the rest is not.
    Amdahl {
        /// The fraction, from 0 to 1.
        share: f64,
        /// Maximum number of members.
        most: u16,
    },
    /// Times of teams, by number of members from 2; interpolated linearly in logarithmic scale between them and a
    /// single worker. Larger teams than the largest given cannot execute such tasks.
    Sizes(BTreeMap<u16, KernelTime>),
}

impl Parallel {
    /// Nanoseconds with `size` members, at least two, if known; `alone` is the time of one worker.
    pub(super) fn nanos(&self, alone: Option<u64>, size: u16, work: Work) -> Option<u64> {
        match self {
            Parallel::Amdahl { share, most } => {
                let parts = 1.0 - share + share / f64::from(size);
                (size <= *most).then_some((alone? as f64 * parts) as u64)
            }
            Parallel::Sizes(times) => {
                let known = |(size, time): (&u16, &KernelTime)| Some((f64::from(*size), time.nanos(work)? as f64));
                let (above, high) = times.range(size..).find_map(known)?;
                let below = times.range(..=size).rev().find_map(known);
                let (below, low) = below.or_else(|| Some((1.0, alone? as f64)))?;
                if above <= f64::from(size) || low <= 0.0 || high <= 0.0 {
                    return Some(high as u64);
                }
                let slope = (high / low).ln() / (above / below).ln();
                Some((low * (f64::from(size) / below).powf(slope)) as u64)
            }
        }
    }
}

/// A measured time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Sized {
    /// Bytes of all data that the task accesses.
    pub bytes: u64,
    /// Execution time.
    pub time: Duration,
}

/// Properties of a task that its execution time depends on.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct Work {
    pub(super) bytes: u64,
    pub(super) flops: f64,
    pub(super) footprint: Option<u32>,
}

impl KernelTime {
    /// Nanoseconds for a task, if known.
    pub(super) fn nanos(&self, work: Work) -> Option<u64> {
        let nanos = |time: Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        match self {
            KernelTime::Fixed(time) => Some(nanos(*time)),
            KernelTime::Rate { gflops, overhead } => {
                (work.flops > 0.0).then(|| nanos(*overhead).saturating_add((work.flops / gflops) as u64))
            }
            KernelTime::Power { a, b } => Some((a * (work.bytes as f64).powf(*b) * 1e3) as u64),
            KernelTime::Measured(times) => interpolate(times, work.bytes),
            KernelTime::History { times, measured } => match work.footprint {
                Some(footprint) => times.get(&footprint).map(|time| nanos(*time)),
                None => interpolate(measured, work.bytes),
            },
        }
    }
}

fn interpolate(times: &[Sized], bytes: u64) -> Option<u64> {
    // A task without data has no logarithm of its size.
    let bytes = bytes.max(1);
    let nanos = |sized: &Sized| sized.time.as_nanos() as f64;
    if let Some(exact) = times.iter().find(|sized| sized.bytes == bytes) {
        return Some(nanos(exact) as u64);
    }
    let (first, last) = (times.first()?, times.last()?);
    if times.len() == 1 {
        return Some((nanos(first) * bytes as f64 / first.bytes as f64) as u64);
    }
    let after = times.iter().position(|sized| sized.bytes > bytes).unwrap_or(times.len() - 1).max(1);
    let (low, high) = (times.get(after - 1).unwrap_or(first), times.get(after).unwrap_or(last));
    let slope = (nanos(high) / nanos(low)).ln() / (high.bytes as f64 / low.bytes as f64).ln();
    Some((nanos(low) * (bytes as f64 / low.bytes as f64).powf(slope)) as u64)
}

/// Execution times and power of kernels, by kind of task and class of workers.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Kernels {
    times: BTreeMap<String, BTreeMap<usize, KernelTime>>,
    parallel: BTreeMap<String, BTreeMap<usize, Parallel>>,
    watts: BTreeMap<String, BTreeMap<usize, f64>>,
    /// Kinds whose models have no usable measurement.
    unmeasured: BTreeSet<String>,
}

impl Kernels {
    /// Name that stands for every kind that is not named.
    pub const ANY: &'static str = "*";

    /// Sets the time of kind `kind` on a class of workers.
    pub fn set(&mut self, kind: &str, class: usize, time: KernelTime) {
        self.times.entry(kind.to_owned()).or_default().insert(class, time);
    }

    /// Notes a kind if no time is set for it: there is a model, without a usable measurement.
    pub(super) fn note_model(&mut self, kind: &str) {
        if !self.times.contains_key(kind) {
            self.unmeasured.insert(kind.to_owned());
        }
    }

    /// Whether there is a model of this kind, without a usable measurement.
    pub(crate) fn is_unmeasured(&self, kind: &str) -> bool {
        self.unmeasured.contains(kind)
    }

    /// Whether a time is set for this kind itself on a class.
    pub(super) fn is_set(&self, kind: &str, class: usize) -> bool {
        self.times.get(kind).is_some_and(|times| times.contains_key(&class))
    }

    /// The time of a kind on a class; that of [`ANY`](Self::ANY) if none is set for the kind.
    #[must_use]
    pub fn get(&self, kind: &str, class: usize) -> Option<&KernelTime> {
        self.times.get(kind).or_else(|| self.times.get(Kernels::ANY))?.get(&class)
    }

    /// Lets teams of a class execute tasks of kind `kind`. Without this, one worker executes them.
    pub fn set_parallel(&mut self, kind: &str, class: usize, parallel: Parallel) {
        self.parallel.entry(kind.to_owned()).or_default().insert(class, parallel);
    }

    /// How teams of a class execute tasks of a kind, if they can; as for [`ANY`](Self::ANY) if nothing is set for the
    /// kind.
    #[must_use]
    pub fn parallel(&self, kind: &str, class: usize) -> Option<&Parallel> {
        self.parallel_of(if self.times.contains_key(kind) { kind } else { Kernels::ANY }, class)
    }

    /// What is set for this kind itself.
    pub(super) fn parallel_of(&self, kind: &str, class: usize) -> Option<&Parallel> {
        self.parallel.get(kind)?.get(&class)
    }

    /// Whether teams can execute tasks of any kind.
    pub(super) fn has_parallel(&self) -> bool {
        !self.parallel.is_empty()
    }

    /// Sets the power in watts of a worker of a class while it executes a task of kind `kind`, alone or in a team,
    /// instead of its [usual power](super::Power::busy).
    pub fn set_watts(&mut self, kind: &str, class: usize, watts: f64) {
        self.watts.entry(kind.to_owned()).or_default().insert(class, watts);
    }

    /// Power set for a kind on a class in watts; that for [`ANY`](Self::ANY) if none is set for the kind.
    #[must_use]
    pub fn watts(&self, kind: &str, class: usize) -> Option<f64> {
        let kind = if self.times.contains_key(kind) { kind } else { Kernels::ANY };
        self.watts.get(kind)?.get(&class).copied()
    }

    /// Copies what others have for kinds of these names on a class `from`, to a class `to`.
    pub(crate) fn copy_class<'k>(
        &mut self,
        others: &Kernels,
        kinds: impl Iterator<Item = &'k str>,
        from: usize,
        to: usize,
    ) {
        for kind in kinds {
            if let Some(time) = others.get(kind, from) {
                self.set(kind, to, time.clone());
            }
            if let Some(parallel) = others.parallel(kind, from) {
                self.set_parallel(kind, to, parallel.clone());
            }
            if let Some(watts) = others.watts(kind, from) {
                self.set_watts(kind, to, watts);
            }
        }
    }

    /// Whether anything is set for a kind.
    #[must_use]
    pub fn knows(&self, kind: &str) -> bool {
        self.times.contains_key(kind) || self.times.contains_key(Kernels::ANY)
    }

    /// The kinds that are named.
    pub fn kinds(&self) -> impl Iterator<Item = &str> + Clone {
        self.times.keys().map(String::as_str)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn work(bytes: u64) -> Work {
        Work { bytes, flops: 2e9, footprint: Some(7) }
    }

    #[test]
    fn sizes_between_measured_ones_lie_on_the_line_of_logarithms() {
        let ms = Duration::from_millis;
        let at = |bytes, time| Sized { bytes, time };
        let measured = KernelTime::Measured(vec![at(100, ms(1)), at(400, ms(8)), at(1600, ms(64))]);
        assert_eq!(measured.nanos(work(400)), Some(8_000_000));
        let between = measured.nanos(work(200)).expect("it is measured");
        assert!((2_828_000..2_829_000).contains(&between), "{between}");
        let beyond = measured.nanos(work(6400)).expect("it is measured");
        assert!((511_999_000..512_001_000).contains(&beyond), "{beyond}");
    }

    #[test]
    fn a_task_without_data_takes_a_time_where_small_sizes_took_longer() {
        let at = |bytes, micros| Sized { bytes, time: Duration::from_micros(micros) };
        let measured = KernelTime::Measured(vec![at(16, 2), at(256, 1)]);
        assert_eq!(measured.nanos(work(0)), Some(4_000));
    }

    #[test]
    fn teams_go_by_amdahl_or_by_what_is_said_of_their_sizes() {
        let ms = Duration::from_millis;
        let amdahl = Parallel::Amdahl { share: 0.5, most: 4 };
        let of = |parallel: &Parallel, size| parallel.nanos(Some(8_000_000), size, work(1));
        assert_eq!([2, 4, 5].map(|size| of(&amdahl, size)), [Some(6_000_000), Some(5_000_000), None]);
        let sizes = Parallel::Sizes([(2, KernelTime::Fixed(ms(4))), (8, KernelTime::Fixed(ms(1)))].into());
        assert_eq!(
            [2, 4, 8, 9].map(|size| of(&sizes, size)),
            [Some(4_000_000), Some(2_000_000), Some(1_000_000), None]
        );
    }

    #[test]
    fn a_rate_needs_operations_and_a_history_the_footprint() {
        let rate = KernelTime::Rate { gflops: 10.0, overhead: Duration::from_micros(5) };
        assert_eq!(rate.nanos(work(1)), Some(200_005_000));
        assert_eq!(rate.nanos(Work { flops: 0.0, ..work(1) }), None);
        let time = Duration::from_nanos(9);
        let history = KernelTime::History { times: [(7, time)].into(), measured: vec![Sized { bytes: 5, time }] };
        assert_eq!(history.nanos(work(1)), Some(9));
        assert_eq!(history.nanos(Work { footprint: Some(8), ..work(5) }), None);
        assert_eq!(history.nanos(Work { footprint: None, ..work(5) }), Some(9));
    }
}

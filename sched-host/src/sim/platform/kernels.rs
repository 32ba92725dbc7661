//! How long tasks take on each class of workers.

use std::collections::BTreeMap;
use std::time::Duration;

/// How long the tasks of one kind take on one class of workers.
#[derive(Clone, PartialEq, Debug)]
pub enum KernelTime {
    /// Always the same.
    Fixed(Duration),
    /// By the floating-point operations of a task: so many of them in a nanosecond (GFlop/s), after a fixed time.
    Rate {
        /// GFlop/s.
        gflops: f64,
        /// Paid by each task.
        overhead: Duration,
    },
    /// By the size of a task's data: µs = a·bytes^b.
    Power {
        /// The factor.
        a: f64,
        /// The exponent.
        b: f64,
    },
    /// As measured at some sizes of a task's data; between and beyond them on the straight line of their logarithms.
    /// In order of size, at least one.
    Measured(Vec<Sized>),
    /// As measured for each footprint of a task's data. A task with another footprint cannot be run there; one without a
    /// footprint goes by its size, as above.
    History {
        /// By footprint.
        times: BTreeMap<u32, Duration>,
        /// The same by size, in order, at least one.
        measured: Vec<Sized>,
    },
}

/// A measured time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Sized {
    /// Bytes of all data that the task accesses.
    pub bytes: u64,
    /// How long it takes.
    pub time: Duration,
}

/// What of a task its length depends on.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct Work {
    pub(super) bytes: u64,
    pub(super) flops: f64,
    pub(super) footprint: Option<u32>,
}

impl KernelTime {
    /// Nanoseconds, if they can be told.
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

/// Times of kernels, by kind of task and class of workers.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Kernels {
    times: BTreeMap<String, BTreeMap<usize, KernelTime>>,
}

impl Kernels {
    /// Stands for every kind that is not named.
    pub const ANY: &'static str = "*";

    /// Sets the time of kind `kind` on a class of workers.
    pub fn set(&mut self, kind: &str, class: usize, time: KernelTime) {
        self.times.entry(kind.to_owned()).or_default().insert(class, time);
    }

    /// The time of a kind on a class: as said of the kind; where nothing is said of it, as said of [`ANY`](Self::ANY).
    #[must_use]
    pub fn get(&self, kind: &str, class: usize) -> Option<&KernelTime> {
        self.times.get(kind).or_else(|| self.times.get(Kernels::ANY))?.get(&class)
    }

    /// Whether something is said of a kind.
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

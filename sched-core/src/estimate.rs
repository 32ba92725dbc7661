//! Points in time, and estimates of a task's duration.

use std::fmt;
use std::ops::Add;
use std::time::Duration;

/// A point in time of the run: nanoseconds since its start, on the runtime's clock or the simulator's virtual one.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Time(u64);

impl Time {
    /// The start of the run.
    pub const ZERO: Time = Time(0);
    /// Later than every other time.
    pub const FAR: Time = Time(u64::MAX);

    /// The time this many nanoseconds after the start.
    #[inline]
    #[must_use]
    pub const fn from_nanos(nanos: u64) -> Time {
        Time(nanos)
    }

    /// Nanoseconds since the start.
    #[inline]
    #[must_use]
    pub const fn as_nanos(self) -> u64 {
        self.0
    }

    /// Microseconds since the start, the unit of StarPU's formulas.
    #[inline]
    #[must_use]
    pub fn as_micros_f64(self) -> f64 {
        self.0 as f64 / 1e3
    }

    /// The duration from `earlier` to this time; zero when `earlier` is later.
    #[inline]
    #[must_use]
    pub const fn since(self, earlier: Time) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }
}

impl Add<Duration> for Time {
    type Output = Time;

    /// The time `length` later, at most [`Time::FAR`].
    fn add(self, length: Duration) -> Time {
        Time(self.0.saturating_add(nanos(length)))
    }
}

impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.3} ms", self.0 as f64 / 1e6)
    }
}

/// A duration in nanoseconds, at most `u64::MAX` − 1 (584 years).
#[inline]
pub(crate) fn nanos(length: Duration) -> u64 {
    u64::try_from(length.as_nanos()).unwrap_or(u64::MAX).min(u64::MAX - 1)
}

/// A performance model's estimate of the duration of a task on a worker.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Estimate {
    /// The expected duration.
    Known(Duration),
    /// The model has not seen enough executions: the task should run where it can be measured.
    Uncalibrated,
    /// The codelet has no model.
    NoModel,
}

impl Estimate {
    /// The duration, if known.
    #[inline]
    #[must_use]
    pub fn known(self) -> Option<Duration> {
        match self {
            Estimate::Known(length) => Some(length),
            Estimate::Uncalibrated | Estimate::NoModel => None,
        }
    }

    /// Encodes the estimate in one word for the wire: nanoseconds, or one of the two highest numbers.
    #[inline]
    #[must_use]
    pub fn to_wire(self) -> u64 {
        match self {
            Estimate::Known(length) => nanos(length).min(UNCALIBRATED - 1),
            Estimate::Uncalibrated => UNCALIBRATED,
            Estimate::NoModel => NO_MODEL,
        }
    }

    /// Decodes a word from [`to_wire`](Self::to_wire).
    #[inline]
    #[must_use]
    pub fn from_wire(word: u64) -> Estimate {
        match word {
            UNCALIBRATED => Estimate::Uncalibrated,
            NO_MODEL => Estimate::NoModel,
            nanos => Estimate::Known(Duration::from_nanos(nanos)),
        }
    }
}

const UNCALIBRATED: u64 = u64::MAX - 1;
pub(crate) const NO_MODEL: u64 = u64::MAX;

//! Reads all counters before and after some work.

use super::{Counter, EnergyError};
use parking_lot::Mutex;
use std::path::Path;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::{Duration, Instant};

/// The kernel's directory of counters.
const POWERCAP: &str = "/sys/class/powercap";

/// Interval at which counters are read during a measurement. The smallest counters wrap around after 65 kJ, which a
/// package does not consume in this time.
const LOOK: Duration = Duration::from_secs(10);

/// Reads the energy counters of all packages of this machine.
///
/// ```no_run
/// use sched_machine::energy::EnergyMeter;
///
/// let meter = EnergyMeter::open()?;
/// let (sum, consumption) = meter.measure(|| (0..1_000_000_000u64).sum::<u64>())?;
/// println!("{sum} took {} J, {} W", consumption.joules, consumption.watts());
/// # Ok::<(), sched_machine::energy::EnergyError>(())
/// ```
#[derive(Clone, PartialEq, Debug)]
pub struct EnergyMeter {
    counters: Vec<Counter>,
    idle_watts: f64,
}

/// The energy consumed during a measurement.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Consumption {
    /// Joules consumed by all packages together, without [`idle`](Self::idle).
    pub joules: f64,
    /// Joules subtracted because the idle machine would have consumed them too: 0 unless [`EnergyMeter::above_idle`]
    /// was called.
    pub idle: f64,
    /// Duration of the measurement.
    pub time: Duration,
}

impl Consumption {
    /// Average power in watts.
    #[must_use]
    pub fn watts(&self) -> f64 {
        self.joules / self.time.as_secs_f64().max(f64::MIN_POSITIVE)
    }
}

impl EnergyMeter {
    /// Opens the counters of this machine, in `/sys/class/powercap`.
    ///
    /// # Errors
    /// When there are none, or this user may not read them; [`EnergyError`] names the fix.
    pub fn open() -> Result<EnergyMeter, EnergyError> {
        EnergyMeter::open_at(POWERCAP)
    }

    /// Opens the counters below another directory: for example, where a container has mounted those of its host.
    ///
    /// # Errors
    /// As for [`open`](Self::open).
    pub fn open_at(root: impl AsRef<Path>) -> Result<EnergyMeter, EnergyError> {
        Ok(EnergyMeter { counters: Counter::find(root.as_ref())?, idle_watts: 0.0 })
    }

    /// The counters, one for each package.
    #[must_use]
    pub fn counters(&self) -> &[Counter] {
        &self.counters
    }

    /// Subtracts the machine's idle power, as measured by [`idle_watts`](Self::idle_watts), from all later
    /// measurements. Without it, the total consumption of the packages counts. Values that are not a power (negative,
    /// infinite, or not a number) subtract nothing.
    ///
    /// ```no_run
    /// # use sched_machine::energy::EnergyMeter;
    /// # use std::time::Duration;
    /// let meter = EnergyMeter::open()?;
    /// let idle = meter.idle_watts(Duration::from_secs(5))?;
    /// let meter = meter.above_idle(idle);
    /// # Ok::<(), sched_machine::energy::EnergyError>(())
    /// ```
    #[must_use]
    pub fn above_idle(mut self, watts: f64) -> EnergyMeter {
        self.idle_watts = if watts.is_finite() && watts >= 0.0 { watts } else { 0.0 };
        self
    }

    /// Sleeps for `time`, which should be at least a few seconds, and returns the average power of the packages
    /// meanwhile, with nothing subtracted. The workers of a runtime sleep too while there are no tasks.
    ///
    /// # Errors
    /// When a counter cannot be read.
    pub fn idle_watts(&self, time: Duration) -> Result<f64, EnergyError> {
        let ((), consumption) = self.clone().above_idle(0.0).measure(|| std::thread::sleep(time))?;
        Ok(consumption.watts())
    }

    /// Runs `work`, for any length of time, and returns what the packages consumed meanwhile: for `work`, and for
    /// everything else that ran on them.
    ///
    /// # Errors
    /// When a counter cannot be read before, in which case `work` is not run; or afterwards, in which case its result
    /// is lost.
    pub fn measure<R>(&self, work: impl FnOnce() -> R) -> Result<(R, Consumption), EnergyError> {
        let readings = Mutex::new(Readings::begin(&self.counters)?);
        let began = Instant::now();
        let result = std::thread::scope(|scope| {
            // Dropped when the work ends or panics.
            let (alive, ended) = channel::<()>();
            scope.spawn(|| {
                let ended = ended;
                while ended.recv_timeout(LOOK) == Err(RecvTimeoutError::Timeout) {
                    // A failure is reported at the end, if reading fails then too.
                    let _ = readings.lock().look(&self.counters);
                }
            });
            let result = work();
            drop(alive);
            result
        });
        let mut readings = readings.into_inner();
        readings.look(&self.counters)?;
        let time = began.elapsed();
        let idle = self.idle_watts * time.as_secs_f64();
        let joules = readings.microjoules as f64 / 1e6 - idle;
        Ok((result, Consumption { joules, idle, time }))
    }
}

/// The last reading of each counter, and its total since the first.
struct Readings {
    last: Vec<u64>,
    microjoules: u64,
}

impl Readings {
    fn begin(counters: &[Counter]) -> Result<Readings, EnergyError> {
        let last = counters.iter().map(Counter::read).collect::<Result<_, _>>()?;
        Ok(Readings { last, microjoules: 0 })
    }

    fn look(&mut self, counters: &[Counter]) -> Result<(), EnergyError> {
        for (counter, last) in counters.iter().zip(&mut self.last) {
            let now = counter.read()?;
            self.microjoules = self.microjoules.saturating_add(counter.between(*last, now));
            *last = now;
        }
        Ok(())
    }
}

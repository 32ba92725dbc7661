//! Reading all counters, before and after.

use super::{Counter, EnergyError};
use parking_lot::Mutex;
use std::path::Path;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::{Duration, Instant};

/// Where the kernel has its counters.
const POWERCAP: &str = "/sys/class/powercap";

/// So often counters are looked at while something is measured. The smallest begin again after 65 kJ, which a package does
/// not take in that time.
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

/// What was taken while something was measured.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Consumption {
    /// Joules of all packages together, without those of [`idle`](Self::idle).
    pub joules: f64,
    /// Joules that were taken off, since the machine would have taken them without any work: 0 unless the meter
    /// [was told](EnergyMeter::above_idle).
    pub idle: f64,
    /// How long it was measured.
    pub time: Duration,
}

impl Consumption {
    /// Mean power, in watts.
    #[must_use]
    pub fn watts(&self) -> f64 {
        self.joules / self.time.as_secs_f64().max(f64::MIN_POSITIVE)
    }
}

impl EnergyMeter {
    /// The counters of this machine, in `/sys/class/powercap`.
    ///
    /// # Errors
    /// When there are none, or this user may not read them; see [`EnergyError`], which says the mend.
    pub fn open() -> Result<EnergyMeter, EnergyError> {
        EnergyMeter::open_at(POWERCAP)
    }

    /// The counters below another folder: where a container has those of its host, say.
    ///
    /// # Errors
    /// As for [`open`](Self::open).
    pub fn open_at(root: impl AsRef<Path>) -> Result<EnergyMeter, EnergyError> {
        Ok(EnergyMeter { counters: Counter::find(root.as_ref())?, idle_watts: 0.0 })
    }

    /// One counter for each package.
    #[must_use]
    pub fn counters(&self) -> &[Counter] {
        &self.counters
    }

    /// Takes so many watts off all that is measured from now on: what the machine draws without any work, as
    /// [`idle_watts`](Self::idle_watts) measures it. Without this, all that the packages take is counted. What is no power
    /// (below 0, infinite, or no number) takes nothing off.
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

    /// Sleeps for so long, a few seconds at least, and says how many watts the packages drew meanwhile. Nothing is taken
    /// off. Workers of a runtime sleep too while there are no tasks.
    ///
    /// # Errors
    /// When a counter cannot be read.
    pub fn idle_watts(&self, time: Duration) -> Result<f64, EnergyError> {
        let ((), consumption) = self.clone().above_idle(0.0).measure(|| std::thread::sleep(time))?;
        Ok(consumption.watts())
    }

    /// Does `work`, and says what the packages took meanwhile: for `work`, and for whatever else ran on them. It may take
    /// as long as it likes.
    ///
    /// # Errors
    /// When a counter cannot be read before: then `work` is not done; or afterwards: then its result is lost.
    pub fn measure<R>(&self, work: impl FnOnce() -> R) -> Result<(R, Consumption), EnergyError> {
        let readings = Mutex::new(Readings::begin(&self.counters)?);
        let began = Instant::now();
        let result = std::thread::scope(|scope| {
            // Dropped when the work is done, or panics.
            let (alive, ended) = channel::<()>();
            scope.spawn(|| {
                let ended = ended;
                while ended.recv_timeout(LOOK) == Err(RecvTimeoutError::Timeout) {
                    // What cannot be read now is told at the end, if it cannot be read then either.
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

/// What the counters showed last, and how far they had come since the first time.
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

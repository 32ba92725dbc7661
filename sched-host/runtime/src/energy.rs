//! Energy of tasks: estimated by the application, or measured.

use super::Runtime;
use super::core::Core;
use super::data::access::AccessList;
use super::task::codelet::{Codelet, CodeletBuilder};
use super::task::failure::{RunError, SubmitError};
use super::task::submit::Submitter;
use super::task::variant_counts::Ran;
use sched_core::Arch;
use sched_machine::energy::{Consumption, EnergyError, EnergyMeter};
use sched_model::{Quantity, SizeInfo, Variant};
use std::sync::atomic::Ordering::SeqCst;

/// Energy estimates of the application.
impl<L: AccessList, P: Send + 'static> CodeletBuilder<L, P> {
    /// Sets the energy in joules of a task of this codelet on one worker of an architecture, for any implementation.
    /// Schedulers that weigh energy use it: `mct` and its relatives, by `gamma`. The last call counts, and takes
    /// precedence over a [model](Self::model). A value that is no amount of energy (negative, infinite, NaN) removes
    /// the estimate.
    ///
    /// ```
    /// # use sched_runtime::Submitter;
    /// # use std::time::Duration;
    /// # use sched_core::Arch;
    /// # fn make(submitter: &Submitter) {
    /// let codelet = submitter.codelet::<(), ()>("sum").cpu("sum", |_, ()| {});
    /// let codelet = codelet.estimate(Arch::CPU, Duration::from_millis(2)).energy(Arch::CPU, 0.025).build();
    /// # }
    /// ```
    pub fn energy(self, arch: Arch, joules: f64) -> Self {
        self.energy_parallel(arch, 1, joules)
    }

    /// Sets the energy in joules of a task of this codelet on a combined worker of `size` workers of an architecture,
    /// all of them together; see [`energy`](Self::energy) for one worker.
    pub fn energy_parallel(mut self, arch: Arch, size: usize, joules: f64) -> Self {
        if joules.is_finite() && joules >= 0.0 {
            self.settings.energies.push((arch, u16::try_from(size).unwrap_or(u16::MAX), joules));
        }
        self
    }
}

/// Energy of a task, as measured by [`Runtime::measure_energy`].
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct TaskEnergy {
    /// Joules per task.
    pub joules: f64,
    /// Number of tasks measured together.
    pub tasks: u64,
    /// Implementation and architecture that ran them.
    pub variant: Variant,
    /// Joules of all of them.
    pub consumption: Consumption,
}

/// Why the energy of tasks was not measured. Nothing is recorded in that case.
#[derive(thiserror::Error, miette::Diagnostic)]
#[non_exhaustive]
pub enum MeasureError {
    /// A counter could not be read.
    #[error(transparent)]
    #[diagnostic(transparent)]
    Meter(#[from] EnergyError),
    /// A task could not be submitted. The tasks before it run nevertheless.
    #[error(transparent)]
    #[diagnostic(transparent)]
    Submit(#[from] SubmitError),
    /// A task failed, in the batch or before it, or the run stalled.
    #[error(transparent)]
    #[diagnostic(transparent)]
    Run(#[from] RunError),
    /// The codelet belongs to another runtime.
    #[error("codelet `{codelet}` belongs to another runtime")]
    #[diagnostic(help("make it with the runtime that measures"))]
    Foreign {
        /// Name of the codelet.
        codelet: String,
    },
    /// The codelet has no model to record the measurement.
    #[error("codelet `{codelet}` has no performance model to record the measurement")]
    #[diagnostic(help("declare one with `CodeletBuilder::model`, in a runtime that is not built `without_models`"))]
    NoModel {
        /// Name of the codelet.
        codelet: String,
    },
    /// Another thread measures the same codelet.
    #[error("the energy of codelet `{codelet}` is being measured already")]
    #[diagnostic(help("measure one batch after the other: the counters do not tell them apart"))]
    Busy {
        /// Name of the codelet.
        codelet: String,
    },
    /// No task of the codelet was submitted.
    #[error("no task of codelet `{codelet}` ran while its energy was measured")]
    #[diagnostic(help("submit a batch of them in the closure"))]
    NoTasks {
        /// Name of the codelet.
        codelet: String,
    },
    /// Other tasks ran at the same time.
    #[error(
        "{all} tasks ran while the energy of codelet `{codelet}` was measured, and only {own} of them were its own"
    )]
    #[diagnostic(help("submit its tasks alone: the counters do not tell them from others"))]
    Others {
        /// Name of the codelet.
        codelet: String,
        /// Number of tasks of the codelet.
        own: u64,
        /// Number of all tasks.
        all: u64,
    },
    /// The tasks differ in implementation or footprint.
    #[error("the tasks of codelet `{codelet}` differ in variant or footprint while their energy is measured: {}", listed(.kinds))]
    #[diagnostic(help(
        "submit tasks with data of one size, and have one implementation on one architecture run them all: by a context \
         of such workers, for example"
    ))]
    Unlike {
        /// Name of the codelet.
        codelet: String,
        /// Number of tasks for each implementation and footprint.
        kinds: Vec<(Variant, u32, u64)>,
    },
    /// The energy of the batch is too low to measure.
    #[error(
        "{tasks} tasks of codelet `{codelet}` took {:.6} J in {:.6} s, expected more than none",
        consumption.joules,
        consumption.time.as_secs_f64()
    )]
    #[diagnostic(help(
        "submit enough tasks to run for a second or more, since the counters advance in steps; and subtract no more idle \
         power than the machine draws"
    ))]
    Nothing {
        /// Name of the codelet.
        codelet: String,
        /// Number of tasks.
        tasks: u64,
        /// Measured joules.
        consumption: Consumption,
    },
    /// The model is full.
    #[error("the model of codelet `{codelet}` is full: it has learned too many sizes")]
    #[diagnostic(help("measure known sizes, or reset the model with `sched model reset`"))]
    Full {
        /// Name of the codelet.
        codelet: String,
    },
}

fn listed(kinds: &[(Variant, u32, u64)]) -> String {
    let kind = |(variant, footprint, tasks): &(Variant, u32, u64)| {
        format!("{tasks} ran on {variant} with footprint {footprint:08x}")
    };
    kinds.iter().map(kind).collect::<Vec<_>>().join(", ")
}

impl Runtime {
    /// Measures the energy of a task of a codelet, and records it in the codelet's [model](CodeletBuilder::model).
    ///
    /// The counters are coarse and cover the whole machine, so a batch is measured, with nothing beside it. The call
    /// waits for all tasks submitted before, calls `submit` to submit the batch, waits for its end, and divides the
    /// energy that `meter` reports by the number of tasks. The tasks must be of one kind: of this codelet, with data of
    /// the same size, all run by one implementation on one architecture. The batch should take a second or more. The
    /// mean counts as one sample per task; ten samples make an estimate.
    ///
    /// The measurement includes everything that the packages consume, also workers without a task and the idle machine.
    /// Schedulers can save only the energy of tasks above that, since the machine is not switched off: measure the rest
    /// with [`EnergyMeter::idle_watts`], and subtract it with [`EnergyMeter::above_idle`]. Other programs are included
    /// too: run none.
    ///
    /// ```no_run
    /// use sched_machine::energy::EnergyMeter;
    /// use sched_model::Model;
    /// use sched_runtime::{ReadWrite, Runtime};
    ///
    /// let runtime = Runtime::builder().build()?;
    /// let scale = runtime
    ///     .codelet::<(ReadWrite<Vec<f64>>,), ()>("scale")
    ///     .cpu("scale_cpu", |_, (vector,)| vector.iter_mut().for_each(|value| *value *= 0.5))
    ///     .model(Model::history("scale"))
    ///     .build();
    /// let vectors: Vec<_> = (0..100).map(|_| runtime.register(vec![1.0; 1_000_000])).collect();
    /// let meter = EnergyMeter::open()?;
    /// let found = runtime.measure_energy(&scale, &meter, |submitter| {
    ///     for vector in &vectors {
    ///         submitter.task(&scale, (vector,)).submit()?;
    ///     }
    ///     Ok(())
    /// })?;
    /// println!("{} J a task, of {}", found.joules, found.tasks);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// See [`MeasureError`]; nothing is recorded in that case. Submitted tasks run nevertheless.
    pub fn measure_energy<L: AccessList, P: Send + 'static>(
        &self,
        codelet: &Codelet<L, P>,
        meter: &EnergyMeter,
        submit: impl FnOnce(&Submitter) -> Result<(), SubmitError>,
    ) -> Result<TaskEnergy, MeasureError> {
        let facts = &codelet.inner.facts;
        let name = || facts.name.clone();
        let core = &*self.core;
        if facts.runtime != core.id {
            return Err(MeasureError::Foreign { codelet: name() });
        }
        let Some(model) = &facts.model else { return Err(MeasureError::NoModel { codelet: name() }) };
        let (count, before) = loop {
            self.wait_all()?;
            let Some(count) = facts.variant_counts.begin() else { return Err(MeasureError::Busy { codelet: name() }) };
            let before = tasks_submitted(core);
            // Another thread may submit at any time. All tasks that are not counted from here on must have ended.
            if core.is_finished() && count.ran().is_empty() {
                break (count, before);
            }
        };
        let (ended, consumption) = meter.measure(|| {
            submit(self)?;
            Ok::<(), MeasureError>(self.wait_all()?)
        })?;
        ended?;
        let all = tasks_submitted(core) - before;
        let ran = count.ran();
        let own = ran.values().map(|ran| ran.tasks).sum();
        let ((variant, footprint), bytes) = match ran.first_key_value() {
            None => return Err(MeasureError::NoTasks { codelet: name() }),
            Some(_) if own != all => return Err(MeasureError::Others { codelet: name(), own, all }),
            Some(_) if ran.len() > 1 => {
                let kinds = ran.iter().map(|((variant, footprint), ran)| (*variant, *footprint, ran.tasks)).collect();
                return Err(MeasureError::Unlike { codelet: name(), kinds });
            }
            Some((kind, Ran { bytes, .. })) => (*kind, *bytes),
        };
        let joules = consumption.joules / own as f64;
        if joules <= 0.0 {
            return Err(MeasureError::Nothing { codelet: name(), tasks: own, consumption });
        }
        let size = SizeInfo { footprint, bytes, ..SizeInfo::default() };
        match model.record_equal(variant, Quantity::Energy, &size, joules, own) {
            true => Ok(TaskEnergy { joules, tasks: own, variant, consumption }),
            false => Err(MeasureError::Full { codelet: name() }),
        }
    }
}

/// Number of tasks submitted, without the accesses of the application itself.
fn tasks_submitted(core: &Core) -> u64 {
    core.submitted().saturating_sub(core.own_accesses.begun.load(SeqCst))
}

sched_text::debug_as_text!(MeasureError);

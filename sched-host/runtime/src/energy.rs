//! What tasks take in energy: as the application says, and as meters measure it.

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

/// Energy, as the application says it.
impl<L: AccessList, P: Send + 'static> CodeletBuilder<L, P> {
    /// Says how many joules a task of this codelet takes on one worker of an architecture, whichever implementation runs,
    /// for schedulers that weigh energy: `mct` and those like it, by `gamma`. What is said last counts, before what a
    /// [model](Self::model) knows. What is no amount of energy (below 0, infinite, or no number) says nothing: it is as if
    /// this had not been called.
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

    /// Says how many joules a task of this codelet takes on a combined worker of `size` workers of an architecture, all of
    /// them together, as [`energy`](Self::energy) does for one worker.
    pub fn energy_parallel(mut self, arch: Arch, size: usize, joules: f64) -> Self {
        if joules.is_finite() && joules >= 0.0 {
            self.energies.push((arch, u16::try_from(size).unwrap_or(u16::MAX), joules));
        }
        self
    }
}

/// What a task takes, as [`Runtime::measure_energy`] found it.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct TaskEnergy {
    /// Joules of one task.
    pub joules: f64,
    /// How many tasks were measured together.
    pub tasks: u64,
    /// What ran them.
    pub variant: Variant,
    /// What all of them took.
    pub consumption: Consumption,
}

/// Why the energy of tasks was not measured. Nothing was recorded then.
#[derive(thiserror::Error, miette::Diagnostic)]
#[non_exhaustive]
pub enum MeasureError {
    /// A counter could not be read.
    #[error(transparent)]
    #[diagnostic(transparent)]
    Meter(#[from] EnergyError),
    /// A task could not be submitted. Those before it run all the same.
    #[error(transparent)]
    #[diagnostic(transparent)]
    Submit(#[from] SubmitError),
    /// A task failed, in the batch or before it, or nothing moves any more.
    #[error(transparent)]
    #[diagnostic(transparent)]
    Run(#[from] RunError),
    /// The codelet is one of another runtime.
    #[error("codelet `{codelet}` is one of another runtime")]
    #[diagnostic(help("make it with the runtime that measures"))]
    Foreign {
        /// Its name.
        codelet: String,
    },
    /// There is nothing that could keep what is measured.
    #[error("codelet `{codelet}` has no performance model, which would keep what is measured")]
    #[diagnostic(help("declare one with `CodeletBuilder::model`, in a runtime that is not built `without_models`"))]
    NoModel {
        /// Its name.
        codelet: String,
    },
    /// Another thread measures the same codelet.
    #[error("the energy of codelet `{codelet}` is being measured already")]
    #[diagnostic(help("measure one batch after the other: the counters do not tell them apart"))]
    Busy {
        /// Its name.
        codelet: String,
    },
    /// There was no batch.
    #[error("no task of codelet `{codelet}` ran while its energy was measured")]
    #[diagnostic(help("submit a batch of them in the closure"))]
    NoTasks {
        /// Its name.
        codelet: String,
    },
    /// Others ran at the same time.
    #[error(
        "{all} tasks ran while the energy of codelet `{codelet}` was measured, and only {own} of them were its own"
    )]
    #[diagnostic(help("submit its tasks alone: the counters do not tell them from others"))]
    Others {
        /// Its name.
        codelet: String,
        /// Tasks of the codelet.
        own: u64,
        /// All tasks.
        all: u64,
    },
    /// The tasks were not alike.
    #[error("the tasks of codelet `{codelet}` were not alike while their energy was measured: {}", listed(.kinds))]
    #[diagnostic(help(
        "submit tasks with data of one size, and have one implementation on one architecture run them all: by a context \
         of such workers, say, or by a policy that has no choice"
    ))]
    Unlike {
        /// Its name.
        codelet: String,
        /// Tasks by what ran them and their footprint, with their number.
        kinds: Vec<(Variant, u32, u64)>,
    },
    /// The batch took nothing that could be seen.
    #[error(
        "{tasks} tasks of codelet `{codelet}` took {:.6} J in {:.6} s, expected more than none",
        consumption.joules,
        consumption.time.as_secs_f64()
    )]
    #[diagnostic(help(
        "submit so many tasks that they take a second and more, since the counters move in steps; and see that no more is \
         taken off for idling than the machine draws"
    ))]
    Nothing {
        /// Its name.
        codelet: String,
        /// How many tasks.
        tasks: u64,
        /// What they took.
        consumption: Consumption,
    },
    /// The model is full.
    #[error("the model of codelet `{codelet}` keeps no further size: it has seen too many")]
    #[diagnostic(help("measure sizes that it knows, or have `sched model reset` forget it"))]
    Full {
        /// Its name.
        codelet: String,
    },
}

fn listed(kinds: &[(Variant, u32, u64)]) -> String {
    let told = |(variant, footprint, tasks): &(Variant, u32, u64)| {
        format!("{tasks} ran on {variant} with footprint {footprint:08x}")
    };
    kinds.iter().map(told).collect::<Vec<_>>().join(", ")
}

impl Runtime {
    /// Measures how much energy a task of a codelet takes, and has the codelet's [model](CodeletBuilder::model) learn it.
    ///
    /// The counters are coarse, and count for the whole machine; so it is done for a batch, with nothing beside it. This
    /// waits for all tasks that were submitted before, has `submit` submit the batch, waits for its end, and divides what
    /// `meter` shows by the number of tasks. They must be alike: tasks of this codelet, with data of the same size, all run
    /// by one implementation on one architecture. The batch should take a second or more. Its mean counts as so many
    /// samples as there were tasks: ten make an estimate.
    ///
    /// All that the packages take is counted: what workers without a task take too, and the idle machine. Of a machine that
    /// is not switched off meanwhile, schedulers can save only what tasks take above that: measure it with
    /// [`EnergyMeter::idle_watts`], and have it taken off with [`EnergyMeter::above_idle`]. What other programs take is
    /// counted as well: run none.
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
    /// See [`MeasureError`]; nothing is recorded then. Tasks that were submitted run all the same.
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
            // Another thread may submit at any time. What is not counted from here on must have ended.
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
            Some((alike, Ran { bytes, .. })) => (*alike, *bytes),
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

/// Tasks submitted so far, without the application's own accesses to data.
fn tasks_submitted(core: &Core) -> u64 {
    core.submitted().saturating_sub(core.own_accesses.begun.load(SeqCst))
}

sched_text::debug_as_text!(MeasureError);

//! A policy that is started for a moment, to see whether its components do as they declare.

use sched_model::{Model, Models};
use sched_policy::Policy;
use sched_runtime::{ReadWrite, Runtime};
use sched_tree::Fault;
use sched_tree::plugin::Registry;
use serde::Serialize;
use std::io::Write;
use std::sync::Arc;

/// Tasks of each of the three parts of the run. Every call of a component is compared with its declarations up to a
/// number beyond that.
const TASKS: usize = 160;

/// Chains that some of the tasks form.
const CHAINS: usize = 8;

/// What became of a policy that was started.
#[derive(Serialize)]
pub(super) struct Started {
    workers: usize,
    /// Number of tasks that ran.
    tasks: usize,
    faults: Vec<Fault>,
    /// Why it did not start, or did not end.
    problem: Option<String>,
}

impl Started {
    /// Starts a policy on this machine, lets tasks through, without and with a worker that leaves, and ends it.
    pub(super) fn new(policy: &Policy, registry: Arc<Registry>, workers: usize) -> Started {
        let builder = Runtime::builder().policy_value(policy.clone()).registry(registry).workers(workers).bind(false);
        let mut started = Started { workers, tasks: 0, faults: Vec::new(), problem: None };
        match builder.models(Arc::new(Models::in_memory())).build() {
            Ok(runtime) => {
                started.problem = started.run(&runtime).err();
                started.faults = runtime.faults();
            }
            Err(error) => started.problem = Some(error.to_string()),
        }
        started
    }

    fn run(&mut self, runtime: &Runtime) -> Result<(), String> {
        let context = runtime.default_context();
        self.part(runtime)?;
        let last = u32::try_from(self.workers.saturating_sub(1)).unwrap_or(0);
        // A policy may need every worker: it goes on with all of them then.
        let left = self.workers > 1 && context.remove_workers([last]).is_ok();
        self.part(runtime)?;
        if left {
            context.add_workers([last]).map_err(|error| error.to_string())?;
        }
        self.part(runtime)
    }

    /// Tasks of several priorities, with and without a performance model, alone and in chains.
    fn part(&mut self, runtime: &Runtime) -> Result<(), String> {
        let measured =
            runtime.codelet::<(), ()>("measured").cpu("measured", |_, ()| spin()).model(Model::history("check-run"));
        let chained = runtime.codelet::<(ReadWrite<u64>,), ()>("chained").cpu("chained", |_, (steps,)| {
            *steps += 1;
            spin();
        });
        let (measured, chained) = (measured.build(), chained.build());
        let chains = [(); CHAINS].map(|()| runtime.register(0_u64));
        for number in 0..TASKS {
            let priority = number as i32 % 5 - 2;
            let submitted = match number % 2 {
                0 => runtime.task(&measured, ()).priority(priority).submit(),
                _ => runtime.task(&chained, (&chains[number / 2 % CHAINS],)).priority(priority).submit(),
            };
            submitted.map_err(|error| error.to_string())?;
        }
        runtime.wait_all().map_err(|error| error.to_string())?;
        self.tasks += TASKS;
        Ok(())
    }

    /// Whether it ran to its end without a fault.
    pub(super) fn is_ok(&self) -> bool {
        self.problem.is_none() && self.faults.is_empty()
    }

    /// Writes a line, and one for each fault.
    pub(super) fn write(&self, out: &mut dyn Write) -> std::io::Result<()> {
        let Started { workers, tasks, .. } = self;
        let verdict = if self.is_ok() { "every component does as it declares" } else { "not as declared" };
        writeln!(out, "run: {tasks} tasks on {workers} workers: {verdict}")?;
        self.faults.iter().try_for_each(|fault| writeln!(out, "fault: {fault}"))?;
        self.problem.iter().try_for_each(|problem| writeln!(out, "problem: {problem}"))
    }
}

/// Takes a microsecond or so.
fn spin() {
    std::hint::black_box((0..200_u64).fold(0, |sum, number| std::hint::black_box(sum + number)));
}

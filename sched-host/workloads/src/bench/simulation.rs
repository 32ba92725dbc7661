//! The cost of a simulated task, by the number of workers.

use sched_graph::TaskGraph;
use sched_sim::{Platform, SimError, Simulation};
use sched_tree::plugin::Registry;
use serde::Serialize;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// What to measure.
#[derive(Clone, Debug)]
pub struct SimulationBench {
    /// The task graph.
    pub graph: Arc<TaskGraph>,
    /// Policies, by name or path.
    pub policies: Vec<String>,
    /// Numbers of workers.
    pub workers: Vec<usize>,
    /// Number of rounds; the least time of all counts.
    pub rounds: usize,
}

/// One row: a policy with a number of workers.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct SimulationResult {
    /// The policy.
    pub policy: String,
    /// Number of workers of the simulated machine.
    pub workers: usize,
    /// Number of tasks of the graph.
    pub tasks: usize,
    /// Tasks simulated per second of real time, in the fastest of all rounds.
    pub tasks_per_second: f64,
    /// Nanoseconds of real time per task.
    pub ns_per_task: f64,
    /// Cost of a task relative to the policy's row with the fewest workers.
    pub growth: f64,
    /// Number of workers relative to that row.
    pub more_workers: f64,
}

/// Duration of a kernel for which the graph gives none.
const LENGTH: Duration = Duration::from_millis(1);

/// Measures everything, and reports the progress, from 0 to 1, to `progress`. The machines are flat: identical workers
/// with one memory, on which only kernels take time. The figures cover all of [`Simulation::run`], from the policy to
/// the last event; every round measures each policy with each number of workers once.
///
/// # Errors
/// If a policy does not fit, or leaves tasks unexecuted.
pub fn simulation_bench(
    wanted: &SimulationBench,
    registry: &Arc<Registry>,
    mut progress: impl FnMut(f64),
) -> Result<Vec<SimulationResult>, SimError> {
    let cells = wanted.policies.iter().flat_map(|policy| wanted.workers.iter().map(move |workers| (policy, *workers)));
    let mut cells: Vec<_> = cells.map(|(policy, workers)| (policy, workers, Duration::MAX)).collect();
    let rounds = wanted.rounds.max(1);
    let steps = (rounds * cells.len()) as f64;
    for round in 0..rounds {
        let before = round * cells.len();
        for (at, (policy, workers, least)) in cells.iter_mut().enumerate() {
            let simulation = Simulation::new(Arc::clone(&wanted.graph), Platform::flat(*workers, LENGTH));
            let simulation = simulation.policy(policy).registry(Arc::clone(registry));
            let began = Instant::now();
            simulation.run()?;
            *least = began.elapsed().min(*least);
            progress((before + at + 1) as f64 / steps);
        }
    }
    let tasks = wanted.graph.tasks.len();
    let row = |(policy, workers, least): &(&String, usize, Duration)| {
        let of_policy = cells.iter().filter(|(other, ..)| other == policy);
        let (fewest, base) =
            of_policy.map(|(_, workers, least)| (*workers, *least)).min().unwrap_or((*workers, *least));
        SimulationResult {
            policy: (*policy).clone(),
            workers: *workers,
            tasks,
            tasks_per_second: tasks as f64 / least.as_secs_f64(),
            ns_per_task: least.as_nanos() as f64 / tasks.max(1) as f64,
            growth: least.as_secs_f64() / base.as_secs_f64(),
            more_workers: *workers as f64 / fewest as f64,
        }
    };
    Ok(cells.iter().map(row).collect())
}

//! What a simulated task costs, by the number of workers.

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
    /// Rounds; the least time of all counts.
    pub rounds: usize,
}

/// One row: a policy with a number of workers.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct SimulationResult {
    /// The policy.
    pub policy: String,
    /// Workers of the simulated machine.
    pub workers: usize,
    /// Tasks of the graph.
    pub tasks: usize,
    /// Tasks simulated in a second of real time: in the fastest of all rounds.
    pub tasks_per_second: f64,
    /// The same as nanoseconds a task.
    pub ns_per_task: f64,
    /// How many times as much a task costs as in the policy's row with the fewest workers.
    pub growth: f64,
    /// How many times as many workers there are as in that row.
    pub more_workers: f64,
}

/// How long a kernel takes for which the graph says nothing.
const LENGTH: Duration = Duration::from_millis(1);

/// Measures, telling `progress` how much of all is done, from 0 to 1. The machines are flat: workers that are all alike
/// and have one memory, on which nothing beside kernels takes time. The figures count whatever [`Simulation::run`] does, from
/// the policy to the last event; every round measures each policy with each number of workers once.
///
/// # Errors
/// When a policy does not fit, or leaves tasks behind.
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

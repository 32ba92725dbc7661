//! Schedules of the simulator are valid, on machines of any shape: what the events say is followed by a reader of its
//! own, which knows the graph and the machine, and nothing of the engine.

mod cases;
mod reader;

use proptest::prelude::*;
use reader::Reader;
use sched_host::policy::library;
use sched_host::sim::{Noise, SimError, Simulation};
use sched_host::trace::EventLog;
use sched_tests::stock;

proptest! {
    #![proptest_config(ProptestConfig::with_cases(16))]

    /// Tasks wait for those before them and for their data; nobody executes two at once; copies come from valid ones
    /// that nobody is writing, one at a time between two memories and within what links carry; and the totals are those
    /// of the events. In half of the cases kernels deviate.
    #[test]
    fn every_policy_makes_a_valid_schedule(seed in any::<u64>()) {
        let (machine, graph) = cases::of(seed);
        let noise = Noise { spread: if seed.is_multiple_of(2) { 0.3 } else { 0.0 }, seed, ..Noise::default() };
        for policy in library() {
            let mut log = EventLog::default();
            let simulation = Simulation::new(graph.clone(), machine.clone()).policy(policy.name).seed(seed);
            let simulation = simulation.noise(noise.clone());
            match simulation.registry(stock::registry(Vec::new())).observe(&mut log) {
                Ok(outcome) => Reader::new(&graph, &machine, noise.spread == 0.0).read(&log, &outcome),
                // A memory may be too small for the data of a task.
                Err(SimError::Task { .. }) => {}
                Err(error) => return Err(TestCaseError::fail(format!("{}: {error}", policy.name))),
            }
        }
    }
}

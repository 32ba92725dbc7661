//! Traces of simulations and runs: as other programs read them, and as a user makes them.

mod chrome;
mod drawing;
mod paje;
mod program;
mod recorded;

use sched_host::graph::TaskGraph;
use sched_host::graph::generate::cholesky;
use sched_host::sim::platform::find;
use sched_host::sim::{Platform, SimRecorder, Simulation};
use sched_host::trace::Trace;
use sched_tests::stock;
use std::sync::Arc;

fn simulated(graph: TaskGraph, platform: Platform, policy: &str) -> Trace {
    let (graph, platform) = (Arc::new(graph), Arc::new(platform));
    let mut recorder = SimRecorder::new(Arc::clone(&graph), Arc::clone(&platform));
    let simulation = Simulation::new(graph, platform).registry(stock::registry(Vec::new()));
    let simulation = simulation.policy(policy).tree_observer(recorder.tree_observer());
    simulation.observe(&mut recorder).expect("the simulation ends");
    recorder.finish(policy)
}

/// 120 tasks on nine cores and three devices, with transfers, refusals and queues.
fn factorisation() -> Trace {
    simulated(cholesky(8, 960), find("cpu9-gpu3").expect("it is shipped"), "tree-eager-prefetching")
}

//! Traces of simulations and runs, as other programs read them.

mod chrome;
mod drawing;
mod paje;
mod recorded;
mod timeline;

use super::{SimRecorder, Trace};
use crate::graph::TaskGraph;
use crate::graph::generate::cholesky;
use crate::plugin::Registry;
use crate::sim::platform::find;
use crate::sim::{Platform, Simulation};
use sched_components::flow_control::Fifo;
use sched_components::resource_mapping::Eager;
use sched_components::special_purpose::BestImplementation;
use sched_components::worker::Simple;
use sched_core::Offer;
use std::sync::Arc;

/// What the policies here need.
fn registry() -> Arc<Registry> {
    let offers =
        vec![Offer::of::<Fifo>(), Offer::of::<Eager>(), Offer::of::<BestImplementation>(), Offer::of::<Simple>()];
    let mut registry = Registry::empty();
    registry.add_builtin("stock", offers).expect("the stock components are good");
    Arc::new(registry)
}

fn simulated(graph: TaskGraph, platform: Platform, policy: &str) -> Trace {
    let (graph, platform) = (Arc::new(graph), Arc::new(platform));
    let mut recorder = SimRecorder::new(Arc::clone(&graph), Arc::clone(&platform));
    let simulation = Simulation::new(graph, platform).registry(registry()).policy(policy).witness(recorder.witness());
    simulation.observe(&mut recorder).expect("the simulation ends");
    recorder.finish(policy)
}

/// 120 tasks on nine cores and three devices, with transfers, refusals and queues.
fn factorisation() -> Trace {
    simulated(cholesky(8, 960), find("cpu9-gpu3").expect("it is shipped"), "tree-eager-prefetching")
}

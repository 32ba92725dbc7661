//! Devices whose memory is too small for the data: `tree-plan` plans with what is evicted.

use sched_core::*;
use sched_host::graph::TaskGraph;
use sched_host::graph::generate::{cholesky, independent, lu};
use sched_host::sim::{Noise, Platform, Simulation};
use sched_tests::loss::makespan;
use sched_tests::stock;
use std::sync::Arc;
use std::time::Duration;

/// Size of a tile.
const TILE: usize = 960;

/// A shipped machine with links of a third of the speed, and this memory on each device.
fn with_memory(size: &str) -> Arc<Platform> {
    let text = include_str!("../../sched-host/sim/platforms/cpu9-gpu3.kdl");
    let text = text.replace("12 GB", size).replace("11.5 GB/s", "4 GB/s").replace("24 GB/s", "8 GB/s");
    Arc::new(Platform::parse("full", &text).unwrap_or_else(|findings| panic!("{findings:?}")))
}

#[test]
fn a_plan_is_ahead_of_policies_that_see_what_is_there() {
    let (mut product, registry) = (1.0, stock::registry(Vec::new()));
    let graphs: [Arc<TaskGraph>; 2] = [cholesky(10, TILE).into(), lu(7, TILE).into()];
    for size in ["120 MB", "60 MB"] {
        let platform = with_memory(size);
        for graph in &graphs {
            let of = |policy| makespan(graph, &platform, policy, &registry, Noise::default());
            let best = ["tree-heft", "tree-dmdar", "tree-heteroprio"].map(of).into_iter().fold(f64::INFINITY, f64::min);
            let ratio = of("tree-plan") / best;
            assert!(ratio < 1.06, "{}, {size}: {ratio}", graph.name);
            product *= ratio;
        }
    }
    assert!(product < 0.9, "{product}");
}

/// Asks for the capacities of memory nodes, one of which does not exist.
struct Asking;

impl Build for Asking {
    const INFO: Info = Info::new("asking", Family::SpecialPurpose, "Asks.").forwards_push();

    fn build(_params: &Params) -> Result<Self, BuildError> {
        Ok(Asking)
    }
}

impl Component for Asking {
    fn push_task(&self, node: Node<'_>, task: Task) -> Push {
        let capacities = [0, 1, 3, 99].map(|memory| node.memory_capacity(MemoryNode(memory)));
        assert_eq!(capacities, [None, Some(60_000_000), Some(60_000_000), None]);
        match node.children().next() {
            Some(child) => node.push_to(child, task),
            None => Err(Refused::new(task, Refusal::NoWorker)),
        }
    }
}

#[test]
fn a_component_knows_the_capacities_of_a_described_machine() {
    let outcome = Simulation::new(independent(1, Duration::from_millis(1)), with_memory("60 MB"))
        .policy_value(stock::policy(r#"asking { fifo { eager { each "worker" { worker } } } }"#))
        .registry(stock::registry(vec![Offer::of::<Asking>()]))
        .run()
        .expect("it runs");
    assert_eq!((outcome.faults.len(), outcome.tasks), (0, 1), "{:?}", outcome.faults);
}

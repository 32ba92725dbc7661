//! The cost of a component's decision, by the number of its children.

use super::BenchError;
use sched_machine::topology::Topology;
use sched_policy as policy;
use sched_runtime::{Runtime, StartError};
use sched_tree::BareTree;
use sched_tree::plugin::Registry;
use serde::Serialize;
use std::sync::Arc;
use std::time::Duration;

/// What to measure.
#[derive(Clone, Debug)]
pub struct DecisionBench {
    /// Components that choose among their children, by name.
    pub components: Vec<String>,
    /// Numbers of children.
    pub children: Vec<usize>,
    /// Number of rounds; the least time of all counts.
    pub rounds: usize,
}

/// One row: a component above a number of queues, each above a worker.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct DecisionResult {
    /// The component.
    pub component: String,
    /// Number of its children.
    pub children: usize,
    /// Nanoseconds from a push into the component to its return, with the task in one of the queues: the least of all
    /// rounds.
    pub ns_per_decision: f64,
    /// Nanoseconds divided by the number of children.
    pub ns_per_child: f64,
}

/// Number of tasks per round.
const TASKS: u32 = 512;

/// Expected length of each task.
const LENGTH: Duration = Duration::from_micros(100);

/// Measures everything, and reports the progress, from 0 to 1, to `progress`. Every round measures each component with
/// each number of children once. No worker executes anything, all workers are identical, and all tasks have the same
/// expected length.
///
/// # Errors
/// If a tree cannot be built, because there is no such component, or it does not accept this many children; or if a
/// component keeps or loses tasks: its figures would be worthless.
pub fn decision_bench(
    wanted: &DecisionBench,
    registry: &Arc<Registry>,
    mut progress: impl FnMut(f64),
) -> Result<Vec<DecisionResult>, BenchError> {
    let mut trees = Vec::new();
    for component in &wanted.components {
        for children in &wanted.children {
            trees.push((component, *children, above_queues(component, *children, registry)?, Duration::MAX));
        }
    }
    let rounds = wanted.rounds.max(1);
    for round in 0..rounds {
        for (component, _, tree, least) in &mut trees {
            *least = tree.pushes(TASKS).map_err(BenchError::of(component))?.min(*least);
        }
        progress((round + 1) as f64 / rounds as f64);
    }
    let row = |(component, children, _, least): (&String, usize, BareTree, Duration)| {
        let ns_per_decision = least.as_nanos() as f64 / f64::from(TASKS);
        DecisionResult {
            component: component.clone(),
            children,
            ns_per_decision,
            ns_per_child: ns_per_decision / children as f64,
        }
    };
    Ok(trees.into_iter().map(row).collect())
}

/// A tree with the component above a queue for each worker.
fn above_queues(component: &str, children: usize, registry: &Arc<Registry>) -> Result<BareTree, StartError> {
    let text = format!("policy \"{component}\" {{ {component} {{ each \"worker\" {{ fifo {{ worker }} }} }} }}");
    let policy = policy::parse("the bench", &text)?.remove(0);
    let machine = Topology::from_synthetic(&format!("core:{children} pu:1"))?;
    let builder = Runtime::builder().registry(Arc::clone(registry)).policy_value(policy);
    // A component that decides by lengths is measured alone, without the component that sorts tasks for it.
    let tree = builder.topology(machine).workers(children).bind(false).unchecked().bare_tree()?;
    tree.expect(LENGTH);
    Ok(tree)
}

//! Every component of a plugin, used a little: what a trial executes.

use super::manifest;
use crate::bare_tree::BareTree;
use crate::{Claims, NodeId, Part, Unplaced, WorkerFacts};
use sched_core::abi::ComponentObject;
use sched_core::abi::Opened;
use sched_core::{
    Arity, Child, Component, ComponentInfo, Mutex, Node, Params, Push, Refusal, Refused, Task, WorkerId, WorkerSet,
    adapt,
};
use std::time::Duration;

/// What stands around the component that is tried, above it or below: it keeps two tasks, refuses others, and asks
/// above when it has none.
#[derive(Default)]
struct Neighbour {
    tasks: Mutex<Vec<Task>>,
}

impl Component for Neighbour {
    fn push_task(&self, node: Node<'_>, task: Task) -> Push {
        if let Some(child) = node.children().next() {
            return node.push_to(child, task);
        }
        let mut tasks = self.tasks.lock();
        if tasks.len() == 2 {
            return Err(Refused::new(task, Refusal::Full));
        }
        tasks.push(task);
        Ok(())
    }

    fn pull_task(&self, node: Node<'_>, _to: Child) -> Option<Task> {
        let stored = self.tasks.lock().pop();
        if stored.is_none() {
            let _ = node.parents_can_push();
        }
        stored.or_else(|| node.pull_from_parents())
    }

    fn drain(&self) -> Vec<Task> {
        std::mem::take(&mut *self.tasks.lock())
    }
}

/// Number of workers below what takes several children.
const WORKERS: usize = 3;

/// Tasks of one round.
const TASKS: u32 = 12;

/// Builds each component with its default parameters, and has tasks pushed to it, pulled from it and drained. Those
/// whose descriptions are wrong are left out: no tree can be made of what they say, and nobody uses them.
pub(super) fn every_component(plugin: Opened, components: &[ComponentInfo]) {
    for info in components.iter().filter(|info| manifest::faults(info).is_empty()) {
        let defaults = Params::from_values(info.params.iter().map(|param| (param.name.clone(), param.default.clone())));
        if let Ok(component) = plugin.build(&info.name, &defaults) {
            exercise(info, component);
        }
    }
}

fn exercise(info: &ComponentInfo, component: ComponentObject) {
    let leaves: Vec<String> = match info.arity {
        Arity::Slots => info.slots.iter().map(|slot| slot.name.clone()).collect(),
        Arity::ManyAndSlots => {
            let unnamed = std::iter::repeat_n(String::new(), WORKERS);
            unnamed.chain(info.slots.iter().map(|slot| slot.name.clone())).collect()
        }
        Arity::One | Arity::Leaf => vec![String::new()],
        _ => vec![String::new(); WORKERS],
    };
    let (workers, alone) = (WorkerSet::first(leaves.len() as u32), leaves.len() == 1);
    let numbered = (0..).zip(leaves);
    let children = numbered.map(|(leaf, slot): (u32, String)| (NodeId(leaf + 1), slot)).collect();
    let mut neighbours = std::iter::repeat_with(|| adapt(Neighbour::default()));
    let facts = vec![WorkerFacts::CPU; workers.iter().count()];
    let (root, first_leaf) = match info.arity {
        Arity::Leaf if alone => (adapt(Neighbour::default()), Some(component)),
        _ => (component, None),
    };
    let leaves = first_leaf.into_iter().chain(&mut neighbours).zip(workers.iter());
    let leaves: Vec<Part> =
        leaves.map(|(leaf, worker)| part(leaf, Vec::new(), std::iter::once(worker).collect(), Some(worker))).collect();
    let parts = std::iter::once(part(root, children, workers, None)).chain(leaves).collect();
    let tree = BareTree::new(parts, &facts, Vec::new());
    tree.attempt(TASKS);
    tree.expect(Duration::from_micros(10));
    tree.attempt(TASKS);
    tree.take_down();
}

fn part(
    component: ComponentObject,
    children: Vec<(NodeId, String)>,
    workers: WorkerSet,
    worker: Option<WorkerId>,
) -> Part {
    Part {
        component: Unplaced::new(component, None),
        name: "tried".to_owned(),
        plugin: String::new(),
        params: Params::default(),
        path: worker.map_or_else(|| "tried".to_owned(), |worker| format!("leaf {}", worker.0)),
        object: String::new(),
        children,
        workers_in_context: workers.clone(),
        workers,
        sharing: None,
        worker,
        claims: Claims::default(),
        attended: false,
    }
}

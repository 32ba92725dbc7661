//! Components that keep their state live on when workers join a context or leave it, with their tasks and what they
//! have learnt.

use sched_core::*;
use sched_host::context::ContextError;
use sched_host::runtime::Runtime;
use sched_host::tree::NodeState;
use sched_tests::bad::Bad;
use sched_tests::chains::submit_chains;
use sched_tests::hold::Hold;
use sched_tests::stock::{self, policy};
use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// A queue that counts what happens to it, and keeps its state.
#[derive(Default)]
struct Learner {
    tasks: Mutex<VecDeque<Task>>,
    /// Number of tasks that were pushed to it.
    pushed: AtomicU64,
    /// Numbers of workers that it was told of.
    told: Mutex<Vec<usize>>,
}

impl Build for Learner {
    const INFO: Info =
        Info::new("learner", Family::FlowControl, "Learns.").storage(Storage::Unbounded).pulled_only().keeps_state();

    fn build(_params: &Params) -> Result<Self, BuildError> {
        Ok(Learner::default())
    }
}

impl Component for Learner {
    fn push_task(&self, node: Node<'_>, task: Task) -> Push {
        self.pushed.fetch_add(1, Relaxed);
        self.tasks.lock().push_back(task);
        node.children_can_pull();
        Ok(())
    }

    fn pull_task(&self, node: Node<'_>, _to: Child) -> Option<Task> {
        let own = self.tasks.lock().pop_front();
        own.or_else(|| node.pull_from_parents())
    }

    fn notify_change_workers(&self, node: Node<'_>) {
        self.told.lock().push(node.each_worker_in_context().count());
    }

    fn drain(&self) -> Vec<Task> {
        self.tasks.lock().drain(..).collect()
    }

    fn describe(&self, report: &mut Report) {
        report.fact("tasks", self.tasks.lock().len());
        report.fact("pushed", self.pushed.load(Relaxed));
        report.fact("told", format!("{:?}", *self.told.lock()));
    }
}

/// Passes tasks on, and fails when a change leaves it a given number of workers.
struct Fragile {
    at: usize,
}

impl Build for Fragile {
    const INFO: Info = Info::new("fragile", Family::SpecialPurpose, "Cannot stand some numbers of workers.")
        .forwards_push()
        .params(const { &[Param::int("at", 0, "the number of workers")] });

    fn build(params: &Params) -> Result<Self, BuildError> {
        Ok(Fragile { at: params.int("at")? as usize })
    }
}

impl Component for Fragile {
    fn push_task(&self, node: Node<'_>, task: Task) -> Push {
        match node.children().next() {
            Some(child) => node.push_to(child, task),
            None => Err(Refused::new(task, Refusal::NoWorker)),
        }
    }

    fn notify_change_workers(&self, node: Node<'_>) {
        assert_ne!(node.each_worker_in_context().count(), self.at, "not this number");
    }
}

const TREE: &str = "fragile at=3 { learner { eager { each \"worker\" { worker } } } }";

fn start(workers: usize) -> Runtime {
    let offers = vec![Offer::of::<Learner>(), Offer::of::<Fragile>(), Offer::of::<Bad>()];
    stock::builder(stock::EAGER, workers, offers).build().expect("it starts")
}

/// What the learner of a context says of itself: tasks, pushes, and the numbers of workers that it was told of.
fn learner(runtime: &Runtime) -> [String; 3] {
    let of_learner = |node: &NodeState| node.component == "learner";
    let node = runtime.survey().into_iter().find(of_learner).expect("the context has one");
    let fact = |name: &str| node.facts.iter().find(|(known, _)| known == name).expect("it is said").1.clone();
    ["tasks", "pushed", "told"].map(fact)
}

fn said(tasks: usize, pushed: usize, told: &[usize]) -> [String; 3] {
    [tasks.to_string(), pushed.to_string(), format!("{told:?}")]
}

#[test]
fn a_component_that_keeps_its_state_lives_on_with_its_tasks() {
    let runtime = start(5);
    let context = runtime.context("living").policy_value(policy(TREE)).workers([0, 1]).build().expect("it fits");
    // So that tasks are in the queue.
    let hold = Hold::new(&runtime);
    let held: Vec<_> = (0..5).map(|_| hold.worker()).collect();
    let runs = context.with(|| submit_chains(&runtime, 30));
    assert_eq!(learner(&runtime), said(7, 7, &[2]), "one of each chain is ready");
    context.add_workers([2, 3]).expect("they fit");
    assert_eq!(learner(&runtime), said(7, 7, &[2, 4]), "the same one, and no task was moved");
    context.remove_workers([0, 1]).expect("others are left");
    assert_eq!(learner(&runtime), said(7, 7, &[2, 4, 2]));

    // A change that fails leaves everything as it was: the tasks go through the old tree once more.
    let failed = context.add_workers([4]).expect_err("three are too many");
    assert!(matches!(&failed, ContextError::Failed { .. }) && failed.to_string().contains("living"), "{failed:?}");
    assert_eq!(learner(&runtime), said(7, 14, &[2, 4, 2, 3, 2]));

    // Another policy, even one that reads the same, begins anew.
    context.swap_policy_value(policy(TREE)).expect("it fits");
    assert_eq!(learner(&runtime), said(7, 7, &[2]));
    drop(held);
    context.wait_all().expect("every task runs");
    runs.assert_once(TREE);
    assert_eq!(learner(&runtime)[0], "0");
}

#[test]
fn tasks_run_once_while_workers_join_and_leave() {
    let runtime = start(4);
    let context = runtime.context("living").policy_value(policy(TREE)).workers([0, 1]).build().expect("it fits");
    let runs = context.with(|| submit_chains(&runtime, 400));
    for round in 0..40 {
        match round % 4 {
            0 => context.add_workers([2, 3]).expect("they fit"),
            1 => context.remove_workers([0, 1]).expect("others are left"),
            2 => drop(context.add_workers([0]).expect_err("three are too many")),
            _ => context.swap_policy_value(policy(TREE)).and_then(|()| context.add_workers([0, 1])).expect("they fit"),
        }
        if round % 4 == 3 {
            context.remove_workers([2, 3]).expect("others are left");
        }
    }
    context.wait_all().expect("every task runs");
    runs.assert_once(TREE);
}

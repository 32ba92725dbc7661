//! What components learn: they hear of the execution of tasks, know what stands around them and which context they
//! serve, keep their state when workers join a context or leave it, and hand it on when the policy is swapped.

use sched_core::*;
use sched_host::context::ContextError;
use sched_host::graph::ContextId;
use sched_host::graph::generate::cholesky;
use sched_host::policy::{self, Each, Level, PolicyEdit};
use sched_host::runtime::{Runtime, Where};
use sched_host::sim::{Context as SimContext, Platform, Simulation};
use sched_host::tree::NodeState;
use sched_tests::bad::Bad;
use sched_tests::chains::submit_chains;
use sched_tests::hold::Hold;
use sched_tests::stock::{self, policy};
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

/// A queue that counts what happens to it, and keeps its state.
#[derive(Default)]
struct Learner {
    tasks: Mutex<VecDeque<Task>>,
    /// Number of tasks that were pushed to it.
    pushed: AtomicU64,
    /// Numbers of workers that it was told of.
    told: Mutex<Vec<usize>>,
    label: i64,
}

impl Build for Learner {
    const INFO: Info = Info::new("learner", Family::FlowControl, "Learns.")
        .storage(Storage::Unbounded)
        .pulled_only()
        .keeps_state()
        .params(const { &[Param::int("label", 0, "what it says of itself")] });

    fn build(params: &Params) -> Result<Self, BuildError> {
        Ok(Learner { label: params.int("label")?, ..Learner::default() })
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
        report.fact("label", self.label);
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

#[test]
fn children_and_parents_are_added_and_removed_while_tasks_run() {
    let runtime = start(3);
    let context = runtime.context("living").policy_value(policy(TREE)).workers([0, 1]).build().expect("it fits");
    let hold = Hold::new(&runtime);
    let held: Vec<_> = (0..3).map(|_| hold.worker()).collect();
    let runs = context.with(|| submit_chains(&runtime, 200));
    let shape = || -> Vec<String> {
        let of_context = |node: &NodeState| node.context == "living";
        runtime.survey().into_iter().filter(of_context).map(|node| node.component).collect()
    };
    let before = learner(&runtime);
    // A parent of each worker, and one more above them all.
    let edit = PolicyEdit::new().add_parent("worker", "best-implementation").add_parent("eager", "best-implementation");
    context.edit(&edit).expect("it fits");
    let with = ["fragile", "learner", "best-implementation", "eager"];
    assert_eq!(shape()[..4], with);
    assert_eq!(learner(&runtime)[..2], before[..2], "the queue lives on, with its tasks");

    // What is wrong is reported, and the tree stays.
    let nothing = PolicyEdit::new().remove_child("eagre");
    assert!(context.edit(&nothing).expect_err("no such component").to_string().contains("the edit of the policy"));
    let unknown = PolicyEdit::new().add_parent("worker", "fifi");
    assert!(matches!(context.edit(&unknown), Err(ContextError::Policy(_))), "there is no such component");
    let childless = PolicyEdit::new().remove_child("eager");
    assert!(matches!(context.edit(&childless), Err(ContextError::Policy(_))), "the workers would have no leaf");
    let both = PolicyEdit::new().remove_parent("learner").add_parent("fragile", "learner");
    assert!(matches!(context.edit(&both), Err(ContextError::Policy(_))), "whose state it would be is not known");
    let fails = PolicyEdit::new().add_parent("learner", policy::Component::new("fragile").set("at", Value::Int(2)));
    assert!(matches!(context.edit(&fails), Err(ContextError::Failed { .. })), "it fails while it takes the tasks");
    assert_eq!(shape()[..4], with);

    // A child more, and a parent less: the queue is another one, and has the tasks.
    let restricted = Each::new(Level::Worker)
        .child(policy::Component::from("fifo").child(policy::Component::new("combined-worker")));
    drop(context.edit(&PolicyEdit::new().add_child("eager", restricted)).expect_err("it is for teams"));
    context.edit(&PolicyEdit::new().remove_parent("best-implementation").remove_parent("fragile")).expect("it fits");
    assert_eq!(shape()[..2], ["learner", "eager"]);
    assert_eq!(learner(&runtime)[0], before[0]);
    drop(held);
    for round in 0..20 {
        let edit = match round % 2 {
            0 => PolicyEdit::new().add_parent("worker", "best-implementation"),
            _ => PolicyEdit::new().remove_parent("best-implementation"),
        };
        context.edit(&edit).expect("it fits");
    }
    context.wait_all().expect("every task runs");
    runs.assert_once(TREE);
}

#[test]
fn a_component_with_other_parameters_takes_a_place_itself() {
    // Unchecked, since the learners are two queues without anything between.
    let offers = vec![Offer::of::<Learner>(), Offer::of::<Fragile>()];
    let runtime = stock::builder(stock::EAGER, 1, offers).unchecked().build().expect("it starts");
    let context = runtime.context("living").policy_value(policy(TREE)).workers([0]).build().expect("it fits");
    let hold = Hold::new(&runtime);
    let held = hold.worker();
    let runs = context.with(|| submit_chains(&runtime, 30));
    // The new one stands where the other one stood, which has another place now.
    let above = policy::Component::new("learner").set("label", Value::Int(5));
    context.edit(&PolicyEdit::new().add_parent("learner", above)).expect("it fits");
    let labels: Vec<String> = runtime
        .survey()
        .into_iter()
        .filter_map(|node| node.facts.into_iter().find(|(name, _)| name == "label"))
        .map(|(_, label)| label)
        .collect();
    assert_eq!(labels, ["5", "0"], "from the root downward");
    drop(held);
    context.wait_all().expect("every task runs");
    runs.assert_once(TREE);
}

#[test]
fn a_living_component_does_not_keep_tasks_that_nobody_below_may_execute() {
    let runtime = start(4);
    let each = "each \"worker\" { learner { worker } }";
    let tree = format!("eager {{ {each} }}");
    let context = runtime.context("living").policy_value(policy(&tree)).workers([0, 1]).build().expect("it fits");
    let hold = Hold::new(&runtime);
    let held: Vec<_> = (0..4).map(|_| hold.worker()).collect();
    let ran = Arc::new(AtomicU64::new(0));
    let note = Arc::clone(&ran);
    let codelet = runtime.codelet::<(), ()>("note").cpu("note", move |_, ()| _ = note.fetch_add(1, Relaxed)).build();
    for _ in 0..10 {
        runtime.task(&codelet, ()).context(&context).only_on(Where::workers([1, 2])).submit().expect("they may");
    }
    context.add_workers([2]).expect("it fits");
    context.remove_workers([1]).expect("others are left");
    drop(held);
    context.wait_all().expect("every task runs");
    assert_eq!(ran.load(Relaxed), 10);
}

/// Passes tasks on, counts what it hears of their execution, and hands the counts on.
#[derive(Default)]
struct Ear {
    started: AtomicU64,
    ended: AtomicU64,
    failed: AtomicU64,
    nanos: AtomicU64,
    millijoules: AtomicU64,
    /// Its component's neighbours and context, when it was told of its workers.
    around: Mutex<String>,
}

impl Build for Ear {
    const INFO: Info = Info::new("ear", Family::SpecialPurpose, "Hears.").forwards_push().hears_tasks();

    fn build(_params: &Params) -> Result<Self, BuildError> {
        Ok(Ear::default())
    }
}

impl Component for Ear {
    fn push_task(&self, node: Node<'_>, task: Task) -> Push {
        node.push_to(Child(0), task)
    }

    fn task_started(&self, node: Node<'_>, task: &Execution) {
        assert_eq!(node.requester(), Some(task.worker));
        self.started.fetch_add(1, Relaxed);
    }

    fn task_ended(&self, _node: Node<'_>, _task: &Execution, end: &ExecutionEnd) {
        self.ended.fetch_add(1, Relaxed);
        self.failed.fetch_add(u64::from(end.failed), Relaxed);
        self.nanos.fetch_add(end.length.as_nanos() as u64, Relaxed);
        self.millijoules.fetch_add((end.energy.unwrap_or(0.0) * 1000.0).round() as u64, Relaxed);
    }

    fn notify_change_workers(&self, node: Node<'_>) {
        let above = node.parents().map(|parent| (node.parent_component(parent), node.parent_family(parent)));
        let below = node.children().map(|child| (node.child_component(child), node.child_family(child)));
        let context = (node.context(), String::from_utf8_lossy(node.context_data()).into_owned());
        *self.around.lock() = format!("{:?} {:?} {context:?}", above.collect::<Vec<_>>(), below.collect::<Vec<_>>());
    }

    fn export(&self, _node: Node<'_>) -> Option<Vec<u8>> {
        Some(self.ended.load(Relaxed).to_le_bytes().to_vec())
    }

    fn import(&self, _node: Node<'_>, state: &[u8]) {
        let before = state.try_into().map(u64::from_le_bytes).unwrap_or(0);
        self.ended.fetch_add(before, Relaxed);
    }

    fn describe_at(&self, node: Node<'_>, report: &mut Report) {
        report.fact("at", node.path());
        report.fact("started", self.started.load(Relaxed));
        report.fact("ended", self.ended.load(Relaxed));
        report.fact("failed", self.failed.load(Relaxed));
        report.fact("ns", self.nanos.load(Relaxed));
        report.fact("mJ", self.millijoules.load(Relaxed));
        report.fact("around", &*self.around.lock());
    }
}

/// What the ears say, in the order of their nodes.
fn ears(nodes: &[NodeState], fact: &str) -> Vec<String> {
    let of_ear = nodes.iter().filter(|node| node.component == "ear");
    let said = |node: &NodeState| node.facts.iter().find(|(known, _)| known == fact).expect("it is said").1.clone();
    of_ear.map(said).collect()
}

/// One ear above everybody, and one above each worker.
const EARS: &str = r#"ear { fifo { eager { each "worker" { ear { worker } } } } }"#;

#[test]
fn components_hear_of_the_tasks_that_workers_below_execute() {
    let builder = stock::builder(EARS, 2, vec![Offer::of::<Ear>()]).user_data("for ears");
    let runtime = builder.build().expect("it starts");
    let nap = |context: &sched_host::runtime::Context<'_, bool>, ()| {
        assert!(context.params, "this one fails");
        std::hint::black_box((0..100_000u64).sum::<u64>());
    };
    let codelet = runtime.codelet::<(), bool>("nap").cpu("nap", nap).build();
    for number in 0..60u32 {
        let task = runtime.task_with(&codelet, number != 7, ()).only_on(Where::worker(number % 3 / 2));
        task.submit().expect("the task is sound");
    }
    runtime.wait_all().expect_err("one task fails");
    let nodes = runtime.survey();
    assert_eq!(ears(&nodes, "started"), ["60", "40", "20"]);
    assert_eq!(ears(&nodes, "ended"), ["60", "40", "20"]);
    assert_eq!(ears(&nodes, "failed"), ["1", "1", "0"]);
    assert!(ears(&nodes, "ns").iter().all(|nanos| nanos.parse::<u64>().expect("a number") > 0));
    let at: Vec<String> = nodes.iter().filter(|node| node.component == "ear").map(|node| node.node.clone()).collect();
    assert_eq!(ears(&nodes, "at"), at);
    let around = ears(&nodes, "around");
    let context = r#"(Some("default"), "for ears")"#;
    assert_eq!(around[0], format!(r#"[] [(Some("fifo"), Some(FlowControl))] {context}"#));
    let expected = r#"[(Some("eager"), Some(ResourceMapping))] [(Some("worker"), Some(Worker))]"#;
    assert_eq!(around[1], format!("{expected} {context}"));

    // Another policy: each ear gets what the one of the same place has heard, and the one above has no heir.
    let after = r#"fifo { eager { each "worker" { ear { worker } } } }"#;
    let other = r#"prio { ear { eager { each "worker" { ear { worker } } } } }"#;
    let context = runtime.default_context();
    context.swap_policy_value(policy(after)).expect("it fits");
    assert_eq!(ears(&runtime.survey(), "ended"), ["40", "20"]);
    context.swap_policy_value(policy(other)).expect("it fits");
    assert_eq!(ears(&runtime.survey(), "ended"), ["0", "40", "20"]);
    assert_eq!(runtime.faults(), []);
}

#[test]
fn components_of_a_simulation_hear_of_executions_with_their_energy() {
    let (mut graph, ms) = (cholesky(5, 960), Duration::from_millis);
    graph.tasks.iter_mut().for_each(|task| task.context = ContextId(1));
    let machine = r#"platform "test" {
        memory "ram"
        workers "cpu" arch="cpu" memory="ram" count=2 watts="5 W" idle-watts="1 W"
        kernel "*" { on "cpu" time="10 ms" }
    }"#;
    let machine = Platform::parse("test.kdl", machine).expect("the text is sound");
    let log = Arc::new(Mutex::new(Vec::new()));
    static HEARD: Mutex<Vec<(Execution, Option<ExecutionEnd>, String)>> = Mutex::new(Vec::new());
    struct Listener;
    impl Build for Listener {
        const INFO: Info = Info::new("listener", Family::SpecialPurpose, "Listens.").forwards_push().hears_tasks();
        fn build(_params: &Params) -> Result<Self, BuildError> {
            Ok(Listener)
        }
    }
    impl Component for Listener {
        fn push_task(&self, node: Node<'_>, task: Task) -> Push {
            node.push_to(Child(0), task)
        }
        fn task_started(&self, node: Node<'_>, task: &Execution) {
            HEARD.lock().push((*task, None, node.context().unwrap_or_default().to_owned()));
        }
        fn task_ended(&self, node: Node<'_>, task: &Execution, end: &ExecutionEnd) {
            HEARD.lock().push((*task, Some(*end), node.context().unwrap_or_default().to_owned()));
        }
    }
    let context =
        SimContext::new("mine").policy_value(policy(r#"listener { fifo { eager { each "worker" { worker } } } }"#));
    let simulation = Simulation::new(graph, machine).policy_value(policy(stock::EAGER)).context(context);
    let simulation = simulation.registry(stock::registry(vec![Offer::of::<Listener>()]));
    let outcome = simulation.run().expect("it runs to the end");
    log.lock().extend(HEARD.lock().drain(..));
    let log = log.lock();
    assert_eq!(log.len(), 2 * 35);
    assert!(log.iter().all(|(.., context)| context == "mine"));
    let ends: Vec<ExecutionEnd> = log.iter().filter_map(|(_, end, _)| *end).collect();
    assert_eq!(ends.len(), 35);
    assert!(ends.iter().all(|end| end.length == ms(10) && end.energy == Some(0.05) && !end.failed), "{ends:?}");
    assert_eq!(outcome.faults, []);
}

//! Facts that a component can query about its node.

use sched_core::rig::{FakeChild, FakeParent, Rig};
use sched_core::*;
use sched_tests::conformance::CASES;
use sched_tests::stock;
use std::sync::{Arc, Mutex as StdMutex};
use std::time::Duration;

/// Records what it sees when a task is pushed, and hands the task back.
struct Look<T> {
    look: fn(Node<'_>, &Task) -> T,
    seen: Arc<StdMutex<Option<T>>>,
}

impl<T: Send + 'static> Component for Look<T> {
    fn push_task(&self, node: Node<'_>, task: Task) -> Push {
        *self.seen.lock().expect("nobody panics") = Some((self.look)(node, &task));
        Err(Refused::new(task, Refusal::Full))
    }
}

/// What a component sees in the surroundings that `arrange` makes.
fn seen<T: Send + 'static>(arrange: impl FnOnce(Rig) -> Rig, look: fn(Node<'_>, &Task) -> T) -> T {
    let seen = Arc::new(StdMutex::new(None));
    let rig = arrange(Rig::new(Look { look, seen: Arc::clone(&seen) }));
    let task = rig.task().archs([Arch::CUDA]).make();
    assert_eq!(rig.push(task), Err(Refusal::Full));
    let seen = seen.lock().expect("nobody panics").take();
    seen.expect("the task was pushed")
}

/// Two CPU workers and a CUDA worker with a memory of its own.
fn mixed(rig: Rig) -> Rig {
    rig.workers(2).worker(Arch::CUDA, MemoryNode(1))
}

fn numbers(workers: &WorkerSet) -> Vec<u32> {
    workers.iter().map(|worker| worker.0).collect()
}

#[test]
fn neighbours_are_counted_and_children_distinguished() {
    let around = |rig: Rig| {
        let rig = mixed(rig).child(FakeChild::worker(2)).child(FakeChild::over([0, 1]));
        rig.parent(FakeParent::new()).parent(FakeParent::new())
    };
    assert_eq!(seen(around, |node, _| (node.children().len(), node.parents().len())), (2, 2));
    assert_eq!(seen(around, |node, _| numbers(&node.child_workers(Child(1)))), [0, 1]);
    let workers = seen(around, |node, _| node.children().map(|child| node.child_worker(child)).collect::<Vec<_>>());
    assert_eq!(workers, [Some(WorkerId(2)), None], "the first child is a worker");
    assert_eq!(seen(|rig| rig.leaf(WorkerId(0)), |node, _| node.worker()), Some(WorkerId(0)));
}

#[test]
fn workers_of_the_context_are_some_of_all() {
    let sets = |node: Node<'_>, _: &Task| (numbers(&node.workers()), numbers(&node.workers_in_context()));
    assert_eq!(seen(mixed, sets), (vec![0, 1, 2], vec![0, 1, 2]));
    assert_eq!(seen(|rig| mixed(rig).context([1]), sets), (vec![0, 1, 2], vec![1]));
}

#[test]
fn properties_follow_from_the_workers() {
    let properties = |node: Node<'_>, _: &Task| (node.is_homogeneous(), node.single_memory_node());
    assert_eq!(seen(|rig| rig.workers(3), properties), (true, Some(MemoryNode(0))));
    assert_eq!(seen(mixed, properties), (false, None));
    assert_eq!(seen(|rig| mixed(rig).context([2]), properties), (true, Some(MemoryNode(1))));
}

#[test]
fn who_can_execute_a_task_is_reported_for_the_context() {
    let can = |node: Node<'_>, task: &Task| node.can_execute(task);
    assert!(seen(mixed, can) && !seen(|rig| mixed(rig).context([0, 1]), can));
}

#[test]
fn lengths_are_reported_for_a_worker_and_transfers_for_a_memory_node() {
    let around = |rig: Rig| {
        let rig = mixed(rig);
        rig.set_length(0, WorkerId(2), 0, Estimate::Known(Duration::from_micros(7)));
        rig.set_length(0, WorkerId(1), 0, Estimate::Uncalibrated);
        rig.set_transfer(0, MemoryNode(1), Duration::from_micros(3));
        rig
    };
    let lengths = seen(around, |node, task| [0, 1, 2].map(|worker| node.expected_length(WorkerId(worker), task)));
    assert_eq!(lengths, [Estimate::NoModel, Estimate::Uncalibrated, Estimate::Known(Duration::from_micros(7))]);
    assert_eq!(seen(around, |node, task| node.expected_transfer(MemoryNode(1), task)), Duration::from_micros(3));
}

#[test]
fn the_best_implementation_counts_unless_one_must_be_measured() {
    let with = |lengths: [Estimate; 2]| {
        let around = move |rig: Rig| {
            let rig = mixed(rig);
            rig.set_implementations(0, 2);
            for (number, length) in (0..).zip(lengths) {
                rig.set_length(0, WorkerId(2), number, length);
            }
            rig
        };
        seen(around, |node, task| node.expected_length(WorkerId(2), task))
    };
    let known = |micros| Estimate::Known(Duration::from_micros(micros));
    assert_eq!(with([known(7), known(5)]), known(5));
    assert_eq!(with([Estimate::NoModel, known(5)]), known(5));
    assert_eq!(with([known(7), Estimate::Uncalibrated]), Estimate::Uncalibrated);
    assert_eq!(with([Estimate::NoModel; 2]), Estimate::NoModel);
}

#[test]
fn ends_below_are_taken_as_the_earliest_or_on_average() {
    let around = |rig: Rig| {
        let rig = rig.workers(2).child(FakeChild::over([0]).end(Time::from_nanos(10)));
        rig.child(FakeChild::over([1]).end(Time::from_nanos(30)))
    };
    let ends = seen(around, |node, _| (node.earliest_end_below(), node.average_end_below()));
    assert_eq!(ends, (Time::from_nanos(10), Time::from_nanos(20)));
}

/// Asks for the ends of workers, some of which do not exist.
struct Asking;

impl Build for Asking {
    const INFO: Info = Info::new("asking", Family::SpecialPurpose, "Asks.").forwards_push();

    fn build(_params: &Params) -> Result<Self, BuildError> {
        Ok(Asking)
    }
}

impl Component for Asking {
    fn push_task(&self, node: Node<'_>, task: Task) -> Push {
        let ends = [0, 1, 99].map(WorkerId).map(|worker| (node.worker_busy_until(worker), node.worker_free_at(worker)));
        assert!(ends[..2].iter().all(|(busy, free)| busy.is_some() && free.is_some()), "{ends:?}");
        assert_eq!(ends[2], (None, None), "there is no such worker");
        match node.children().next() {
            Some(child) => node.push_to(child, task),
            None => Err(Refused::new(task, Refusal::NoWorker)),
        }
    }
}

#[test]
fn a_worker_that_does_not_exist_has_no_end() {
    let rig = Rig::new(Asking).workers(2);
    rig.push(rig.task().make()).expect("the child takes it");
    let tree = r#"asking { fifo { eager { each "worker" { worker } } } }"#;
    let runtime = stock::builder(tree, 2, vec![Offer::of::<Asking>()]).build().expect("the policy is valid");
    let nothing = runtime.codelet::<(), ()>("nothing").cpu("nothing", |_, ()| {}).build();
    runtime.task(&nothing, ()).submit().expect("the task is sound");
    runtime.wait_all().expect("it runs");
    assert_eq!(runtime.faults(), []);
    let ms = Duration::from_millis(1);
    let graph = sched_host::graph::generate::independent(1, ms);
    let outcome = sched_host::sim::Simulation::new(graph, sched_host::sim::Platform::flat(2, ms))
        .policy_value(stock::policy(tree))
        .registry(stock::registry(vec![Offer::of::<Asking>()]))
        .run()
        .expect("it runs");
    assert_eq!(outcome.faults, []);
}

#[test]
fn distances_are_reported_by_hosts_that_know_them() {
    let distance = |node: Node<'_>, _: &Task| node.worker_distance(WorkerId(2), WorkerId(0));
    assert_eq!(seen(mixed, distance), None);
    let around = |rig: Rig| {
        let rig = mixed(rig);
        rig.set_distance(WorkerId(0), WorkerId(2), 4);
        rig
    };
    assert_eq!(seen(around, distance), Some(4));
    assert_eq!(seen(around, |node, _| node.worker_distance(WorkerId(2), WorkerId(2))), Some(0));
    assert_eq!(seen(around, |node, _| node.worker_distance(WorkerId(0), WorkerId(1))), None);
}

#[test]
fn a_node_is_known_by_the_name_of_its_component() {
    for case in CASES {
        let runtime = stock::runtime(case.tree, 2);
        let nodes = runtime.survey();
        assert!(nodes.iter().any(|node| node.component == case.component), "{case:?}: {nodes:?}");
    }
}

#[test]
fn stock_components_are_of_four_families() {
    let registry = stock::registry(Vec::new());
    let of = |family: Family| {
        let infos = registry.components().map(|component| component.info());
        infos.filter(|info| info.family == family).map(|info| info.name.as_str()).collect::<Vec<_>>().join(" ")
    };
    assert_eq!(of(Family::FlowControl), "fifo prio");
    let mapping = of(Family::ResourceMapping);
    for name in ["mct", "heft", "eager", "eager-calibration", "random", "work-stealing"] {
        assert!(mapping.split(' ').any(|found| found == name), "{name}: {mapping}");
    }
    let special = of(Family::SpecialPurpose);
    assert!(special.contains("perfmodel-select") && special.contains("best-implementation"), "{special}");
    assert!(of(Family::Worker).split(' ').any(|name| name == "worker"));
}

/// Gives tasks with a number to the child in its slot, and all others to its first child without one.
struct Router;

impl Build for Router {
    const INFO: Info = Info::new("router", Family::ResourceMapping, "Has a child for tasks with a number.")
        .slots_beside_children(
            const { &[Slot { name: "numbered", doc: "tasks with a number" }, Slot { name: "spare", doc: "nothing" }] },
        )
        .optional_slots(&["spare"])
        .forwards_push();

    fn build(_params: &Params) -> Result<Self, BuildError> {
        Ok(Router)
    }
}

impl Component for Router {
    fn push_task(&self, node: Node<'_>, task: Task) -> Push {
        let numbered = node.slot("numbered").filter(|_| task.sched_data() != 0);
        let to = numbered.unwrap_or(Child(0));
        match node.child_can_execute(to, &task) {
            true => node.push_to(to, task),
            false => Err(Refused::new(task, Refusal::NoWorker)),
        }
    }
}

#[test]
fn a_component_has_children_and_slots_in_runs_and_simulations() {
    let tree = r#"fifo { router {
            fifo { eager { each "worker" only="0" { use "leaf" } } }
            numbered { fifo { eager { each "worker" except="0" { use "leaf" } } } }
        } }
        shared "leaf" each="worker" { worker }"#;
    let runtime = stock::builder(tree, 3, vec![Offer::of::<Router>()]).build().expect("the policy is valid");
    let ran = Arc::new(StdMutex::new(Vec::new()));
    let note = Arc::clone(&ran);
    let codelet = runtime.codelet::<(), u64>("note").cpu("note", move |call, ()| {
        note.lock().expect("nobody panics").push((*call.params, call.worker.0));
    });
    let codelet = codelet.build();
    for number in (0..40).map(|task| task % 2) {
        runtime.task_with(&codelet, number, ()).sched_data(number).submit().expect("the task is sound");
    }
    runtime.wait_all().expect("every task runs");
    let ran = ran.lock().expect("nobody panics");
    assert!(ran.len() == 40 && ran.iter().all(|(number, worker)| (*number == 0) == (*worker == 0)), "{ran:?}");

    let mut graph = sched_host::graph::generate::independent(40, Duration::from_millis(1));
    graph.tasks.iter_mut().zip(0..).for_each(|(task, number)| task.sched_data = number % 2);
    let outcome = sched_host::sim::Simulation::new(graph, sched_host::sim::Platform::flat(3, Duration::from_millis(1)))
        .policy_value(stock::policy(tree))
        .registry(stock::registry(vec![Offer::of::<Router>()]))
        .run()
        .expect("every task runs");
    assert_eq!(outcome.workers.iter().map(|worker| worker.tasks).collect::<Vec<_>>(), [20, 10, 10]);
    rig::conforms::<Router>();
}

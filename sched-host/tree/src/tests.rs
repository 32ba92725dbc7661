//! Trees with components that fail or break their contract: what the host makes of that, call by call.

use super::*;
use sched_core::abi::ComponentObject;
use sched_core::{
    Child, Component, Mutex as Lock, Node, Params, Push, Refusal, Refused, SharedSet, Task, TaskId, adapt,
};
use std::collections::VecDeque;
use std::sync::mpsc;
use std::thread;

/// A back end whose workers are awake, and where nothing is executed.
pub(crate) struct Awake {
    pub(crate) sleeping: Arc<SharedSet>,
    pub(crate) combined: Vec<Box<[WorkerId]>>,
    pub(crate) observer: Option<Arc<dyn TreeObserver>>,
}

impl Awake {
    pub(crate) fn new(workers: usize) -> Awake {
        Awake { sleeping: Arc::new(SharedSet::new(workers)), combined: Vec::new(), observer: None }
    }
}

impl Services for Awake {
    fn now(&self) -> Time {
        Time::ZERO
    }

    fn sleeping(&self) -> Arc<SharedSet> {
        Arc::clone(&self.sleeping)
    }

    fn wake(&self, _worker: WorkerId) -> bool {
        false
    }

    fn combined(&self) -> &[Box<[WorkerId]>] {
        &self.combined
    }

    fn tree_observer(&self) -> Option<Arc<dyn TreeObserver>> {
        self.observer.clone()
    }
}

/// Keeps tasks until they are pulled.
#[derive(Default)]
pub(crate) struct Keeper {
    tasks: Lock<VecDeque<Task>>,
}

impl Component for Keeper {
    fn push_task(&self, _node: Node<'_>, task: Task) -> Push {
        self.tasks.lock().push_back(task);
        Ok(())
    }

    fn pull_task(&self, node: Node<'_>, _to: Child) -> Option<Task> {
        let own = self.tasks.lock().pop_front();
        own.or_else(|| node.pull_from_parents())
    }

    fn drain(&self) -> Vec<Task> {
        self.tasks.lock().drain(..).collect()
    }
}

/// Pushes each task to the child that has its priority as number, whoever is below.
struct Deal;

impl Component for Deal {
    fn push_task(&self, node: Node<'_>, task: Task) -> Push {
        let child = Child(task.priority().unsigned_abs());
        node.push_to(child, task)
    }
}

/// Panics at the first push.
struct Failing;

impl Component for Failing {
    fn push_task(&self, _node: Node<'_>, _task: Task) -> Push {
        panic!("on purpose");
    }
}

/// Keeps one task, and panics when it gets another.
#[derive(Default)]
struct Narrow(Keeper);

impl Component for Narrow {
    fn push_task(&self, node: Node<'_>, task: Task) -> Push {
        assert!(self.0.tasks.lock().is_empty(), "on purpose");
        self.0.push_task(node, task)
    }
}

/// Does something when it is drained.
struct Telling<F>(F);

impl<F: Fn() + Send + Sync + 'static> Component for Telling<F> {
    fn push_task(&self, _node: Node<'_>, task: Task) -> Push {
        Err(Refused::new(task, Refusal::Full))
    }

    fn drain(&self) -> Vec<Task> {
        (self.0)();
        Vec::new()
    }
}

/// Keeps tasks, also when it is to give them up, over which it panics.
#[derive(Default)]
struct Clinging(Keeper);

impl Component for Clinging {
    fn push_task(&self, node: Node<'_>, task: Task) -> Push {
        self.0.push_task(node, task)
    }

    fn pull_task(&self, node: Node<'_>, to: Child) -> Option<Task> {
        self.0.pull_task(node, to)
    }

    fn drain(&self) -> Vec<Task> {
        panic!("on purpose");
    }
}

/// Panics as soon as it is in a tree.
struct Unfit;

impl Component for Unfit {
    fn push_task(&self, _node: Node<'_>, task: Task) -> Push {
        Err(Refused::new(task, Refusal::Full))
    }

    fn notify_change_workers(&self, _node: Node<'_>) {
        panic!("on purpose");
    }
}

/// Keeps tasks, and panics when it is asked how many.
#[derive(Default)]
struct Secretive(Keeper);

impl Component for Secretive {
    fn push_task(&self, node: Node<'_>, task: Task) -> Push {
        self.0.push_task(node, task)
    }

    fn estimated_load(&self, _node: Node<'_>) -> f64 {
        panic!("on purpose");
    }
}

/// Passes tasks to its children in turn, and asks for their loads once.
#[derive(Default)]
struct Curious {
    pushed: AtomicUsize,
}

impl Component for Curious {
    fn push_task(&self, node: Node<'_>, task: Task) -> Push {
        let number = self.pushed.fetch_add(1, Relaxed);
        if number == 4 {
            let _ = node.load_below();
        }
        node.push_to(Child(number as u32 % 2), task)
    }
}

/// Keeps the thread that pushes a task on to one of several children, until it may go on.
struct HoldingUp {
    task: TaskId,
    begun: Lock<mpsc::Sender<()>>,
    may_go_on: Lock<mpsc::Receiver<()>>,
}

impl TreeObserver for HoldingUp {
    fn nodes(&self, _paths: &[&str]) -> ObservedNode {
        ObservedNode(0)
    }

    fn ready(&self, _nanos: u64, _by: Option<WorkerId>, _task: TaskId) {}

    fn held(&self, _nanos: u64, _by: Option<WorkerId>, _task: TaskId, _node: ObservedNode) {}

    fn refused(&self, _nanos: u64, _by: Option<WorkerId>, _task: TaskId, _node: ObservedNode, _why: Refusal) {}

    fn noted(&self, _nanos: u64, _by: Option<WorkerId>, _node: ObservedNode, _kind: NoteKind, _text: &str) {}

    fn wants_choices(&self, task: TaskId) -> bool {
        task == self.task
    }

    fn chose(&self, _nanos: u64, _by: Option<WorkerId>, _task: TaskId, _choice: Choice) {
        self.begun.lock().send(()).expect("the test waits");
        self.may_go_on.lock().recv().expect("the test says so");
    }
}

pub(crate) fn part(path: &str, component: ComponentObject, children: &[u32], workers: &[u32]) -> Part {
    let worker = workers.first().copied().map(WorkerId).filter(|_| children.is_empty());
    let workers: WorkerSet = workers.iter().copied().map(WorkerId).collect();
    Part {
        component: Unplaced::new(component, None),
        name: "component".to_owned(),
        plugin: "test".to_owned(),
        params: Params::default(),
        path: path.to_owned(),
        object: String::new(),
        children: children.iter().map(|child| (NodeId(*child), String::new())).collect(),
        worker,
        workers_in_context: workers.clone(),
        workers,
        sharing: None,
        claims: Claims::default(),
        attended: false,
    }
}

/// Workers of these architectures.
pub(crate) fn facts(archs: &[Arch]) -> Vec<WorkerFacts> {
    archs.iter().map(|arch| WorkerFacts { arch: *arch, ..WorkerFacts::CPU }).collect()
}

fn assemble(parts: Vec<Part>, facts: &[WorkerFacts], ledger: &Arc<Ledger>) -> Tree {
    assemble_observed(parts, facts, ledger, None)
}

fn assemble_observed(
    parts: Vec<Part>,
    facts: &[WorkerFacts],
    ledger: &Arc<Ledger>,
    observer: Option<Arc<dyn TreeObserver>>,
) -> Tree {
    let services = Arc::new(Awake { observer, ..Awake::new(facts.len()) });
    Tree::assemble(parts, facts, services, Arc::clone(ledger), 0)
}

/// Tasks for cores, in order of submission.
pub(crate) fn tasks(ledger: &Ledger, count: usize) -> Vec<&'static Slot> {
    let slots = ledger.grow().iter().take(count);
    let task = |(number, slot): (u64, &'static Slot)| {
        slot.head().reset();
        slot.head().sequence.store(number, Relaxed);
        slot.head().priority.store(0, Relaxed);
        slot.head().archs.store(1 << Arch::CPU.number(), Relaxed);
        slot.set_phase(Phase::Waiting);
        slot
    };
    (0..).zip(slots).map(task).collect()
}

/// What a worker gets, until it gets nothing.
fn pull_all(tree: &Tree, worker: u32) -> Vec<u32> {
    std::iter::from_fn(|| tree.pull(WorkerId(worker))).map(|slot| slot.id().0).collect()
}

#[test]
fn a_worker_gets_its_task_behind_those_that_it_cannot_execute() {
    let ledger = Arc::new(Ledger::new());
    let parts = vec![
        part("deal", adapt(Deal), &[1, 2], &[0, 1]),
        part("cpu", adapt(Keeper::default()), &[], &[0]),
        part("cuda", adapt(Keeper::default()), &[], &[1]),
    ];
    let tree = assemble(parts, &facts(&[Arch::CPU, Arch::CUDA]), &ledger);
    let tasks = tasks(&ledger, 100);
    for slot in &tasks[..99] {
        slot.head().archs.store(1 << Arch::CUDA.number(), Relaxed);
    }
    tasks.iter().for_each(|slot| tree.push(slot, None, None));
    // A worker looks a few times, and sleeps: nobody wakes it for a task that was there before.
    assert_eq!(tree.pull(WorkerId(0)).map(|slot| slot.id()), Some(SlotId(99)));
    assert_eq!(pull_all(&tree, 1), (0..99).collect::<Vec<_>>());
    assert!(matches!(&tree.faults()[..], [Fault { kind: FaultKind::WrongWorker { tasks: 99 }, .. }]));
}

/// The parts of a tree over two of four workers, with a component that contexts share.
fn over_common(component: ComponentObject, workers: [u32; 2]) -> Vec<Part> {
    let mut common = part("common", component, &[2, 3], &workers);
    common.workers = WorkerSet::first(4);
    let name = || "common".to_owned();
    common.sharing = Some(Sharing { part: name(), text: name(), name: name(), definition: name() });
    vec![
        part("deal", adapt(Deal), &[1], &workers),
        common,
        part("one", adapt(Keeper::default()), &[], &workers[..1]),
        part("other", adapt(Keeper::default()), &[], &workers[1..]),
    ]
}

#[test]
fn a_tree_that_comes_to_a_shared_component_which_fails_meanwhile_is_refused_for_that() {
    let ledger = Arc::new(Ledger::new());
    let four = facts(&[Arch::CPU; 4]);
    let a = Arc::new(assemble(over_common(adapt(Narrow::default()), [0, 1]), &four, &ledger));
    let tasks = tasks(&ledger, 2);
    a.push(tasks[0], None, None);
    let fails = {
        let (a, second) = (Arc::clone(&a), tasks[1]);
        move || a.push(second, None, None)
    };
    // Its new tree has been built, and its workers know nothing of it yet.
    let b = assemble(vec![part("telling", adapt(Telling(fails)), &[], &[3])], &four, &ledger);
    let refused = b.swap(over_common(adapt(Narrow::default()), [2, 3]), &|| ());
    assert_eq!(refused, Err(SwapError::Failing { part: "common".to_owned() }));
    let mut pulled = pull_all(&a, 0);
    pulled.sort_unstable();
    assert_eq!(pulled, [0, 1]);
}

#[test]
fn a_task_on_its_way_past_a_shared_component_that_failed_is_not_taken_back() {
    let ledger = Arc::new(Ledger::new());
    let tree = |workers: [u32; 2], observer| {
        let parts = over_common(adapt(Failing), workers);
        assemble_observed(parts, &facts(&[Arch::CPU; 4]), &ledger, observer)
    };
    let (begun, begins) = mpsc::channel();
    let (go_on, may_go_on) = mpsc::channel();
    let observer = HoldingUp { task: TaskId::new(1), begun: Lock::new(begun), may_go_on: Lock::new(may_go_on) };
    let (a, b) = (tree([0, 1], None), tree([2, 3], Some(Arc::new(observer) as Arc<dyn TreeObserver>)));
    let tasks = tasks(&ledger, 2);
    // The first one to see the failure is the tree that it comes in.
    b.push(tasks[0], None, None);
    thread::scope(|scope| {
        scope.spawn(|| b.push(tasks[1], None, None));
        begins.recv().expect("it passes the component by");
        // The last one: it takes back what the component holds, in the other tree too.
        assert!(a.pull(WorkerId(0)).is_none());
        go_on.send(()).expect("the push goes on");
    });
    let mut pulled: Vec<u32> =
        [(&a, 0), (&a, 1), (&b, 2), (&b, 3)].map(|(tree, worker)| pull_all(tree, worker)).concat();
    pulled.sort_unstable();
    assert_eq!(pulled, [0, 1], "each runs once");
}

/// A tree with such a component at the root, which lives on when workers join or leave, and two tasks in it.
fn over_two_workers(root: ComponentObject, ledger: &Arc<Ledger>) -> Tree {
    let mut root = part("root", root, &[1, 2], &[0, 1]);
    root.claims.keeps_state = true;
    let leaf = |path, worker: u32| part(path, adapt(Keeper::default()), &[], &[worker]);
    let tree = assemble(vec![root, leaf("one", 0), leaf("other", 1)], &facts(&[Arch::CPU; 2]), ledger);
    tasks(ledger, 2).into_iter().for_each(|slot| tree.push(slot, None, None));
    tree
}

/// The parts of a tree over one worker, which fails when it takes the place of another.
fn unfit_parts(root: ComponentObject) -> Vec<Part> {
    let mut root = part("root", root, &[1], &[0]);
    root.claims.keeps_state = true;
    vec![root, part("one", adapt(Unfit), &[], &[0])]
}

#[test]
fn a_component_that_fails_in_a_tree_that_is_given_up_has_failed_in_the_old_one() {
    let ledger = Arc::new(Ledger::new());
    let tree = over_two_workers(adapt(Clinging::default()), &ledger);
    // The new tree fails, and the component does when it is to give up its tasks for the way back.
    let error = tree.reshape(unfit_parts(adapt(Clinging::default())), &|| ());
    assert!(matches!(error, Err(SwapError::Failed(_))), "{error:?}");
    // It has stale handles, so that it would give nothing where there is something.
    assert_eq!(pull_all(&tree, 0), [0, 1]);
    let failed: Vec<_> = tree.survey().into_iter().filter(|node| node.quarantined).map(|node| node.node).collect();
    assert_eq!(failed, ["root"]);
    let faults = tree.faults();
    assert!(matches!(&faults[..], [Fault { kind: FaultKind::Panicked { .. }, .. }]), "{faults:?}");
}

#[test]
fn a_component_that_does_not_come_back_from_its_drain_is_not_called_again_where_the_new_tree_fails() {
    let ledger = Arc::new(Ledger::new());
    let mut root = part("root", adapt(Keeper::default()), &[1, 2], &[0, 1]);
    root.attended = true;
    let leaf = |path, worker: u32| part(path, adapt(Keeper::default()), &[], &[worker]);
    let tree = assemble(vec![root, leaf("one", 0), leaf("other", 1)], &facts(&[Arch::CPU; 2]), &ledger);
    tasks(&ledger, 2).into_iter().for_each(|slot| tree.push(slot, None, None));
    // As a drain does that is late: nobody has to wait for it here.
    tree.live.inside(lane_of(None), |live| {
        let post = live.nodes[0].post.as_ref().expect("it is attended");
        post.give_up(attendance::Method::Drain);
    });
    let error = tree.swap(unfit_parts(adapt(Keeper::default())), &|| ());
    assert!(matches!(error, Err(SwapError::Failed(_))), "{error:?}");
    let failed: Vec<_> = tree.survey().into_iter().filter(|node| node.quarantined).map(|node| node.node).collect();
    assert_eq!(failed, ["root"], "its thread may have a lock that the next call would wait for");
    assert_eq!(pull_all(&tree, 0), [0, 1]);
}

#[test]
fn what_is_taken_back_from_several_components_runs_in_the_order_of_submission() {
    let ledger = Arc::new(Ledger::new());
    let leaf = |path, worker: u32| part(path, adapt(Secretive::default()), &[], &[worker]);
    let parts = vec![part("curious", adapt(Curious::default()), &[1, 2], &[0, 1]), leaf("one", 0), leaf("other", 1)];
    let tree = assemble(parts, &facts(&[Arch::CPU; 2]), &ledger);
    for slot in &tasks(&ledger, 4) {
        tree.push(slot, None, None);
    }
    let last = &ledger.slot(SlotId(4));
    last.head().archs.store(1 << Arch::CPU.number(), Relaxed);
    // Both fail in this call, before the host can take anything back.
    tree.push(last, None, None);
    assert_eq!(pull_all(&tree, 0), [4, 0, 1, 2, 3], "the last one found nobody to hold it");
    assert!(tree.faults().iter().all(|fault| matches!(fault.kind, FaultKind::Panicked { rehomed: 2, .. })));
}

/// Says that it has no room, and takes the task.
struct Boastful(Keeper);

impl Component for Boastful {
    fn push_task(&self, node: Node<'_>, task: Task) -> Push {
        node.note_room(false);
        self.0.push_task(node, task)
    }

    fn pull_task(&self, node: Node<'_>, to: Child) -> Option<Task> {
        self.0.pull_task(node, to)
    }
}

#[test]
fn who_is_not_trusted_any_more_is_not_taken_for_full_either() {
    let ledger = Arc::new(Ledger::new());
    let mut deal = part("deal", adapt(Deal), &[1], &[0]);
    deal.claims.forwards_push = true;
    let parts = vec![deal, part("boastful", adapt(Boastful(Keeper::default())), &[], &[0])];
    let tree = assemble(parts, &facts(&[Arch::CPU]), &ledger);
    let slots = tasks(&ledger, 3);
    let is_full = || tree.live.inside(lane_of(None), |live| [0, 1].map(|node: usize| live.is_full(&live.nodes[node])));
    tree.push(slots[0], None, None);
    assert_eq!(is_full(), [true, true], "it says so, and nobody above stores anything");
    tree.live.inside(lane_of(None), |live| live.distrust(&live.nodes[1]));
    assert_eq!(is_full(), [false, false]);
    tree.push(slots[1], None, None);
    assert_eq!((is_full(), tree.fallen_back()), ([false, false], 0), "nor is what it says heeded");
    assert_eq!(pull_all(&tree, 0), [0, 1]);
}

//! Calls into a tree, one by one, with workers of several architectures.

use sched_components::flow_control::Fifo;
use sched_components::resource_mapping::Eager;
use sched_components::worker::{Combined, Simple};
use sched_core::{
    Arch, Build, BuildError, Child, Component, Family, Info, MemoryNode, Node, Param, Params, Refused, Task, Value,
    WorkerId, WorkerSet, adapt,
};
use sched_host::tree::{
    Claims, FaultKind, Ledger, NodeId, NodeNumber, Part, Phase, Slot, SlotId, Tree, Unplaced, WorkerFacts,
};
use sched_tests::bad::{Bad, Deal};
use sched_tests::fake_services::FakeServices;
use sched_tests::hold::Hold;
use sched_tests::stock;
use std::cell::Cell;
use std::sync::atomic::{AtomicU64, Ordering::*};
use std::sync::{Arc, Mutex};

fn part<C: Build>(path: &str, params: &[(&str, Value)], children: &[u32], worker: Option<u32>) -> Part {
    let mut values = Params::defaults(C::INFO.declared_params());
    params.iter().for_each(|(name, value)| values.set(name, value.clone()));
    let workers = worker.map_or_else(|| WorkerSet::first(2), |worker| [WorkerId(worker)].into_iter().collect());
    Part {
        component: Unplaced::new(adapt(C::build(&values).expect("the parameters are sound")), None),
        name: C::INFO.name().to_owned(),
        plugin: "test".to_owned(),
        params: Params::default(),
        path: path.to_owned(),
        object: String::new(),
        children: children.iter().map(|child| (NodeId(*child), String::new())).collect(),
        workers: workers.clone(),
        workers_in_context: workers,
        sharing: None,
        worker: worker.map(WorkerId),
        claims: Claims::from(&C::INFO.describe()),
        attended: true,
    }
}

struct Scene {
    tree: Tree,
    ledger: Arc<Ledger>,
    services: Arc<FakeServices>,
    next: u32,
}

impl Scene {
    /// `above` over a CPU worker and a CUDA worker.
    fn new(mut above: Vec<Part>) -> Scene {
        let first = above.len() as u32;
        let last = above.last_mut().expect("there is a root");
        last.children = vec![(NodeId(first), String::new()), (NodeId(first + 1), String::new())];
        above.push(part::<Simple>("cpu", &[], &[], Some(0)));
        above.push(part::<Simple>("cuda", &[], &[], Some(1)));
        let cuda = WorkerFacts { arch: Arch::CUDA, memory_node: MemoryNode(1), relative_speedup: 10.0 };
        let (services, ledger) = (Arc::new(FakeServices::new(2)), Arc::new(Ledger::new()));
        let tree = Tree::assemble(above, &[WorkerFacts::CPU, cuda], services.clone(), Arc::clone(&ledger), 0);
        ledger.grow();
        Scene { tree, ledger, services, next: 0 }
    }

    /// A task for the workers of these architectures.
    fn task(&mut self, archs: &[Arch]) -> &'static Slot {
        let slot = self.ledger.slot(SlotId(self.next));
        self.next += 1;
        slot.set_phase(Phase::Waiting);
        slot.head().reset();
        slot.head().priority.store(0, Relaxed);
        slot.head().archs.store(archs.iter().fold(0, |bits, arch| bits | 1 << arch.number()), Relaxed);
        slot
    }

    fn push(&self, slot: &'static Slot) {
        self.tree.push(slot, None, None);
    }

    fn pull(&self, worker: u32) -> Option<u32> {
        self.tree.pull(WorkerId(worker)).map(|slot| slot.id().0)
    }
}

#[test]
fn a_task_for_another_worker_goes_elsewhere() {
    let mut scene = Scene::new(vec![part::<Deal>("deal", &[], &[], None)]);
    // The first goes to the CPU worker's leaf, regardless of its architecture.
    let cuda = scene.task(&[Arch::CUDA]);
    scene.push(cuda);
    assert_eq!(scene.pull(0), None, "it cannot run this");
    assert_eq!(scene.pull(1), Some(cuda.id().0));
    assert_eq!(cuda.phase(), Phase::Running);
    let faults = scene.tree.faults();
    assert_eq!(faults.len(), 1);
    assert_eq!((&*faults[0].node, &faults[0].kind), ("cpu", &FaultKind::WrongWorker { tasks: 1 }));
}

#[test]
fn a_task_that_everybody_refuses_waits_for_who_can_run_it() {
    let mut scene = Scene::new(vec![part::<Eager>("eager", &[], &[], None)]);
    let (cpu, cuda) = (scene.task(&[Arch::CPU]), scene.task(&[Arch::CUDA]));
    scene.push(cuda);
    scene.push(cpu);
    assert_eq!((cpu.phase(), cuda.phase()), (Phase::Fallback, Phase::Fallback));
    assert_eq!((scene.pull(0), scene.pull(0)), (Some(cpu.id().0), None));
    assert_eq!((scene.pull(1), scene.pull(1)), (Some(cuda.id().0), None));
}

#[test]
fn handles_of_a_failed_node_are_stale() {
    let what = ("what", Value::Text("panic after storing".to_owned()));
    let bad = part::<Bad>("bad", &[what, ("after", Value::Int(2))], &[1], None);
    let mut scene = Scene::new(vec![bad, part::<Eager>("eager", &[], &[], None)]);
    let tasks: Vec<_> = (0..4).map(|_| scene.task(&[Arch::CPU, Arch::CUDA])).collect();
    for task in &tasks[..2] {
        scene.push(task);
        assert_eq!(task.phase(), Phase::InTree(NodeNumber(0)));
    }
    let before = tasks[0].generation();
    scene.push(tasks[2]);
    for task in &tasks[..3] {
        assert_eq!(task.phase(), Phase::Fallback, "the node failed, and what it kept was taken back");
    }
    assert_ne!(tasks[0].generation(), before);
    scene.push(tasks[3]);
    let mut pulled: Vec<_> = std::iter::from_fn(|| scene.pull(0)).collect();
    pulled.sort_unstable();
    assert_eq!(pulled, [0, 1, 2, 3]);
    // The component goes, with handles of tasks that run: nothing happens to them.
    drop(scene.tree);
    assert!(tasks.iter().all(|task| task.phase() == Phase::Running));
}

#[test]
fn a_wake_is_put_off_for_the_pushed_task_only() {
    let what = ("what", Value::Text("one behind".to_owned()));
    let mut scene = Scene::new(vec![part::<Bad>("bad", &[what], &[1], None), part::<Deal>("deal", &[], &[], None)]);
    let everywhere = [Arch::CPU, Arch::CUDA];
    let deferred = Cell::new(None);
    let (first, second, third) = (scene.task(&everywhere), scene.task(&everywhere), scene.task(&everywhere));
    scene.services.sleeping.insert(1);
    scene.tree.push(first, Some(WorkerId(0)), Some(&deferred));
    assert_eq!(deferred.take(), Some(WorkerId(1)), "worker 0 will probably pull the task itself");
    // These send the one before down: to worker 0, which is awake, then to worker 1.
    scene.tree.push(second, Some(WorkerId(0)), Some(&deferred));
    deferred.take();
    let _ = scene.services.take_woken();
    scene.services.sleeping.insert(1);
    scene.tree.push(third, Some(WorkerId(0)), Some(&deferred));
    assert_eq!(deferred.take(), None);
    assert_eq!(scene.services.take_woken(), [1], "the task is in its own list");
}

#[test]
fn a_combined_worker_is_woken_for_what_it_can_execute_only() {
    let mut parts = vec![part::<Fifo>("fifo", &[], &[1], None), part::<Eager>("eager", &[], &[2, 3], None)];
    // Below both is the combined worker, of number 2.
    for part in &mut parts {
        (part.workers, part.workers_in_context) = (WorkerSet::first(3), WorkerSet::first(3));
    }
    // It comes first, and worker 1 has no leaf.
    parts.push(part::<Combined>("both", &[], &[], Some(2)));
    parts.push(part::<Simple>("one", &[], &[], Some(0)));
    let services = FakeServices::new(2).with_combined(vec![[WorkerId(0), WorkerId(1)].into()]);
    let services = Arc::new(services);
    let ledger = Arc::new(Ledger::new());
    let tree = Tree::assemble(parts, &[WorkerFacts::CPU; 2], services.clone(), Arc::clone(&ledger), 0);
    ledger.grow();
    let push = |number: u32, width: u16, sleeping: &[u32]| {
        (0..2).for_each(|worker| _ = services.sleeping.remove(worker));
        sleeping.iter().for_each(|worker| services.sleeping.insert(*worker));
        let slot = ledger.slot(SlotId(number));
        slot.set_phase(Phase::Waiting);
        slot.head().reset();
        slot.head().priority.store(0, Relaxed);
        slot.head().archs.store(1, Relaxed);
        slot.head().width.store(width, Relaxed);
        tree.push(slot, None, None);
        services.take_woken()
    };
    assert!(push(0, 1, &[1]).is_empty(), "worker 1 cannot have it");
    assert_eq!(push(1, 1, &[0, 1]), [0]);
    assert_eq!(push(2, 2, &[1]), [0, 1], "its members are woken, whoever sleeps");
    let pull = |member: u32, combined: u32| {
        let slot = tree.pull_for_team(WorkerId(member), WorkerId(combined));
        slot.map(|slot| slot.id().0)
    };
    assert_eq!((pull(1, 2), pull(0, 2)), (Some(2), None));
    assert_eq!(
        (tree.pull(WorkerId(0)).map(|slot| slot.id().0), tree.pull(WorkerId(1)).map(|slot| slot.id().0)),
        (Some(0), None)
    );
    assert!(tree.has_leaf(WorkerId(2)) && !tree.has_leaf(WorkerId(1)) && !tree.has_leaf(WorkerId(3)));
}

#[test]
fn every_parent_is_asked_to_fill_room() {
    // A queue that has room for one task, below two others of which only the second has tasks.
    let tree = r#"user-choice { fifo { eager { use "leaf" } }; fifo { eager { use "leaf" } } }
        shared "leaf" each="worker" { fifo ntasks-threshold=1 { worker } }"#;
    let runtime = stock::builder(tree, 1, Vec::new()).build().expect("the policy is valid");
    let hold = Hold::new(&runtime);
    let held = hold.worker();
    let ran = Arc::new(AtomicU64::new(0));
    let note = Arc::clone(&ran);
    let codelet = runtime.codelet::<(), ()>("note").cpu("note", move |_, ()| _ = note.fetch_add(1, Relaxed)).build();
    for _ in 0..20 {
        runtime.task(&codelet, ()).sched_data(1).submit().expect("the task is sound");
    }
    drop(held);
    runtime.wait_all().expect("every task runs");
    assert_eq!(ran.load(Relaxed), 20);
}

/// Asks its parents for tasks when it is pulled from.
#[derive(Debug)]
struct Asks;

impl Build for Asks {
    const INFO: Info = Info::new("asks", Family::SpecialPurpose, "Asks its parents for tasks.");

    fn build(_params: &Params) -> Result<Self, BuildError> {
        Ok(Asks)
    }
}

impl Component for Asks {
    fn push_task(&self, node: Node<'_>, task: Task) -> Result<(), Refused> {
        node.push_to(Child(0), task)
    }

    fn pull_task(&self, node: Node<'_>, _to: Child) -> Option<Task> {
        let _ = node.parents_can_push();
        None
    }
}

/// Notes that it was asked, and says whether it sent something.
#[derive(Debug)]
struct Asked {
    mark: i64,
    sends: bool,
}

/// Marks of those that were asked, in order.
static ASKED: Mutex<Vec<i64>> = Mutex::new(Vec::new());

impl Build for Asked {
    const INFO: Info =
        Info::new("asked", Family::SpecialPurpose, "Notes that it was asked.").params(
            const {
                &[Param::int("mark", 0, "what it notes"), Param::bool("sends", false, "it says that it sent something")]
            },
        );

    fn build(params: &Params) -> Result<Self, BuildError> {
        Ok(Asked { mark: params.int("mark")?, sends: params.bool("sends")? })
    }
}

impl Component for Asked {
    fn push_task(&self, node: Node<'_>, task: Task) -> Result<(), Refused> {
        node.push_to(Child(0), task)
    }

    fn can_push(&self, _node: Node<'_>, to: Child) -> bool {
        assert_eq!(to, Child(0));
        ASKED.lock().expect("nobody panics").push(self.mark);
        self.sends
    }
}

/// The parents that are asked, of three above one child, in order; `sends` says which of them send something.
fn asked(sends: [bool; 3]) -> Vec<i64> {
    let parent = |mark: i64, sends: bool, children: &[u32]| {
        let params = [("mark", Value::Int(mark)), ("sends", Value::Bool(sends))];
        part::<Asked>(&format!("parent{mark}"), &params, children, None)
    };
    let parts = vec![
        part::<Eager>("root", &[], &[1, 2, 3], None),
        parent(1, sends[0], &[4]),
        parent(2, sends[1], &[4]),
        parent(3, sends[2], &[4]),
        part::<Asks>("asks", &[], &[5], None),
        part::<Simple>("worker", &[], &[], Some(0)),
    ];
    let (services, ledger) = (Arc::new(FakeServices::new(1)), Arc::new(Ledger::new()));
    let tree = Tree::assemble(parts, &[WorkerFacts::CPU], services, Arc::clone(&ledger), 0);
    ledger.grow();
    ASKED.lock().expect("nobody panics").clear();
    let _ = tree.pull(WorkerId(0));
    std::mem::take(&mut *ASKED.lock().expect("nobody panics"))
}

#[test]
fn can_push_goes_to_each_parent_until_one_sends() {
    assert_eq!(asked([false; 3]), [1, 2, 3], "none sends, so every one is asked");
    assert_eq!(asked([false, true, true]), [1, 2], "the second one sent something");
    assert_eq!(asked([true; 3]), [1]);
}

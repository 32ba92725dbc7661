//! One worker at its seat, with a passive back end.

use sched_components::flow_control::Fifo;
use sched_components::resource_mapping::Eager;
use sched_components::worker::{Combined, Simple};
use sched_core::{Arch, Build, MemoryNode, Params, WorkerId, WorkerSet, adapt};
use sched_host::tree::combined::CombinedWorkers;
use sched_host::tree::seat::{DeferredWake, Seat, Seated, Work};
use sched_host::tree::{Claims, Ledger, NodeId, Part, Phase, Services, Slot, SlotId, Tree, Unplaced, WorkerFacts};
use sched_tests::fake_services::{FakeServices, Request};
use std::sync::Arc;
use std::sync::atomic::Ordering::*;

/// Three CPU workers, then a CUDA worker. Numbers 4 and 5 are combined workers.
const ARCHS: [Arch; 4] = [Arch::CPU, Arch::CPU, Arch::CPU, Arch::CUDA];
const PAIR: u32 = 4;
const TRIPLE: u32 = 5;

/// Worker 0 of a back end with some contexts.
struct Fake {
    seat: Seat<Arc<Tree>>,
    deferred: DeferredWake,
    contexts: Vec<Arc<Tree>>,
    version: u64,
    workers: CombinedWorkers<(u32, u32)>,
    services: Arc<FakeServices>,
    ledger: Arc<Ledger>,
    tasks: u32,
}

impl Seated for Fake {
    type Context = Arc<Tree>;
    /// The slot of the task, and the combined worker.
    type Purpose = (u32, u32);

    fn seat(&mut self) -> &mut Seat<Arc<Tree>> {
        &mut self.seat
    }

    fn deferred(&mut self) -> &mut DeferredWake {
        &mut self.deferred
    }

    fn version(&self) -> u64 {
        self.version
    }

    fn served(&mut self) -> Vec<Arc<Tree>> {
        self.contexts.iter().filter(|tree| tree.serves(self.seat.worker())).cloned().collect()
    }

    fn combined(&self) -> Option<&CombinedWorkers<(u32, u32)>> {
        Some(&self.workers)
    }

    fn wake(&self, worker: WorkerId) {
        self.services.wake(worker);
    }

    fn wake_any(&self, suits: impl Fn(WorkerId) -> bool) {
        let _ =
            self.services.sleeping.iter().map(WorkerId).find(|worker| suits(*worker) && self.services.wake(*worker));
    }

    fn is_like(&self, other: WorkerId) -> bool {
        ARCHS[other.0 as usize] == ARCHS[self.seat.worker().0 as usize]
    }

    fn purpose(&mut self, slot: &'static Slot, combined: WorkerId) -> (u32, u32) {
        (slot.id().0, combined.0)
    }
}

fn part<C: Build>(children: &[u32], worker: Option<u32>) -> Part {
    let info = C::INFO.describe();
    let workers = worker.map_or_else(|| WorkerSet::first(6), |worker| [WorkerId(worker)].into_iter().collect());
    Part {
        component: Unplaced::new(
            adapt(C::build(&Params::defaults(C::INFO.declared_params())).expect("defaults are sound")),
            None,
        ),
        name: info.name.clone(),
        plugin: "test".to_owned(),
        params: Params::default(),
        path: format!("{} {worker:?}", info.name),
        object: String::new(),
        children: children.iter().map(|child| (NodeId(*child), String::new())).collect(),
        workers: workers.clone(),
        workers_in_context: workers,
        sharing: None,
        worker: worker.map(WorkerId),
        claims: Claims::from(&info),
        attended: true,
    }
}

impl Fake {
    fn new() -> Fake {
        let members = |team: &[u32]| team.iter().copied().map(WorkerId).collect();
        let combined = vec![members(&[0, 1]), members(&[0, 1, 2])];
        let services = Arc::new(FakeServices::new(ARCHS.len()).with_combined(combined));
        let ledger = Arc::new(Ledger::new());
        ledger.grow();
        Fake {
            seat: Seat::new(WorkerId(0)),
            deferred: DeferredWake::default(),
            contexts: Vec::new(),
            version: 1,
            workers: CombinedWorkers::new(ARCHS.len(), services.combined()),
            services,
            ledger,
            tasks: 0,
        }
    }

    /// One more context, whose workers, simple and combined, share a queue. Its number.
    fn context(&mut self, workers: &[u32]) -> usize {
        let leaves: Vec<u32> = (2..).take(workers.len()).collect();
        let mut parts = vec![part::<Fifo>(&[1], None), part::<Eager>(&leaves, None)];
        parts.extend(workers.iter().map(|worker| match *worker {
            PAIR.. => part::<Combined>(&[], Some(*worker)),
            simple => part::<Simple>(&[], Some(simple)),
        }));
        if workers.iter().any(|worker| *worker >= PAIR) {
            self.workers.begin_use();
        }
        let facts = |arch| WorkerFacts { arch, memory_node: MemoryNode(0), relative_speedup: 1.0 };
        let tree = Tree::assemble(parts, &ARCHS.map(facts), self.services.clone(), Arc::clone(&self.ledger), 0);
        self.contexts.push(Arc::new(tree));
        self.version += 1;
        self.contexts.len() - 1
    }

    /// Pushes a task for CPU workers into a context, by the application. Its slot.
    fn push(&mut self, context: usize, width: u16) -> u32 {
        let slot = self.task(width);
        self.contexts[context].push_from_outside(slot);
        slot.id().0
    }

    /// Pushes a task into a context, by this worker, which is about to pull. Its slot.
    fn push_before_pull(&mut self, context: usize) -> u32 {
        let slot = self.task(1);
        self.deferred.note_pushed(slot.id());
        self.contexts[context].push(slot, Some(self.seat.worker()), Some(self.deferred.cell()));
        slot.id().0
    }

    fn task(&mut self, width: u16) -> &'static Slot {
        let slot = self.ledger.slot(SlotId(self.tasks));
        self.tasks += 1;
        slot.set_phase(Phase::Waiting);
        slot.head().reset();
        slot.head().archs.store(1 << Arch::CPU.number(), Relaxed);
        slot.head().width.store(width, Relaxed);
        self.workers.note_pushed(slot);
        slot
    }

    fn sleep(&self, workers: &[u32]) {
        workers.iter().for_each(|worker| self.services.sleeping.insert(*worker));
    }

    /// The sleepers woken since the last call.
    fn woken(&self) -> Vec<u32> {
        let woken = |request| match request {
            Request::Wake { worker, slept: true } => Some(worker.0),
            _ => None,
        };
        self.services.take_requests().into_iter().filter_map(woken).collect()
    }

    /// What each of `count` looks found: a task's slot, and the worker, simple or combined, that is to execute it.
    fn looks(&mut self, count: usize) -> Vec<Option<(u32, u32)>> {
        let mut look = || match self.look()? {
            Work::Alone(slot) => Some((slot.id().0, 0)),
            Work::Together(gathering) => Some(gathering.purpose),
        };
        (0..count).map(|_| look()).collect()
    }
}

#[test]
fn contexts_are_asked_in_turn() {
    let mut fake = Fake::new();
    let (a, b) = (fake.context(&[0, 1]), fake.context(&[0]));
    let not_served = fake.context(&[1]);
    fake.push(not_served, 1);
    let of_a: Vec<u32> = (0..3).map(|_| fake.push(a, 1)).collect();
    let of_b: Vec<u32> = (0..2).map(|_| fake.push(b, 1)).collect();
    let pulled: Vec<Option<u32>> = (0..6).map(|_| fake.pull().map(|slot| slot.id().0)).collect();
    let expected = [of_a[0], of_b[0], of_a[1], of_b[1], of_a[2]];
    assert_eq!(pulled, expected.map(Some).into_iter().chain([None]).collect::<Vec<_>>());
}

#[test]
fn a_worker_learns_that_it_serves_further_contexts() {
    let mut fake = Fake::new();
    assert!(fake.pull().is_none(), "it serves no context");
    let a = fake.context(&[0]);
    let first = fake.push(a, 1);
    assert_eq!(fake.pull().map(|slot| slot.id().0), Some(first));
    let b = fake.context(&[0]);
    let second = fake.push(b, 1);
    assert_eq!(fake.pull().map(|slot| slot.id().0), Some(second));
}

#[test]
fn own_tasks_and_tasks_of_teams_take_turns() {
    let mut fake = Fake::new();
    let (own, together) = (fake.context(&[0]), fake.context(&[PAIR]));
    let single: Vec<u32> = (0..3).map(|_| fake.push(own, 1)).collect();
    let wide: Vec<u32> = (0..2).map(|_| fake.push(together, 2)).collect();
    let found = fake.looks(6);
    let expected = [(wide[0], PAIR), (single[0], 0), (wide[1], PAIR), (single[1], 0), (single[2], 0)];
    assert_eq!(found, expected.map(Some).into_iter().chain([None]).collect::<Vec<_>>());
}

#[test]
fn parallel_tasks_of_several_contexts_take_turns_too_and_larger_teams_come_first() {
    let mut fake = Fake::new();
    let (a, b) = (fake.context(&[PAIR]), fake.context(&[PAIR, TRIPLE]));
    let of_a: Vec<u32> = (0..2).map(|_| fake.push(a, 2)).collect();
    let of_b: Vec<u32> = (0..2).map(|_| fake.push(b, 2)).collect();
    let widest = fake.push(b, 3);
    let expected = [(widest, TRIPLE), (of_a[0], PAIR), (of_b[0], PAIR), (of_a[1], PAIR), (of_b[1], PAIR)];
    assert_eq!(fake.looks(5), expected.map(Some));
}

#[test]
fn a_team_that_waits_comes_before_one_that_is_called() {
    let mut fake = Fake::new();
    let together = fake.context(&[PAIR]);
    let pulled = fake.push(together, 2);
    fake.workers.call(WorkerId(TRIPLE), (77, TRIPLE));
    assert_eq!(fake.looks(2), [Some((77, TRIPLE)), Some((pulled, PAIR))]);
}

#[test]
fn the_members_of_a_team_that_is_called_are_woken() {
    let mut fake = Fake::new();
    let together = fake.context(&[TRIPLE]);
    fake.push(together, 3);
    fake.sleep(&[0, 1, 2, 3]);
    assert!(matches!(fake.look(), Some(Work::Together(_))));
    assert_eq!(fake.woken(), [1, 2], "not the one that calls, which attends anyway");
}

#[test]
fn a_worker_with_tasks_in_flight_is_kept_for_a_team() {
    let mut fake = Fake::new();
    let (own, together) = (fake.context(&[0]), fake.context(&[PAIR]));
    assert!(!fake.is_kept_for_team(), "there is no parallel task");
    fake.push(together, 2);
    assert!(fake.is_kept_for_team());
    assert!(matches!(fake.look(), Some(Work::Together(_))));
    fake.push(own, 1);
    fake.push(together, 2);
    assert!(!fake.is_kept_for_team(), "a task of its own comes next");
    assert!(matches!(fake.look(), Some(Work::Alone(_))));
    assert!(fake.is_kept_for_team());
}

#[test]
fn a_wake_is_passed_on_to_a_worker_of_the_same_kind_in_each_context() {
    let mut fake = Fake::new();
    let a = fake.context(&[0, 1, 3]);
    fake.context(&[0, 2, 3]);
    fake.push(a, 1);
    fake.sleep(&[1, 2, 3]);
    let found = fake.look();
    fake.answer_wake(found.as_ref());
    assert!(fake.woken().is_empty(), "nobody woke it");
    fake.push(a, 1);
    fake.services.sleeping.insert(1);
    let _ = fake.woken();
    fake.seat.expect();
    let found = fake.look();
    fake.answer_wake(found.as_ref());
    assert_eq!(fake.woken(), [1, 2], "it may have been woken for another task, of either context");
    fake.sleep(&[1, 2]);
    fake.answer_wake(found.as_ref());
    assert!(fake.woken().is_empty(), "it was passed on");
}

#[test]
fn a_wake_is_not_passed_on_by_a_worker_that_has_what_it_was_woken_for() {
    let mut fake = Fake::new();
    let only = fake.context(&[0, 1, PAIR]);
    fake.push(only, 1);
    fake.sleep(&[1]);
    let _ = fake.woken();
    fake.seat.expect();
    let found = fake.look();
    fake.answer_wake(found.as_ref());
    assert!(fake.woken().is_empty());
    // A team may want it for another task than the one that it was woken for.
    fake.workers.call(WorkerId(PAIR), (77, PAIR));
    fake.seat.expect();
    let found = fake.look();
    fake.answer_wake(found.as_ref());
    assert_eq!(fake.woken(), [1]);
    // Nothing is left that it could have been woken for.
    fake.sleep(&[1]);
    fake.seat.expect();
    let found = fake.look();
    assert!(found.is_none());
    fake.answer_wake(found.as_ref());
    fake.pass_wake_on();
    assert!(fake.woken().is_empty());
}

#[test]
fn a_wake_that_was_put_off_is_done_unless_the_pull_gives_the_very_task() {
    let mut fake = Fake::new();
    let context = fake.context(&[0, 1, PAIR]);
    fake.sleep(&[1]);
    let own = fake.push_before_pull(context);
    assert_eq!(fake.pull().map(|slot| slot.id().0), Some(own));
    assert!(fake.woken().is_empty(), "it has the task itself");

    let earlier = fake.push_before_pull(context);
    fake.push_before_pull(context);
    assert_eq!(fake.pull().map(|slot| slot.id().0), Some(earlier));
    assert_eq!(fake.woken(), [1], "somebody has to come for the other");

    assert!(matches!(fake.look(), Some(Work::Alone(_))), "teams come next");
    fake.sleep(&[1]);
    fake.push_before_pull(context);
    fake.workers.call(WorkerId(PAIR), (77, PAIR));
    assert!(matches!(fake.look(), Some(Work::Together(_))));
    assert_eq!(fake.woken(), [1], "no pull comes for now");
}

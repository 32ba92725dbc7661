use super::*;
use crate::{Child, Execution, ExecutionEnd, LogLevel, Mutex, Node, Push, Refusal, Refused, Task, Time};
use std::time::Duration;

/// A component that follows a script, usually a faulty one.
#[derive(Default)]
struct Rogue {
    kept: Mutex<Vec<Task>>,
    way: Way,
}

#[derive(Default, Clone, Copy, PartialEq)]
enum Way {
    #[default]
    Keep,
    Drop,
    Panic,
    HopUnderLock,
    Forget,
    PassOn,
}

impl Component for Rogue {
    fn push_task(&self, node: Node<'_>, task: Task) -> Push {
        match self.way {
            Way::Keep | Way::Forget => self.kept.lock().push(task),
            Way::Drop => drop(task),
            Way::Panic => panic!("no such way"),
            Way::HopUnderLock => {
                let mut kept = self.kept.lock();
                kept.push(task);
                node.children_can_pull();
            }
            Way::PassOn => {
                node.log(LogLevel::Warn, "passing on");
                let number = node.random() % 2;
                return node.push_to(Child(number as u32), task);
            }
        }
        Ok(())
    }

    fn pull_task(&self, _node: Node<'_>, _to: Child) -> Option<Task> {
        self.kept.lock().pop()
    }

    fn drain(&self) -> Vec<Task> {
        if self.way == Way::Forget { Vec::new() } else { std::mem::take(&mut *self.kept.lock()) }
    }
}

fn rogue(way: Way) -> Rig {
    Rig::new(Rogue { way, ..Rogue::default() })
}

/// The rig's message when `body` fails.
fn failure(body: impl FnOnce() + std::panic::UnwindSafe) -> String {
    let payload = std::panic::catch_unwind(body).expect_err("the rig fails the test");
    payload.downcast_ref::<String>().cloned().unwrap_or_default()
}

#[test]
fn a_dropped_task_fails_the_test() {
    let said = failure(|| {
        let rig = rogue(Way::Drop);
        let _ = rig.push(rig.task().make());
    });
    assert_eq!(said, "the component dropped task 0: it must keep a task, hand it on or hand it back");
}

#[test]
fn a_panic_fails_the_test() {
    let said = failure(|| {
        let rig = rogue(Way::Panic);
        let _ = rig.push(rig.task().make());
    });
    assert!(said.contains("the component panicked: no such way"), "{said}");
}

#[test]
#[cfg(debug_assertions)]
fn a_hop_under_a_lock_fails_the_test() {
    let said = failure(|| {
        let rig = rogue(Way::HopUnderLock);
        let _ = rig.push(rig.task().make());
    });
    assert!(said.contains("`children_can_pull` was called while holding a lock"), "{said}");
}

#[test]
fn a_task_that_drain_does_not_give_fails_the_test() {
    let said = failure(|| {
        let rig = rogue(Way::Forget);
        let _ = rig.push(rig.task().make());
    });
    assert_eq!(said, "drain: the component did not give up task 0, which it holds");
}

#[test]
fn a_task_for_another_architecture_fails_the_test() {
    let said = failure(|| {
        let rig = rogue(Way::Keep);
        let _ = rig.push(rig.task().archs([Arch::CUDA]).make());
        rig.pull(Child(0));
    });
    assert_eq!(said, "pull_task: the component gave task 0 to worker 0, which cannot execute it");
}

#[test]
fn a_task_is_pushed_once() {
    let said = failure(|| {
        let rig = rogue(Way::Keep);
        let task = rig.task().make();
        assert_eq!(rig.push(task), Ok(()));
        let _ = rig.push(task);
    });
    assert_eq!(said, "task 0 is not the test's to push; its holder is the component");
}

#[test]
fn a_lenient_rig_tells() {
    let rig = rogue(Way::Drop).lenient();
    let task = rig.task().make();
    assert_eq!(rig.push(task), Ok(()));
    assert_eq!((rig.lost(), rig.holder(task)), (vec![task], Holder::Lost));
    let rig = rogue(Way::Panic).lenient();
    let task = rig.task().make();
    let _ = rig.push(task);
    assert!(rig.panics()[0].starts_with("no such way"));
    assert_eq!(rig.lost(), [task], "unwinding gives the task back");
}

#[test]
fn a_stale_handle_is_ignored() {
    let rig = rogue(Way::Keep);
    let tasks = rig.tasks(2);
    assert_eq!((rig.push(tasks[0]), rig.push(tasks[1])), (Ok(()), Ok(())));
    rig.revoke(tasks[1]);
    assert_eq!(rig.holder(tasks[1]), Holder::Test);
    assert_eq!(rig.pull(Child(0)), None, "the component gave the stale handle");
    assert_eq!(rig.drain(), [tasks[0]]);
}

#[test]
fn randomness_is_seeded_and_words_are_noted() {
    let children = |seed| {
        let rig = rogue(Way::PassOn).seed(seed).child(FakeChild::new()).child(FakeChild::new());
        for task in rig.tasks(64) {
            assert_eq!(rig.push(task), Ok(()));
        }
        assert_eq!(rig.logged()[0], "warn: passing on");
        assert_eq!(rig.service_calls("random"), 64);
        rig.child_tasks(Child(0))
    };
    assert_eq!(children(1), children(1));
    assert_ne!(children(1), children(2));
}

#[test]
fn a_push_to_a_child_that_is_not_there_is_a_fault() {
    let rig = rogue(Way::PassOn).lenient().seed(1);
    let tasks = rig.tasks(8);
    let refused = tasks.into_iter().filter(|task| rig.push(*task) == Err(Refusal::NoWorker)).count();
    assert!(refused > 0);
    assert_eq!(rig.faults().len(), refused);
    assert_eq!(rig.faults()[0], "push_to: there is no child 1");
}

/// Uses every default method of the trait.
struct Defaults;

impl Component for Defaults {
    fn push_task(&self, _node: Node<'_>, task: Task) -> Push {
        Err(Refused::new(task, Refusal::Uncalibrated))
    }
}

#[test]
fn the_defaults_pass_calls_on() {
    let rig = Rig::new(Defaults).workers(2).parent(FakeParent::new());
    let rig = rig.child(FakeChild::over([0]).end(Time::from_nanos(9)).load(0.5));
    let rig = rig.child(FakeChild::over([1]).end(Time::from_nanos(7)).load(0.25));
    let task = rig.task().make();
    assert_eq!(rig.push(task), Err(Refusal::Uncalibrated));
    assert_eq!((rig.estimated_end(), rig.estimated_load()), (Time::from_nanos(7), 0.75));
    rig.set_now(Time::from_nanos(8));
    assert_eq!(rig.estimated_end(), Time::from_nanos(8));
    assert!(rig.can_pull() && rig.can_pull() && !rig.can_pull(), "two workers slept");
    rig.sleep(WorkerId(1));
    assert!(rig.can_pull());
    assert!(!rig.can_push(Child(0)));
    rig.give_parent(crate::Parent(0), task);
    assert_eq!(rig.pull(Child(1)), Some(task));
    assert_eq!((rig.drain(), rig.describe()), (vec![], vec![]));
    rig.notify_change_workers();
}

#[test]
fn above_the_root_there_is_nothing() {
    let rig = Rig::new(Defaults).workers(1).child(FakeChild::over([0]));
    assert_eq!(rig.pull(Child(0)), None);
    assert!(!rig.can_push(Child(0)));
}

#[test]
fn a_parent_takes_back_what_is_refused() {
    let rig = Rig::new(Defaults).parent(FakeParent::new());
    let task = rig.task().make();
    rig.give_parent(crate::Parent(0), task);
    assert!(!rig.can_push(Child(0)));
    assert_eq!(rig.holder(task), Holder::Parent(crate::Parent(0)));
}

/// Answers `estimated_end` with one of a node's methods.
struct Ends(fn(Node<'_>) -> Time);

impl Component for Ends {
    fn push_task(&self, _node: Node<'_>, task: Task) -> Push {
        Err(Refused::new(task, Refusal::Full))
    }

    fn estimated_end(&self, node: Node<'_>) -> Time {
        (self.0)(node)
    }
}

#[test]
fn the_ends_of_children_are_put_together_in_three_ways() {
    let end = |of: fn(Node<'_>) -> Time| {
        let rig = Rig::new(Ends(of)).workers(2);
        let rig = rig.child(FakeChild::over([0]).end(Time::from_nanos(10)));
        rig.child(FakeChild::over([1]).end(Time::from_nanos(40))).estimated_end().as_nanos()
    };
    const fn queued(nanos: u64) -> std::time::Duration {
        std::time::Duration::from_nanos(nanos)
    }
    assert_eq!(end(|node| node.earliest_end_below()), 10);
    assert_eq!(end(|node| node.average_end_below()), 25);
    assert_eq!(end(|node| node.end_below_with_queued(queued(0))), 10);
    assert_eq!(end(|node| node.end_below_with_queued(queued(6))), 28, "36 ns beyond the first end, for two");
    let alone = |of: fn(Node<'_>) -> Time| {
        let rig = Rig::new(Ends(of)).leaf(WorkerId(0));
        rig.set_now(Time::from_nanos(5));
        rig.estimated_end().as_nanos()
    };
    assert_eq!(alone(|node| node.average_end_below()), 5, "nothing is below: now");
    assert_eq!(alone(|node| node.end_below_with_queued(queued(6))), 11);
}

#[test]
fn a_combined_worker_is_its_members() {
    struct Leaf;
    impl Component for Leaf {
        fn push_task(&self, node: Node<'_>, task: Task) -> Push {
            let worker = node.worker().expect("it is a leaf");
            assert_eq!(node.members(worker).collect::<Vec<_>>(), [WorkerId(1), WorkerId(2)]);
            assert_eq!(node.members(WorkerId(1)).collect::<Vec<_>>(), [WorkerId(1)]);
            assert_eq!(node.members(WorkerId(9)).count(), 0);
            assert_eq!((node.relative_speedup(), node.arch(worker)), (2.0, Some(Arch::CPU)));
            assert_eq!((node.is_homogeneous(), node.single_memory_node()), (true, None));
            let why = if node.can_execute(&task) { Refusal::Full } else { Refusal::NoWorker };
            Err(Refused::new(task, why))
        }
    }
    let rig = Rig::new(Leaf).worker(Arch::CUDA, MemoryNode(2)).worker(Arch::CPU, MemoryNode(0));
    let rig = rig.worker(Arch::CPU, MemoryNode(1)).combined([1, 2]).leaf(WorkerId(3));
    let push = |width| rig.push(rig.task().width(width).make());
    assert_eq!((push(1), push(2), push(3)), (Err(Refusal::NoWorker), Err(Refusal::Full), Err(Refusal::Full)));
}

/// Pushes each task to the child that its number for schedulers names; its end is the earliest below.
struct Chosen;

impl Component for Chosen {
    fn push_task(&self, node: Node<'_>, task: Task) -> Push {
        node.push_to(Child(task.sched_data() as u32), task)
    }
}

#[test]
fn ends_below_count_only_tasks_with_a_prediction() {
    let nanos = std::time::Duration::from_nanos;
    let rig = Rig::new(Chosen).workers(2).child(FakeChild::over([0])).child(FakeChild::over([0, 1]));
    for child in [0, 1].repeat(50) {
        assert_eq!(rig.push(rig.task().sched_data(child).predicted_transfer(nanos(9)).make()), Ok(()));
    }
    assert_eq!(rig.estimated_end(), Time::ZERO, "nobody knows how long a hundred tasks take");
    assert_eq!(rig.push(rig.task().sched_data(0).predicted(nanos(10)).make()), Ok(()));
    assert_eq!(rig.estimated_end(), Time::ZERO, "the other child is free");
    assert_eq!(rig.push(rig.task().sched_data(1).predicted(nanos(18)).predicted_transfer(nanos(6)).make()), Ok(()));
    assert_eq!(rig.estimated_end(), Time::from_nanos(10), "18 ns after 6 ns for data, for two workers: 12");
    assert_eq!(rig.push(rig.task().sched_data(0).predicted(nanos(5)).predicted_transfer(nanos(6)).make()), Ok(()));
    assert_eq!(rig.estimated_end(), Time::from_nanos(12), "the other one ends at 15");
    rig.set_end(Child(1), Time::from_nanos(20));
    assert_eq!(rig.estimated_end(), Time::from_nanos(15), "the transfer is hidden behind the first task");
    rig.set_end(Child(0), Time::from_nanos(30));
    assert_eq!(rig.estimated_end(), Time::from_nanos(20), "what is set replaces what was counted");
}

/// Looks at ends with these leaps, in turn, and refuses.
struct Leaps(&'static [u32]);

impl Component for Leaps {
    fn push_task(&self, node: Node<'_>, task: Task) -> Push {
        let mut all = Vec::new();
        node.ends_below(|child, end| all.push((child, end)));
        assert_eq!(all.len(), node.children().len());
        let (mut seen, mut leaps) = (Vec::new(), self.0.iter().cycle());
        node.some_ends_below(|child, end| {
            seen.push((child, end));
            leaps.next().copied().unwrap_or_default()
        });
        let (mut expected, mut leaps, mut next) = (Vec::new(), self.0.iter().cycle(), 0);
        while let Some(child) = all.get(next) {
            expected.push(*child);
            next += 1 + leaps.next().copied().unwrap_or_default() as usize;
        }
        assert_eq!(seen, expected, "{} children, leaps of {:?}", all.len(), self.0);
        Err(Refused::new(task, Refusal::Full))
    }
}

#[test]
fn ends_that_are_passed_over_are_not_given() {
    for children in [1, 16, 17, 40, 300] {
        for leaps in [&[0][..], &[1], &[31], &[500], &[u32::MAX], &[0, 0, 7, 0, 0, 0, 90, 2]] {
            let rig = (0..children)
                .fold(Rig::new(Leaps(leaps)).workers(children), |rig, worker| rig.child(FakeChild::over([worker])));
            (0..children).for_each(|child| rig.set_end(Child(child), Time::from_nanos(u64::from(child * 7 % 11))));
            assert_eq!(rig.push(rig.task().make()), Err(Refusal::Full));
        }
    }
}

/// Hands on the priority of the task that was executed last.
#[derive(Default)]
struct Learns {
    priority: Mutex<Option<i32>>,
    falls: bool,
}

impl Component for Learns {
    fn push_task(&self, node: Node<'_>, task: Task) -> Push {
        node.push_to(Child(0), task)
    }

    fn task_started(&self, node: Node<'_>, task: &Execution) {
        assert_eq!((node.requester(), task.worker), (Some(WorkerId(0)), WorkerId(0)));
    }

    fn task_ended(&self, _: Node<'_>, task: &Execution, end: &ExecutionEnd) {
        assert_eq!((end.length, end.energy, end.failed), (Duration::from_micros(3), Some(0.5), false));
        *self.priority.lock() = Some(task.priority);
    }

    fn export(&self, _: Node<'_>) -> Option<Vec<u8>> {
        self.priority.lock().map(|priority| priority.to_le_bytes().to_vec())
    }

    fn import(&self, _: Node<'_>, state: &[u8]) {
        *self.priority.lock() = state.try_into().ok().map(i32::from_le_bytes);
    }
}

impl Drop for Learns {
    fn drop(&mut self) {
        assert!(!self.falls, "fell over");
    }
}

#[test]
fn a_component_hears_of_executions_and_hands_on_what_it_has_learnt() {
    let rig = Rig::new(Learns::default());
    assert_eq!(rig.export(), None);
    rig.set_energy(0, WorkerId(0), 0.5);
    let task = rig.task().priority(-3).make();
    rig.task_started(task, WorkerId(0));
    rig.task_ended(task, WorkerId(0), Duration::from_micros(3), false);
    let left = rig.export().expect("it has learnt something");
    let successor = Rig::new(Learns::default());
    successor.import(&left);
    assert_eq!(successor.export(), Some((-3i32).to_le_bytes().to_vec()));
}

#[test]
fn a_drop_that_panics_fails_the_test() {
    let rig = Rig::new(Learns { falls: true, priority: Mutex::default() });
    let told = failure(std::panic::AssertUnwindSafe(move || drop(rig)));
    assert!(told.contains("panicked when it was dropped: fell over"), "{told}");
}

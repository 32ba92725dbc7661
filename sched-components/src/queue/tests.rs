use super::*;
use proptest::prelude::*;
use sched_core::{Arch, ArchSet};
use std::sync::atomic::{AtomicUsize, Ordering::*};

#[derive(Clone, Debug)]
enum Step {
    Push {
        priority: i32,
    },
    /// Pops the first task whose number is not a multiple of this.
    Pop {
        except: u64,
    },
    /// Pops the last such task of the highest priority that has one.
    PopNewest {
        except: u64,
    },
    /// Pops the first such task of a priority above this.
    PopAbove {
        except: u64,
        least: i32,
    },
    /// Pops the first task with the least remainder modulo 7, among all tasks or those of the highest priority that has
    /// one.
    PopLeast {
        except: u64,
        reach: Reach,
    },
    /// Puts one of the popped tasks back.
    Unpop {
        which: usize,
    },
    Drain,
}

fn steps(priorities: std::ops::Range<i32>) -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        6 => priorities.prop_map(|priority| Step::Push { priority }),
        4 => prop_oneof![Just(u64::MAX), 2u64..4].prop_map(|except| Step::Pop { except }),
        2 => prop_oneof![Just(u64::MAX), 2u64..4].prop_map(|except| Step::PopNewest { except }),
        2 => (prop_oneof![Just(u64::MAX), 2u64..4], -2..3)
            .prop_map(|(except, least)| Step::PopAbove { except, least }),
        2 => (prop_oneof![Just(u64::MAX), 2u64..4], prop_oneof![Just(Reach::HighestLevel), Just(Reach::AllLevels)])
            .prop_map(|(except, reach)| Step::PopLeast { except, reach }),
        2 => any::<prop::sample::Index>().prop_map(|which| Step::Unpop { which: which.index(1 << 16) }),
        1 => Just(Step::Drain),
    ];
    prop::collection::vec(step, 0..300)
}

const ARCHS: [u32; 4] = [1, 2, 3, 6];

/// Twelve kinds: what decides in [`eligible_but`] and between architectures is the same for all tasks of one.
impl Executable for u64 {
    fn able(&self) -> Able {
        Able::new(ArchSet::from_bits(ARCHS[(self % 4) as usize]), self % 12)
    }
}

impl Executable for &str {
    fn able(&self) -> Able {
        Able::new(ArchSet::from_bits(1), 0)
    }
}

/// Whether a task may leave when one of each `except` (2 or 3) must stay.
fn eligible_but(task: u64, except: u64) -> bool {
    !(task + 1).is_multiple_of(except)
}

/// Runs `steps` on a queue and on a sorted vector.
fn play(steps: Vec<Step>) {
    let mut queue: TaskQueue<u64> = TaskQueue::new();
    let mut model: Vec<(Reverse<i32>, u64)> = Vec::new();
    let mut out: Vec<(u64, Place)> = Vec::new();
    let mut pushed = 0;
    let length = |task: u64| task % 5;
    for step in steps {
        match step {
            Step::Push { priority } => {
                queue.push(pushed, priority, length(pushed));
                model.push((Reverse(priority), pushed));
                pushed += 1;
            }
            Step::Pop { except } => {
                let eligible = |task: u64| eligible_but(task, except);
                let popped = queue.pop(|task| eligible(*task));
                let expected = model.iter().position(|(_, task)| eligible(*task)).map(|index| model.remove(index));
                assert_eq!(popped.map(|(task, _)| task), expected.map(|(_, task)| task));
                out.extend(popped);
            }
            Step::PopNewest { except } => {
                let eligible = |task: u64| eligible_but(task, except);
                let popped = queue.pop_newest(|task| eligible(*task));
                let newest = |(_, (priority, task)): &(usize, &(Reverse<i32>, u64))| (Reverse(*priority), *task);
                let expected = model.iter().enumerate().filter(|(_, (_, task))| eligible(*task)).max_by_key(newest);
                let expected = expected.map(|(index, _)| index).map(|index| model.remove(index).1);
                assert_eq!(popped.map(|(task, _)| task), expected);
                out.extend(popped);
            }
            Step::PopAbove { except, least } => {
                let eligible =
                    |(Reverse(priority), task): &(Reverse<i32>, u64)| eligible_but(*task, except) && *priority > least;
                let popped = queue.pop_above(least, |task| eligible_but(*task, except));
                let expected = model.iter().position(eligible).map(|index| model.remove(index).1);
                assert_eq!(popped.map(|(task, _)| task), expected);
                out.extend(popped);
            }
            Step::PopLeast { except, reach } => {
                let popped = queue.pop_least(reach, |task| eligible_but(*task, except).then_some(*task % 7));
                let able = || model.iter().enumerate().filter(|(_, (_, task))| eligible_but(*task, except));
                let top = able().next().map(|(_, (priority, _))| *priority);
                let all = reach == Reach::AllLevels;
                let competes = |(_, (priority, _)): &(usize, &(Reverse<i32>, u64))| all || Some(*priority) == top;
                let least = able().filter(competes).min_by_key(|(_, (_, task))| *task % 7).map(|(index, _)| index);
                assert_eq!(popped.map(|(task, _)| task), least.map(|index| model.remove(index).1));
                out.extend(popped);
            }
            Step::Unpop { which } if !out.is_empty() => {
                let (task, place) = out.swap_remove(which % out.len());
                queue.unpop(task, place);
                model.push((Reverse(place.priority), task));
            }
            Step::Unpop { .. } => {}
            Step::Drain => {
                let order: Vec<u64> = model.drain(..).map(|(_, task)| task).collect();
                assert_eq!(queue.drain(), order);
            }
        }
        model.sort();
        assert_eq!(queue.len(), model.len());
        assert_eq!(queue.expected(), model.iter().map(|(_, task)| length(*task)).sum());
        assert_eq!(queue.highest(), model.first().map(|(Reverse(priority), _)| *priority));
    }
    let rest: Vec<u64> = std::iter::from_fn(|| queue.pop(|_| true)).map(|(task, _)| task).collect();
    assert_eq!(rest, model.into_iter().map(|(_, task)| task).collect::<Vec<_>>());
}

proptest! {
    #[test]
    fn one_priority_keeps_the_order_of_arrival(steps in steps(0..1)) {
        play(steps);
    }

    #[test]
    fn few_priorities_are_sorted_stably(steps in steps(-2..3)) {
        play(steps);
    }

    #[test]
    fn many_priorities_are_sorted_stably(steps in steps(i32::MIN..i32::MAX)) {
        play(steps);
    }
}

#[test]
fn few_priorities_keep_their_storage() {
    let mut queue: TaskQueue<u64> = TaskQueue::new();
    for round in 0..100 {
        queue.push(round, (round % 5) as i32, 0);
        queue.push(round, (round % 3) as i32, 0);
        assert!(queue.pop(|_| true).is_some());
    }
    assert!(queue.rest.spare.len() + queue.rest.levels.len() <= 4, "one is in use");
}

#[test]
fn many_priorities_do_not_pile_up() {
    let mut queue: TaskQueue<u64> = TaskQueue::new();
    for round in 0..1000 {
        queue.push(round, round as i32, 0);
        queue.push(round, -1, 0);
        queue.pop(|_| true);
    }
    assert!(queue.rest.levels.len() <= 1 && queue.rest.spare.len() <= KEPT_STORAGE);
}

#[test]
fn a_transfer_counts_as_far_as_it_does_not_hide() {
    use sched_core::rig::Rig;
    use sched_core::{Child, Component, Node, Push};
    struct Pass;
    impl Component for Pass {
        fn push_task(&self, node: Node<'_>, task: Task) -> Push {
            node.push_to(Child(0), task)
        }
    }
    let rig = Rig::new(Pass);
    let micros = Duration::from_micros;
    let task = rig.task().predicted(micros(10)).predicted_transfer(micros(4)).make();
    let after = |ahead: u64| rig.read(task, |task| expected_addition(task, || ahead));
    assert_eq!([after(0), after(3000), after(9000)], [14_000, 11_000, 10_000]);
    let unknown = rig.task().predicted_transfer(micros(4)).make();
    assert_eq!(rig.read(unknown, |task| expected_addition(task, || 0)), 0);
}

/// Runs pushes, pops and the other steps on a queue for several threads and on one behind a lock.
fn play_shared(steps: Vec<Step>) {
    let (shared, mut plain) = (SharedQueue::new(()), TaskQueue::new());
    let mut out: Vec<(u64, Place)> = Vec::new();
    let mut pushed = 0;
    for step in steps {
        match step {
            // Every third task is inserted on behalf of a consumer.
            Step::Push { priority } => {
                let expected = if pushed % 3 == 0 { pushed % 5 } else { 0 };
                plain.push(pushed, priority, expected);
                match pushed % 3 {
                    0 => shared.change(|queue| queue.push(pushed, priority, expected), |_| ()),
                    _ => shared.push(pushed, priority),
                }
                pushed += 1;
            }
            Step::Pop { except } | Step::PopNewest { except } => {
                let popped = shared.pop(|task| eligible_but(*task, except), |_| ());
                let expected = plain.pop(|task| eligible_but(*task, except));
                assert_eq!(popped.map(|(task, _)| task), expected.map(|(task, _)| task));
                out.extend(popped);
            }
            Step::PopAbove { except, least } => {
                let popped = shared.pop_above(least, |task| eligible_but(*task, except));
                let expected = plain.pop_above(least, |task| eligible_but(*task, except));
                assert_eq!(popped.map(|(task, _)| task), expected.map(|(task, _)| task));
                assert_eq!(shared.highest(), plain.highest());
                out.extend(popped);
            }
            Step::PopLeast { except, reach } => {
                let cost = |task: &u64| eligible_but(*task, except).then_some(*task % 7);
                let popped = shared.change(|queue| queue.pop_least(reach, cost), |_| ());
                assert_eq!(popped.map(|(task, _)| task), plain.pop_least(reach, cost).map(|(task, _)| task));
                out.extend(popped);
            }
            Step::Unpop { which } if !out.is_empty() => {
                let (task, place) = out.swap_remove(which % out.len());
                shared.change(|queue| queue.unpop(task, place), |_| ());
                // The arrival numbers differ, the order does not.
                plain.unpop(task, Place { arrival: task, ..place });
            }
            Step::Unpop { .. } => {}
            Step::Drain => assert_eq!(shared.change(TaskQueue::drain, |_| ()), plain.drain()),
        }
        assert_eq!(shared.len(), plain.len());
        assert_eq!(shared.expected(), plain.expected());
        assert_eq!(shared.is_empty(), plain.len() == 0);
    }
    assert_eq!(shared.change(TaskQueue::drain, |_| ()), plain.drain());
}

proptest! {
    #[test]
    fn a_shared_queue_keeps_the_order_of_one(steps in prop_oneof![steps(0..1), steps(3..4), steps(-2..3)]) {
        play_shared(steps);
    }
}

/// Runs pushes, pops and the other steps on a queue divided by architectures and on an undivided one.
fn play_by_archs(steps: Vec<Step>) {
    let (mut apart, mut plain): (ByArchs<u64>, TaskQueue<u64>) = (ByArchs::default(), TaskQueue::new());
    let mut out: Vec<(u64, Place)> = Vec::new();
    let mut pushed = 0;
    for step in steps {
        match step {
            Step::Push { priority } => {
                apart.push(pushed, priority, pushed % 5);
                plain.push(pushed, priority, pushed % 5);
                pushed += 1;
            }
            Step::Pop { except }
            | Step::PopNewest { except }
            | Step::PopLeast { except, .. }
            | Step::PopAbove { except, .. } => {
                let archs = ArchSet::from_bits(1 << (except % 3));
                let popped = apart.pop(archs, |task| eligible_but(*task, except));
                let eligible = |task: &u64| task.able().are_of(archs) && eligible_but(*task, except);
                assert_eq!(popped, plain.pop(eligible));
                out.extend(popped);
            }
            Step::Unpop { which } if !out.is_empty() => {
                let (task, place) = out.swap_remove(which % out.len());
                apart.unpop(task, place);
                plain.unpop(task, place);
            }
            Step::Unpop { .. } => {}
            Step::Drain => assert_eq!(apart.drain(), plain.drain()),
        }
        assert_eq!((apart.len(), apart.expected()), (plain.len(), plain.expected()));
    }
    assert_eq!(apart.drain(), plain.drain());
}

proptest! {
    #[test]
    fn a_queue_kept_apart_by_architectures_keeps_the_order_of_one(steps in prop_oneof![steps(0..1), steps(-2..3)]) {
        play_by_archs(steps);
    }
}

/// A number and the workers that can execute it.
impl Executable for (u64, Able) {
    fn able(&self) -> Able {
        self.1
    }
}

/// Workers of an architecture; all of them, or a set.
fn workers(arch: Arch, set: u64) -> Able {
    Able::new(ArchSet::EMPTY.with(arch), set)
}

#[test]
fn what_nobody_who_asks_can_execute_is_not_looked_at() {
    let mut queue: ByArchs<(u64, Able)> = ByArchs::default();
    (0..1000).for_each(|task| queue.push((task, workers(Arch::CPU, 0)), 1, 0));
    queue.push((1000, workers(Arch::CUDA, 0)), 0, 0);
    let mut looked = 0;
    let mut eligible = |_: &_| {
        looked += 1;
        true
    };
    let cuda = ArchSet::EMPTY.with(Arch::CUDA);
    assert_eq!(queue.pop(cuda, &mut eligible).map(|((task, _), _)| task), Some(1000));
    assert_eq!(queue.pop(cuda, &mut eligible), None);
    assert!(looked <= 2, "{looked}");
}

#[test]
fn a_thousand_tasks_for_others_are_passed_over_once() {
    let mut queue: TaskQueue<(u64, Able)> = TaskQueue::new();
    let (cpu, cuda) = (workers(Arch::CPU, 0), workers(Arch::CUDA, 0));
    (0..1000).for_each(|task| queue.push((task, cpu), (task % 3) as i32, 0));
    let mut looks = 0;
    let mut pop = |queue: &mut TaskQueue<(u64, Able)>, workers: Able| {
        let popped = queue.pop(|(_, able)| {
            looks += 1;
            *able == workers
        });
        popped.map(|((task, _), _)| task)
    };
    for task in 1000..2000 {
        queue.push((task, cuda), 0, 0);
        assert_eq!(pop(&mut queue, cuda), Some(task));
        assert_eq!(pop(&mut queue, cuda), None);
    }
    assert_eq!(pop(&mut queue, cpu), Some(2), "the first of the highest priority");
    assert!(looks <= 1001 + 2 * 2000 + 1, "{looks}");
    assert_eq!(queue.drain().len(), 999);
    assert!(!queue.is_divided, "an empty queue is as new");
}

#[test]
fn restricted_tasks_pass_each_other_and_leave_no_queue_for_each_set_of_workers() {
    let mut queue: ByArchs<(u64, Able)> = ByArchs::default();
    let restricted = |set: u64| (set, workers(Arch::CPU, set));
    (1..4).for_each(|set| queue.push(restricted(set), 0, 0));
    queue.push(restricted(0), 0, 0);
    let mut stuck = Stuck::default();
    let mut order = Vec::new();
    while let Some((task, place)) = queue.pop_of(|able| stuck.lets_pass(able), |_| true) {
        order.push(task.0);
        stuck.note(task.able());
        queue.unpop(task, place);
    }
    assert_eq!(order, [1, 2, 3, 0], "each kind once, and none behind one that all workers refuse");
    assert_eq!(queue.drain(), [1, 2, 3, 0].map(restricted));
    for set in 1..100 {
        queue.push(restricted(set), 0, 0);
        assert_eq!(queue.drain(), [restricted(set)]);
    }
    assert_eq!(queue.kinds(), 4);
}

#[test]
fn what_the_owner_pushes_is_in_front_of_what_arrived() {
    let queue = SharedQueue::new(());
    let pop = || queue.pop_newest(|_| true).map(|(task, _)| task);
    queue.push("arrived first", 0);
    queue.push("arrived last", 0);
    queue.push_inside("own", 0, 0);
    assert_eq!([pop(), pop()], [Some("own"), Some("arrived last")]);
    queue.push("urgent", 1);
    assert_eq!([pop(), pop(), pop()], [Some("urgent"), Some("arrived first"), None]);
}

#[test]
fn threads_that_push_and_pop_at_once_lose_nothing_and_keep_the_order() {
    const TASKS: u64 = 20_000;
    let queue = SharedQueue::new(());
    let left = AtomicUsize::new(2);
    let push = |first: u64| {
        (first..TASKS).step_by(2).for_each(|task| queue.push(task, 0));
        left.fetch_sub(1, Release);
    };
    let pop = || {
        let mut mine = Vec::new();
        loop {
            // Read before the queue is searched: if nothing is left then, the queue holds all remaining tasks.
            let is_last = left.load(Acquire) == 0;
            mine.extend(std::iter::from_fn(|| queue.pop(|_| true, |_| ()).map(|(task, _)| task)));
            if is_last {
                return mine;
            }
        }
    };
    let taken: [Vec<u64>; 2] = std::thread::scope(|scope| {
        let push = &push;
        for first in [0, 1] {
            scope.spawn(move || push(first));
        }
        [0, 1].map(|_| scope.spawn(pop)).map(|popper| popper.join().expect("nobody panics"))
    });
    for mine in &taken {
        for parity in [0, 1] {
            assert!(mine.iter().filter(|task| *task % 2 == parity).is_sorted(), "each pusher's leave as they came");
        }
    }
    let mut all: Vec<u64> = taken.into_iter().flatten().collect();
    all.sort_unstable();
    assert!(all.into_iter().eq(0..TASKS));
}

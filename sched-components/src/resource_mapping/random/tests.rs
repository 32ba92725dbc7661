use super::*;
use sched_core::rig::{FakeChild, FakeParent, Hop, Rig};

fn random() -> Rig {
    Rig::build::<Random>(&[])
}

/// A queue above one CPU, one above three, and one above a CUDA worker: speeds 1, 3 and 13.33.
fn uneven(seed: u64) -> Rig {
    let rig = random().workers(4).worker(Arch::CUDA, MemoryNode(1)).seed(seed);
    rig.child(FakeChild::over([0])).child(FakeChild::over([1, 2, 3])).child(FakeChild::over([4]))
}

fn counts(rig: &Rig, tasks: &[TaskId]) -> [f64; 3] {
    for task in tasks {
        assert_eq!(rig.push(*task), Ok(()));
    }
    [0, 1, 2].map(|child| rig.child_tasks(Child(child)).len() as f64)
}

#[test]
fn faster_children_are_drawn_more_often() {
    let rig = uneven(42);
    let found = counts(&rig, &rig.tasks(4000));
    for (found, speed) in found.into_iter().zip([1.0, 3.0, 13.33]) {
        let expected = 4000.0 * speed / 17.33;
        // Four standard deviations, at least.
        assert!((found - expected).abs() < 4.0 * expected.sqrt(), "{found} and not {expected}");
    }
}

#[test]
fn only_children_that_can_execute_a_task_are_drawn() {
    let rig = uneven(7);
    let tasks: Vec<TaskId> = (0..400).map(|_| rig.task().archs([Arch::CPU]).make()).collect();
    let [one, three, cuda] = counts(&rig, &tasks);
    assert!(cuda == 0.0 && (70.0..130.0).contains(&one) && three == 400.0 - one, "{one} {three} {cuda}");
    let fpga = rig.task().archs([Arch::FPGA]).make();
    assert_eq!(rig.push(fpga), Err(Refusal::NoWorker));
}

#[test]
fn speeds_are_those_of_the_context() {
    let rig = random().workers(3).context([0, 1]).child(FakeChild::over([0])).child(FakeChild::over([1, 2]));
    let rig = rig.child(FakeChild::over([2]));
    let [first, second, third] = counts(&rig, &rig.tasks(400));
    assert!((160.0..240.0).contains(&first) && second == 400.0 - first && third == 0.0, "{first} {second} {third}");
}

#[test]
fn the_seed_decides() {
    let draws = |seed| {
        let rig = uneven(seed);
        let _ = counts(&rig, &rig.tasks(50));
        [0, 1, 2].map(|child| rig.child_tasks(Child(child)))
    };
    assert_eq!(draws(3), draws(3));
    assert_ne!(draws(3), draws(4));
}

#[test]
fn a_full_child_does_not_block() {
    for seed in 0..20 {
        let rig = (0..7).fold(random().workers(7).seed(seed), |rig, worker| {
            rig.child(FakeChild::over([worker]).room(usize::from(worker == 5)))
        });
        let tasks = rig.tasks(2);
        assert_eq!(rig.push(tasks[0]), Ok(()));
        assert_eq!(rig.child_tasks(Child(5)), [tasks[0]]);
        rig.hops();
        assert_eq!(rig.push(tasks[1]), Err(Refusal::Full));
        let tried = rig.hops().into_iter().map(|hop| match hop {
            Hop::PushTo { child, .. } => child.0,
            other => panic!("{other:?}"),
        });
        let mut tried: Vec<u32> = tried.collect();
        tried.sort_unstable();
        assert_eq!(tried, [0, 1, 2, 3, 4, 5, 6], "each once");
    }
}

#[test]
fn a_worker_is_woken_and_not_pushed_to() {
    let rig = random().workers(2).child(FakeChild::worker(0)).child(FakeChild::worker(1)).parent(FakeParent::new());
    let task = rig.task().make();
    assert_eq!(rig.push(task), Err(Refusal::PullInstead));
    assert_eq!(rig.woken().len(), 1, "one is enough");
    assert_eq!(rig.push(task), Err(Refusal::PullInstead));
    assert_eq!(rig.push(task), Err(Refusal::Full), "all are awake: they will come by themselves");
    rig.give_parent(Parent(0), task);
    assert_eq!(rig.pull(Child(1)), Some(task));
}

#[test]
fn a_pull_has_the_tasks_above_drawn_for() {
    let rig = uneven(1).parent(FakeParent::new());
    let tasks = rig.tasks(30);
    for task in &tasks {
        rig.give_parent(Parent(0), *task);
    }
    assert_eq!(rig.pull(Child(0)), None);
    assert_eq!((0..3).map(|child| rig.child_tasks(Child(child)).len()).sum::<usize>(), 30);
}

#[test]
fn what_nobody_takes_can_be_pulled() {
    let rig = random().workers(2).parent(FakeParent::new());
    let rig = rig.child(FakeChild::over([0]).room(0)).child(FakeChild::over([1]).room(0));
    let task = rig.task().make();
    rig.give_parent(Parent(0), task);
    assert_eq!(rig.pull(Child(0)), Some(task));
}

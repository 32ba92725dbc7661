use super::*;
use sched_core::rig::{FakeParent, Hop, Rig};
use std::time::Duration;

const ITSELF: Child = Child(0);
/// The combined worker of the two simple workers.
const BOTH: WorkerId = WorkerId(2);

fn pair() -> Rig {
    Rig::build::<Combined>(&[]).workers(2).combined([0, 1]).leaf(BOTH)
}

const fn micros(count: u64) -> Duration {
    Duration::from_micros(count)
}

const fn at(micros: u64) -> Time {
    Time::from_nanos(micros * 1000)
}

#[test]
fn it_keeps_a_parallel_task_for_whichever_member_comes() {
    let rig = pair();
    let tasks = [0, 1, 0].map(|priority| rig.task().width(2).priority(priority).make());
    for task in tasks {
        assert_eq!(rig.push(task), Ok(()));
    }
    assert_eq!(rig.hops()[1], Hop::Wake { woke: vec![BOTH] });
    let order: Vec<TaskId> = std::iter::from_fn(|| rig.pull(ITSELF)).collect();
    assert_eq!(order, [tasks[1], tasks[0], tasks[2]]);
}

#[test]
fn it_takes_parallel_tasks_only_from_above() {
    let rig = pair().parent(FakeParent::new());
    let (alone, together) = (rig.task().make(), rig.task().width(4).make());
    rig.give_parent(Parent(0), alone);
    rig.give_parent(Parent(0), together);
    assert_eq!((rig.pull(ITSELF), rig.pull(ITSELF)), (Some(together), None));
}

#[test]
fn it_is_free_when_the_last_member_is() {
    let rig = pair();
    rig.set_now(at(100));
    assert_eq!(rig.estimated_end(), at(100));
    rig.set_busy_until(WorkerId(0), at(110));
    rig.set_busy_until(WorkerId(1), at(130));
    rig.set_queued_elsewhere(WorkerId(0), micros(40));
    assert_eq!(rig.estimated_end(), at(150), "worker 0 has other work to do");
    let task = rig.task().width(2).predicted(micros(10)).make();
    assert_eq!(rig.push(task), Ok(()));
    assert_eq!(rig.estimated_end(), at(160));
    rig.set_queued_elsewhere(WorkerId(0), Duration::ZERO);
    assert_eq!(rig.pull(ITSELF), Some(task));
    assert_eq!(rig.estimated_end(), at(110), "both begin at 100");
}

#[test]
fn its_load_is_that_of_its_members() {
    let rig = pair();
    let tasks = [(); 3].map(|()| rig.task().width(2).make());
    for task in tasks {
        assert_eq!(rig.push(task), Ok(()));
    }
    assert_eq!(rig.estimated_load(), 6.0, "each of three keeps both busy");
    rig.set_worker_load(WorkerId(1), 4.0);
    assert_eq!(rig.estimated_load(), 10.0);
    assert_eq!(rig.drain(), tasks);
    assert_eq!(rig.estimated_load(), 4.0);
}

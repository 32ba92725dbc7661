//! The queue that is filled at one end and emptied at the other, under loom: no task is lost or popped twice, and
//! no pop finds nothing while there is a task.
//!
//! Each of these, done by hand to `shared.rs`, makes a model fail: what arrived is counted as gone before it is counted
//! as here; no second look at the first count; a push of another priority that does not say so, or says so after its
//! lock.

use super::SharedQueue;
use crate::queue::{Able, Executable};
use loom::sync::Arc;
use loom::thread;

fn model(body: impl Fn() + Send + Sync + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(3);
    builder.check(body);
}

impl Executable for u32 {
    fn able(&self) -> Able {
        Able::new(sched_core::ArchSet::from_bits(1), 0)
    }
}

fn pop(queue: &SharedQueue<u32>) -> Option<u32> {
    queue.pop_for_good(|_| true, |_| ())
}

fn pop_with_place(queue: &SharedQueue<u32>) -> Option<u32> {
    queue.pop(|_| true, |_| ()).map(|(task, _)| task)
}

/// Each of two that pop finds one of two tasks, also while the other takes over both.
#[test]
fn nobody_is_told_that_a_queue_with_a_task_is_empty() {
    model(|| {
        let queue = Arc::new(SharedQueue::new(()));
        queue.push(1, 0);
        queue.push(2, 0);
        let other = thread::spawn({
            let queue = Arc::clone(&queue);
            move || pop_with_place(&queue)
        });
        let mut found = [pop(&queue), other.join().expect("nobody panics")];
        found.sort_unstable();
        assert_eq!(found, [Some(1), Some(2)]);
        assert!(queue.is_empty());
    });
}

/// Two push while one pops: what it does not find is there afterwards, each task once, those of one in their order.
#[test]
fn what_is_pushed_meanwhile_is_found_now_or_later() {
    model(|| {
        let queue = Arc::new(SharedQueue::new(()));
        let push = |tasks: &'static [u32]| {
            let queue = Arc::clone(&queue);
            thread::spawn(move || tasks.iter().for_each(|task| queue.push(*task, 0)))
        };
        let pushers = [push(&[1, 2]), push(&[11])];
        let mut found: Vec<u32> = [pop(&queue), pop(&queue)].into_iter().flatten().collect();
        pushers.into_iter().for_each(|pusher| pusher.join().expect("nobody panics"));
        found.extend(std::iter::from_fn(|| pop(&queue)));
        let of_first: Vec<u32> = found.iter().copied().filter(|task| *task < 10).collect();
        assert_eq!(of_first, [1, 2]);
        found.sort_unstable();
        assert_eq!(found, [1, 2, 11]);
    });
}

/// A task of a higher priority is passed over by no pop that begins after it was pushed.
#[test]
fn what_is_urgent_leaves_first() {
    model(|| {
        let queue = Arc::new(SharedQueue::new(()));
        queue.push(1, 0);
        queue.push(2, 0);
        let other = thread::spawn({
            let queue = Arc::clone(&queue);
            move || {
                queue.push(3, 7);
                pop(&queue)
            }
        });
        let mine = pop(&queue);
        let theirs = other.join().expect("nobody panics");
        assert!(theirs == Some(3) || mine == Some(3), "{mine:?} {theirs:?}");
        let rest = pop(&queue);
        assert!(rest == Some(1) || rest == Some(2));
        assert_eq!(pop(&queue), None);
    });
}

/// Who strikes an empty queue off a list does so while nobody pushes.
#[test]
fn a_queue_that_is_held_as_empty_stays_so() {
    model(|| {
        let queue = Arc::new(SharedQueue::new(()));
        let other = thread::spawn({
            let queue = Arc::clone(&queue);
            move || {
                queue.push(1, 0);
                queue.push_inside(2, 0, 0);
            }
        });
        queue.hold(|is_empty| assert_eq!(is_empty, queue.is_empty()));
        other.join().expect("nobody panics");
        queue.hold(|is_empty| assert!(!is_empty));
        assert!(pop(&queue).is_some() && pop(&queue).is_some());
    });
}

/// Tasks that are moved to another queue leave it once, while one pops from both and another pushes.
#[test]
fn what_is_moved_is_in_one_queue() {
    model(|| {
        let queues = Arc::new([SharedQueue::new(()), SharedQueue::new(())]);
        (1..4).for_each(|task| queues[0].push(task, 0));
        let pusher = thread::spawn({
            let queues = Arc::clone(&queues);
            move || queues[0].push(4, 1)
        });
        let thief = thread::spawn({
            let queues = Arc::clone(&queues);
            move || [1, 0].map(|queue: usize| pop(&queues[queue]))
        });
        let [from, to] = &*queues;
        let mut found: Vec<u32> = from.pop_and_move(2, to, |_| true).map(|(first, _)| first).into_iter().collect();
        found.extend(thief.join().expect("nobody panics").into_iter().flatten());
        pusher.join().expect("nobody panics");
        found.extend(queues.iter().flat_map(|queue| std::iter::from_fn(|| pop(queue))));
        found.sort_unstable();
        assert_eq!(found, [1, 2, 3, 4]);
    });
}

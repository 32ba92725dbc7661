//! Links between tasks under loom: a task that waits for others becomes ready once, after all of them.
//!
//! Each of these, done by hand to `link.rs` or to the end below, makes a model fail: no second look under the lock; an
//! end after the list is unlocked; a count that a release can bring to 0 during the submission; `Relaxed` for the
//! order of the first look, of the end, of a release, or of the submission. (An end before the list is locked is as
//! good.)

use super::Pending;
use crate::model::{Parker, model};
use loom::cell::UnsafeCell;
use loom::sync::atomic::{AtomicU64, AtomicUsize, Ordering::*};
use loom::sync::{Arc, Mutex};
use loom::thread;

/// A task that others may wait for.
struct Before {
    current: AtomicU64,
    /// How many wait; here it is always the same task.
    list: Mutex<usize>,
    /// What it computes.
    value: UnsafeCell<()>,
}

impl Before {
    fn new() -> Before {
        Before { current: AtomicU64::new(1), list: Mutex::new(0), value: UnsafeCell::new(()) }
    }
}

struct Scene {
    before: Vec<Before>,
    /// The task that waits.
    pending: Pending,
    ready: AtomicUsize,
}

impl Scene {
    fn new(before: usize) -> Arc<Scene> {
        let before = (0..before).map(|_| Before::new()).collect();
        let scene = Scene { before, pending: Pending::default(), ready: AtomicUsize::new(0) };
        scene.pending.open();
        Arc::new(scene)
    }

    /// A task computes and ends.
    fn end(&self, task: usize) {
        let task = &self.before[task];
        task.value.with_mut(|_| ());
        let waiting = {
            let mut list = task.list.lock().expect("nobody panics");
            super::end(&task.current);
            std::mem::take(&mut *list)
        };
        for _ in 0..waiting {
            if self.pending.release() {
                self.run();
            }
        }
    }

    /// The task that waits for the others is submitted.
    fn submit(&self) {
        let links = self.before.iter().filter(|before| {
            let lock = || before.list.lock().expect("nobody panics");
            super::link(&before.current, 1, lock, |list| **list += 1)
        });
        if self.pending.submitted(links.count() as u32) {
            self.run();
        }
    }

    /// It reads what the others computed.
    fn run(&self) {
        assert_eq!(self.ready.fetch_add(1, Relaxed), 0, "it becomes ready once");
        self.before.iter().for_each(|before| before.value.with(|_| ()));
    }
}

#[test]
fn a_task_waits_for_one_that_is_ending() {
    model(4, || {
        let scene = Scene::new(1);
        let ending = Arc::clone(&scene);
        let other = thread::spawn(move || ending.end(0));
        scene.submit();
        other.join().expect("it ends");
        assert_eq!(scene.ready.load(Relaxed), 1, "it becomes ready");
    });
}

#[test]
fn a_task_waits_for_two_that_are_ending() {
    model(3, || {
        let scene = Scene::new(2);
        let others = [0, 1].map(|task| {
            let scene = Arc::clone(&scene);
            thread::spawn(move || scene.end(task))
        });
        scene.submit();
        others.into_iter().for_each(|other| other.join().expect("it ends"));
        assert_eq!(scene.ready.load(Relaxed), 1, "it becomes ready");
    });
}

/// Two tasks of a recording, and one that waits for both, which is rearmed when it starts.
struct Replay {
    values: [UnsafeCell<()>; 2],
    pending: Pending,
    rounds: AtomicUsize,
}

impl Replay {
    fn end(replay: &Arc<Replay>, task: usize) {
        replay.values[task].with_mut(|_| ());
        if replay.pending.release() {
            Replay::last(replay);
        }
    }

    /// The task that waits ends the replay, and the next one begins on this thread and another.
    fn last(replay: &Arc<Replay>) {
        replay.pending.arm(2);
        replay.values.iter().for_each(|value| value.with(|_| ()));
        if replay.rounds.fetch_add(1, AcqRel) == 0 {
            let other = Arc::clone(replay);
            let other = thread::spawn(move || Replay::end(&other, 0));
            Replay::end(replay, 1);
            other.join().expect("it ends");
        }
    }
}

#[test]
fn a_recorded_task_waits_in_each_replay() {
    model(3, || {
        let values = [UnsafeCell::new(()), UnsafeCell::new(())];
        let replay = Arc::new(Replay { values, pending: Pending::default(), rounds: AtomicUsize::new(0) });
        replay.pending.arm(2);
        let other = Arc::clone(&replay);
        let other = thread::spawn(move || Replay::end(&other, 0));
        Replay::end(&replay, 1);
        other.join().expect("it ends");
        assert_eq!(replay.rounds.load(Relaxed), 2, "it runs once in each replay");
    });
}

/// As futures of the runtime do: the waker is noted first, then the task is marked as one that is awaited.
#[test]
fn a_future_that_waits_for_a_task_is_woken_by_its_end() {
    model(4, || {
        let task = Arc::new((Before::new(), Mutex::new(None::<Parker>)));
        let other = Arc::clone(&task);
        let ends = thread::spawn(move || {
            let (before, waker) = &*other;
            before.value.with_mut(|_| ());
            let awaited = {
                let list = before.list.lock().expect("nobody panics");
                super::end(&before.current);
                *list > 0
            };
            if awaited {
                let waker = waker.lock().expect("nobody panics").take();
                waker.into_iter().for_each(|waker| waker.wake());
            }
        });
        let (before, waker) = &*task;
        let parker = Parker::new();
        let is_ended = || before.current.load(Acquire) != 1;
        while !is_ended() {
            *waker.lock().expect("nobody panics") = Some(parker.clone());
            let lock = || before.list.lock().expect("nobody panics");
            if super::link(&before.current, 1, lock, |list| **list = 1) && !is_ended() {
                parker.park();
            }
        }
        before.value.with(|_| ());
        ends.join().expect("it ends");
    });
}

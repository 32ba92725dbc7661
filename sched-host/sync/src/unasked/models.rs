//! Tasks that begin unasked under loom: a task is begun or taken back, never both and never neither.
//!
//! Each of these, done by hand to `unasked.rs`, makes a model fail: no fence on either side; no heavy fence by who finds
//! that another one is just ending it; `ENDED` stored before that fence; a state without the number of beginnings.

use super::Unasked;
use crate::model::model;
use loom::sync::atomic::{AtomicBool, AtomicUsize, Ordering::*};
use loom::sync::{Arc, Mutex};
use loom::thread;

/// A task that a worker begins while others take it back.
struct Scene {
    unasked: Unasked,
    is_running: AtomicBool,
    /// Whether whoever asks finds the task there.
    record: Mutex<bool>,
    begun: AtomicUsize,
    taken_back: AtomicUsize,
}

impl Scene {
    fn new() -> Arc<Scene> {
        let unasked = Unasked::default();
        unasked.begin(true);
        let (begun, taken_back) = (AtomicUsize::new(0), AtomicUsize::new(0));
        Arc::new(Scene { unasked, is_running: AtomicBool::new(false), record: Mutex::new(true), begun, taken_back })
    }

    fn take(&self) -> bool {
        std::mem::take(&mut *self.record.lock().expect("nobody panics"))
    }

    fn begin(&self) {
        self.is_running.store(true, Relaxed);
        if self.unasked.is_still() || self.take() {
            self.begun.fetch_add(1, Relaxed);
        }
    }

    fn take_back(&self) {
        self.unasked.end();
        if !self.is_running.load(Relaxed) && self.take() {
            self.taken_back.fetch_add(1, Relaxed);
        }
    }

    /// How often it was begun, after at most `preemptions` by this many that take it back.
    fn play(preemptions: usize, others: usize) {
        model(preemptions, move || {
            let scene = Scene::new();
            let take_back = |_| {
                let scene = Arc::clone(&scene);
                thread::spawn(move || scene.take_back())
            };
            let others: Vec<_> = (0..others).map(take_back).collect();
            scene.begin();
            others.into_iter().for_each(|other| other.join().expect("nobody panics"));
            let (begun, taken_back) = (scene.begun.load(Relaxed), scene.taken_back.load(Relaxed));
            assert_eq!(begun + taken_back, 1, "begun {begun} times, taken back {taken_back} times");
        });
    }
}

#[test]
fn a_task_is_begun_or_taken_back() {
    Scene::play(4, 1);
}

#[test]
fn two_that_take_it_back_are_no_more_than_one() {
    Scene::play(3, 2);
}

/// Somebody still ends it for earlier tasks when it begins anew.
#[test]
fn who_ends_it_for_earlier_tasks_says_nothing_of_later_ones() {
    model(3, || {
        let scene = Scene::new();
        let spawn = |what: fn(&Scene)| {
            let scene = Arc::clone(&scene);
            thread::spawn(move || what(&scene))
        };
        let late = spawn(|scene| scene.unasked.end());
        scene.unasked.begin(true);
        let others = [spawn(|scene| scene.unasked.end()), spawn(Scene::take_back)];
        scene.begin();
        others.into_iter().chain([late]).for_each(|other| other.join().expect("nobody panics"));
        let (begun, taken_back) = (scene.begun.load(Relaxed), scene.taken_back.load(Relaxed));
        assert_eq!(begun + taken_back, 1, "begun {begun} times, taken back {taken_back} times");
    });
}

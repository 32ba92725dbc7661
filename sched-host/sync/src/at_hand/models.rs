//! Tasks at hand under loom: each is taken once, with what was done before it was put, and no sleeper misses one.
//!
//! Each of these, done by hand to `at_hand.rs`, makes a model fail: a place that is emptied by a load and a store; one
//! that is filled, or emptied, in any order of memory; a worker that forgets the places after one that was emptied; one
//! that does not take back what it has put beside a sleeper; no fence on either side of that.

use super::{Filled, Hand, ROOM};
use crate::fence::{heavy_fence, light_fence};
use crate::model::model;
use crate::primitives::UnsafeCell;
use loom::sync::Arc;
use loom::sync::atomic::{AtomicBool, AtomicUsize, Ordering::*};
use loom::thread;

/// A hand, and what lies there by numbers from 1.
struct Scene {
    hand: Hand,
    /// Written before the number is put, and by whoever takes it.
    tasks: Vec<UnsafeCell<usize>>,
    sleeps: AtomicBool,
    pushed: AtomicUsize,
}

impl Scene {
    fn new(tasks: usize) -> Arc<Scene> {
        Arc::new(Scene {
            hand: Hand::default(),
            tasks: (0..tasks).map(|_| UnsafeCell::new(0)).collect(),
            sleeps: AtomicBool::new(false),
            pushed: AtomicUsize::new(0),
        })
    }

    fn step(&self, number: u32, step: usize) {
        self.tasks[number as usize - 1].with_mut(|task| {
            // SAFETY: the model checker reports whoever else has it.
            let task = unsafe { &mut *task };
            assert_eq!(*task + 1, step);
            *task = step;
        });
    }

    fn put(&self, filled: &mut Filled, number: u32) {
        self.step(number, 1);
        assert!(self.hand.put(filled, number), "there is room");
    }

    /// Takes what there is, and returns how many.
    fn take_all(&self, filled: &mut Filled) -> usize {
        std::iter::from_fn(|| self.hand.take(filled)).map(|number| self.step(number, 2)).count()
    }

    fn steal(&self) -> usize {
        self.hand.steal(|_| true).map(|number| self.step(number, 2)).iter().count()
    }
}

#[test]
fn each_is_taken_once() {
    model(3, || {
        let scene = Scene::new(ROOM + 1);
        let thieves = [(); 2].map(|()| {
            let scene = Arc::clone(&scene);
            thread::spawn(move || scene.steal())
        });
        let mut filled = Filled::default();
        (1..=ROOM as u32).for_each(|number| scene.put(&mut filled, number));
        let mut taken = scene.hand.take(&mut filled).map(|number| scene.step(number, 2)).iter().count();
        if taken > 0 {
            scene.put(&mut filled, ROOM as u32 + 1);
        }
        let put = ROOM + taken;
        taken += scene.take_all(&mut filled);
        taken += thieves.into_iter().map(|thief| thief.join().expect("nobody panics")).sum::<usize>();
        assert_eq!(taken, put);
        assert!(scene.hand.is_empty());
    });
}

#[test]
fn no_sleeper_misses_one() {
    model(3, || {
        let scene = Scene::new(1);
        let sleeper = {
            let scene = Arc::clone(&scene);
            thread::spawn(move || {
                scene.sleeps.store(true, Relaxed);
                heavy_fence();
                scene.steal()
            })
        };
        let mut filled = Filled::default();
        scene.put(&mut filled, 1);
        light_fence();
        if scene.sleeps.load(Relaxed) {
            let taken = scene.hand.take_back(&mut filled).map(|number| scene.step(number, 2)).iter().count();
            scene.pushed.fetch_add(taken, Relaxed);
        }
        // From here on the worker is busy: what is at hand is for others to find, who do not look again.
        let stolen = sleeper.join().expect("nobody panics");
        assert_eq!(stolen + scene.pushed.load(Relaxed), 1, "nobody has it");
    });
}

//! Tasks that wait at home under loom: each is taken once, and no sleeper misses one.
//!
//! Each of these, done by hand to `at_home.rs`, makes a model fail: room for more than is looked at, or a look at less;
//! a worker that says it is further than it is; a place that is taken for one in another round; counts without the
//! parity of the round; a release of one of several by a load and a store; tasks that are taken without an exchange; one
//! that is ready for a moment before it is taken at once; no fence on either side of a sleeper.

use super::{Count, OnShelf, Position, Round, Shelf};
use crate::fence::{heavy_fence, light_fence};
use crate::model::model;
use loom::sync::Arc;
use loom::sync::atomic::{AtomicBool, AtomicUsize, Ordering::*};
use loom::thread;

/// Tasks on one shelf, each of which waits for this many others.
struct Scene {
    links: Vec<u32>,
    counts: Vec<Count>,
    shelf: Shelf,
    /// How often each was taken, or was scheduled elsewhere.
    begun: Vec<AtomicUsize>,
    sleeps: AtomicBool,
}

impl OnShelf for Scene {
    fn len(&self) -> usize {
        self.links.len()
    }

    fn count(&self, place: usize) -> &Count {
        &self.counts[place]
    }

    fn links(&self, place: usize) -> u32 {
        self.links[place]
    }
}

const FIRST: Round = Round(1);

impl Scene {
    fn new(links: &[u32]) -> Arc<Scene> {
        Arc::new(Scene {
            links: links.to_vec(),
            counts: links.iter().map(|links| Count::new(*links)).collect(),
            shelf: Shelf::default(),
            begun: links.iter().map(|_| AtomicUsize::new(0)).collect(),
            sleeps: AtomicBool::new(false),
        })
    }

    fn begin(&self, place: usize) {
        self.begun[place].fetch_add(1, Relaxed);
    }

    /// Ends a predecessor of the task in this place: leaves it, if there is room, or schedules it elsewhere. Returns
    /// whether it was left.
    fn end_before(&self, round: Round, place: usize) -> bool {
        if self.shelf.has_room(round, place) {
            return self.counts[place].release();
        }
        if self.counts[place].release_and_take(round, self.links[place]) {
            self.begin(place);
        }
        false
    }

    /// Takes at home until there is nothing.
    fn stay(&self, at: &mut Position, round: Round) {
        while let Some(place) = self.shelf.take(at, round, self) {
            self.begin(place);
        }
    }

    fn steal(&self, round: Round) {
        if let Some(place) = self.shelf.steal(round, self) {
            self.begin(place);
        }
    }

    fn assert_begun(&self, times: usize) {
        let begun: Vec<usize> = self.begun.iter().map(|begun| begun.load(Relaxed)).collect();
        assert!(begun.iter().all(|begun| *begun == times), "begun {begun:?} times");
    }
}

fn spawn(scene: &Arc<Scene>, what: impl FnOnce(&Scene) + 'static) -> thread::JoinHandle<()> {
    let scene = Arc::clone(scene);
    thread::spawn(move || what(&scene))
}

/// Three tasks, of which the last two wait for two others each: two workers end those, one of them at home.
#[test]
fn each_task_is_taken_once() {
    model(3, || {
        let scene = Scene::new(&[1, 2, 1]);
        let other = spawn(&scene, |scene| {
            scene.end_before(FIRST, 1);
            scene.end_before(FIRST, 2);
            scene.steal(FIRST);
        });
        let mut at = Position::default();
        scene.end_before(FIRST, 0);
        scene.stay(&mut at, FIRST);
        scene.end_before(FIRST, 1);
        scene.stay(&mut at, FIRST);
        other.join().expect("nobody panics");
        scene.stay(&mut at, FIRST);
        scene.assert_begun(1);
    });
}

/// The worker at home goes on, and so its window, while another one leaves a task, and a third falls asleep.
#[test]
fn no_sleeper_misses_a_task() {
    model(3, || {
        let scene = Scene::new(&[1, 1, 1]);
        assert!(scene.end_before(FIRST, 0));
        let home = spawn(&scene, |scene| {
            // It takes what is ready now, and is busy from then on.
            if let Some(place) = scene.shelf.take(&mut Position::default(), FIRST, scene) {
                scene.begin(place);
            }
        });
        let sleeper = spawn(&scene, |scene| {
            scene.sleeps.store(true, Relaxed);
            heavy_fence();
            (0..3).for_each(|_| scene.steal(FIRST));
        });
        let mut woke = false;
        for place in [1, 2] {
            if scene.end_before(FIRST, place) {
                light_fence();
                woke |= scene.sleeps.load(Relaxed);
            }
        }
        home.join().expect("nobody panics");
        sleeper.join().expect("nobody panics");
        if woke {
            (0..3).for_each(|_| scene.steal(FIRST));
        }
        scene.assert_begun(1);
    });
}

/// A worker that looks late takes what is ready in the next round, or nothing.
#[test]
fn who_looks_late_takes_nothing_twice() {
    model(3, || {
        let scene = Scene::new(&[1, 1]);
        let mut at = Position::default();
        let late = spawn(&scene, |scene| scene.steal(FIRST));
        for round in [FIRST, Round(2), Round(3)] {
            // As where a scheduler is to hear of the one, and not of the other.
            if scene.counts[0].release_and_take(round, 1) {
                scene.begin(0);
            }
            scene.end_before(round, 1);
            scene.stay(&mut at, round);
            while scene.begun[1].load(Acquire) < round.0 as usize {
                thread::yield_now();
            }
        }
        late.join().expect("nobody panics");
        scene.assert_begun(3);
    });
}

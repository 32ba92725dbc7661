//! Teams that gather, under loom: no deadlock, and one order for all who are in two teams.
//!
//! Each of these, done by hand to `gathering.rs`, makes a model fail: lists that are appended to without the lock for
//! all of them; a leader who does not wait for the others; a last comer who does not tell the leader; a leader who
//! goes without dismissing the others.

use super::{Gathering, Gatherings};
use crate::model::model;
use crate::sleep::Sleep;
use loom::sync::atomic::{AtomicUsize, Ordering::*};
use loom::thread;
use std::sync::Arc;

struct Scene {
    gatherings: Gatherings<usize>,
    sleep: Sleep,
    /// Which members of each gathering are there.
    present: Vec<AtomicUsize>,
    /// How many gatherings each worker has attended.
    attended: Vec<AtomicUsize>,
}

impl Scene {
    fn new(workers: usize, gatherings: usize) -> Arc<Scene> {
        Arc::new(Scene {
            gatherings: Gatherings::new(workers),
            sleep: Sleep::new(workers),
            present: (0..gatherings).map(|_| AtomicUsize::new(0)).collect(),
            attended: (0..workers).map(|_| AtomicUsize::new(0)).collect(),
        })
    }

    /// As a member does that found a parallel task.
    fn call(&self, number: usize, members: &[usize], by: Option<usize>) {
        let gathering = Arc::new(Gathering::new(members.into(), number));
        self.gatherings.enlist(&gathering);
        for member in members.iter().filter(|member| Some(**member) != by) {
            self.sleep.wake(*member);
        }
    }

    fn attend(&self, me: usize, gathering: &Gathering<usize>, members: usize) {
        let present = &self.present[gathering.purpose];
        self.attended[me].fetch_add(1, Relaxed);
        present.fetch_add(1, Relaxed);
        if gathering.is_led_by(me) {
            let leading = gathering.lead();
            assert_eq!(present.load(Relaxed), members, "all are there");
            present.store(100, Relaxed);
            drop(leading);
        } else {
            gathering.follow();
            assert_eq!(present.load(Relaxed), 100, "the task has run");
        }
    }

    /// Attends `count` gatherings, asleep while there is none.
    fn work(&self, me: usize, count: usize, members: usize) {
        for _ in 0..count {
            let gathering = loop {
                if let Some(gathering) = self.gatherings.next(me) {
                    break gathering;
                }
                self.sleep.announce(me);
                if let Some(gathering) = self.gatherings.next(me) {
                    self.sleep.retract(me);
                    break gathering;
                }
                self.sleep.sleep(me);
                self.sleep.retract(me);
            };
            self.attend(me, &gathering, members);
        }
    }
}

fn spawn(scene: &Arc<Scene>, body: impl FnOnce(&Scene) + 'static) -> thread::JoinHandle<()> {
    let scene = Arc::clone(scene);
    thread::spawn(move || body(&scene))
}

#[test]
fn members_that_sleep_come() {
    model(2, || {
        let scene = Scene::new(2, 1);
        let workers = [0, 1].map(|me| spawn(&scene, move |scene| scene.work(me, 1, 2)));
        scene.call(0, &[0, 1], None);
        workers.into_iter().for_each(|worker| worker.join().expect("it attends"));
    });
}

/// Both members find a task for the same two, at once: were the lists in different orders, each would wait for the
/// other.
#[test]
fn two_teams_of_the_same_members_meet_in_one_order() {
    model(3, || {
        let scene = Scene::new(2, 2);
        let workers = [0, 1].map(|me| {
            spawn(&scene, move |scene| {
                scene.call(me, &[0, 1], Some(me));
                scene.work(me, 2, 2);
            })
        });
        workers.into_iter().for_each(|worker| worker.join().expect("it attends both"));
        assert!(scene.attended.iter().all(|attended| attended.load(Relaxed) == 2));
    });
}

/// A ring: each worker is in two of three teams.
#[test]
fn overlapping_teams_come_to_an_end() {
    model(2, || {
        let scene = Scene::new(3, 3);
        let workers = [1, 2].map(|me| {
            spawn(&scene, move |scene| {
                scene.call(me, &[me.min((me + 1) % 3), me.max((me + 1) % 3)], Some(me));
                scene.work(me, 2, 2);
            })
        });
        scene.call(0, &[0, 1], Some(0));
        scene.work(0, 2, 2);
        workers.into_iter().for_each(|worker| worker.join().expect("it attends both"));
    });
}

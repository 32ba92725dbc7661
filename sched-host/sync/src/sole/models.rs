//! Threads that enter at the same moment, under loom: values are changed by one at a time, and no change is lost.
//!
//! Each of these, done by hand to `sole.rs`, makes a model fail: no fence on either side; a place that is not looked at
//! again; values that are shared before the holder has left; a relaxed word of the holder that it has left, or of the
//! other thread that values are shared.

use super::{InTurn, Right, Sole};
use crate::model::model;
use loom::sync::Arc;
use loom::sync::atomic::{AtomicBool, Ordering::SeqCst};
use loom::thread;

struct World {
    sole: Sole,
    values: [InTurn<u32>; 2],
}

impl World {
    fn new() -> Arc<World> {
        let sole = Sole::default();
        let values = std::array::from_fn(|_| InTurn::new(sole.number(), 0));
        Arc::new(World { sole, values })
    }

    /// Changes both values, in one step for all others.
    fn change(&self) {
        match self.sole.enter() {
            Right::Alone(mut alone) => {
                self.values.iter().for_each(|value| value.alone(&mut alone, |value| *value += 1))
            }
            Right::Shared(shared) => {
                let mut locked = self.values.each_ref().map(|value| value.shared(shared));
                let before = locked.each_mut().map(|value| value.with(|value| *value));
                assert_eq!(before[0], before[1], "they change together");
                locked.iter_mut().for_each(|value| value.with(|value| *value += 1));
            }
        }
    }

    fn run(times: [u32; 3], preemptions: usize) {
        model(preemptions, move || {
            let world = World::new();
            let threads = times[1..].iter().filter(|times| **times > 0).map(|times| {
                let (world, times) = (Arc::clone(&world), *times);
                thread::spawn(move || (0..times).for_each(|_| world.change()))
            });
            let threads: Vec<_> = threads.collect();
            (0..times[0]).for_each(|_| world.change());
            threads.into_iter().for_each(|thread| thread.join().expect("it changes both"));
            let mut right = world.sole.enter();
            let after = world.values.each_ref().map(|value| value.with(&mut right, |value| *value));
            assert_eq!(after, [times.iter().sum::<u32>(); 2]);
        });
    }
}

/// A thread alone counts what it takes, unless it finds values shared: then it looks whether all is over. The other
/// thread says that it is, has values shared, and counts.
#[test]
fn who_has_values_shared_sees_all_that_others_took_alone() {
    model(3, || {
        let world = World::new();
        let over = Arc::new(AtomicBool::new(false));
        let thread = thread::spawn({
            let (world, over) = (Arc::clone(&world), Arc::clone(&over));
            move || {
                let mut right = world.sole.enter();
                let takes = matches!(right, Right::Alone(_)) || !over.load(SeqCst);
                if takes {
                    world.values[0].with(&mut right, |value| *value += 1);
                }
                (matches!(right, Right::Alone(_)), takes)
            }
        });
        over.store(true, SeqCst);
        world.sole.share();
        let seen = world.values[0].with(&mut world.sole.enter(), |value| *value);
        let (was_alone, took) = thread.join().expect("it looks");
        assert_eq!(seen == 1, was_alone && took);
    });
}

#[test]
fn a_holder_that_comes_back_meets_another() {
    World::run([2, 1, 0], 3);
}

#[test]
fn two_others_end_it_at_once() {
    World::run([1, 1, 1], 1);
}

//! A list that is kept while somebody follows it, under loom: it has everything, whenever somebody began.
//!
//! Each of these, done by hand to `follow.rs` or to the maker below, makes a model fail: no fence on either side; a
//! look at the flag before the thing is stored; things that are gathered before the flag is set; a list that goes with
//! the first follower. (That what is added without followers is not taken, and the flag is taken away, only keeps
//! memory and time.)

use super::Follow;
use crate::model::model;
use loom::sync::Arc;
use loom::sync::atomic::{AtomicBool, Ordering::*};
use loom::thread;
use std::collections::BTreeSet;

const THINGS: usize = 2;

/// Where things are found by who looks at everything. The flags order nothing by themselves: the protocol has to.
struct World {
    there: [AtomicBool; THINGS],
    list: Follow<BTreeSet<usize>>,
}

impl World {
    fn new() -> Arc<World> {
        Arc::new(World { there: std::array::from_fn(|_| AtomicBool::new(false)), list: Follow::new(false) })
    }

    fn make(&self, thing: usize) {
        self.there[thing].store(true, Relaxed);
        if self.list.is_attended() {
            self.list.add(|list| _ = list.insert(thing));
        }
    }

    fn begin(&self) {
        self.list.begin(|| (0..THINGS).filter(|thing| self.there[*thing].load(Relaxed)).collect());
    }

    fn count(&self) -> usize {
        self.list.look(|list| list.len())
    }
}

#[test]
fn who_begins_meanwhile_has_everything() {
    model(3, || {
        let world = World::new();
        let makers: Vec<_> = (0..THINGS)
            .map(|thing| {
                let world = Arc::clone(&world);
                thread::spawn(move || world.make(thing))
            })
            .collect();
        world.begin();
        makers.into_iter().for_each(|maker| maker.join().expect("it makes something"));
        assert_eq!(world.count(), THINGS);
    });
}

#[test]
fn who_begins_again_has_everything() {
    model(3, || {
        let world = World::new();
        let maker = {
            let world = Arc::clone(&world);
            thread::spawn(move || (0..THINGS).for_each(|thing| world.make(thing)))
        };
        world.begin();
        world.list.end();
        world.begin();
        maker.join().expect("it makes something");
        assert_eq!(world.count(), THINGS);
        world.list.end();
        assert_eq!(world.count(), 0, "nothing is kept for nobody");
    });
}

#[test]
fn the_list_stays_while_one_of_two_followers_is_there() {
    model(3, || {
        let world = World::new();
        world.begin();
        let (maker, follower) = (Arc::clone(&world), Arc::clone(&world));
        let maker = thread::spawn(move || (0..THINGS).for_each(|thing| maker.make(thing)));
        let follower = thread::spawn(move || {
            follower.begin();
            follower.list.end();
        });
        maker.join().expect("it makes something");
        follower.join().expect("it goes");
        assert_eq!(world.count(), THINGS);
    });
}

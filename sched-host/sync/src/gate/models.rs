//! The gate under loom: nobody is inside while it is closed, and everybody comes through.
//!
//! Each of these, done by hand to `gate.rs`, makes a model fail: no light fence in `enter`; no heavy one in
//! `close_until`; `closed` read before the lane is counted up; no second look after a closed gate; the lanes read
//! before `closed` is set; a thread that empties its lane when it leaves, though it is inside once more; `Relaxed` for
//! the order of leaving, of opening, of the look at `closed`, or of the look at the lanes.

use super::{Gate, Lane};
use crate::model::model;
use loom::cell::UnsafeCell;
use loom::sync::Arc;
use loom::thread;

/// What calls may touch at once, each its own part, and a closer touches whole.
struct Tree {
    gate: Gate,
    parts: [UnsafeCell<()>; 2],
}

impl Tree {
    fn new() -> Arc<Tree> {
        Arc::new(Tree { gate: Gate::new(1, 1, 1), parts: [UnsafeCell::new(()), UnsafeCell::new(())] })
    }

    fn call(&self, lane: Lane, part: usize) {
        let _inside = self.gate.enter(lane);
        // Loom fails the model when a part is touched by two at once, or without an order between them.
        self.parts[part].with_mut(|_| ());
    }

    fn close(&self) {
        let _closed = self.gate.close_until(|| false).expect("nobody gives up");
        self.parts.iter().for_each(|part| part.with_mut(|_| ()));
    }

    /// Closes, unless somebody is inside. (Where two wait for a third in a loop, each gives way to the other for ever
    /// in some order that loom tries.)
    fn close_at_once(&self) {
        if let Some(_closed) = self.gate.close_until(|| true) {
            self.parts.iter().for_each(|part| part.with_mut(|_| ()));
        }
    }
}

fn spawn(tree: &Arc<Tree>, body: impl FnOnce(&Tree) + 'static) -> thread::JoinHandle<()> {
    let tree = Arc::clone(tree);
    thread::spawn(move || body(&tree))
}

#[test]
fn nobody_is_inside_a_closed_gate() {
    for lane in [Lane::Owned(0), Lane::Thread(0), Lane::Thread(1)] {
        model(4, move || {
            let tree = Tree::new();
            let other = spawn(&tree, move |tree| tree.call(lane, 0));
            tree.close();
            other.join().expect("it comes through");
        });
    }
}

#[test]
fn two_of_three_are_inside() {
    model(2, || {
        let tree = Tree::new();
        let owner = spawn(&tree, |tree| tree.call(Lane::Owned(0), 0));
        let closer = spawn(&tree, Tree::close_at_once);
        tree.call(Lane::Thread(1), 1);
        owner.join().expect("it comes through");
        closer.join().expect("it comes through");
    });
}

#[test]
fn who_enters_again_and_again_is_kept_out() {
    model(3, || {
        let tree = Tree::new();
        let owner = spawn(&tree, |tree| (0..2).for_each(|_| tree.call(Lane::Owned(0), 0)));
        tree.close();
        owner.join().expect("it comes through");
    });
}

#[test]
fn who_was_kept_out_comes_in_before_the_next_closing() {
    for lane in [Lane::Owned(0), Lane::Thread(0), Lane::Thread(1)] {
        model(3, move || {
            let tree = Tree::new();
            let other = spawn(&tree, move |tree| tree.call(lane, 0));
            tree.close();
            tree.close();
            other.join().expect("it comes through");
        });
    }
}

#[test]
fn one_closes_after_the_other() {
    model(2, || {
        let tree = Tree::new();
        let closer = spawn(&tree, Tree::close);
        tree.close();
        tree.call(Lane::Owned(0), 0);
        closer.join().expect("it comes through");
    });
}

#[test]
fn a_thread_that_is_inside_twice_stays_until_it_has_left_twice() {
    for lane in [Lane::Thread(0), Lane::Thread(1)] {
        model(3, move || {
            let tree = Tree::new();
            let other = spawn(&tree, move |tree| {
                let _outer = tree.gate.enter(lane);
                drop(tree.gate.enter(lane));
                tree.parts[0].with_mut(|_| ());
            });
            tree.close_at_once();
            other.join().expect("it comes through");
        });
    }
}

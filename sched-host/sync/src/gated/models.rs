//! What stands behind the gate under loom: it is exchanged while others use it, each task is taken once, and nobody
//! sleeps while there is one.
//!
//! The tree and the worker below do what `tree::swap` and the worker's thread do: the members and the version before
//! the push, the version before each pull. (Loom reports a worker that sleeps for ever as a deadlock, and ends the
//! process.)

use super::Gated;
use crate::fence::light_fence;
use crate::gate::{Gate, Lane};
use crate::model::model;
use crate::sleep::Sleep;
use loom::sync::Arc;
use loom::sync::atomic::{AtomicU64, AtomicUsize, Ordering::*};
use loom::thread;

/// A tree: a number of tasks, for one worker.
struct Tree {
    /// Relaxed, and not even a read-modify-write: the protocol has to order it.
    tasks: AtomicUsize,
    worker: usize,
}

/// A context whose workers are those of its tree, and what its workers share.
struct Context {
    gated: Gated<Tree>,
    /// Which worker it has, and how often that changed.
    member: AtomicUsize,
    version: AtomicU64,
    sleep: Sleep,
    /// Tasks that were taken before the swap.
    taken: AtomicUsize,
}

impl Context {
    fn new(tasks: usize) -> Arc<Context> {
        let tree = Tree { tasks: AtomicUsize::new(tasks), worker: 0 };
        Arc::new(Context {
            gated: Gated::new(Gate::new(2, 1, 1), tree),
            member: AtomicUsize::new(0),
            version: AtomicU64::new(1),
            sleep: Sleep::new(2),
            taken: AtomicUsize::new(0),
        })
    }

    fn push(&self, tree: &Tree) {
        tree.tasks.fetch_add(1, Relaxed);
        light_fence();
        if !self.sleep.sleeping().is_empty() && self.sleep.sleeping().contains(tree.worker as u32) {
            self.sleep.wake(tree.worker);
        }
    }

    fn push_from_outside(&self) {
        self.gated.inside(Lane::Thread(1), |tree| self.push(tree));
    }

    /// Moves the tree and its tasks to another worker.
    fn swap(&self, worker: usize) {
        let swapped = self.gated.alone(
            || false,
            |tree| {
                let tasks = tree.tasks.load(Relaxed);
                *tree = Tree { tasks: AtomicUsize::new(0), worker };
                self.member.store(worker, SeqCst);
                self.version.fetch_add(1, SeqCst);
                (0..tasks).for_each(|_| self.push(tree));
            },
        );
        assert!(swapped.is_some(), "nobody gives up");
    }

    fn pull(&self, worker: usize) -> bool {
        self.gated.inside(Lane::Owned(worker), |tree| {
            let tasks = tree.tasks.load(Relaxed);
            let takes = tree.worker == worker && tasks > 0;
            if takes {
                tree.tasks.store(tasks - 1, Relaxed);
            }
            takes
        })
    }
}

/// What a worker knows: whether it serves the context, as of a version.
struct Worker<'a> {
    context: &'a Context,
    id: usize,
    version: u64,
    serves: bool,
}

impl Worker<'_> {
    fn pull(&mut self) -> bool {
        let version = self.context.version.load(Acquire);
        if version != self.version {
            self.version = version;
            self.serves = self.context.member.load(SeqCst) == self.id;
        }
        self.serves && self.context.pull(self.id)
    }

    /// Takes one task, as the worker's thread of the runtime does.
    fn take(&mut self) {
        if self.pull() {
            return;
        }
        loop {
            self.context.sleep.announce(self.id);
            if self.pull() {
                self.context.sleep.retract(self.id);
                return;
            }
            self.context.sleep.sleep(self.id);
            self.context.sleep.retract(self.id);
            if self.pull() {
                return;
            }
        }
    }
}

fn worker(context: &Context, id: usize) -> Worker<'_> {
    Worker { context, id, version: 0, serves: false }
}

fn spawn(context: &Arc<Context>, body: impl FnOnce(&Context) + 'static) -> thread::JoinHandle<()> {
    let context = Arc::clone(context);
    thread::spawn(move || body(&context))
}

#[test]
fn the_task_finds_the_worker_that_comes() {
    model(3, || {
        let context = Context::new(1);
        let late = spawn(&context, |context| worker(context, 1).take());
        context.swap(1);
        late.join().expect("it gets the task");
        assert!(!context.pull(1), "each task once");
    });
}

#[test]
fn a_task_that_is_pushed_during_a_swap_is_not_lost() {
    // More preemptions take minutes: three threads wait for each other in loops.
    model(1, || {
        let context = Context::new(0);
        let late = spawn(&context, |context| worker(context, 1).take());
        let pusher = spawn(&context, Context::push_from_outside);
        context.swap(1);
        late.join().expect("it gets the task");
        pusher.join().expect("it comes through");
        assert!(!context.pull(1), "each task once");
    });
}

#[test]
fn a_task_is_taken_before_or_after_the_swap() {
    model(3, || {
        let context = Context::new(1);
        let puller = spawn(&context, |context| {
            let taken = usize::from(context.pull(0));
            context.taken.fetch_add(taken, SeqCst);
        });
        context.swap(1);
        let after = usize::from(context.pull(1));
        puller.join().expect("it comes through");
        assert_eq!(context.taken.load(SeqCst) + after, 1, "once");
    });
}

//! Sleeping workers under loom: no task waits while a worker sleeps.
//!
//! Each of these, done by hand to `sleep.rs` or to the worker below, makes a model fail: no second look after
//! `announce`, or a second look before it; no fence in `announce`; no fence before the waker's look at the bits; no
//! wake passed on when `retract` says that somebody counted on the worker; a notice that `announce` takes back after
//! the bit is set; a wake without the notice; a wake that leaves the bit alone. (Loom reports a worker that sleeps for
//! ever as a deadlock, and ends the process.) One that no model here notices: no `retract` after sleeping. It is there
//! for a late notice, which takes more rounds than loom can try.

use super::Sleep;
use crate::model::model;
use loom::sync::Arc;
use loom::sync::atomic::{AtomicUsize, Ordering::*};
use loom::thread;

/// Tasks are but counted, and the count orders nothing by itself: the protocol has to.
struct Pool {
    tasks: AtomicUsize,
    sleep: Sleep,
}

impl Pool {
    fn new(workers: usize) -> Arc<Pool> {
        Arc::new(Pool { tasks: AtomicUsize::new(0), sleep: Sleep::new(workers) })
    }

    fn push(&self) {
        self.tasks.fetch_add(1, Relaxed);
        self.sleep.wake_any(|_| true);
    }

    /// Whether there was a task.
    fn pull(&self) -> bool {
        let mut tasks = self.tasks.load(Relaxed);
        while tasks > 0 {
            match self.tasks.compare_exchange(tasks, tasks - 1, Relaxed, Relaxed) {
                Ok(_) => return true,
                Err(now) => tasks = now,
            }
        }
        false
    }

    /// Takes one task, as the worker's thread of the runtime does.
    fn take(&self, me: usize) {
        if self.pull() {
            return;
        }
        loop {
            self.sleep.announce(me);
            if self.pull() {
                if self.sleep.retract(me) {
                    self.sleep.wake_any(|_| true);
                }
                return;
            }
            self.sleep.sleep(me);
            self.sleep.retract(me);
            if self.pull() {
                return;
            }
        }
    }
}

fn spawn(pool: &Arc<Pool>, body: impl FnOnce(&Pool) + 'static) -> thread::JoinHandle<()> {
    let pool = Arc::clone(pool);
    thread::spawn(move || body(&pool))
}

// A model that deadlocks fails: a worker that sleeps for ever while there is a task for it.

#[test]
fn a_task_is_taken() {
    model(4, || {
        let pool = Pool::new(1);
        let worker = spawn(&pool, |pool| pool.take(0));
        pool.push();
        worker.join().expect("it takes the task");
    });
}

#[test]
fn tasks_of_two_threads_are_taken() {
    model(3, || {
        let pool = Pool::new(1);
        let worker = spawn(&pool, |pool| (0..2).for_each(|_| pool.take(0)));
        let other = spawn(&pool, Pool::push);
        pool.push();
        other.join().expect("it pushes");
        worker.join().expect("it takes both tasks");
    });
}

/// Each worker takes one task, and is busy for ever then: a task that one of them was woken for and did not take must
/// go to the other.
#[test]
fn nobody_sleeps_while_there_is_a_task() {
    model(3, || {
        let pool = Pool::new(2);
        let workers = [0, 1].map(|me| spawn(&pool, move |pool| pool.take(me)));
        pool.push();
        pool.push();
        workers.into_iter().for_each(|worker| worker.join().expect("it takes a task"));
    });
}

#[test]
fn nobody_sleeps_through_the_end() {
    model(3, || {
        let pool = Pool::new(1);
        let stop = Arc::new(AtomicUsize::new(0));
        let stopped = Arc::clone(&stop);
        let worker = spawn(&pool, move |pool| {
            while stopped.load(SeqCst) == 0 {
                pool.sleep.announce(0);
                if stopped.load(SeqCst) != 0 {
                    break;
                }
                pool.sleep.sleep(0);
                pool.sleep.retract(0);
            }
        });
        stop.store(1, SeqCst);
        pool.sleep.wake_all();
        worker.join().expect("it stops");
    });
}

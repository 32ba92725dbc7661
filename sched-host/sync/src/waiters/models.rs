//! Threads that wait, under loom: each wait ends, and no task stays behind while a worker sleeps.
//!
//! Each of these, done by hand to `waiters.rs`, `sleep.rs` or to the worker below, makes a model fail: no look under
//! the lock of those that park; no notification by `put`; no `disturb` after `tell`; no look at what is waited for
//! after `announce`; no wake passed on by a thread that leaves although somebody counted on its worker.

use super::Waiters;
use crate::model::model;
use crate::sleep::Sleep;
use loom::sync::Arc;
use loom::sync::atomic::{AtomicBool, AtomicUsize, Ordering::*};
use loom::thread;
use std::time::Duration;

/// Number of the worker without a thread.
const MAIN: usize = 0;

/// Tasks are only counted, and the counts order nothing by themselves.
struct Pool {
    tasks: AtomicUsize,
    ended: AtomicUsize,
    workers: usize,
    sleep: Sleep,
    waiters: Waiters<()>,
}

impl Pool {
    fn new(workers: usize, tasks: usize) -> Arc<Pool> {
        let pool = Pool {
            tasks: AtomicUsize::new(tasks),
            ended: AtomicUsize::new(0),
            workers,
            sleep: Sleep::new(workers),
            waiters: Waiters::default(),
        };
        pool.waiters.put(());
        Arc::new(pool)
    }

    fn push(&self) {
        self.tasks.fetch_add(1, Relaxed);
        self.sleep.wake_any(|_| true);
    }

    /// Executes a task, if there is one.
    fn work(&self) -> bool {
        let mut tasks = self.tasks.load(Relaxed);
        while tasks > 0 {
            match self.tasks.compare_exchange(tasks, tasks - 1, Relaxed, Relaxed) {
                Ok(_) => {
                    self.ended.fetch_add(1, Release);
                    self.tell();
                    // Other workers of these models end with a task too.
                    (0..self.workers).filter(|worker| *worker != MAIN).for_each(|worker| self.sleep.disturb(worker));
                    return true;
                }
                Err(now) => tasks = now,
            }
        }
        false
    }

    fn tell(&self) {
        self.waiters.tell();
        self.sleep.disturb(MAIN);
    }

    /// Works as worker `me` until `over`, as workers of the runtime do.
    fn serve(&self, me: usize, over: impl Fn() -> bool) {
        loop {
            while self.work() {}
            if over() {
                return;
            }
            self.sleep.announce(me);
            let worked = self.work();
            if worked || over() {
                if self.sleep.retract(me) {
                    self.sleep.wake_any(|_| true);
                }
                if !worked {
                    return;
                }
            } else {
                self.sleep.sleep(me);
                self.sleep.retract(me);
            }
        }
    }

    /// Waits as a thread of the program does.
    fn wait_until(&self, done: impl Fn() -> bool) {
        self.waiters.wait_until(Duration::MAX, true, &done, || true, |(), _| self.serve(MAIN, &done));
    }

    /// Waits until this number of tasks has ended.
    fn wait(&self, tasks: usize) {
        self.wait_until(|| self.ended.load(Acquire) >= tasks);
    }
}

fn spawn(pool: &Arc<Pool>, body: impl FnOnce(&Pool) + 'static) -> thread::JoinHandle<()> {
    let pool = Arc::clone(pool);
    thread::spawn(move || body(&pool))
}

// A model that deadlocks fails: a thread that waits for ever.

#[test]
fn a_thread_that_waits_executes_what_it_waits_for() {
    model(4, || {
        let pool = Pool::new(1, 0);
        let other = spawn(&pool, Pool::push);
        pool.wait(1);
        other.join().expect("it pushes");
    });
}

#[test]
fn what_happens_elsewhere_ends_the_wait() {
    model(4, || {
        let pool = Pool::new(1, 0);
        let happened = Arc::new(AtomicBool::new(false));
        let happens = Arc::clone(&happened);
        let other = spawn(&pool, move |pool| {
            happens.store(true, Release);
            pool.tell();
        });
        pool.wait_until(|| happened.load(Acquire));
        other.join().expect("it tells");
    });
}

/// Whichever thread is the worker first, the other one is notified, or is the worker next.
#[test]
fn two_threads_that_wait_are_the_worker_in_turn() {
    model(3, || {
        let pool = Pool::new(1, 1);
        let other = spawn(&pool, |pool| {
            pool.wait(1);
            pool.push();
            pool.wait(2);
        });
        pool.wait(2);
        other.join().expect("it has waited");
    });
}

/// A thread that parks because another one is the worker is notified when that one leaves.
#[test]
fn the_worker_does_not_stay_vacant_while_a_thread_waits() {
    model(3, || {
        let pool = Pool::new(1, 0);
        let happened = Arc::new(AtomicBool::new(false));
        let happens = Arc::clone(&happened);
        let other = spawn(&pool, move |pool| {
            happens.store(true, Release);
            pool.tell();
            pool.push();
            pool.wait(1);
        });
        pool.wait_until(|| happened.load(Acquire));
        other.join().expect("it executes the task, or has seen its end");
    });
}

/// The thread leaves when something else has happened, although a task has come for which somebody woke it.
#[test]
fn a_thread_that_leaves_lets_no_task_wait_for_it() {
    model(2, || {
        let pool = Pool::new(2, 0);
        let worker = spawn(&pool, |pool| pool.serve(1, || pool.ended.load(Acquire) == 1));
        let happened = Arc::new(AtomicBool::new(false));
        let happens = Arc::clone(&happened);
        let other = spawn(&pool, move |pool| {
            pool.push();
            happens.store(true, Release);
            pool.tell();
        });
        pool.wait_until(|| happened.load(Acquire));
        other.join().expect("it pushes");
        worker.join().expect("the task has ended");
    });
}

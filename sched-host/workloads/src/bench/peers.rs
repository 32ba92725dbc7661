//! The peers that overhead is compared with.

use super::shapes::Graph;
use parking_lot::{Condvar, Mutex};
use std::collections::VecDeque;
use std::hint::black_box;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering::*};
use std::time::{Duration, Instant};

/// For each task of a graph, the number of tasks that it still waits for.
fn counters(graph: &Graph) -> Vec<AtomicU32> {
    graph.waits_for.iter().map(|count| AtomicU32::new(*count)).collect()
}

/// Executes an empty task; returns the tasks that become ready.
fn execute<'a>(graph: &'a Graph, left: &'a [AtomicU32], task: u32) -> impl Iterator<Item = u32> + 'a {
    black_box(task);
    let released = move |next: &&u32| left[**next as usize].fetch_sub(1, AcqRel) == 1;
    graph.successors[task as usize].iter().filter(released).copied()
}

/// Runs the graph on rayon: one `scope.spawn` for each task.
pub(super) fn on_rayon(pool: &rayon::ThreadPool, graph: &Graph) -> Duration {
    fn spawn<'a>(scope: &rayon::Scope<'a>, graph: &'a Graph, left: &'a [AtomicU32], task: u32) {
        scope.spawn(move |scope| {
            for next in execute(graph, left, task) {
                spawn(scope, graph, left, next);
            }
        });
    }
    let left = counters(graph);
    let began = Instant::now();
    pool.scope(|scope| {
        for task in (0..graph.len() as u32).filter(|task| graph.waits_for[*task as usize] == 0) {
            spawn(scope, graph, &left, task);
        }
    });
    began.elapsed()
}

/// Runs the graph on threads that share one deque behind a mutex, with a condition variable for when it is empty.
pub(super) fn on_deque(workers: usize, graph: &Graph) -> Duration {
    let left = counters(graph);
    let queue = Mutex::new(VecDeque::with_capacity(graph.len()));
    let (filled, unfinished) = (Condvar::new(), AtomicUsize::new(graph.len()));
    let work = || {
        while unfinished.load(Acquire) > 0 {
            let task = {
                let mut queue = queue.lock();
                while queue.is_empty() && unfinished.load(Acquire) > 0 {
                    filled.wait(&mut queue);
                }
                queue.pop_front()
            };
            let Some(task) = task else { break };
            for next in execute(graph, &left, task) {
                queue.lock().push_back(next);
                filled.notify_one();
            }
            if unfinished.fetch_sub(1, AcqRel) == 1 {
                drop(queue.lock());
                filled.notify_all();
            }
        }
    };
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..workers).map(|_| scope.spawn(work)).collect();
        let began = Instant::now();
        for task in (0..graph.len() as u32).filter(|task| graph.waits_for[*task as usize] == 0) {
            queue.lock().push_back(task);
            filled.notify_one();
        }
        threads.into_iter().for_each(|thread| thread.join().expect("an empty task does not panic"));
        began.elapsed()
    })
}

/// Runs `tasks` tasks on threads that share one deque behind a mutex, and never sleep. The thread that fills it waits
/// for each `batch` of them.
pub(super) fn on_deque_by_batches(workers: usize, tasks: usize, batch: usize) -> Duration {
    let queue = Mutex::new(VecDeque::with_capacity(batch));
    let (unfinished, is_over) = (AtomicUsize::new(0), AtomicBool::new(false));
    let work = || {
        while !is_over.load(Acquire) {
            let task = queue.lock().pop_front();
            match task {
                Some(task) => {
                    black_box::<usize>(task);
                    unfinished.fetch_sub(1, AcqRel);
                }
                // There may be fewer processing units than threads.
                None => std::thread::yield_now(),
            }
        }
    };
    std::thread::scope(|scope| {
        (0..workers).for_each(|_| drop(scope.spawn(work)));
        let began = Instant::now();
        for first in (0..tasks).step_by(batch) {
            for task in first..tasks.min(first + batch) {
                unfinished.fetch_add(1, AcqRel);
                queue.lock().push_back(task);
            }
            while unfinished.load(Acquire) > 0 {
                std::thread::yield_now();
            }
        }
        let took = began.elapsed();
        is_over.store(true, Release);
        took
    })
}

/// Measures pairs of a push to and a pop from a deque behind a mutex.
pub(super) fn deque_pairs(pairs: u32) -> Duration {
    let queue = Mutex::new(VecDeque::with_capacity(4));
    let began = Instant::now();
    for number in 0..pairs {
        queue.lock().push_back(number);
        black_box(queue.lock().pop_front());
    }
    began.elapsed()
}

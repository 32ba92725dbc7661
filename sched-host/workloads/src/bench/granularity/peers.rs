//! The peers that granularity is compared with.

use super::kernel::Grid;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering::*};
use std::time::{Duration, Instant};

/// Looks at a column that is not ready before other threads of the machine are let run.
const LOOKS: u32 = 10_000;

/// Runs the grid on threads to which columns are assigned beforehand, and which spin until their neighbours are ready:
/// what dependencies cost without any runtime. They are those of the pool: a new thread would be bound where a runtime
/// has bound the one that starts it.
pub(super) fn on_spinning_threads(pool: &rayon::ThreadPool, grid: &Grid) -> Duration {
    let (arrived, workers) = (AtomicUsize::new(0), pool.current_num_threads());
    let times = pool.broadcast(|thread| {
        arrived.fetch_add(1, AcqRel);
        while arrived.load(Acquire) < workers {
            std::thread::yield_now();
        }
        let began = Instant::now();
        let columns = grid.width * thread.index() / workers..grid.width * (thread.index() + 1) / workers;
        for step in 0..grid.steps {
            for column in columns.clone() {
                for before in grid.pattern.before(grid.width, step, column) {
                    let mut looks = 0;
                    while (grid.done[before].load(Acquire) as usize) < step {
                        looks += 1;
                        if looks % LOOKS == 0 { std::thread::yield_now() } else { std::hint::spin_loop() }
                    }
                }
                grid.execute(step, column);
            }
        }
        (began, Instant::now())
    });
    let began = times.iter().map(|(began, _)| *began).min();
    let ended = times.iter().map(|(_, ended)| *ended).max();
    began.zip(ended).map_or(Duration::ZERO, |(began, ended)| ended - began)
}

/// For each task, the number of tasks that it still waits for, and the columns of the next step that wait for it.
pub(super) struct Counters {
    waits_for: Vec<u32>,
    left: Vec<AtomicU32>,
    followers: Vec<Vec<usize>>,
}

impl Counters {
    pub(super) fn new(grid: &Grid) -> Counters {
        let tasks = || (0..grid.len()).map(|task| (task / grid.width, task % grid.width));
        let waits_for = tasks().map(|(step, column)| grid.pattern.before(grid.width, step, column).count() as u32);
        let waits_for: Vec<u32> = waits_for.collect();
        let mut followers = vec![Vec::new(); grid.len()];
        for (step, column) in tasks() {
            for before in grid.pattern.before(grid.width, step, column) {
                followers[(step - 1) * grid.width + before].push(column);
            }
        }
        Counters { left: waits_for.iter().map(|count| AtomicU32::new(*count)).collect(), waits_for, followers }
    }
}

/// Runs the grid on rayon: the last dependency of each task spawns it. The graph is known beforehand.
pub(super) fn on_rayon(pool: &rayon::ThreadPool, grid: &Grid, counters: &Counters) -> Duration {
    fn spawn<'a>(scope: &rayon::Scope<'a>, grid: &'a Grid, counters: &'a Counters, task: usize) {
        scope.spawn(move |scope| {
            let (step, column) = (task / grid.width, task % grid.width);
            grid.execute(step, column);
            for next in counters.followers[task].iter().map(|column| (step + 1) * grid.width + column) {
                if counters.left[next].fetch_sub(1, AcqRel) == 1 {
                    spawn(scope, grid, counters, next);
                }
            }
        });
    }
    counters.left.iter().zip(&counters.waits_for).for_each(|(left, count)| left.store(*count, Relaxed));
    let began = Instant::now();
    pool.scope(|scope| {
        for task in (0..grid.len()).filter(|task| counters.waits_for[*task] == 0) {
            spawn(scope, grid, counters, task);
        }
    });
    began.elapsed()
}

//! The smallest tasks that keep the workers busy: METG(50 %), the minimum effective task granularity of Task Bench.
//!
//! Every contender executes the same grid of tasks, with kernels of some number of iterations. Its efficiency is the
//! time of all iterations, at the rate of long kernels, over the time that it had the workers; its granularity is this
//! time for each task, overhead included. METG(50 %) is the granularity at which the efficiency is one half: the
//! smaller, the finer the tasks that the contender can be given. (Slaughter et al., Task Bench: A Parameterized
//! Benchmark for Evaluating Parallel Runtime Performance, SC 2020.)

mod kernel;
mod pattern;
mod peers;
mod search;

pub use pattern::Pattern;

use super::BenchError;
use kernel::Grid;
use peers::Counters;
use sched_runtime::{Codelet, Context, Handle, Read, Recording, RunError, Runtime, SubmitError, TaskRef, Write};
use sched_tree::plugin::Registry;
use search::in_turn;
use serde::Serialize;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// What to measure.
#[derive(Clone, Debug)]
pub struct Granularity {
    /// Policies, by name or path.
    pub policies: Vec<String>,
    /// Patterns of dependencies.
    pub patterns: Vec<Pattern>,
    /// Numbers of workers.
    pub workers: Vec<usize>,
    /// Whether the last worker is the thread that submits, while it waits; see
    /// [`Builder::main_worker`](sched_runtime::Builder::main_worker).
    pub main_worker: bool,
    /// Number of tasks in a step.
    pub width: usize,
    /// Number of steps.
    pub steps: usize,
    /// Number of measurements of the two lengths of the kernels between which METG(50 %) lies; the least times count.
    pub rounds: usize,
}

/// One row: a pattern under a policy with a number of workers. METG(50 %) in nanoseconds; `None` where no length that
/// was tried is enough.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct GranularityResult {
    /// The pattern of dependencies.
    pub pattern: Pattern,
    /// Number of workers.
    pub workers: usize,
    /// The policy.
    pub policy: String,
    /// Tasks name the data that they access, which orders them.
    pub data_ns: Option<f64>,
    /// Tasks name the tasks that they wait for.
    pub explicit_ns: Option<f64>,
    /// The tasks with their data are recorded beforehand, and replayed.
    pub replayed_ns: Option<f64>,
    /// METG(50 %) of each peer.
    pub peer_ns: GranularityPeers,
}

/// METG(50 %) of peers on the same grid, in nanoseconds.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct GranularityPeers {
    /// rayon's `scope.spawn`: the last dependency of each task spawns it. The graph is known beforehand.
    pub rayon: Option<f64>,
    /// Threads with columns of their own that spin until their neighbours are ready. The graph is known beforehand.
    pub floor: Option<f64>,
}

/// Measures everything, and reports the progress, from 0 to 1, to `progress`.
///
/// # Errors
/// If a runtime does not start, or a run stalls.
///
/// # Panics
/// If a task is executed before those that it waits for: the figures would be worthless.
pub fn granularity(
    wanted: &Granularity,
    registry: &Arc<Registry>,
    mut progress: impl FnMut(f64),
) -> Result<Vec<GranularityResult>, BenchError> {
    let mut results = Vec::new();
    let rows = wanted.workers.len() * wanted.patterns.len() * wanted.policies.len();
    // Before a runtime binds this thread: its children would be bound there, too.
    let pool = |workers| rayon::ThreadPoolBuilder::new().num_threads(workers).build().expect("a small pool of threads");
    let pools: Vec<rayon::ThreadPool> = wanted.workers.iter().copied().map(pool).collect();
    for (workers, pool) in wanted.workers.iter().copied().zip(&pools) {
        for pattern in wanted.patterns.iter().copied() {
            let grid = Arc::new(Grid::new(pattern, wanted.width, wanted.steps));
            let counters = Counters::new(&grid);
            for policy in &wanted.policies {
                let runtime = super::builder(registry, policy, workers, wanted.main_worker).build()?;
                let contest = Contest::new(&runtime, &grid);
                let recording = contest.record();
                let contenders: [&dyn Fn() -> Result<Duration, RunError>; 5] = [
                    &|| contest.by_data(),
                    &|| contest.by_tasks(),
                    &|| contest.replay(&recording),
                    &|| Ok(peers::on_rayon(pool, &grid, &counters)),
                    &|| Ok(peers::on_spinning_threads(pool, &grid)),
                ];
                let [data_ns, explicit_ns, replayed_ns, rayon, floor] =
                    in_turn(contenders, &grid, workers, wanted.rounds.max(1))?;
                let (policy, peer_ns) = (runtime.policy().to_owned(), GranularityPeers { rayon, floor });
                results.push(GranularityResult {
                    pattern,
                    workers,
                    policy,
                    data_ns,
                    explicit_ns,
                    replayed_ns,
                    peer_ns,
                });
                progress(results.len() as f64 / rows as f64);
            }
        }
    }
    Ok(results)
}

/// Place of a task in the grid.
type Place = (u32, u32);

/// Task Bench's tasks hand on 16 bytes.
type Cell = [u64; 2];

// What a task accesses, by the number of cells that it reads.
type Reads1 = (Read<Cell>, Write<Cell>);
type Reads2 = (Read<Cell>, Read<Cell>, Write<Cell>);
type Reads3 = (Read<Cell>, Read<Cell>, Read<Cell>, Write<Cell>);
type Reads4 = (Read<Cell>, Read<Cell>, Read<Cell>, Read<Cell>, Write<Cell>);
type Reads5 = (Read<Cell>, Read<Cell>, Read<Cell>, Read<Cell>, Read<Cell>, Write<Cell>);

/// The grid on a runtime.
struct Contest<'a> {
    runtime: &'a Runtime,
    grid: &'a Grid,
    free: Codelet<(), Place>,
    reads0: Codelet<(Write<Cell>,), Place>,
    reads1: Codelet<Reads1, Place>,
    reads2: Codelet<Reads2, Place>,
    reads3: Codelet<Reads3, Place>,
    reads4: Codelet<Reads4, Place>,
    reads5: Codelet<Reads5, Place>,
    rows: Vec<Vec<Handle<Cell>>>,
    /// The same for the recording: what others use between two replays has to be put in order anew by each.
    recorded_rows: Vec<Vec<Handle<Cell>>>,
}

/// Submits the tasks of a contest, with the data in `rows` that they access, to a runtime or to a recorder.
macro_rules! submit_by_data {
    ($contest:ident, $to:expr, $rows:expr) => {{
        let (contest, rows) = ($contest, $rows);
        contest.submit(|step, column, before| {
            let (above, row) = (&rows[(step + rows.len() - 1) % rows.len()], &rows[step % rows.len()]);
            let (written, place) = (&row[column], (step as u32, column as u32));
            let read = |number: usize| &above[before[number]];
            let submitted = match before.len() {
                0 => $to.task_with(&contest.reads0, place, (written,)).submit(),
                1 => $to.task_with(&contest.reads1, place, (read(0), written)).submit(),
                2 => $to.task_with(&contest.reads2, place, (read(0), read(1), written)).submit(),
                3 => $to.task_with(&contest.reads3, place, (read(0), read(1), read(2), written)).submit(),
                4 => $to.task_with(&contest.reads4, place, (read(0), read(1), read(2), read(3), written)).submit(),
                _ => {
                    let data = (read(0), read(1), read(2), read(3), read(4), written);
                    $to.task_with(&contest.reads5, place, data).submit()
                }
            };
            submitted.expect("a task with handles of its own runtime");
        })
    }};
}

impl<'a> Contest<'a> {
    fn new(runtime: &'a Runtime, grid: &'a Arc<Grid>) -> Contest<'a> {
        let execute = || {
            let grid = Arc::clone(grid);
            move |(step, column): Place| {
                grid.execute(step as usize, column as usize);
                [u64::from(step), u64::from(column)]
            }
        };
        /// A codelet that executes a task of the grid, and writes its place to its last datum.
        macro_rules! codelet {
            ($($read:ty),*) => {{
                let execute = execute();
                let run = move |context: &Context<'_, Place>, (.., written): ($($read,)* &mut Cell,)| {
                    *written = execute(*context.params);
                };
                runtime.codelet("grid").cpu("grid", run).build()
            }};
        }
        let free = execute();
        let row = |_| (0..grid.width).map(|_| runtime.register([0; 2])).collect();
        let rows = || (0..grid.pattern.rows(grid.steps)).map(row).collect();
        Contest {
            runtime,
            grid,
            free: runtime.codelet("grid").cpu("grid", move |context, ()| _ = free(*context.params)).build(),
            reads0: codelet!(),
            reads1: codelet!(&Cell),
            reads2: codelet!(&Cell, &Cell),
            reads3: codelet!(&Cell, &Cell, &Cell),
            reads4: codelet!(&Cell, &Cell, &Cell, &Cell),
            reads5: codelet!(&Cell, &Cell, &Cell, &Cell, &Cell),
            rows: rows(),
            recorded_rows: rows(),
        }
    }

    /// Submits every task of the grid by `submit`, with the columns of the step before that it waits for.
    fn submit(&self, mut submit: impl FnMut(usize, usize, &[usize])) {
        for step in 0..self.grid.steps {
            for column in 0..self.grid.width {
                let (mut before, mut count) = ([0; Pattern::MOST], 0);
                for column in self.grid.pattern.before(self.grid.width, step, column) {
                    before[count] = column;
                    count += 1;
                }
                submit(step, column, &before[..count]);
            }
        }
    }

    /// Measures what `start` submits, to the end of the last task.
    fn timed(&self, start: impl FnOnce()) -> Result<Duration, RunError> {
        let began = Instant::now();
        start();
        self.runtime.wait_all()?;
        Ok(began.elapsed())
    }

    fn by_data(&self) -> Result<Duration, RunError> {
        self.timed(|| submit_by_data!(self, self.runtime, &self.rows))
    }

    fn record(&self) -> Recording {
        let recording = self.runtime.record(|recorder| {
            submit_by_data!(self, recorder, &self.recorded_rows);
            Ok::<(), SubmitError>(())
        });
        recording.expect("nothing fails")
    }

    fn replay(&self, recording: &Recording) -> Result<Duration, RunError> {
        self.timed(|| _ = self.runtime.replay(recording).expect("the last replay has ended"))
    }

    fn by_tasks(&self) -> Result<Duration, RunError> {
        let mut row: Vec<TaskRef> = Vec::with_capacity(self.grid.width);
        let mut above: Vec<TaskRef> = Vec::with_capacity(self.grid.width);
        let mut list: Vec<TaskRef> = Vec::new();
        let submit = |step: usize, column: usize, before: &[usize]| {
            if column == 0 {
                std::mem::swap(&mut row, &mut above);
                row.clear();
            }
            let task = self.runtime.task_with(&self.free, (step as u32, column as u32), ());
            list.clear();
            list.extend(before.iter().map(|before| above[*before]));
            row.push(task.after(&list).submit().expect("a task without data"));
        };
        self.timed(|| self.submit(submit))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_contender_executes_every_task_after_those_that_it_waits_for() {
        let registry = Arc::new(Registry::compiled_in());
        for pattern in Pattern::ALL {
            let grid = Arc::new(Grid::new(pattern, 5, 20));
            let runtime = super::super::builder(&registry, "tree-eager", 2, false).build().expect("it starts");
            let contest = Contest::new(&runtime, &grid);
            let pool = rayon::ThreadPoolBuilder::new().num_threads(2).build().expect("a small pool of threads");
            let counters = Counters::new(&grid);
            let recording = contest.record();
            let spinning = || Ok(peers::on_spinning_threads(&pool, &grid));
            let contenders: [&dyn Fn() -> Result<Duration, RunError>; 5] = [
                &|| contest.by_data(),
                &|| contest.by_tasks(),
                &|| contest.replay(&recording),
                &|| Ok(peers::on_rayon(&pool, &grid, &counters)),
                &spinning,
            ];
            for contender in contenders {
                grid.restart(1);
                assert!(!grid.is_done());
                contender().expect("no run stalls");
                assert!(grid.is_done(), "{pattern}");
            }
            if pattern == Pattern::Stencil {
                // The last row, of tasks that were submitted and of those that were replayed.
                for rows in [&contest.rows, &contest.recorded_rows] {
                    let last = runtime.read(&rows[(grid.steps - 1) % 2][3]).expect("its task ended well");
                    assert_eq!(*last, [19, 3]);
                }
            }
        }
    }
}

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

pub use pattern::Pattern;

use super::BenchError;
use kernel::{Grid, nanoseconds_per_iteration};
use peers::Counters;
use sched_runtime::{Codelet, Context, Handle, Read, Recording, RunError, Runtime, SubmitError, TaskRef, Write};
use sched_tree::plugin::Registry;
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
    /// Number of measurements of each length of the kernels; the least time counts.
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
    let steps = wanted.workers.len() * wanted.patterns.len() * wanted.policies.len();
    for workers in wanted.workers.iter().copied() {
        for pattern in wanted.patterns.iter().copied() {
            let grid = Arc::new(Grid::new(pattern, wanted.width, wanted.steps));
            let measure = Measure { grid: &grid, workers, rounds: wanted.rounds.max(1) };
            let peer_ns = measure.peers()?;
            for policy in &wanted.policies {
                let runtime = super::builder(registry, policy, workers, wanted.main_worker).build()?;
                let contest = Contest::new(&runtime, &grid);
                let recording = contest.record();
                results.push(GranularityResult {
                    pattern,
                    workers,
                    policy: runtime.policy().to_owned(),
                    data_ns: measure.metg(|| contest.by_data())?,
                    explicit_ns: measure.metg(|| contest.by_tasks())?,
                    replayed_ns: measure.metg(|| contest.replay(&recording))?,
                    peer_ns,
                });
                progress(results.len() as f64 / steps as f64);
            }
        }
    }
    Ok(results)
}

/// How a contender is measured.
struct Measure<'a> {
    grid: &'a Grid,
    workers: usize,
    rounds: usize,
}

impl Measure<'_> {
    fn peers(&self) -> Result<GranularityPeers, RunError> {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(self.workers).build().expect("a small pool of threads");
        let counters = Counters::new(self.grid);
        Ok(GranularityPeers {
            rayon: self.metg(|| Ok(peers::on_rayon(&pool, self.grid, &counters)))?,
            floor: self.metg(|| Ok(peers::on_spinning_threads(self.workers, self.grid)))?,
        })
    }

    /// METG(50 %) of a contender, in nanoseconds.
    fn metg(&self, run: impl Fn() -> Result<Duration, RunError>) -> Result<Option<f64>, RunError> {
        let iteration = nanoseconds_per_iteration();
        least_granularity(|iterations| {
            let mut least = Duration::MAX;
            for _ in 0..self.rounds {
                self.grid.restart(iterations);
                least = run()?.min(least);
                assert!(self.grid.is_done(), "every task is executed once");
            }
            let granularity = least.as_nanos() as f64 * self.workers as f64 / self.grid.len() as f64;
            Ok(Point { granularity, useful: f64::from(iterations) * iteration })
        })
    }
}

/// What was measured with kernels of some number of iterations.
#[derive(Clone, Copy)]
struct Point {
    /// Time of the workers for a task, in nanoseconds.
    granularity: f64,
    /// The part of it that iterations take.
    useful: f64,
}

impl Point {
    /// By how much the granularity exceeds that of an efficiency of one half.
    fn excess(&self) -> f64 {
        self.granularity - 2.0 * self.useful
    }
}

/// The longest kernels that are tried, in iterations: some 0.1 ms. On a machine whose workers do not get their cores no
/// length is enough, and the search ends soon nevertheless.
const MOST_ITERATIONS: u32 = 1 << 13;

/// The granularity with an efficiency of one half, which grows with the number of iterations: between the two numbers
/// that enclose it, and that differ by one or by at most 3 %, it is interpolated.
fn least_granularity<E>(measure: impl Fn(u32) -> Result<Point, E>) -> Result<Option<f64>, E> {
    let is_enough = |point: &Point| point.excess() <= 0.0;
    let (mut few, mut below) = (0, None);
    let mut many = 32;
    let mut above = measure(many)?;
    while !is_enough(&above) {
        (few, below) = (many, Some(above));
        many *= 4;
        if many > MOST_ITERATIONS {
            return Ok(None);
        }
        above = measure(many)?;
    }
    while many - few > (many / 32).max(1) {
        let middle = few + (many - few) / 2;
        let point = measure(middle)?;
        if is_enough(&point) { (many, above) = (middle, point) } else { (few, below) = (middle, Some(point)) }
    }
    // No iteration at all is never enough.
    let below = below.map_or_else(|| measure(0), Ok)?;
    let part = below.excess() / (below.excess() - above.excess());
    Ok(Some(below.granularity + part * (above.granularity - below.granularity)))
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
}

/// Submits the tasks of a contest, with the data that they access, to a runtime or to a recorder.
macro_rules! submit_by_data {
    ($contest:ident, $to:expr) => {{
        let (contest, rows) = ($contest, &$contest.rows);
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
            rows: (0..grid.pattern.rows(grid.steps)).map(row).collect(),
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
        self.timed(|| submit_by_data!(self, self.runtime))
    }

    fn record(&self) -> Recording {
        let recording = self.runtime.record(|recorder| {
            submit_by_data!(self, recorder);
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
    use std::convert::Infallible;

    #[test]
    fn the_least_granularity_is_where_the_efficiency_is_one_half() {
        // As if each task cost an overhead besides its iterations, some of it within its kernel.
        let found = |overhead: f64, iteration: f64| {
            least_granularity(|iterations| {
                let useful = f64::from(iterations) * iteration;
                Ok::<Point, Infallible>(Point { granularity: useful + overhead, useful })
            })
            .expect("nothing fails")
        };
        for overhead in [10.0, 180.0, 2_500.0, 60_000.0] {
            let found = found(overhead, 12.0).expect("it is within what is tried");
            assert!((found / (2.0 * overhead) - 1.0).abs() < 1e-6, "{found} {overhead}");
        }
        assert_eq!(found(1e9, 12.0), None);
        // Whose overhead is less than an iteration.
        assert!(found(0.5, 12.0).is_some_and(|found| (found - 1.0).abs() < 1e-6));
    }

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
            let spinning = || Ok(peers::on_spinning_threads(2, &grid));
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
                // The last row, which the last contender with data wrote.
                let last = runtime.read(&contest.rows[(grid.steps - 1) % 2][3]).expect("its task ended well");
                assert_eq!(*last, [19, 3]);
            }
        }
    }
}

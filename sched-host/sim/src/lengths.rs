//! Execution times of each task on each class of workers and each combined worker, looked up once before the
//! simulation.

use super::SimError;
use super::error::{Lack, Unknown};
use super::platform::{KernelTime, Kernels, Platform};
use sched_core::{Arch, ArchSet, WorkerId};
use sched_graph::{KindId, Task, TaskGraph, TaskId};
use smallvec::SmallVec;
use std::collections::{BTreeMap, HashMap};

/// Execution time of a task that cannot run on a worker.
pub(super) const NEVER: u64 = u64::MAX;

/// Tasks with equal execution times share a row.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) struct Row(pub(super) u32);

impl Row {
    const fn index(self) -> usize {
        self.0 as usize
    }
}

/// See the [module](self).
#[derive(Debug)]
pub(super) struct Lengths {
    /// Number of columns: first one for each class of workers, then one for each kind of combined worker.
    columns: usize,
    teams: Vec<TeamKind>,
    /// The column of each combined worker.
    of_team: Vec<usize>,
    /// Nanoseconds, by row and column.
    nanos: Vec<u64>,
    /// Architectures that can run the tasks of a row.
    archs: Vec<ArchSet>,
    /// Footprint of a task of a row; 0 for none.
    footprints: Vec<u32>,
    /// Maximum number of workers that can execute a task of a row together.
    widths: Vec<u16>,
    /// Longest execution time of a row.
    longest: Vec<u64>,
    /// Shortest execution time of a row on workers that can run it; 0 if none can.
    shortest: Vec<u64>,
    /// The row of each task.
    row_of: Vec<Row>,
}

/// Which tasks share a row of lengths that are [scaled](Lengths::scaled).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Rows {
    /// Those that shared one before.
    Shared,
    /// None: each task has its own.
    OfEach,
}

/// Combined workers with equal execution times.
#[derive(PartialEq, Eq, Debug)]
struct TeamKind {
    size: u16,
    /// Classes of the members, ascending.
    classes: Vec<usize>,
}

/// What the execution times of a task depend on.
#[derive(Clone, PartialEq, Eq, Hash)]
struct RowKey {
    kind: KindId,
    footprint: Option<u32>,
    bytes: u64,
    flops: u64,
    /// Architectures and nanoseconds that the graph gives.
    given: SmallVec<[(Arch, u64); 2]>,
}

impl RowKey {
    /// That of a task whose data has this size.
    fn of(task: &Task, bytes: u64) -> RowKey {
        let nanos = |arch| task.lengths.get(arch).map_or(0, |length| length.as_nanos() as u64);
        let given = task.lengths.archs().iter().map(|arch| (arch, nanos(arch))).collect();
        RowKey { kind: task.kind, footprint: task.footprint, bytes, flops: task.flops.to_bits(), given }
    }
}

/// Whether two tasks of one kind with data of one size have equal keys. Most graphs have thousands of such tasks, and
/// few keys.
fn have_equal_keys(one: &Task, other: &Task) -> bool {
    one.footprint == other.footprint && one.flops.to_bits() == other.flops.to_bits() && one.lengths == other.lengths
}

impl Lengths {
    /// Execution times of the tasks of `graph`, where `combined` has the members of each combined worker.
    ///
    /// # Errors
    /// If no worker of the platform can run some tasks; all kinds of such tasks are named.
    pub(super) fn new(
        graph: &TaskGraph,
        platform: &Platform,
        combined: &[Box<[WorkerId]>],
    ) -> Result<Lengths, SimError> {
        let (teams, of_team) = team_kinds(platform, combined);
        let workers_by_class = platform.workers_by_class();
        let mut rows: HashMap<RowKey, Row> = HashMap::new();
        // The row of the last task of each kind, which mostly is that of the next one.
        let mut latest: Vec<Option<(&Task, u64, Row)>> = vec![None; graph.kinds.len()];
        let mut unknown: BTreeMap<KindId, Unknown> = BTreeMap::new();
        let mut lengths = Lengths::without_rows(platform.classes.len(), teams, of_team, graph.tasks.len());
        for (id, task) in graph.ids().zip(&graph.tasks) {
            let bytes = graph.bytes_of(task);
            let next = Row(lengths.archs.len() as u32);
            let latest = &mut latest[task.kind.index()];
            let row = match *latest {
                Some((last, last_bytes, row)) if last_bytes == bytes && have_equal_keys(last, task) => row,
                _ => *rows.entry(RowKey::of(task, bytes)).or_insert(next),
            };
            *latest = Some((task, bytes, row));
            if row == next {
                lengths.add(graph, platform, &workers_by_class, task);
            }
            lengths.row_of.push(row);
            let kind = graph.kind_of(task);
            if kind.runs && lengths.archs(row).is_empty() {
                let entry = unknown.entry(task.kind).or_insert_with(|| Unknown {
                    kind: kind.name.clone(),
                    tasks: 0,
                    first: id.index(),
                    lack: lack(platform, &kind.name, task, &workers_by_class),
                });
                entry.tasks += 1;
            }
        }
        if unknown.is_empty() {
            return Ok(lengths);
        }
        let kinds = platform.kernels.kinds().filter(|kind| *kind != Kernels::ANY).map(str::to_owned).collect();
        Err(SimError::Kernels { platform: platform.name.clone(), unknown: unknown.into_values().collect(), kinds })
    }

    /// Of this number of tasks, none of which has a row yet.
    fn without_rows(classes: usize, teams: Vec<TeamKind>, of_team: Vec<usize>, tasks: usize) -> Lengths {
        Lengths {
            columns: classes + teams.len(),
            teams,
            of_team,
            nanos: Vec::new(),
            archs: Vec::new(),
            footprints: Vec::new(),
            widths: Vec::new(),
            longest: Vec::new(),
            shortest: Vec::new(),
            row_of: Vec::with_capacity(tasks),
        }
    }

    fn add(&mut self, graph: &TaskGraph, platform: &Platform, workers_by_class: &[u32], task: &Task) {
        let start = self.nanos.len();
        let runs = graph.kind_of(task).runs;
        // A very long time is not NEVER.
        let nanos = |class, size| match platform.team_length(graph, task, class, size) {
            // A time of every kernel is not that of a task without work.
            Some(_) if !runs => 0,
            Some(length) => u64::try_from(length.as_nanos()).unwrap_or(NEVER).min(NEVER - 1),
            None => NEVER,
        };
        self.nanos.extend((0..platform.classes.len()).map(|class| nanos(class, 1)));
        // A team is as slow as if all members were of its slowest class.
        let slowest = |team: &TeamKind| team.classes.iter().map(|class| nanos(*class, team.size)).max();
        self.nanos.extend(self.teams.iter().map(|team| slowest(team).unwrap_or(NEVER)));
        let possible = self.nanos[start..].iter().copied().filter(|nanos| *nanos != NEVER);
        self.longest.push(possible.max().unwrap_or(0));
        let (alone, together) = self.nanos[start..].split_at_mut(platform.classes.len());
        let archs = platform.able(graph, task, workers_by_class);
        for (class, nanos) in platform.classes.iter().zip(alone) {
            if !archs.contains(class.arch) {
                *nanos = NEVER;
            }
        }
        let together = &*together;
        // It knows only one width: a team can execute a task if all that are no larger can.
        let can = |size: u16| {
            let mut no_larger = self.teams.iter().zip(together).filter(|(team, _)| team.size <= size);
            no_larger.all(|(_, nanos)| *nanos != NEVER)
        };
        let sizes = self.teams.iter().map(|team| team.size).filter(|size| can(*size));
        let width = if archs.contains(Arch::CPU) { sizes.max().unwrap_or(1) } else { 1 };
        self.archs.push(archs);
        self.footprints.push(task.footprint.unwrap_or(0));
        self.widths.push(width);
        let able = self.nanos[start..].iter().copied().filter(|nanos| *nanos != NEVER);
        self.shortest.push(able.min().unwrap_or(0));
    }

    /// The same where a task takes `factor` times as long on a class of workers, and a team what it does where its
    /// leader is of the first of its classes.
    pub(super) fn scaled(self, graph: &TaskGraph, rows: Rows, factor: impl Fn(TaskId, usize) -> f64) -> Lengths {
        let classes = self.columns - self.teams.len();
        let class_of = |column: usize| column.checked_sub(classes).map_or(column, |team| self.teams[team].classes[0]);
        let mut scaled = Lengths::without_rows(classes, Vec::new(), Vec::new(), self.row_of.len());
        let mut known: Vec<Option<Row>> = vec![None; self.archs.len()];
        for task in graph.ids() {
            let row = self.row(task);
            let place = &mut known[row.index()];
            if let (Rows::Shared, Some(known)) = (rows, *place) {
                scaled.row_of.push(known);
                continue;
            }
            let next = Row(scaled.archs.len() as u32);
            *place = Some(next);
            scaled.row_of.push(next);
            let start = scaled.nanos.len();
            scaled.nanos.extend((0..self.columns).map(|column| match self.nanos(row, column) {
                NEVER => NEVER,
                nanos => ((nanos as f64 * factor(task, class_of(column))) as u64).min(NEVER - 1),
            }));
            let able = || scaled.nanos[start..].iter().copied().filter(|nanos| *nanos != NEVER);
            scaled.longest.push(able().max().unwrap_or(0));
            scaled.shortest.push(able().min().unwrap_or(0));
            scaled.archs.push(self.archs(row));
            scaled.footprints.push(self.footprint(row));
            scaled.widths.push(self.width(row));
        }
        Lengths { columns: self.columns, teams: self.teams, of_team: self.of_team, ..scaled }
    }

    pub(super) fn row(&self, task: TaskId) -> Row {
        self.row_of[task.index()]
    }

    pub(super) fn archs(&self, row: Row) -> ArchSet {
        self.archs[row.index()]
    }

    /// Footprint of a task of a row; 0 for none.
    pub(super) fn footprint(&self, row: Row) -> u32 {
        self.footprints[row.index()]
    }

    /// Maximum number of workers that can execute a task of a row together.
    pub(super) fn width(&self, row: Row) -> u16 {
        self.widths[row.index()]
    }

    /// Nanoseconds on a worker of a class, or [`NEVER`].
    #[inline]
    pub(super) fn nanos(&self, row: Row, class: usize) -> u64 {
        self.nanos[row.index() * self.columns + class]
    }

    /// Nanoseconds on combined worker number `team`, or [`NEVER`].
    pub(super) fn team_nanos(&self, row: Row, team: usize) -> u64 {
        self.nanos(row, self.of_team[team])
    }

    /// Longest execution time of a task on any worker that can run it.
    pub(super) fn longest(&self, task: TaskId) -> u64 {
        self.longest[self.row(task).index()]
    }

    /// Longest execution time of any task on any worker that can run it.
    pub(super) fn longest_of_all(&self) -> u64 {
        self.longest.iter().copied().max().unwrap_or(0)
    }

    /// Shortest execution time of the tasks of a row, given the number of workers of each class that may execute them; 0
    /// if none can.
    pub(super) fn shortest_on(&self, row: Row, workers: &[u32]) -> u64 {
        let nanos = &self.nanos[row.index() * self.columns..][..self.columns];
        let (alone, together) = nanos.split_at(workers.len());
        let alone = alone.iter().zip(workers).filter(|(_, workers)| **workers > 0).map(|(nanos, _)| *nanos);
        let is_allowed = |team: &TeamKind| team.classes.iter().all(|class| workers[*class] > 0);
        let together = together.iter().zip(&self.teams).filter(|(_, team)| is_allowed(team)).map(|(nanos, _)| *nanos);
        alone.chain(together).filter(|nanos| *nanos != NEVER).min().unwrap_or(0)
    }

    /// Shortest execution time of a task on any worker; 0 if none can run it.
    pub(super) fn shortest(&self, task: TaskId) -> u64 {
        self.shortest[self.row(task).index()]
    }
}

/// What the platform lacks for a task of this kind, which none of its workers can run.
fn lack(platform: &Platform, kind: &str, task: &Task, workers_by_class: &[u32]) -> Lack {
    if !platform.kernels.knows(kind) {
        return if platform.kernels.is_unmeasured(kind) { Lack::Measurement } else { Lack::Kernel };
    }
    let classes = (0..platform.classes.len()).filter(|class| workers_by_class[*class] > 0);
    let times = || classes.clone().filter_map(|class| platform.kernels.get(kind, class));
    if task.flops <= 0.0 && times().any(|time| matches!(time, KernelTime::Rate { .. })) {
        Lack::Time
    } else if task.footprint.is_some() && times().any(|time| matches!(time, KernelTime::History { .. })) {
        Lack::Footprint
    } else {
        Lack::Class
    }
}

/// The kinds of combined workers, and the column of each combined worker.
fn team_kinds(platform: &Platform, combined: &[Box<[WorkerId]>]) -> (Vec<TeamKind>, Vec<usize>) {
    let mut kinds: Vec<TeamKind> = Vec::new();
    let mut of_team = Vec::with_capacity(combined.len());
    for members in combined {
        let mut classes: Vec<usize> = members.iter().map(|member| platform.workers[member.index()].class).collect();
        classes.sort_unstable();
        classes.dedup();
        let kind = TeamKind { size: u16::try_from(members.len()).unwrap_or(u16::MAX), classes };
        let place = kinds.iter().position(|known| *known == kind).unwrap_or_else(|| {
            kinds.push(kind);
            kinds.len() - 1
        });
        of_team.push(platform.classes.len() + place);
    }
    (kinds, of_team)
}

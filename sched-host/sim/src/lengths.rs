//! How long each task takes on each class of workers and each combined worker: looked up once, before the simulation begins.

use super::SimError;
use super::error::Unknown;
use super::platform::{Kernels, Platform};
use sched_core::{Arch, ArchSet, WorkerId};
use sched_graph::{KindId, Task, TaskGraph};
use smallvec::SmallVec;
use std::collections::{BTreeMap, HashMap};

/// Cannot run there.
pub(super) const NEVER: u64 = u64::MAX;

/// Tasks that are alike share a row.
#[derive(Debug)]
pub(super) struct Lengths {
    /// Who differs: first each class of workers, then each kind of combined worker.
    columns: usize,
    teams: Vec<TeamKind>,
    /// The column of each combined worker.
    of_team: Vec<usize>,
    /// Nanoseconds, by row and column.
    nanos: Vec<u64>,
    /// Architectures that can run the tasks of a row.
    archs: Vec<ArchSet>,
    /// How many workers can execute a task of a row together, at most.
    widths: Vec<u16>,
    /// The longest that a task of a row can take.
    longest: Vec<u64>,
    row_of: Vec<u32>,
}

/// Combined workers that are alike.
#[derive(PartialEq, Eq, Debug)]
struct TeamKind {
    size: u16,
    /// Of the members, ascending.
    classes: Vec<usize>,
}

/// What makes tasks alike.
#[derive(Clone, PartialEq, Eq, Hash)]
struct Alike {
    kind: KindId,
    footprint: Option<u32>,
    bytes: u64,
    flops: u64,
    /// Of the graph: architecture and nanoseconds.
    said: SmallVec<[(Arch, u64); 2]>,
}

impl Lengths {
    /// With combined workers of these members.
    ///
    /// # Errors
    /// When there are tasks that no worker of the platform can run; all kinds of them are named.
    pub(super) fn new(
        graph: &TaskGraph,
        platform: &Platform,
        combined: &[Box<[WorkerId]>],
    ) -> Result<Lengths, SimError> {
        let (teams, of_team) = team_kinds(platform, combined);
        let mut rows: HashMap<Alike, u32> = HashMap::new();
        // Of each kind, the last task's: that of the next one is mostly the same.
        let mut latest: Vec<Option<(Alike, u32)>> = vec![None; graph.kinds.len()];
        let mut unknown: BTreeMap<KindId, Unknown> = BTreeMap::new();
        let mut lengths = Lengths {
            columns: platform.classes.len() + teams.len(),
            teams,
            of_team,
            nanos: Vec::new(),
            archs: Vec::new(),
            widths: Vec::new(),
            longest: Vec::new(),
            row_of: Vec::with_capacity(graph.tasks.len()),
        };
        for (number, task) in graph.tasks.iter().enumerate() {
            let bytes = graph.bytes_of(task);
            let nanos = |arch| task.lengths.get(arch).map_or(0, |length| length.as_nanos() as u64);
            let said = task.lengths.archs().iter().map(|arch| (arch, nanos(arch))).collect();
            let alike = Alike { kind: task.kind, footprint: task.footprint, bytes, flops: task.flops.to_bits(), said };
            let next = lengths.archs.len() as u32;
            let latest = &mut latest[task.kind.index()];
            let row = match latest {
                Some((last, row)) if *last == alike => *row,
                _ => *rows.entry(alike.clone()).or_insert(next),
            };
            *latest = Some((alike, row));
            if row == next {
                lengths.add(graph, platform, task);
            }
            lengths.row_of.push(row);
            let kind = graph.kind_of(task);
            if kind.runs && lengths.archs[row as usize].is_empty() {
                let known = || platform.kernels.knows(&kind.name);
                let entry = unknown.entry(task.kind).or_insert_with(|| Unknown {
                    kind: kind.name.clone(),
                    tasks: 0,
                    first: number,
                    known: known(),
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

    fn add(&mut self, graph: &TaskGraph, platform: &Platform, task: &Task) {
        let start = self.nanos.len();
        // However long, it is not never.
        let nanos = |class, size| match platform.team_length(graph, task, class, size) {
            Some(length) => u64::try_from(length.as_nanos()).unwrap_or(NEVER).min(NEVER - 1),
            None => NEVER,
        };
        self.nanos.extend((0..platform.classes.len()).map(|class| nanos(class, 1)));
        // A team is as slow as it would be if all were of its slowest class.
        let slowest = |team: &TeamKind| team.classes.iter().map(|class| nanos(*class, team.size)).max();
        self.nanos.extend(self.teams.iter().map(|team| slowest(team).unwrap_or(NEVER)));
        let possible = self.nanos[start..].iter().copied().filter(|nanos| *nanos != NEVER);
        self.longest.push(possible.max().unwrap_or(0));
        // The tree knows architectures only: one can run a task if each class of it can.
        let (alone, together) = self.nanos[start..].split_at(platform.classes.len());
        let runs = |arch: &Arch| {
            platform.classes.iter().zip(alone).all(|(class, nanos)| class.arch != *arch || *nanos != NEVER)
        };
        let archs: ArchSet = platform.archs().iter().filter(runs).collect();
        // It knows one width only: a team can execute a task if all that are no larger can.
        let can = |size: u16| {
            let mut no_larger = self.teams.iter().zip(together).filter(|(team, _)| team.size <= size);
            no_larger.all(|(_, nanos)| *nanos != NEVER)
        };
        let sizes = self.teams.iter().map(|team| team.size).filter(|size| can(*size));
        let width = if archs.contains(Arch::CPU) { sizes.max().unwrap_or(1) } else { 1 };
        self.archs.push(archs);
        self.widths.push(width);
    }

    pub(super) fn row(&self, task: u32) -> u32 {
        self.row_of[task as usize]
    }

    pub(super) fn archs(&self, row: u32) -> ArchSet {
        self.archs[row as usize]
    }

    /// How many workers can execute a task of a row together, at most.
    pub(super) fn width(&self, row: u32) -> u16 {
        self.widths[row as usize]
    }

    /// Nanoseconds on a worker of a class, or [`NEVER`].
    #[inline]
    pub(super) fn nanos(&self, row: u32, class: usize) -> u64 {
        self.nanos[row as usize * self.columns + class]
    }

    /// Nanoseconds on combined worker number `team`, or [`NEVER`].
    pub(super) fn team_nanos(&self, row: u32, team: usize) -> u64 {
        self.nanos(row, self.of_team[team])
    }

    /// The longest that a task can take anywhere.
    pub(super) fn longest(&self, task: u32) -> u64 {
        self.longest[self.row(task) as usize]
    }

    /// The shortest that a task can take anywhere.
    pub(super) fn shortest(&self, task: u32) -> u64 {
        let row = self.row(task) as usize * self.columns;
        let least = self.nanos[row..row + self.columns].iter().min().copied().unwrap_or(NEVER);
        if least == NEVER { 0 } else { least }
    }
}

/// The kinds of combined workers, and the column of each combined worker.
fn team_kinds(platform: &Platform, combined: &[Box<[WorkerId]>]) -> (Vec<TeamKind>, Vec<usize>) {
    let mut kinds: Vec<TeamKind> = Vec::new();
    let mut of_team = Vec::with_capacity(combined.len());
    for members in combined {
        let mut classes: Vec<usize> = members.iter().map(|member| platform.workers[member.0 as usize].class).collect();
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

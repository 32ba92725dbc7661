//! How long each task takes on each class of workers: looked up once, before the simulation begins.

use super::SimError;
use super::error::Unknown;
use super::platform::{Kernels, Platform};
use crate::graph::{KindId, Task, TaskGraph};
use sched_core::{Arch, ArchSet};
use smallvec::SmallVec;
use std::collections::{BTreeMap, HashMap};

/// Cannot run there.
pub(super) const NEVER: u64 = u64::MAX;

/// Tasks that are alike share a row.
#[derive(Debug)]
pub(super) struct Lengths {
    classes: usize,
    /// Nanoseconds, by row and class.
    nanos: Vec<u64>,
    /// Architectures that can run the tasks of a row.
    archs: Vec<ArchSet>,
    row_of: Vec<u32>,
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
    /// # Errors
    /// When there are tasks that no worker of the platform can run; all kinds of them are named.
    pub(super) fn new(graph: &TaskGraph, platform: &Platform) -> Result<Lengths, SimError> {
        let classes = platform.classes.len();
        let mut rows: HashMap<Alike, u32> = HashMap::new();
        // Of each kind, the last task's: that of the next one is mostly the same.
        let mut latest: Vec<Option<(Alike, u32)>> = vec![None; graph.kinds.len()];
        let mut unknown: BTreeMap<KindId, Unknown> = BTreeMap::new();
        let mut lengths =
            Lengths { classes, nanos: Vec::new(), archs: Vec::new(), row_of: Vec::with_capacity(graph.tasks.len()) };
        for (number, task) in graph.tasks.iter().enumerate() {
            let bytes = task.accesses.iter().map(|access| graph.data[access.data.index()].bytes).sum();
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
        let nanos = |class| platform.length(graph, task, class).map_or(NEVER, |length| length.as_nanos() as u64);
        self.nanos.extend((0..platform.classes.len()).map(nanos));
        // The tree knows architectures only: one can run a task if each class of it can.
        let found = &self.nanos[start..];
        let runs = |arch: &Arch| {
            platform.classes.iter().zip(found).all(|(class, nanos)| class.arch != *arch || *nanos != NEVER)
        };
        self.archs.push(platform.archs().iter().filter(runs).collect());
    }

    pub(super) fn row(&self, task: u32) -> u32 {
        self.row_of[task as usize]
    }

    pub(super) fn archs(&self, row: u32) -> ArchSet {
        self.archs[row as usize]
    }

    /// Nanoseconds, or [`NEVER`].
    #[inline]
    pub(super) fn nanos(&self, row: u32, class: usize) -> u64 {
        self.nanos[row as usize * self.classes + class]
    }

    /// The shortest that a task can take anywhere.
    pub(super) fn shortest(&self, task: u32) -> u64 {
        let row = self.row(task) as usize * self.classes;
        let least = self.nanos[row..row + self.classes].iter().min().copied().unwrap_or(NEVER);
        if least == NEVER { 0 } else { least }
    }
}

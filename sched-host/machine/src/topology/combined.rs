//! The combined workers of a machine, for parallel tasks.
//!
//! Workers that share a part of the machine are worth combining: a core's hardware threads, the cores below a cache,
//! those of a memory node. Therefore every object of the topology with two workers or more, on distinct processing
//! units, offers a combined worker of all of them. An object with more parts (that contain workers) than
//! [`CombinedSizes::arity`] leaves a large gap between its size and theirs, such as a cache with 16 cores; there,
//! groups of `arity` adjacent parts are combined, repeatedly, until no gap is larger.
//!
//! Workers that merely share a processing unit are not combined: they only take turns.

use serde::Serialize;
use std::collections::HashMap;
use std::collections::hash_map::Entry;

use super::Topology;
use super::binding::WorkerBinding;
use super::object::{Level, Object};

/// Workers that can execute a parallel task together.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct CombinedWorker {
    /// Its members, at least two, ascending. The first one runs a task's kernel if only one does.
    pub members: Vec<usize>,
    /// The smallest topology object that contains all members, by its [title](Object::title).
    pub within: String,
}

/// The sizes of combined workers to create.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CombinedSizes {
    /// Minimum number of members; at least 2.
    pub min: usize,
    /// Maximum number of members.
    pub max: usize,
    /// Largest number of parts of an object that needs no combined workers between it and its parts; at least 2.
    pub arity: usize,
}

impl Default for CombinedSizes {
    /// All sizes, and an arity of 2: each size is about half of the next.
    fn default() -> Self {
        Self { min: 2, max: usize::MAX, arity: 2 }
    }
}

impl CombinedSizes {
    /// Reads the environment variables `SCHED_MIN_WORKERSIZE`, `SCHED_MAX_WORKERSIZE` and
    /// `SCHED_SYNTHESIZE_ARITY_COMBINED_WORKER`; unset ones keep their defaults. A value that is not a number is
    /// reported in `warnings` and ignored.
    pub fn from_environment(warnings: &mut Vec<String>) -> Self {
        Self::from_variables(|name| std::env::var(name).ok(), warnings)
    }

    pub(super) fn from_variables(value: impl Fn(&str) -> Option<String>, warnings: &mut Vec<String>) -> Self {
        let mut sizes = Self::default();
        let variables = [
            ("SCHED_MIN_WORKERSIZE", &mut sizes.min, 2),
            ("SCHED_MAX_WORKERSIZE", &mut sizes.max, 0),
            ("SCHED_SYNTHESIZE_ARITY_COMBINED_WORKER", &mut sizes.arity, 2),
        ];
        for (name, size, least) in variables {
            let Some(text) = value(name) else { continue };
            match text.trim().parse() {
                Ok(number) if number >= least => *size = number,
                _ => warnings.push(format!(
                    "{name} is `{text}`, expected a whole number from {least}; {} is taken",
                    if *size == usize::MAX { "no limit".to_owned() } else { size.to_string() }
                )),
            }
        }
        sizes
    }

    fn wants(self, members: &[usize]) -> bool {
        (self.min.max(2)..=self.max).contains(&members.len())
    }
}

/// A part of a machine, reduced to which workers share it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Nest {
    /// Its name, for people.
    pub title: String,
    /// The workers inside, ascending.
    pub workers: Vec<usize>,
    /// Its parts that contain workers. Without any, it holds one worker at a time, like a processing unit.
    pub parts: Vec<Nest>,
}

impl Nest {
    /// The nest of a topology object, with the workers of each processing unit.
    fn of(object: &Object, workers: &HashMap<u32, Vec<usize>>) -> Nest {
        let inside = object.pus.iter().filter_map(|pu| workers.get(pu)).flatten().copied();
        let mut nest = Nest { title: object.title(), workers: inside.collect(), parts: Vec::new() };
        nest.workers.sort_unstable();
        if object.level != Level::Pu {
            // A second memory node for the same processing units is an empty sibling of the object that contains them.
            let holds = |part: &&Object| part.level == Level::Pu || !part.children.is_empty();
            let parts = object.children.iter().filter(holds).map(|part| Nest::of(part, workers));
            nest.parts = parts.filter(|part| !part.workers.is_empty()).collect();
        }
        nest
    }

    /// Whether two of its workers can run concurrently.
    fn has_places(&self) -> bool {
        match &self.parts[..] {
            [] => false,
            [only] => only.has_places(),
            _ => true,
        }
    }
}

/// The combined workers of a machine whose workers are at these positions, each once, before those that it contains.
pub(super) fn combine(topology: &Topology, workers: &[WorkerBinding], sizes: CombinedSizes) -> Vec<CombinedWorker> {
    let mut by_pu: HashMap<u32, Vec<usize>> = HashMap::new();
    workers.iter().for_each(|worker| by_pu.entry(worker.pu).or_default().push(worker.worker));
    combine_nest(&Nest::of(topology.root(), &by_pu), sizes)
}

/// The combined workers of a machine whose workers share these parts.
pub fn combine_nest(machine: &Nest, sizes: CombinedSizes) -> Vec<CombinedWorker> {
    let mut found = Found { sizes, known: HashMap::new(), combined: Vec::new() };
    found.visit(machine);
    found.combined
}

/// Combined workers without a topology: aligned runs of the smallest size, of twice that, and so on, largest first.
pub fn aligned(workers: usize, sizes: CombinedSizes) -> Vec<CombinedWorker> {
    let mut combined = Vec::new();
    let mut size = sizes.min.max(2);
    let mut runs = Vec::new();
    while size <= sizes.max.min(workers) {
        runs.push(size);
        size = size.saturating_mul(2);
    }
    for size in runs.into_iter().rev() {
        let starts = (0..workers).step_by(size).filter(|start| start + size <= workers);
        combined.extend(
            starts
                .map(|start| CombinedWorker { members: (start..start + size).collect(), within: "machine".to_owned() }),
        );
    }
    combined
}

struct Found {
    sizes: CombinedSizes,
    combined: Vec<CombinedWorker>,
    /// The index of each combined worker, by its members.
    known: HashMap<Vec<usize>, usize>,
}

impl Found {
    fn visit(&mut self, nest: &Nest) {
        if !nest.has_places() {
            return;
        }
        self.add(nest.workers.clone(), nest);
        let parts: Vec<&Nest> = nest.parts.iter().collect();
        self.bridge(&parts, nest);
        for part in parts {
            self.visit(part);
        }
    }

    /// Combines groups of parts where there are many.
    fn bridge(&mut self, parts: &[&Nest], whole: &Nest) {
        let arity = self.sizes.arity.max(2);
        if parts.len() <= arity {
            return;
        }
        let mut rest = parts;
        for share in (1..=arity).rev() {
            let (some, others) = rest.split_at(rest.len().div_ceil(share));
            rest = others;
            let mut members: Vec<usize> = some.iter().flat_map(|part| part.workers.iter().copied()).collect();
            members.sort_unstable();
            members.dedup();
            // A single part adds its own combined worker.
            if some.len() > 1 {
                self.add(members, whole);
                self.bridge(some, whole);
            }
        }
    }

    /// The last object to offer these members is the smallest.
    fn add(&mut self, members: Vec<usize>, within: &Nest) {
        if !self.sizes.wants(&members) {
            return;
        }
        match self.known.entry(members) {
            Entry::Occupied(known) => self.combined[*known.get()].within.clone_from(&within.title),
            Entry::Vacant(new) => {
                let members = new.key().clone();
                new.insert(self.combined.len());
                self.combined.push(CombinedWorker { members, within: within.title.clone() });
            }
        }
    }
}

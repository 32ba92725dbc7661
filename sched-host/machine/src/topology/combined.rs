//! Which workers make up combined workers, for parallel tasks.
//!
//! Workers that share a part of the machine are worth combining: a core's hardware threads, the cores under a cache, those
//! of a memory node. So every object of the topology that holds two workers or more, on processing units of their own,
//! offers a combined worker of all of them. An object whose parts with workers are more than [`CombinedSizes::arity`]
//! leaves a large step between its size and theirs, as a cache with 16 cores does; between them, so many parts are drawn
//! together, in order, and again, until no step is larger.
//!
//! Workers that share a processing unit are not combined for that alone: they only take turns.

use serde::Serialize;
use std::collections::HashMap;
use std::collections::hash_map::Entry;

use super::Topology;
use super::binding::WorkerBinding;
use super::object::{Level, Object};

/// Workers that can execute a parallel task together.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct CombinedWorker {
    /// Its members, two at least, ascending: the first of them runs a task's kernel where only one does.
    pub members: Vec<usize>,
    /// The object of the topology that they share, by its [title](Object::title): the smallest.
    pub within: String,
}

/// Which sizes of combined workers are wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CombinedSizes {
    /// Fewest members; 2 at least.
    pub min: usize,
    /// Most members.
    pub max: usize,
    /// The largest number of parts of an object that needs no combined workers between it and its parts; 2 at least.
    pub arity: usize,
}

impl Default for CombinedSizes {
    /// All sizes, and an arity of 2: each size is about half of the next.
    fn default() -> Self {
        Self { min: 2, max: usize::MAX, arity: 2 }
    }
}

impl CombinedSizes {
    /// What the environment says: `SCHED_MIN_WORKERSIZE`, `SCHED_MAX_WORKERSIZE`,
    /// `SCHED_SYNTHESIZE_ARITY_COMBINED_WORKER`; the default for what it does not say. A value that is no number is told in
    /// `warnings`, and passed over.
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

/// A part of a machine, as far as it matters which workers share it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Nest {
    /// What to call it.
    pub title: String,
    /// The workers inside, ascending.
    pub workers: Vec<usize>,
    /// The parts of it with workers. Without any it is a place for one worker at a time, as a processing unit is.
    pub parts: Vec<Nest>,
}

impl Nest {
    /// Of a topology, with workers at these places.
    fn of(object: &Object, workers: &[WorkerBinding]) -> Nest {
        let inside = workers.iter().filter(|worker| object.contains(worker.pu)).map(|worker| worker.worker);
        let mut nest = Nest { title: object.title(), workers: inside.collect(), parts: Vec::new() };
        nest.workers.sort_unstable();
        if object.level != Level::Pu {
            // A second memory for the same processing units stands beside what holds them, and is empty.
            let holds = |part: &&Object| part.level == Level::Pu || !part.children.is_empty();
            let parts = object.children.iter().filter(holds).map(|part| Nest::of(part, workers));
            nest.parts = parts.filter(|part| !part.workers.is_empty()).collect();
        }
        nest
    }

    /// Whether two of its workers can run at the same time.
    fn has_places(&self) -> bool {
        match &self.parts[..] {
            [] => false,
            [only] => only.has_places(),
            _ => true,
        }
    }
}

/// The combined workers of a machine whose workers have these places, an enclosing one before those inside, each once.
pub(super) fn combine(topology: &Topology, workers: &[WorkerBinding], sizes: CombinedSizes) -> Vec<CombinedWorker> {
    combine_nest(&Nest::of(topology.root(), workers), sizes)
}

/// The combined workers of a machine whose workers share these parts of it.
pub fn combine_nest(machine: &Nest, sizes: CombinedSizes) -> Vec<CombinedWorker> {
    let mut found = Found { sizes, known: HashMap::new(), combined: Vec::new() };
    found.visit(machine);
    found.combined
}

/// Combined workers without a topology: aligned runs of the smallest size, of twice that, and so on, the largest first.
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
    /// The place of each there, by its members.
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

    /// Draws parts together where they are many.
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
            // A single part speaks for itself.
            if some.len() > 1 {
                self.add(members, whole);
                self.bridge(some, whole);
            }
        }
    }

    /// The last one to offer these members is the smallest object.
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

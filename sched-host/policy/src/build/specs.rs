//! Specs: a recipe for each level of the machine.

use super::recipe::Recipe;
use crate::level::Level;
use crate::machine::Machine;
use crate::part::{Component, Each, Part, Policy};
use sched_core::{Arch, ArchSet, WorkerId, WorkerSet};

/// How a scheduler is built from the topology of the machine: what stands for the machine, and what for each memory
/// component, socket and cache in it, and above each worker. Levels without a recipe are skipped.
///
/// A memory component is a NUMA node, wherever hwloc keeps it: version 2 lists NUMA nodes beside the tree of other
/// objects. Workers that are in no NUMA node, such as accelerators with a memory of their own, have that memory as theirs.
///
/// [`policy`](Self::policy) asks the machine for two things, which make a policy that fits it: the order of the levels,
/// since a package may hold several NUMA nodes or lie in one; and which levels which workers have a place at. All else is
/// left to `each`, so the policy suits every machine that is built alike, with however many objects.
///
/// ```
/// use sched_policy::{Component, FlatMachine, Recipe, TopologySpecs, parse};
/// let queue = |ntasks: i64| Component::new("fifo").set("ntasks-threshold", sched_core::Value::Int(ntasks));
/// let eager = || Component::new("eager");
/// let specs = TopologySpecs::new(Recipe::singleton(Component::new("fifo")).add(eager()))
///     .memory_component(Recipe::singleton(queue(8)).add(eager()))
///     .workers(Component::new("best-implementation"));
/// let text = r#"policy "mine" {
///     fifo { eager { each "numa" { fifo ntasks-threshold=8 { eager {
///         each "worker" { best-implementation { worker } }
///     } } } } }
/// }"#;
/// assert_eq!(specs.policy("mine", &FlatMachine { workers: 4 }), parse("mine.kdl", text)?[0]);
/// # Ok::<(), sched_text::Findings>(())
/// ```
#[derive(Clone, PartialEq, Debug)]
pub struct TopologySpecs {
    machine: Recipe,
    memory: Recipe,
    socket: Recipe,
    cache: Recipe,
    workers: Recipe,
    by_arch: Vec<(Arch, Recipe)>,
    mix: bool,
}

/// Whether workers have a place at a level.
#[derive(PartialEq, Eq)]
enum Coverage {
    All,
    Some,
    None,
}

impl TopologySpecs {
    /// A scheduler with this at its top, which tasks enter, and nothing else above the workers.
    #[must_use]
    pub fn new(machine: impl Into<Recipe>) -> TopologySpecs {
        let none = Recipe::new;
        let (memory, socket, cache, workers) = (none(), none(), none(), none());
        TopologySpecs { machine: machine.into(), memory, socket, cache, workers, by_arch: Vec::new(), mix: false }
    }

    /// The same, with this for each memory component.
    #[must_use]
    pub fn memory_component(self, memory: impl Into<Recipe>) -> TopologySpecs {
        TopologySpecs { memory: memory.into(), ..self }
    }

    /// The same, with this for each socket (processor package).
    #[must_use]
    pub fn socket(self, socket: impl Into<Recipe>) -> TopologySpecs {
        TopologySpecs { socket: socket.into(), ..self }
    }

    /// The same, with this for each cache of levels 3 and 2. (Those of level 1 are a core's own, as its worker is.)
    #[must_use]
    pub fn cache(self, cache: impl Into<Recipe>) -> TopologySpecs {
        TopologySpecs { cache: cache.into(), ..self }
    }

    /// The same, with this above each worker of an architecture that has no recipe of its own.
    #[must_use]
    pub fn workers(self, workers: impl Into<Recipe>) -> TopologySpecs {
        TopologySpecs { workers: workers.into(), ..self }
    }

    /// The same, with this above each worker of an architecture; nothing, if the recipe is empty.
    #[must_use]
    pub fn workers_of(mut self, arch: Arch, workers: impl Into<Recipe>) -> TopologySpecs {
        self.by_arch.retain(|(known, _)| *known != arch);
        self.by_arch.push((arch, workers.into()));
        self
    }

    /// The same, with workers of different architectures below one component where they are at one place of the machine:
    /// a GPU and the cores of the NUMA node that it is at share that node's queue. Otherwise, as at first, each place has a
    /// component for each architecture there, and only what stands for the machine is above several.
    #[must_use]
    pub fn mix_heterogeneous_workers(self, mix: bool) -> TopologySpecs {
        TopologySpecs { mix, ..self }
    }

    /// The policy for machines like this one.
    ///
    /// A level at which some workers of an architecture have no place, such as cores outside every level-3 cache, is
    /// skipped for that architecture. Where architectures are mixed and differ in the levels that they have a place at,
    /// each has components of its own after all.
    #[must_use]
    pub fn policy(&self, name: impl Into<String>, machine: &dyn Machine) -> Policy {
        let ground = Ground::new(machine);
        let archs: Vec<Arch> = ground.archs.iter().map(|(arch, _)| *arch).collect();
        let alike = archs.len() <= 1 || (self.mix && self.levels(&ground, None).is_some());
        let below: Vec<Part> = match alike {
            true => self.branches(&ground, None),
            false => archs.into_iter().flat_map(|arch| self.branches(&ground, Some(arch))).collect(),
        };
        Policy::of_parts(name, self.machine.over(below))
    }

    /// What hangs below the machine for the workers of an architecture, or for all.
    fn branches(&self, ground: &Ground<'_>, arch: Option<Arch>) -> Vec<Part> {
        let levels = self.levels(ground, arch).unwrap_or_default();
        let filter = |outermost: bool| arch.filter(|_| outermost);
        let leaves = self.leaves(ground, arch, levels.is_empty());
        let rows = levels.iter().enumerate().rev();
        rows.fold(leaves, |below, (depth, (level, recipe))| {
            let children = recipe.over(below);
            vec![Each { arch: filter(depth == 0), children, ..Each::new(*level) }.into()]
        })
    }

    /// The workers, each below what its architecture has. Inside an `each`, workers of other architectures are out already.
    fn leaves(&self, ground: &Ground<'_>, arch: Option<Arch>, outermost: bool) -> Vec<Part> {
        let leaf = |recipe: &Recipe, arch: Option<Arch>| -> Part {
            let children = recipe.over([Component::new("worker")]);
            Each { arch, children, ..Each::new(Level::Worker) }.into()
        };
        let recipe = |arch: Arch| {
            self.by_arch.iter().find(|(known, _)| *known == arch).map_or(&self.workers, |(_, recipe)| recipe)
        };
        if let Some(arch) = arch {
            return vec![leaf(recipe(arch), Some(arch).filter(|_| outermost))];
        }
        let recipes: Vec<(Arch, &Recipe)> = ground.archs.iter().map(|(arch, _)| (*arch, recipe(*arch))).collect();
        match recipes.first() {
            Some((_, first)) if recipes.iter().any(|(_, other)| other != first) => {
                recipes.into_iter().map(|(arch, recipe)| leaf(recipe, Some(arch))).collect()
            }
            Some((_, all)) => vec![leaf(all, None)],
            None => vec![leaf(&self.workers, None)],
        }
    }

    /// The levels with a recipe, the coarsest first: those at which every worker of the architecture has a place. `None`
    /// for all architectures when they differ in that.
    fn levels(&self, ground: &Ground<'_>, arch: Option<Arch>) -> Option<Vec<(Level, &Recipe)>> {
        let memory = match ground.coverage(Level::Numa, arch) {
            Coverage::All => Level::Numa,
            _ => Level::MemoryNode,
        };
        // Of two levels whose objects are the same, the first comes above.
        let known = [
            (memory, &self.memory),
            (Level::Package, &self.socket),
            (Level::L3, &self.cache),
            (Level::L2, &self.cache),
        ];
        let mut levels: Vec<(Level, &Recipe)> = Vec::new();
        for (level, recipe) in known.into_iter().filter(|(_, recipe)| !recipe.is_empty()) {
            match ground.coverage(level, arch) {
                Coverage::All => levels.push((level, recipe)),
                Coverage::Some if arch.is_none() => return None,
                Coverage::Some | Coverage::None => {}
            }
        }
        // Objects of a machine lie in each other or apart: the fewer there are of a level, the coarser they are.
        levels.sort_by_key(|(level, _)| ground.groups(*level, arch).len());
        Some(levels)
    }
}

/// The machine, as far as levels and architectures matter.
struct Ground<'a> {
    machine: &'a dyn Machine,
    /// The workers of each architecture there is.
    archs: Vec<(Arch, WorkerSet)>,
    all: WorkerSet,
}

impl<'a> Ground<'a> {
    fn new(machine: &'a dyn Machine) -> Ground<'a> {
        let all = WorkerSet::first(u32::try_from(machine.workers()).unwrap_or(u32::MAX));
        let present: ArchSet = all.iter().map(|worker| machine.arch(worker)).collect();
        let of = |arch: Arch| -> Vec<WorkerId> { all.iter().filter(|worker| machine.arch(*worker) == arch).collect() };
        let archs = present.iter().map(|arch| (arch, of(arch).into_iter().collect())).collect();
        Ground { machine, archs, all }
    }

    fn workers(&self, arch: Option<Arch>) -> WorkerSet {
        let of = |wanted: Arch| self.archs.iter().find(|(arch, _)| *arch == wanted).map(|(_, workers)| workers.clone());
        arch.map_or_else(|| self.all.clone(), |arch| of(arch).unwrap_or_default())
    }

    /// The workers of an architecture at each place of a level that has some.
    fn groups(&self, level: Level, arch: Option<Arch>) -> Vec<WorkerSet> {
        if !self.machine.has(level) {
            return Vec::new();
        }
        let wanted = self.workers(arch);
        let groups = self.machine.groups(level).into_iter().map(|mut group| {
            group.workers.intersect_with(&wanted);
            group.workers
        });
        groups.filter(|workers| !workers.is_empty()).collect()
    }

    fn coverage(&self, level: Level, arch: Option<Arch>) -> Coverage {
        let groups = self.groups(level, arch);
        let count: usize = groups.iter().map(WorkerSet::len).sum();
        match count {
            0 => Coverage::None,
            count if count == self.workers(arch).len() => Coverage::All,
            _ => Coverage::Some,
        }
    }
}

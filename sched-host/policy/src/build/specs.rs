//! Specs: a recipe for each level of the machine.

use super::recipe::Recipe;
use crate::element::{Component, Each, Element, Policy};
use crate::level::Level;
use crate::machine::Machine;
use sched_core::{Arch, ArchSet, WorkerId, WorkerSet};

/// A scheduler built from the topology of the machine: recipes for the machine, for each memory component, socket and
/// cache, and above each worker. Levels without a recipe are skipped.
///
/// A memory component is a NUMA node. Workers outside every NUMA node, such as accelerators, have their own memory as
/// memory component.
///
/// [`policy`](Self::policy) takes two facts from the machine: the order of the levels (a package may contain several
/// NUMA nodes, or be part of one), and the levels that cover each architecture. The rest is left to `each`, so the
/// policy fits every machine of the same structure, with any number of objects.
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

/// Which workers belong to an object of a level.
#[derive(PartialEq, Eq)]
enum Coverage {
    All,
    Some,
    None,
}

impl TopologySpecs {
    /// A scheduler with this recipe at the top, and nothing else above the workers.
    #[must_use]
    pub fn new(machine: impl Into<Recipe>) -> TopologySpecs {
        let none = Recipe::new;
        let (memory, socket, cache, workers) = (none(), none(), none(), none());
        TopologySpecs { machine: machine.into(), memory, socket, cache, workers, by_arch: Vec::new(), mix: false }
    }

    /// Sets the recipe for each memory component.
    #[must_use]
    pub fn memory_component(self, memory: impl Into<Recipe>) -> TopologySpecs {
        TopologySpecs { memory: memory.into(), ..self }
    }

    /// Sets the recipe for each socket (processor package).
    #[must_use]
    pub fn socket(self, socket: impl Into<Recipe>) -> TopologySpecs {
        TopologySpecs { socket: socket.into(), ..self }
    }

    /// Sets the recipe for each cache of levels 3 and 2. Level-1 caches are left out: a core has one, as it has one
    /// worker.
    #[must_use]
    pub fn cache(self, cache: impl Into<Recipe>) -> TopologySpecs {
        TopologySpecs { cache: cache.into(), ..self }
    }

    /// Sets the recipe above each worker of an architecture without a recipe of its own.
    #[must_use]
    pub fn workers(self, workers: impl Into<Recipe>) -> TopologySpecs {
        TopologySpecs { workers: workers.into(), ..self }
    }

    /// Sets the recipe above each worker of an architecture; an empty recipe puts nothing there.
    #[must_use]
    pub fn workers_of(mut self, arch: Arch, workers: impl Into<Recipe>) -> TopologySpecs {
        self.by_arch.retain(|(known, _)| *known != arch);
        self.by_arch.push((arch, workers.into()));
        self
    }

    /// Puts workers of different architectures at one place of the machine below one component: a GPU and the cores of
    /// its NUMA node share the node's queue. Default `false`: each place has one component for each architecture, and
    /// only the component of the machine is above several architectures.
    #[must_use]
    pub fn mix_heterogeneous_workers(self, mix: bool) -> TopologySpecs {
        TopologySpecs { mix, ..self }
    }

    /// The policy for machines of this structure.
    ///
    /// A level that does not cover all workers of an architecture, such as level-3 caches where some cores have none,
    /// is skipped for that architecture. Mixed architectures that are covered by different levels get components of
    /// their own.
    #[must_use]
    pub fn policy(&self, name: impl Into<String>, machine: &dyn Machine) -> Policy {
        let groups = WorkerGroups::new(machine);
        let archs: Vec<Arch> = groups.archs.iter().map(|(arch, _)| *arch).collect();
        let is_uniform = archs.len() <= 1 || (self.mix && self.levels(&groups, None).is_some());
        let below: Vec<Element> = match is_uniform {
            true => self.branches(&groups, None),
            false => archs.into_iter().flat_map(|arch| self.branches(&groups, Some(arch))).collect(),
        };
        Policy::of_elements(name, self.machine.over(below))
    }

    /// The branches below the machine for the workers of an architecture, or for all.
    fn branches(&self, groups: &WorkerGroups<'_>, arch: Option<Arch>) -> Vec<Element> {
        let levels = self.levels(groups, arch).unwrap_or_default();
        let filter = |outermost: bool| arch.filter(|_| outermost);
        let leaves = self.leaves(groups, arch, levels.is_empty());
        let rows = levels.iter().enumerate().rev();
        rows.fold(leaves, |below, (depth, (level, recipe))| {
            let children = recipe.over(below);
            vec![Each { arch: filter(depth == 0), children, ..Each::new(*level) }.into()]
        })
    }

    /// The workers, each below the recipe of its architecture. Inside an `each`, workers of other architectures are
    /// excluded already.
    fn leaves(&self, groups: &WorkerGroups<'_>, arch: Option<Arch>, outermost: bool) -> Vec<Element> {
        let leaf = |recipe: &Recipe, arch: Option<Arch>| -> Element {
            let children = recipe.over([Component::new("worker")]);
            Each { arch, children, ..Each::new(Level::Worker) }.into()
        };
        let recipe = |arch: Arch| {
            self.by_arch.iter().find(|(known, _)| *known == arch).map_or(&self.workers, |(_, recipe)| recipe)
        };
        if let Some(arch) = arch {
            return vec![leaf(recipe(arch), Some(arch).filter(|_| outermost))];
        }
        let recipes: Vec<(Arch, &Recipe)> = groups.archs.iter().map(|(arch, _)| (*arch, recipe(*arch))).collect();
        match recipes.first() {
            Some((_, first)) if recipes.iter().any(|(_, other)| other != first) => {
                recipes.into_iter().map(|(arch, recipe)| leaf(recipe, Some(arch))).collect()
            }
            Some((_, all)) => vec![leaf(all, None)],
            None => vec![leaf(&self.workers, None)],
        }
    }

    /// The levels with a recipe that cover every worker of the architecture, coarsest first. `None` if architectures
    /// are covered by different levels.
    fn levels(&self, groups: &WorkerGroups<'_>, arch: Option<Arch>) -> Option<Vec<(Level, &Recipe)>> {
        let memory = match groups.coverage(Level::Numa, arch) {
            Coverage::All => Level::Numa,
            _ => Level::MemoryNode,
        };
        // Of two levels with the same objects, the first is the outer one.
        let known = [
            (memory, &self.memory),
            (Level::Package, &self.socket),
            (Level::L3, &self.cache),
            (Level::L2, &self.cache),
        ];
        let mut levels: Vec<(Level, &Recipe)> = Vec::new();
        for (level, recipe) in known.into_iter().filter(|(_, recipe)| !recipe.is_empty()) {
            match groups.coverage(level, arch) {
                Coverage::All => levels.push((level, recipe)),
                Coverage::Some if arch.is_none() => return None,
                Coverage::Some | Coverage::None => {}
            }
        }
        // Objects of a machine are nested or disjoint: the fewer there are of a level, the coarser it is.
        levels.sort_by_key(|(level, _)| groups.groups(*level, arch).len());
        Some(levels)
    }
}

/// The workers of a machine by level and architecture.
struct WorkerGroups<'a> {
    machine: &'a dyn Machine,
    /// Workers by architecture.
    archs: Vec<(Arch, WorkerSet)>,
    all: WorkerSet,
}

impl<'a> WorkerGroups<'a> {
    fn new(machine: &'a dyn Machine) -> WorkerGroups<'a> {
        let all = WorkerSet::first(u32::try_from(machine.workers()).unwrap_or(u32::MAX));
        let present: ArchSet = all.iter().map(|worker| machine.arch(worker)).collect();
        let of = |arch: Arch| -> Vec<WorkerId> { all.iter().filter(|worker| machine.arch(*worker) == arch).collect() };
        let archs = present.iter().map(|arch| (arch, of(arch).into_iter().collect())).collect();
        WorkerGroups { machine, archs, all }
    }

    fn workers(&self, arch: Option<Arch>) -> WorkerSet {
        let of = |wanted: Arch| self.archs.iter().find(|(arch, _)| *arch == wanted).map(|(_, workers)| workers.clone());
        arch.map_or_else(|| self.all.clone(), |arch| of(arch).unwrap_or_default())
    }

    /// The workers of an architecture in each object of a level that has some.
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

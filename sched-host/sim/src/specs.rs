//! What the simulation reads of each task again and again.
//!
//! A task of a graph takes several cache lines, and tasks are not executed in the order in which they lie there: most
//! of the time of a step was waiting for them. So each task has half a line here, which the checks before a simulation
//! read too.

use sched_graph::{Access, AccessMode, ContextId, DataId, KindId, Task, TaskGraph, TaskId};

/// See the [module](self).
#[derive(Clone, Debug)]
#[repr(align(32))]
pub(super) struct Spec {
    pub(super) kind: KindId,
    pub(super) priority: i32,
    pub(super) context: ContextId,
    /// [`RUNS`] and [`IS_SPECIAL`].
    flags: u8,
    /// Number of accesses; [`MANY`] if they are elsewhere.
    count: u8,
    accesses: [Packed; MOST],
}

const RUNS: u8 = 1;
const IS_SPECIAL: u8 = 2;

/// Maximum number of accesses of a task that are in its spec.
const MOST: usize = 5;

/// Number of accesses of a task that has more: the first two words have their place in [`Specs::many`], and their
/// number.
const MANY: u8 = MOST as u8 + 1;

const _: () = assert!(size_of::<Spec>() == 32);

impl Spec {
    /// The spec of a task; `many` takes its accesses if there are too many.
    fn of(graph: &TaskGraph, task: &Task, many: &mut Vec<Packed>) -> Spec {
        let mut spec = Spec {
            kind: task.kind,
            priority: task.priority,
            context: task.context,
            flags: (if graph.kind_of(task).runs { RUNS } else { 0 })
                | if task.only.is_some() || task.sched_data != 0 { IS_SPECIAL } else { 0 },
            count: MANY,
            accesses: [Packed(0); MOST],
        };
        let packed = task.accesses.iter().copied().map(Packed::of);
        if packed.len() <= MOST {
            spec.count = packed.len() as u8;
            spec.accesses.iter_mut().zip(packed).for_each(|(here, access)| *here = access);
        } else {
            (spec.accesses[0], spec.accesses[1]) = (Packed(many.len() as u32), Packed(packed.len() as u32));
            many.extend(packed);
        }
        spec
    }

    /// Whether it is executed by a worker.
    #[inline]
    pub(super) fn runs(&self) -> bool {
        self.flags & RUNS != 0
    }

    /// Whether it is restricted to some workers, or has data for the scheduler.
    #[inline]
    pub(super) fn is_special(&self) -> bool {
        self.flags & IS_SPECIAL != 0
    }
}

/// An access in one word: the data, and the mode in the lowest bits.
#[derive(Clone, Copy, Debug)]
struct Packed(u32);

const MODE_BITS: u32 = 3;

/// Maximum number of pieces of data. They take 16 GiB of a graph.
const MOST_DATA: usize = 1 << (u32::BITS - MODE_BITS);

impl Packed {
    fn of(Access { data, mode }: Access) -> Packed {
        Packed(data.0 << MODE_BITS | mode as u32)
    }

    #[inline]
    fn access(self) -> Access {
        let mode = match self.0 & ((1 << MODE_BITS) - 1) {
            0 => AccessMode::Read,
            1 => AccessMode::Write,
            2 => AccessMode::ReadWrite,
            3 => AccessMode::Commute,
            4 => AccessMode::Redux,
            _ => AccessMode::Scratch,
        };
        Access { data: DataId(self.0 >> MODE_BITS), mode }
    }
}

/// The specs of all tasks.
#[derive(Debug)]
pub(super) struct Specs {
    specs: Box<[Spec]>,
    /// Accesses of tasks that have many.
    many: Box<[Packed]>,
    /// Greatest number of accesses of a task.
    pub(super) most_accesses: usize,
    /// Whether any task commutes.
    pub(super) any_commutes: bool,
}

impl Specs {
    /// # Panics
    /// If there is more data than a word can number.
    pub(super) fn of(graph: &TaskGraph) -> Specs {
        assert!(graph.data.len() <= MOST_DATA, "a simulation has at most 2^29 pieces of data");
        let (mut many, mut most_accesses, mut any_commutes) = (Vec::new(), 0, false);
        let spec = |task: &Task| {
            most_accesses = task.accesses.len().max(most_accesses);
            any_commutes |= task.accesses.iter().any(|access| access.mode == AccessMode::Commute);
            Spec::of(graph, task, &mut many)
        };
        let specs = graph.tasks.iter().map(spec).collect();
        Specs { specs, many: many.into(), most_accesses, any_commutes }
    }

    #[inline]
    pub(super) fn get(&self, task: TaskId) -> &Spec {
        &self.specs[task.index()]
    }

    /// All of them, in the order of the tasks.
    pub(super) fn iter(&self) -> impl Iterator<Item = (TaskId, &Spec)> {
        (0..).map(TaskId).zip(&self.specs)
    }

    /// Data accesses of a task.
    #[inline]
    pub(super) fn accesses(&self, task: TaskId) -> Accesses<'_> {
        let Spec { count, accesses, .. } = self.get(task);
        Accesses(accesses.get(..usize::from(*count)).unwrap_or_else(|| {
            let [place, count, ..] = accesses.map(|word| word.0 as usize);
            &self.many[place..][..count]
        }))
    }
}

/// The data accesses of a task.
#[derive(Clone, Copy)]
pub(super) struct Accesses<'a>(&'a [Packed]);

impl<'a> Accesses<'a> {
    #[inline]
    pub(super) fn len(self) -> usize {
        self.0.len()
    }

    /// The access at this place.
    #[inline]
    pub(super) fn get(self, at: usize) -> Option<Access> {
        self.0.get(at).map(|packed| packed.access())
    }

    #[inline]
    pub(super) fn iter(self) -> impl ExactSizeIterator<Item = Access> + Clone + 'a {
        self.0.iter().map(|packed| packed.access())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn accesses() -> impl Strategy<Value = Vec<Access>> {
        use AccessMode::*;
        let mode = prop::sample::select(vec![Read, Write, ReadWrite, Commute, Redux, Scratch]);
        let access = (0..(1_u32 << 29), mode).prop_map(|(data, mode)| Access { data: DataId(data), mode });
        prop::collection::vec(access, 0..12)
    }

    proptest! {
        /// However many accesses a task has, they are those of the graph.
        #[test]
        fn accesses_are_those_of_the_graph(tasks in prop::collection::vec(accesses(), 1..20)) {
            let mut graph = TaskGraph::new("graph");
            let kind = graph.add_kind("kind");
            for accesses in &tasks {
                graph.tasks.push(Task { accesses: accesses.clone().into(), ..Task::new(kind) });
            }
            let specs = Specs::of(&graph);
            for (task, accesses) in graph.ids().zip(&tasks) {
                let packed = specs.accesses(task);
                prop_assert_eq!(&packed.iter().collect::<Vec<_>>(), accesses);
                prop_assert_eq!((packed.len(), packed.get(0)), (accesses.len(), accesses.first().copied()));
            }
        }
    }
}

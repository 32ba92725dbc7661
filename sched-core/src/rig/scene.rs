//! The fake environment of the component: workers, children, parents, models.

use super::graph::Ahead;
use crate::abi::wire::{NO_ID, RawPlace, RawWorker, place};
use crate::component::Refusal;
use crate::estimate::{Estimate, Time};
use crate::workers::{Arch, MemoryNode, WorkerId, WorkerSet};
use abi_stable::std_types::{RSlice, RStr};
use std::collections::{HashMap, VecDeque};
use std::time::Duration;

/// A child of the component under test. It keeps the tasks that it accepts: see
/// [`Rig::child_tasks`](super::Rig::child_tasks).
#[derive(Clone, Debug)]
pub struct FakeChild {
    pub(super) workers: Option<WorkerSet>,
    pub(super) leaf: bool,
    pub(super) slot: &'static str,
    pub(super) room: Option<usize>,
    pub(super) refusal: Refusal,
    pub(super) end: Time,
    pub(super) load: f64,
}

impl Default for FakeChild {
    fn default() -> FakeChild {
        FakeChild::new()
    }
}

impl FakeChild {
    /// A child above all workers of the rig, which accepts every task.
    #[must_use]
    pub fn new() -> FakeChild {
        FakeChild {
            workers: None,
            leaf: false,
            slot: "",
            room: None,
            refusal: Refusal::Full,
            end: Time::ZERO,
            load: 0.0,
        }
    }

    /// A child above these workers, which accepts every task.
    #[must_use]
    pub fn over(workers: impl IntoIterator<Item = u32>) -> FakeChild {
        FakeChild { workers: Some(workers.into_iter().map(WorkerId).collect()), ..FakeChild::new() }
    }

    /// A child that is a worker.
    #[must_use]
    pub fn worker(worker: u32) -> FakeChild {
        FakeChild { leaf: true, ..FakeChild::over([worker]) }
    }

    /// Limits the child to this many tasks, after which it refuses; see also [`Rig::set_room`](super::Rig::set_room).
    #[must_use]
    pub fn room(mut self, tasks: usize) -> FakeChild {
        self.room = Some(tasks);
        self
    }

    /// Sets the reason of its refusals; [`Refusal::Full`] unless set.
    #[must_use]
    pub fn refusal(mut self, why: Refusal) -> FakeChild {
        self.refusal = why;
        self
    }

    /// Sets the slot that it fills.
    #[must_use]
    pub fn slot(mut self, name: &'static str) -> FakeChild {
        self.slot = name;
        self
    }

    /// [`slot`](Self::slot), for a name that is read at run time.
    pub(super) fn in_slot(mut self, name: &str) -> Self {
        self.slot = leaked(name).as_str();
        self
    }

    /// Sets its answer to `estimated_end`: when its workers run out of work. Each task that it accepts with a
    /// [prediction](crate::Task::set_predicted) adds to it, divided among its workers; one without does not.
    #[must_use]
    pub fn end(mut self, end: Time) -> FakeChild {
        self.end = end;
        self
    }

    /// Sets its answer to `estimated_load`.
    #[must_use]
    pub fn load(mut self, load: f64) -> FakeChild {
        self.load = load;
        self
    }
}

/// A parent of the component under test. [`Rig::give_parent`](super::Rig::give_parent) gives it tasks.
#[derive(Clone, Debug, Default)]
pub struct FakeParent {
    pub(super) silent: bool,
}

impl FakeParent {
    /// A parent that gives its tasks in order: on a pull, the first that the requester can execute; when notified that
    /// there is room, as many as the component accepts.
    #[must_use]
    pub fn new() -> FakeParent {
        FakeParent::default()
    }

    /// Makes it send nothing when notified that there is room; it still gives tasks on a pull.
    #[must_use]
    pub fn silent(mut self) -> FakeParent {
        self.silent = true;
        self
    }
}

/// The part of the environment that does not change during a call.
pub(super) struct Scene {
    pub(super) workers: Vec<RawWorker>,
    /// The members of each combined worker.
    pub(super) combined: Vec<Vec<u32>>,
    /// The host offers no extension.
    pub(super) bare: bool,
    /// The host provides the submitted tasks.
    pub(super) foresees: bool,
    /// Children call back during the hops that reach them.
    pub(super) nosy: bool,
    pub(super) in_context: Option<WorkerSet>,
    pub(super) children: Vec<FakeChild>,
    pub(super) parents: Vec<FakeParent>,
    pub(super) leaf: Option<WorkerId>,
    pub(super) place: RawPlace<'static>,
    pub(super) child_places: Vec<RawPlace<'static>>,
}

impl Scene {
    pub(super) fn new() -> Scene {
        let mut scene = Scene {
            workers: Vec::new(),
            combined: Vec::new(),
            bare: false,
            foresees: false,
            nosy: false,
            in_context: None,
            children: Vec::new(),
            parents: Vec::new(),
            leaf: None,
            place: RawPlace::NOWHERE,
            child_places: Vec::new(),
        };
        scene.arrange();
        scene
    }

    /// Number of simple workers.
    fn simple(&self) -> usize {
        self.workers.len().max(1)
    }

    /// The simple workers that make up a worker; none for one that does not exist.
    pub(super) fn members(&self, worker: u32) -> Vec<u32> {
        match (worker as usize).checked_sub(self.simple()) {
            None => vec![worker],
            Some(combined) => self.combined.get(combined).cloned().unwrap_or_default(),
        }
    }

    pub(super) fn worker(&self, worker: u32) -> Option<RawWorker> {
        if self.workers.is_empty() && worker == 0 {
            return Some(a_core());
        }
        self.workers.get(worker as usize).copied().or_else(|| self.combined_worker(worker))
    }

    /// As fast as its members together; in the memory node of the first.
    fn combined_worker(&self, worker: u32) -> Option<RawWorker> {
        let combined = self.combined.get((worker as usize).checked_sub(self.simple())?)?;
        let members: Vec<RawWorker> = combined.iter().filter_map(|member| self.worker(*member)).collect();
        let relative_speedup = members.iter().map(|member| member.relative_speedup).sum();
        Some(RawWorker { relative_speedup, ..*members.first()? })
    }

    fn all_workers(&self) -> WorkerSet {
        match self.leaf {
            Some(worker) => [worker].into_iter().collect(),
            None => WorkerSet::first(self.simple() as u32),
        }
    }

    /// The fake children: if the test added none, one above all workers, unless the component is a leaf.
    pub(super) fn children(&self) -> Vec<FakeChild> {
        if self.children.is_empty() && self.leaf.is_none() { vec![FakeChild::new()] } else { self.children.clone() }
    }

    /// Recomputes the places.
    pub(super) fn arrange(&mut self) {
        let all = self.all_workers();
        let children = self.children();
        let leaf = self.leaf.map_or(NO_ID, |worker| worker.0);
        let mut own = self.place_of(&all, leaf, "");
        own.path = RStr::from_str("component");
        own.children = children.len() as u32;
        own.parents = self.parents.len() as u32;
        self.place = own;
        self.child_places = children
            .iter()
            .zip(1..)
            .map(|(child, id)| {
                let workers = child.workers.clone().unwrap_or_else(|| all.clone());
                let leaf = if child.leaf { workers.iter().next().map_or(NO_ID, |worker| worker.0) } else { NO_ID };
                let mut place = self.place_of(&workers, leaf, child.slot);
                place.id = id;
                place.parents = 1;
                place.path = leaked(&format!("component/child {}", id - 1));
                place
            })
            .collect();
    }

    fn place_of(&self, workers: &WorkerSet, leaf: u32, slot: &'static str) -> RawPlace<'static> {
        let mut present = workers.clone();
        if let Some(context) = &self.in_context {
            present.intersect_with(context);
        }
        let members: WorkerSet = present.iter().flat_map(|worker| self.members(worker.0)).map(WorkerId).collect();
        let known: Vec<RawWorker> = members.iter().filter_map(|worker| self.worker(worker.0)).collect();
        let same_arch = known.windows(2).all(|pair| pair[0].arch == pair[1].arch);
        let same_memory = known.windows(2).all(|pair| pair[0].memory_node == pair[1].memory_node);
        let memory_node = known.first().filter(|_| same_memory).map_or(NO_ID, |worker| worker.memory_node);
        let mut flags = 0;
        flags |= if same_arch { place::HOMOGENEOUS } else { 0 };
        flags |= if memory_node != NO_ID { place::SINGLE_MEMORY_NODE } else { 0 };
        flags |= if leaf != NO_ID { place::LEAF } else { 0 };
        RawPlace {
            flags,
            memory_node,
            worker: leaf,
            relative_speedup: known.iter().map(|worker| worker.relative_speedup).sum(),
            object: if leaf == NO_ID { RStr::empty() } else { leaked(&WorkerId(leaf).to_string()) },
            slot: slot.into(),
            workers: leaked_words(workers),
            workers_in_context: leaked_words(&present),
            ..RawPlace::NOWHERE
        }
    }
}

fn a_core() -> RawWorker {
    fake_worker(Arch::CPU, MemoryNode(0))
}

/// A worker with StarPU's speed for its architecture.
pub(super) fn fake_worker(arch: Arch, memory_node: MemoryNode) -> RawWorker {
    let relative_speedup = arch.relative_speedup();
    RawWorker { arch: u32::from(arch.number()), memory_node: memory_node.0, relative_speedup }
}

// Leaks the text: a place refers to names and sets that live as long as itself, and a few bytes per test do not justify
// a self-referential type.
fn leaked(text: &str) -> RStr<'static> {
    RStr::from_str(Box::leak(text.to_owned().into_boxed_str()))
}

fn leaked_words(set: &WorkerSet) -> RSlice<'static, u64> {
    RSlice::from_slice(Box::leak(set.words().to_vec().into_boxed_slice()))
}

/// The rig's performance models. Keys begin with a codelet.
#[derive(Default)]
pub(super) struct Models {
    pub(super) lengths: HashMap<(u32, u32, u32), Estimate>,
    pub(super) transfers: HashMap<(u32, u32), Duration>,
    pub(super) energies: HashMap<(u32, u32), f64>,
    pub(super) implementations: HashMap<u32, u32>,
}

impl Models {
    pub(super) fn implementations(&self, codelet: u32) -> u32 {
        self.implementations.get(&codelet).copied().unwrap_or(1)
    }

    /// The estimate; with `NO_ID` as the implementation, the best: the shortest known, unless one still needs
    /// measuring.
    pub(super) fn length(&self, codelet: u32, worker: u32, implementation: u32) -> Estimate {
        let of =
            |implementation| self.lengths.get(&(codelet, worker, implementation)).copied().unwrap_or(Estimate::NoModel);
        if implementation != NO_ID {
            return of(implementation);
        }
        (0..self.implementations(codelet)).map(of).fold(Estimate::NoModel, |best, next| match (best, next) {
            (Estimate::Uncalibrated, _) | (_, Estimate::Uncalibrated) => Estimate::Uncalibrated,
            (Estimate::Known(a), Estimate::Known(b)) => Estimate::Known(a.min(b)),
            (Estimate::NoModel, other) | (other, Estimate::NoModel) => other,
        })
    }
}

/// The part of the environment that changes during calls.
#[derive(Default)]
pub(super) struct Changing {
    pub(super) rooms: HashMap<u32, Option<usize>>,
    pub(super) ends: HashMap<u32, Time>,
    pub(super) loads: HashMap<u32, f64>,
    /// Total expected nanoseconds of the tasks that each child accepted since its end was set. Without a prediction a
    /// task does not count.
    pub(super) queued_below: HashMap<u32, u64>,
    pub(super) given: HashMap<u32, VecDeque<crate::TaskId>>,
    pub(super) taken: HashMap<u32, Vec<crate::TaskId>>,
    /// When each worker is expected to finish its current task.
    pub(super) busy: HashMap<u32, Time>,
    /// Total expected length of the tasks queued for each worker in other leaves.
    pub(super) elsewhere: HashMap<u32, Duration>,
    /// Total expected nanoseconds that the component reported as queued.
    pub(super) queued: u64,
    /// Whether the component reported that it has no room.
    pub(super) is_full: bool,
    /// The load of each simple worker's own leaf.
    pub(super) worker_loads: HashMap<u32, f64>,
    pub(super) awake: WorkerSet,
    pub(super) woken: Vec<WorkerId>,
    pub(super) models: Models,
    pub(super) ahead: Ahead,
    pub(super) random: u64,
}

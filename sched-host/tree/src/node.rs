//! One node of a tree: a component, its neighbours, and the component's view of the host.

use super::attendance::PostNumber;
use super::backlog::Queued;
use super::breach::{Breach, Breaches};
use super::call::Call;
use super::claims::{Lies, Silence, Silences};
use super::expected_ends::{self, StraightBelow};
use super::fault::{Fault, FaultKind};
use super::ledger::{NodeId, NodeNumber};
use super::listener::Offered;
use super::lookahead::{Foresight, GRAPH, SUBMISSION};
use super::neighbours::NEIGHBOURS;
use super::observer::NoteKind;
use super::place::Place;
use super::prospects::{self, EqualRun, PROSPECTS, RunPlaces, WorkerGroup};
use super::room::{ROOM, Room};
use super::routes::{CAPACITIES, ROUTES};
use super::services::LogLine;
use super::shared_part::SharedPart;
use super::teams::TeamsBelow;
use super::wake_routes::{WakeRoutes, words};
use parking_lot::Mutex;
use sched_core::abi::extension::{
    HostCapacities, HostEnds, HostGraph, HostLog, HostNeighbours, HostProspectRuns, HostProspects, HostRoom,
    HostRoutes, HostSubmission, HostTeams, HostTimes, Named, RawExtension, WorkerDistance,
};
use sched_core::abi::std_types::{ROption, RStr};
use sched_core::abi::wire::{CallRef, NO_ID, REQUESTER, RawNode, RawPlace, RawPush, RawWorker};
use sched_core::abi::{ComponentObject, RawTask, TaskHead, WireHost};
use sched_core::{Arch, Estimate, Family, LogLevel, MemoryNode, Params, WorkerId};
use sched_text::hash::{self, mix};
use smallvec::SmallVec;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, AtomicU64, Ordering::*};

/// The way from a node to a parent.
#[derive(Clone, Copy)]
pub(super) struct ParentLink {
    pub(super) parent: NodeId,
    /// Number of the node among the children of the parent.
    pub(super) child: u32,
}

/// No task was pushed to the component yet, and it has none before that.
const UNTOUCHED: u8 = 1;
/// The component failed.
const QUARANTINED: u8 = 2;

/// What the component of a node is. In a box of its own: calls do not look at it.
#[derive(PartialEq, Debug)]
pub(super) struct Origin {
    pub(super) component: String,
    pub(super) plugin: String,
    /// What it was built with.
    pub(super) params: Params,
}

/// One node. Fields that nearly every hop reads come first, on one cache line: there may be a thousand leaves, and each
/// task is pulled by another.
#[repr(C, align(64))]
pub(super) struct TreeNode {
    /// Nodes that a pull asks: the parents, or the sources of parents that only forward pulls.
    pub(super) sources: Box<[ParentLink]>,
    pub(super) component: ComponentObject,
    pub(super) id: NodeId,
    /// Number among the nodes of all trees.
    pub(super) number: NodeNumber,
    /// Architectures of the workers below.
    pub(super) archs: u32,
    /// Reasons why calls do not go to the component: [`UNTOUCHED`], [`QUARANTINED`].
    passing: AtomicU8,
    /// Whether the estimated end follows from notes, so that the component is not asked.
    pub(super) end_is_noted: bool,
    /// Whether the component is declared to store any number of tasks.
    pub(super) stores_any_number: bool,
    /// Whether the component refuses each task that all of its children refuse.
    pub(super) refuses_with_children: bool,
    /// Whether the component answers a pull by having its parents push, and has some.
    pub(super) pushes_on_pull: bool,
    /// Whether tasks that it has are [fetched](super::LiveTree::fetch) for a component below that does so.
    pub(super) fetches_below: bool,
    /// Whether it has room, and its children.
    pub(super) room: Room,
    pub(super) origin: Box<Origin>,
    pub(super) children: Box<[NodeId]>,
    /// Each parent, with the number of this node among its children.
    pub(super) parents: Box<[ParentLink]>,
    /// The workers below.
    pub(super) worker_groups: Box<[WorkerGroup]>,
    /// For each child, the first child with the same prospects for any task.
    pub(super) first_equals: Box<[NodeId]>,
    /// Runs of children with the same prospects for any task.
    pub(super) equal_runs: Box<[EqualRun]>,
    /// The kinds of workers below these runs, if there are few.
    pub(super) run_places: Option<RunPlaces>,
    /// Words of worker sets that have workers below.
    pub(super) words: Range<usize>,
    /// Routes from sleepers to children, if they exist.
    pub(super) wake_routes: Option<WakeRoutes>,
    /// The combined workers below, if there are any.
    pub(super) teams: Option<TeamsBelow>,
    /// Expected length of the queue in nanoseconds, as noted by the component.
    pub(super) queued: Queued,
    pub(super) places: Arc<[Place]>,
    pub(super) workers: Arc<[RawWorker]>,
    /// If all nodes down to the leaf of a single simple worker note their queues: that worker, and all nodes whose
    /// notes count.
    pub(super) straight: Option<(WorkerId, SmallVec<[NodeId; 4]>)>,
    /// What the ends of all children follow from, if there are several and all of them are straight.
    pub(super) straight_below: Option<StraightBelow>,
    /// Source of tasks to come, for components that ask.
    pub(super) foresight: Option<Arc<Foresight>>,
    /// Where calls of the component are noted, if they are.
    pub(super) post: Option<Arc<PostNumber>>,
    /// The part that it is a view of, if its component has nodes in several trees.
    pub(super) shared: Option<Arc<SharedPart>>,
    pub(super) health: Health,
    /// Whether the component lives on when workers join the context or leave it.
    pub(super) keeps_state: bool,
    /// Whether the component is declared to give a worker what that pushed last.
    pub(super) newest_comes_back: bool,
    /// Whether the component is declared to keep a task for the worker where that is at home.
    pub(super) waits_at_home: bool,
    /// What the component offers beyond the interface of all.
    pub(super) offered: Offered,
    pub(super) family: Option<Family>,
    /// Of a component that pushes on pull: whether it refused the last task, and nobody below has reported room since.
    is_blocked: AtomicBool,
    random: AtomicU64,
}

/// Health of a node.
#[derive(Default)]
pub(super) struct Health {
    /// The first panic.
    pub(super) panic: Mutex<Option<String>>,
    pub(super) cycle: AtomicBool,
    pub(super) rehomed: AtomicU64,
    pub(super) wrong_worker: AtomicU64,
    pub(super) breaches: Breaches,
    pub(super) lies: Lies,
    pub(super) silences: Silences,
    /// Code of the last refusal; 0 for none.
    pub(super) last_refusal: AtomicU32,
    /// Number of refusals; approximate if several threads refuse at once.
    pub(super) refusals: AtomicU64,
}

/// Arguments of [`TreeNode::new`].
pub(super) struct NodeParts {
    pub(super) id: NodeId,
    /// Number among the nodes of all trees.
    pub(super) number: NodeNumber,
    pub(super) component: ComponentObject,
    pub(super) origin: Box<Origin>,
    pub(super) empty_until_pushed: bool,
    pub(super) end_is_noted: bool,
    pub(super) stores_any_number: bool,
    pub(super) refuses_with_children: bool,
    pub(super) pushes_on_pull: bool,
    pub(super) fetches_below: bool,
    pub(super) keeps_state: bool,
    pub(super) hears_tasks: bool,
    pub(super) newest_comes_back: bool,
    pub(super) waits_at_home: bool,
    pub(super) family: Option<Family>,
    pub(super) children: Box<[NodeId]>,
    pub(super) parents: Box<[ParentLink]>,
    /// Nodes that a pull asks.
    pub(super) sources: Box<[ParentLink]>,
    pub(super) places: Arc<[Place]>,
    pub(super) workers: Arc<[RawWorker]>,
    pub(super) worker_groups: Box<[WorkerGroup]>,
    pub(super) teams: Option<TeamsBelow>,
    /// Where calls of the component are noted, if they are.
    pub(super) post: Option<Arc<PostNumber>>,
    pub(super) shared: Option<Arc<SharedPart>>,
    /// Seeds the randomness of the tree's nodes.
    pub(super) seed: u64,
}

impl TreeNode {
    pub(super) fn new(parts: NodeParts) -> TreeNode {
        let NodeParts { id, places, workers, teams, children, .. } = parts;
        let below = sched_core::WorkerSet::from_words(&places[id.index()].raw().workers_in_context);
        let archs = below
            .iter()
            .filter_map(|worker| workers.get(worker.index()))
            .fold(0, |archs, worker| archs | 1 << worker.arch);
        let random = AtomicU64::new(mix(parts.seed ^ mix(u64::from(id.0) + 1)));
        TreeNode {
            id,
            number: parts.number,
            offered: Offered::by(&parts.component, parts.hears_tasks),
            family: parts.family,
            component: parts.component,
            origin: parts.origin,
            words: words(places[id.index()].raw()),
            // Combined workers do not sleep: their members do.
            wake_routes: if teams.is_none() { WakeRoutes::new(&children, &places) } else { None },
            room: Room::new(children.len(), parts.post.is_some()),
            children,
            parents: parts.parents,
            sources: parts.sources,
            archs,
            worker_groups: parts.worker_groups,
            first_equals: Box::default(),
            equal_runs: Box::default(),
            run_places: None,
            teams,
            queued: parts.shared.as_ref().map_or_else(Queued::default, |shared| shared.queued.clone()),
            shared: parts.shared,
            places,
            workers,
            passing: AtomicU8::new(if parts.empty_until_pushed { UNTOUCHED } else { 0 }),
            end_is_noted: parts.end_is_noted,
            stores_any_number: parts.stores_any_number,
            refuses_with_children: parts.refuses_with_children,
            pushes_on_pull: parts.pushes_on_pull,
            is_blocked: AtomicBool::new(false),
            fetches_below: parts.fetches_below,
            straight: None,
            straight_below: None,
            foresight: None,
            post: parts.post,
            health: Health::default(),
            keeps_state: parts.keeps_state,
            newest_comes_back: parts.newest_comes_back,
            waits_at_home: parts.waits_at_home,
            random,
        }
    }

    /// Whether the component, which pushes on pull, would refuse the next task too, as far as is known.
    pub(super) fn is_blocked(&self) -> bool {
        self.is_blocked.load(Relaxed)
    }

    /// Notes that the component, which pushes on pull, has refused a task, or that it may take one.
    pub(super) fn set_blocked(&self, is_blocked: bool) {
        // Mostly that is known, and others read the line.
        if self.is_blocked.load(Relaxed) != is_blocked {
            self.is_blocked.store(is_blocked, Relaxed);
        }
    }

    pub(super) fn place(&self) -> &Place {
        &self.places[self.id.index()]
    }

    /// The workers below that are in the context.
    pub(super) fn workers_in_context(&self) -> impl Iterator<Item = WorkerId> {
        (0..).zip(self.place().raw().workers_in_context.iter()).flat_map(|(place, word)| {
            let bits = (0..64).filter(move |bit| word >> bit & 1 == 1);
            bits.map(move |bit| WorkerId(place * 64 + bit))
        })
    }

    /// Whether a worker is below, and in the context.
    pub(super) fn has_in_context(&self, worker: WorkerId) -> bool {
        let words = &self.place().raw().workers_in_context;
        words.get(worker.index() / 64).is_some_and(|word| word >> (worker.index() % 64) & 1 == 1)
    }

    /// Number of workers below, at least 1.
    pub(super) fn count_in_context(&self) -> u64 {
        let words = self.place().raw().workers_in_context.iter();
        words.map(|word| u64::from(word.count_ones())).sum::<u64>().max(1)
    }

    pub(super) fn is_quarantined(&self) -> bool {
        self.passing.load(Relaxed) & QUARANTINED != 0
    }

    /// Lets calls pass through the node from now on.
    pub(super) fn set_quarantined(&self) {
        self.passing.fetch_or(QUARANTINED, Relaxed);
    }

    /// Whether the component has nothing to pull, so that its sources are asked at once.
    #[inline]
    pub(super) fn is_passed_by(&self) -> bool {
        self.passing.load(Relaxed) != 0
    }

    /// Exchanges the components of two nodes, with what the host notes of them.
    pub(super) fn exchange_component(&mut self, other: &mut TreeNode) {
        std::mem::swap(&mut self.component, &mut other.component);
        std::mem::swap(&mut self.offered, &mut other.offered);
        std::mem::swap(&mut self.post, &mut other.post);
        let (here, there) = (self.passing.get_mut(), other.passing.get_mut());
        let differ = (*here ^ *there) & UNTOUCHED;
        *here ^= differ;
        *there ^= differ;
        // Other trees read these counters: the lengths move, the counters stay.
        let (here, there) = (self.queued.nanos(), other.queued.nanos());
        self.queued.set(there);
        other.queued.set(here);
    }

    /// Announces a push. Returns whether it goes to the component.
    ///
    /// A worker that passes by meanwhile finds the task nevertheless: this store precedes the pusher's look for
    /// sleepers, as the task does.
    #[inline]
    pub(super) fn accepts_push(&self) -> bool {
        self.passing.load(Relaxed) == 0 || self.passing.fetch_and(!UNTOUCHED, Relaxed) & QUARANTINED == 0
    }

    /// Runs `body` with the component's view of the node in this call.
    #[inline]
    pub(super) fn with<T>(&self, call: &Call<'_>, body: impl FnOnce(&ComponentObject, &RawNode) -> T) -> T {
        // SAFETY: node and call outlive the `RawNode`, which lives for this block.
        let raw = unsafe { RawNode::new(self, call.reference()) };
        body(&self.component, &raw)
    }

    /// Methods that passed nothing on.
    pub(super) fn silences(&self) -> Vec<Silence> {
        self.health.silences.all()
    }

    pub(super) fn note_refusal(&self, code: u32) {
        self.health.last_refusal.store(code, Relaxed);
        self.health.refusals.store(self.health.refusals.load(Relaxed) + 1, Relaxed);
    }

    /// Faults of the node; `lost` is the number of tasks that it dropped.
    pub(super) fn faults(&self, lost: u64) -> Vec<Fault> {
        let rehomed = self.health.rehomed.load(Relaxed);
        let mut kinds = Vec::new();
        if let Some(message) = self.health.panic.lock().clone() {
            // Unwinding drops the tasks that a panicking call holds: no separate fault.
            kinds.push(FaultKind::Panicked { message, rehomed: rehomed + lost });
        } else if self.health.cycle.load(Relaxed) {
            kinds.push(FaultKind::Cycle { rehomed: rehomed + lost });
        } else if let Some(method) = self.post.as_ref().and_then(|post| post.given_up()) {
            kinds.push(FaultKind::Overdue { method, rehomed: rehomed + lost });
        } else if lost > 0 {
            kinds.push(FaultKind::Dropped { tasks: lost });
        }
        let wrong = self.health.wrong_worker.load(Relaxed);
        if wrong > 0 {
            kinds.push(FaultKind::WrongWorker { tasks: wrong });
        }
        let breaches = self.health.breaches.all().into_iter();
        kinds.extend(breaches.map(|(breach, method, count)| FaultKind::Breach { breach, method, count }));
        let lies = self.health.lies.all().into_iter();
        kinds.extend(lies.map(|(declaration, method, count)| FaultKind::Declaration { declaration, method, count }));
        let fault = |kind| Fault {
            context: String::new(),
            node: self.place().path().to_owned(),
            component: self.origin.component.clone(),
            plugin: self.origin.plugin.clone(),
            kind,
        };
        kinds.into_iter().map(fault).collect()
    }
}

/// The host's record of the call.
pub(super) fn record<'a>(call: CallRef<'a>) -> &'a Call<'a> {
    // SAFETY: a `CallRef` is made from a `Call` by `Call::reference` only, and components, which cannot make one, hand
    // back the one that they were lent for the call.
    unsafe { &*call.as_ptr().cast::<Call<'a>>() }
}

pub(super) fn head<'a>(task: RawTask) -> Option<&'a TaskHead> {
    // SAFETY: a handle's head lies in a slot of a ledger, which is never given back.
    unsafe { task.head.as_ref() }
}

impl WireHost for TreeNode {
    fn push_to(&self, call: CallRef<'_>, child: u32, task: RawTask) -> RawPush {
        let call = record(call);
        match self.children.get(child as usize) {
            Some(target) => call.tree.hop_push(call, self.id, *target, task),
            None => {
                self.note_breach(call, Breach::NoSuchChild);
                RawPush { refused: task, why: 2 }
            }
        }
    }

    fn pull_from(&self, call: CallRef<'_>, parent: u32) -> RawTask {
        let call = record(call);
        call.tree.hop_pull(call, self, (parent != NO_ID).then_some(parent))
    }

    fn parents_can_push(&self, call: CallRef<'_>) -> bool {
        let call = record(call);
        call.tree.hop_can_push(call, self)
    }

    fn child_can_pull(&self, call: CallRef<'_>, child: u32) -> bool {
        let call = record(call);
        call.tree.hop_can_pull(call, self, (child != NO_ID).then_some(child), false)
    }

    fn wake(&self, call: CallRef<'_>, all: bool) -> bool {
        let call = record(call);
        call.tree.hop_can_pull(call, self, None, all)
    }

    fn child_estimated_end(&self, call: CallRef<'_>, child: u32) -> u64 {
        let call = record(call);
        match self.children.get(child as usize) {
            Some(target) => call.tree.hop_estimated_end(call, *target),
            None => {
                self.note_breach(call, Breach::NoSuchChild);
                0
            }
        }
    }

    fn child_estimated_load(&self, call: CallRef<'_>, child: u32) -> f64 {
        let call = record(call);
        match self.children.get(child as usize) {
            Some(target) => call.tree.hop_estimated_load(call, *target),
            None => {
                self.note_breach(call, Breach::NoSuchChild);
                0.0
            }
        }
    }

    fn place(&self) -> &RawPlace<'_> {
        self.place().raw()
    }

    fn child_place(&self, child: u32) -> ROption<&RawPlace<'_>> {
        self.children.get(child as usize).map(|target| self.places[target.index()].raw()).into()
    }

    fn worker(&self, worker: u32) -> ROption<RawWorker> {
        self.workers.get(worker as usize).copied().into()
    }

    fn requester(&self, call: CallRef<'_>) -> u32 {
        record(call).requester.map_or(NO_ID, |worker| worker.0)
    }

    fn now(&self, call: CallRef<'_>) -> u64 {
        record(call).look_at_clock().as_nanos()
    }

    fn random(&self, _call: CallRef<'_>) -> u64 {
        mix(self.random.fetch_add(hash::GAMMA, Relaxed))
    }

    fn can_execute(&self, call: CallRef<'_>, worker: u32, task: RawTask) -> bool {
        let Some(head) = head(task) else { return false };
        let worker = match worker {
            REQUESTER => record(call).requester.map_or(NO_ID, |worker| worker.0),
            worker => worker,
        };
        let tree = record(call).tree;
        if worker == NO_ID { tree.some_fits(self, head) } else { tree.fits(worker, head) }
    }

    fn child_can_execute(&self, call: CallRef<'_>, child: u32, task: RawTask) -> bool {
        let (Some(head), Some(target)) = (head(task), self.children.get(child as usize)) else { return false };
        let tree = record(call).tree;
        tree.some_fits(&tree.nodes[target.index()], head)
    }

    fn implementations(&self, call: CallRef<'_>, worker: u32, task: RawTask) -> u32 {
        let (Some(head), Some(worker)) = (head(task), self.workers.get(worker as usize)) else { return 0 };
        let arch = u8::try_from(worker.arch).ok().and_then(Arch::new);
        arch.map_or(0, |arch| record(call).tree.services.implementations(arch, head))
    }

    fn expected_length(&self, call: CallRef<'_>, worker: u32, task: RawTask, implementation: u32) -> u64 {
        let Some(head) = head(task) else { return u64::MAX };
        let chosen = (implementation != NO_ID).then_some(implementation);
        let tree = record(call).tree;
        if head.restriction() != 0 && !tree.fits(worker, head) {
            return Estimate::NoModel.to_wire();
        }
        tree.services.expected_length(WorkerId(worker), head, chosen).to_wire()
    }

    fn expected_transfer(&self, call: CallRef<'_>, memory_node: u32, task: RawTask) -> u64 {
        let Some(head) = head(task) else { return 0 };
        let length = record(call).tree.services.expected_transfer(MemoryNode(memory_node), head);
        u64::try_from(length.as_nanos()).unwrap_or(u64::MAX)
    }

    fn expected_energy(&self, call: CallRef<'_>, worker: u32, task: RawTask, implementation: u32) -> f64 {
        let Some(head) = head(task) else { return f64::NAN };
        let chosen = (implementation != NO_ID).then_some(implementation);
        record(call).tree.services.expected_energy(WorkerId(worker), head, chosen).unwrap_or(f64::NAN)
    }

    fn prefetch(&self, call: CallRef<'_>, memory_node: u32, task: RawTask) {
        if let Some(head) = head(task) {
            record(call).tree.services.prefetch(MemoryNode(memory_node), head);
        }
    }

    fn report_panic(&self, call: CallRef<'_>, message: RStr<'_>) {
        let call = record(call);
        let is_first = {
            let mut panic = self.health.panic.lock();
            let is_first = panic.is_none();
            panic.get_or_insert_with(|| message.to_string());
            is_first
        };
        if is_first {
            call.tree.note(call, self, NoteKind::Fault, || format!("panicked: {message}"));
        }
        call.tree.quarantine(self);
    }

    // Returned through a function of the interface, the answer would be read in another size than it was written in,
    // for which the processor waits.
    #[inline(always)]
    fn extension(&self, name: RStr<'_>) -> ROption<RawExtension> {
        match name.as_str() {
            HostLog::NAME => ROption::RSome(RawExtension::new(&HOST_LOG)),
            WorkerDistance::NAME => ROption::RSome(RawExtension::new(&WORKER_DISTANCE)),
            HostTimes::NAME => ROption::RSome(RawExtension::new(&expected_ends::TIMES)),
            HostProspects::NAME => ROption::RSome(RawExtension::new(&PROSPECTS)),
            HostProspectRuns::NAME => ROption::RSome(RawExtension::new(&prospects::RUNS)),
            HostGraph::NAME => {
                let lines = self.foresight.as_ref().map(|foresight| {
                    foresight.ask();
                    RawExtension::new(&GRAPH)
                });
                lines.into()
            }
            HostSubmission::NAME => self.foresight.as_ref().map(|_| RawExtension::new(&SUBMISSION)).into(),
            HostEnds::NAME => ROption::RSome(RawExtension::new(&expected_ends::ENDS)),
            HostRoom::NAME => ROption::RSome(RawExtension::new(&ROOM)),
            HostNeighbours::NAME => ROption::RSome(RawExtension::new(&NEIGHBOURS)),
            HostRoutes::NAME => ROption::RSome(RawExtension::new(&ROUTES)),
            HostCapacities::NAME => ROption::RSome(RawExtension::new(&CAPACITIES)),
            HostTeams::NAME => ROption::RSome(RawExtension::new(&expected_ends::TEAMS)),
            _ => ROption::RNone,
        }
    }
}

static HOST_LOG: HostLog = HostLog { log };

extern "C" fn log(call: CallRef<'_>, node: u32, level: u32, line: RStr<'_>) {
    let call = record(call);
    let tree = call.tree;
    let level = match level {
        1 => LogLevel::Error,
        2 => LogLevel::Warn,
        3 => LogLevel::Info,
        _ => LogLevel::Debug,
    };
    let from = tree.nodes.get(node as usize);
    if let Some(from) = from {
        tree.note(call, from, NoteKind::Log(level), || line.to_string());
    }
    let (node, component, plugin) =
        from.map_or(("", "", ""), |node| (node.place().path(), &*node.origin.component, &*node.origin.plugin));
    tree.services.log(&LogLine { node, component, plugin, level, text: line.as_str() });
}

static WORKER_DISTANCE: WorkerDistance = WorkerDistance { between };

extern "C" fn between(call: CallRef<'_>, _node: u32, one: u32, other: u32) -> u32 {
    record(call).tree.services.worker_distance(WorkerId(one), WorkerId(other)).unwrap_or(NO_ID)
}

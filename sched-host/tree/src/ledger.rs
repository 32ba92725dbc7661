//! The holder of each task: a slot for each task, in memory that is never returned to the system.
//!
//! A component holds a task as a handle: a pointer to the head of its slot, and a generation. The slot notes which node
//! holds the task. Each hop moves that note along with the task, so at any moment the host can tell where every task
//! is, can take tasks away from a failed node (*revocation*: the slot gets a new generation; the handles of the node
//! are then stale and are ignored), and can pass on a task that was dropped.
//!
//! A note is moved with a plain load and store: a handle is owned by one thread at a time, so no other thread moves it.
//! Revocation happens only while the [gate](sched_sync::gate) is closed, when no call is in the tree. One event may
//! happen even then: a thread of a plugin's own drops a handle, outside any call. So both use a compare-and-swap.
//!
//! All trees of a runtime share one ledger. Each tree takes a range of numbers for its nodes, and returns it at its
//! end: so a slot also tells which tree holds its task.

#[cfg(test)]
mod tests;

use super::backlog::Backlogs;
use super::fallback::Fallback;
use super::restrictions::Restrictions;
use super::shared_part::SharedParts;
use parking_lot::Mutex;
use sched_core::abi::{RawTask, TaskHead};
use sched_core::{Arch, WorkerId, WorkerSet, fetch_to_write};
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::atomic::{AtomicPtr, AtomicUsize, Ordering::*};
use std::sync::{Arc, OnceLock};

/// A node: its number in its tree, where parents come before their children.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct NodeId(pub u32);

impl NodeId {
    /// The node at this place of its tree's list.
    #[inline]
    #[must_use]
    pub const fn at(index: usize) -> NodeId {
        NodeId(index as u32)
    }

    /// Its place in its tree's list.
    #[inline]
    #[must_use]
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// A node: its number among the nodes of all trees that share a ledger.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct NodeNumber(pub u32);

impl NodeNumber {
    /// Number of the node `id` of the tree whose first node has this number.
    #[inline]
    pub(super) const fn of(self, id: NodeId) -> NodeNumber {
        NodeNumber(self.0 + id.0)
    }

    /// The node of this number in the tree whose first node has number `first`.
    #[inline]
    pub(super) const fn in_tree(self, first: NodeNumber) -> NodeId {
        NodeId(self.0 - first.0)
    }

    /// The range of this node alone.
    pub(super) const fn alone(self) -> Range<NodeNumber> {
        self..NodeNumber(self.0 + 1)
    }
}

/// State of a task.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Phase {
    /// The slot holds no task.
    Free,
    /// The task waits for others, or is being submitted.
    Waiting,
    /// A node holds it, given by its number among the nodes of all trees.
    InTree(NodeNumber),
    /// It left the tree other than by a pull, and waits in the fallback store of its context.
    Fallback,
    /// A worker executes it.
    Running,
}

/// Encodes the phase for the lower half of a state word: the kind above, the node below.
const NODE_BITS: u32 = 24;
const FREE: u64 = 0;
const WAITING: u64 = 1 << NODE_BITS;
const IN_TREE: u64 = 2 << NODE_BITS;
const FALLBACK: u64 = 3 << NODE_BITS;
const RUNNING: u64 = 4 << NODE_BITS;
const NODE_MASK: u64 = (1 << NODE_BITS) - 1;
const KIND_MASK: u64 = 0xff << NODE_BITS;

impl Phase {
    fn to_bits(self) -> u64 {
        match self {
            Phase::Free => FREE,
            Phase::Waiting => WAITING,
            Phase::InTree(node) => IN_TREE | u64::from(node.0),
            Phase::Fallback => FALLBACK,
            Phase::Running => RUNNING,
        }
    }

    fn from_bits(bits: u64) -> Phase {
        match bits & KIND_MASK {
            FREE => Phase::Free,
            WAITING => Phase::Waiting,
            IN_TREE => Phase::InTree(NodeNumber((bits & NODE_MASK) as u32)),
            FALLBACK => Phase::Fallback,
            _ => Phase::Running,
        }
    }
}

/// A slot of the ledger. Slots are numbered from 0 in their ledger.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct SlotId(pub u32);

/// Slot of a task in the ledger: two cache lines, the second of which is rarely needed except for `state`.
#[repr(C, align(128))]
pub struct Slot {
    /// The part visible to components. First, so that a pointer to it is a pointer to the slot. Its state word has the
    /// generation in the upper half and the phase in the lower.
    head: TaskHead,
    /// The ledger that uses the slot now. A thread with a handle of the current generation may read it.
    home: AtomicPtr<Home>,
}

impl Slot {
    /// The part visible to components.
    pub fn head(&self) -> &TaskHead {
        &self.head
    }

    /// Prefetches the slot for writing.
    #[inline]
    pub fn fetch(&self) {
        fetch_to_write(self);
    }

    /// Number of the slot.
    #[inline]
    pub fn id(&self) -> SlotId {
        SlotId(self.head.record)
    }

    /// Current generation.
    pub fn generation(&self) -> u32 {
        (self.head.state.load(Acquire) >> 32) as u32
    }

    /// Current phase of the task.
    pub fn phase(&self) -> Phase {
        Phase::from_bits(self.head.state.load(Acquire))
    }

    /// Generation and phase, read together.
    pub fn state(&self) -> (u32, Phase) {
        let bits = self.head.state.load(Acquire);
        ((bits >> 32) as u32, Phase::from_bits(bits))
    }

    /// Sets the phase of the task, which the caller owns.
    #[inline]
    pub fn set_phase(&self, phase: Phase) {
        let bits = self.head.state.load(Relaxed);
        self.head.state.store(bits >> 32 << 32 | phase.to_bits(), Release);
    }

    /// Makes every handle stale, and sets the phase of the task, which the caller owns.
    #[inline]
    pub fn renew(&self, phase: Phase) {
        let generation = (self.head.state.load(Relaxed) >> 32) as u32;
        let next = u64::from(generation.wrapping_add(1));
        self.head.state.store(next << 32 | phase.to_bits(), Release);
    }

    /// Takes the task away from the node that holds it, if that is one of `nodes`: every handle becomes stale. If it
    /// returns true, the caller owns the task.
    pub(super) fn take_from(&self, nodes: &Range<NodeNumber>, phase: Phase) -> bool {
        let bits = self.head.state.load(Acquire);
        let held = matches!(Phase::from_bits(bits), Phase::InTree(node) if nodes.contains(&node));
        held && self.take_as(bits, phase)
    }

    /// Takes the task away, if generation and phase are still those that were read as `bits`: every handle becomes
    /// stale. If it returns true, the caller owns the task.
    fn take_as(&self, bits: u64, phase: Phase) -> bool {
        let next = u64::from(((bits >> 32) as u32).wrapping_add(1)) << 32 | phase.to_bits();
        self.head.state.compare_exchange(bits, next, AcqRel, Relaxed).is_ok()
    }

    /// Notes that the task which node `from` holds is held by node `to`: its component has moved there. Handles stay
    /// valid.
    pub(super) fn move_with(&self, from: NodeNumber, to: NodeNumber) {
        let bits = self.head.state.load(Acquire);
        if Phase::from_bits(bits) == Phase::InTree(from) {
            let next = bits >> 32 << 32 | IN_TREE | u64::from(to.0);
            // It fails if a thread of the plugin drops the handle right now: then nobody holds the task.
            let _ = self.head.state.compare_exchange(bits, next, AcqRel, Relaxed);
        }
    }

    /// Notes that node `to` holds the task, of which the caller has the current handle, if node `from` still does.
    pub(super) fn pass(&self, task: RawTask, from: NodeNumber, to: NodeNumber) -> bool {
        let held_by = |node: NodeNumber| task.generation << 32 | IN_TREE | u64::from(node.0);
        self.head.state.compare_exchange(held_by(from), held_by(to), AcqRel, Relaxed).is_ok()
    }

    /// Notes that `node` holds the task, which the caller owns, and returns a handle.
    #[inline]
    pub(super) fn enter(&self, node: NodeNumber) -> RawTask {
        let generation = self.head.state.load(Relaxed) >> 32;
        let task = RawTask { head: self.as_head(), generation };
        self.hold(task, node);
        task
    }

    /// A handle of the current generation.
    pub fn handle(&self) -> RawTask {
        RawTask { head: self.as_head(), generation: u64::from(self.generation()) }
    }

    /// A pointer to the head, by way of the slot: one made from the head alone would not lead to the rest of the slot.
    #[inline]
    fn as_head(&self) -> *const TaskHead {
        std::ptr::from_ref(self).cast()
    }

    /// The slot of a handle, unless the handle is none or stale.
    #[inline]
    pub(super) fn of(task: RawTask) -> Option<&'static Slot> {
        let slot = Slot::of_any(task)?;
        let held = task.generation << 32 | IN_TREE;
        (slot.head.state.load(Acquire) & !NODE_MASK == held).then_some(slot)
    }

    /// [`of`](Self::of) for a handle whose task is about to be taken out of the tree, and its slot written.
    #[inline]
    pub(super) fn of_pulled(task: RawTask) -> Option<&'static Slot> {
        fetch_to_write(task.head);
        Slot::of(task)
    }

    /// Notes that `node` holds the task, of which the caller has the current handle.
    #[inline]
    pub(super) fn hold(&self, task: RawTask, node: NodeNumber) {
        self.head.state.store(task.generation << 32 | IN_TREE | u64::from(node.0), Release);
    }

    fn of_any(task: RawTask) -> Option<&'static Slot> {
        // SAFETY: handles are made by `enter` and `handle` only, from a pointer to a slot, whose first field is the
        // head; slots are in chunks that are never given back.
        (!task.is_none()).then(|| unsafe { &*task.head.cast::<Slot>() })
    }
}

/// State shared by all slots of one ledger. Never returned to the system, like the slots.
struct Home {
    /// Trees, by their first node numbers.
    trees: Mutex<BTreeMap<NodeNumber, Numbered>>,
}

/// The nodes of one tree.
struct Numbered {
    count: u32,
    fallback: Arc<Fallback>,
    /// Number of tasks dropped by each node.
    lost_by: BTreeMap<NodeNumber, u64>,
}

/// A component dropped a handle: moves the task to the fallback store, and counts the drop at the node that held it.
extern "C" fn lost(task: RawTask) {
    let Some(slot) = Slot::of_any(task) else { return };
    loop {
        let bits = slot.head.state.load(Acquire);
        let (generation, phase) = (bits >> 32, Phase::from_bits(bits));
        let Phase::InTree(node) = phase else { return };
        if generation != task.generation {
            return;
        }
        // SAFETY: the generation was current, so the ledger that set `home` still uses the slot; homes are never given
        // back.
        let home = unsafe { &*slot.home.load(Acquire) };
        let fallback = {
            let mut trees = home.trees.lock();
            // A tree that is gone holds nothing: its tasks were taken away.
            let Some((_, tree)) = trees.range_mut(..=node).next_back() else { return };
            // Exactly the task of the handle, which may be noted at another node by now: its component has moved.
            if !slot.take_as(bits, Phase::Fallback) {
                continue;
            }
            *tree.lost_by.entry(node).or_insert(0) += 1;
            Arc::clone(&tree.fallback)
        };
        return fallback.put(slot);
    }
}

/// Size of the first chunk. Sizes double, so a bit operation finds the chunk of an index and no chunk ever moves.
const FIRST_CHUNK: usize = 1024;
/// Number of chunks: with doubling sizes, two more than are ever filled, so that every 32-bit index falls into one and
/// no bound is checked, and whoever stores an index has a bit of it left.
pub const CHUNKS: usize = 23;

/// Chunk of a slot, and its place in the chunk.
#[inline]
pub fn chunk_of(slot: SlotId) -> (usize, usize) {
    let place = slot.0 as usize + FIRST_CHUNK;
    let chunk = (place.ilog2() - FIRST_CHUNK.ilog2()) as usize;
    (chunk, place - (FIRST_CHUNK << chunk))
}

/// Slots that no ledger uses, for reuse: they are never returned to the system, because a plugin may hold a stale
/// handle while its library is loaded, and libraries are never unloaded.
static UNUSED: Mutex<Vec<&'static [Slot]>> = Mutex::new(Vec::new());

/// Homes that no ledger uses, for reuse: a thread that drops a stale handle may still read one.
static UNUSED_HOMES: Mutex<Vec<&'static Home>> = Mutex::new(Vec::new());

/// The slots of all tasks of a runtime.
pub struct Ledger {
    chunks: [OnceLock<&'static [Slot]>; CHUNKS],
    len: AtomicUsize,
    grow: Mutex<()>,
    home: &'static Home,
    /// Queues of the trees.
    pub(super) backlogs: Backlogs,
    pub(super) restrictions: Arc<Restrictions>,
    /// Parts that trees share.
    pub(super) shared_parts: SharedParts,
}

impl Ledger {
    /// No slots yet.
    #[must_use]
    pub fn new() -> Ledger {
        let unused = UNUSED_HOMES.lock().pop();
        let home = unused.unwrap_or_else(|| Box::leak(Box::new(Home { trees: Mutex::default() })));
        Ledger {
            chunks: [const { OnceLock::new() }; CHUNKS],
            len: AtomicUsize::new(0),
            grow: Mutex::new(()),
            home,
            backlogs: Backlogs::default(),
            restrictions: Arc::default(),
            shared_parts: SharedParts::default(),
        }
    }

    /// Restricts a task that is not in a tree yet to these workers. Its architectures are set.
    pub fn restrict(&self, head: &TaskHead, workers: &WorkerSet) {
        self.restrictions.restrict(head, workers);
    }

    /// Whether the simple worker `worker`, or the combined worker with these `members`, can execute a task on its
    /// architecture, `arch`.
    #[must_use]
    pub fn allows(&self, head: &TaskHead, arch: Arch, worker: WorkerId, members: Option<&[WorkerId]>) -> bool {
        self.restrictions.allow(head, u32::from(arch.number()), worker, members)
    }

    /// Creates free slots, in order of their numbers.
    ///
    /// # Panics
    /// Beyond 2³¹ slots.
    pub fn grow(&self) -> &'static [Slot] {
        let _one_at_a_time = self.grow.lock();
        let unfilled = self.chunks[..CHUNKS - 2].iter().position(|chunk| chunk.get().is_none());
        let number = unfilled.expect("fewer than 2^31 tasks at once");
        let size = FIRST_CHUNK << number;
        let first = size - FIRST_CHUNK;
        let unused = {
            let mut unused = UNUSED.lock();
            let fits = unused.iter().position(|slots| slots.len() == size);
            fits.map(|fits| unused.swap_remove(fits))
        };
        let slots: &'static [Slot] = unused.unwrap_or_else(|| {
            let slot = |index| Slot {
                head: TaskHead::new((first + index) as u32, lost),
                home: AtomicPtr::new(std::ptr::null_mut()),
            };
            Vec::leak((0..size).map(slot).collect())
        });
        for slot in slots {
            slot.home.store(std::ptr::from_ref(self.home).cast_mut(), Release);
        }
        let _ = self.chunks[number].set(slots);
        self.len.store(first + size, Release);
        slots
    }

    /// The slot with this number.
    ///
    /// # Panics
    /// If there is none.
    #[inline]
    pub fn slot(&self, id: SlotId) -> &'static Slot {
        let (chunk, offset) = chunk_of(id);
        let slots: &'static [Slot] = self.chunks[chunk].get().expect("numbers of slots come from `grow`");
        &slots[offset]
    }

    /// All slots.
    pub fn slots(&self) -> impl Iterator<Item = &'static Slot> {
        (0..self.len.load(Acquire) as u32).map(|number| self.slot(SlotId(number)))
    }

    /// Numbers for the nodes of a tree, whose dropped tasks go to this store. `None` if the numbers are used up.
    pub(super) fn take_numbers(&self, count: u32, fallback: Arc<Fallback>) -> Option<NodeNumber> {
        let mut trees = self.home.trees.lock();
        let mut first = 0;
        for (start, tree) in trees.iter() {
            if start.0 - first >= count.max(1) {
                break;
            }
            first = start.0 + tree.count.max(1);
        }
        if u64::from(first) + u64::from(count.max(1)) > NODE_MASK {
            return None;
        }
        let first = NodeNumber(first);
        trees.insert(first, Numbered { count, fallback, lost_by: BTreeMap::new() });
        Some(first)
    }

    /// Returns the numbers of a tree that is dropped and holds no tasks.
    pub(super) fn give_numbers_back(&self, first: NodeNumber) {
        self.home.trees.lock().remove(&first);
    }

    /// Number of tasks dropped so far by each node of this tree.
    pub(super) fn lost_by(&self, first: NodeNumber) -> BTreeMap<NodeNumber, u64> {
        self.home.trees.lock().get(&first).map_or_else(BTreeMap::new, |tree| tree.lost_by.clone())
    }

    /// Slots of the tasks that these nodes hold, in order of submission. Where a component is shared, other trees may
    /// take tasks out of it meanwhile: such a slot may hold another task by the time the caller looks at it.
    pub(super) fn held_by(&self, nodes: &Range<NodeNumber>) -> Vec<&'static Slot> {
        self.held_where(|node| nodes.contains(&node))
    }

    /// [`held_by`](Self::held_by) for nodes of which this is true.
    pub(super) fn held_where(&self, is_one: impl Fn(NodeNumber) -> bool) -> Vec<&'static Slot> {
        let held = |slot: &&Slot| matches!(slot.phase(), Phase::InTree(node) if is_one(node));
        let mut slots: Vec<_> = self.slots().filter(held).collect();
        // Each number is read once: one that changes during the sorting is no order.
        slots.sort_by_cached_key(|slot| slot.head().sequence.load(Relaxed));
        slots
    }
}

impl Default for Ledger {
    fn default() -> Ledger {
        Ledger::new()
    }
}

impl Drop for Ledger {
    /// Keeps the slots for the next ledger, with stale handles.
    fn drop(&mut self) {
        for chunk in &mut self.chunks {
            if let Some(chunk) = chunk.take() {
                for slot in chunk {
                    // A task that never ended does not belong to the next ledger.
                    slot.head().sequence.store(0, Relaxed);
                    slot.renew(Phase::Free);
                }
                UNUSED.lock().push(chunk);
            }
        }
        self.home.trees.lock().clear();
        UNUSED_HOMES.lock().push(self.home);
    }
}

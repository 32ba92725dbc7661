//! What a component does in one call, compared with what it declares.
//!
//! A *witness* stands between the component and its node for the length of a call: it notes whom the component pushes
//! to, pulls from, wakes and asks, and passes every call on. Afterwards the notes and the answer are compared with the
//! [declarations](super::claims). Nothing is concluded from what other threads might have changed meanwhile.

use super::attendance::Method;
use super::call::Call;
use super::claims::{Claims, Declaration};
use super::ledger::{NodeId, Phase, Slot};
use super::node::{TreeNode, record};
use super::observer::NoteKind;
use parking_lot::Mutex;
use sched_core::abi::extension::RawExtension;
use sched_core::abi::std_types::{ROption, RStr};
use sched_core::abi::wire::{CallRef, NO_ID, RawNode, RawPlace, RawPush, RawWorker, place};
use sched_core::abi::{RawTask, WireHost};
use smallvec::SmallVec;

/// What a component did in a call.
#[derive(Default)]
#[allow(clippy::struct_excessive_bools, reason = "each is an observation of its own")]
struct Seen {
    /// Tasks that parents gave it.
    given: SmallVec<[(usize, u64); 2]>,
    /// Whether all parents gave nothing, when they were asked together.
    asked_all: bool,
    /// Parents that gave nothing.
    asked: SmallVec<[u32; 4]>,
    /// Whether it pushed a task to a child.
    pushed: bool,
    /// Whether it pushed one to a worker.
    pushed_to_worker: bool,
    /// Children that refused a task.
    refused_by: SmallVec<[u32; 4]>,
    /// Whether it, or who it called, was told that there is no room: such a push need not be tried.
    told_full: bool,
    /// Whether it reported work to a child, or woke a worker.
    woke: bool,
    /// Whether it reported room to its parents.
    asked_above: bool,
}

/// Identity of a handle.
fn identity(task: RawTask) -> (usize, u64) {
    (task.head.addr(), task.generation)
}

/// The host of a component in one call.
pub(super) struct Witness {
    node: *const TreeNode,
    seen: Mutex<Seen>,
}

// SAFETY: the node may be used by any thread, and is there for as long as the witness.
unsafe impl Send for Witness {}
// SAFETY: as above.
unsafe impl Sync for Witness {}

impl Witness {
    /// Runs `body` with a node whose host is a witness, in a call into `node`; gives what it returns and what was seen.
    pub(super) fn of<'a, T>(
        node: &'a TreeNode,
        call: CallRef<'a>,
        body: impl FnOnce(&RawNode) -> T,
    ) -> (T, Testimony<'a>) {
        let witness = Witness { node: std::ptr::from_ref(node), seen: Mutex::default() };
        // SAFETY: witness and call outlive the `RawNode`, which lives for this block.
        let raw = unsafe { RawNode::new(&witness, call) };
        let call = record(call);
        let before = call.told_full.replace(false);
        let answer = body(&raw);
        let mut seen = witness.seen.into_inner();
        seen.told_full = call.told_full.get();
        call.told_full.set(seen.told_full || before);
        (answer, Testimony { node, call, seen })
    }

    fn node(&self) -> &TreeNode {
        // SAFETY: `of` borrows the node for longer than the witness lives.
        unsafe { &*self.node }
    }
}

impl WireHost for Witness {
    fn push_to(&self, call: CallRef<'_>, child: u32, task: RawTask) -> RawPush {
        let node = self.node();
        let below = node.children.get(child as usize).map(|child| node.places[child.index()].raw());
        let is_worker = below.is_some_and(|below| below.flags & place::LEAF != 0);
        {
            let mut seen = self.seen.lock();
            seen.pushed = true;
            seen.pushed_to_worker |= is_worker;
        }
        let answer = node.push_to(call, child, task);
        if !answer.refused.is_none() {
            self.seen.lock().refused_by.push(child);
        }
        answer
    }

    fn pull_from(&self, call: CallRef<'_>, parent: u32) -> RawTask {
        let task = self.node().pull_from(call, parent);
        let mut seen = self.seen.lock();
        match (task.is_none(), parent) {
            (false, _) => seen.given.push(identity(task)),
            (true, NO_ID) => seen.asked_all = true,
            (true, parent) => seen.asked.push(parent),
        }
        task
    }

    fn parents_can_push(&self, call: CallRef<'_>) -> bool {
        self.seen.lock().asked_above = true;
        self.node().parents_can_push(call)
    }

    fn child_can_pull(&self, call: CallRef<'_>, child: u32) -> bool {
        self.seen.lock().woke = true;
        self.node().child_can_pull(call, child)
    }

    fn wake(&self, call: CallRef<'_>, all: bool) -> bool {
        self.seen.lock().woke = true;
        self.node().wake(call, all)
    }

    fn child_estimated_end(&self, call: CallRef<'_>, child: u32) -> u64 {
        self.node().child_estimated_end(call, child)
    }

    fn child_estimated_load(&self, call: CallRef<'_>, child: u32) -> f64 {
        self.node().child_estimated_load(call, child)
    }

    fn place(&self) -> &RawPlace<'_> {
        WireHost::place(self.node())
    }

    fn child_place(&self, child: u32) -> ROption<&RawPlace<'_>> {
        self.node().child_place(child)
    }

    fn worker(&self, worker: u32) -> ROption<RawWorker> {
        self.node().worker(worker)
    }

    fn requester(&self, call: CallRef<'_>) -> u32 {
        self.node().requester(call)
    }

    fn now(&self, call: CallRef<'_>) -> u64 {
        self.node().now(call)
    }

    fn random(&self, call: CallRef<'_>) -> u64 {
        self.node().random(call)
    }

    fn can_execute(&self, call: CallRef<'_>, worker: u32, task: RawTask) -> bool {
        self.node().can_execute(call, worker, task)
    }

    fn child_can_execute(&self, call: CallRef<'_>, child: u32, task: RawTask) -> bool {
        self.node().child_can_execute(call, child, task)
    }

    fn implementations(&self, call: CallRef<'_>, worker: u32, task: RawTask) -> u32 {
        self.node().implementations(call, worker, task)
    }

    fn expected_length(&self, call: CallRef<'_>, worker: u32, task: RawTask, implementation: u32) -> u64 {
        self.node().expected_length(call, worker, task, implementation)
    }

    fn expected_transfer(&self, call: CallRef<'_>, memory_node: u32, task: RawTask) -> u64 {
        self.node().expected_transfer(call, memory_node, task)
    }

    fn expected_energy(&self, call: CallRef<'_>, worker: u32, task: RawTask, implementation: u32) -> f64 {
        self.node().expected_energy(call, worker, task, implementation)
    }

    fn prefetch(&self, call: CallRef<'_>, memory_node: u32, task: RawTask) {
        self.node().prefetch(call, memory_node, task);
    }

    fn report_panic(&self, call: CallRef<'_>, message: RStr<'_>) {
        self.node().report_panic(call, message);
    }

    fn extension(&self, name: RStr<'_>) -> ROption<RawExtension> {
        self.node().extension(name)
    }
}

/// What was seen of a call, to be compared with declarations. After a panic nothing is concluded.
pub(super) struct Testimony<'a> {
    node: &'a TreeNode,
    call: &'a Call<'a>,
    seen: Seen,
}

impl Testimony<'_> {
    /// Compares the answer to a push of `task`. Returns whether a declaration does not hold.
    pub(super) fn of_push(&self, claims: &Claims, task: RawTask, answer: RawPush) -> bool {
        let Testimony { node, call, seen } = self;
        if node.is_quarantined() {
            return false;
        }
        let mut lied = self.moved(claims, Method::PushTask);
        let mut lie = |declaration| lied |= self.lie(declaration, Method::PushTask);
        // Handing back another task is a breach of its own.
        let refused = Some(answer.refused).filter(|refused| identity(*refused) == identity(task)).and_then(Slot::of);
        if answer.refused.is_none() {
            let is_kept = Slot::of(task).is_some_and(|slot| slot.phase() == Phase::InTree(node.number));
            // What arrives while it is pulled may wait for the puller.
            if is_kept && !claims.stores && !claims.pushes_on_pull {
                lie(Declaration::StoresNothing);
            }
            if is_kept && !seen.woke && !seen.pushed && call.tree.sleeps_below(call, node) {
                node.health.silences.add(Method::PushTask);
            }
        } else if let Some(slot) = refused.filter(|slot| call.tree.some_fits(node, slot.head())) {
            if claims.stores_any_number {
                // At the root this is a breach of its own.
                if !node.parents.is_empty() {
                    lie(Declaration::StoresAnyNumber);
                }
            } else if claims.forwards_push {
                let is_able_worker = |child: &NodeId| {
                    let below = &call.tree.nodes[child.index()];
                    below.place().leaf_worker().is_some() && call.tree.some_fits(below, slot.head())
                };
                // Workers refuse by not being woken.
                let waits = claims.wakes_workers && node.children.iter().any(is_able_worker);
                if seen.refused_by.is_empty() && !seen.told_full && !waits {
                    lie(Declaration::ForwardsPush);
                }
            } else if !claims.stores && !claims.may_refuse {
                lie(Declaration::NeverRefuses);
            }
        }
        lied
    }

    /// Compares the answer to a pull; `is_untouched` if no task was ever pushed to the component.
    pub(super) fn of_pull(&self, claims: &Claims, is_untouched: bool, task: RawTask) -> bool {
        let Testimony { node, seen, .. } = self;
        if node.is_quarantined() {
            return false;
        }
        let mut lied = self.moved(claims, Method::PullTask);
        let mut lie = |declaration| lied |= self.lie(declaration, Method::PullTask);
        let asked = || seen.asked_all || (0..node.parents.len() as u32).all(|parent| seen.asked.contains(&parent));
        let is_given = !task.is_none() && seen.given.contains(&identity(task));
        let forwarded = match (&seen.given[..], task.is_none()) {
            ([], true) => asked(),
            ([given], false) => *given == identity(task),
            _ => false,
        };
        if claims.forwards_pull && !forwarded {
            lie(Declaration::ForwardsPull);
        } else if claims.empty_until_pushed && is_untouched && !forwarded {
            lie(Declaration::EmptyUntilPushed);
        } else if !task.is_none() && !is_given && !claims.stores && !claims.pushes_on_pull {
            lie(Declaration::StoresNothing);
        }
        if is_given && claims.pushes_on_pull {
            lie(Declaration::PushesOnPull);
        }
        let asked_nobody = !seen.asked_all && seen.asked.is_empty() && seen.given.is_empty() && !seen.asked_above;
        if task.is_none() && asked_nobody && !node.parents.is_empty() {
            node.health.silences.add(Method::PullTask);
        }
        lied
    }

    /// Compares what a report of room led to.
    pub(super) fn of_can_push(&self, claims: &Claims, sent: bool) -> bool {
        let Testimony { node, seen, .. } = self;
        if node.is_quarantined() {
            return false;
        }
        if !sent && !claims.stores && !seen.asked_above && !seen.pushed && !node.parents.is_empty() {
            node.health.silences.add(Method::CanPush);
        }
        self.moved(claims, Method::CanPush)
    }

    /// Compares what a report of work led to.
    pub(super) fn of_can_pull(&self, claims: &Claims, woke: bool) -> bool {
        let Testimony { node, call, seen } = self;
        if node.is_quarantined() {
            return false;
        }
        let pulled = seen.asked_all || !seen.asked.is_empty() || !seen.given.is_empty();
        if !woke && !seen.woke && !seen.pushed && !pulled && call.tree.sleeps_below(call, node) {
            node.health.silences.add(Method::CanPull);
        }
        self.moved(claims, Method::CanPull)
    }

    /// Compares the movements of tasks that a component may cause in any call.
    fn moved(&self, claims: &Claims, method: Method) -> bool {
        let Seen { pushed, asked_above, pushed_to_worker, .. } = self.seen;
        // The default `can_push` passes a child's request on, which is no request of its own.
        let asked = asked_above && method != Method::CanPush;
        let pumped = claims.pulled_only && (pushed || asked) && self.lie(Declaration::PulledOnly, method);
        (claims.wakes_workers && pushed_to_worker && self.lie(Declaration::WakesWorkers, method)) || pumped
    }

    /// Notes that a declaration does not hold.
    fn lie(&self, declaration: Declaration, method: Method) -> bool {
        note_lie(self.call, self.node, declaration, method);
        true
    }
}

/// Notes that a declaration of the component at `node` does not hold. The first time is reported to an observer.
#[cold]
pub(super) fn note_lie(call: &Call<'_>, node: &TreeNode, declaration: Declaration, method: Method) {
    if matches!(declaration, Declaration::NoRoom | Declaration::StoresNothing | Declaration::ForwardsPush) {
        call.tree.distrust(node);
    }
    if node.health.lies.add(declaration, method) {
        call.tree.note(call, node, NoteKind::Fault, || declaration.describe(method, 1));
    }
}

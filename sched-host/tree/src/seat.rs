//! A worker's seat among contexts: whose turn it is.
//!
//! A worker serves one context or several, and may be a member of combined workers. Every back end has its workers, be they
//! threads or simulated, decide by this code what they do next:
//!
//! - *Contexts take turns.* A worker asks each context that it serves, beginning behind the one that gave it the last
//!   task. Parallel tasks have turns of their own.
//! - *A worker's own tasks and those of its teams take turns*, so that neither waits for the end of the others. Of teams,
//!   one that waits for this worker comes before one that it calls.
//! - *A wake is put off.* A worker that pushes tasks and pulls right afterwards wakes nobody for the first of them: it
//!   will most likely get that task itself. If the pull gives another task, or several were pushed, the wake is done after
//!   all ([`DeferredWake`]).
//! - *A wake is passed on.* Who wakes a worker counts on it for a task. If the worker then does something else, it wakes a
//!   worker of its kind in each context that it serves: possibly in vain, but no task waits for a busy worker while
//!   another one sleeps. A worker of a single context that found a task of its own was woken for that.
//!
//! A back end implements the required methods of [`Seated`] for one of its workers; the provided methods are the rules.

use super::combined::CombinedWorkers;
use super::{Slot, Tree};
use sched_core::WorkerId;
use sched_sync::gathering::Gathering;
use std::cell::Cell;
use std::sync::Arc;

/// What stands for a context at a seat: something with a tree.
pub trait HasTree {
    /// The tree of the context.
    fn tree(&self) -> &Tree;
}

impl HasTree for Tree {
    #[inline(always)]
    fn tree(&self) -> &Tree {
        self
    }
}

impl<T: HasTree> HasTree for Arc<T> {
    #[inline(always)]
    fn tree(&self) -> &Tree {
        T::tree(self)
    }
}

/// What a worker found to do.
pub enum Work<P> {
    /// A task to execute by itself.
    Alone(&'static Slot),
    /// A parallel task, with others.
    Together(Arc<Gathering<P>>),
}

/// The tasks that a worker pushed since it last pulled, and the wake that it put off until it pulls.
#[derive(Default)]
pub struct DeferredWake {
    /// Slots of the tasks.
    pushed: Vec<u32>,
    worker: Cell<Option<WorkerId>>,
}

impl DeferredWake {
    /// The worker pushed a task, or is about to.
    #[inline]
    pub fn note_pushed(&mut self, slot: u32) {
        self.pushed.push(slot);
    }

    /// Where [`Tree::push`] notes the wake that is put off.
    #[inline]
    #[must_use]
    pub fn cell(&self) -> &Cell<Option<WorkerId>> {
        &self.worker
    }
}

/// See the [module](self). `C` stands for a context.
pub struct Seat<C> {
    worker: WorkerId,
    /// The contexts that the worker serves, as of this version.
    contexts: Vec<C>,
    version: u64,
    /// Number of the context to ask first.
    next: usize,
    /// Number of the context to ask first for parallel tasks.
    next_for_team: usize,
    /// Parallel tasks come first, the next time that the worker looks.
    teams_next: bool,
    /// Somebody woke the worker, and counts on it for a task.
    expected: bool,
}

impl<C: HasTree> Seat<C> {
    /// The seat of a worker that does not know yet which contexts it serves. Versions of a back end begin above 0.
    #[must_use]
    pub fn new(worker: WorkerId) -> Seat<C> {
        Seat { worker, contexts: Vec::new(), version: 0, next: 0, next_for_team: 0, teams_next: true, expected: false }
    }

    /// Whose seat it is.
    #[inline(always)]
    #[must_use]
    pub fn worker(&self) -> WorkerId {
        self.worker
    }

    /// Somebody woke the worker, and counts on it for a task.
    pub fn expect(&mut self) {
        self.expected = true;
    }

    /// A task of the worker's own, from the contexts in turn.
    fn pull_in_turn(&mut self) -> Option<&'static Slot> {
        let worker = self.worker;
        in_turn(&self.contexts, &mut self.next, |tree| tree.pull(worker))
    }

    /// A parallel task for a combined worker, from the contexts in turn.
    fn pull_for_team_in_turn(&mut self, combined: WorkerId) -> Option<&'static Slot> {
        let worker = self.worker;
        in_turn(&self.contexts, &mut self.next_for_team, |tree| tree.pull_for_team(worker, combined))
    }
}

/// Asks each context, beginning with number `next`, which is moved behind the one that gave something.
fn in_turn<C: HasTree, T>(contexts: &[C], next: &mut usize, pull: impl Fn(&Tree) -> Option<T>) -> Option<T> {
    let count = contexts.len();
    (0..count).find_map(|turn| {
        let asked = (*next + turn) % count;
        let pulled = pull(contexts[asked].tree())?;
        *next = asked + 1;
        Some(pulled)
    })
}

/// A worker at its seat; see the [module](self).
pub trait Seated: Sized {
    /// What stands for a context.
    type Context: HasTree;
    /// What a team gathers for.
    type Purpose;

    /// The seat.
    fn seat(&mut self) -> &mut Seat<Self::Context>;

    /// What the worker pushed, and the wake that it put off.
    fn deferred(&mut self) -> &mut DeferredWake;

    /// A number above 0 that changes whenever a worker may have to serve other contexts.
    fn version(&self) -> u64;

    /// The contexts that the worker serves now.
    fn served(&self) -> Vec<Self::Context>;

    /// The combined workers, where there are any.
    fn combined(&self) -> Option<&CombinedWorkers<Self::Purpose>>;

    /// Wakes another worker, if it sleeps.
    fn wake(&self, worker: WorkerId);

    /// Wakes the first worker that sleeps and `suits`, if there is one.
    fn wake_any(&self, suits: impl Fn(WorkerId) -> bool);

    /// Whether another worker executes the same kind of tasks.
    fn is_like(&self, other: WorkerId) -> bool;

    /// The worker pulled a task for a combined worker, and is about to call the team: what the team gathers for.
    fn purpose(&mut self, slot: &'static Slot, combined: WorkerId) -> Self::Purpose;

    /// The worker pulled, and this is what it got.
    #[inline(always)]
    fn pulled(&mut self, slot: Option<&'static Slot>) {
        let _ = slot;
    }

    /// Trees were called, or workers woken. A back end that defers what follows from that does it now.
    #[inline(always)]
    fn settle(&mut self) {}

    /// Looks once for something to do.
    #[inline(always)]
    fn look(&mut self) -> Option<Work<Self::Purpose>> {
        if self.combined().is_none_or(|combined| !combined.are_in_use()) {
            return self.pull().map(Work::Alone);
        }
        look_with_teams(self)
    }

    /// A task for this worker alone.
    #[inline(always)]
    fn pull(&mut self) -> Option<&'static Slot> {
        renew_if_changed(self);
        let seat = self.seat();
        let slot = match &*seat.contexts {
            [only] => only.tree().pull(seat.worker),
            _ => seat.pull_in_turn(),
        };
        if let Some(combined) = self.combined()
            && let Some(slot) = slot
        {
            combined.note_pulled(slot);
        }
        self.pulled(slot);
        if self.deferred().worker.get().is_some() {
            wake_deferred_unless(self, slot);
        }
        self.deferred().pushed.clear();
        self.settle();
        slot
    }

    /// Whether a worker that has tasks in flight pulls no further one for now: a team may want it next.
    fn is_kept_for_team(&mut self) -> bool {
        let Seat { worker, teams_next, .. } = *self.seat();
        teams_next && self.combined().is_some_and(|combined| combined.may_want(worker))
    }

    /// A worker that may have been woken has looked, and found this: passes the wake on, unless the worker was certainly
    /// woken for that.
    fn answer_wake(&mut self, found: Option<&Work<Self::Purpose>>) {
        let seat = self.seat();
        match found {
            None => seat.expected = false,
            Some(Work::Alone(_)) if seat.contexts.len() == 1 => seat.expected = false,
            Some(_) => self.pass_wake_on(),
        }
    }

    /// If somebody counts on this worker for a task of any of its contexts, and it does something else: wakes a worker
    /// like it for each context.
    fn pass_wake_on(&mut self) {
        if !std::mem::take(&mut self.seat().expected) {
            return;
        }
        renew_if_changed(self);
        let contexts = std::mem::take(&mut self.seat().contexts);
        for context in &contexts {
            self.wake_any(|other| self.is_like(other) && context.tree().serves(other));
        }
        self.seat().contexts = contexts;
        self.settle();
    }
}

/// Finds out which contexts the worker serves, if that may have changed.
#[inline(always)]
fn renew_if_changed(at: &mut impl Seated) {
    if at.version() != at.seat().version {
        renew(at);
    }
}

#[cold]
fn renew(at: &mut impl Seated) {
    // The version first: what changes after this is seen the next time.
    let version = at.version();
    let contexts = at.served();
    let seat = at.seat();
    (seat.version, seat.contexts) = (version, contexts);
    (seat.next, seat.next_for_team) = (0, 0);
}

/// A wake was put off for a task that a pull was expected to give, which gave this one.
#[inline(never)]
fn wake_deferred_unless(at: &mut impl Seated, slot: Option<&Slot>) {
    let deferred = at.deferred();
    let Some(other) = deferred.worker.take() else { return };
    // Where the pull gave another task, or there were several, the other worker may be the only one that comes by the rest.
    if slot.is_none_or(|slot| deferred.pushed != [slot.index()]) {
        at.wake(other);
    }
}

/// A task of the worker's own, or a team; they take turns.
#[cold]
fn look_with_teams<S: Seated>(at: &mut S) -> Option<Work<S::Purpose>> {
    let Seat { worker, teams_next: teams_first, .. } = *at.seat();
    if !teams_first && let Some(slot) = at.pull() {
        at.seat().teams_next = true;
        return Some(Work::Alone(slot));
    }
    loop {
        if let Some(gathering) = at.combined()?.next(worker) {
            // No pull comes now that a wake could wait for.
            at.deferred().pushed.clear();
            if let Some(other) = at.deferred().worker.take() {
                at.wake(other);
                at.settle();
            }
            at.seat().teams_next = false;
            return Some(Work::Together(gathering));
        }
        if !at.combined()?.any_waits() || !gather(at) {
            break;
        }
    }
    if teams_first { at.pull().map(Work::Alone) } else { None }
}

/// Pulls a parallel task for a combined worker that this one is a member of, and calls the team. Whether there was one.
fn gather(at: &mut impl Seated) -> bool {
    renew_if_changed(at);
    let Some(memberships) = at.combined().map(|combined| Arc::clone(combined.memberships())) else { return false };
    let seat = at.seat();
    let worker = seat.worker;
    let pulled = memberships.of(worker).iter().find_map(|team| Some((*team, seat.pull_for_team_in_turn(*team)?)));
    if let Some((team, slot)) = pulled {
        let purpose = at.purpose(slot, team);
        if let Some(combined) = at.combined() {
            combined.note_pulled(slot);
            combined.call(team, purpose);
        }
        memberships.team(team).iter().filter(|member| **member != worker).for_each(|member| at.wake(*member));
    }
    at.settle();
    pulled.is_some()
}

//! A worker's seat among contexts: whose turn it is.
//!
//! A worker serves one or several contexts, and may be a member of combined workers. Workers of every back end, threads
//! or simulated ones, decide by this code what to do next:
//!
//! - *Contexts take turns.* A worker asks each of its contexts, starting after the one that gave it the last task.
//!   Parallel tasks have separate turns.
//! - *Its own tasks and those of its teams take turns*, so that neither waits for the end of the other. A team that
//!   waits for this worker comes before one that the worker calls.
//! - *A wake is deferred.* A worker that pushes tasks and pulls right afterwards wakes no other for the first of them:
//!   it will most likely get that task itself. If the pull gives another task, or several were pushed, the wake follows
//!   ([`DeferredWake`]).
//! - *A wake is passed on.* The waker of a worker relies on it to take a task. If the worker then does something else,
//!   it wakes a similar worker in each of its contexts: possibly in vain, but no task waits for a busy worker while
//!   another one sleeps. A worker of a single context that found a task of its own was woken for that.
//!
//! A back end implements the required methods of [`Seated`] for one of its workers; the provided methods are the rules.

use super::combined::CombinedWorkers;
use super::{Phase, Slot, SlotId, Tree};
use sched_core::WorkerId;
use sched_sync::gathering::Gathering;
use std::cell::Cell;
use std::sync::Arc;

/// A context as a seat sees it: the owner of a tree.
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

/// Work that a worker found.
pub enum Work<P> {
    /// A task to execute by itself.
    Alone(&'static Slot),
    /// A parallel task, together with others.
    Together(Arc<Gathering<P>>),
}

/// Tasks that a worker pushed since its last pull, and the wake deferred until its next.
#[derive(Default)]
pub struct DeferredWake {
    /// Slots of the tasks.
    pushed: Vec<SlotId>,
    worker: Cell<Option<WorkerId>>,
    /// The task that the worker goes on with, instead of a pull, and whether it is at home here.
    kept: Option<&'static Slot>,
    is_at_home: bool,
}

impl DeferredWake {
    /// Notes that the worker pushes a task.
    #[inline]
    pub fn note_pushed(&mut self, slot: SlotId) {
        self.pushed.push(slot);
    }

    /// Keeps a task that [comes straight back](Tree::comes_straight_back), for the worker to go on with: its next look
    /// gives it. Of those that it makes ready at once it goes on with the first that `is_at_home`, or else with the
    /// first. Returns the other, which is to be pushed now: in which order one worker pushes what it made ready at once
    /// is its choice. (The first was submitted first. Whoever goes on with the last, while thieves take the first, is
    /// apart from them in the graph, where one has to wait for the other.)
    #[inline]
    pub fn keep(&mut self, slot: &'static Slot, is_at_home: bool) -> Option<&'static Slot> {
        if self.kept.is_some() && (self.is_at_home || !is_at_home) {
            return Some(slot);
        }
        slot.set_phase(Phase::Running);
        self.is_at_home = is_at_home;
        self.kept.replace(slot)
    }

    /// Whether a task that is at home here is kept.
    #[inline]
    #[must_use]
    pub fn keeps_one_at_home(&self) -> bool {
        self.is_at_home && self.kept.is_some()
    }

    /// The task that was kept, which is to be pushed: the worker has something else to do first.
    #[inline]
    pub fn take_kept(&mut self) -> Option<&'static Slot> {
        self.kept.take()
    }

    /// Cell in which [`Tree::push`] notes the deferred wake.
    #[inline]
    #[must_use]
    pub fn cell(&self) -> &Cell<Option<WorkerId>> {
        &self.worker
    }
}

/// See the [module](self). `C` represents a context.
pub struct Seat<C> {
    worker: WorkerId,
    /// Contexts of the worker, as of this version.
    contexts: Vec<C>,
    version: u64,
    /// Index of the context to ask first.
    next: usize,
    /// Index of the context to ask first for parallel tasks.
    next_for_team: usize,
    /// Whether parallel tasks come first at the next look.
    teams_next: bool,
    /// Whether a waker relies on the worker to take a task.
    expected: bool,
}

impl<C: HasTree> Seat<C> {
    /// Seat of a worker whose contexts are not known yet. Versions of a back end start above 0.
    #[must_use]
    pub fn new(worker: WorkerId) -> Seat<C> {
        Seat { worker, contexts: Vec::new(), version: 0, next: 0, next_for_team: 0, teams_next: true, expected: false }
    }

    /// The worker of the seat.
    #[inline(always)]
    #[must_use]
    pub fn worker(&self) -> WorkerId {
        self.worker
    }

    /// Notes that the worker was woken, and is relied on to take a task.
    pub fn expect(&mut self) {
        self.expected = true;
    }

    /// Pulls a task for the worker alone, from its contexts in turn.
    fn pull_in_turn(&mut self) -> Option<&'static Slot> {
        let worker = self.worker;
        in_turn(&self.contexts, &mut self.next, |tree| tree.pull(worker))
    }

    /// Pulls a parallel task for a combined worker, from its contexts in turn.
    fn pull_for_team_in_turn(&mut self, combined: WorkerId) -> Option<&'static Slot> {
        let worker = self.worker;
        in_turn(&self.contexts, &mut self.next_for_team, |tree| tree.pull_for_team(worker, combined))
    }
}

/// Asks each context, starting at index `next`, which moves to the one after the context that gave something.
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
    /// Representation of a context.
    type Context: HasTree;
    /// Purpose of a gathering.
    type Purpose;

    /// The seat.
    fn seat(&mut self) -> &mut Seat<Self::Context>;

    /// Tasks that the worker pushed, and its deferred wake.
    fn deferred(&mut self) -> &mut DeferredWake;

    /// A number above 0 that changes whenever the contexts of a worker may have changed.
    fn version(&self) -> u64;

    /// Current contexts of the worker.
    fn served(&mut self) -> Vec<Self::Context>;

    /// The combined workers, if any.
    fn combined(&self) -> Option<&CombinedWorkers<Self::Purpose>>;

    /// Wakes another worker, if it sleeps.
    fn wake(&self, worker: WorkerId);

    /// Wakes the first sleeping worker that `suits`, if any.
    fn wake_any(&self, suits: impl Fn(WorkerId) -> bool);

    /// Whether another worker executes the same kind of tasks.
    fn is_like(&self, other: WorkerId) -> bool;

    /// Purpose of the team for a task pulled for a combined worker, which the worker is about to call.
    fn purpose(&mut self, slot: &'static Slot, combined: WorkerId) -> Self::Purpose;

    /// Whether a parallel task that was pulled for a combined worker, which cannot execute it after all, is in a tree
    /// again. The back end has counted that.
    #[inline(always)]
    fn hands_on(&mut self, slot: &'static Slot, combined: WorkerId) -> bool {
        let _ = (slot, combined);
        false
    }

    /// A task that is at hand or waits at home here, if any, instead of a pull.
    #[inline(always)]
    fn at_home(&mut self) -> Option<&'static Slot> {
        None
    }

    /// Reports that the worker goes on with a task that it has made ready.
    #[inline(always)]
    fn goes_on(&mut self) {}

    /// Reports the result of a pull.
    #[inline(always)]
    fn pulled(&mut self, slot: Option<&'static Slot>) {
        let _ = slot;
    }

    /// Reports that trees were called or workers woken. A back end that defers the consequences handles them now.
    #[inline(always)]
    fn settle(&mut self) {}

    /// Looks once for work.
    #[inline(always)]
    fn look(&mut self) -> Option<Work<Self::Purpose>> {
        if self.combined().is_none_or(|combined| !combined.are_in_use()) {
            return self.pull().map(Work::Alone);
        }
        look_with_teams(self)
    }

    /// Does the deferred wake, and pushes the task that was kept, where no pull follows.
    #[cold]
    fn wake_deferred(&mut self) {
        self.deferred().pushed.clear();
        if let Some(kept) = self.deferred().take_kept() {
            let seat = self.seat();
            // It was kept since the worker serves no other context.
            seat.contexts.iter().take(1).for_each(|only| only.tree().push(kept, Some(seat.worker), None));
        }
        if let Some(other) = self.deferred().worker.take() {
            self.wake(other);
            self.settle();
        }
    }

    /// A task for this worker alone.
    #[inline(always)]
    fn pull(&mut self) -> Option<&'static Slot> {
        renew_if_changed(self);
        let slot = match self.deferred().take_kept() {
            Some(kept) => {
                self.goes_on();
                Some(kept)
            }
            None => self.at_home().or_else(|| {
                let seat = self.seat();
                match &*seat.contexts {
                    [only] => only.tree().pull(seat.worker),
                    _ => seat.pull_in_turn(),
                }
            }),
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

    /// Whether a worker with tasks in flight pulls no further one for now, because a team may want it next.
    fn is_kept_for_team(&mut self) -> bool {
        let Seat { worker, teams_next, .. } = *self.seat();
        teams_next && self.combined().is_some_and(|combined| combined.may_want(worker))
    }

    /// Passes the wake on after a look that found this, unless the worker was certainly woken for that.
    fn answer_wake(&mut self, found: Option<&Work<Self::Purpose>>) {
        let seat = self.seat();
        match found {
            None => seat.expected = false,
            Some(Work::Alone(_)) if seat.contexts.len() == 1 => seat.expected = false,
            Some(_) => self.pass_wake_on(),
        }
    }

    /// Wakes a similar worker for each context, if a waker relies on this worker and it does something else.
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

/// Updates the contexts of the worker, if they may have changed.
#[inline(always)]
fn renew_if_changed(at: &mut impl Seated) {
    if at.version() != at.seat().version {
        renew(at);
    }
}

#[cold]
fn renew(at: &mut impl Seated) {
    // The version first: later changes are seen the next time.
    let version = at.version();
    let contexts = at.served();
    let seat = at.seat();
    seat.version = version;
    let before = std::mem::replace(&mut seat.contexts, contexts);
    (seat.next, seat.next_for_team) = (0, 0);
    let worker = seat.worker;
    let is_same = match (&before[..], &seat.contexts[..]) {
        ([before], [now]) => std::ptr::eq(before.tree(), now.tree()),
        _ => false,
    };
    // A kept task is of the only context that the worker served.
    if !is_same && let Some(kept) = at.deferred().take_kept() {
        before.iter().take(1).for_each(|only| only.tree().push(kept, Some(worker), None));
    }
}

/// Does or drops the wake deferred for a task that a pull was expected to give; the pull gave this task.
#[inline(never)]
fn wake_deferred_unless(at: &mut impl Seated, slot: Option<&Slot>) {
    let deferred = at.deferred();
    let Some(other) = deferred.worker.take() else { return };
    // If the pull gave another task, or several were pushed, the other worker may be the only one to find the rest.
    if slot.is_none_or(|slot| deferred.pushed != [slot.id()]) {
        at.wake(other);
    }
}

/// Own tasks and teams take turns.
#[cold]
fn look_with_teams<S: Seated>(at: &mut S) -> Option<Work<S::Purpose>> {
    let Seat { worker, teams_next: teams_first, .. } = *at.seat();
    if !teams_first && let Some(slot) = at.pull() {
        at.seat().teams_next = true;
        return Some(Work::Alone(slot));
    }
    loop {
        if let Some(gathering) = at.combined()?.next(worker) {
            at.wake_deferred();
            at.seat().teams_next = false;
            return Some(Work::Together(gathering));
        }
        if !at.combined()?.any_waits() || !gather(at) {
            break;
        }
    }
    if teams_first { at.pull().map(Work::Alone) } else { None }
}

/// Pulls a parallel task for a combined worker of this one, and calls the team, unless the task is handed on. Returns
/// whether there was one.
fn gather(at: &mut impl Seated) -> bool {
    renew_if_changed(at);
    let Some(memberships) = at.combined().map(|combined| Arc::clone(combined.memberships())) else { return false };
    let seat = at.seat();
    let worker = seat.worker;
    let pulled = memberships.of(worker).iter().find_map(|team| Some((*team, seat.pull_for_team_in_turn(*team)?)));
    if let Some((team, slot)) = pulled
        && !at.hands_on(slot, team)
    {
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

#[cfg(test)]
mod tests;

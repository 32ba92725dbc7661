//! Promises make concurrent decisions see each other, although no lock is held between a decision and its delivery.
//!
//! A decision asks each child when it will be free, chooses one, and pushes the task to it. Between the choice and the
//! moment when the child itself counts the task, other decisions must count it for the child. Therefore the choice
//! records, under a lock that is held for nothing else, *until when the child is promised to be busy*; and while tasks
//! are on their way to a child, it counts as busy until the later of the two times: the reported one and the promised
//! one. The maximum, not the sum: once the child counts the task, both times agree, and nothing is counted twice.
//!
//! When the last task on its way has landed, the promise is discarded, since the child counts the task. A decision
//! could miss both: it asked the child before the task landed, and looks for promises afterwards. Therefore landings
//! are counted: a decision records the count before it asks, and if a child has no promise but a later landing, it asks
//! all children with such a landing again. A decision repeats only because another one completed, so the system as a
//! whole progresses.
//!
//! The effect is that of sequential decisions, in the order of their choices.

use super::completion::Candidate;
use sched_core::{Child, Mutex};

/// Decisions whose tasks have not landed.
#[derive(Default, Debug)]
pub(super) struct Promises {
    book: Mutex<Book>,
}

#[derive(Default, Debug)]
struct Book {
    children: Vec<Promise>,
    /// Number of tasks, chosen for any child, whose push has not returned.
    on_the_way: u32,
    /// Number of pushes that children accepted.
    landed: u64,
}

#[derive(Clone, Copy, Default, Debug)]
struct Promise {
    /// Number of tasks, chosen for this child, whose push has not returned.
    on_the_way: u32,
    /// The time in nanoseconds until which these keep the child busy.
    until: u64,
    /// Number of the last push that the child accepted, counted among those to all children; 0 for none.
    last: u64,
}

/// Number of pushes that had landed when a decision asked its candidates.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Seen(u64);

impl Promises {
    /// Forgets all promises. No decision is in progress.
    pub(super) fn forget(&self) {
        *self.book.lock() = Book::default();
    }

    /// Starts a decision; call it before asking the candidates when they are free.
    pub(super) fn begin(&self) -> Seen {
        Seen(self.book.lock().landed)
    }

    /// Combines the candidates' answers with the promises, and promises the task to the one that `choose` picks.
    ///
    /// `None` if some candidates must be asked again, which are marked; `choose` was not called then.
    pub(super) fn settle(
        &self,
        seen: &mut Seen,
        candidates: &mut [Candidate],
        choose: impl FnOnce(&mut [Candidate]) -> Candidate,
    ) -> Option<Candidate> {
        let book = &mut *self.book.lock();
        book.reach(candidates);
        let promise_of = |candidate: &Candidate| book.children[candidate.child.0 as usize];
        if book.landed != seen.0 {
            let is_late = |promise: Promise| promise.last > seen.0;
            let must_repeat = |candidate: &Candidate| {
                let promise = promise_of(candidate);
                promise.on_the_way == 0 && is_late(promise)
            };
            if candidates.iter().any(must_repeat) {
                for candidate in &mut *candidates {
                    candidate.asked = !is_late(promise_of(candidate));
                }
                *seen = Seen(book.landed);
                return None;
            }
        }
        // Usually there is no concurrent decision.
        if book.on_the_way > 0 {
            for candidate in &mut *candidates {
                let promise = promise_of(candidate);
                if promise.on_the_way > 0 {
                    candidate.avail = candidate.avail.max(promise.until);
                }
            }
        }
        let chosen = choose(candidates);
        book.promise(&chosen);
        Some(chosen)
    }

    /// Promises the task to `chosen` if no other decision interferes: no task is on its way, and none has landed since
    /// the candidates were asked.
    pub(super) fn settle_alone(&self, seen: Seen, chosen: &Candidate) -> bool {
        let book = &mut *self.book.lock();
        if book.on_the_way > 0 || book.landed != seen.0 {
            return false;
        }
        book.reach(std::slice::from_ref(chosen));
        book.promise(chosen);
        true
    }

    /// Records that the push has returned: the child accepted the task, or did not.
    pub(super) fn landed(&self, child: Child, taken: bool) {
        let book = &mut *self.book.lock();
        let promise = &mut book.children[child.0 as usize];
        book.on_the_way -= 1;
        promise.on_the_way -= 1;
        if taken {
            book.landed += 1;
            promise.last = book.landed;
        }
    }
}

impl Book {
    fn promise(&mut self, chosen: &Candidate) {
        self.on_the_way += 1;
        let promise = &mut self.children[chosen.child.0 as usize];
        promise.on_the_way += 1;
        // Several workers share the work of a child.
        promise.until = chosen.avail.saturating_add((chosen.end - chosen.avail) / u64::from(chosen.workers.max(1)));
    }

    /// Makes room for promises of these children, which are in order: the component learns their number only in its
    /// first call.
    fn reach(&mut self, candidates: &[Candidate]) {
        if let Some(last) = candidates.last().map(|candidate| candidate.child.0 as usize)
            && last >= self.children.len()
        {
            self.children.resize(last + 1, Promise::default());
        }
    }
}

#[cfg(test)]
mod tests;

//! Decisions that run at the same time see each other, although no lock is held from the decision to its arrival.
//!
//! A decision asks each child when it will be free, chooses one, and pushes the task to it. Between the choice and the
//! moment when the child counts the task by itself, another decision must count it for the child. So the choice notes,
//! under a lock that is held for nothing else, *until when the child is promised to be busy*; and as long as tasks are on
//! their way to a child, it is taken to be busy until the later of the two: what it says, and what was promised. The
//! maximum, not a sum: once the child counts the task, both say the same, and nothing is counted twice.
//!
//! When the last task on its way has landed, the promise is forgotten, since the child knows. One decision could have
//! missed both: it asked the child before the task landed, and looks for promises after. Landings are counted for that: a
//! decision notes the count before it asks, and where a child has no promise and a later landing, it asks again all children
//! with one.
//! Whoever has to repeat does so because another decision came to its end, so all together always go on.
//!
//! The effect is that of decisions taken one after another, in the order of their choices.

use super::completion::Candidate;
use sched_core::{Child, Mutex};

/// What was decided and has not landed.
#[derive(Default, Debug)]
pub(super) struct Promises {
    book: Mutex<Book>,
}

#[derive(Default, Debug)]
struct Book {
    children: Vec<Promise>,
    /// Tasks chosen for any child, whose push has not returned.
    on_the_way: u32,
    /// Pushes that children took.
    landed: u64,
}

#[derive(Clone, Copy, Default, Debug)]
struct Promise {
    /// Tasks chosen for the child, whose push has not returned.
    on_the_way: u32,
    /// With these, the child is busy until then, in nanoseconds.
    until: u64,
    /// The number of the last push that the child took, counted among those to all children; 0 for none.
    last: u64,
}

/// How many pushes had landed when a decision asked its candidates.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Seen(u64);

impl Promises {
    /// To be called before the candidates are asked when they are free.
    pub(super) fn begin(&self) -> Seen {
        Seen(self.book.lock().landed)
    }

    /// Completes what the candidates say by what was promised, and promises the one that `choose` picks to this task.
    ///
    /// `None` when some have to be asked again, which is noted in them. `choose` was not called then.
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
        // Mostly nobody else decides.
        if book.on_the_way > 0 {
            for candidate in &mut *candidates {
                let promise = promise_of(candidate);
                if promise.on_the_way > 0 {
                    candidate.avail = candidate.avail.max(promise.until);
                }
            }
        }
        let chosen = choose(candidates);
        book.on_the_way += 1;
        let promise = &mut book.children[chosen.child.0 as usize];
        promise.on_the_way += 1;
        // Several workers share the work of a child.
        promise.until = chosen.avail.saturating_add((chosen.end - chosen.avail) / u64::from(chosen.workers.max(1)));
        Some(chosen)
    }

    /// The push has returned: the child took the task, or not.
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
    /// Has promises of at least these children, which are in order: the component learns their number with its first call
    /// only.
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

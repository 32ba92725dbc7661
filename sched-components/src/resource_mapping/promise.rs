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
//! decision notes the count before it asks, and where a child has no promise and another count, it asks that child again.
//! Whoever has to repeat does so because another decision came to its end, so all together always go on.
//!
//! The effect is that of decisions taken one after another, in the order of their choices.

use super::completion::Candidate;
use sched_core::{Child, Mutex};

/// What was decided and has not landed, for each child.
#[derive(Default, Debug)]
pub(super) struct Promises {
    children: Mutex<Vec<Promise>>,
}

#[derive(Clone, Copy, Default, Debug)]
struct Promise {
    /// Tasks chosen for the child, whose push has not returned.
    on_the_way: u32,
    /// With these, the child is busy until then, in nanoseconds.
    until: u64,
    /// Pushes that the child took.
    landed: u64,
}

impl Promises {
    /// To be called before the candidates are asked when they are free.
    pub(super) fn begin(&self, candidates: &mut [Candidate]) {
        let mut children = self.children.lock();
        let children = reaching(&mut children, candidates);
        for candidate in candidates {
            candidate.landed = children[candidate.child.0 as usize].landed;
        }
    }

    /// Completes what the candidates say by what was promised, and promises the one that `choose` picks to this task.
    ///
    /// `None` when some have to be asked again, which is noted in them. `choose` was not called then.
    pub(super) fn settle(
        &self,
        candidates: &mut [Candidate],
        choose: impl FnOnce(&mut [Candidate]) -> Candidate,
    ) -> Option<Candidate> {
        let mut children = self.children.lock();
        let children = reaching(&mut children, candidates);
        let (mut stale, mut promised) = (false, false);
        for candidate in &mut *candidates {
            let promise = children[candidate.child.0 as usize];
            promised |= promise.on_the_way > 0;
            if promise.on_the_way == 0 && promise.landed != candidate.landed {
                candidate.landed = promise.landed;
                candidate.asked = false;
                stale = true;
            }
        }
        if stale {
            return None;
        }
        if promised {
            for candidate in &mut *candidates {
                let promise = children[candidate.child.0 as usize];
                if promise.on_the_way > 0 {
                    candidate.avail = candidate.avail.max(promise.until);
                }
            }
        }
        let chosen = choose(candidates);
        let promise = &mut children[chosen.child.0 as usize];
        promise.on_the_way += 1;
        // Several workers share the work of a child.
        promise.until = chosen.avail.saturating_add((chosen.end - chosen.avail) / u64::from(chosen.workers.max(1)));
        Some(chosen)
    }

    /// The push has returned: the child took the task, or not.
    pub(super) fn landed(&self, child: Child, taken: bool) {
        let mut children = self.children.lock();
        let promise = &mut children[child.0 as usize];
        promise.on_the_way -= 1;
        promise.landed += u64::from(taken);
    }
}

/// The promises of at least these children: the component learns their number with its first call only.
fn reaching<'a>(children: &'a mut Vec<Promise>, candidates: &[Candidate]) -> &'a mut [Promise] {
    let last = candidates.iter().map(|candidate| candidate.child.0 as usize).max();
    if let Some(last) = last
        && last >= children.len()
    {
        children.resize(last + 1, Promise::default());
    }
    children
}

#[cfg(test)]
mod tests;

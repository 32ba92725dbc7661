//! Attempts that several threads examine at once.
//!
//! Most attempts are in vain: their plans are worse than the best one, and what comes next would be the same without
//! them. So the next attempts are made in advance, each as if those before it were in vain. A round ends with the first
//! that is worth keeping; those after it are stopped and thrown away, as if they had not been. So the outcome of a search
//! is that of one thread, however many there are and whichever is first.

use super::examiner::{Examiner, Finding};
use super::standing::{Attempt, Kind, Standing, Verdict};
use crate::queue::Padded;
use crate::resource_mapping::plan::stop::Stop;
use std::panic::resume_unwind;
use std::sync::{Mutex, PoisonError};
use std::thread::{self, Builder};

/// What became of an attempt.
pub(super) struct Examined<M> {
    pub(super) kind: Kind,
    pub(super) finding: Finding,
    /// What the attempt was made of.
    pub(super) of: M,
    /// If it is worth keeping beside the best plan of the round: the attempt, and the number of the examiner that has
    /// its plan.
    pub(super) keep: Option<(Attempt, usize)>,
}

/// What the threads of a round share.
struct Course<M, F> {
    /// Makes the next attempt.
    make: F,
    /// Maximum number of further attempts.
    left: usize,
    /// What became of them, in the order in which they were made.
    examined: Vec<Option<Examined<M>>>,
    /// By examiner: the place of its attempt among them, and how to stop it.
    at_work: Vec<(usize, Stop)>,
}

/// What comes of the attempts of a round that were made after one that is worth keeping.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Later {
    /// They are what they would be without it.
    Count,
    /// They are in vain.
    Stop,
}

/// Examines attempts that `make` makes one after the other, until there are none left, there were `most`, or one is worth
/// keeping. Each examiner has a thread, or as many of them as there are threads to be had. What became of the attempts
/// is in their order; beyond the first that is worth keeping, there may be some of those made later.
pub(super) fn round<M: Send>(
    standing: &Standing<'_>,
    examiners: &mut [Padded<Examiner>],
    most: usize,
    later: Later,
    make: impl FnMut(&mut Examiner) -> Option<(Attempt, M)> + Send,
) -> Vec<Examined<M>> {
    let at_work = examiners.iter().map(|examiner| (0, examiner.0.scratch.stop.clone())).collect();
    let course = Mutex::new(Course { make, left: most, examined: Vec::new(), at_work });
    let mut examiners = examiners.iter_mut().enumerate().take(most);
    let Some((own, examiner)) = examiners.next() else { return Vec::new() };
    thread::scope(|scope| {
        let course = &course;
        let others: Vec<_> = examiners
            .map_while(|(number, other)| {
                Builder::new().spawn_scoped(scope, move || work(standing, &mut other.0, number, later, course)).ok()
            })
            .collect();
        work(standing, &mut examiner.0, own, later, course);
        others.into_iter().for_each(|other| other.join().unwrap_or_else(|panic| resume_unwind(panic)));
    });
    let examined = course.into_inner().unwrap_or_else(PoisonError::into_inner).examined;
    examined.into_iter().flatten().collect()
}

/// Examines one attempt after the other.
fn work<M>(
    standing: &Standing<'_>,
    examiner: &mut Examiner,
    number: usize,
    later: Later,
    course: &Mutex<Course<M, impl FnMut(&mut Examiner) -> Option<(Attempt, M)>>>,
) {
    // One that panics takes the search with it.
    let lock = || course.lock().unwrap_or_else(PoisonError::into_inner);
    loop {
        let mut at = lock();
        if at.left == 0 {
            return;
        }
        let Some((mut attempt, of)) = (at.make)(examiner) else {
            at.left = 0;
            return;
        };
        at.left -= 1;
        let place = at.examined.len();
        at.examined.push(None);
        at.at_work[number].0 = place;
        examiner.scratch.stop.clear();
        drop(at);
        let Some(finding) = examiner.examine(standing, &mut attempt) else { continue };
        let (kind, verdict) = (attempt.kind(), standing.judge(attempt.kind(), &finding));
        let is_kept = matches!(verdict, Verdict::Same | Verdict::Better);
        let mut at = lock();
        at.examined[place] = Some(Examined { kind, finding, of, keep: is_kept.then_some((attempt, number)) });
        if is_kept {
            at.left = 0;
            if later == Later::Stop {
                at.at_work.iter().filter(|(other, _)| *other > place).for_each(|(_, stop)| stop.set());
            }
            return;
        }
    }
}

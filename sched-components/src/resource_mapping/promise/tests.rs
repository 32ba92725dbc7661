use super::*;
use proptest::prelude::*;

const CHILDREN: usize = 3;

/// The progress of a decision.
enum Decision {
    /// It asks its candidates, one after another.
    Asking(Seen, Vec<Candidate>),
    /// Chosen, but not delivered yet.
    Pushing(Candidate),
}

fn candidates(length: u64) -> Vec<Candidate> {
    let candidate = |child| Candidate {
        child: Child(child as u32),
        workers: 1,
        length,
        transfer: 0,
        energy: 0.0,
        avail: 0,
        end: 0,
        asked: false,
    };
    (0..CHILDREN).map(candidate).collect()
}

/// The earliest end; the first child on ties.
fn choose(candidates: &mut [Candidate]) -> Candidate {
    for candidate in &mut *candidates {
        candidate.end = candidate.avail + candidate.length;
    }
    *candidates.iter().min_by_key(|candidate| candidate.end).expect("there are candidates")
}

#[derive(Clone, Copy, Debug)]
enum Step {
    Begin { length: u64 },
    Go { which: usize, refused: bool },
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let begin = (1..100_u64).prop_map(|length| Step::Begin { length });
    let go = (any::<usize>(), prop::bool::weighted(0.1)).prop_map(|(which, refused)| Step::Go { which, refused });
    prop::collection::vec(prop_oneof![1 => begin, 5 => go], 0..300)
}

proptest! {
    /// However decisions interleave, each counts every task that was chosen for a child before it, exactly once.
    #[test]
    fn decisions_see_all_earlier_ones(steps in steps()) {
        let promises = Promises::default();
        // What each child reports, and its true value.
        let (mut says, mut truth) = ([0; CHILDREN], [0; CHILDREN]);
        let mut refusals = 0;
        let mut decisions: Vec<Decision> = Vec::new();
        for step in steps {
            match step {
                Step::Begin { length } => {
                    decisions.push(Decision::Asking(promises.begin(), candidates(length)));
                }
                Step::Go { .. } if decisions.is_empty() => {}
                Step::Go { which, refused } => {
                    let which = which % decisions.len();
                    match decisions.swap_remove(which) {
                        Decision::Asking(mut seen, mut candidates) => {
                            if let Some(next) = candidates.iter_mut().find(|candidate| !candidate.asked) {
                                next.avail = says[next.child.0 as usize];
                                next.asked = true;
                                decisions.push(Decision::Asking(seen, candidates));
                                continue;
                            }
                            match promises.settle(&mut seen, &mut candidates, choose) {
                                None => decisions.push(Decision::Asking(seen, candidates)),
                                Some(chosen) => {
                                    // A refusal takes back what others may have counted meanwhile: that is no fault.
                                    if refusals == 0 {
                                        let avails: Vec<u64> = candidates.iter().map(|of| of.avail).collect();
                                        prop_assert_eq!(&avails[..], &truth[..]);
                                    }
                                    truth[chosen.child.0 as usize] += chosen.length;
                                    decisions.push(Decision::Pushing(chosen));
                                }
                            }
                        }
                        Decision::Pushing(chosen) => {
                            let child = chosen.child.0 as usize;
                            if refused {
                                refusals += 1;
                                truth[child] -= chosen.length;
                            } else {
                                says[child] += chosen.length;
                            }
                            promises.landed(chosen.child, !refused);
                        }
                    }
                }
            }
        }
    }
}

#[test]
fn a_decision_that_asked_too_early_asks_that_child_again() {
    let promises = Promises::default();
    let (mut early, mut late) = (candidates(10), candidates(10));
    let (mut seen_early, mut seen_late) = (promises.begin(), promises.begin());
    early.iter_mut().for_each(|candidate| candidate.asked = true);
    let chosen = promises.settle(&mut seen_late, &mut late, choose).expect("nothing has landed");
    assert_eq!(chosen.child, Child(0));
    promises.landed(chosen.child, true);
    assert!(promises.settle(&mut seen_early, &mut early, choose).is_none());
    let again: Vec<bool> = early.iter().map(|candidate| !candidate.asked).collect();
    assert_eq!(again, [true, false, false]);
    early[0].avail = 10;
    assert_eq!(promises.settle(&mut seen_early, &mut early, choose).map(|chosen| chosen.child), Some(Child(1)));
}

#[test]
fn a_refused_task_leaves_no_promise() {
    let promises = Promises::default();
    for _ in 0..3 {
        let (mut seen, mut candidates) = (promises.begin(), candidates(10));
        let chosen = promises.settle(&mut seen, &mut candidates, choose).expect("nothing lands");
        assert_eq!((chosen.child, chosen.avail), (Child(0), 0));
        promises.landed(chosen.child, false);
    }
}

#[test]
fn workers_share_the_work_of_their_child() {
    let promises = Promises::default();
    let mut first = candidates(40);
    first.iter_mut().for_each(|candidate| candidate.workers = 4);
    assert_eq!(promises.settle(&mut promises.begin(), &mut first, choose).map(|chosen| chosen.child), Some(Child(0)));
    let mut second = candidates(40);
    let _ = promises.settle(&mut promises.begin(), &mut second, choose);
    assert_eq!(second[0].avail, 10);
}

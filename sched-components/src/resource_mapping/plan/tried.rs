//! What became of the plans that a search has tried.
//!
//! Most changes of preferences change no decision, above all in the rest of a graph, where few tasks are left. The same
//! plan comes again then, by another way, and what it is worth is known.

use super::schedule::Schedule;
use std::collections::HashMap;

/// The lanes and starts of a plan in one number. That two of the thousands of plans of a search have the same is as
/// good as impossible, and would do no more than to leave a plan out.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) struct Fingerprint(u64);

/// What a plan turned out to be.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) enum Outcome {
    /// It ends after this time.
    Late(u64),
    /// What it is worth, where less is better, and when it ends.
    Score { score: u64, end: u64 },
}

/// What becomes of a plan that tasks chose, by the cheap prediction of transfers.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) enum Followed {
    /// It ends after this time.
    Late(u64),
    /// When it ends, and what tells it from others: what tasks chose, or the plan itself.
    Ends(u64, Fingerprint),
}

/// See the [module](self).
#[derive(Default, Debug)]
pub(super) struct Tried {
    followed: HashMap<Fingerprint, Followed>,
    outcomes: HashMap<Fingerprint, Outcome>,
}

impl Fingerprint {
    /// That of a plan.
    pub(super) fn of(plan: &Schedule) -> Fingerprint {
        let lanes = plan.lanes.iter().map(|lane| *lane as u64);
        let mixed = lanes.chain(plan.starts.iter().copied()).fold(0, |mixed: u64, word| {
            // An odd factor loses nothing, and the rotation brings what it moved up down again.
            (mixed.rotate_left(29) ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15)
        });
        Fingerprint(mixed)
    }

    /// That of a plan which was chosen before it is executed: another one than that of the same plan as an outcome.
    pub(super) fn before_execution(self) -> Fingerprint {
        Fingerprint(!self.0)
    }
}

impl Tried {
    /// What [`Schedule::follow`] makes of a plan until `most`, if that is known.
    pub(super) fn followed(&self, plan: Fingerprint, most: u64) -> Option<Followed> {
        let is_enough = |followed: &Followed| !matches!(followed, Followed::Late(limit) if *limit < most);
        self.followed.get(&plan).copied().filter(is_enough)
    }

    /// Takes note of what [`Schedule::follow`] made of a plan.
    pub(super) fn note_followed(&mut self, plan: Fingerprint, followed: Followed) {
        self.followed.insert(plan, followed);
    }

    /// What a plan turned out to be.
    pub(super) fn outcome(&self, plan: Fingerprint) -> Option<Outcome> {
        self.outcomes.get(&plan).copied()
    }

    /// Takes note of what a plan turned out to be.
    pub(super) fn note(&mut self, plan: Fingerprint, outcome: Outcome) {
        self.outcomes.insert(plan, outcome);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plans_with_other_lanes_or_starts_are_others() {
        let plan = |lanes: &[usize], starts: &[u64]| Schedule {
            lanes: lanes.to_vec(),
            starts: starts.to_vec(),
            ..Schedule::default()
        };
        let plans = [
            plan(&[0, 1], &[5, 7]),
            plan(&[1, 0], &[5, 7]),
            plan(&[0, 0], &[5, 7]),
            plan(&[0, 1], &[7, 5]),
            plan(&[0, 1], &[5, 8]),
        ];
        for (number, plan) in plans.iter().enumerate() {
            let same = plans.iter().filter(|other| Fingerprint::of(other) == Fingerprint::of(plan)).count();
            assert_eq!(same, 1, "plan {number}");
        }
        assert_eq!(Fingerprint::of(&plans[0]), Fingerprint::of(&plans[0].clone()));
    }
}

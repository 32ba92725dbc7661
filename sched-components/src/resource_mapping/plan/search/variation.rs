//! Attempts with other preferences than those of the best plan, or with other lanes for some of its tasks.

use super::STAYS;
use super::basis::Basis;
use super::standing::{Attempt, Standing};
use crate::resource_mapping::plan::dice::Dice;
use crate::resource_mapping::plan::samples::Move;
use crate::resource_mapping::plan::schedule::{Schedule, Scratch, Taste};

/// Probability that a preference is dropped rather than changed.
const DROPPED: f64 = 0.3;

/// Strongest preference; beyond it, a task would end on the class whenever it can.
const MOST_LIKED: f64 = -0.9;

/// How much a nanosecond of transfers counts beyond the delay that it causes.
const HAULS: [f64; 5] = [0.0, 0.3, 1.0, 2.0, 4.0];

/// Amounts by which keys are shifted, as shares of the plan's length.
const SHIFTS: [f64; 4] = [0.0, 0.003, 0.01, 0.03];

/// Shares of the tasks whose keys are shifted.
const SHIFTED: [f64; 3] = [1.0, 0.1, 0.02];

/// Probability that an attempt knows what is evicted where the last one did not, or the other way round, where not all
/// data fits into a memory.
const WITH_EVICTIONS: f64 = 0.2;

/// Probability that tasks choose hastily where they did not, or the other way round, where allocations take time.
const HASTY: f64 = 0.2;

/// Where tasks [move](Standing::moves_tasks): the probability that an attempt moves some, rather than changes
/// preferences.
const MOVING: f64 = 0.7;

/// See the [module](self).
pub(super) struct Variation<'a> {
    pub(super) basis: &'a Basis<'a>,
    pub(super) standing: &'a Standing<'a>,
    /// The preferences that led to the best plan.
    pub(super) taste: &'a Taste,
    pub(super) dice: Dice,
}

impl Variation<'_> {
    /// The next attempt: with other preferences for `kinds` of tasks, or else with other preferences or lanes for single
    /// ones.
    pub(super) fn next(&mut self, kinds: bool, scratch: &mut Scratch) -> Attempt {
        let mut taste = self.taste.clone();
        if kinds {
            self.change_kinds(&mut taste);
            return Attempt::by(taste);
        }
        if self.standing.moves_tasks() && self.dice.chance(MOVING) {
            return self.move_tasks(taste);
        }
        self.change_order(&mut taste, scratch);
        if self.basis.is_uniform {
            taste.late = self.dice.chance(0.5);
        } else if self.dice.chance(0.5) {
            self.change_tasks(&mut taste);
        }
        let lanes = self.dice.chance(0.3).then(|| self.standing.best.lanes.clone());
        Attempt { lanes, ..Attempt::by(taste) }
    }

    /// Changes the preference of some kinds of tasks for some class of workers.
    fn change_kinds(&mut self, taste: &mut Taste) {
        let dice = &mut self.dice;
        if dice.chance(0.5) {
            taste.keys.clone_from(&self.basis.orders[dice.below(self.basis.orders.len())]);
        }
        if let Some(owned) = &mut taste.owned
            && dice.chance(0.3)
        {
            owned.most = STAYS[dice.below(STAYS.len())];
        }
        if dice.chance(0.2) {
            taste.haul = HAULS[dice.below(HAULS.len())];
        }
        if self.standing.outlook.replicas.are_limited() && dice.chance(WITH_EVICTIONS) {
            taste.evicts = !taste.evicts;
            if taste.evicts {
                (taste.at_once, taste.shares) = (true, true);
            }
        }
        if taste.at_once && self.standing.outlook.has_links() && dice.chance(0.3) {
            taste.shares = !taste.shares;
        }
        if taste.at_once && self.standing.outlook.allocates() && dice.chance(HASTY) {
            taste.hasty = !taste.hasty;
        }
        for _ in 0..=dice.below(3) {
            let at = dice.below(taste.by_kind.len());
            let Some(liking) = taste.by_kind.get_mut(at) else { break };
            *liking = if dice.chance(DROPPED) { 0.0 } else { (*liking + dice.normal() * 0.5).max(MOST_LIKED) };
        }
    }

    /// Perturbs the previous order, that of the best plan, or that of its latest start times (justification).
    fn change_order(&mut self, taste: &mut Taste, scratch: &mut Scratch) {
        let (outlook, best, dice) = (self.standing.outlook, &self.standing.best, &mut self.dice);
        match dice.below(3) {
            0 => {}
            1 => taste.keys = before_end(best, &best.latest_starts(outlook, scratch)),
            _ => taste.keys = before_end(best, &best.starts),
        }
        let by = SHIFTS[dice.below(SHIFTS.len())] * best.end.saturating_sub(outlook.now) as f64;
        let share = SHIFTED[dice.below(SHIFTED.len())];
        if by > 0.0 {
            for key in &mut taste.keys {
                if dice.chance(share) {
                    *key += by * dice.normal();
                }
            }
        }
    }

    /// Moves single tasks of the best plan: at once, or by dice of their own, if there are draws to tell what becomes
    /// of that.
    fn move_tasks(&mut self, mut taste: Taste) -> Attempt {
        let Standing { outlook, best, samples, open, .. } = self.standing;
        taste.keys = before_end(best, &best.starts);
        let mut attempt = Attempt { lanes: Some(best.lanes.clone()), ..Attempt::by(taste) };
        if samples.is_empty() {
            attempt.make(&Move::draw(outlook, open, &best.lanes, self.standing.length(), &mut self.dice));
        } else {
            attempt.moves = Some(self.dice.split());
        }
        attempt
    }

    /// Changes the preferences of a few tasks for classes of workers.
    fn change_tasks(&mut self, taste: &mut Taste) {
        let (outlook, dice) = (self.standing.outlook, &mut self.dice);
        for _ in 0..=dice.below(4) {
            let first = dice.below(outlook.len()) * outlook.classes;
            for liking in taste.by_task.iter_mut().skip(first).take(outlook.classes) {
                *liking = if dice.chance(DROPPED) { 0.0 } else { dice.normal() };
            }
        }
    }
}

/// Keys in the order of these starts: how long before the end of a plan they are.
fn before_end(plan: &Schedule, starts: &[u64]) -> Vec<f64> {
    starts.iter().map(|start| plan.end.saturating_sub(*start) as f64).collect()
}

//! Improves a plan by trying many.

use super::outlook::{NEVER, Outlook};
use super::schedule::{Schedule, Scratch, Taste};

/// Random numbers by SplitMix64, seeded from the host.
#[derive(Clone, Copy, Debug)]
pub(super) struct Dice(pub(super) u64);

impl Dice {
    fn roll(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut word = self.0;
        word = (word ^ word >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        word = (word ^ word >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        word ^ word >> 31
    }

    fn below(&mut self, limit: usize) -> usize {
        (self.roll() % limit.max(1) as u64) as usize
    }

    /// A number from 0 to 1.
    fn unit(&mut self) -> f64 {
        (self.roll() >> 11) as f64 / (1u64 << 53) as f64
    }

    fn chance(&mut self, of: f64) -> bool {
        self.unit() < of
    }

    /// A roughly normal number around 0.
    fn normal(&mut self) -> f64 {
        (self.unit() + self.unit() + self.unit() - 1.5) * 2.0
    }
}

/// Share of the tries that change the preferences of kinds of tasks: these change most at once.
const ON_KINDS: f64 = 0.8;

/// Probability that a preference is dropped rather than changed.
const DROPPED: f64 = 0.3;

/// Strongest preference; beyond it, a task would end on the class whenever it can.
const MOST_LIKED: f64 = -0.9;

/// How much longer a task may take away from the owner of its data, if it leaves.
const STAYS: [f64; 3] = [0.0, 4.0, 12.0];

/// Amounts by which keys are moved, as shares of the plan's length.
const MOVES: [f64; 4] = [0.0, 0.003, 0.01, 0.03];

/// Shares of the tasks whose keys are moved.
const MOVED: [f64; 3] = [1.0, 0.1, 0.02];

/// A search for a plan.
pub(super) struct Search<'a> {
    outlook: &'a Outlook,
    dice: Dice,
    scratch: Scratch,
    draft: Schedule,
    trial: Schedule,
    best: Schedule,
    taste: Taste,
    ranks: [Vec<f64>; 3],
}

impl<'a> Search<'a> {
    pub(super) fn new(outlook: &'a Outlook, dice: Dice) -> Search<'a> {
        let count = outlook.lanes.len().max(1) as f64;
        let known = |lengths: &[u64]| -> Vec<f64> {
            let known = lengths.iter().filter(|length| **length != NEVER);
            known.map(|length| (*length).max(1) as f64).collect()
        };
        let average = |lengths: &[f64]| lengths.iter().sum::<f64>() / lengths.len().max(1) as f64;
        let ranks = [
            outlook.ranks(|lengths| average(&known(lengths))),
            outlook.ranks(|lengths| known(lengths).into_iter().fold(f64::INFINITY, f64::min)),
            outlook.ranks(|lengths| count / known(lengths).iter().map(|length| 1.0 / length).sum::<f64>()),
        ];
        let taste = Taste {
            keys: ranks[0].clone(),
            by_kind: vec![0.0; outlook.count_kinds * outlook.classes],
            by_task: vec![0.0; outlook.len() * outlook.classes],
            owned: None,
        };
        Search {
            outlook,
            dice,
            scratch: Scratch::default(),
            draft: Schedule::default(),
            trial: Schedule::default(),
            best: Schedule { end: u64::MAX, ..Schedule::default() },
            taste,
            ranks,
        }
    }

    /// Tries preferences, and keeps them if the plan is no worse than the best.
    fn attempt(&mut self, taste: Taste, fixed: bool) {
        let fixed = fixed.then_some(&self.best.lanes[..]);
        self.draft.choose(self.outlook, &taste, fixed, &mut self.scratch);
        self.trial.follow(self.outlook, &self.draft, &mut self.scratch);
        if self.trial.end <= self.best.end {
            std::mem::swap(&mut self.best, &mut self.trial);
            self.taste = taste;
        }
    }

    /// The length of the best plan so far.
    pub(super) fn length(&self) -> u64 {
        self.best.end.saturating_sub(self.outlook.now)
    }

    /// Starts from the preferences of kinds that were good before, if there are any, and from nothing else. Makes at
    /// least one try.
    pub(super) fn begin(&mut self, likings: &[f64], goes_on: impl Fn(&Search<'a>) -> bool) {
        let none = vec![0.0; self.taste.by_kind.len()];
        let mut before = none.clone();
        before.iter_mut().zip(likings).for_each(|(liking, before)| *liking = *before);
        for by_kind in [&none, &before] {
            for keys in self.ranks.clone() {
                if self.best.end != u64::MAX && !goes_on(self) {
                    return;
                }
                self.attempt(Taste { keys, by_kind: by_kind.clone(), ..self.fresh(None) }, false);
            }
            if before == none {
                break;
            }
        }
        self.begin_with_owners(goes_on);
    }

    /// Tries plans in which the owner of the data computes.
    fn begin_with_owners(&mut self, goes_on: impl Fn(&Search<'a>) -> bool) {
        if !self.outlook.has_owners() {
            return;
        }
        for most in STAYS {
            for keys in self.ranks.clone() {
                if !goes_on(self) {
                    return;
                }
                self.attempt(Taste { keys, ..self.fresh(Some(most)) }, false);
            }
        }
    }

    /// No preferences but for owners.
    fn fresh(&self, owned: Option<f64>) -> Taste {
        Taste {
            keys: Vec::new(),
            by_kind: vec![0.0; self.taste.by_kind.len()],
            by_task: vec![0.0; self.taste.by_task.len()],
            owned,
        }
    }

    /// The best plan, and the preferences of kinds in it.
    pub(super) fn finish(self) -> (Schedule, Vec<f64>) {
        (self.best, self.taste.by_kind)
    }

    /// Makes `tries` tries.
    pub(super) fn improve(&mut self, tries: u64, goes_on: impl Fn(&Search<'a>) -> bool) {
        for number in 0..tries {
            if !goes_on(self) {
                break;
            }
            let mut next = self.taste.clone();
            if (number as f64) < ON_KINDS * tries as f64 {
                self.change_kinds(&mut next);
                self.attempt(next, false);
            } else {
                self.change_order(&mut next);
                if self.dice.chance(0.5) {
                    self.change_tasks(&mut next);
                }
                let fixed = self.dice.chance(0.3);
                self.attempt(next, fixed);
            }
        }
    }

    /// Changes the preference of some kinds of tasks for some class of workers.
    fn change_kinds(&mut self, taste: &mut Taste) {
        let dice = &mut self.dice;
        if dice.chance(0.5) {
            taste.keys.clone_from(&self.ranks[dice.below(self.ranks.len())]);
        }
        if taste.owned.is_some() && dice.chance(0.3) {
            taste.owned = Some(STAYS[dice.below(STAYS.len())]);
        }
        for _ in 0..=dice.below(3) {
            let at = dice.below(taste.by_kind.len());
            let Some(liking) = taste.by_kind.get_mut(at) else { break };
            *liking = if dice.chance(DROPPED) { 0.0 } else { (*liking + dice.normal() * 0.5).max(MOST_LIKED) };
        }
    }

    /// Perturbs the previous order, that of the best plan, or that of its latest start times (justification).
    fn change_order(&mut self, taste: &mut Taste) {
        let (best, dice) = (&self.best, &mut self.dice);
        let before_end = |starts: &[u64]| starts.iter().map(|start| best.end.saturating_sub(*start) as f64).collect();
        match dice.below(3) {
            0 => {}
            1 => taste.keys = before_end(&best.latest_starts(self.outlook, &mut self.scratch)),
            _ => taste.keys = before_end(&best.starts),
        }
        let by = MOVES[dice.below(MOVES.len())] * best.end.saturating_sub(self.outlook.now) as f64;
        let share = MOVED[dice.below(MOVED.len())];
        if by > 0.0 {
            for key in &mut taste.keys {
                if dice.chance(share) {
                    *key += by * dice.normal();
                }
            }
        }
    }

    /// Changes the preferences of a few tasks for classes of workers.
    fn change_tasks(&mut self, taste: &mut Taste) {
        let (dice, classes) = (&mut self.dice, self.outlook.classes);
        for _ in 0..=dice.below(4) {
            let first = dice.below(self.outlook.len()) * classes;
            for liking in taste.by_task.iter_mut().skip(first).take(classes) {
                *liking = if dice.chance(DROPPED) { 0.0 } else { dice.normal() };
            }
        }
    }
}

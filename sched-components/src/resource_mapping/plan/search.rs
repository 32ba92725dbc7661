//! Improves a plan by trying many.

use super::dice::Dice;
use super::outlook::{NEVER, Outlook};
use super::samples::Samples;
use super::schedule::{Schedule, Scratch, Taste};
use super::tried::{Fingerprint, Followed, Outcome, Tried};

/// Share of the tries that change the preferences of kinds of tasks: these change most at once.
const ON_KINDS: f64 = 0.8;

/// Probability that a preference is dropped rather than changed.
const DROPPED: f64 = 0.3;

/// Strongest preference; beyond it, a task would end on the class whenever it can.
const MOST_LIKED: f64 = -0.9;

/// How much longer a task may take away from the owner of its data, if it leaves.
const STAYS: [f64; 3] = [0.0, 4.0, 12.0];

/// How much a nanosecond of transfers counts beyond the delay that it causes.
const HAULS: [f64; 5] = [0.0, 0.3, 1.0, 2.0, 4.0];

/// How a plan begins, before preferences for kinds of tasks.
#[derive(Clone, Copy, PartialEq, Default, Debug)]
struct Start {
    at_once: bool,
    shares: bool,
    late: bool,
    haul: f64,
    owned: Option<f64>,
}

/// A plan by HEFT.
const fn ahead(haul: f64, owned: Option<f64>) -> Start {
    Start { at_once: false, shares: false, late: false, haul, owned }
}

/// A plan by a dispatcher that knows the links.
const fn at_once(shares: bool, haul: f64, owned: Option<f64>) -> Start {
    Start { at_once: true, shares, late: false, haul, owned }
}

/// A plan by list scheduling.
const LISTED: Start = Start { at_once: false, shares: false, late: true, haul: 0.0, owned: None };

/// The first plans: those of HEFT, of a dispatcher that knows the links, and of the owners of the data.
const STARTS: [Start; 11] = [
    ahead(0.0, None),
    at_once(false, 0.0, None),
    ahead(1.0, None),
    at_once(true, 1.0, None),
    at_once(false, 4.0, None),
    at_once(false, 1.0, None),
    ahead(0.0, Some(STAYS[0])),
    at_once(true, 0.0, Some(STAYS[0])),
    ahead(0.0, Some(STAYS[1])),
    at_once(false, 0.0, Some(STAYS[2])),
    at_once(true, 1.0, Some(STAYS[1])),
];

/// What a good plan went by, for the next one.
#[derive(Clone, Default, Debug)]
pub(super) struct Habits {
    start: Start,
    /// By kind and class, the preference for the class.
    by_kind: Vec<f64>,
}

/// Amounts by which keys are moved, as shares of the plan's length.
const MOVES: [f64; 4] = [0.0, 0.003, 0.01, 0.03];

/// Shares of the tasks whose keys are moved.
const MOVED: [f64; 3] = [1.0, 0.1, 0.02];

/// How much longer than the best plan another one may be by the cheap prediction, for the closer one to be asked.
const PROMISING: f64 = 1.03;

/// How much longer than the best plan another one may be, as a share, where plans are compared by draws too.
const ROOM: f64 = 0.04;

/// A search for a plan.
pub(super) struct Search<'a> {
    outlook: &'a Outlook,
    dice: Dice,
    scratch: Scratch,
    draft: Schedule,
    trial: Schedule,
    best: Schedule,
    /// What the best plan is worth, by the draws.
    score: u64,
    /// The fingerprint that the best plan had when it was predicted; `None` if it was not.
    best_print: Option<Fingerprint>,
    tried: Tried,
    samples: Samples,
    /// Nanoseconds that the best plan takes by the cheap prediction.
    expected: f64,
    taste: Taste,
    ranks: [Vec<f64>; 3],
    /// Whether all lanes are equal, so that only the order of the tasks makes a difference.
    is_uniform: bool,
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
            haul: 0.0,
            at_once: false,
            shares: false,
            late: false,
        };
        let is_uniform = outlook.is_uniform();
        Search {
            outlook,
            dice,
            scratch: Scratch::default(),
            draft: Schedule::default(),
            trial: Schedule::default(),
            best: Schedule { end: u64::MAX, ..Schedule::default() },
            score: u64::MAX,
            best_print: None,
            tried: Tried::default(),
            samples: Samples::default(),
            expected: f64::INFINITY,
            taste,
            ranks,
            is_uniform,
        }
    }

    /// Compares plans in the mean of draws of lengths that deviate by `spread`, from the first one on.
    pub(super) fn expect_deviations(&mut self, spread: f64) {
        self.samples = Samples::draw(self.outlook, spread, &mut self.dice);
    }

    /// Tries preferences, and keeps them if the plan is no worse than the best.
    fn attempt(&mut self, taste: Taste, fixed: bool) {
        let (outlook, at_once) = (self.outlook, taste.at_once && !fixed);
        let shares = at_once && taste.shares && outlook.has_links();
        let expected = if shares { self.length() as f64 } else { self.expected };
        let promising = (outlook.now as f64 + expected * PROMISING) as u64;
        let chosen = self.decide(&taste, fixed, promising);
        let most = self.most_expected(promising);
        let known = chosen.and_then(|chosen| self.tried.followed(chosen, most));
        let Followed::Ends(expected, print) = known.unwrap_or_else(|| self.predict(chosen, most)) else { return };
        if expected > most {
            return;
        }
        let room = if self.samples.is_empty() { 0.0 } else { ROOM * self.length() as f64 };
        let latest = self.best.end.saturating_add(room as u64).min(NEVER - 1);
        let is_worse = match self.tried.outcome(print) {
            Some(Outcome::Late(limit)) => latest <= limit,
            Some(Outcome::Score(score)) => score > self.score,
            None => false,
        };
        if is_worse {
            return;
        }
        if self.best_print != Some(print) {
            if known.is_some() {
                self.predict(chosen, most);
            }
            if !self.rate(print, latest) {
                return;
            }
            std::mem::swap(&mut self.best, &mut self.trial);
            self.best_print = Some(print);
        }
        self.taste = taste;
        self.expected = expected.saturating_sub(outlook.now) as f64;
    }

    /// Makes a plan by preferences: in `draft` where it is to be followed, and returns its fingerprint then, or else in
    /// `trial`, which may be given up after `most`.
    fn decide(&mut self, taste: &Taste, fixed: bool, most: u64) -> Option<Fingerprint> {
        if taste.at_once && !fixed {
            self.trial.dispatch(self.outlook, taste, most, &mut self.scratch);
            None
        } else if taste.late && !fixed {
            self.trial.list(self.outlook, taste, &mut self.scratch);
            None
        } else {
            let fixed = fixed.then_some(&self.best.lanes[..]);
            self.draft.choose(self.outlook, taste, fixed, &mut self.scratch);
            Some(Fingerprint::of(&self.draft))
        }
    }

    /// When a plan ends at the latest by the cheap prediction, if it is to be compared with the best: before `promising`
    /// where the closer one has the last word.
    fn most_expected(&self, promising: u64) -> u64 {
        if self.outlook.has_links() {
            promising
        } else if self.samples.is_empty() {
            self.best.end
        } else {
            NEVER
        }
    }

    /// Makes the trial of what tasks have chosen, if they have, and tells what it is.
    fn predict(&mut self, chosen: Option<Fingerprint>, most: u64) -> Followed {
        if chosen.is_some() {
            self.trial.follow(self.outlook, &self.draft, most, &mut self.scratch);
        }
        let followed = match self.trial.end {
            NEVER => Followed::Late(most),
            end => Followed::Ends(end, Fingerprint::of(&self.trial)),
        };
        if let Some(chosen) = chosen {
            self.tried.note_followed(chosen, followed);
        }
        followed
    }

    /// Whether the trial is no worse than the best plan, and does not end after `most`.
    fn rate(&mut self, print: Fingerprint, most: u64) -> bool {
        if self.outlook.has_links() {
            self.draft.realise(self.outlook, &self.trial, most, &mut self.scratch);
            std::mem::swap(&mut self.draft, &mut self.trial);
        }
        if self.trial.end == NEVER {
            self.tried.note(print, Outcome::Late(most));
            return false;
        }
        let score = self.samples.score(self.outlook, &self.trial, &mut self.scratch);
        self.tried.note(print, Outcome::Score(score));
        let is_better = score <= self.score;
        if is_better {
            self.score = score;
        }
        is_better
    }

    /// The length of the best plan so far.
    pub(super) fn length(&self) -> u64 {
        self.best.end.saturating_sub(self.outlook.now)
    }

    /// Starts from the habits that were good before, if there are any, and from those of several policies: all of them
    /// if at least half of the tasks are new, whose share is `fresh`. Makes at least one try.
    pub(super) fn begin(&mut self, before: &Habits, fresh: f64, goes_on: impl Fn(&Search<'a>) -> bool) {
        let count = ((STARTS.len() as f64 * 2.0 * fresh).ceil() as usize).max(2);
        let fresh = |start: &Start| Habits { start: *start, ..Habits::default() };
        let known = before.by_kind.iter().any(|liking| *liking != 0.0) || before.start != Start::default();
        let listed = self.is_uniform.then(|| fresh(&LISTED));
        let first = known.then(|| before.clone()).into_iter().chain(listed);
        for habits in first.chain(STARTS.iter().take(count).map(fresh)) {
            if habits.start.owned.is_some() && !self.outlook.has_owners() {
                continue;
            }
            for rank in 0..self.ranks.len() {
                if self.best.end != u64::MAX && !goes_on(self) {
                    return;
                }
                let taste = self.taste_of(&habits, rank);
                self.attempt(taste, false);
            }
        }
    }

    /// Starts from a plan that is being followed, and the habits that led to it.
    pub(super) fn resume(&mut self, habits: &Habits, present: &Schedule) {
        self.best.follow(self.outlook, present, NEVER, &mut self.scratch);
        self.expected = self.length() as f64;
        // What became of `present` is not what would become of that again, where its data comes earlier or later.
        if self.outlook.has_links() {
            self.best.realise(self.outlook, present, NEVER - 1, &mut self.scratch);
        } else {
            self.best_print = Some(Fingerprint::of(&self.best));
        }
        self.score = self.samples.score(self.outlook, &self.best, &mut self.scratch);
        self.taste = self.taste_of(habits, 0);
        self.taste.keys = present.starts.iter().map(|start| -(*start as f64)).collect();
    }

    /// Preferences by habits, in the order of an upward rank.
    fn taste_of(&self, habits: &Habits, rank: usize) -> Taste {
        let mut by_kind = vec![0.0; self.taste.by_kind.len()];
        by_kind.iter_mut().zip(&habits.by_kind).for_each(|(liking, before)| *liking = *before);
        let Start { at_once, shares, late, haul, owned } = habits.start;
        // Lanes that were equal may not be so any more.
        let late = late && self.is_uniform;
        let by_task = vec![0.0; self.taste.by_task.len()];
        Taste { keys: self.ranks[rank].clone(), by_kind, by_task, owned, haul, at_once, shares, late }
    }

    /// The best plan, and the habits that led to it.
    pub(super) fn finish(self) -> (Schedule, Habits) {
        let Taste { at_once, shares, late, haul, owned, by_kind, .. } = self.taste;
        (self.best, Habits { start: Start { at_once, shares, late, haul, owned }, by_kind })
    }

    /// Makes `tries` tries.
    pub(super) fn improve(&mut self, tries: u64, goes_on: impl Fn(&Search<'a>) -> bool) {
        let on_kinds = if self.is_uniform { 0.0 } else { ON_KINDS };
        for number in 0..tries {
            if !goes_on(self) {
                break;
            }
            let mut next = self.taste.clone();
            if (number as f64) < on_kinds * tries as f64 {
                self.change_kinds(&mut next);
                self.attempt(next, false);
            } else {
                self.change_order(&mut next);
                if self.is_uniform {
                    next.late = self.dice.chance(0.5);
                } else if self.dice.chance(0.5) {
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
        if dice.chance(0.2) {
            taste.haul = HAULS[dice.below(HAULS.len())];
        }
        if taste.at_once && self.outlook.has_links() && dice.chance(0.3) {
            taste.shares = !taste.shares;
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

//! Improves a plan by trying many.

mod basis;
mod climb;
mod examiner;
mod round;
mod standing;
mod variation;

use super::super::block_cyclic::MOST_HALVINGS;
use super::dice::Dice;
use super::outlook::Outlook;
use super::samples::Samples;
use super::schedule::{Owned, Schedule, Taste};
use crate::queue::Padded;
use basis::{Basis, RANKS};
use examiner::Examiner;
use round::{Examined, Later, round};
use standing::{Attempt, Standing, Verdict};
use std::ops::Range;
use variation::Variation;

/// Share of the tries that change the preferences of kinds of tasks: these change most at once. Less, where single
/// tasks [move](Standing::moves_tasks).
const ON_KINDS: f64 = 0.8;
const ON_KINDS_BESIDE_MOVES: f64 = 0.1;

/// How much longer a task may take away from the owner of its data, if it leaves.
const STAYS: [f64; 4] = [0.0, 4.0, 12.0, f64::INFINITY];

/// How a plan begins, before preferences for kinds of tasks.
#[derive(Clone, Copy, PartialEq, Default, Debug)]
struct Start {
    at_once: bool,
    shares: bool,
    evicts: bool,
    late: bool,
    hasty: bool,
    haul: f64,
    owned: Option<Owned>,
}

/// The owner of the data computes, one of all owners.
const fn owned(most: f64) -> Option<Owned> {
    Some(Owned { most, halvings: 0 })
}

/// A plan by HEFT.
const fn ahead(haul: f64, owned: Option<Owned>) -> Start {
    Start { at_once: false, shares: false, evicts: false, late: false, hasty: false, haul, owned }
}

/// A plan by a dispatcher that knows the links.
const fn at_once(shares: bool, haul: f64, owned: Option<Owned>) -> Start {
    Start { at_once: true, shares, evicts: false, late: false, hasty: false, haul, owned }
}

impl Start {
    /// The same where the number of owners is halved that many times, if the owner of the data computes.
    fn halved(&self, halvings: usize) -> Option<Start> {
        Some(Start { owned: Some(Owned { halvings, ..self.owned? }), ..*self })
    }
}

/// A plan by list scheduling.
const LISTED: Start = Start { late: true, ..ahead(0.0, None) };

/// The first plans: those of HEFT, of a dispatcher that knows the links, and of the owners of the data.
const STARTS: [Start; 12] = [
    ahead(0.0, None),
    at_once(false, 0.0, None),
    ahead(1.0, None),
    at_once(true, 1.0, None),
    at_once(false, 4.0, None),
    at_once(false, 1.0, None),
    ahead(0.0, owned(STAYS[0])),
    at_once(true, 0.0, owned(STAYS[0])),
    ahead(0.0, owned(STAYS[1])),
    at_once(false, 0.0, owned(STAYS[2])),
    at_once(true, 1.0, owned(STAYS[1])),
    at_once(true, 1.0, owned(STAYS[3])),
];

/// The orders in which tasks choose in the first plans.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Orders {
    /// Those of upward ranks.
    Ranks,
    /// The others too.
    All,
}

/// What a good plan went by, for the next one.
#[derive(Clone, Default, Debug)]
pub(super) struct Habits {
    start: Start,
    /// By [group](Outlook::groups) and class, the preference for the class.
    by_kind: Vec<f64>,
}

/// A search for a plan.
pub(super) struct Search<'a> {
    basis: Basis<'a>,
    standing: Standing<'a>,
    /// One for each thread; at least one.
    examiners: Vec<Padded<Examiner>>,
    dice: Dice,
    /// The preferences that led to the best plan.
    taste: Taste,
}

impl<'a> Search<'a> {
    /// A search on this number of threads, on which nothing depends but the time that it takes.
    pub(super) fn new(outlook: &'a Outlook, dice: Dice, threads: usize) -> Search<'a> {
        let basis = Basis::new(outlook);
        let taste = basis.taste(&Habits::default(), 0);
        let examiners = (0..threads.max(1)).map(|_| Padded::default()).collect();
        Search { basis, standing: Standing::new(outlook), examiners, dice, taste }
    }

    /// Compares plans in the mean of draws of lengths that deviate by `spread`, from the first one on.
    pub(super) fn expect_deviations(&mut self, spread: f64) {
        self.standing.samples = Samples::draw(self.standing.outlook, spread, &mut self.dice);
    }

    /// Goes on from the attempts of a round that are worth keeping: from all of them where those that were made `later`
    /// count, or else from the first. Returns how many were settled.
    fn settle<M>(&mut self, examined: Vec<Examined<M>>, later: Later) -> usize {
        examined.iter().for_each(|examined| self.standing.note(&examined.finding));
        let count = examined.len();
        for (place, Examined { kind, finding, keep, .. }) in examined.into_iter().enumerate() {
            // What was found out beside a plan that is not the best any more may be too little.
            let (verdict, keep) = match (self.standing.judge(kind, &finding), keep) {
                (Verdict::Worse, _) => continue,
                (verdict @ (Verdict::Same | Verdict::Better), Some(keep)) => (verdict, keep),
                _ => return place,
            };
            let (attempt, examiner) = keep;
            let plan = (verdict == Verdict::Better).then_some(&mut self.examiners[examiner].0.trial);
            self.standing.accept(&finding, plan);
            self.taste = attempt.taste;
            if later == Later::Stop {
                return place + 1;
            }
        }
        count
    }

    /// The length of the best plan so far.
    pub(super) fn length(&self) -> u64 {
        self.standing.length()
    }

    /// Starts from the habits that were good before, if there are any, and from those of several policies: all of them
    /// if at least half of the tasks are new, whose share is `fresh`. Then come those that know what is evicted: one if
    /// fewer are new, and none if no task is; and those by tasks that choose hastily. All of them are made in the
    /// orders of upward ranks, then in the others of `orders`. Makes at least one try, and goes on while `goes_on` says
    /// so of the length of the best plan.
    pub(super) fn begin(&mut self, before: &Habits, fresh: f64, orders: Orders, goes_on: impl Fn(u64) -> bool) {
        let count = ((STARTS.len() as f64 * 2.0 * fresh).ceil() as usize).max(2);
        let evicting = if fresh >= 0.5 { STARTS.len() } else { usize::from(fresh > 0.0) };
        let evicting = if self.standing.outlook.replicas.are_limited() { evicting } else { 0 };
        let orders = if orders == Orders::All { self.basis.orders.len() } else { RANKS };
        let fresh = |start: &Start| Habits { start: *start, ..Habits::default() };
        let known = before.by_kind.iter().any(|liking| *liking != 0.0) || before.start != Start::default();
        let listed = self.basis.is_uniform.then(|| fresh(&LISTED));
        let first = known.then(|| before.clone()).into_iter().chain(listed);
        let has_owners = self.standing.outlook.has_owners(0);
        let all = first.chain(STARTS.iter().take(count).map(fresh));
        let outlook = self.standing.outlook;
        let halved = |halvings| STARTS.iter().take(count).filter_map(move |start| start.halved(halvings));
        let halvings = (1..=MOST_HALVINGS).filter(|halvings| outlook.has_owners(*halvings));
        let all = all.chain(halvings.flat_map(halved).map(|start| fresh(&start)));
        let evicts = |start: &Start| fresh(&Start { evicts: true, ..*start });
        let all = all.chain(STARTS.iter().filter(|start| start.shares).take(evicting).map(evicts));
        let hasty = |start: &Start| fresh(&Start { hasty: true, ..*start });
        let allocates = self.standing.outlook.allocates();
        let all = all.chain(STARTS.iter().filter(|start| start.at_once && allocates).take(count).map(hasty));
        let all: Vec<Habits> = all.filter(|habits| habits.start.owned.is_none() || has_owners).collect();
        let each =
            |orders: Range<usize>| all.iter().flat_map(move |start| orders.clone().map(move |order| (start, order)));
        let all: Vec<(&Habits, usize)> = each(0..RANKS).chain(each(RANKS..orders)).collect();
        let (most, mut number) = (self.most(), 0);
        while number < all.len() && (!self.standing.has_begun() || goes_on(self.length())) {
            let (basis, mut next) = (&self.basis, number);
            let make = |_: &mut Examiner| {
                let (habits, order) = *all.get(next)?;
                next += 1;
                Some((Attempt::by(basis.taste(habits, order)), ()))
            };
            let examined = round(&self.standing, &mut self.examiners, most, Later::Count, make);
            number += self.settle(examined, Later::Count);
        }
    }

    /// Maximum number of attempts of a round: one where there is one thread, which looks at the time meanwhile.
    fn most(&self) -> usize {
        if self.examiners.len() == 1 { 1 } else { usize::MAX }
    }

    /// Starts from a plan that is being followed, and the habits that led to it.
    pub(super) fn resume(&mut self, habits: &Habits, present: &Schedule) {
        self.standing.resume(present, &mut self.examiners[0].0.scratch);
        self.taste = self.basis.taste(habits, 0);
        self.taste.keys = present.starts.iter().map(|start| -(*start as f64)).collect();
    }

    /// The best plan, and the habits that led to it.
    pub(super) fn finish(self) -> (Schedule, Habits) {
        let Taste { at_once, shares, evicts, late, hasty, haul, owned, by_kind, .. } = self.taste;
        (self.standing.best, Habits { start: Start { at_once, shares, evicts, late, hasty, haul, owned }, by_kind })
    }

    /// Makes `tries` tries.
    pub(super) fn improve(&mut self, tries: u64, goes_on: impl Fn(u64) -> bool) {
        let on_kinds = match self.basis.is_uniform {
            true => 0.0,
            false if self.standing.moves_tasks() => ON_KINDS_BESIDE_MOVES,
            false => ON_KINDS,
        };
        let on_kinds = |number: u64| (number as f64) < on_kinds * tries as f64;
        let (most, mut number) = (self.most(), 0);
        while number < tries && goes_on(self.length()) {
            let (basis, standing, taste) = (&self.basis, &self.standing, &self.taste);
            let (mut variation, mut next) = (Variation { basis, standing, taste, dice: self.dice }, number);
            let make = |examiner: &mut Examiner| {
                let is_next = next < tries;
                next += 1;
                is_next.then(|| {
                    let attempt = variation.next(on_kinds(next - 1), &mut examiner.scratch);
                    (attempt, variation.dice)
                })
            };
            let examined = round(standing, &mut self.examiners, most, Later::Stop, make);
            let dice: Vec<Dice> = examined.iter().map(|examined| examined.of).collect();
            let settled = self.settle(examined, Later::Stop);
            self.dice = dice[settled - 1];
            number += settled as u64;
        }
    }
}

//! The best plan so far, and what others are worth beside it.

use super::examiner::Finding;
use crate::resource_mapping::plan::dice::Dice;
use crate::resource_mapping::plan::outlook::{NEVER, Outlook};
use crate::resource_mapping::plan::samples::{Move, Samples};
use crate::resource_mapping::plan::schedule::{Schedule, Scratch, Taste};
use crate::resource_mapping::plan::tried::{Fingerprint, Followed, Outcome, Tried};

/// How much longer than the best plan another one may be by the cheap prediction, for the closer one to be asked.
const PROMISING: f64 = 1.03;

/// The same where not all data fits into a memory: the cheap prediction knows of no evictions.
const PROMISING_WITH_EVICTIONS: f64 = 1.1;

/// How much longer than the best plan another one may be, as a share, where plans are compared by draws too.
const ROOM: f64 = 0.04;

/// Preferences that are tried.
pub(super) struct Attempt {
    pub(super) taste: Taste,
    /// The lane of each task, if they do not choose: the preferences change no more than the order then.
    pub(super) lanes: Option<Vec<usize>>,
    /// If single tasks are to [move](super::climb), the dice that say which.
    pub(super) moves: Option<Dice>,
}

/// How the plan of an attempt is made.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Kind {
    /// Tasks choose before the plan is followed, or lanes do.
    Before,
    /// Tasks choose when they become ready, and transfers share links at each moment, or follow each other.
    AtOnce { shares: bool },
}

impl Attempt {
    /// By these preferences.
    pub(super) fn by(taste: Taste) -> Attempt {
        Attempt { taste, lanes: None, moves: None }
    }

    /// With these moves, if lanes are given.
    pub(super) fn make(&mut self, moves: &[Move]) {
        let Some(lanes) = &mut self.lanes else { return };
        for moved in moves {
            lanes[moved.task] = moved.lane;
            self.taste.keys[moved.task] += moved.earlier;
        }
    }

    pub(super) fn kind(&self) -> Kind {
        match self.taste.at_once && self.lanes.is_none() {
            true => Kind::AtOnce { shares: self.taste.shares },
            false => Kind::Before,
        }
    }
}

/// What an attempt is worth.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Verdict {
    Worse,
    /// It is the best plan, made by other preferences.
    Same,
    /// No worse than the best plan, which it takes the place of.
    Better,
    /// Too little was found out about it.
    Unknown,
}

/// See the [module](self).
pub(super) struct Standing<'a> {
    pub(super) outlook: &'a Outlook,
    pub(super) best: Schedule,
    pub(super) samples: Samples,
    pub(super) tried: Tried,
    /// The tasks that have a lane in a plan, and may have another one.
    pub(super) open: Vec<usize>,
    /// How many best plans there have been.
    pub(super) number: u64,
    /// What the best plan is worth, by the draws.
    score: u64,
    /// The fingerprint that the best plan had when it was predicted; `None` if it was not.
    best_print: Option<Fingerprint>,
    /// Nanoseconds that the best plan takes by the cheap prediction.
    expected: f64,
}

impl<'a> Standing<'a> {
    pub(super) fn new(outlook: &'a Outlook) -> Standing<'a> {
        Standing {
            outlook,
            best: Schedule { end: u64::MAX, ..Schedule::default() },
            samples: Samples::default(),
            tried: Tried::default(),
            open: (0..outlook.len()).filter(|task| outlook.is_open(*task) && outlook.works[*task]).collect(),
            number: 0,
            score: u64::MAX,
            best_print: None,
            expected: f64::INFINITY,
        }
    }

    /// Whether attempts move single tasks, rather than change preferences for classes of lanes. With one class these
    /// mean nothing. Where plans are compared by draws, one is there already, and what is left to gain is in single
    /// tasks; the mean of draws tells small differences apart, which the most likely lengths alone do not.
    pub(super) fn moves_tasks(&self) -> bool {
        !self.samples.is_empty() || (self.outlook.classes == 1 && self.outlook.memories > 1)
    }

    /// Whether there is a best plan.
    pub(super) fn has_begun(&self) -> bool {
        self.best.end != u64::MAX
    }

    /// The length of the best plan so far.
    pub(super) fn length(&self) -> u64 {
        self.best.end.saturating_sub(self.outlook.now)
    }

    /// When a plan ends at the latest by the cheap prediction, if it is to be compared with the best: before the closer
    /// one has the last word, where there is one.
    pub(super) fn most(&self, kind: Kind) -> u64 {
        let shares = kind == (Kind::AtOnce { shares: true }) && self.outlook.has_links();
        let expected = if shares { self.length() as f64 } else { self.expected };
        let ratio = if self.outlook.replicas.are_limited() { PROMISING_WITH_EVICTIONS } else { PROMISING };
        let promising = (self.outlook.now as f64 + expected * ratio) as u64;
        let most = if self.outlook.has_links() {
            promising
        } else if self.samples.is_empty() {
            self.best.end
        } else {
            NEVER
        };
        // Plans that are made by their execution are mostly given up while they are made.
        if kind == Kind::Before { most } else { most.min(promising) }
    }

    /// When a plan ends at the latest by the last word.
    pub(super) fn latest(&self) -> u64 {
        let room = if self.samples.is_empty() { 0.0 } else { ROOM * self.length() as f64 };
        self.best.end.saturating_add(room as u64).min(NEVER - 1)
    }

    /// What an attempt is worth, by what was found out: never [unknown](Verdict::Unknown) if that was by this standing.
    pub(super) fn judge(&self, kind: Kind, finding: &Finding) -> Verdict {
        let most = self.most(kind);
        let print = match finding.followed {
            Followed::Late(until) if most <= until => return Verdict::Worse,
            Followed::Late(_) => return Verdict::Unknown,
            Followed::Ends(end, _) if end > most => return Verdict::Worse,
            Followed::Ends(_, print) => print,
        };
        if self.best_print == Some(print) {
            return Verdict::Same;
        }
        let latest = self.latest();
        match finding.rated.or_else(|| self.tried.outcome(print)) {
            Some(Outcome::Late(until)) if latest <= until => Verdict::Worse,
            Some(Outcome::Score { end, .. }) if self.outlook.has_links() && end > latest => Verdict::Worse,
            Some(Outcome::Score { score, .. }) if score > self.score => Verdict::Worse,
            Some(Outcome::Score { .. }) if finding.rated.is_some() => Verdict::Better,
            _ => Verdict::Unknown,
        }
    }

    /// Takes note of what was found out, whether or not it is of use at once.
    pub(super) fn note(&mut self, finding: &Finding) {
        if let Some(chosen) = finding.chosen {
            self.tried.note_followed(chosen, finding.followed);
        }
        if let (Some(outcome), Followed::Ends(_, print)) = (finding.rated, finding.followed) {
            self.tried.note(print, outcome);
        }
    }

    /// Goes on from an attempt that is [no worse](Verdict::Better) than the best plan: that is `plan`, if it is another.
    pub(super) fn accept(&mut self, finding: &Finding, plan: Option<&mut Schedule>) {
        let Followed::Ends(end, print) = finding.followed else { return };
        if let (Some(plan), Some(Outcome::Score { score, .. })) = (plan, finding.rated) {
            std::mem::swap(&mut self.best, plan);
            (self.score, self.best_print) = (score, Some(print));
            self.number += 1;
        }
        self.expected = end.saturating_sub(self.outlook.now) as f64;
    }

    /// Begins with a plan that is being followed.
    pub(super) fn resume(&mut self, present: &Schedule, scratch: &mut Scratch) {
        self.best.follow(self.outlook, present, NEVER, scratch);
        self.expected = self.length() as f64;
        // What became of `present` is not what would become of that again, where its data comes earlier or later.
        if self.outlook.has_links() {
            self.best.realise(self.outlook, present, NEVER - 1, scratch);
        } else {
            self.best_print = Some(Fingerprint::of(&self.best));
        }
        self.score = self.samples.score(self.outlook, &self.best, scratch);
        self.number += 1;
    }
}

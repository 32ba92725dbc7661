//! Makes plans by preferences, and finds out what they are worth.

use super::standing::{Attempt, Kind, Standing, Verdict};
use crate::resource_mapping::plan::outlook::{NEVER, Outlook};
use crate::resource_mapping::plan::samples::Preview;
use crate::resource_mapping::plan::schedule::{Schedule, Scratch};
use crate::resource_mapping::plan::tried::{Fingerprint, Followed, Outcome};

/// What was found out about an attempt. All of it holds beside any best plan.
#[derive(Clone, Copy, Debug)]
pub(super) struct Finding {
    /// What tasks chose, where they chose before the plan was followed.
    pub(super) chosen: Option<Fingerprint>,
    pub(super) followed: Followed,
    /// What the plan is worth by the last word, if it was worth the work; the [examiner](Examiner) has that plan.
    pub(super) rated: Option<Outcome>,
}

/// See the [module](self). Each thread of a search has one.
#[derive(Default)]
pub(super) struct Examiner {
    pub(super) scratch: Scratch,
    draft: Schedule,
    /// The plan of the last attempt.
    pub(super) trial: Schedule,
    /// What becomes of it.
    realised: Schedule,
    /// What becomes of the best plan when single tasks move.
    pub(super) preview: Preview,
}

impl Examiner {
    /// Finds out as much about an attempt as is necessary to judge it; `None` if it was [stopped](Scratch::stop).
    pub(super) fn examine(&mut self, standing: &Standing<'_>, attempt: &mut Attempt) -> Option<Finding> {
        if let Some(dice) = attempt.moves.take() {
            let moves = self.climb(standing, dice);
            attempt.make(&moves);
        }
        let attempt = &*attempt;
        let (outlook, kind) = (standing.outlook, attempt.kind());
        let most = standing.most(kind);
        let chosen = self.decide(standing, attempt, most);
        let known = chosen.and_then(|chosen| standing.tried.followed(chosen, most));
        let followed = known.unwrap_or_else(|| self.predict(outlook, chosen, most));
        let mut finding = Finding { chosen, followed, rated: None };
        if standing.judge(kind, &finding) == Verdict::Unknown {
            if known.is_some() {
                self.predict(outlook, chosen, most);
            }
            finding.rated = Some(self.rate(standing, chosen.is_some()));
        }
        (!self.scratch.stop.is_set()).then_some(finding)
    }

    /// Makes a plan by preferences: in `draft` where it is to be followed, and returns its fingerprint then, or else in
    /// `trial`, which may be given up after `most`.
    fn decide(&mut self, standing: &Standing<'_>, attempt: &Attempt, most: u64) -> Option<Fingerprint> {
        let (outlook, Attempt { taste, lanes, .. }) = (standing.outlook, attempt);
        if attempt.kind() != Kind::Before {
            self.trial.dispatch(outlook, taste, most, &mut self.scratch);
            None
        } else if taste.late && lanes.is_none() {
            self.trial.list(outlook, taste, &mut self.scratch);
            None
        } else {
            self.draft.choose(outlook, taste, lanes.as_deref(), &mut self.scratch);
            Some(Fingerprint::of(&self.draft))
        }
    }

    /// Makes the trial of what tasks have `chosen`, if they have, and tells what it is.
    fn predict(&mut self, outlook: &Outlook, chosen: Option<Fingerprint>, most: u64) -> Followed {
        if chosen.is_some() {
            self.trial.follow(outlook, &self.draft, most, &mut self.scratch);
        }
        match self.trial.end {
            NEVER => Followed::Late(most),
            // The [last word](Self::realise) depends on what tasks chose, not on what is predicted for that alone.
            end => match chosen.filter(|_| outlook.has_links()) {
                Some(chosen) => Followed::Ends(end, chosen.before_execution()),
                None => Followed::Ends(end, Fingerprint::of(&self.trial)),
            },
        }
    }

    /// What the trial is worth, if it does not end too late.
    fn rate(&mut self, standing: &Standing<'_>, chosen: bool) -> Outcome {
        let (outlook, latest) = (standing.outlook, standing.latest());
        if outlook.has_links() {
            self.realise(outlook, chosen, latest);
        }
        match self.trial.end {
            NEVER => Outcome::Late(latest),
            end => Outcome::Score { score: standing.samples.score(outlook, &self.trial, &mut self.scratch), end },
        }
    }

    /// Makes of the trial what becomes of it, or of the draft, if tasks have `chosen` and that ends earlier. The order
    /// of tasks, and when their data is fetched, follow from the times of a plan. Those of the cheap prediction are
    /// late where that finds links too busy; those of the draft know of no other transfers.
    fn realise(&mut self, outlook: &Outlook, chosen: bool, latest: u64) {
        let Examiner { scratch, draft, trial, realised, .. } = self;
        realised.realise(outlook, trial, latest, scratch);
        std::mem::swap(trial, realised);
        // Nothing ends before now, where this ends if no task takes any time.
        if chosen && trial.end > outlook.now {
            realised.realise(outlook, draft, latest.min(trial.end - 1), scratch);
            if realised.end < trial.end {
                std::mem::swap(trial, realised);
            }
        }
    }
}

//! Makes a trial with a flaw as small as possible.

use super::journal::Journal;
use super::property::Property;
use super::trial::{Flaw, Settles, Trial};
use super::{Examined, Finding};
use std::collections::BTreeSet;

/// Number of executions that may be spent on one flaw.
const TRIES: usize = 2000;

/// The smallest trial that was found with the same property.
pub(super) fn shrunk(examined: &Examined<'_>, journal: &Journal<'_>, trial: Trial, flaw: Flaw) -> Finding {
    let others: BTreeSet<Property> = Property::ALL.into_iter().filter(|other| *other != flaw.0).collect();
    // What was done at the end to empty the component becomes part of the sequence, so that it can be left out.
    let whole = Trial { steps: journal.steps.borrow().clone(), settles: Settles::Not, ..trial.clone() };
    let fails = |trial: &Trial| trial.run(examined, journal, &others).is_some();
    let best = smallest(if fails(&whole) { whole } else { trial }, fails);
    // Once more, for the words.
    let message = best.run(examined, journal, &others).map_or(flaw.1, |(_, message)| message);
    let calls = journal.lines.borrow().iter().filter(|line| *line != "build" && *line != "drop").cloned().collect();
    Finding { property: flaw.0, message, setting: best.setting_words(), calls }
}

/// The smallest trial that was found to fail as well.
pub(super) fn smallest(mut best: Trial, fails: impl Fn(&Trial) -> bool) -> Trial {
    let mut left = TRIES;
    let mut fails = |trial: &Trial| {
        left = left.saturating_sub(1);
        left > 0 && fails(trial)
    };
    let mut changed = true;
    while changed {
        changed = shorter(&mut best, &mut fails);
        changed |= simpler(&mut best, &mut fails);
    }
    best
}

/// Leaves out steps, many at a time first.
fn shorter(best: &mut Trial, fails: &mut impl FnMut(&Trial) -> bool) -> bool {
    let mut changed = false;
    let mut size = best.steps.len().max(1);
    while size > 0 {
        let mut from = 0;
        while from < best.steps.len() {
            let mut trial = best.clone();
            trial.steps.drain(from..(from + size).min(trial.steps.len()));
            if fails(&trial) {
                *best = trial;
                changed = true;
            } else {
                from += size;
            }
        }
        size /= 2;
    }
    changed
}

fn simpler(best: &mut Trial, fails: &mut impl FnMut(&Trial) -> bool) -> bool {
    let mut changed = false;
    let mut settle_for = |best: &mut Trial, candidates: Vec<Trial>| {
        let found = candidates.into_iter().find(|trial| fails(trial));
        let is_found = found.is_some();
        if let Some(found) = found {
            *best = found;
        }
        is_found
    };
    if best.settles != Settles::Not {
        let trial = Trial { settles: Settles::Not, ..best.clone() };
        changed |= settle_for(best, vec![trial]);
    }
    for index in (0..best.params.len()).rev() {
        let mut trial = best.clone();
        trial.params.remove(index);
        changed |= settle_for(best, vec![trial]);
    }
    loop {
        let candidates = best.setting.simpler().into_iter().map(|setting| Trial { setting, ..best.clone() }).collect();
        if !settle_for(best, candidates) {
            break;
        }
        changed = true;
    }
    for index in 0..best.steps.len() {
        let candidates = best.steps[index].simpler().into_iter().map(|step| {
            let mut trial = best.clone();
            trial.steps[index] = step;
            trial
        });
        let candidates = candidates.collect();
        changed |= settle_for(best, candidates);
    }
    changed
}

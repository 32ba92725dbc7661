//! The steps of a submission.

use super::{TaskBuilder, TaskRef};
use crate::context::{ContextCore, SchedContext, current};
use crate::core::{Core, TaskPlace};
use crate::data::access::AccessList;
use crate::data::{DataHeader, InOrder, PadId};
use crate::task::codelet::CodeletFacts;
use crate::task::entry::Entry;
use crate::task::failure::SubmitError;
use crate::task::job::put_job;
use crate::task::record::RareFields;
use crate::worker::{executed_here, this_worker};
use sched_core::{ArchSet, TaskId, WorkerSet};
use sched_graph::{AccessMode, ContextId};
use sched_sync::in_flight::Refused;
use sched_text::hash::FNV_1A_EMPTY;
use sched_trace::Event;
use smallvec::SmallVec;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

/// Footprint of a task without data.
const NO_DATA: u64 = FNV_1A_EMPTY;

/// The places that a task is restricted to, on the machine of its runtime.
#[derive(Clone)]
pub(crate) struct Restriction {
    pub(crate) archs: ArchSet,
    pub(crate) workers: Option<WorkerSet>,
}

/// An access of a task to data.
pub(crate) type Accessed<'h> = (&'h Arc<DataHeader>, AccessMode);

// Functions, not closures where they are used: those would be compiled, with what they are passed to, for each type of
// codelet.

#[inline]
fn id_of(access: &Accessed<'_>) -> u64 {
    access.0.id
}

#[inline]
fn has_same_id(one: &mut Accessed<'_>, other: &mut Accessed<'_>) -> bool {
    one.0.id == other.0.id
}

/// Whether these are at most [`FEW`], of different data.
#[inline]
fn are_few_and_distinct(accesses: &[Accessed<'_>]) -> bool {
    match accesses {
        [] | [_] => true,
        [a, b] => id_of(a) != id_of(b),
        [a, b, c] => id_of(a) != id_of(b) && id_of(a) != id_of(c) && id_of(b) != id_of(c),
        more => more.len() <= FEW && are_distinct(more),
    }
}

/// Whether these are of different data.
// Out of line: a task with up to three data is not longer for it.
#[inline(never)]
fn are_distinct(accesses: &[Accessed<'_>]) -> bool {
    // Data of one program have numbers in a row: mostly these differ in their last digits.
    let digits = accesses.iter().fold(0_u64, |digits, access| digits | 1 << (id_of(access) % 64));
    if digits.count_ones() as usize == accesses.len() {
        return true;
    }
    let mut before = [0; FEW];
    accesses.iter().enumerate().all(|(at, access)| {
        let id = id_of(access);
        let is_new = !before[..at].contains(&id);
        before[at] = id;
        is_new
    })
}

#[inline]
fn writes_twice(pair: &[Accessed<'_>]) -> bool {
    pair[0].0.id == pair[1].0.id && (pair[0].1.writes() || pair[1].1.writes())
}

/// The accesses of a task, each datum once. In the order of their ids if some are special or commute, or there are many.
pub(super) type Accesses<'h> = SmallVec<[Accessed<'h>; FEW]>;

/// Number of data for which nothing is allocated, and which are compared with each other instead of sorted.
const FEW: usize = 8;

/// What the accesses of a task say of it.
pub(super) struct Seen {
    pub(super) footprint: u64,
    /// Whether there are parts of data, or lent data.
    pub(super) has_special: bool,
    /// Whether some of the data commutes.
    pub(super) commutes: bool,
}

impl Core {
    /// Checks that a codelet and the tasks to wait for belong to this runtime, and that it has a worker for the
    /// codelet.
    #[inline(always)]
    pub(super) fn check_origin(&self, facts: &CodeletFacts, after: &[TaskRef]) -> Result<(), SubmitError> {
        if facts.runtime != self.id {
            return Err(SubmitError::Foreign { codelet: facts.name.clone(), what: "itself" });
        }
        if !facts.archs.intersects(self.archs) {
            return Err(facts.no_worker());
        }
        if after.iter().any(|task| !task.is_of(self.id)) {
            return Err(SubmitError::ForeignTask { codelet: facts.name.clone() });
        }
        Ok(())
    }

    /// Checks the accesses of a task, and leaves each datum once. `model` gives the footprint for the codelet's model, if
    /// it has one; it is passed the accesses in the codelet's order.
    #[inline(always)]
    pub(super) fn check_accesses(
        &self,
        facts: &CodeletFacts,
        accesses: &mut Accesses<'_>,
        model: impl FnOnce(&[Accessed<'_>]) -> Option<u64>,
    ) -> Result<Seen, SubmitError> {
        let (mut has_special, mut commutes) = (false, false);
        let is_plain = |(header, mode): &Accessed<'_>| header.is_plain_of(self.id) && *mode != AccessMode::Commute;
        if !accesses.iter().all(is_plain) {
            has_special = self.check_special(&facts.name, accesses)?;
            commutes = accesses.iter().any(|(_, mode)| *mode == AccessMode::Commute);
        }
        let hash = |hash: u64, header: &DataHeader| (hash ^ header.bytes).wrapping_mul(0x0100_0000_01b3);
        let plain =
            |accesses: &[Accessed<'_>]| accesses.iter().fold(NO_DATA, |so_far, (header, _)| hash(so_far, header));
        // Before the order changes: it is that of the codelet.
        let footprint = model(accesses).unwrap_or_else(|| plain(accesses));
        let is_in_order = |accesses: &[Accessed<'_>]| accesses.windows(2).all(|pair| id_of(&pair[0]) < id_of(&pair[1]));
        // Mostly each datum is named once, and few are: that is all there is to see then.
        let stays = !has_special && !commutes && are_few_and_distinct(accesses);
        if !stays && !is_in_order(accesses) {
            accesses.sort_unstable_by_key(id_of);
            if !is_in_order(accesses) {
                if accesses.windows(2).any(writes_twice) {
                    return Err(SubmitError::Aliased { codelet: facts.name.clone() });
                }
                accesses.dedup_by(has_same_id);
            }
        }
        Ok(Seen { footprint, has_special, commutes })
    }

    /// The data that the task takes turns at, which it commutes with others on.
    #[cold]
    pub(super) fn note_turns(&self, accesses: &[Accessed<'_>], rare: &mut Option<Box<RareFields>>) {
        let commuting = accesses.iter().filter(|(_, mode)| *mode == AccessMode::Commute);
        rare.get_or_insert_default().turns = commuting.map(|(header, _)| Arc::clone(header)).collect();
        self.outcomes.note_commute();
    }
}

impl<'a, L: AccessList, P: Send + 'static> TaskBuilder<'a, L, P> {
    /// Checks that the scratchpads are the runtime's own, and that each is named once.
    // Out of line, so that other submissions are not longer for it.
    #[inline(never)]
    fn check_pads(&self) -> Result<(), SubmitError> {
        let codelet = || self.codelet.inner.facts.name.clone();
        let mut pads: SmallVec<[PadId; 8]> = SmallVec::new();
        L::visit_pads(&self.data, &mut |pad| pads.push(pad));
        if pads.iter().any(|pad| pad.runtime != self.submitter.core.id) {
            return Err(SubmitError::Foreign { codelet: codelet(), what: "a scratchpad" });
        }
        match (1..pads.len()).any(|at| pads[..at].contains(&pads[at])) {
            true => Err(SubmitError::Aliased { codelet: codelet() }),
            false => Ok(()),
        }
    }

    /// Submits the task, without waiting for it.
    ///
    /// # Errors
    /// If the task could never run; see [`SubmitError`].
    // Longer than most functions: each call out of it costs a submission some 17 instructions, to save registers, and
    // more where the builder is passed on.
    #[inline(always)]
    pub fn submit(self) -> Result<TaskRef, SubmitError> {
        if L::HAS_SCRATCH {
            self.check_pads()?;
        }
        if self.codelet.inner.facts.is_special || self.rare.is_some() {
            // Not returned at once: the result of every task would go through memory.
            let task = self.submit_special()?;
            return Ok(task);
        }
        let core = &*self.submitter.core;
        let facts = &self.codelet.inner.facts;
        let after: &[TaskRef] = &self.after;
        core.check_origin(facts, after)?;
        let mut accesses = Accesses::new();
        let mut seen = Seen { footprint: NO_DATA, has_special: false, commutes: false };
        if L::IS_EMPTY {
            if let Some(modelled) = self.codelet.inner.footprint(&self.params, &[]) {
                seen.footprint = modelled;
            }
        } else {
            L::visit_passed(&self.data, &mut |header, mode| accesses.push((header, mode)));
            let model = |accesses: &[Accessed<'_>]| self.codelet.inner.footprint(&self.params, accesses);
            seen = core.check_accesses(facts, &mut accesses, model)?;
        }
        // From here on the context counts the task.
        let (context, priority) = admit(core, facts, self.context, self.priority, false)?;
        let mut rare = None;
        if seen.commutes {
            core.note_turns(&accesses, &mut rare);
        }

        let mut right = core.sole.enter();
        let Some(sequence) = core.number_tasks(1, context, &right) else { return Err(facts.ended()) };
        let place = core.take_slot(facts, &mut right);
        // Not made before the branch that uses it: it would go through memory.
        let entry = || Entry {
            place,
            sequence,
            context: context.number,
            priority,
            archs: facts.archs,
            codelet: facts.number,
            width: facts.width,
            sched_data: self.sched_data,
            footprint: seen.footprint,
            after,
            accesses: if L::IS_EMPTY { &[] } else { &accesses },
            standing: None,
        };
        let (key, links) = match seen.has_special {
            true => core.enter_with_parts(entry(), &mut right),
            false => core.enter(entry(), &mut right),
        };
        drop(right);
        if context.ahead.is_attended() {
            core.announce_with(facts, None, after, context, place, &mut |visitor| {
                L::visit_passed(&self.data, visitor);
            });
        }
        drop(accesses);
        let record = place.record;
        {
            let mut body = record.body.lock();
            put_job(&mut body.job, self.codelet, || (L::lend(self.data, &InOrder(())), self.params));
            if let Some(rare) = rare {
                body.add_rare(record, rare);
            }
        }
        if record.submitted(links) {
            core.make_ready(context, place, this_worker(core));
        }
        Ok(TaskRef::new(key, core.id))
    }
}

impl Core {
    /// Announces the submission of a task to those who follow submissions.
    #[cold]
    pub(crate) fn announce(&self, context: &ContextCore, place: TaskPlace, sequence: u64) {
        self.backend.record(this_worker(self), || Event::Submitted { task: TaskId::new(sequence) });
        context.ahead.note(place, sequence);
    }
}

/// Context of a task, which counts it from now on, and its priority there: those that the program has `named` and
/// `asked` for, or else the current context and its default.
#[inline(always)]
pub(in crate::task) fn admit<'a>(
    core: &'a Core,
    codelet: &CodeletFacts,
    named: Option<&'a SchedContext>,
    asked: Option<i32>,
    is_nested: bool,
) -> Result<(&'a ContextCore, i32), SubmitError> {
    let (number, serial) = match named {
        Some(context) if context.submitter.core.id != core.id => {
            return Err(SubmitError::Foreign { codelet: codelet.name.clone(), what: "a context" });
        }
        Some(context) => (context.context.number, Some(context.serial)),
        None => current(core),
    };
    let context = core.roster.get(number);
    let (mut least, mut greatest) = (context.least.load(Relaxed), context.greatest.load(Relaxed));
    if least > greatest {
        (least, greatest) = core.look_closer(context, &codelet.name, is_nested)?.into_inner();
    }
    let priority = asked.unwrap_or_else(|| 0.max(least).min(greatest));
    if asked.is_some() && !(least..=greatest).contains(&priority) {
        return Err(SubmitError::Priority {
            codelet: codelet.name.clone(),
            context: context.name(),
            priority,
            min: least,
            max: greatest,
        });
    }
    if number != ContextId::DEFAULT {
        // A task of the context itself may still submit to it while it is being deleted.
        let inside = executed_here(core) == Some(number);
        if let Err(Refused { tell }) = context.in_flight.reserve(serial.filter(|_| !inside)) {
            if tell {
                core.outcomes.tell();
            }
            let context = named.map_or_else(|| context.name(), |context| context.name().to_owned());
            return Err(SubmitError::Deleted { codelet: codelet.name.clone(), context });
        }
    }
    Ok((context, priority))
}

#[cfg(test)]
mod tests {
    use crate::{Read, Runtime, Write};
    use sched_tree::plugin::Registry;
    use std::sync::Arc;
    use std::sync::atomic::Ordering::Relaxed;

    /// Components tell kinds of tasks from each other by their footprints.
    #[test]
    fn the_footprint_of_a_task_does_not_depend_on_when_its_data_was_registered() {
        let components = Arc::new(Registry::compiled_in());
        let runtime = Runtime::builder().registry(components).workers(1).bind(false).build().expect("it starts");
        let widen = runtime.codelet::<(Read<u8>, Write<u64>), ()>("widen");
        let widen = widen.cpu("widen", |_, (narrow, wide)| *wide = u64::from(*narrow)).build();
        let narrow = runtime.codelet::<(Read<u64>, Write<u8>), ()>("narrow");
        let narrow = narrow.cpu("narrow", |_, (wide, narrow)| *narrow = *wide as u8).build();
        let footprint = |task: crate::TaskRef| {
            let core = &runtime.core;
            core.place(task.key().slot).slot.head().footprint.load(Relaxed)
        };
        let (small, large) = (runtime.register(1_u8), runtime.register(0_u64));
        let later = runtime.register(2_u8);
        let one = footprint(runtime.task(&widen, (&small, &large)).submit().expect("it can run"));
        let other = footprint(runtime.task(&widen, (&later, &large)).submit().expect("it can run"));
        assert_eq!(one, other);
        let reverse = footprint(runtime.task(&narrow, (&large, &later)).submit().expect("it can run"));
        assert_ne!(one, reverse, "the sizes come in another order");
        runtime.wait_all().expect("all tasks end");
        assert_eq!((*runtime.read(&large).expect("it is there"), *runtime.read(&later).expect("it is there")), (2, 2));
    }
}

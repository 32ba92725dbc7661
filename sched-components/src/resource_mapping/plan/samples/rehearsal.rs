//! A plan with the lengths of all draws, side by side.

use super::course::Course;
use super::{DRAWS, Samples, Times};
use crate::resource_mapping::plan::outlook::{NEVER, Outlook};
use crate::resource_mapping::plan::schedule::{Schedule, Scratch};

/// Storage for rehearsals, kept for reuse.
#[derive(Default, Debug)]
pub(in crate::resource_mapping::plan) struct Rehearsal {
    course: Course,
    /// By task, and by lane the end of its last one.
    pub(super) ends: Vec<Times>,
    free: Vec<Times>,
}

impl Samples {
    /// What a plan is worth: nanoseconds until it ends, by the most likely lengths and all draws together. Where
    /// transfers [share links](Outlook::has_links) and all data fits, it must be what [became](Schedule::realise) of a
    /// plan.
    pub(in crate::resource_mapping::plan) fn score(
        &self,
        outlook: &Outlook,
        plan: &Schedule,
        scratch: &mut Scratch,
    ) -> u64 {
        let likely = plan.end.saturating_sub(outlook.now);
        if self.is_empty() {
            return likely;
        }
        let ends = with_executed(outlook, plan, scratch, |executed, scratch| self.rehearse(outlook, executed, scratch));
        // Those of an execution that was stopped may be anything, and are thrown away.
        ends.iter().fold(likely, |sum, end| sum.saturating_add(*end as u64))
    }

    /// When all tasks are done in each draw, counted from the outlook's now, if they were `executed` so.
    fn rehearse(&self, outlook: &Outlook, executed: &Schedule, scratch: &mut Scratch) -> Times {
        let mut course = std::mem::take(&mut scratch.rehearsal.course);
        course.lay(self, outlook, executed);
        let last = self.follow(outlook, &course, &mut scratch.rehearsal);
        scratch.rehearsal.course = course;
        last
    }

    /// When all tasks are done in each draw, counted from the outlook's now, if they follow this course.
    pub(super) fn follow(&self, outlook: &Outlook, course: &Course, storage: &mut Rehearsal) -> Times {
        let Rehearsal { ends, free, .. } = storage;
        ends.resize(outlook.len(), [0.0; DRAWS]);
        free.clear();
        free.extend(outlook.lanes.iter().map(|lane| [lane.free.saturating_sub(outlook.now) as f32; DRAWS]));
        let mut last = [0.0; DRAWS];
        for (end, (task, ..)) in self.sent.iter().zip(&outlook.sent) {
            ends[*task] = *end;
            advance(&mut last, end);
        }
        for task in course.order.iter().copied() {
            let mut at = [0.0; DRAWS];
            for before in self.before(task) {
                advance(&mut at, &ends[before]);
            }
            if outlook.works[task] {
                let lane = course.lanes[task];
                let (fetched, comes) = (course.fetched[task], course.comes[task]);
                let lengths = self.lengths(outlook, task, lane);
                for ((at, free), length) in at.iter_mut().zip(&mut free[lane]).zip(lengths) {
                    *at = larger(larger(*at, fetched) + comes, *free) + length;
                    *free = *at;
                }
            }
            advance(&mut last, &at);
            ends[task] = at;
        }
        last
    }
}

/// Does something with what becomes of a plan: the plan itself where it [is that](Samples::score) already.
pub(super) fn with_executed<R>(
    outlook: &Outlook,
    plan: &Schedule,
    scratch: &mut Scratch,
    act: impl FnOnce(&Schedule, &mut Scratch) -> R,
) -> R {
    if outlook.has_links() && !outlook.replicas.are_limited() {
        return act(plan, scratch);
    }
    let mut followed = std::mem::take(&mut scratch.followed);
    followed.follow(outlook, plan, NEVER, scratch);
    let result = act(&followed, scratch);
    scratch.followed = followed;
    result
}

/// No time is NaN, which [`f32::max`] looks for.
pub(super) fn larger(a: f32, b: f32) -> f32 {
    if a > b { a } else { b }
}

/// Each time moves on to the other one, if that is later.
pub(super) fn advance(times: &mut Times, others: &Times) {
    times.iter_mut().zip(others).for_each(|(time, other)| *time = larger(*time, *other));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::resource_mapping::plan::dice::Dice;
    use crate::resource_mapping::plan::outlook::tests::limits::{accesses, devices, uses};
    use crate::resource_mapping::plan::outlook::tests::{NOW, before, graph, in_turn};
    use proptest::prelude::*;

    proptest! {
        /// Without transfers, each draw ends when an execution would, event by event, in which tasks take so long.
        #[test]
        fn a_draw_ends_when_an_execution_with_its_lengths_does(
            lengths in prop::collection::vec(prop::collection::vec(1_000_000..20_000_000_u64, 4), 1..40),
            idle in prop::collection::vec(prop::bool::weighted(0.1), 40),
            follows in prop::collection::vec(any::<[prop::sample::Index; 2]>(), 40),
            lanes in prop::collection::vec(0..4_usize, 40),
            free in prop::collection::vec(0..30_000_000_u64, 4),
            sent in prop::option::of(1_000_000..20_000_000_u64),
            lead in prop_oneof![Just(0), 1_000_000..50_000_000_u64],
            seed in any::<u64>(),
        ) {
            let mut lengths = lengths;
            lengths.iter_mut().zip(idle).filter(|(_, idle)| *idle).for_each(|(lengths, _)| lengths.fill(0));
            let (count, before) = (lengths.len(), before(&follows));
            let mut outlook = graph(&lengths, &before, &free);
            outlook.lead = lead;
            if let Some(left) = sent {
                outlook.send(0, lanes[0], NOW + left);
            }
            let samples = Samples::draw(&outlook, 0.3, &mut Dice(seed));
            let (mut plan, mut scratch) = (Schedule::default(), Scratch::default());
            plan.follow(&outlook, &in_turn(&lanes[..count]), NEVER, &mut scratch);
            let score = samples.score(&outlook, &plan, &mut scratch);
            let mut expected = plan.end - NOW;
            for draw in 0..DRAWS {
                let mut drawn = outlook.clone();
                for (lengths, factors) in drawn.lengths.chunks_exact_mut(4).zip(&samples.factors) {
                    lengths.iter_mut().for_each(|length| *length = (*length as f64 * f64::from(factors[draw])) as u64);
                }
                for (sent, ends) in drawn.sent.iter_mut().zip(&samples.sent) {
                    sent.2 = NOW + ends[draw] as u64;
                }
                let mut executed = Schedule::default();
                executed.follow(&drawn, &plan, NEVER, &mut scratch);
                expected += executed.end - NOW;
            }
            prop_assert!(score.abs_diff(expected) as f64 <= 1e-5 * expected as f64, "{} for {}", score, expected);
        }

        /// Where nothing deviates, each draw ends when the plan does, whatever its data waits for: links, memory, room.
        #[test]
        fn a_draw_without_deviations_ends_when_the_plan_does(
            accesses in accesses(40),
            follows in prop::collection::vec(any::<[prop::sample::Index; 2]>(), 40),
            lanes in prop::collection::vec(0..3_usize, 40),
            capacity in prop_oneof![Just(u64::MAX), 0..60_u64],
            length in 1..30_u64,
            allocation in 0..9_u64,
            lead in 0..40_u64,
        ) {
            let count = accesses.len();
            let mut outlook = devices(length, &before(&follows)[..count], &uses(&accesses), 6, capacity, allocation);
            outlook.lead = lead;
            let samples = Samples::draw(&outlook, 0.0, &mut Dice(1));
            let (mut plan, mut scratch) = (Schedule::default(), Scratch::default());
            plan.realise(&outlook, &in_turn(&lanes[..count]), NEVER - 1, &mut scratch);
            let score = samples.score(&outlook, &plan, &mut scratch);
            let mut predicted = Schedule::default();
            predicted.follow(&outlook, &plan, NEVER, &mut scratch);
            let each = if outlook.replicas.are_limited() { predicted.end } else { plan.end };
            prop_assert_eq!(score, plan.end - NOW + DRAWS as u64 * (each - NOW));
        }
    }
}

use super::*;
use crate::resource_mapping::plan::dice::Dice;
use crate::resource_mapping::plan::outlook::tests::limits::{accesses, devices, uses};
use crate::resource_mapping::plan::outlook::tests::{NOW, before, graph, in_turn};
use crate::resource_mapping::plan::outlook::{NEVER, Use};
use proptest::prelude::*;

/// Draws of deviating lengths, what becomes of tasks on these lanes by the most likely ones, and a look at that.
fn previewed(outlook: &Outlook, lanes: &[usize]) -> (Samples, Schedule, Preview) {
    let samples = Samples::draw(outlook, 0.3, &mut Dice(1));
    let (mut plan, mut scratch) = (Schedule::default(), Scratch::default());
    if outlook.has_links() {
        plan.realise(outlook, &in_turn(lanes), NEVER - 1, &mut scratch);
    } else {
        plan.follow(outlook, &in_turn(lanes), NEVER, &mut scratch);
    }
    let mut preview = Preview::default();
    assert!(preview.show(1, &samples, outlook, &plan, &mut scratch));
    (samples, plan, preview)
}

/// Makes random moves, and returns how many were made. Each that is made makes the plan better, by as much as a
/// rehearsal of all tasks says; the others leave everything as it was.
fn climb(outlook: &Outlook, samples: &Samples, preview: &mut Preview, before: &[Vec<usize>], seed: u64) -> usize {
    let open: Vec<usize> = (0..outlook.len()).filter(|task| outlook.works[*task]).collect();
    let mut dice = Dice(seed);
    let mut made = 0;
    for _ in 0..40 {
        let (worth, course) = (preview.worth, preview.course.clone());
        let moves = Move::draw(outlook, &open, preview.lanes(), 1000, &mut dice);
        let has_made = preview.make(samples, outlook, &moves);
        let rehearsed = sum(&samples.follow(outlook, &preview.course, &mut Rehearsal::default()));
        assert_eq!(rehearsed, preview.worth);
        if has_made {
            made += 1;
            assert!(preview.worth < worth, "{} after {worth}", preview.worth);
            assert!(moves.iter().all(|moved| preview.lanes()[moved.task] == moved.lane));
        } else {
            assert_eq!((preview.worth, &preview.course), (worth, &course));
        }
        let place = |task: usize| preview.course.order.iter().position(|other| *other == task);
        let sorted = |tasks: &[usize]| {
            let mut tasks = tasks.to_vec();
            tasks.sort_unstable();
            tasks
        };
        assert_eq!(sorted(&preview.course.order), sorted(&course.order));
        for task in 0..outlook.len() {
            assert!(before[task].iter().all(|before| place(*before) < place(task)), "{:?}", preview.course.order);
        }
    }
    made
}

proptest! {
    /// Where data takes no time, the plan with all moves is worth what was said, executed event by event.
    #[test]
    fn moves_that_are_made_make_the_plan_better(
        lengths in prop::collection::vec(prop::collection::vec(1_000_000..20_000_000_u64, 3), 2..30),
        idle in prop::collection::vec(prop::bool::weighted(0.1), 30),
        follows in prop::collection::vec(any::<[prop::sample::Index; 2]>(), 30),
        lanes in prop::collection::vec(0..3_usize, 30),
        free in prop::collection::vec(0..30_000_000_u64, 3),
        seed in any::<u64>(),
    ) {
        let mut lengths = lengths;
        lengths.iter_mut().zip(idle).filter(|(_, idle)| *idle).for_each(|(lengths, _)| lengths.fill(0));
        let (count, before) = (lengths.len(), before(&follows));
        let mut outlook = graph(&lengths, &before, &free);
        // Otherwise each task is fetched, and starts, no earlier than in the plan.
        outlook.lead = 1 << 40;
        let (samples, plan, mut preview) = previewed(&outlook, &lanes[..count]);
        let mut scratch = Scratch::default();
        let score = |plan: &Schedule, scratch: &mut Scratch| {
            (samples.score(&outlook, plan, scratch) - (plan.end - NOW)) as f64
        };
        let is_about = |score: f64, worth: f64| (score - worth).abs() <= 1e-5 * worth;
        let worth = preview.worth;
        prop_assert!(is_about(score(&plan, &mut scratch), worth));
        let made = climb(&outlook, &samples, &mut preview, &before, seed);
        let mut moved = in_turn(preview.lanes());
        for (place, task) in (NOW..).zip(&preview.course.order) {
            moved.starts[*task] = place;
        }
        let mut executed = Schedule::default();
        executed.follow(&outlook, &moved, NEVER, &mut scratch);
        // In draws, lanes keep to the order of the starts by the most likely lengths.
        let in_order = preview.course.order.is_sorted_by_key(|task| executed.starts[*task]);
        if in_order {
            prop_assert!(is_about(score(&executed, &mut scratch), preview.worth));
        }
        // Shown again, it is the plan as it was.
        prop_assert!(preview.show(1, &samples, &outlook, &plan, &mut scratch));
        prop_assert_eq!(preview.worth, worth);
        prop_assert_eq!(&preview.lanes()[..count], &lanes[..count]);
        prop_assert!(made == 0 || preview.worth > 0.0);
    }

    /// A move of one task to another lane at the same place is looked at closely if it helps.
    #[test]
    fn no_single_task_that_would_help_elsewhere_is_overlooked(
        lengths in prop::collection::vec(prop::collection::vec(1_000_000..20_000_000_u64, 3), 2..30),
        follows in prop::collection::vec(any::<[prop::sample::Index; 2]>(), 30),
        lanes in prop::collection::vec(0..3_usize, 30),
        task in any::<prop::sample::Index>(),
        lane in 0..3_usize,
    ) {
        let count = lengths.len();
        let outlook = graph(&lengths, &before(&follows), &[0; 3]);
        let (samples, _, mut preview) = previewed(&outlook, &lanes[..count]);
        let moves = [Move { task: task.index(count), lane, earlier: 0.0 }];
        let may_help = preview.may_help(&samples, &outlook, &moves);
        let worth = preview.worth;
        preview.change(&samples, &outlook, &moves);
        let changed = sum(&samples.follow(&outlook, &preview.course, &mut Rehearsal::default()));
        prop_assert!(may_help || changed > worth * (1.0 - 1e-4), "{} after {}", changed, worth);
    }

    /// With transfers too, only what makes the plan better changes it.
    #[test]
    fn moves_with_transfers_change_nothing_unless_they_help(
        accesses in accesses(30),
        follows in prop::collection::vec(any::<[prop::sample::Index; 2]>(), 30),
        lanes in prop::collection::vec(0..3_usize, 30),
        capacity in prop_oneof![Just(u64::MAX), 0..60_u64],
        lead in 0..40_u64,
        seed in any::<u64>(),
    ) {
        let count = accesses.len();
        let before = &before(&follows)[..count];
        let mut outlook = devices(20, before, &uses(&accesses), 6, capacity, 3);
        outlook.lead = lead;
        let (samples, _, mut preview) = previewed(&outlook, &lanes[..count]);
        climb(&outlook, &samples, &mut preview, before, seed);
    }
}

#[test]
fn what_was_stopped_before_it_was_shown_is_shown_anew() {
    let outlook =
        graph(&[vec![9_000_000; 2], vec![5_000_000; 2], vec![7_000_000; 2]], &[vec![], vec![0], vec![1]], &[0; 2]);
    let (samples, plan, preview) = previewed(&outlook, &[0, 1, 0]);
    let (mut stopped, mut scratch) = (Preview::default(), Scratch::default());
    scratch.stop.set();
    assert!(!stopped.show(1, &samples, &outlook, &plan, &mut scratch));
    scratch.stop.clear();
    assert!(stopped.show(1, &samples, &outlook, &plan, &mut scratch));
    assert_eq!((stopped.worth, &stopped.course), (preview.worth, &preview.course));
}

/// Three tasks, of which the last reads what the first writes on a device, and the second writes elsewhere.
fn chain() -> (Outlook, Samples, Preview) {
    let access = |data, reads, writes| Use { data, reads, writes };
    let uses = [vec![access(0, false, true)], vec![access(1, false, true)], vec![access(0, true, false)]];
    let mut outlook = devices(20, &[vec![], vec![], vec![0]], &uses, 2, u64::MAX, 0);
    outlook.lead = 1000;
    let (samples, _, preview) = previewed(&outlook, &[1, 2, 2]);
    (outlook, samples, preview)
}

#[test]
fn a_task_that_moves_to_its_data_does_not_wait_for_it() {
    let (outlook, samples, mut preview) = chain();
    assert_eq!(preview.course.comes[2], 10.0);
    assert!(preview.make(&samples, &outlook, &[Move { task: 2, lane: 1, earlier: 0.0 }]));
    assert_eq!(preview.course.comes, [0.0; 3]);
}

#[test]
fn data_that_is_written_elsewhere_comes_from_there() {
    let (outlook, samples, mut preview) = chain();
    // Where it is written, it is read.
    preview.change(&samples, &outlook, &[Move { task: 0, lane: 2, earlier: 0.0 }]);
    assert_eq!(preview.course.comes, [0.0; 3]);
    preview.restore();
    assert_eq!(preview.course.comes, [0.0, 0.0, 10.0]);
}

#[test]
fn a_task_that_delays_others_can_be_shifted_behind_them() {
    // The second is urgent: three long ones wait for it, on other lanes.
    let lengths = [vec![9_000_000; 2], vec![9_000_000; 2], vec![30_000_000; 2], vec![30_000_000; 2]];
    let mut outlook = graph(&lengths, &[vec![], vec![], vec![1], vec![2]], &[0; 2]);
    outlook.lead = 1 << 40;
    let (samples, _, mut preview) = previewed(&outlook, &[0, 0, 1, 1]);
    assert_eq!(preview.course.order, [0, 1, 2, 3]);
    assert!(preview.make(&samples, &outlook, &[Move { task: 1, lane: 0, earlier: 2e7 }]));
    assert_eq!(preview.course.order, [1, 0, 2, 3]);
    // It is on the longest path still, and can come no earlier.
    assert!(!preview.make(&samples, &outlook, &[Move { task: 1, lane: 0, earlier: 2e7 }]));
}

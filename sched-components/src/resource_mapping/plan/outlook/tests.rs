mod allocations;
pub(in crate::resource_mapping::plan) mod limits;

use super::super::coming::Coming;
use super::super::dice::Dice;
use super::super::samples::Samples;
use super::super::schedule::{Schedule, Scratch, Taste};
use super::super::search::{Habits, Orders, Search};
use super::*;
use proptest::prelude::*;

/// A lane for each of these classes of workers, each with a memory of its own, and one ready task, which takes so long
/// on each. The last memory owns what it writes.
fn one_task(lengths: &[u64]) -> Outlook {
    let lane = |number: usize| Lane {
        worker: WorkerId(number as u32),
        child: Child(number as u32),
        memory: number,
        class: number,
        free: 0,
    };
    let (count, owner) = (lengths.len(), lengths.len() - 1);
    let elsewhere = lengths[..owner].iter().min().copied().unwrap_or(NEVER);
    let mut outlook = Outlook {
        lanes: (0..count).map(lane).collect(),
        classes: count,
        memories: count,
        sequences: vec![0],
        rows: vec![0],
        lengths: lengths.to_vec(),
        kinds: vec![0],
        groups: vec![0],
        count_groups: 1,
        works: vec![true],
        owners: std::array::from_fn(|_| vec![Some((owner, elsewhere as f64 / lengths[owner] as f64))]),
        of_owner: (0..count).map(|lane| lane == owner).collect(),
        is_sent: vec![false],
        waits: vec![0],
        successors_of: vec![Range::default()],
        uses_of: vec![Range::default()],
        ..Outlook::default()
    };
    outlook.squads = Squads::new(&outlook);
    outlook
}

#[test]
fn a_task_keeps_its_lane_although_it_is_not_to_leave_the_owner_of_its_data_any_more() {
    // The first cannot execute it.
    let outlook = one_task(&[NEVER, 41, 10]);
    let taste = |owned| Taste { owned, ..in_order(&outlook, vec![0.0]) };
    let place = |most: Option<f64>, fixed: Option<&[usize]>| {
        let mut schedule = Schedule::default();
        let owned = most.map(|most| Owned { most, halvings: 0 });
        schedule.choose(&outlook, &taste(owned), fixed, &mut Scratch::default());
        (schedule.lanes[0], schedule.starts[0], schedule.ends[0])
    };
    assert_eq!(place(Some(4.0), None), (2, 0, 10));
    assert_eq!(place(Some(4.2), Some(&[1])), (1, 0, 41));
    assert_eq!(place(Some(4.0), Some(&[1])), (1, 0, 41));
}

#[test]
fn a_task_behind_any_number_of_others_that_take_no_time_is_about_to_be_pushed() {
    let count = 300_000;
    let mut outlook = Outlook {
        sequences: (0..count as u64).collect(),
        works: vec![false; count],
        is_sent: vec![false; count],
        waits: vec![1; count],
        successors: (1..count).collect(),
        successors_of: (0..count).map(|task| task..(task + 1).min(count - 1)).collect(),
        ..Outlook::default()
    };
    let last = count - 1;
    (outlook.works[0], outlook.works[last], outlook.waits[0]) = (true, true, 0);
    let mut starts = vec![0; count];
    starts[last] = 7;
    let mut coming = Coming::default();
    coming.plan(&outlook, &starts, |_| true);
    assert_eq!(coming.first(5), u64::MAX);
    coming.ended(0, 5);
    assert_eq!(coming.first(5), 7);
}

#[test]
fn a_plan_of_tasks_that_take_no_time_can_end_when_time_begins() {
    let uses = [0, 1].map(|data| vec![Use { data, reads: false, writes: true }]);
    let mut outlook = limits::devices(0, &[vec![], vec![0]], &uses, 2, 1000, 0);
    outlook.now = 0;
    outlook.lanes.iter_mut().for_each(|lane| lane.free = 0);
    let mut search = Search::new(&outlook, Dice(1), 1);
    search.begin(&Habits::default(), 1.0, Orders::Ranks, |_| true);
    search.improve(10, |_| true);
    assert_eq!(search.finish().0.end, 0);
}

pub(in crate::resource_mapping::plan) const NOW: u64 = 7;

/// The tasks before each: two of the earlier ones, or one.
pub(in crate::resource_mapping::plan) fn before(follows: &[[prop::sample::Index; 2]]) -> Vec<Vec<usize>> {
    let before = |(task, follows): (usize, &[prop::sample::Index; 2])| -> Vec<usize> {
        let mut before: Vec<usize> = follows.iter().filter(|_| task > 0).map(|at| at.index(task)).collect();
        before.sort_unstable();
        before.dedup();
        before
    };
    follows.iter().enumerate().map(before).collect()
}

/// Tasks with these lengths on each lane, behind these, in one memory; lanes are free at these times.
pub(in crate::resource_mapping::plan) fn graph(lengths: &[Vec<u64>], before: &[Vec<usize>], free: &[u64]) -> Outlook {
    let count = lengths.len();
    let followers = |task: usize| (0..count).filter(move |next| before[*next].contains(&task));
    let mut successors = Vec::new();
    let successors_of = (0..count).map(|task| {
        let from = successors.len();
        successors.extend(followers(task));
        from..successors.len()
    });
    let successors_of = successors_of.collect();
    let lane = |(number, free): (usize, &u64)| {
        let (worker, child) = (WorkerId(number as u32), Child(number as u32));
        Lane { worker, child, memory: 0, class: 0, free: *free }
    };
    let mut outlook = Outlook {
        now: NOW,
        lanes: free.iter().enumerate().map(lane).collect(),
        classes: 1,
        memories: 1,
        sequences: (0..count as u64).collect(),
        rows: (0..count as u32).collect(),
        lengths: lengths.concat(),
        kinds: (0..count).collect(),
        groups: (0..count).collect(),
        count_groups: count,
        owners: std::array::from_fn(|_| vec![None; count]),
        of_owner: vec![false; free.len()],
        works: lengths.iter().map(|lengths| lengths[0] > 0).collect(),
        is_sent: vec![false; count],
        waits: before[..count].iter().map(|before| before.len() as u32).collect(),
        successors,
        successors_of,
        uses_of: vec![Range::default(); count],
        ..Outlook::default()
    };
    outlook.tails = outlook.tails();
    outlook.squads = Squads::new(&outlook);
    outlook
}

/// A plan of tasks on these lanes, each of which executes its tasks in the order of submission.
pub(in crate::resource_mapping::plan) fn in_turn(lanes: &[usize]) -> Schedule {
    let turns: Vec<u64> = (NOW..).take(lanes.len()).collect();
    Schedule { lanes: lanes.to_vec(), starts: turns.clone(), ends: turns, ..Schedule::default() }
}

/// Preferences for no lane, of tasks in the order of these keys.
fn in_order(outlook: &Outlook, keys: Vec<f64>) -> Taste {
    Taste {
        keys,
        by_kind: vec![0.0; outlook.count_groups * outlook.classes],
        by_task: vec![0.0; outlook.len() * outlook.classes],
        owned: None,
        haul: 0.0,
        at_once: false,
        shares: false,
        evicts: false,
        hasty: false,
        late: false,
    }
}

impl Outlook {
    /// Lets a task that waits for nothing be sent to a lane, where it is to end then.
    pub(in crate::resource_mapping::plan) fn send(&mut self, task: usize, lane: usize, end: u64) {
        self.sent.push((task, lane, end));
        self.is_sent[task] = true;
        self.lanes[lane].free = self.lanes[lane].free.max(end);
    }
}

proptest! {
    /// No lane is idle while a task is ready, and the most urgent one goes first.
    #[test]
    fn free_lanes_take_the_most_urgent_ready_task(
        lengths in prop::collection::vec(prop_oneof![1 => Just(0), 9 => 1..20_u64], 1..40),
        follows in prop::collection::vec(any::<[prop::sample::Index; 2]>(), 40),
        keys in prop::collection::vec(0..50_u8, 40),
        free in prop::collection::vec(0..30_u64, 1..6),
    ) {
        let (count, before) = (lengths.len(), before(&follows));
        let on_each: Vec<Vec<u64>> = lengths.iter().map(|length| vec![*length; free.len()]).collect();
        let outlook = graph(&on_each, &before, &free);
        prop_assert!(outlook.is_uniform());
        let keys: Vec<f64> = keys[..count].iter().map(|key| f64::from(*key)).collect();
        let taste = Taste { late: true, ..in_order(&outlook, keys.clone()) };
        let mut plan = Schedule::default();
        let mut scratch = Scratch::default();
        plan.list(&outlook, &taste, &mut scratch);
        let ready = |task: usize| before[task].iter().map(|before| plan.ends[*before]).fold(NOW, u64::max);
        for task in 0..count {
            prop_assert_eq!(plan.ends[task] - plan.starts[task], lengths[task]);
            if lengths[task] == 0 {
                prop_assert_eq!(plan.starts[task], ready(task));
                continue;
            }
            prop_assert!(plan.starts[task] >= ready(task).max(free[plan.lanes[task]]));
            // While it waits, all lanes are busy, and what they begin is at least as urgent.
            for at in ready(task)..plan.starts[task] {
                for (lane, free) in free.iter().enumerate() {
                    let is_now = |other: usize| (plan.starts[other]..plan.ends[other]).contains(&at);
                    let runs = |other: &usize| plan.lanes[*other] == lane && is_now(*other);
                    let run = (0..count).filter(|other| lengths[*other] > 0).find(runs);
                    prop_assert!(run.is_some() || at < *free, "lane {} is idle at {}", lane, at);
                    if let Some(other) = run.filter(|other| plan.starts[*other] == at) {
                        prop_assert!(keys[other] >= keys[task]);
                    }
                }
            }
        }
        prop_assert_eq!(plan.end, plan.ends.iter().copied().fold(NOW, u64::max));
        // It is followed in the same time in each draw of lengths that do not deviate.
        let left = plan.end - NOW;
        let samples = Samples::draw(&outlook, 0.0, &mut Dice(1));
        let score = samples.score(&outlook, &plan, &mut scratch);
        prop_assert!(score > left || left == 0);
        prop_assert_eq!(score % left.max(1), 0);
        // One that lets all lanes wait is worse, unless nothing takes time.
        let late = Schedule { starts: plan.starts.iter().map(|start| start + 100).collect(), ..plan.clone() };
        let none_works = !outlook.works.contains(&true);
        prop_assert!(none_works || samples.score(&outlook, &late, &mut scratch) > score);
    }

    /// A plan is given up if it ends too late, however early that is seen, and only then.
    #[test]
    fn a_plan_is_given_up_exactly_if_it_ends_too_late(
        lengths in prop::collection::vec(prop::collection::vec(1..20_u64, 4), 1..40),
        idle in prop::collection::vec(prop::bool::weighted(0.1), 40),
        follows in prop::collection::vec(any::<[prop::sample::Index; 2]>(), 40),
        lanes in prop::collection::vec(0..4_usize, 40),
        free in prop::collection::vec(0..30_u64, 4),
        early in 1..20_u64,
    ) {
        let mut lengths = lengths;
        lengths.iter_mut().zip(idle).filter(|(_, idle)| *idle).for_each(|(lengths, _)| lengths.fill(0));
        let (count, before) = (lengths.len(), before(&follows));
        let outlook = graph(&lengths, &before, &free);
        let plan = in_turn(&lanes[..count]);
        let mut scratch = Scratch::default();
        let mut followed = |most| {
            let mut followed = Schedule::default();
            followed.follow(&outlook, &plan, most, &mut scratch);
            (followed.end, followed.starts)
        };
        let (end, starts) = followed(NEVER);
        prop_assert!(end < NEVER);
        prop_assert_eq!(followed(end), (end, starts));
        prop_assert!(end == NOW || followed(end.saturating_sub(early)).0 == NEVER);
    }

    /// However many threads there are, a search finds what one would.
    #[test]
    fn a_search_does_not_depend_on_the_number_of_threads(
        lengths in prop::collection::vec(prop::collection::vec(1..20_u64, 4), 2..24),
        is_uniform in any::<bool>(),
        follows in prop::collection::vec(any::<[prop::sample::Index; 2]>(), 24),
        deviates in any::<bool>(),
        seed in any::<u64>(),
    ) {
        let mut lengths = lengths;
        if is_uniform {
            lengths.iter_mut().for_each(|lengths| { let one = lengths[0]; lengths.fill(one) });
        }
        let outlook = graph(&lengths, &before(&follows), &[0; 4]);
        let found = |threads: usize| {
            let mut search = Search::new(&outlook, Dice(seed), threads);
            if deviates {
                search.expect_deviations(0.3);
            }
            search.begin(&Habits::default(), 1.0, Orders::All, |_| true);
            search.improve(40, |_| true);
            let (best, habits) = search.finish();
            (best.lanes, best.starts, best.end, format!("{habits:?}"))
        };
        let one = found(1);
        prop_assert!(one.2 > NOW);
        prop_assert_eq!(&one, &found(2));
        prop_assert_eq!(&one, &found(5));
    }

    /// The same where transfers share links. And no plan is kept that ends later than what becomes of what tasks choose
    /// first, although the times of the cheap prediction, by which data would be fetched, may be later than that.
    #[test]
    fn with_links_too_a_search_depends_on_no_threads_and_goes_by_what_tasks_choose(
        accesses in limits::accesses(24),
        follows in prop::collection::vec(any::<[prop::sample::Index; 2]>(), 24),
        length in 1..30_u64,
        allocation in 0..9_u64,
        deviates in any::<bool>(),
        seed in any::<u64>(),
    ) {
        let before = &before(&follows)[..accesses.len()];
        let outlook = limits::devices(length, before, &limits::uses(&accesses), 6, u64::MAX, allocation);
        let found = |threads: usize| {
            let mut search = Search::new(&outlook, Dice(seed), threads);
            if deviates {
                search.expect_deviations(0.3);
            }
            search.begin(&Habits::default(), 1.0, Orders::All, |_| true);
            let begun = search.length();
            search.improve(30, |_| true);
            let (best, habits) = search.finish();
            (begun, best.lanes, best.starts, best.end, format!("{habits:?}"))
        };
        let one = found(1);
        prop_assert_eq!(&one, &found(2));
        prop_assert_eq!(&one, &found(5));
        let taste = in_order(&outlook, outlook.ranks(|lengths| lengths[0] as f64));
        let (mut chosen, mut realised, mut scratch) = <(Schedule, Schedule, Scratch)>::default();
        chosen.choose(&outlook, &taste, None, &mut scratch);
        realised.realise(&outlook, &chosen, NEVER - 1, &mut scratch);
        prop_assert!(deviates || NOW + one.0 <= realised.end, "{} and {}", NOW + one.0, realised.end);
    }

    /// Where lengths deviate, single tasks move: from a plan on one lane to all lanes, but to none that cannot execute
    /// them, and each begins when those before it have ended.
    #[test]
    fn tasks_move_to_lanes_that_can_execute_them(
        lengths in prop::collection::vec(prop::collection::vec(prop_oneof![1 => Just(NEVER), 1 => 1..20_u64], 4), 2..24),
        follows in prop::collection::vec(any::<[prop::sample::Index; 2]>(), 24),
        seed in any::<u64>(),
    ) {
        let mut lengths = lengths;
        lengths.iter_mut().for_each(|lengths| lengths[0] = 20);
        let (count, before) = (lengths.len(), before(&follows));
        let outlook = graph(&lengths, &before, &[0; 4]);
        let present = Schedule {
            lanes: vec![0; count],
            starts: (0..count as u64).map(|task| NOW + 20 * task).collect(),
            ends: (1..=count as u64).map(|task| NOW + 20 * task).collect(),
            end: NOW + 20 * count as u64,
            ..Schedule::default()
        };
        let mut search = Search::new(&outlook, Dice(seed), 1);
        search.expect_deviations(0.2);
        search.resume(&Habits::default(), &present);
        search.improve(200, |_| true);
        let (best, _) = search.finish();
        for task in 0..count {
            prop_assert!(outlook.length(task, best.lanes[task]) != NEVER);
            let ready = before[task].iter().map(|before| best.ends[*before]).fold(NOW, u64::max);
            prop_assert!(best.starts[task] >= ready);
        }
        let others = lengths.iter().filter(|lengths| lengths[1..].iter().any(|length| *length < 20)).count();
        prop_assert!(others < 4 || best.end < present.end);
    }
}

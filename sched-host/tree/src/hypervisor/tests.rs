//! The hypervisor on contexts that are numbers: how targets are reached, and what always holds.

use super::*;
use proptest::prelude::*;
use sched_core::WorkerId;

/// Contexts whose tasks take time in proportion to their share.
#[derive(Clone, Debug)]
struct Fake {
    sets: Vec<WorkerSet>,
    progress: Vec<Progress>,
    /// Workers for each kind of tasks of a context.
    able: Vec<Vec<WorkerSet>>,
    /// Seconds of a task on one worker.
    length: f64,
    /// Contexts that refuse every change.
    stubborn: Vec<usize>,
    changes: usize,
}

fn set(workers: impl IntoIterator<Item = u32>) -> WorkerSet {
    workers.into_iter().map(WorkerId).collect()
}

fn numbers(set: &WorkerSet) -> Vec<u32> {
    set.iter().map(|worker| worker.0).collect()
}

impl Fake {
    fn new(sets: Vec<WorkerSet>, unfinished: u64) -> Fake {
        let progress = vec![Progress { unfinished, ..Progress::default() }; sets.len()];
        let able = vec![vec![set(0..64)]; sets.len()];
        Fake { sets, progress, able, length: 0.001, stubborn: Vec::new(), changes: 0 }
    }

    /// Lets time pass: each worker works for its contexts in equal parts.
    fn pass(&mut self, seconds: f64) {
        for context in 0..self.sets.len() {
            let workers = self.sets[context].iter().map(|worker| {
                let serves = |other: &usize| self.progress[*other].unfinished > 0 && self.sets[*other].contains(worker);
                1.0 / (0..self.sets.len()).filter(serves).count().max(1) as f64
            });
            let done = (workers.sum::<f64>() * seconds / self.length).round() as u64;
            let progress = &mut self.progress[context];
            let done = done.min(progress.unfinished);
            progress.unfinished -= done;
            progress.ended += done;
        }
    }
}

impl Governed for Fake {
    fn workers(&self, context: usize) -> WorkerSet {
        self.sets[context].clone()
    }

    fn progress(&mut self, context: usize) -> Progress {
        self.progress[context]
    }

    fn able(&mut self, context: usize) -> Vec<WorkerSet> {
        self.able[context].clone()
    }

    fn remaining(&mut self, context: usize, pool: &WorkerSet) -> Option<f64> {
        Some(self.progress[context].unfinished as f64 * self.length / pool.len() as f64)
    }

    fn change(&mut self, context: usize, added: &WorkerSet, removed: &WorkerSet) -> Result<(), ContextError> {
        self.changes += 1;
        if self.stubborn.contains(&context) {
            return Err(ContextError::Busy { context: context.to_string() });
        }
        self.sets[context].union_with(added);
        removed.iter().for_each(|worker| {
            self.sets[context].remove(worker);
        });
        Ok(())
    }
}

fn of(goals: &[Option<Goal>]) -> Goals {
    let context = |(number, goal): (usize, &Option<Goal>)| GovernedContext {
        goal: *goal,
        ..GovernedContext::new(number.to_string())
    };
    Goals { contexts: goals.iter().enumerate().map(context).collect(), ..Goals::new() }
}

/// Runs some periods, and returns the hypervisor.
fn run(goals: Goals, fake: &mut Fake, periods: u32) -> Hypervisor {
    let mut hypervisor = Hypervisor::new(goals, vec![1.0; 64]);
    for step in 0..periods {
        hypervisor.step(hypervisor.period() * step, fake);
        fake.pass(hypervisor.period().as_secs_f64());
    }
    hypervisor
}

#[test]
fn shares_are_reached_and_then_kept() {
    let mut fake = Fake::new(vec![set(0..4), set(4..8)], 1_000_000);
    let hypervisor = run(of(&[Some(Goal::Share(0.75)), Some(Goal::Share(0.25))]), &mut fake, 100);
    assert_eq!((fake.sets[0].len(), fake.sets[1].len()), (6, 2));
    let governance = hypervisor.finish(Duration::from_secs(1), &mut fake);
    assert_eq!(governance.moves.len(), 2, "{governance:?}");
    assert!(governance.attained.iter().all(|attained| attained.met == Some(true)), "{governance:?}");
}

#[test]
fn a_context_without_a_goal_gets_what_is_left() {
    let mut fake = Fake::new(vec![set(0..8), set(0..8), set(0..8)], 1_000_000);
    run(of(&[Some(Goal::Share(0.5)), None, None]), &mut fake, 100);
    let mut layout = Layout::default();
    layout.renew(fake.sets.clone(), vec![true; 3], &[1.0; 8]);
    let shares = layout.shares();
    assert!((shares[0] - 0.5).abs() < 0.07 && (shares[1] - 0.25).abs() < 0.07, "{shares:?}");
}

#[test]
fn a_context_without_tasks_lends_its_workers_and_gets_them_back() {
    let mut fake = Fake::new(vec![set(0..4), set(4..8)], 100_000);
    fake.progress[1].unfinished = 0;
    let mut hypervisor = Hypervisor::new(of(&[Some(Goal::Share(0.5)), Some(Goal::Share(0.5))]), vec![1.0; 8]);
    hypervisor.step(Duration::ZERO, &mut fake);
    assert_eq!((numbers(&fake.sets[0]).len(), fake.sets[1].len()), (8, 4), "they stay at home as well");
    fake.progress[1].unfinished = 100_000;
    for step in 1..40 {
        hypervisor.step(Duration::from_millis(10) * step, &mut fake);
        fake.pass(0.01);
    }
    let mut layout = Layout::default();
    layout.renew(fake.sets.clone(), vec![true; 2], &[1.0; 8]);
    assert!((layout.shares()[1] - 0.5).abs() < 0.07, "{:?}", fake.sets);
}

#[test]
fn a_deadline_takes_as_many_workers_as_the_remaining_work_needs() {
    // 4000 tasks of 1 ms in 1 s take four workers, and a reserve.
    let mut fake = Fake::new(vec![set(0..1), set(1..8)], 4_000);
    fake.progress[1].unfinished = 1_000_000;
    let goals = of(&[Some(Goal::Deadline(Duration::from_secs(1))), None]);
    let hypervisor = run(goals, &mut fake, 120);
    assert_eq!(fake.progress[0].unfinished, 0);
    let governance = hypervisor.finish(Duration::from_millis(1200), &mut fake);
    let attained = &governance.attained[0];
    assert_eq!(attained.met, Some(true), "{governance:?}");
    assert!((0.5..0.75).contains(&attained.share), "not more than it needs: {attained:?}");
}

#[test]
fn a_throughput_is_reached_by_what_is_measured() {
    // A worker executes 1000 tasks a second.
    let mut fake = Fake::new(vec![set(0..1), set(1..8)], 10_000_000);
    let hypervisor = run(of(&[Some(Goal::TasksPerSecond(2_900.0)), None]), &mut fake, 300);
    assert_eq!(fake.sets[0].len(), 3);
    assert!(hypervisor.governance.moves.len() <= 4, "{:?}", hypervisor.governance.moves);
}

#[test]
fn bounds_hold() {
    let mut fake = Fake::new(vec![set(0..4), set(4..8), set(4..8)], 1_000_000);
    let mut goals = of(&[Some(Goal::Share(0.9)), None, None]);
    (goals.contexts[0].max, goals.contexts[1].min) = (3, 5);
    let hypervisor = run(goals, &mut fake, 100);
    assert_eq!((fake.sets[0].len(), fake.sets[1].len() >= 5), (3, true), "{:?}", hypervisor.governance.moves);
}

#[test]
fn a_maximum_of_fast_workers_is_a_large_share() {
    // Worker 0 is as fast as the other six together.
    let mut fake = Fake::new(vec![set(6..7), set(0..6)], 1_000_000_000);
    let mut goals = of(&[Some(Goal::Share(0.5)), None]);
    goals.contexts[0].max = 2;
    let speeds = [6.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0];
    let mut hypervisor = Hypervisor::new(goals, speeds.to_vec());
    for step in 0..50 {
        hypervisor.step(hypervisor.period() * step, &mut fake);
        fake.pass(0.01);
    }
    let attained = hypervisor.finish(Duration::from_millis(500), &mut fake).attained;
    assert!(fake.sets[0].contains(WorkerId(0)) && fake.sets[0].len() <= 2, "{:?}", fake.sets);
    assert!(attained[0].share > 0.45, "{attained:?}");
}

#[test]
fn a_context_above_its_maximum_gives_workers_to_others() {
    let mut goals = of(&[Some(Goal::Share(0.5)), None]);
    goals.contexts[0].max = 2;
    // All workers serve both, as where a program divides nothing.
    let mut fake = Fake::new(vec![set(0..8), set(0..8)], 1_000_000);
    run(goals.clone(), &mut fake, 50);
    assert_eq!(fake.sets[0].len(), 2, "{:?}", fake.sets);
    // The other has no tasks, and waits for some with the workers.
    let mut fake = Fake::new(vec![set(0..8), set(7..8)], 1_000_000);
    fake.progress[1].unfinished = 0;
    run(goals.clone(), &mut fake, 50);
    assert_eq!((fake.sets[0].len(), fake.sets[1].len() >= 6), (2, true), "{:?}", fake.sets);
    // What tasks need comes first.
    let mut fake = Fake::new(vec![set(0..8), set(0..8)], 1_000_000);
    fake.able[0] = vec![set([1]), set([3]), set([5])];
    run(goals, &mut fake, 50);
    assert_eq!(numbers(&fake.sets[0]), [1, 3, 5]);
}

#[test]
fn a_worker_that_a_task_needs_stays() {
    let mut fake = Fake::new(vec![set(0..2), set(2..8)], 1_000_000);
    fake.able[1] = vec![set([5]), set([6, 0])];
    run(of(&[Some(Goal::Share(1.0)), None]), &mut fake, 50);
    assert_eq!(numbers(&fake.sets[1]), [5, 6]);
}

#[test]
fn a_context_without_an_able_worker_gets_one_that_serves_few() {
    let mut fake = Fake::new(vec![set(0..4), set(4..6), WorkerSet::new()], 1_000_000);
    fake.able[1] = vec![set([2, 3])];
    let mut hypervisor = Hypervisor::new(of(&[None, None, None]), vec![1.0; 8]);
    assert!(hypervisor.rescue(Duration::ZERO, &mut fake));
    assert!(fake.sets[1].contains(WorkerId(2)), "{:?}", fake.sets);
    assert_eq!(numbers(&fake.sets[2]), [0], "{:?}", fake.sets);
    assert!(!hypervisor.rescue(Duration::ZERO, &mut fake), "none is added twice");
}

#[test]
fn a_refused_change_leaves_the_worker_and_is_tried_again_ever_later() {
    let mut fake = Fake::new(vec![set(0..4), set(4..8)], 10_000_000);
    fake.stubborn = vec![1];
    let hypervisor = run(of(&[Some(Goal::Share(0.75)), None]), &mut fake, 1000);
    assert_eq!(numbers(&fake.sets[1]), [4, 5, 6, 7]);
    assert!(set(0..4).is_subset(&fake.sets[0]), "{:?}", fake.sets);
    let refusals = &hypervisor.governance.refusals;
    assert!((1..=10).contains(&refusals.len()), "{refusals:?}");
    assert!(refusals[0].why.contains("goes on as it was"), "{refusals:?}");
    // The worker did not leave.
    let moves = &hypervisor.governance.moves;
    assert!(!moves.is_empty() && moves.iter().all(|moved| moved.from.is_none()), "{moves:?}");
}

#[test]
fn a_worker_that_stays_where_it_was_has_not_moved() {
    let mut fake = Fake::new(vec![set(0..4), set(0..4)], 10_000_000);
    fake.stubborn = vec![1];
    let hypervisor = run(of(&[Some(Goal::Share(0.9)), None]), &mut fake, 100);
    let Governance { moves, refusals, .. } = &hypervisor.governance;
    assert_eq!((moves.len(), refusals.is_empty()), (0, false), "{moves:?}");
}

#[test]
fn a_context_that_refuses_what_it_lacks_is_left_alone_ever_longer() {
    // It is to have three workers; the other one has none.
    for (workers, min) in [(set(4..5), 3), (WorkerSet::new(), 1)] {
        let mut fake = Fake::new(vec![set(0..4), workers], 10_000_000);
        fake.stubborn = vec![1];
        let mut goals = of(&[None, None]);
        goals.contexts[1].min = min;
        let mut hypervisor = run(goals, &mut fake, 1000);
        let refusals = hypervisor.governance.refusals.len();
        assert!((1..=10).contains(&refusals), "{refusals}");
        // Where nothing else would happen any more, it is asked at once.
        hypervisor.rescue(Duration::from_secs(10), &mut fake);
        assert_eq!(hypervisor.governance.refusals.len(), refusals + 1);
    }
}

#[test]
fn tasks_that_come_and_end_between_two_looks_count() {
    let mut fake = Fake::new(vec![set(0..4), set(0..4)], 0);
    let mut hypervisor = Hypervisor::new(of(&[Some(Goal::Share(0.5)), Some(Goal::Share(0.5))]), vec![1.0; 4]);
    hypervisor.step(Duration::ZERO, &mut fake);
    let ended = |ms| Progress { ended: 20, last_end: Some(Duration::from_millis(ms)), ..Progress::default() };
    fake.progress = vec![ended(4), ended(5)];
    let attained = hypervisor.finish(Duration::from_millis(5), &mut fake).attained;
    let found: Vec<_> = attained.iter().map(|one| (one.share, one.tasks_per_second.round(), one.met)).collect();
    assert_eq!(found, [(0.5, 5000.0, Some(true)), (0.5, 4000.0, Some(true))]);
}

#[test]
fn patience_counts_periods_that_had_no_look() {
    let moves_at = |looks: [u64; 2]| {
        let mut fake = Fake::new(vec![set(0..4), set(4..8)], 1000);
        let mut goals = of(&[Some(Goal::Share(0.75)), None]).patience(100);
        goals.period = Duration::from_nanos(1);
        let mut hypervisor = Hypervisor::new(goals, vec![1.0; 8]);
        hypervisor.step(Duration::ZERO, &mut fake);
        assert_eq!(numbers(&fake.sets[1]), [6, 7], "two have moved");
        // The others have nothing to do any more.
        (fake.progress[0].unfinished, fake.progress[1].unfinished) = (0, 1000);
        looks.map(|nanos| hypervisor.step(Duration::from_nanos(nanos), &mut fake) && fake.sets[1].len() == 8)
    };
    assert_eq!(moves_at([1, 99]), [false, false]);
    assert_eq!(moves_at([50, 101]), [false, true]);
}

#[test]
fn goals_are_read() {
    let goals = Goals::parse(
        "goals.kdl",
        r#"hypervisor period="5 ms" patience=3 {
            context "a" share=0.5 min=2 max=6
            context "b" deadline="1.5 s"
            context "c" tasks-per-second=2000
            context "d" gflops=12.5 flops-per-task=1e6
            context "e"
        }"#,
    )
    .expect("it is right");
    assert_eq!((goals.period, goals.patience), (Duration::from_millis(5), 3));
    let goal = |number: usize| goals.contexts[number].goal;
    assert_eq!((goals.contexts[0].min, goals.contexts[0].max), (2, 6));
    assert_eq!((goal(0), goal(1)), (Some(Goal::Share(0.5)), Some(Goal::Deadline(Duration::from_millis(1500)))));
    assert_eq!((goal(2), goal(3)), (Some(Goal::TasksPerSecond(2000.0)), Some(Goal::Gflops(12.5))));
    assert_eq!((goal(4), goals.contexts[3].task_flops), (None, Some(1e6)));
}

/// All problems of a text.
fn problems(text: &str) -> String {
    let findings = Goals::parse("goals.kdl", text).expect_err("it is wrong");
    let line = |finding: &sched_text::Finding| {
        let place = finding.position().map_or(String::new(), |(_, line, column)| format!("{line}:{column}: "));
        format!("{place}{}", finding.message())
    };
    findings.findings().iter().map(line).collect::<Vec<_>>().join("\n")
}

#[test]
fn wrong_goals_are_all_reported() {
    insta::assert_snapshot!(problems(r#"hypervisor period="soon" {
    context "a" share=0.5 deadline="1 s"
    context "b" share=-1
    context "c" speed=3 min=-2
    contxt "d"
}"#), @r"
        1:19: `period` is soon
        2:5: a context has one goal, and this has `share` and `deadline`
        3:23: `share` is -1
        4:17: `context` has no property `speed`
        4:29: `min` is -2
        5:5: `contxt` cannot stand in `hypervisor`
    ");
    insta::assert_snapshot!(problems(r#"hypervisor {
    context "a" share=0.7 min=4 max=2
    context "b" share=0.6
    context "b" deadline="0 s"
    context "c" share=1.5 min=3 max=2
}"#), @r"
        2:5: context `a` has at least 4 and at most 2 workers
        4:5: context `b` has the deadline 0, which is over at the start
        4:5: context `b` has goals twice
        5:5: context `c` has the share 1.5; it is more than 0, and at most 1
        5:5: context `c` has at least 3 and at most 2 workers
        3:5: the shares of all contexts together are 1.300, and there is 1 to share
    ");
    for period in ["0 s", "0.1 ns"] {
        let text = format!("hypervisor patience=1 period=\"{period}\" {{\n    context \"a\"\n}}");
        assert_eq!(problems(&text), format!("1:30: `period` is {period:?}"));
    }
    insta::assert_snapshot!(problems(r#"context "a""#), @r"
        1:1: `context` cannot stand in a file of goals
        the file holds 0 hypervisors, and is to hold one
    ");
}

#[test]
fn throughputs_beyond_all_machines_are_refused_and_shown_in_brief() {
    insta::assert_snapshot!(problems(r#"hypervisor {
    context "a" gflops=1e300
    context "b" tasks-per-second=1e31
    context "c" gflops=1 flops-per-task=1e308
    context "d" gflops=1e30 flops-per-task=1e-300
}"#), @"
        2:5: context `a` has the throughput 1e300; it is more than 0, and at most 1e30
        3:5: context `b` has the throughput 1e31; it is more than 0, and at most 1e30
        4:5: context `c` has tasks of 1e308 operations; it is more than 0, and at most 1e30
    ");
    let goals = [Goal::Share(1e-300), Goal::TasksPerSecond(2500.5), Goal::Gflops(1e30)];
    assert_eq!(goals.map(|goal| goal.to_string()), ["share 1e-300", "2500.5 tasks/s", "1e30 GFlop/s"]);
}

#[test]
fn the_largest_throughputs_are_targets() {
    for (goal, flops) in [(Goal::TasksPerSecond(1e30), None), (Goal::Gflops(1e30), Some(1e-300))] {
        let mut fake = Fake::new(vec![set(0..4), set(4..8)], 10_000_000);
        let mut goals = of(&[Some(goal), None]);
        goals.contexts[0].task_flops = flops;
        run(goals, &mut fake, 100);
        assert_eq!(fake.sets[0].len(), 7, "{goal}");
    }
}

#[test]
fn goals_name_contexts_that_exist() {
    let known = ["solver".to_owned(), "report".to_owned()];
    let goals = Goals::new()
        .context(GovernedContext::new("slover").goal(Goal::Share(0.5)))
        .context(GovernedContext::new("report").goal(Goal::Gflops(1.0)));
    let wrong = goals.resolve(&known, false).expect_err("two things are wrong");
    let messages: Vec<&str> = wrong.findings().iter().map(sched_text::Finding::message).collect();
    assert_eq!(
        messages,
        ["there is no context `slover`", "the operations of a task of context `report` are not known"]
    );
    let right = Goals::new().context(GovernedContext::new("report").goal(Goal::Gflops(1.0)).task_flops(1e9));
    assert_eq!(right.resolve(&known, false).expect("it is right"), [1]);
}

#[test]
fn a_context_cannot_have_more_workers_than_there_are() {
    let goals = Goals::new()
        .context(GovernedContext::new("solver").bounds(4, 8))
        .context(GovernedContext::new("report").bounds(3, 3));
    assert!(goals.check_minima(4).is_ok(), "contexts may share workers");
    let wrong = goals.check_minima(3).expect_err("there are three");
    let messages: Vec<&str> = wrong.findings().iter().map(sched_text::Finding::message).collect();
    assert_eq!(messages, ["context `solver` has at least 4 workers, and all governed contexts have 3"]);
    assert!(goals.check_minima(0).is_ok(), "workers may be added later");
}

/// Contexts with their workers, whether they have tasks, what these need, and goals.
fn cases() -> impl Strategy<Value = (Fake, Goals)> {
    let context = (
        prop::collection::btree_set(0..8u32, 0..8),
        0..3000u64,
        prop::collection::vec(prop::collection::btree_set(0..8u32, 1..8), 1..3),
        prop_oneof![
            Just(None),
            (1..30u32).prop_map(|percent| Some(Goal::Share(f64::from(percent) / 100.0))),
            (1..500u64).prop_map(|ms| Some(Goal::Deadline(Duration::from_millis(ms)))),
            (1..5000u32).prop_map(|rate| Some(Goal::TasksPerSecond(f64::from(rate)))),
        ],
        prop_oneof![Just(usize::MAX), 1..8usize],
    );
    (prop::collection::vec(context, 1..4), any::<bool>()).prop_map(|(contexts, stubborn)| {
        let mut fake = Fake::new(contexts.iter().map(|(workers, ..)| set(workers.iter().copied())).collect(), 0);
        let (mut goals, mut maxima) = (Vec::new(), Vec::new());
        for (number, (_, unfinished, able, goal, max)) in contexts.into_iter().enumerate() {
            fake.progress[number].unfinished = unfinished;
            fake.able[number] = able.into_iter().map(set).collect();
            goals.push(goal);
            maxima.push(max);
        }
        fake.stubborn = if stubborn { vec![0] } else { Vec::new() };
        let mut goals = of(&goals);
        goals.contexts.iter_mut().zip(maxima).for_each(|(context, max)| context.max = max);
        (fake, goals)
    })
}

proptest! {
    /// A step takes no worker from a context whose tasks need it, nor a worker out of use, and equal runs are equal.
    #[test]
    fn no_context_with_tasks_loses_its_last_able_worker((fake, goals) in cases()) {
        let mut pool = WorkerSet::new();
        fake.sets.iter().for_each(|set| pool.union_with(set));
        let run = |mut fake: Fake| {
            let mut hypervisor = Hypervisor::new(goals.clone(), vec![1.0; 8]);
            for step in 0..60 {
                let before = fake.clone();
                hypervisor.step(hypervisor.period() * step, &mut fake);
                let mut union = WorkerSet::new();
                fake.sets.iter().for_each(|set| union.union_with(set));
                prop_assert_eq!(&union, &pool);
                for context in 0..fake.sets.len() {
                    let (old, new) = (&before.sets[context], &fake.sets[context]);
                    if before.progress[context].unfinished == 0 {
                        prop_assert!(old.is_subset(new), "what has no tasks lends only");
                        continue;
                    }
                    prop_assert!(!new.is_empty() || pool.is_empty() || fake.stubborn.contains(&context));
                    for able in &fake.able[context] {
                        let has = |set: &WorkerSet| able.iter().any(|worker| set.contains(worker));
                        prop_assert!(has(new) || !has(old), "{context}: {old:?} to {new:?}, of {able:?}");
                    }
                }
                fake.pass(0.01);
            }
            Ok((hypervisor.governance, fake.sets))
        };
        prop_assert_eq!(run(fake.clone())?, run(fake)?);
    }

    /// While nothing changes, moves come to an end.
    #[test]
    fn moves_are_bounded((mut fake, goals) in cases()) {
        // Goals that depend on time have other targets at each step.
        let constant = |mut context: GovernedContext| {
            context.goal = context.goal.filter(|goal| matches!(goal, Goal::Share(_)));
            context
        };
        let goals = Goals { contexts: goals.contexts.into_iter().map(constant).collect(), ..goals };
        fake.stubborn.clear();
        let mut hypervisor = Hypervisor::new(goals, vec![1.0; 8]);
        let mut last = 0;
        for step in 0..200u32 {
            if hypervisor.step(hypervisor.period() * step, &mut fake) {
                last = step;
            }
        }
        prop_assert!(last < 100, "{:?}", hypervisor.governance.moves);
        prop_assert!(hypervisor.governance.moves.len() <= 64, "{:?}", hypervisor.governance.moves);
    }
}

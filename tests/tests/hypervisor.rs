//! The hypervisor moves workers between contexts, in simulations and in runs: goals are attained, and no task is lost.

use proptest::prelude::*;
use sched_core::{Arch, WorkerId};
use sched_host::context::{ContextError, SchedContext};
use sched_host::graph::generate::{cholesky, independent};
use sched_host::graph::{ContextId, Lengths, Task, TaskGraph, TaskId, Where};
use sched_host::policy::library;
use sched_host::runtime::Runtime;
use sched_host::sim::platform::find;
use sched_host::sim::{Context, Platform, SimError, SimOutcome, SimRecorder, Simulation};
use sched_host::trace::{Digest, Format, Trace};
use sched_host::tree::hypervisor::{Goal, Goals, Governance, GovernedContext, Move};
use sched_tests::hold::Hold;
use sched_tests::stock;
use sched_tests::stock::{EAGER, builder, policy};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::*};
use std::time::{Duration, Instant};

fn ms(count: u64) -> Duration {
    Duration::from_millis(count)
}

fn goal(name: &str, goal: Goal) -> GovernedContext {
    GovernedContext::new(name).goal(goal)
}

/// Two copies of a graph, in contexts of half of the workers each.
fn halves(graph: &TaskGraph, platform: &Platform) -> Simulation {
    let workers = platform.workers.len() as u32;
    Simulation::new(TaskGraph::side_by_side("two", &[graph, graph]), platform.clone())
        .registry(stock::registry(Vec::new()))
        .context(Context::new("a").workers(0..workers / 2))
        .context(Context::new("b").workers(workers / 2..workers))
}

fn governed(simulation: Simulation, goals: Goals) -> (SimOutcome, Governance) {
    let outcome = simulation.govern(goals).run().expect("it runs to the end");
    let governance = outcome.governance.clone().expect("there is a hypervisor");
    (outcome, governance)
}

#[test]
fn a_simulated_context_gets_its_share() {
    let goals = Goals::new().context(goal("a", Goal::Share(0.75))).context(goal("b", Goal::Share(0.25)));
    let (outcome, governance) = governed(halves(&independent(3000, ms(1)), &Platform::flat(8, ms(1))), goals);
    let [a, b] = &governance.attained[..] else { panic!("two are governed: {governance:?}") };
    assert_eq!((a.met, b.met), (Some(true), Some(true)), "{governance:?}");
    // 3000 ms on six workers; then the other one has all of them.
    assert!((ms(500)..ms(540)).contains(&outcome.contexts[1].makespan), "{outcome:?}");
    assert!(outcome.makespan < ms(790), "workers without tasks are lent: {outcome:?}");
    assert!(governance.moves.len() <= 8, "{governance:?}");
    assert!(governance.refusals.is_empty(), "{governance:?}");
}

#[test]
fn the_shortest_period_ends_and_long_tasks_are_not_looked_at_for_each_of_theirs() {
    let within = |length: Duration, period: Duration| {
        let goals = Goals::new().context(goal("a", Goal::Deadline(length * 100))).context(GovernedContext::new("b"));
        let simulation = halves(&independent(200, length), &Platform::flat(8, length));
        let (outcome, _) = governed(simulation, goals.period(period));
        assert!(outcome.events < 1_000_000, "{}", outcome.events);
        outcome.makespan.div_duration_f64(length)
    };
    let usual = within(ms(100), ms(10));
    // Some 10⁹ and 10¹⁰ periods.
    for found in [within(ms(100), Duration::from_nanos(1)), within(Duration::from_secs(1_000_000), ms(10))] {
        assert!((usual * 0.9..usual * 1.1).contains(&found), "{found} and not {usual}");
    }
}

/// The moves in a trace in the format of Perfetto: name of the mark, track, and the context that was left.
fn marks(trace: &Trace) -> Vec<(String, u64, Option<String>)> {
    let mut file = Vec::new();
    Format::Chrome.write(trace, &mut file).expect("memory can be written");
    let file: serde_json::Value = serde_json::from_slice(&file).expect("it is JSON");
    let marks = file["traceEvents"].as_array().expect("there are events").iter();
    let text = |value: &serde_json::Value| value.as_str().map(str::to_owned);
    let marks = marks.filter(|event| event["cat"] == "hypervisor");
    marks
        .map(|event| {
            assert_eq!(
                (event["ph"].as_str(), event["pid"].as_u64()),
                (Some("i"), Some(1)),
                "it is on the worker's track"
            );
            assert_eq!(text(&event["name"]), text(&event["args"]["to"]).map(|to| format!("to {to}")));
            let name = text(&event["name"]).expect("it has a name");
            (name, event["tid"].as_u64().expect("it has a track"), text(&event["args"]["from"]))
        })
        .collect()
}

/// The marks that belong to these moves.
fn expected_marks(governance: &Governance) -> Vec<(String, u64, Option<String>)> {
    let mark = |moved: &Move| (format!("to {}", moved.to), u64::from(moved.worker.0) + 1, moved.from.clone());
    governance.moves.iter().map(mark).collect()
}

#[test]
fn moves_are_marks_in_the_traces_of_simulations() {
    let platform = Platform::flat(8, ms(1));
    let goals = Goals::new().context(goal("a", Goal::Share(0.75))).context(goal("b", Goal::Share(0.25)));
    let simulation = halves(&independent(300, ms(1)), &platform);
    let mut recorder = SimRecorder::new(Arc::new(independent(300, ms(1))), Arc::new(platform));
    let outcome = simulation.govern(goals).observe(&mut recorder).expect("it runs to the end");
    let governance = outcome.governance.expect("there is a hypervisor");
    let trace = recorder.finish("governed");
    assert!(!governance.moves.is_empty());
    assert_eq!(marks(&trace), expected_marks(&governance));
    let mut paje = Vec::new();
    Format::Paje.write(&trace, &mut paje).expect("memory can be written");
    let paje = String::from_utf8(paje).expect("it is text");
    assert!(paje.contains("V W \"Move to a context\"") && paje.contains("\"to a\""), "{paje}");
}

#[test]
fn a_simulated_deadline_is_kept_that_halves_would_miss() {
    let platform = Platform::flat(8, ms(1));
    let graph = independent(2000, ms(1));
    let without = halves(&graph, &platform).run().expect("it runs to the end");
    assert_eq!(without.contexts[1].makespan.as_millis(), 500);
    assert!(without.governance.is_none());
    let goals = Goals::new().context(goal("a", Goal::Deadline(ms(350)))).context(GovernedContext::new("b"));
    let (outcome, governance) = governed(halves(&graph, &platform), goals);
    assert_eq!(governance.attained[0].met, Some(true), "{governance:?}");
    assert!(outcome.contexts[1].makespan > ms(290), "no more workers than it needs: {outcome:?}");
    assert!(outcome.makespan < ms(520), "{outcome:?}");
}

#[test]
fn simulated_throughputs_are_attained() {
    let platform = Platform::flat(8, ms(1));
    let goals = Goals::new().context(goal("a", Goal::TasksPerSecond(5_500.0))).context(GovernedContext::new("b"));
    let (_, governance) = governed(halves(&independent(4000, ms(1)), &platform), goals);
    let [a, b] = &governance.attained[..] else { panic!("two are governed: {governance:?}") };
    assert!((5_500.0..6_500.0).contains(&a.tasks_per_second) && a.met == Some(true), "{governance:?}");
    assert!(b.tasks_per_second < a.tasks_per_second, "{governance:?}");
    let mut graph = independent(4000, ms(1));
    graph.tasks.iter_mut().for_each(|task| task.flops = 2e6);
    let goals = Goals::new().context(goal("a", Goal::Gflops(11.0))).context(GovernedContext::new("b"));
    let (_, governance) = governed(halves(&graph, &platform), goals);
    assert!((11.0..13.0).contains(&governance.attained[0].gflops), "{governance:?}");
    assert_eq!(governance.attained[0].met, Some(true), "{governance:?}");
}

#[test]
fn every_shipped_policy_can_be_governed_and_equal_seeds_make_equal_moves() {
    let platform = find("numa-2x12").expect("it is shipped");
    for name in library().iter().map(|shipped| shipped.name) {
        let run = || {
            let goals = Goals::new()
                .context(goal("a", Goal::Share(0.7)))
                .context(goal("b", Goal::Deadline(ms(400))))
                .period(ms(2));
            let mut digest = Digest::default();
            let simulation = halves(&cholesky(8, 960), &platform).policy(name).seed(7).govern(goals);
            let outcome = simulation.observe(&mut digest).unwrap_or_else(|error| panic!("{name}: {error}"));
            (digest.value(), outcome.governance.expect("there is a hypervisor"))
        };
        let (first, second) = (run(), run());
        assert_eq!(first, second, "{name}");
        assert!(!first.1.moves.is_empty(), "{name} moves no worker: {:?}", first.1);
    }
}

#[test]
fn a_simulated_context_without_workers_gets_one() {
    let graph = TaskGraph::side_by_side("two", &[&independent(50, ms(1)), &independent(50, ms(1))]);
    let simulation = Simulation::new(graph, Platform::flat(2, ms(1)))
        .registry(stock::registry(Vec::new()))
        .context(Context::new("a").workers(0..2))
        .context(Context::new("b").workers([]));
    let stalled = simulation.clone().run();
    assert!(matches!(stalled, Err(SimError::Stalled { .. })), "{stalled:?}");
    let goals = Goals::new().context(GovernedContext::new("a")).context(GovernedContext::new("b"));
    let (outcome, governance) = governed(simulation, goals);
    // 50 ms if both workers were busy all the time; workers of a context without tasks are lent at the next look.
    assert!((ms(50)..ms(60)).contains(&outcome.makespan), "{governance:?}");
}

#[test]
fn a_simulation_names_what_is_wrong_with_goals() {
    let simulation = halves(&independent(2, ms(1)), &Platform::flat(2, ms(1)));
    let goals = Goals::new()
        .context(goal("a", Goal::Share(0.75)))
        .context(goal("b", Goal::Share(0.5)))
        .context(GovernedContext::new("a").bounds(3, 1));
    let SimError::Policy(findings) = simulation.clone().govern(goals).run().expect_err("they contradict") else {
        panic!("these are findings")
    };
    let messages: Vec<&str> = findings.findings().iter().map(|finding| finding.message()).collect();
    assert_eq!(
        messages,
        [
            "context `a` has at least 3 and at most 1 workers",
            "context `a` has goals twice",
            "the shares of all contexts together are 1.250, and there is 1 to share",
        ]
    );
    let missing = simulation.govern(Goals::new().context(GovernedContext::new("c"))).run().expect_err("there is none");
    assert!(format!("{missing:?}").contains("there is no context `c`"), "{missing:?}");
}

/// A graph with tasks of two contexts, some of them for one worker only, and each may wait for an earlier one.
fn graphs() -> impl Strategy<Value = TaskGraph> {
    let task = (0..2u16, prop::option::of(0..6u32), 1..20u64, prop::option::of(any::<prop::sample::Index>()));
    prop::collection::vec(task, 1..120).prop_map(|tasks| {
        let mut graph = TaskGraph::new("random");
        let kinds: Vec<_> = (1..20).map(|length| graph.add_kind(format!("k{length}"))).collect();
        for (number, (context, only, length, after)) in tasks.into_iter().enumerate() {
            let mut task = Task::new(kinds[length as usize - 1]).in_context(ContextId(context + 1));
            task.lengths = Lengths::default().with(Arch::CPU, ms(length));
            if let Some(worker) = only {
                task = task.only_on(Where::worker(worker));
            }
            if let Some(after) = after.filter(|_| number > 0) {
                task = task.after(TaskId(after.index(number) as u32));
            }
            graph.add_task(task);
        }
        graph
    })
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(64) })]
    /// Whatever tasks need, and whatever the goals are: every task runs, and equal simulations are equal.
    #[test]
    fn no_task_is_lost(
        graph in graphs(),
        share in 1..100u32,
        deadline in 1..300u64,
        period in 1..30u64,
        split in 0..6u32,
        policy in prop::sample::select(vec!["tree-eager", "tree-prio", "tree-ws", "tree-heft", "tree-dmdar"]),
    ) {
        let run = || {
            let goals = Goals::new()
                .context(goal("a", Goal::Share(f64::from(share) / 100.0)))
                .context(goal("b", Goal::Deadline(ms(deadline))))
                .period(ms(period));
            Simulation::new(graph.clone(), Platform::flat(6, ms(1)))
                .registry(stock::registry(Vec::new()))
                .policy(policy)
                .context(Context::new("a").workers(0..split))
                .context(Context::new("b").workers(split..6))
                .govern(goals)
                .run()
        };
        let outcome = run().map_err(|error| TestCaseError::fail(error.to_string()))?;
        prop_assert_eq!(outcome.workers.iter().map(|worker| worker.tasks).sum::<u64>(), graph.tasks.len() as u64);
        let governance = outcome.governance.clone().expect("there is a hypervisor");
        prop_assert!(governance.refusals.is_empty(), "{:?}", governance);
        prop_assert_eq!(Some(governance), run().expect("it ran before").governance);
    }
}

/// However busy the machine is, this is enough.
const PATIENCE: Duration = Duration::from_secs(60);

fn start(workers: usize) -> Runtime {
    builder(EAGER, workers, Vec::new()).quiet_period(PATIENCE).build().expect("it starts")
}

fn context(runtime: &Runtime, name: &str, workers: impl IntoIterator<Item = u32>) -> SchedContext {
    runtime.context(name).policy_value(policy(EAGER)).workers(workers).build().expect("the policy fits")
}

/// Waits until something holds.
fn until(what: &str, holds: impl Fn() -> bool) {
    let began = Instant::now();
    while !holds() {
        assert!(began.elapsed() < PATIENCE, "{what}");
        std::thread::yield_now();
    }
}

#[test]
fn a_running_context_gets_its_share_and_no_task_is_lost() {
    let runtime = builder(EAGER, 4, Vec::new()).quiet_period(PATIENCE).trace(100_000).build().expect("it starts");
    let (a, b) = (context(&runtime, "a", 0..2), context(&runtime, "b", 2..4));
    let done = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&done);
    let note = runtime.codelet::<(), ()>("note").cpu("note", move |_, ()| _ = count.fetch_add(1, Relaxed)).build();
    let hold = Hold::new(&runtime);
    // Every worker is busy, so the tasks wait.
    let held: Vec<_> = [&a, &a, &b, &b].iter().map(|context| hold.worker_of(context)).collect();
    for context in [&a, &b] {
        for _ in 0..200 {
            runtime.task(&note, ()).context(context).submit().expect("the task is sound");
        }
    }
    // This one needs a worker that the other context would get else.
    runtime.task(&note, ()).only_on(Where::worker(2)).context(&b).submit().expect("the task is sound");
    let goals = Goals::new().context(goal("a", Goal::Share(0.75))).context(goal("b", Goal::Share(0.25))).period(ms(1));
    let governor = runtime.govern(goals).expect("the goals are sound");
    until("context a gets a third worker", || b.workers().len() == 1);
    assert_eq!((a.workers(), b.workers()), (vec![0, 1, 3], vec![2]));
    drop(held);
    runtime.wait_all().expect("every task runs");
    assert_eq!(done.load(Relaxed), 401);
    let governance = governor.finish();
    assert_eq!(marks(&runtime.take_trace().expect("it is recorded")), expected_marks(&governance));
    let moved = &governance.moves[0];
    assert_eq!((moved.worker, moved.from.as_deref(), &*moved.to), (WorkerId(3), Some("b"), "a"), "{governance:?}");
    assert!(governance.attained.iter().all(|attained| attained.end.is_some()), "{governance:?}");
}

#[test]
fn a_running_context_without_able_workers_gets_them() {
    let runtime = start(3);
    let (a, b) = (context(&runtime, "a", [0, 1, 2]), context(&runtime, "b", []));
    let note = runtime.codelet::<(), ()>("note").cpu("note", |_, ()| {}).build();
    let goals = Goals::new().context(GovernedContext::new("a")).context(GovernedContext::new("b")).period(ms(1));
    let governor = runtime.govern(goals).expect("the goals are sound");
    for _ in 0..10 {
        for worker in 0..3 {
            runtime.task(&note, ()).only_on(Where::worker(worker)).context(&b).submit().expect("the task is sound");
        }
        b.wait_all().expect("workers come");
    }
    assert_eq!((a.workers(), b.stats().finished), (vec![0, 1, 2], 30), "a context without tasks lends only");
    assert!(governor.finish().moves.iter().all(|moved| moved.from.is_none() && moved.to == "b"));
}

#[test]
fn a_running_deadline_uses_the_lengths_that_models_expect() {
    let runtime = start(4);
    let (a, b) = (context(&runtime, "a", [0]), context(&runtime, "b", 1..4));
    let hold = Hold::lasting(&runtime, Duration::from_secs(3600));
    // All workers, so that none that joins executes a task before the others are submitted.
    let held = [hold.worker_of(&a), hold.worker_of(&b), hold.worker_of(&b), hold.worker_of(&b)];
    // An hour of work in 80 minutes takes one worker; with the tasks that follow, it takes three.
    let goals = || {
        Goals::new().context(goal("a", Goal::Deadline(Duration::from_secs(5400)))).context(GovernedContext::new("b"))
    };
    let governor = runtime.govern(goals().period(ms(1))).expect("the goals are sound");
    let long = runtime.codelet::<(), ()>("long").cpu("long", |_, ()| {});
    let long = long.estimate(Arch::CPU, Duration::from_secs(3600)).build();
    for _ in 0..3 {
        runtime.task(&long, ()).context(&a).submit().expect("the task is sound");
    }
    until("context a gets more workers", || a.workers().len() >= 3);
    drop(held);
    runtime.wait_all().expect("every task runs");
    assert_eq!(governor.finish().attained[0].met, Some(true));
}

#[test]
fn wrong_goals_of_a_runtime_are_reported() {
    let runtime = start(2);
    let wrong = runtime.govern(Goals::new().context(goal("solver", Goal::Gflops(1.0)))).expect_err("there is none");
    let ContextError::Goals(findings) = wrong else { panic!("these are findings: {wrong:?}") };
    let messages: Vec<&str> = findings.findings().iter().map(|finding| finding.message()).collect();
    assert_eq!(
        messages,
        ["there is no context `solver`", "the operations of a task of context `solver` are not known"]
    );
}

#[test]
fn a_governor_ends_with_its_runtime_and_outlives_contexts() {
    let runtime = start(2);
    let short = context(&runtime, "short", [0]);
    let goals = Goals::new().context(goal("short", Goal::Share(0.5))).context(GovernedContext::new("default"));
    let governor = runtime.govern(goals.period(ms(1))).expect("the goals are sound");
    short.delete().expect("it has no tasks");
    drop(runtime);
    assert!(governor.finish().attained.iter().all(|attained| attained.met.is_none()));
}

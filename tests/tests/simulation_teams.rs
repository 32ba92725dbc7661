//! Simulations of parallel tasks: the members of a team are busy together, from a common start to the end.

use sched_host::graph::generate::cholesky;
use sched_host::graph::{ContextId, Task, TaskGraph};
use sched_host::sim::platform::{KernelTime, Parallel, find};
use sched_host::sim::{Context, Platform, SimOutcome, SimRecorder, Simulation};
use sched_host::trace::{Activity, Digest, Event, EventLog, Observer, Span, Stamped, Timeline};
use sched_tests::{place, program, stock};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

const MS: u64 = 1_000_000;

/// One queue for all workers and teams.
const TEAMS: &str = r#"fifo { eager { each "worker" { worker }; each "combined-worker" { combined-worker } } }"#;

fn run(graph: &TaskGraph, platform: &Platform, policy: &str) -> (SimOutcome, EventLog) {
    let mut log = EventLog::default();
    let simulation = Simulation::new(graph.clone(), platform.clone()).registry(stock::registry(Vec::new()));
    let simulation =
        if policy.contains('{') { simulation.policy_value(stock::policy(policy)) } else { simulation.policy(policy) };
    let outcome = simulation.observe(&mut log).expect("it runs to the end");
    (outcome, log)
}

/// The workers and times of each task; all members of a team at the same time, and no worker two tasks at once.
fn teams(log: &EventLog) -> BTreeMap<u32, (Vec<u32>, u64, u64)> {
    let mut teams: BTreeMap<u32, (Vec<u32>, u64, u64)> = BTreeMap::new();
    let mut ended: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
    let mut busy: BTreeMap<u32, u32> = BTreeMap::new();
    for Stamped { nanos, event } in &log.events {
        match event {
            Event::Started { task, worker, .. } => {
                let number = place(*task) as u32;
                let (members, start, _) = teams.entry(number).or_insert((Vec::new(), *nanos, 0));
                assert_eq!(start, nanos, "all members of {task} start at once");
                members.push(worker.0);
                assert_eq!(busy.insert(worker.0, number), None, "{worker} executes two tasks at once");
            }
            Event::Ended { task, worker } => {
                let number = place(*task) as u32;
                assert_eq!(busy.remove(&worker.0), Some(number));
                ended.entry(number).or_default().push(worker.0);
                let of_task = teams.get_mut(&number).expect("it started");
                assert!(of_task.2 == 0 || of_task.2 == *nanos, "all members of {task} end at once");
                of_task.2 = *nanos;
            }
            _ => {}
        }
    }
    for (task, (members, ..)) in &teams {
        assert_eq!(ended.get(task), Some(members), "task {task}");
    }
    teams
}

/// A kernel of 10 ms that takes two workers 6 ms and four 3 ms.
fn four_workers() -> Platform {
    let text = r#"platform "four" {
        memory "ram"
        workers "cpu" count=4
        kernel "wide" {
            on "cpu" time="10 ms"
            on "cpu" team=2 time="6 ms"
            on "cpu" team=4 time="3 ms"
        }
        kernel "*" { on "cpu" time="10 ms" }
    }"#;
    Platform::parse("four.kdl", text).expect("the text is sound")
}

#[test]
fn a_parallel_task_keeps_all_members_busy_from_a_common_start_to_the_end() {
    let mut graph = TaskGraph::new("one");
    let wide = graph.add_kind("wide");
    graph.add_task(Task::new(wide));
    let (outcome, log) = run(&graph, &four_workers(), "tree-pheft");
    assert_eq!(teams(&log)[&0], (vec![0, 1, 2, 3], 0, 3 * MS));
    assert_eq!(outcome.makespan, Duration::from_millis(3));
    assert_eq!(outcome.critical_path, Duration::from_millis(3));
    assert!(outcome.workers.iter().all(|worker| worker.busy == Duration::from_millis(3)));
    assert_eq!(outcome.workers.iter().map(|worker| worker.tasks).sum::<u64>(), 1, "the first member executed it");
}

#[test]
fn a_smaller_team_is_chosen_where_it_is_faster() {
    let text = r#"platform "four" {
        memory "ram"
        workers "cpu" count=4
        kernel "wide" {
            on "cpu" time="10 ms"
            on "cpu" team=2 time="3 ms"
            on "cpu" team=4 time="6 ms"
        }
    }"#;
    let platform = Platform::parse("four.kdl", text).expect("the text is sound");
    let mut graph = TaskGraph::new("two");
    let wide = graph.add_kind("wide");
    (0..2).for_each(|_| {
        graph.add_task(Task::new(wide));
    });
    let (_, log) = run(&graph, &platform, "tree-pheft");
    let teams = teams(&log);
    assert_eq!((&teams[&0], &teams[&1]), (&(vec![0, 1], 0, 3 * MS), &(vec![2, 3], 0, 3 * MS)));
}

/// A task for one worker, submitted 1 ms before one for both.
fn one_alone_one_together() -> (TaskGraph, Platform) {
    let mut graph = TaskGraph::new("one alone, one together");
    let (alone, wide) = (graph.add_kind("alone"), graph.add_kind("wide"));
    graph.add_task(Task::new(alone));
    graph.add_task(Task::new(wide));
    let mut platform = Platform::flat(2, Duration::from_millis(10));
    platform.overheads.submission = Duration::from_millis(1);
    platform.kernels.set("wide", 0, KernelTime::Fixed(Duration::from_millis(10)));
    platform.kernels.set_parallel("wide", 0, Parallel::Amdahl { share: 1.0, most: 8 });
    (graph, platform)
}

#[test]
fn who_comes_first_waits_for_the_others() {
    let (graph, platform) = one_alone_one_together();
    let (outcome, log) = run(&graph, &platform, TEAMS);
    let teams = teams(&log);
    assert_eq!(teams[&0], (vec![0], 0, 10 * MS));
    assert_eq!(teams[&1], (vec![0, 1], 10 * MS, 15 * MS));
    assert_eq!(outcome.workers[1].idle, Duration::from_millis(10));
    let joins = |event| matches!(event, Event::Pulled { task, .. } if place(task) == 1);
    let joined: Vec<u64> = log.events.iter().filter(|at| joins(at.event)).map(|at| at.nanos).collect();
    assert_eq!(joined, [MS, 10 * MS]);
}

#[test]
fn data_of_a_parallel_task_goes_to_its_first_member() {
    let text = r#"platform "numa" {
        memory "far"
        memory "near"
        link "far" "near" bandwidth="1 GB/s"
        workers "cpu" count=2 memory="near"
        kernel "*" { on "cpu" time="4 ms" parallel=1.0; }
    }"#;
    let platform = Platform::parse("numa.kdl", text).expect("the text is sound");
    let mut graph = TaskGraph::new("one");
    let kind = graph.add_kind("k");
    let data = graph.add_data(sched_host::graph::Datum::new(1_000_000));
    graph.add_task(Task::new(kind).access(data, sched_host::graph::AccessMode::Read));
    let (_, log) = run(&graph, &platform, "tree-pheft");
    assert_eq!(teams(&log)[&0], (vec![0, 1], MS, 3 * MS));
}

#[test]
fn tasks_of_a_kind_that_is_not_parallel_run_on_one_worker() {
    let mut graph = TaskGraph::new("narrow");
    let narrow = graph.add_kind("narrow");
    graph.add_task(Task::new(narrow));
    let (outcome, log) = run(&graph, &four_workers(), "tree-pheft");
    assert_eq!(teams(&log)[&0].0, [0]);
    assert_eq!(outcome.makespan, Duration::from_millis(10));
}

#[test]
fn simulations_with_teams_are_the_same_in_each_run_and_from_plugins() {
    let graph = cholesky(6, 960);
    let machine = find("numa-2x12").expect("it is shipped").with_parallel(0.9);
    for policy in ["tree-pheft", TEAMS] {
        let (outcome, log) = run(&graph, &machine, policy);
        assert_eq!(log, run(&graph, &machine, policy).1, "{policy}");
        let teams = teams(&log);
        assert_eq!(teams.len(), graph.tasks.len(), "each task runs once");
        assert!(teams.values().any(|(members, ..)| members.len() > 1), "{policy}: some run on teams");
        let bounds = machine.bounds(&graph, &graph.dependencies()).expect("the program is solved");
        assert!(outcome.makespan.as_secs_f64() >= bounds.best() * 0.999_999, "{policy}: below {bounds:?}");
        let dependencies = graph.dependencies();
        for task in graph.ids() {
            for before in dependencies.predecessors(task) {
                assert!(teams[&before.0].2 <= teams[&task.0].1, "task {} began before {} ended", task.0, before.0);
            }
        }
    }
    let (_, log) = run(&graph, &machine, "tree-pheft");
    let mut digest = Digest::default();
    log.events.iter().for_each(|stamped| digest.event(stamped.nanos, &stamped.event));
    let line = "simulate cholesky --tiles 6 --platform numa-2x12 --policy tree-pheft --parallel 0.9 --json";
    let report = program::sched(&line.split(' ').collect::<Vec<_>>()).json();
    assert_eq!(report["runs"][0]["digest"], format!("{:016x}", digest.value()));
}

#[test]
fn teams_pay_where_tasks_are_few() {
    let graph = cholesky(8, 960);
    let machine = find("numa-2x12").expect("it is shipped");
    let (alone, _) = run(&graph, &machine, "tree-pheft");
    let (together, _) = run(&graph, &machine.with_parallel(0.95), "tree-pheft");
    assert!(together.makespan < alone.makespan, "{:?} and {:?}", together.makespan, alone.makespan);
}

#[test]
fn a_worker_does_its_own_tasks_and_those_of_its_teams_in_turn() {
    let mut graph = TaskGraph::new("together and alone");
    let (wide, narrow) = (graph.add_kind("wide"), graph.add_kind("narrow"));
    for _ in 0..6 {
        graph.add_task(Task::new(wide).in_context(ContextId(1)));
    }
    for _ in 0..3 {
        graph.add_task(Task::new(narrow).in_context(ContextId(2)));
    }
    let mut platform = Platform::flat(2, Duration::from_millis(10));
    platform.kernels.set("wide", 0, KernelTime::Fixed(Duration::from_millis(10)));
    platform.kernels.set_parallel("wide", 0, Parallel::Amdahl { share: 1.0, most: 2 });
    let mut log = EventLog::default();
    let simulation = Simulation::new(graph, platform)
        .registry(stock::registry(Vec::new()))
        .context(Context::new("together").policy("tree-pheft"))
        .context(Context::new("alone").policy("tree-eager").workers([1]));
    simulation.observe(&mut log).expect("it runs to the end");
    let teams = teams(&log);
    let begun = |tasks: std::ops::Range<u32>| tasks.map(|task| teams[&task].1 / MS).collect::<Vec<_>>();
    assert_eq!(begun(0..6), [0, 15, 30, 45, 50, 55]);
    assert_eq!(begun(6..9), [5, 20, 35]);
}

#[test]
fn teams_serve_contexts_in_turn() {
    let mut graph = TaskGraph::new("two at once");
    let kind = graph.add_kind("k");
    for _ in 0..2 {
        for context in [1, 1, 2, 2] {
            graph.add_task(Task::new(kind).in_context(ContextId(context)));
        }
    }
    let platform = Platform::flat(2, Duration::from_millis(10)).with_parallel(1.0);
    let mut log = EventLog::default();
    let context = |name| Context::new(name).policy("tree-pheft");
    let simulation = Simulation::new(graph.clone(), platform).registry(stock::registry(Vec::new()));
    simulation.context(context("a")).context(context("b")).observe(&mut log).expect("it runs to the end");
    let mut begun: Vec<(u64, ContextId)> =
        teams(&log).iter().map(|(task, (_, start, _))| (*start, graph.tasks[*task as usize].context)).collect();
    begun.sort_unstable();
    let order: Vec<u16> = begun.into_iter().map(|(_, context)| context.0).collect();
    assert_eq!(order, [1, 2, 1, 2, 1, 2, 1, 2]);
}

#[test]
fn a_trace_shows_who_waits_for_a_team_and_all_who_execute_its_task() {
    let (graph, platform) = one_alone_one_together();
    let (graph, platform) = (Arc::new(graph), Arc::new(platform));
    let mut recorder = SimRecorder::new(Arc::clone(&graph), Arc::clone(&platform));
    let simulation = Simulation::new(graph, platform).registry(stock::registry(Vec::new()));
    let simulation = simulation.policy_value(stock::policy(TEAMS)).tree_observer(recorder.tree_observer());
    simulation.observe(&mut recorder).expect("it runs to the end");
    let trace = recorder.finish("teams");
    let what = |activity| match activity {
        Activity::Task { task, codelet } => format!("{task} of codelet {}", codelet.0),
        Activity::Fetching { task } => format!("waits for {task}"),
        Activity::Idle => "idle".to_owned(),
    };
    let line = |span: &Span| format!("{} to {} ms: {}", span.begin / MS, span.end / MS, what(span.activity));
    let spans = Timeline::of(&trace).workers;
    let lines: Vec<String> = spans.iter().map(|spans| spans.iter().map(line).collect::<Vec<_>>().join("; ")).collect();
    insta::assert_snapshot!(lines.join("\n"), @r"
    0 to 10 ms: task 1 of codelet 0; 10 to 15 ms: task 2 of codelet 1
    0 to 1 ms: idle; 1 to 10 ms: waits for task 2; 10 to 15 ms: task 2 of codelet 1
    ");
}

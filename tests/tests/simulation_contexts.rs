//! Simulations with several scheduling contexts: deterministic, every task once through swaps, shared workers served in
//! turn, and agreement with a real run.

use proptest::prelude::*;
use sched_core::WorkerId;
use sched_host::graph::generate::{Layered, cholesky, independent, layered};
use sched_host::graph::{ContextId, Task, TaskGraph, TaskId, Where};
use sched_host::policy::{PolicyEdit, library};
use sched_host::sim::platform::find;
use sched_host::sim::{Context, Platform, SimError, SimOutcome, Simulation, When};
use sched_host::trace::{Digest, Event, EventLog, Observer, Stamped};
use sched_tests::{place, program, stock};
use std::collections::BTreeSet;
use std::ops::RangeInclusive;
use std::time::Duration;

const MS: u64 = 1_000_000;

fn ms(count: u64) -> Duration {
    Duration::from_millis(count)
}

fn start(graph: &TaskGraph, platform: &Platform) -> Simulation {
    Simulation::new(graph.clone(), platform.clone()).registry(stock::registry(Vec::new()))
}

fn run(simulation: Simulation) -> Result<(SimOutcome, EventLog), SimError> {
    let mut log = EventLog::default();
    Ok((simulation.observe(&mut log)?, log))
}

fn copies(graph: &TaskGraph, count: usize) -> TaskGraph {
    TaskGraph::side_by_side("copies", &vec![graph; count])
}

/// Tasks and workers, in the order in which the tasks began; and that each ran once, after all that it waits for.
fn started(graph: &TaskGraph, log: &EventLog) -> Vec<(u64, u32, u32)> {
    let (mut started, mut ended) = (Vec::new(), vec![false; graph.tasks.len()]);
    let dependencies = graph.dependencies();
    for Stamped { nanos, event } in &log.events {
        match event {
            Event::Started { task, worker, .. } => {
                let task = TaskId(place(*task) as u32);
                assert!(dependencies.predecessors(task).iter().all(|before| ended[before.index()]));
                started.push((*nanos, task.0, worker.0));
            }
            Event::Ended { task, .. } => ended[place(*task)] = true,
            _ => {}
        }
    }
    assert!(ended.iter().all(|ended| *ended), "every task ends");
    let tasks: BTreeSet<u32> = started.iter().map(|(_, task, _)| *task).collect();
    let alone = started.iter().filter(|(_, task, _)| !is_together(log, *task)).count();
    assert_eq!(alone, tasks.iter().filter(|task| !is_together(log, **task)).count(), "no task runs twice");
    started
}

/// Whether a team executed the task.
fn is_together(log: &EventLog, task: u32) -> bool {
    let pulls = |event| matches!(event, Event::Pulled { task: pulled, .. } if pulled == TaskId(task).submitted());
    log.events.iter().filter(|stamped| pulls(stamped.event)).count() > 1
}

#[test]
fn workers_do_tasks_of_their_contexts_only() {
    let graph = copies(&cholesky(6, 960), 2);
    let simulation = start(&graph, &find("numa-2x12").expect("it is shipped"))
        .context(Context::new("a").policy("tree-ws").workers(0..12))
        .context(Context::new("b").policy("tree-heft").workers(8..24));
    let (outcome, log) = run(simulation).expect("it runs to the end");
    for (_, task, worker) in started(&graph, &log) {
        let workers = if graph.task(TaskId(task)).context == ContextId(1) { 0..12 } else { 8..24 };
        assert!(workers.contains(&worker), "worker {worker} executed task {task}");
    }
    let [default, a, b] = &outcome.contexts[..] else { panic!("there are three contexts") };
    assert_eq!((default.name.as_str(), default.tasks, default.makespan), ("default", 0, Duration::ZERO));
    assert_eq!((a.name.as_str(), a.policy.as_str(), a.tasks), ("a", "tree-ws", 56));
    assert_eq!((b.name.as_str(), b.policy.as_str(), b.workers.len()), ("b", "tree-heft", 16));
    // The second one's first task is submitted behind the first one's.
    assert!(outcome.makespan - a.makespan.max(b.makespan) <= Duration::from_nanos(400), "{outcome:?}");
}

#[test]
fn a_shared_worker_serves_its_contexts_in_turn() {
    let graph = copies(&independent(6, ms(1)), 3);
    let mut simulation = start(&graph, &Platform::flat(1, ms(1)));
    for name in ["a", "b", "c"] {
        simulation = simulation.context(Context::new(name).policy("tree-eager"));
    }
    let (_, log) = run(simulation).expect("it runs to the end");
    let order: Vec<u16> =
        started(&graph, &log).iter().map(|(_, task, _)| graph.tasks[*task as usize].context.0).collect();
    assert!(order.chunks(3).all(|three| three == [1, 2, 3]), "{order:?}");
}

#[test]
fn a_worker_with_two_contexts_wakes_others_for_the_tasks_that_it_leaves() {
    // Both contexts wake worker 0, which can do one of the tasks only.
    let graph = copies(&independent(1, ms(1)), 2);
    let simulation = start(&graph, &Platform::flat(2, ms(1))).context(Context::new("a")).context(Context::new("b"));
    assert_eq!(run(simulation).expect("it runs to the end").0.makespan, ms(1));
}

#[test]
fn the_policy_of_a_simulated_context_is_edited_at_its_time() {
    let mut graph = independent(20, ms(1));
    graph.tasks.iter_mut().zip(0..).for_each(|(task, priority)| task.priority = priority);
    let plain = stock::policy(r#"fifo sorted=#false { eager { each "worker" { worker } } }"#);
    let order = |when| {
        let edit = PolicyEdit::new().add_parent("eager", "prio").remove_parent("fifo");
        let simulation = start(&graph, &Platform::flat(1, ms(1))).policy_value(plain.clone());
        let (outcome, log) = run(simulation.edit_policy("default", edit, when)).expect("it runs to the end");
        assert!(outcome.contexts[0].swaps.is_empty(), "it is the same policy in another form: {outcome:?}");
        started(&graph, &log).into_iter().map(|(_, task, _)| task).collect::<Vec<_>>()
    };
    let expected: Vec<u32> = (0..8).chain((8..20).rev()).collect();
    assert_eq!(order(When::At(Duration::from_micros(7500))), expected, "the queue is one by priority from then on");
    assert_eq!(order(When::AfterTasks(7)), expected, "the next task was taken when the seventh ended");
    assert_eq!(order(When::At(ms(100))), (0..20).collect::<Vec<_>>(), "all tasks have ended before");

    let edited =
        |context, edit| run(start(&graph, &Platform::flat(1, ms(1))).edit_policy(context, edit, When::At(ms(2))));
    let leafless = edited("default", PolicyEdit::new().remove_child("eager"));
    let error = leafless.expect_err("the worker would have no leaf").to_string();
    assert_eq!(error, "context `default` cannot be changed at 2ms");
    let nobody = edited("defualt", PolicyEdit::new().add_parent("worker", "best-implementation"));
    assert!(matches!(nobody, Err(SimError::NoContext { .. })), "{nobody:?}");
}

#[test]
fn a_swap_of_the_policy_happens_at_its_time() {
    // One task after the other, which the second policy gives to both workers at once.
    let mut graph = TaskGraph::new("chain");
    let kind = graph.add_kind("k");
    graph.add_task(Task::new(kind));
    for before in 0..5 {
        graph.add_task(Task::new(kind).after(TaskId(before)));
    }
    let machine = Platform::flat(2, ms(10)).with_parallel(1.0);
    let begun = |when| {
        let simulation = start(&graph, &machine).policy("tree-eager").swap_policy("default", "tree-pheft", when);
        let (outcome, log) = run(simulation).expect("it runs to the end");
        let begun: BTreeSet<u64> = started(&graph, &log).iter().map(|(nanos, ..)| nanos / MS).collect();
        (begun.into_iter().collect::<Vec<_>>(), outcome)
    };
    let (by_time, outcome) = begun(When::At(ms(25)));
    let swap = &outcome.contexts[0].swaps[0];
    assert_eq!((swap.policy.as_str(), swap.at, swap.after_tasks), ("tree-pheft", ms(25), 2));
    assert_eq!((by_time, outcome.makespan), (vec![0, 10, 20, 30, 35, 40], ms(45)));
    let (by_tasks, _) = begun(When::AfterTasks(2));
    assert_eq!(by_tasks, [0, 10, 20, 30, 35, 40], "the third task is pulled at the same moment");
    let (late, outcome) = begun(When::At(ms(61)));
    assert_eq!(late, [0, 10, 20, 30, 40, 50]);
    assert_eq!((outcome.contexts[0].swaps.len(), outcome.makespan), (0, ms(60)), "nothing is left to schedule");
}

#[test]
fn workers_come_and_go() {
    let mut graph = TaskGraph::new("ten");
    let kind = graph.add_kind("k");
    for _ in 0..10 {
        graph.add_task(Task::new(kind).in_context(ContextId(1)));
    }
    let simulation = start(&graph, &Platform::flat(3, ms(1)))
        .context(Context::new("c").policy("tree-ws").workers([]))
        .add_workers("c", [1], When::At(ms(5)))
        .add_workers("c", [0, 2], When::AfterTasks(2))
        .remove_workers("c", [1], When::At(Duration::from_micros(7500)));
    let (outcome, log) = run(simulation).expect("it runs to the end");
    let mut begun: Vec<(u64, u32)> = started(&graph, &log).iter().map(|(at, _, worker)| (at / MS, *worker)).collect();
    begun.sort_unstable();
    let expected = [(5, 1), (6, 1), (7, 0), (7, 1), (7, 2), (8, 0), (8, 2), (9, 0), (9, 2), (10, 0)];
    assert_eq!(begun.len(), 10);
    assert_eq!(begun[..9], expected[..9], "worker 1 leaves when its third task is done");
    assert_eq!(outcome.contexts[1].workers, [0, 2].map(WorkerId));
    assert_eq!(outcome.contexts[1].makespan, ms(11), "from the submission on, also while nobody is there");
}

#[test]
fn simulations_with_contexts_are_the_same_in_each_run_and_from_plugins() {
    let graph = copies(&cholesky(6, 960), 2);
    let machine = find("numa-2x12").expect("it is shipped").with_parallel(0.9);
    let simulation = || {
        start(&graph, &machine)
            .seed(42)
            .policy("tree-random")
            .context(Context::new("a").workers(0..6))
            .context(Context::new("b").policy("tree-pheft").workers(4..12))
            .swap_policy("a", "tree-ws", When::At(ms(40)))
            .swap_policy("b", "tree-ws", When::At(ms(40)))
    };
    let (outcome, log) = run(simulation()).expect("it runs to the end");
    assert!(log == run(simulation()).expect("it runs to the end").1, "the same events");
    started(&graph, &log);
    assert!((0..graph.tasks.len() as u32).any(|task| is_together(&log, task)), "some tasks run on teams");
    assert_eq!(outcome.contexts[2].swaps[0].policy, "tree-ws");
    let mut digest = Digest::default();
    log.events.iter().for_each(|stamped| digest.event(stamped.nanos, &stamped.event));
    let line = "simulate cholesky --tiles 6 --platform numa-2x12 --parallel 0.9 --policy tree-random --json \
                --context a:workers=0-5 --context b:policy=tree-pheft,workers=4-11 --swap-to tree-ws@40ms";
    let mut report = program::sched(&line.split_whitespace().collect::<Vec<_>>()).json();
    let report = report["runs"][0].take();
    assert_eq!(report["digest"], format!("{:016x}", digest.value()));
    let [a, b] = report["contexts"].as_array().map_or(&[][..], Vec::as_slice) else { panic!("two contexts: {report}") };
    assert_eq!((&a["context"], &a["policy"], &a["tasks"]), (&"a".into(), &"tree-random".into(), &56.into()));
    assert_eq!(b["swap"]["at_s"], 0.04);
    assert_eq!(b["makespan_s"], outcome.contexts[2].makespan.as_secs_f64());
}

#[test]
fn half_of_the_tasks_are_the_time_to_swap_if_no_other_is_said() {
    let line = "simulate independent --tasks 40 --platform numa-2x12 --context a:workers=0-3 --context b:workers=4-7 \
                --swap-to tree-prio";
    let ran = program::sched(&line.split_whitespace().collect::<Vec<_>>());
    assert_eq!(ran.code, 0, "{}", ran.err);
    let of = |context: &str| ran.out.lines().find(|line| line.starts_with(context)).unwrap_or_default().to_owned();
    assert!(of("a ").contains("tree-ws → tree-prio at 0.00"), "{}", ran.out);
    assert!(of("b ").contains("after 20 tasks"), "{}", ran.out);
}

/// A run of the runtime, and a simulation of the same tasks in the same contexts.
#[test]
fn the_workers_of_a_context_do_the_same_tasks_in_a_simulation_and_in_a_run() {
    let contexts = [("a", "tree-ws", 0..2), ("b", "tree-eager", 2..3), ("c", "tree-prio", 3..4)];
    let tasks = 60;
    let runtime = stock::builder("fifo { eager { each \"worker\" { worker } } }", 4, Vec::new()).trace(10_000);
    let runtime = runtime.build().expect("the runtime starts");
    let codelet = runtime.codelet::<(), ()>("k").cpu("k", |_, ()| {}).build();
    let made: Vec<_> = contexts
        .iter()
        .map(|(name, policy, workers)| {
            let context = runtime.context(*name).policy(*policy).workers(workers.clone());
            context.build().expect("the policy fits")
        })
        .collect();
    let mut graph = TaskGraph::new("the same");
    let kind = graph.add_kind("k");
    for number in 0..tasks {
        let context = number * 7 % 3;
        runtime.task(&codelet, ()).context(&made[context]).submit().expect("the task is sound");
        graph.add_task(Task::new(kind).in_context(ContextId(context as u16 + 1)));
    }
    runtime.wait_all().expect("all tasks end");
    let trace = runtime.take_trace().expect("it was asked for");
    let mut simulation = start(&graph, &Platform::flat(4, ms(1)));
    for (name, policy, workers) in contexts {
        simulation = simulation.context(Context::new(name).policy(policy).workers(workers));
    }
    let (_, log) = run(simulation).expect("it runs to the end");
    // Tasks by the group of workers that executed them: {0, 1}, {2} and {3}.
    let group = |worker: u32| worker.saturating_sub(1);
    let mut real: [BTreeSet<u64>; 3] = Default::default();
    for stamped in &trace.events {
        if let Event::Started { task, worker, .. } = stamped.event {
            real[group(worker.0) as usize].insert(task.sequence());
        }
    }
    let mut simulated: [BTreeSet<u64>; 3] = Default::default();
    for (_, task, worker) in started(&graph, &log) {
        simulated[group(worker) as usize].insert(u64::from(task) + 1);
    }
    assert_eq!(real, simulated);
    assert!(real.iter().all(|tasks| tasks.len() == 20));
}

#[test]
fn what_is_wrong_with_contexts_is_said() {
    let mut graph = TaskGraph::new("one");
    let kind = graph.add_kind("k");
    graph.add_task(Task { priority: 7, ..Task::new(kind) }.in_context(ContextId(1)));
    let machine = Platform::flat(2, ms(1));
    let error = |simulation: Simulation| {
        let error = simulation.run().expect_err("it is wrong");
        let source = std::error::Error::source(&error).map_or(String::new(), |source| format!(": {source}"));
        let help = miette::Diagnostic::help(&error).map_or(String::new(), |help| format!(" ({help})"));
        format!("{error}{source}{help}")
    };
    let with = |context| start(&graph, &machine).context(context);
    let alpha = || Context::new("alpha");
    insta::assert_snapshot!(error(start(&graph, &machine)), @"task 1 belongs to context 1, and the simulation has contexts 0 to 0 (add a context to the simulation for each number that tasks of the graph have)");
    insta::assert_snapshot!(error(with(alpha()).context(alpha())), @"context `alpha` cannot be made: there is a context `alpha` already");
    insta::assert_snapshot!(error(with(Context::new("default"))), @"context `default` cannot be made: there is a context `default` already");
    insta::assert_snapshot!(error(with(alpha().workers([1, 2]))), @"context `alpha` cannot be made: there is no worker 2, only workers 0 to 1");
    insta::assert_snapshot!(error(with(alpha().policy("tree-wss"))), @"context `alpha` cannot be made: policy `tree-wss`: 1 error");
    insta::assert_snapshot!(error(with(alpha().priorities(RangeInclusive::new(9, 0)))), @"context `alpha` cannot be made: the priorities of context `alpha` range from 9 to 0, which is nothing");
    insta::assert_snapshot!(error(with(alpha().priorities(0..=5))), @"task 1 has priority 7; context `alpha` has 0 to 5 (choose a priority in that range, or change the range of the context)");
    insta::assert_snapshot!(error(with(alpha()).swap_policy("alpa", "tree-ws", When::At(ms(1)))), @"there is no context `alpa` (did you mean `alpha`?)");
    insta::assert_snapshot!(error(with(alpha()).remove_workers("alpha", [5], When::At(ms(1)))), @"context `alpha` cannot be changed: there is no worker 5, only workers 0 to 1");
    let mut restricted = graph.clone();
    restricted.tasks[0].only = Some(Box::new(Where::worker(1)));
    let with_first = || start(&restricted, &machine).context(alpha().workers([0]));
    insta::assert_snapshot!(error(with_first()), @"no worker of context `alpha` may execute 1 task of kind `k` (first task 1, restricted to 1) (give the context a worker that can execute them, or restrict them to other places)");
    let more = with_first().add_workers("alpha", [1], When::At(ms(1)));
    assert!(more.run().is_ok(), "the second worker comes later");
    insta::assert_snapshot!(error(with(alpha().workers([]))), @r"
    the scheduler kept 1 of 1 tasks: nothing more can happen at 0 ns
      context `alpha` has tasks and no workers (give these contexts workers)
    ");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    /// Whatever the policies, and whenever they and the workers are exchanged: each task runs once, after those that it
    /// waits for, and two runs are the same.
    #[test]
    fn every_task_runs_once_through_swaps(
        policies in prop::array::uniform3(0usize..library().len()),
        (layers, width, seed) in (1usize..6, 1usize..7, any::<u64>()),
        changes in prop::collection::vec((0usize..2, 0u64..2_000, 0usize..4, 0u32..5), 0..6),
        share in prop::option::of(0.5f64..1.0),
    ) {
        let part = layered(Layered { layers, width, density: 0.4, length: Duration::from_micros(50), bytes: 8_000, seed });
        let graph = copies(&part, 2);
        let machine = share.into_iter().fold(Platform::flat(5, ms(1)), Platform::with_parallel);
        let name = |policy: usize| library()[policy].name;
        let simulation = || {
            let mut simulation = start(&graph, &machine)
                .seed(seed)
                .context(Context::new("a").policy(name(policies[0])).workers(0..3))
                .context(Context::new("b").policy(name(policies[1])).workers(1..5));
            for (context, micros, change, worker) in &changes {
                let (context, when) = (["a", "b"][*context], When::At(Duration::from_micros(*micros)));
                simulation = match change {
                    0 => simulation.swap_policy(context, name(policies[2]), when),
                    1 => simulation.add_workers(context, [*worker], when),
                    // One stays.
                    2 => simulation.remove_workers(context, [*worker].into_iter().filter(|worker| *worker != 2), when),
                    _ => simulation.swap_policy(context, "tree-pheft", When::AfterTasks(micros % 10)),
                };
            }
            simulation
        };
        let (outcome, log) = run(simulation()).expect("it runs to the end");
        started(&graph, &log);
        prop_assert_eq!(outcome.workers.iter().map(|worker| worker.tasks).sum::<u64>(), graph.tasks.len() as u64);
        prop_assert_eq!(outcome.faults, []);
        prop_assert!(log == run(simulation()).expect("it runs to the end").1);
    }
}

#[test]
fn wrong_contexts_on_the_command_line_are_corrected() {
    let error = |code: i32, options: &[&str], expected: &[&str]| {
        let line = ["simulate", "cholesky", "--tiles", "3"];
        let ran = program::sched(&[&line[..], options].concat());
        assert_eq!(ran.code, code, "{options:?}: {}", ran.err);
        let words = ran.err.split_whitespace().collect::<Vec<_>>().join(" ");
        expected.iter().for_each(|expected| assert!(words.contains(expected), "{options:?}: {}", ran.err));
    };
    error(1, &["--context", "a:workers=0-50"], &["context `a` cannot be made", "there is no worker 12"]);
    error(1, &["--context", "a:policy=tree-eagr"], &["context `a` cannot be made", "did you mean `tree-eager`?"]);
    error(1, &["--context", "a", "--context", "a"], &["there is a context `a` already"]);
    error(
        1,
        &["--context", "a:workers=9", "--swap-to", "tree-hft"],
        &["1 of 2 policies cannot be used", "did you mean `tree-heft`?"],
    );
    let cuda = ["--context", "a:workers=0", "--where", "potrf=cuda"];
    error(
        1,
        &cuda,
        &["no worker of context `a` may execute 3 tasks of kind `potrf` (first task 1, restricted to cuda)"],
    );
    // A hypervisor has no other workers for it either.
    let governed = ["--context", "a:workers=0,share=0.5", "--where", "potrf=cuda"];
    error(1, &governed, &["no worker of context `a` may execute 3 tasks of kind `potrf`"]);
    error(2, &["--context", "a:wokers=1"], &["a context has no `wokers`: did you mean `workers`?"]);
    error(2, &["--swap-to", "tree-ws@noon"], &["`noon` is not a time"]);
    error(2, &["--parallel", "2"], &["must be a number from 0 to 1"]);
}

#[test]
fn contexts_that_share_a_worker_see_what_it_has_to_do_for_the_other() {
    let tasks = TaskGraph::side_by_side("both", &[&independent(20, ms(1)), &independent(20, ms(1))]);
    let simulation = start(&tasks, &Platform::flat(3, ms(1)));
    let context = |name: &str| Context::new(name).policy("tree-heft");
    let simulation = simulation.context(context("a").workers([0, 1])).context(context("b").workers([1, 2]));
    let (outcome, log) = run(simulation).expect("it runs to the end");
    assert_eq!(started(&tasks, &log).len(), 40);
    // 40 tasks on three workers take 14 ms. If neither context saw the other's, the shared worker would get 20 of them.
    assert!(outcome.makespan <= ms(15), "{:?}", outcome.makespan);
}

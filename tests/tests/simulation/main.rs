//! Simulations: deterministic events, correct times, and every task once, for every policy and any memory size.

mod data;
mod jobs;

use proptest::prelude::*;
use sched_core::{
    Arch, Build, BuildError, Child, Component, Family, Info, MemoryNode, Node, Offer, Params, Push, WorkerId,
};
use sched_host::graph::generate::{Layered, cholesky, independent, layered};
use sched_host::graph::{AccessMode, Datum, Lengths, Task, TaskGraph, TaskId, Where, WontUse};
use sched_host::memory::Reason;
use sched_host::policy::library;
use sched_host::sim::platform::{Costs, find};
use sched_host::sim::{Platform, SimError, SimOutcome, Simulation};
use sched_host::trace::{Digest, Event, EventLog, Observer, Stamped};
use sched_tests::{place, program, stock};
use std::sync::Arc;
use std::time::Duration;

const MS: u64 = 1_000_000;

fn run(graph: &TaskGraph, platform: &Platform, policy: &str, seed: u64) -> Result<(SimOutcome, EventLog), SimError> {
    let mut log = EventLog::default();
    let simulation = Simulation::new(graph.clone(), platform.clone()).registry(stock::registry(Vec::new())).seed(seed);
    let simulation =
        if policy.contains('{') { simulation.policy_value(stock::policy(policy)) } else { simulation.policy(policy) };
    Ok((simulation.observe(&mut log)?, log))
}

fn platform(text: &str) -> Platform {
    Platform::parse("test.kdl", &format!("platform \"test\" {{ {text} }}")).expect("the text is sound")
}

/// A core, and a device that is ten times as fast, behind a link of 1 GB/s.
fn core_and_device(device: &str) -> Platform {
    platform(&format!(
        r#"memory "ram"
        memory "gpu" {device}
        link "ram" "gpu" bandwidth="1 GB/s" latency="100 us"
        workers "cpu" arch="cpu" memory="ram"
        workers "gpu" arch="cuda" memory="gpu" pipeline=2
        kernel "slow" {{ on "cpu" time="10 ms" }}
        kernel "fast" {{ on "gpu" time="1 ms" }}"#
    ))
}

/// When each task started and ended, on which worker; and that each did both once, after all that it waits for.
fn times(graph: &TaskGraph, log: &EventLog) -> Vec<(u64, u64, u32)> {
    let mut times = vec![(u64::MAX, u64::MAX, 0); graph.tasks.len()];
    for Stamped { nanos, event } in &log.events {
        match event {
            Event::Started { task, worker, .. } => {
                let times = &mut times[place(*task)];
                assert_eq!(times.0, u64::MAX, "{task} started twice");
                *times = (*nanos, u64::MAX, worker.0);
            }
            Event::Ended { task, .. } => {
                let times = &mut times[place(*task)];
                assert_eq!(times.1, u64::MAX, "{task} ended twice");
                times.1 = *nanos;
            }
            _ => {}
        }
    }
    let dependencies = graph.dependencies();
    for (task, (start, end, _)) in times.iter().enumerate() {
        assert_ne!(*end, u64::MAX, "task {task} did not end");
        for before in dependencies.predecessors(TaskId(task as u32)) {
            assert!(times[before.index()].1 <= *start, "task {task} started before task {} ended", before.0);
        }
    }
    times
}

#[test]
fn the_same_seed_gives_the_same_events_and_another_one_others() {
    let (graph, machine) = (cholesky(6, 960), find("cpu9-gpu3").expect("it is shipped"));
    for policy in library() {
        let (_, first) = run(&graph, &machine, policy.name, 7).expect("it runs to the end");
        let (_, second) = run(&graph, &machine, policy.name, 7).expect("it runs to the end");
        assert!(first == second, "{}", policy.name);
        times(&graph, &first);
    }
    let random = |seed| run(&graph, &machine, "tree-random", seed).expect("it runs to the end").1;
    assert_ne!(random(7), random(8));
}

#[test]
fn plugins_and_components_in_the_program_give_the_same_events() {
    let (graph, machine) = (cholesky(5, 960), find("cpu9-gpu3").expect("it is shipped"));
    for policy in ["tree-eager", "tree-heft", "tree-random", "tree-ws"] {
        let (_, log) = run(&graph, &machine, policy, 42).expect("it runs to the end");
        let mut digest = Digest::default();
        log.events.iter().for_each(|stamped| digest.event(stamped.nanos, &stamped.event));
        let report = program::sched(&["simulate", "cholesky", "--tiles", "5", "--policy", policy, "--json"]).json();
        assert_eq!(report["runs"][0]["digest"], format!("{:016x}", digest.value()), "{policy}");
        assert_eq!(report["tasks"], 35);
    }
}

#[test]
fn priorities_come_from_the_graph_or_from_the_longest_chain() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = |name: &str, text: &str| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).expect("the file can be written");
        path.to_str().expect("a name that is text").to_owned()
    };
    // Two tasks of 4 ms, and a chain of 2 ms and 6 ms that is submitted last.
    let graph = path("late.stg", "4\n0 0 0\n1 4 1 0\n2 4 1 0\n3 2 1 0\n4 6 1 3\n5 0 3 1 2 4\n");
    let machine = r#"platform "two" {
        memory "ram"
        workers "cpu" count=2 arch="cpu" memory="ram"
        kernel "*" { on "cpu" time="1 ms"; }
    }"#;
    let machine = path("two.kdl", machine);
    let makespan = |priorities: &str| {
        let words = ["simulate", "--graph", &graph, "--platform", &machine, "--policy", "tree-prio", "--json"];
        let shown = program::sched(&[&words[..], &["--priorities", priorities]].concat()).json();
        shown["runs"][0]["makespan_s"].as_f64().expect("a makespan")
    };
    assert_eq!(["as-given", "none"].map(makespan), [0.012; 2]);
    assert_eq!(["upward-rank", "critical-path"].map(makespan), [0.008; 2]);
    let ran = program::sched(&["simulate", "lu", "--width", "3"]);
    assert!(ran.code == 1 && ran.says("lu has no --width"), "{ran:?}");
    let ran = program::sched(&["simulate", "--graph", "lu"]);
    assert!(ran.code == 1 && ran.says("leave out `--graph` to generate `lu`"), "{ran:?}");
}

#[test]
fn workers_that_find_nothing_do_not_wake_each_other_for_ever() {
    let machine = find("cpu9-gpu3").expect("it is shipped");
    for policy in ["tree-heft", "tree-dmda", "tree-heteroprio"] {
        let (outcome, _) = run(&cholesky(20, 960), &machine, policy, 0).expect("it runs to the end");
        assert!(outcome.events < 40 * outcome.tasks as u64, "{policy}: {} events", outcome.events);
    }
}

/// A component that chooses, between a queue that asks it for nothing and queues that ask it for more when a worker
/// looks: a worker that finds nothing then sleeps.
#[test]
fn tasks_pass_from_queues_to_queues_through_whoever_chooses() {
    let chosen = [
        "eager",
        "random",
        "work-stealing",
        "eager-prio",
        "eager-calibration",
        "user-choice",
        r#"eager { each "worker" { work-stealing { QUEUE } } }"#,
        r#"eager { each "memory-node" { fifo ntasks-threshold=16 { work-stealing { each "worker" { QUEUE } } } } }"#,
    ];
    for chosen in chosen {
        for queue in ["fifo", "prio", "fifo ntasks-threshold=1"] {
            let queue = format!("{queue} {{ worker }}");
            let below = match chosen.contains('{') {
                true => chosen.replace("QUEUE", &queue),
                false => format!(r#"{chosen} {{ each "worker" {{ {queue} }} }}"#),
            };
            for workers in 1..=3 {
                let length = Duration::from_millis(1);
                let (graph, machine) = (independent(5, length), Platform::flat(workers, length));
                let outcome = run(&graph, &machine, &format!("fifo {{ {below} }}"), 1);
                assert_eq!(outcome.map(|(outcome, _)| outcome.tasks).ok(), Some(5), "{below} on {workers} workers");
            }
        }
    }
}

#[test]
fn commuting_tasks_run_one_at_a_time_and_others_meanwhile() {
    let mut graph = TaskGraph::new("commute");
    let kind = graph.add_kind("k");
    let data = graph.add_data(Datum::new(8));
    for _ in 0..3 {
        graph.add_task(Task::new(kind).access(data, AccessMode::Commute));
    }
    graph.add_task(Task::new(kind));
    let machine = Platform::flat(4, Duration::from_millis(1));
    let (outcome, log) = run(&graph, &machine, "tree-eager", 0).expect("it runs to the end");
    let times = times(&graph, &log);
    assert_eq!(outcome.makespan, Duration::from_millis(3));
    assert_eq!(times[3].0, 0);
}

#[test]
fn tasks_that_do_nothing_only_order_others() {
    let mut graph = TaskGraph::new("join");
    let (work, join) = (graph.add_kind("k"), graph.add_kind("join"));
    graph.kinds[join.index()].runs = false;
    let first = [(); 3].map(|()| graph.add_task(Task::new(work)));
    let joined = first.into_iter().fold(Task::new(join), Task::after);
    let joined = graph.add_task(joined);
    graph.add_task(Task::new(work).after(joined));
    let (outcome, log) = run(&graph, &Platform::flat(3, Duration::from_millis(1)), "tree-ws", 0).expect("it ends");
    assert_eq!(outcome.makespan, Duration::from_millis(2));
    assert!(log.events.contains(&Stamped { nanos: MS, event: Event::Passed { task: joined.submitted() } }));
}

/// With one memory or several, whether these are used or not.
#[test]
fn a_scratchpad_that_never_fits_is_reported() {
    let mut graph = TaskGraph::new("one");
    let kind = graph.add_kind("k");
    let pad = graph.add_data(Datum::new(6_000_000));
    graph.add_data(Datum::new(1_500_000));
    graph.add_task(Task::new(kind).access(pad, AccessMode::Scratch));
    for more in ["", r#"memory "far"; link "ram" "far" bandwidth="1 GB/s";"#] {
        let machine = |size: &str| {
            let workers = r#"workers "cpu" memory="ram"; kernel "k" { on "cpu" time="1 ms" }"#;
            platform(&format!("memory \"ram\" size=\"{size}\"; {more} {workers}"))
        };
        let error = run(&graph, &machine("8 MB"), "tree-eager", 0).expect_err("it does not fit").to_string();
        let expected =
            "task 1 needs 6000000 bytes of the memory `ram`, which has room for 500000 beside the data at home there";
        assert_eq!(error, expected, "{more}");
        run(&graph, &machine("14 MB"), "tree-eager", 0).expect("it fits");
    }
}

#[test]
fn overheads_are_paid_by_whom_they_concern() {
    let machine = platform(
        r#"memory "ram"
        workers "cpu" count=2 memory="ram"
        overheads submission="10 us" push="3 us" fetch="2 us" wake-up="5 us"
        kernel "*" { on "cpu" time="1 ms" }"#,
    );
    let mut graph = TaskGraph::new("two");
    let kind = graph.add_kind("k");
    let data = graph.add_data(Datum::new(8));
    graph.add_task(Task::new(kind).access(data, AccessMode::Write));
    graph.add_task(Task::new(kind));
    let (_, log) = run(&graph, &machine, "tree-eager", 0).expect("it runs to the end");
    let starts: Vec<u64> = times(&graph, &log).iter().map(|(start, ..)| *start).collect();
    // Woken after 5 µs, the first fetches for 2. The second is submitted after the submission and the push of the
    // first.
    assert_eq!(starts, [7_000, 18_000]);
}

#[test]
fn what_cannot_run_is_reported() {
    let mut graph = TaskGraph::new("unknown");
    let (known, unknown) = (graph.add_kind("slow"), graph.add_kind("fats"));
    graph.add_task(Task::new(known));
    graph.add_task(Task::new(unknown));
    let error = run(&graph, &core_and_device(""), "tree-eager", 0).expect_err("nobody can run it");
    insta::assert_snapshot!(error, @"the platform `test` cannot run `fats` (1 task, first task 2)");
    let help = miette::Diagnostic::help(&error).map(|help| help.to_string()).unwrap_or_default();
    assert!(help.starts_with("did you mean `fast` for `fats`?"), "{help}");

    let mut graph = TaskGraph::new("large");
    let fast = graph.add_kind("fast");
    let data = graph.add_data(Datum::new(3_000_000));
    graph.add_task(Task::new(fast).access(data, AccessMode::Read));
    let error = run(&graph, &core_and_device(r#"size="1 MB""#), "tree-eager", 0).expect_err("it does not fit");
    insta::assert_snapshot!(error, @"task 1 needs 3000000 bytes of the memory `gpu`, which has room for 1000000 beside the data at home there");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    /// Whatever the policy, the graph and the memory: each task runs once, after those that it waits for, and no memory
    /// holds more than fits.
    #[test]
    fn every_task_runs_once(
        policy in 0usize..library().len(),
        (layers, width, seed) in (1usize..6, 1usize..7, any::<u64>()),
        kilobytes in 70u64..400,
        pipeline in 1usize..4,
    ) {
        let mut graph = layered(Layered {
            layers, width, density: 0.4, length: Duration::from_micros(50), bytes: 8_000, seed,
        });
        for (number, task) in graph.tasks.iter_mut().enumerate() {
            let cpu = task.lengths.get(Arch::CPU).unwrap_or_default();
            task.lengths = Lengths::default().with(Arch::CUDA, cpu / 4);
            if number % 3 != 0 {
                task.lengths = task.lengths.clone().with(Arch::CPU, cpu);
            }
        }
        let machine = platform(&format!(
            r#"memory "ram"
            repeat 2 {{ memory "gpu{{}}" size="{kilobytes} kB" device=#true; }}
            repeat 2 {{ link "ram" "gpu{{}}" bandwidth="1 GB/s" latency="3 us"; }}
            workers "cpu" count=2 memory="ram"
            repeat 2 {{ workers "gpu" count=2 arch="cuda" memory="gpu{{}}" pipeline={pipeline}; }}
            overheads submission="1 us" push="1 us" fetch="1 us" kernel-queueing="2 us" allocation="5 us""#
        ));
        let name = library()[policy].name;
        let (outcome, log) = run(&graph, &machine, name, seed).expect("it runs to the end");
        times(&graph, &log);
        prop_assert!(outcome.memories[1..].iter().all(|memory| memory.peak <= kilobytes * 1000));
        prop_assert_eq!(outcome.workers.iter().map(|worker| worker.tasks).sum::<u64>(), graph.tasks.len() as u64);
        prop_assert!(outcome.makespan >= outcome.critical_path);
        let bounds = machine.bounds(&graph, &graph.dependencies()).expect("all tasks can run");
        prop_assert!(bounds.transfers >= bounds.best());
        prop_assert!(outcome.makespan.as_secs_f64() >= bounds.transfers * (1.0 - 1e-9), "{bounds}, {outcome:?}");
    }

    /// A chain that alternates between a core and a device moves its data each time: the bound with transfers has that,
    /// and no policy is below it.
    #[test]
    fn no_schedule_is_shorter_than_the_bound_with_transfers(
        policy in 0usize..library().len(),
        tasks in prop::collection::vec((0usize..4, 0usize..4, 0usize..3), 1..40),
        megabytes in 1u64..20,
        switch in any::<bool>(),
    ) {
        let mut graph = TaskGraph::new("random accesses");
        let kind = graph.add_kind("k");
        let data: Vec<_> = (0..4).map(|at| graph.add_data(Datum::new((at + 1) * megabytes * 100_000))).collect();
        for (one, other, shape) in tasks {
            let lengths = Lengths::default();
            let lengths = match shape {
                0 => lengths.with(Arch::CPU, Duration::from_micros(300)),
                1 => lengths.with(Arch::CUDA, Duration::from_micros(100)),
                _ => lengths.with(Arch::CPU, Duration::from_micros(800)).with(Arch::CUDA, Duration::from_micros(90)),
            };
            let mut task = Task::new(kind).access(data[one], [AccessMode::ReadWrite, AccessMode::Write][shape % 2]);
            if other != one {
                task = task.access(data[other], AccessMode::Read);
            }
            task.lengths = lengths;
            graph.add_task(task);
        }
        let links = if switch {
            r#"switch "s"
            link "ram" "s" bandwidth="4 GB/s" latency="10 us"
            repeat 2 { link "s" "gpu{}" bandwidth="6 GB/s" latency="2 us"; }"#
        } else {
            r#"repeat 2 { link "ram" "gpu{}" bandwidth="3 GB/s" latency="8 us"; }"#
        };
        let machine = platform(&format!(
            r#"memory "ram"
            repeat 2 {{ memory "gpu{{}}" device=#true; }}
            {links}
            workers "cpu" count=2 memory="ram"
            repeat 2 {{ workers "gpu" count=1 arch="cuda" memory="gpu{{}}" pipeline=2; }}"#
        ));
        let bounds = machine.bounds(&graph, &graph.dependencies()).expect("all tasks can run");
        let name = library()[policy].name;
        let (outcome, _) = run(&graph, &machine, name, 1).expect("it runs to the end");
        prop_assert!(outcome.makespan.as_secs_f64() >= bounds.transfers * (1.0 - 1e-9), "{bounds}, {outcome:?}");
    }
}

#[test]
fn a_plan_is_kept_where_one_task_ends_and_its_followers_come_one_by_one() {
    // On the core, behind the first task: one that can wait, and one that a long task on the device waits for.
    let mut graph = TaskGraph::new("followers");
    let kinds = [(Arch::CPU, 5), (Arch::CPU, 10), (Arch::CPU, 11), (Arch::CUDA, 50)].map(|(arch, length)| {
        let kind = graph.add_kind(format!("takes {length} ms"));
        Task { lengths: Lengths::default().with(arch, Duration::from_millis(length)), ..Task::new(kind) }
    });
    let [first, can_wait, urgent, long] = kinds;
    let first = graph.add_task(first);
    graph.add_task(can_wait.after(first));
    let urgent = graph.add_task(urgent.after(first));
    graph.add_task(long.after(urgent));
    for (costs, overheads) in [("", ""), ("with costs", r#"overheads submission="1 us" push="1 us""#)] {
        let machine = platform(&format!(
            r#"memory "ram"
            memory "gpu" device=#true
            link "ram" "gpu" bandwidth="1 GB/s" latency="1 us"
            workers "cpu" arch="cpu" memory="ram"
            workers "gpu" arch="cuda" memory="gpu"
            {overheads}"#
        ));
        let (outcome, log) = run(&graph, &machine, "tree-plan", 1).expect("it runs to the end");
        let starts: Vec<u64> = times(&graph, &log).iter().map(|(start, ..)| *start).collect();
        assert!(starts[2] < starts[1], "{costs}: {starts:?}");
        assert!(outcome.makespan < Duration::from_micros(66_100), "{costs}: {:?}", outcome.makespan);
    }
}

#[test]
fn a_simulation_does_not_keep_the_graph() {
    let graph = Arc::new(cholesky(3, 100));
    let machine = find("numa-2x12").expect("it is shipped");
    let simulation = Simulation::new(Arc::clone(&graph), machine).registry(stock::registry(Vec::new()));
    simulation.run().expect("it runs to the end");
    assert_eq!(Arc::strong_count(&graph), 1);
}

/// Records the tasks to come that the host reports at each push, and passes tasks on.
struct Curious;

static TOLD: std::sync::Mutex<Vec<String>> = std::sync::Mutex::new(Vec::new());

impl Component for Curious {
    fn push_task(&self, node: Node<'_>, task: sched_core::Task) -> Push {
        let submitted = node.submitted().expect("the simulator tells of tasks to come");
        let mut shown = format!("{:?}", submitted.range());
        for number in submitted.range() {
            let of = submitted.task(number).expect("it is in the range");
            let next: Vec<u64> = submitted.successors(number, of).collect();
            let length = submitted.expected_length(number, WorkerId(1)).known();
            shown += &format!("; {number} {:?}, before {next:?}, {length:?}", of.stage);
            for access in submitted.accesses(number, of) {
                let copies = [0, 1].map(|memory| submitted.has_copy(access.data, MemoryNode(memory)));
                let way = submitted.expected_transfer(MemoryNode(0), MemoryNode(1), access.bytes);
                shown += &format!(", data {} {}{} {copies:?} {way:?}", access.data, access.reads, access.writes);
            }
        }
        TOLD.lock().expect("nobody panics").push(shown);
        node.push_to(Child(0), task)
    }
}

impl Build for Curious {
    const INFO: Info =
        Info::new("curious", Family::SpecialPurpose, "Notes what the host knows of its tasks.").may_refuse(false);

    fn build(_: &Params) -> Result<Self, BuildError> {
        Ok(Curious)
    }
}

#[test]
fn components_hear_of_the_tasks_to_come() {
    let mut graph = TaskGraph::new("four");
    let (fast, slow) = (graph.add_kind("fast"), graph.add_kind("slow"));
    let data = graph.add_data(Datum::new(1_000_000));
    graph.add_task(Task::new(fast).access(data, AccessMode::ReadWrite));
    graph.add_task(Task::new(slow).access(data, AccessMode::Read));
    graph.add_task(Task::new(fast).access(data, AccessMode::Read));
    graph.add_task(Task::new(slow).access(data, AccessMode::Write));
    let policy = stock::policy(r#"curious { fifo { eager { each "worker" { worker } } } }"#);
    let simulation = Simulation::new(graph, core_and_device("")).policy_value(policy);
    simulation.registry(stock::registry(vec![Offer::of::<Curious>()])).run().expect("it runs to the end");
    insta::assert_snapshot!(TOLD.lock().expect("nobody panics").join("\n"), @r"
    1..2; 1 Ready, before [], Some(1ms), data 0 truetrue [true, false] 1.1ms
    2..5; 2 Ready, before [4], None, data 0 truefalse [false, true] 1.1ms; 3 Waiting, before [4], Some(1ms), data 0 truefalse [false, true] 1.1ms; 4 Waiting, before [], None, data 0 falsetrue [false, true] 1.1ms
    2..5; 2 Ready, before [4], None, data 0 truefalse [false, true] 1.1ms; 3 Ready, before [4], Some(1ms), data 0 truefalse [false, true] 1.1ms; 4 Waiting, before [], None, data 0 falsetrue [false, true] 1.1ms
    4..5; 4 Ready, before [], None, data 0 falsetrue [true, true] 1.1ms
    ");
}

#[test]
fn a_restricted_task_runs_where_it_may_under_every_policy() {
    let mut graph = cholesky(6, 960);
    for (number, task) in (0u32..).zip(&mut graph.tasks) {
        task.only = match number % 4 {
            0 => Some("cuda".parse().expect("it is right")),
            1 => Some(Where::worker(number % 9)),
            2 => Some(Where::arch(Arch::CUDA).or_workers([3])),
            _ => None,
        }
        .map(Box::new);
    }
    let machine = find("cpu9-gpu3").expect("it is shipped");
    for policy in library() {
        let (outcome, log) = run(&graph, &machine, policy.name, 7).expect("it runs to the end");
        assert_eq!(outcome.faults, [], "{}", policy.name);
        for (task, (.., worker)) in graph.tasks.iter().zip(times(&graph, &log)) {
            let arch = machine.classes[machine.workers[worker as usize].class].arch;
            let allowed = task.is_allowed_on(WorkerId(worker), arch);
            assert!(allowed, "{}: on worker {worker}, restricted to {:?}", policy.name, task.only);
        }
    }

    graph.tasks[5].only = Some(Box::new(Where::workers([90, 91])));
    let error = run(&graph, &machine, "tree-eager", 7).expect_err("there is no such worker").to_string();
    let kind = &graph.kind_of(&graph.tasks[5]).name;
    let expected = format!("1 task of kind `{kind}` (first task 6, restricted to 90-91)");
    assert_eq!(error, format!("no worker of the platform `cpu9-gpu3` may execute {expected}"));
}

#[test]
fn the_number_for_the_scheduler_chooses_a_child() {
    let mut graph = cholesky(4, 960);
    for (number, task) in (0..).zip(&mut graph.tasks) {
        task.sched_data = number % 3;
    }
    let machine = Platform::flat(3, Duration::from_millis(10));
    let (_, log) = run(&graph, &machine, r#"user-choice { each "worker" { fifo { worker } } }"#, 7).expect("it runs");
    for (task, (.., worker)) in graph.tasks.iter().zip(times(&graph, &log)) {
        assert_eq!(u64::from(worker), task.sched_data);
    }
}

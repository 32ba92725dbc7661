use super::*;
use proptest::prelude::*;
use sched_core::Arch;
use sched_graph::generate::{cholesky, independent, qr};
use sched_graph::{AccessMode, Datum, Dependencies, Task, TaskGraph, TaskId, Where};
use sched_trace::{Digest, Event, EventLog, Stamped};
use sched_tree::plugin::Registry;
use std::time::Duration;

const US: u64 = 1_000;

/// Nodes of `workers` workers, where tasks take `length` microseconds unless they say otherwise; a network of 1 µs and
/// 1 GB/s.
fn flat(nodes: usize, workers: usize, length: u64) -> Cluster {
    let node = Arc::new(Platform::flat(workers, Duration::from_micros(length)));
    let network = Network {
        latency: Duration::from_micros(1),
        bandwidth: 1.0,
        foreign_task: Duration::ZERO,
        ..Network::default()
    };
    Cluster { name: "flat".to_owned(), doc: String::new(), nodes: vec![node; nodes], network, shared: Vec::new() }
}

fn start(graph: &TaskGraph, cluster: &Cluster) -> ClusterSimulation {
    ClusterSimulation::new(graph.clone(), cluster.clone())
        .policy("tree-eager")
        .registry(Arc::new(Registry::compiled_in()))
}

fn run(simulation: ClusterSimulation) -> (ClusterOutcome, EventLog) {
    let mut log = EventLog::default();
    let outcome = simulation.observe(&mut log).expect("it runs to the end");
    (outcome, log)
}

#[test]
fn a_chain_over_two_nodes_takes_tasks_and_messages() {
    // Task 0 on node 0 writes 5 000 bytes, task 1 on node 1 reads them; task 2 on node 0 reads what task 1 wrote.
    let mut graph = TaskGraph::new("there and back");
    let kind = graph.add_kind("k");
    let (a, b) = (graph.add_data(Datum::new(5_000)), graph.add_data(Datum::new(2_000)));
    let c = graph.add_data(Datum::new(0));
    graph.add_task(Task::new(kind).access(a, AccessMode::Write));
    graph.add_task(Task::new(kind).access(a, AccessMode::Read).access(b, AccessMode::Write));
    graph.add_task(Task::new(kind).access(b, AccessMode::Read).access(c, AccessMode::Write));
    let (outcome, log) = run(start(&graph, &flat(2, 1, 10)).owners(vec![0, 1, 0]));
    // 10, then 1 + 5, then 10, then 1 + 2, then 10.
    assert_eq!(outcome.total.makespan, Duration::from_micros(39));
    assert_eq!(outcome.total.critical_path, Duration::from_micros(30));
    assert_eq!((outcome.messages, outcome.message_bytes), (2, 7_000));
    let sent: Vec<_> = outcome.nodes.iter().map(|node| (node.tasks, node.sent_bytes, node.received_bytes)).collect();
    assert_eq!(sent, [(2, 5_000, 2_000), (1, 2_000, 5_000)]);
    let messages = log.events.iter().filter(|of| matches!(of.event, Event::Sent(_) | Event::Received(_)));
    assert_eq!(messages.map(|of| of.nanos / US).collect::<Vec<_>>(), [10, 16, 26, 29]);
}

/// A chain on each node of tasks that change the node's own data.
fn chains(lengths: &[usize]) -> (TaskGraph, Vec<usize>) {
    let mut graph = TaskGraph::new("chains");
    let kind = graph.add_kind("k");
    for length in lengths {
        let data = graph.add_data(Datum::new(8));
        (0..*length).for_each(|_| _ = graph.add_task(Task::new(kind).access(data, AccessMode::ReadWrite)));
    }
    (graph, (0..lengths.len()).collect())
}

#[test]
fn nodes_that_share_cores_are_slowed_down_while_more_work_than_there_are_cores() {
    let sharing = |cores| Cluster { shared: vec![SharedCores { nodes: 0..3, cores }], ..flat(4, 1, 12) };
    let (graph, owners) = chains(&[1, 2, 2, 2]);
    let run = |cluster: &Cluster| run(start(&graph, cluster).owners(owners.clone()));
    let (shared, log) = run(&sharing(2));
    // Three on two cores for 18, until which each has got 12; then two, for 12 more. Node 3 has a core of its own.
    let ends = log.events.iter().filter(|of| matches!(of.event, Event::Ended { .. }));
    assert_eq!(ends.map(|of| of.nanos / US).collect::<Vec<_>>(), [12, 18, 18, 18, 24, 30, 30]);
    assert_eq!(shared.total.makespan, Duration::from_micros(30));
    let busy: Vec<u128> = shared.total.workers.iter().map(|worker| worker.busy.as_micros()).collect();
    assert_eq!(busy, [18, 30, 30, 24]);
    // With enough cores nothing changes.
    assert_eq!(run(&sharing(3)).0.total.makespan, run(&flat(4, 1, 12)).0.total.makespan);
}

#[test]
fn what_a_shared_core_receives_takes_its_time_from_kernels() {
    // Node 0 sends a value to node 1, whose core is that of node 2 as well: 10 µs to receive it, while node 2 computes.
    let mut graph = TaskGraph::new("receive");
    let kind = graph.add_kind("k");
    let (a, b, c) = (graph.add_data(Datum::new(0)), graph.add_data(Datum::new(0)), graph.add_data(Datum::new(0)));
    graph.add_task(Task::new(kind).access(a, AccessMode::Write));
    graph.add_task(Task::new(kind).access(a, AccessMode::Read).access(b, AccessMode::Write));
    (0..3).for_each(|_| _ = graph.add_task(Task::new(kind).access(c, AccessMode::ReadWrite)));
    let mut cluster = Cluster { shared: vec![SharedCores { nodes: 1..3, cores: 1 }], ..flat(3, 1, 20) };
    cluster.network.receive = Duration::from_micros(10);
    let (outcome, _) = run(start(&graph, &cluster).owners(vec![0, 1, 2]));
    // Node 2 computes to 21, when the message comes; receiving takes to 41, then there are two kernels on one core: 29
    // of the kernels of node 2 are left.
    assert_eq!(outcome.nodes[1].makespan, Duration::from_micros(81));
    assert_eq!(outcome.nodes[2].makespan, Duration::from_micros(90));
}

proptest! {
    /// Shared cores do what is asked of them, and are never idle while somebody asks.
    #[test]
    fn shared_cores_are_neither_idle_nor_faster_than_they_are(cores in 1..4_usize, lengths in prop::collection::vec(0..6_usize, 1..6)) {
        let (graph, owners) = chains(&lengths);
        let nodes = lengths.len();
        let cluster = Cluster { shared: vec![SharedCores { nodes: 0..nodes, cores }], ..flat(nodes, 1, 10) };
        let (outcome, _) = run(start(&graph, &cluster).owners(owners));
        let (work, longest) = (lengths.iter().sum::<usize>() as u64 * 10 * US, lengths.iter().max().map_or(0, |most| *most as u64 * 10 * US));
        let least = (work / cores as u64).max(longest);
        // Some chains end earlier than others: then some cores have nothing to do.
        let most = work / cores as u64 + longest;
        let found = outcome.total.makespan.as_nanos() as u64;
        prop_assert!((least..=most + 100).contains(&found), "{least} to {most}, and not {found}");
    }
}

#[test]
fn messages_for_urgent_tasks_overtake_those_that_wait() {
    // Node 0 writes twelve values of 5 000 bytes at once; node 1 reads each. The last two reads are urgent.
    let mut graph = TaskGraph::new("urgent");
    let kind = graph.add_kind("k");
    let values: Vec<_> = (0..12).map(|_| graph.add_data(Datum::new(5_000))).collect();
    let results: Vec<_> = (0..12).map(|_| graph.add_data(Datum::new(0))).collect();
    let write = |task: Task, data: &sched_graph::DataId| task.access(*data, AccessMode::Write);
    graph.add_task(values.iter().fold(Task::new(kind), write));
    for (place, (value, result)) in values.iter().zip(&results).enumerate() {
        let read = Task::new(kind).access(*value, AccessMode::Read).access(*result, AccessMode::Write);
        graph.add_task(Task { priority: if place >= 10 { place as i32 } else { 0 }, ..read });
    }
    let owners = [[0; 12], [1; 12]].concat();
    let (_, log) = run(start(&graph, &flat(2, 1, 10)).owners(owners));
    let received = log.events.iter().filter_map(|of| match of.event {
        Event::Received(message) => message.data,
        _ => None,
    });
    let order: Vec<u32> = received.map(|data| data.0).collect();
    // Eight are on their way when the urgent ones come.
    assert_eq!(order, [0, 1, 2, 3, 4, 5, 6, 7, 11, 10, 8, 9]);
}

#[test]
fn messages_wait_at_interfaces_and_switches() {
    // Node 0 writes three values of 4 000 bytes at once; nodes 1, 2 and 3 read one each.
    let mut graph = TaskGraph::new("one to three");
    let kind = graph.add_kind("k");
    let data: Vec<_> = (0..6).map(|index| graph.add_data(Datum::new(if index < 3 { 4_000 } else { 0 }))).collect();
    for value in &data[..3] {
        graph.add_task(Task::new(kind).access(*value, AccessMode::Write));
    }
    for reader in 0..3 {
        graph.add_task(
            Task::new(kind).access(data[reader], AccessMode::Read).access(data[reader + 3], AccessMode::Write),
        );
    }
    let makespan = |cluster: &Cluster, owners: &[usize]| {
        run(start(&graph, cluster).owners(owners.to_vec())).0.total.makespan.as_nanos() as u64 / US
    };
    let cluster = flat(4, 3, 10);
    // One interface sends three messages: 10 + 3 × 4 + 1 + 10.
    assert_eq!(makespan(&cluster, &[0, 0, 0, 1, 2, 3]), 33);
    // Three interfaces send to one: the same.
    assert_eq!(makespan(&cluster, &[1, 2, 3, 0, 0, 0]), 33);
    // Two pairs that share nothing, and one value that stays.
    assert_eq!(makespan(&cluster, &[0, 1, 0, 2, 3, 0]), 25);
    // Both pairs over one uplink, which is as wide as an interface: one message waits for the other at it.
    let mut narrow = cluster.clone();
    let latency = Duration::from_micros(2);
    narrow.network.switches = vec![SwitchLevel { nodes: 2, uplink: 1.0, latency }];
    assert_eq!(makespan(&narrow, &[0, 1, 0, 2, 3, 0]), 10 + 1 + 2 + 2 + 8 + 10);
    narrow.network.switches[0].uplink = 2.0;
    // Twice as wide, it holds the second up for half as long.
    assert_eq!(makespan(&narrow, &[0, 1, 0, 2, 3, 0]), 10 + 1 + 2 + 2 + 2 + 4 + 10);
    assert_eq!(makespan(&cluster.with_costs(Costs::NoTransfer), &[0, 1, 0, 2, 3, 0]), 20);
}

#[test]
fn a_value_waits_until_nobody_reads_the_one_before() {
    // Node 1 reads the first value for 50 µs, while node 0 writes the second, which node 1 reads too.
    let mut graph = TaskGraph::new("twice");
    let kind = graph.add_kind("k");
    let (a, b, c) = (graph.add_data(Datum::new(1_000)), graph.add_data(Datum::new(0)), graph.add_data(Datum::new(0)));
    graph.add_task(Task::new(kind).access(a, AccessMode::Write));
    let mut slow = Task::new(kind).access(a, AccessMode::Read).access(b, AccessMode::Write);
    slow.lengths = sched_graph::Lengths::default().with(Arch::CPU, Duration::from_micros(50));
    graph.add_task(slow);
    graph.add_task(Task::new(kind).access(a, AccessMode::Write));
    graph.add_task(Task::new(kind).access(a, AccessMode::Read).access(c, AccessMode::Write));
    let (outcome, _) = run(start(&graph, &flat(2, 2, 10)).owners(vec![0, 1, 1]));
    // The second message comes at 23, and is taken at 12 + 50.
    assert_eq!(outcome.total.makespan, Duration::from_micros(72));
}

#[test]
fn devices_of_a_node_get_and_give_values_by_its_main_memory() {
    let text = r#"platform "gpu" {
        memory "ram"
        memory "vram" device=#true
        link "ram" "vram" bandwidth="1 GB/s" latency="3 us"
        workers "gpu" arch="cuda" memory="vram"
        kernel "*" { on "gpu" time="10 us"; }
    }"#;
    let node = Arc::new(Platform::parse("gpu.kdl", text).expect("it is a platform"));
    let cluster = Cluster { nodes: vec![node; 2], ..flat(2, 1, 10) };
    let mut graph = TaskGraph::new("from device to device");
    let kind = graph.add_kind("k");
    let (a, b) = (graph.add_data(Datum::new(1_000)), graph.add_data(Datum::new(0)));
    graph.add_task(Task::new(kind).access(a, AccessMode::Write));
    graph.add_task(Task::new(kind).access(a, AccessMode::Read).access(b, AccessMode::Write));
    let (outcome, log) = run(start(&graph, &cluster).owners(vec![0, 1]));
    // 10 on a device, 3 + 1 to its host, 1 + 1 to the other, 3 + 1 to the device, 10 there.
    assert_eq!(outcome.total.makespan, Duration::from_micros(30));
    assert_eq!((outcome.total.transfers, outcome.messages), (2, 1));
    let memories: Vec<_> = log
        .events
        .iter()
        .filter_map(
            |of| if let Event::TransferEnded(moved) = of.event { Some((moved.from.0, moved.to.0)) } else { None },
        )
        .collect();
    assert_eq!(memories, [(1, 0), (2, 3)], "memories are numbered through all nodes");
}

#[test]
fn cores_receive_messages_beside_or_between_tasks() {
    let mut graph = TaskGraph::new("received");
    let kind = graph.add_kind("k");
    let data: Vec<_> = (0..4).map(|_| graph.add_data(Datum::new(5_000))).collect();
    let task = |length| Task {
        lengths: sched_graph::Lengths::default().with(Arch::CPU, Duration::from_micros(length)),
        ..Task::new(kind)
    };
    graph.add_task(task(10).access(data[0], AccessMode::Write));
    // The other node is busy from the beginning, or has nothing to do.
    for owners in [[0, 1, 1, 1], [0, 2, 2, 1]] {
        let mut graph = graph.clone();
        graph.add_task(task(20).access(data[1], AccessMode::Write));
        graph.add_task(task(20).access(data[2], AccessMode::Write));
        graph.add_task(task(10).access(data[0], AccessMode::Read).access(data[3], AccessMode::Write));
        let mut cluster = flat(3, 1, 1);
        cluster.network.receive = Duration::from_micros(3);
        cluster.network.copy = 1.0;
        let (outcome, _) = run(start(&graph, &cluster).owners(owners.to_vec()));
        let expected = match owners[1] {
            // The second task of 20 takes 3 + 5 longer, and then comes the one that has been received.
            1 => [10, 20 + 20 + 8 + 10, 0],
            // 10, then 1 + 5 on the way, then 3 + 5, then 10.
            _ => [10, 34, 40],
        };
        let ends: Vec<Duration> = outcome.nodes.iter().map(|node| node.makespan).collect();
        assert_eq!(ends[1..], expected.map(Duration::from_micros)[1..], "{owners:?}");
    }
}

#[test]
fn foreign_tasks_take_time_to_pass_over() {
    let graph = independent(100, Duration::from_micros(1));
    let mut cluster = flat(4, 8, 1);
    cluster.network.foreign_task = Duration::from_micros(1);
    let (outcome, _) = run(start(&graph, &cluster));
    // Node 3 has the last task, after 75 of others.
    assert_eq!(outcome.total.makespan, Duration::from_micros(76));
}

#[test]
fn ends_are_told_to_other_nodes_where_no_data_tells_them() {
    let mut graph = TaskGraph::new("in a row");
    let kind = graph.add_kind("k");
    let mut last = graph.add_task(Task::new(kind));
    for _ in 0..3 {
        last = graph.add_task(Task::new(kind).after(last));
    }
    let (outcome, _) = run(start(&graph, &flat(2, 1, 10)));
    assert_eq!(outcome.total.makespan, Duration::from_micros(4 * 10 + 3));
    assert_eq!((outcome.messages, outcome.message_bytes), (3, 0));
}

/// That each task ran once, after all whose results it uses; where each ran.
fn check(graph: &TaskGraph, log: &EventLog) -> Vec<u32> {
    let mut ended = vec![false; graph.tasks.len()];
    let mut ran = vec![None; graph.tasks.len()];
    let mut writers = vec![None; graph.data.len()];
    let mut made = vec![Vec::new(); graph.tasks.len()];
    for (id, task) in graph.ids().zip(&graph.tasks) {
        for access in &task.accesses {
            made[id.index()].extend(writers[access.data.index()].filter(|_| access.mode.reads()));
        }
        for access in task.accesses.iter().filter(|access| access.mode.writes()) {
            writers[access.data.index()] = Some(id);
        }
    }
    for Stamped { event, .. } in &log.events {
        match event {
            Event::Started { task, worker, .. } => {
                let task = sched_graph::TaskId::of_submitted(*task).expect("it is a task of the graph");
                assert_eq!(ran[task.index()].replace(worker.0), None, "{task:?} runs once");
                assert!(made[task.index()].iter().all(|before| ended[before.index()]), "{task:?} comes too early");
            }
            Event::Ended { task, .. } => {
                ended[sched_graph::TaskId::of_submitted(*task).expect("it is a task").index()] = true;
            }
            _ => {}
        }
    }
    ran.into_iter().map(|worker| worker.expect("it ran")).collect()
}

#[test]
fn every_shipped_policy_runs_each_task_once_and_the_same_again() {
    let graph = qr(5, 100);
    let cluster = Cluster::named("cluster:3xcpu9-gpu3,switch=2:5GB/s:300ns").expect("it is right");
    for shipped in sched_policy::library() {
        let once = || {
            let mut log = EventLog::default();
            let outcome = start(&graph, &cluster).policy(shipped.name).seed(5).observe(&mut log);
            (outcome.expect("it runs to the end"), log)
        };
        let (first, log) = once();
        let ran = check(&graph, &log);
        let owners = sched_graph::ranks::Grid::new(3).owners(&graph.data);
        for (task, worker) in graph.tasks.iter().zip(ran) {
            let written = task.accesses.iter().find(|access| access.mode.writes()).expect("all of them write");
            assert_eq!(worker as usize / 12, owners[written.data.index()], "it ran where what it writes is owned");
        }
        let digest = |log: &EventLog| {
            let mut digest = Digest::default();
            log.events.iter().for_each(|of| sched_trace::Observer::event(&mut digest, of.nanos, &of.event));
            digest.value()
        };
        let (second, again) = once();
        assert_eq!((digest(&log), first.total.makespan), (digest(&again), second.total.makespan), "{}", shipped.name);
    }
}

#[test]
fn one_node_is_as_a_single_machine() {
    let graph = cholesky(8, 512);
    let platform = crate::platform::find("numa-2x12").expect("it is shipped");
    let cluster = Cluster { nodes: vec![Arc::new(platform.clone())], ..flat(1, 1, 1) };
    let (outcome, log) = run(start(&graph, &cluster).policy("tree-heft"));
    let mut alone = EventLog::default();
    let simulation = crate::Simulation::new(graph, platform).policy("tree-heft");
    simulation.registry(Arc::new(Registry::compiled_in())).observe(&mut alone).expect("it runs to the end");
    assert_eq!(log.events, alone.events);
    assert_eq!(outcome.messages, 0);
}

#[test]
fn wrong_owners_and_nodes_are_named() {
    let graph = cholesky(2, 100);
    let refused = |simulation: ClusterSimulation| simulation.run().expect_err("it is wrong").to_string();
    let cluster = flat(2, 1, 10);
    insta::assert_snapshot!(refused(start(&graph, &cluster).owners(vec![0, 1, 2])), @"data 2 has owner 2, and the cluster has nodes 0 to 1");
    insta::assert_snapshot!(refused(start(&graph, &cluster).owners(vec![0, 1])), @"data 2 has no owner, and the cluster has nodes 0 to 1");
    let gpu = r#"platform "gpu" {
        memory "ram"
        workers "gpu" arch="cuda" memory="ram"
        kernel "potrf" { on "gpu" time="10 us"; }
        kernel "trsm" { on "gpu" time="10 us"; }
    }"#;
    let mut mixed = cluster;
    mixed.nodes[1] = Arc::new(Platform::parse("gpu.kdl", gpu).expect("it is a platform"));
    insta::assert_snapshot!(refused(start(&graph, &mixed).owners(vec![0, 0, 1])), @"node 1 of the cluster: the platform `gpu` cannot run `syrk` (1 task, first task 2)");
}

#[test]
fn nodes_that_wait_for_each_other_beyond_the_range_of_the_clock_are_refused() {
    let (nodes, mut graph) = (12, TaskGraph::new("relay"));
    let kind = graph.add_kind("k");
    for node in 0..nodes {
        let data = graph.add_data(Datum::new(8));
        let task = Task::new(kind).access(data, AccessMode::Write);
        graph.add_task(graph.ids().last().into_iter().fold(task, Task::after));
        assert_eq!(data.index(), node);
    }
    let run = |years: u64| {
        let cluster = flat(nodes, 1, years * 31_557_600_000_000);
        start(&graph, &cluster).owners((0..nodes).collect()).run().map(|outcome| outcome.total.makespan.as_secs())
    };
    assert_eq!(run(12).expect("144 years can be counted") / 31_557_600, 144);
    insta::assert_snapshot!(run(60).expect_err("720 years cannot"), @"node 2 of the cluster: the simulation goes on for more than 146 years, the range of the clock");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Whatever is owned by whom: each task runs once, after those whose results it uses, on every network.
    #[test]
    fn random_programs_run_to_the_end(
        tasks in prop::collection::vec((prop::collection::vec((0..6_usize, 0..3_usize), 0..4), 0..30_u64), 1..60),
        owners in prop::array::uniform6(0..5_usize),
        nodes in 1..5_usize,
        narrow in any::<bool>(),
    ) {
        let mut graph = TaskGraph::new("random");
        let kind = graph.add_kind("k");
        let data: Vec<_> = (0..6).map(|index| graph.add_data(Datum::new(index * 3_000))).collect();
        for (accesses, length) in tasks {
            let modes = [AccessMode::Read, AccessMode::Write, AccessMode::ReadWrite];
            let mut task = Task::new(kind);
            for (at, mode) in accesses {
                task = task.access(data[at], modes[mode]);
            }
            task.lengths = sched_graph::Lengths::default().with(Arch::CPU, Duration::from_micros(length));
            graph.add_task(task);
        }
        let mut cluster = flat(nodes, 2, 10);
        if narrow {
            cluster.network.switches = vec![SwitchLevel { nodes: 2, uplink: 0.5, latency: Duration::from_micros(1) }];
        }
        let (outcome, log) = run(start(&graph, &cluster).owners(owners.map(|owner| owner % nodes).to_vec()));
        check(&graph, &log);
        let ends = |event: &Event| matches!(event, Event::Received(_));
        prop_assert_eq!(log.events.iter().filter(|of| ends(&of.event)).count() as u64, outcome.messages);
        prop_assert!(outcome.total.makespan >= outcome.total.critical_path);
    }
}

#[test]
fn bounds_know_that_each_node_numbers_its_workers() {
    let cluster = Cluster::named("cluster:3x4").expect("it is described");
    let mut graph = independent(30, Duration::from_millis(1));
    graph.tasks.iter_mut().for_each(|task| task.only = Some(Box::new(Where::workers([0, 3]))));
    let bounds = cluster.merged().bounds(&graph, &graph.dependencies()).expect("it can run");
    assert!((bounds.best() - 0.005).abs() < 1e-9, "two workers of each node execute five tasks: {bounds:?}");
    let (outcome, _) = run(start(&graph, &cluster));
    assert!(outcome.total.makespan.as_secs_f64() >= bounds.best(), "{outcome:?}");
}

#[test]
fn a_critical_path_knows_where_tasks_may_run() {
    let cluster = Cluster::named("cluster:2xcpu9-gpu3").expect("it is described");
    let mut graph = cholesky(3, 960);
    graph.tasks.iter_mut().for_each(|task| task.only = Some(Box::new(Where::arch(Arch::CPU))));
    let (outcome, _) = run(start(&graph, &cluster));
    let bounds = cluster.merged().bounds(&graph, &Dependencies::of_flows(&graph)).expect("it can run");
    let path = outcome.total.critical_path.as_secs_f64();
    assert!((path - bounds.critical_path).abs() < 1e-9, "{path} {bounds:?}");
}

#[test]
fn bounds_know_the_teams_of_each_node() {
    // All together, the workers would be divided into others: of 36, 18, 9 and fewer.
    let node = r#"platform "node" {
        memory "ram"
        workers "cpu" count=12 memory="ram"
        kernel "*" { on "cpu" time="12 ms" parallel=1.0 max-team=12 }
    }"#;
    let node = Arc::new(Platform::parse("node.kdl", node).expect("it is sound"));
    let cluster = Cluster { nodes: vec![node; 3], ..Cluster::named("cluster:3x12").expect("it is described") };
    let mut graph = TaskGraph::new("one task");
    let kind = graph.add_kind("k");
    graph.add_task(Task::new(kind));
    let (outcome, _) = run(start(&graph, &cluster).policy("tree-pheft"));
    assert_eq!(outcome.total.makespan, Duration::from_millis(1), "all of one node execute it");
    let bounds = cluster.merged().bounds(&graph, &graph.dependencies()).expect("it can run");
    assert!((bounds.best() - 0.001).abs() < 1e-9, "{bounds:?}");
    assert_eq!(outcome.total.critical_path, Duration::from_millis(1));
}

#[test]
fn bounds_know_that_parts_of_a_sum_do_not_wait_for_its_value() {
    let mut graph = TaskGraph::new("sum");
    let kind = graph.add_kind("k");
    let [sum, other] = [(); 2].map(|()| graph.add_data(Datum::new(8)));
    graph.add_task(Task::new(kind).access(sum, AccessMode::ReadWrite));
    graph.add_task(Task::new(kind).access(other, AccessMode::ReadWrite).access(sum, AccessMode::Redux));
    let cluster = flat(2, 1, 10);
    let (outcome, _) = run(start(&graph, &cluster).owners(vec![0, 1]));
    assert_eq!(outcome.total.makespan, Duration::from_micros(10), "each node executes a task");
    let bounds = cluster.merged().bounds(&graph, &Dependencies::of_flows(&graph)).expect("it can run");
    assert!(bounds.best() <= 10.001e-6 && outcome.total.critical_path == outcome.total.makespan, "{bounds:?}");
    graph.add_task(Task::new(kind).access(sum, AccessMode::Read));
    assert_eq!(Dependencies::of_flows(&graph).predecessors(TaskId(2)), [TaskId(0), TaskId(1)]);
}

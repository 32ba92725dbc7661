//! Data: when it moves, what that takes, and what room it needs.

use super::*;
use std::collections::BTreeMap;

#[test]
fn a_task_waits_for_its_data_and_writes_it_where_it_runs() {
    let mut graph = TaskGraph::new("there and back");
    let (fast, slow) = (graph.add_kind("fast"), graph.add_kind("slow"));
    let data = graph.add_data(Datum::new(1_000_000));
    graph.add_task(Task::new(fast).access(data, AccessMode::ReadWrite));
    graph.add_task(Task::new(slow).access(data, AccessMode::Read));
    let (outcome, log) = run(&graph, &core_and_device(""), "tree-eager", 0).expect("it runs to the end");
    // 0.1 ms and 1 MB at 1 GB/s there, 1 ms of work, the same way back, and 10 ms of work.
    assert_eq!(times(&graph, &log), [(1_100_000, 2_100_000, 1), (3_200_000, 13_200_000, 0)]);
    assert_eq!((outcome.transfers, outcome.bytes), (2, 2_000_000));
    assert_eq!(outcome.critical_path, Duration::from_millis(11));
}

#[test]
fn a_device_fetches_the_data_of_the_next_task_while_it_executes() {
    let mut graph = TaskGraph::new("two");
    let fast = graph.add_kind("fast");
    for _ in 0..3 {
        let data = graph.add_data(Datum::new(400_000));
        graph.add_task(Task::new(fast).access(data, AccessMode::Read));
    }
    let (_, log) = run(&graph, &core_and_device(""), "tree-eager", 0).expect("it runs to the end");
    let starts: Vec<u64> = times(&graph, &log).iter().map(|(start, ..)| *start).collect();
    // The third is pulled when the first ends, and fetched while the second is executed.
    assert_eq!(starts, [500_000, 1_500_000, 2_500_000]);
}

#[test]
fn what_a_task_only_writes_is_not_fetched() {
    let mut graph = TaskGraph::new("write");
    let fast = graph.add_kind("fast");
    let data = graph.add_data(Datum::new(1 << 30));
    graph.add_task(Task::new(fast).access(data, AccessMode::Write));
    let (outcome, _) = run(&graph, &core_and_device(""), "tree-eager", 0).expect("it runs to the end");
    assert_eq!((outcome.makespan, outcome.transfers), (Duration::from_millis(1), 0));
}

#[test]
fn transfers_over_one_link_share_it() {
    let machine = platform(
        r#"memory "ram"
        repeat 2 { memory "gpu{}"; }
        switch "bridge"
        link "ram" "bridge" bandwidth="1 GB/s"
        repeat 2 { link "bridge" "gpu{}" bandwidth="1 GB/s"; }
        repeat 2 { workers "gpu" arch="cuda" memory="gpu{}"; }
        kernel "*" { on "gpu" time="1 ms" }"#,
    );
    let mut graph = TaskGraph::new("two at once");
    let kind = graph.add_kind("k");
    for bytes in [1_000_000, 3_000_000] {
        let data = graph.add_data(Datum::new(bytes));
        graph.add_task(Task::new(kind).access(data, AccessMode::Read));
    }
    let (outcome, log) = run(&graph, &machine, "tree-eager", 0).expect("it runs to the end");
    let starts: Vec<u64> = times(&graph, &log).iter().map(|(start, ..)| *start).collect();
    // Half the bandwidth each until the first has its megabyte; then all of it for the two that are left.
    assert_eq!(starts, [2 * MS, 4 * MS]);
    assert_eq!(outcome.links[0].bytes, 4_000_000);
}

#[test]
fn a_full_memory_writes_back_what_was_changed_and_forgets_the_rest() {
    let mut graph = TaskGraph::new("more than fits");
    let fast = graph.add_kind("fast");
    for _ in 0..6 {
        let (read, written) = (graph.add_data(Datum::new(400_000)), graph.add_data(Datum::new(400_000)));
        graph.add_task(Task::new(fast).access(read, AccessMode::Read).access(written, AccessMode::ReadWrite));
    }
    let (outcome, log) = run(&graph, &core_and_device(r#"size="1 MB""#), "tree-eager", 0).expect("it runs to the end");
    times(&graph, &log);
    let is_eviction = |event| matches!(event, Event::TransferEnded(transfer) if transfer.why == Reason::Eviction);
    let evictions = log.events.iter().filter(|stamped| is_eviction(stamped.event));
    assert_eq!(evictions.count(), 5, "what the last task wrote may stay");
    assert!(outcome.memories[1].peak <= 1_000_000, "{}", outcome.memories[1].peak);
}

/// Evictions that take no time follow each other within one step of the engine.
#[test]
fn a_task_may_need_the_room_of_any_number_of_others_where_transfers_are_free() {
    let mut graph = TaskGraph::new("small ones, then a large one");
    let fast = graph.add_kind("fast");
    let each = 20_000;
    for bytes in std::iter::repeat_n(50, each).chain([50 * each as u64]) {
        let data = graph.add_data(Datum::new(bytes));
        graph.add_task(Task::new(fast).access(data, AccessMode::Write));
    }
    let machine = core_and_device(r#"size="1 MB""#).with_costs(Costs::NoTransfer);
    let (outcome, _) = run(&graph, &machine, "tree-eager", 0).expect("it runs to the end");
    assert_eq!((outcome.transfers, outcome.makespan), (each as u64, Duration::from_millis(each as u64 + 1)));
}

#[test]
fn data_that_will_not_be_used_is_written_home() {
    let mut graph = TaskGraph::new("done with it");
    let fast = graph.add_kind("fast");
    let data = graph.add_data(Datum::new(1_000_000));
    graph.add_task(Task::new(fast).access(data, AccessMode::Write));
    graph.wont_use.push(WontUse { submitted: 1, data });
    let (outcome, log) = run(&graph, &core_and_device(""), "tree-eager", 0).expect("it runs to the end");
    let last = log.events.last().map(Stamped::to_string);
    assert_eq!(last.as_deref(), Some("2100000 arrived data 0 from 1 to 0 (wont-use)"));
    assert_eq!(outcome.makespan, Duration::from_millis(1));
}

/// Two values that a device wrote are not needed any more, and go home one after the other, while a core writes both.
#[test]
fn a_copy_that_a_write_has_overtaken_in_the_queue_is_not_begun() {
    let mut graph = TaskGraph::new("overtaken");
    let (fast, slow) = (graph.add_kind("fast"), graph.add_kind("slow"));
    let data = [(); 2].map(|()| graph.add_data(Datum::new(1_000_000)));
    for kind in [fast, slow] {
        graph.add_task(Task::new(kind).access(data[0], AccessMode::Write).access(data[1], AccessMode::Write));
    }
    graph.wont_use.extend(data.map(|data| WontUse { submitted: 1, data }));
    let (outcome, _) = run(&graph, &core_and_device(""), "tree-eager", 0).expect("it runs to the end");
    assert_eq!((outcome.transfers, outcome.bytes), (1, 1_000_000));
}

#[test]
fn data_is_written_home_beside_a_copy_that_a_write_has_overtaken() {
    let mut graph = TaskGraph::new("twice");
    let fast = graph.add_kind("fast");
    let data = graph.add_data(Datum::new(1_000_000));
    for submitted in [1, 2] {
        graph.add_task(Task::new(fast).access(data, AccessMode::Write));
        graph.wont_use.push(WontUse { submitted, data });
    }
    let (_, log) = run(&graph, &core_and_device(""), "tree-eager", 0).expect("it runs to the end");
    // The first copy takes 1.1 ms from the end of the first task on, and the second task 1 ms.
    let last = log.events.last().map(Stamped::to_string);
    assert_eq!(last.as_deref(), Some("3200000 arrived data 0 from 1 to 0 (wont-use)"));
}

/// Tasks of the core, of 1 ms, and of the device, of 3 ms, use one value; the hint comes after some of them.
#[test]
fn a_hint_does_not_copy_data_that_is_still_used() {
    let copies = |submission: &str, tasks: &[(&str, AccessMode)], hints: &[u32]| {
        let machine = platform(&format!(
            r#"memory "ram"
            memory "gpu"
            link "ram" "gpu" bandwidth="1 GB/s"
            workers "cpu" arch="cpu" memory="ram"
            workers "gpu" arch="cuda" memory="gpu"
            overheads submission="{submission}"
            kernel "slow" {{ on "cpu" time="1 ms" }}
            kernel "fast" {{ on "gpu" time="3 ms" }}"#
        ));
        let mut graph = TaskGraph::new("hints");
        let data = graph.add_data(Datum::new(1_000_000));
        for (kind, mode) in tasks {
            let kind = graph.add_kind(*kind);
            graph.add_task(Task::new(kind).access(data, *mode));
        }
        graph.wont_use.extend(hints.iter().map(|submitted| WontUse { submitted: *submitted, data }));
        let (_, log) = run(&graph, &machine, "tree-eager", 0).expect("it runs to the end");
        let begins = log.events.iter().filter(|stamped| matches!(stamped.event, Event::TransferStarted(_)));
        begins.map(|stamped| stamped.nanos).collect::<Vec<u64>>()
    };
    use AccessMode::{Read, Redux, Scratch, Write};
    let nothing = [0_u64; 0];
    assert_eq!(copies("10 us", &[("slow", Redux), ("fast", Redux)], &[1]), nothing, "it is used again");
    assert_eq!(copies("10 us", &[("slow", Scratch), ("fast", Write)], &[1]), nothing, "it is used again");
    assert_eq!(copies("4 ms", &[("fast", Write), ("fast", Read)], &[2, 2]), [7 * MS], "two hints for one value");
}

/// Without a copy engine, what is fetched ahead takes its time from the worker beside it; what a worker waits for does
/// not.
#[test]
fn copies_by_workers_take_their_time() {
    let makespan = |device: &str, bytes: u64| {
        let mut graph = TaskGraph::new("two kernels");
        let fast = graph.add_kind("fast");
        let (one, other) = (graph.add_data(Datum::new(0)), graph.add_data(Datum::new(bytes)));
        graph.add_task(Task::new(fast).access(one, AccessMode::Write));
        graph.add_task(Task::new(fast).access(other, AccessMode::Read).access(one, AccessMode::ReadWrite));
        // Ready at once, and behind the first in the queue of the device.
        graph.add_task(Task::new(fast).access(other, AccessMode::Read));
        let machine = platform(&format!(
            r#"memory "ram"
            memory "gpu" device=#true {device}
            link "ram" "gpu" bandwidth="1 GB/s" latency="100 us"
            workers "cpu" arch="cpu" memory="ram"
            workers "gpu" arch="cuda" memory="gpu"
            kernel "fast" {{ on "gpu" time="1 ms" }}"#
        ));
        run(&graph, &machine, "tree-heft", 0).expect("it runs to the end").0.makespan
    };
    let millis = |makespan: Duration| makespan.as_secs_f64() * 1e3;
    // 0.6 ms, in the shadow of the first kernel.
    assert_eq!(millis(makespan("", 500_000)), 3.0);
    assert_eq!(millis(makespan("copied-by-workers=#true", 500_000)), 3.6);
    // 1.6 ms, of which the worker waits for the last 0.6.
    assert_eq!(millis(makespan("copied-by-workers=#true", 1_500_000)), millis(makespan("", 1_500_000)));
}

/// At one instant, the end of a transfer comes before the begin of the next one in the same direction.
#[test]
fn transfers_end_before_others_begin() {
    let machine = find("cpu9-gpu3").expect("it is shipped");
    for policy in ["tree-heft", "tree-prio-prefetching"] {
        let (_, log) = run(&cholesky(12, 960), &machine, policy, 0).expect("it runs to the end");
        let mut under_way = BTreeMap::new();
        let mut at_once = 0;
        let mut ended = BTreeMap::new();
        for stamped in &log.events {
            match &stamped.event {
                Event::TransferStarted(of) => {
                    let way = (of.from, of.to);
                    assert_eq!(under_way.insert(way, of.data), None, "{policy}: two are under way");
                    at_once += usize::from(ended.get(&way) == Some(&stamped.nanos));
                }
                Event::TransferEnded(of) => {
                    let way = (of.from, of.to);
                    assert_eq!(under_way.remove(&way), Some(of.data), "{policy}: it has begun");
                    ended.insert(way, stamped.nanos);
                }
                _ => {}
            }
        }
        assert!(at_once > 0, "{policy}: one begins when another has ended");
    }
}

//! Data on one and on several memory nodes, with replicas, in parts, and lent by the program: values are those of a run
//! in order, and nothing is copied without need.

mod advice;
mod failures;
mod locality;
mod parts;
mod programs;
mod reductions;
mod scopes;

use sched_core::MemoryNode;
use sched_host::model::{Bus, NodeMatrix};
use sched_host::runtime::{Builder, Codelet, Handle, Read, ReadWrite, Runtime, TransferStats, Write};
use sched_host::topology::Topology;
use sched_host::trace::Timeline;
use sched_tests::hold::Hold;
use sched_tests::stock::builder;
use std::sync::mpsc;

/// Each task says which worker runs it.
const CHOSEN: &str = r#"user-choice { each "worker" { fifo { worker } } }"#;

/// 1 ms, and 1 GB/s, so that no decision depends on this machine.
fn bus(nodes: usize) -> Bus {
    let all = |value: f64| NodeMatrix::new(nodes, vec![value; nodes * nodes]);
    Bus { bandwidth: all(1e3), latency: all(1e3), ..Bus::default() }
}

/// A builder of a runtime with this tree on `nodes` memory nodes.
fn on_nodes(tree: &str, workers: usize, nodes: usize) -> Builder {
    builder(tree, workers, Vec::new()).unchecked().memory_nodes(nodes).bus(bus(nodes))
}

fn start(tree: &str, workers: usize, nodes: usize) -> Runtime {
    on_nodes(tree, workers, nodes).build().expect("the runtime starts")
}

fn moved(runtime: &Runtime) -> Vec<(u32, u32, u64)> {
    runtime.transfers().iter().map(|TransferStats { from, to, count, .. }| (*from, *to, *count)).collect()
}

/// Bytes of replicas on each memory node.
fn resident(runtime: &Runtime) -> Vec<u64> {
    runtime.memory_nodes().iter().map(|node| node.replica_bytes).collect()
}

type Log = Vec<usize>;

fn log(runtime: &Runtime) -> Handle<Log> {
    runtime.replicated(Log::new()).bytes(1000).register()
}

/// A task that appends its number, and one that says what it sees.
fn append(runtime: &Runtime) -> Codelet<(ReadWrite<Log>,), usize> {
    runtime.codelet("append").cpu("append", |context, (log,): (&mut Log,)| log.push(*context.params)).build()
}

fn expect(runtime: &Runtime) -> Codelet<(Read<Log>,), usize> {
    let check = |context: &sched_host::runtime::Context<'_, usize>, (log,): (&Log,)| {
        assert_eq!(log.len(), *context.params, "every write before is seen");
    };
    runtime.codelet("expect").cpu("expect", check).build()
}

#[test]
fn a_chain_on_one_node_copies_once_and_every_write_is_seen_everywhere() {
    let runtime = start(CHOSEN, 2, 2);
    let (append, expect, log) = (append(&runtime), expect(&runtime), log(&runtime));
    for number in 0..100 {
        runtime.task_with(&append, number, (&log,)).sched_data(1).submit().expect("the task is sound");
    }
    runtime.wait_all().expect("every task runs");
    assert_eq!(moved(&runtime), [(0, 1, 1)]);
    // There and back again: each write makes the other replica worthless.
    for number in 100..110 {
        let worker = number as u64 % 2;
        runtime.task_with(&append, number, (&log,)).sched_data(worker).submit().expect("the task is sound");
        runtime.task_with(&expect, number + 1, (&log,)).sched_data(1 - worker).submit().expect("the task is sound");
    }
    runtime.wait_all().expect("every task runs");
    assert_eq!(*runtime.read(&log).expect("the data is good"), (0..110).collect::<Log>());
    assert_eq!(resident(&runtime), [1000, 1000]);
}

#[test]
fn what_all_read_is_copied_once_for_each_node() {
    let runtime = start(CHOSEN, 6, 3);
    let (expect, log) = (expect(&runtime), log(&runtime));
    for number in 0..300 {
        runtime.task_with(&expect, 0, (&log,)).sched_data(number % 6).submit().expect("the task is sound");
    }
    runtime.wait_all().expect("every task runs");
    let transfers = runtime.transfers();
    let to = |node| transfers.iter().filter(|moved| moved.to == node).map(|moved| moved.count).sum::<u64>();
    assert_eq!([to(0), to(1), to(2)], [0, 1, 1]);
    assert_eq!(transfers.iter().map(|moved| moved.bytes).sum::<u64>(), 2000);
    let nodes: Vec<Vec<u32>> = runtime.memory_nodes().into_iter().map(|node| node.workers).collect();
    assert_eq!(nodes, [[0, 1], [2, 3], [4, 5]]);
}

#[test]
fn what_writes_without_reading_copies_nothing_where_there_is_a_replica() {
    let runtime = start(CHOSEN, 2, 2);
    let replace = runtime
        .codelet::<(Write<Log>,), usize>("replace")
        .cpu("replace", |context, (log,)| *log = vec![*context.params])
        .build();
    let log = log(&runtime);
    for number in 0..50 {
        runtime.task_with(&replace, number, (&log,)).sched_data(number as u64 % 2).submit().expect("it is sound");
    }
    runtime.wait_all().expect("every task runs");
    assert_eq!(moved(&runtime), [(0, 1, 1)], "the first on the other node has to have a value in place");
    assert_eq!(*runtime.read(&log).expect("the data is good"), [49]);
}

#[test]
fn the_application_reads_and_writes_in_its_turn() {
    let runtime = start(CHOSEN, 2, 2);
    let (append, expect, log) = (append(&runtime), expect(&runtime), log(&runtime));
    runtime.task_with(&append, 0, (&log,)).sched_data(1).submit().expect("the task is sound");
    assert_eq!(*runtime.read(&log).expect("the data is good"), [0]);
    runtime.write(&log).expect("the data is good").push(1);
    for worker in 0..2 {
        runtime.task_with(&expect, 2, (&log,)).sched_data(worker).submit().expect("the task is sound");
    }
    runtime.wait_all().expect("every task runs");
    assert_eq!(runtime.unregister(log).expect("the data is good").expect("it is the only handle"), [0, 1]);
}

#[test]
fn data_that_a_task_registers_begins_on_its_node() {
    let runtime = start(CHOSEN, 2, 2);
    let (send, made) = mpsc::channel();
    let make = move |context: &sched_host::runtime::Context<'_>, ()| {
        send.send(context.submitter().replicated(vec![7usize]).bytes(10).register()).expect("the test listens");
    };
    let make = runtime.codelet::<(), ()>("make").cpu("make", make).build();
    runtime.task(&make, ()).sched_data(1).submit().expect("the task is sound");
    let log = made.recv().expect("the task runs");
    assert_eq!(resident(&runtime), [0, 10]);
    let expect = expect(&runtime);
    runtime.task_with(&expect, 1, (&log,)).sched_data(1).submit().expect("the task is sound");
    runtime.wait_all().expect("every task runs");
    assert_eq!(moved(&runtime), []);
}

#[test]
fn replicas_go_when_nobody_will_use_them() {
    let runtime = start(CHOSEN, 3, 3);
    let (append, expect, log) = (append(&runtime), expect(&runtime), log(&runtime));
    runtime.task_with(&append, 0, (&log,)).sched_data(2).submit().expect("the task is sound");
    for worker in 0..3 {
        runtime.task_with(&expect, 1, (&log,)).sched_data(worker).submit().expect("the task is sound");
    }
    runtime.wait_all().expect("every task runs");
    assert_eq!(resident(&runtime), [1000; 3]);
    // In its turn: while a task uses the data, nothing goes.
    let gate = Hold::new(&runtime).worker_given(0);
    runtime.task_with(&append, 1, (&log,)).sched_data(0).submit().expect("the task is sound");
    runtime.wont_use(&log).expect("it is the runtime's own");
    assert_eq!(resident(&runtime), [1000; 3]);
    drop(gate);
    runtime.wait_all().expect("every task runs");
    assert_eq!(resident(&runtime), [1000, 0, 0]);
    runtime.task_with(&expect, 2, (&log,)).sched_data(1).submit().expect("the task is sound");
    runtime.wait_all().expect("every task runs");
    assert_eq!(resident(&runtime), [1000, 1000, 0]);
    // However often, it needs no stack.
    let gate = Hold::new(&runtime).worker_given(0);
    runtime.task_with(&append, 2, (&log,)).sched_data(0).submit().expect("the task is sound");
    for _ in 0..100_000 {
        runtime.wont_use(&log).expect("it is the runtime's own");
    }
    drop(gate);
    runtime.wait_all().expect("every task runs");
    assert_eq!(*runtime.read(&log).expect("the data is good"), [0, 1, 2]);
    let other = start(CHOSEN, 2, 2);
    other.wont_use(&log).expect_err("it is another runtime's");
}

#[test]
fn a_team_works_on_the_replica_of_its_first_member() {
    let machine = Topology::from_synthetic("core:4 pu:1").expect("the description is sound");
    let tree = r#"user-choice {
        fifo { eager { each "worker" { worker } } }
        each "combined-worker" { fifo { combined-worker } }
    }"#;
    let runtime = on_nodes(tree, 4, 2).topology(machine).build().expect("the runtime starts");
    let numbers = runtime.replicated(vec![1u64; 10]).bytes(80).register();
    let sum = runtime.replicated(vec![0u64; 4]).bytes(32).register();
    let add = runtime
        .codelet::<(Read<Vec<u64>>, ReadWrite<Vec<u64>>), ()>("add")
        .cpu_spmd("add_spmd", 4, |_, (numbers, part)| {
            part.iter_mut().for_each(|sum| *sum += numbers.iter().sum::<u64>())
        })
        .build();
    for choice in [1, 0, 1, 0, 1] {
        runtime.task(&add, (&numbers, &sum)).sched_data(choice).submit().expect("the task is sound");
    }
    runtime.wait_all().expect("every task runs");
    assert_eq!(*runtime.read(&sum).expect("the data is good"), [50; 4]);
}

#[test]
fn a_trace_has_the_transfers() {
    let runtime = on_nodes(CHOSEN, 2, 2).trace(1000).build().expect("the runtime starts");
    let (append, log) = (append(&runtime), log(&runtime));
    for (number, worker) in [1, 0, 1].into_iter().enumerate() {
        let task = runtime.task_with(&append, number, (&log,)).sched_data(worker).submit().expect("it is sound");
        runtime.wait(task).expect("it ends");
    }
    runtime.wait_all().expect("every task runs");
    let trace = runtime.take_trace().expect("it was asked for");
    assert_eq!(trace.memories, ["memory 0", "memory 1"]);
    let timeline = Timeline::of(&trace);
    let moved = |from, to| timeline.links.get(&(MemoryNode(from), MemoryNode(to))).map_or(0, Vec::len);
    assert_eq!((moved(0, 1), moved(1, 0)), (2, 1));
    assert!(timeline.links.values().flatten().all(|span| span.transfer.bytes == 1000));
}

#[test]
fn memory_nodes_need_workers() {
    for nodes in [0, 3] {
        let Err(shown) = on_nodes(CHOSEN, 2, nodes).build() else { panic!("there are two workers") };
        assert_eq!(shown.to_string(), format!("{nodes} memory nodes were asked for, expected 1 to 2 for 2 workers"));
    }
}

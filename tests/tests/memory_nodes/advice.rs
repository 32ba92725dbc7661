//! What the program says about its data: where it is wanted, that it is unused, that its value is of no use any more.

use super::{CHOSEN, bus, moved, on_nodes, resident, start};
use sched_host::graph::AccessMode;
use sched_host::runtime::{DataError, Outcome, Plan, Read, ReadWrite, Write};
use sched_host::topology::Topology;
use sched_tests::hold::Hold;
use sched_tests::stock::{EAGER, builder, runtime};

#[test]
fn wanted_data_is_there_before_its_task() {
    let runtime = start(CHOSEN, 3, 3);
    let x = runtime.replicated(vec![1_u64; 10]).bytes(80).register();
    let array = runtime.array(vec![2_u64; 30]);
    let thirds = array.partition(&Plan::ranges(3)).expect("it has three");
    let add = runtime.codelet::<(ReadWrite<Vec<u64>>,), ()>("add").cpu("add", |_, (x,)| x[0] += 1).build();
    let sum = runtime.codelet::<(Read<Vec<u64>>, Read<[u64]>, Write<u64>), ()>("sum");
    let sum = sum.cpu("sum", |_, (x, y, sum)| *sum = x.iter().chain(y).sum()).build();
    // In its turn: after the task that writes it.
    runtime.task(&add, (&x,)).sched_data(0).submit().expect("the task is sound");
    runtime.prefetch(&x, 2).expect("there is this node");
    runtime.prefetch(&thirds[1], 2).expect("there is this node");
    runtime.prefetch(&x, 0).expect("there is this node");
    runtime.wait_all().expect("the copies arrive");
    assert_eq!(moved(&runtime), [(0, 2, 2)]);
    assert_eq!(resident(&runtime), [80 + 240, 0, 80 + 80]);
    let total = runtime.register(0);
    runtime.task(&sum, (&x, &thirds[1], &total)).sched_data(2).submit().expect("the task is sound");
    assert_eq!(*runtime.read(&total).expect("it is computed"), 11 + 20);
    assert_eq!(moved(&runtime), [(0, 2, 2)], "nothing was left to copy");
    let error = runtime.prefetch(&x, 3).expect_err("there are three").to_string();
    assert_eq!(error, "there is no memory node 3: the runtime has 3, from 0");
    // Far more than a node keeps in mind.
    let gate = Hold::new(&runtime).worker_given(0);
    runtime.task(&add, (&x,)).sched_data(0).submit().expect("the task is sound");
    for _ in 0..5_000 {
        runtime.prefetch(&x, 1).expect("there is this node");
    }
    runtime.task(&add, (&x,)).sched_data(1).submit().expect("the task is sound");
    drop(gate);
    assert_eq!(runtime.read(&x).expect("it is computed")[0], 4);
}

/// The process may use the processors of the first node and of the third.
#[test]
fn what_is_wanted_on_a_node_without_workers_stays_where_it_is() {
    let topology = Topology::from_synthetic("node:2(indexes=0,2) pu:1").expect("it is sound");
    let builder = builder(CHOSEN, 2, Vec::new()).unchecked().topology(topology).bus(bus(3));
    let runtime = builder.build().expect("the runtime starts");
    assert_eq!(runtime.memory_nodes().iter().map(|node| node.node).collect::<Vec<u32>>(), [0, 2]);
    let x = runtime.array(vec![1.0; 10]);
    runtime.prefetch(&x, 1).expect("its number is known");
    runtime.prefetch(&x, 2).expect("there is this node");
    runtime.write(&x).expect("it is good")[0] = 2.0;
    runtime.wait_all().expect("nothing waits");
    assert_eq!(moved(&runtime), [(0, 2, 1)]);
}

#[test]
fn the_memory_of_parts_that_are_unused_is_given_back() {
    let runtime = start(CHOSEN, 2, 2);
    let array = runtime.array(vec![0_u64; 100]);
    let halves = array.partition(&Plan::ranges(2)).expect("it has two");
    let add = runtime.codelet::<(ReadWrite<[u64]>,), ()>("add");
    let add = add.cpu("add", |_, (x,)| x.iter_mut().for_each(|x| *x += 1)).build();
    for round in 1..=3 {
        for half in &halves {
            runtime.task(&add, (half,)).sched_data(1).submit().expect("the task is sound");
        }
        runtime.wait_all().expect("every task runs");
        assert_eq!(resident(&runtime), [800, 800]);
        runtime.wont_use(&halves[0]).expect("it is the runtime's own");
        runtime.wait_all().expect("it happens");
        assert_eq!(resident(&runtime), [800, 800], "the only valid copy stays");
        assert_eq!(runtime.read(&array).expect("it is computed")[99], round);
        runtime.wont_use(&halves[0]).expect("it is the runtime's own");
        runtime.wait_all().expect("it happens");
        assert_eq!(resident(&runtime), [800, 400]);
        runtime.wont_use(&array).expect("it is the runtime's own");
        runtime.wait_all().expect("it happens");
        assert_eq!(resident(&runtime), [800, 0]);
    }
    assert_eq!(*runtime.read(&array).expect("it is computed"), [3; 100]);
}

#[test]
fn what_is_invalidated_is_read_by_nobody_until_it_is_written() {
    for runtime in [runtime(EAGER, 2), start(EAGER, 2, 2)] {
        let x = runtime.replicated(vec![1_u64; 4]).bytes(32).register();
        let array = runtime.array(vec![1_u64; 100]);
        let halves = array.partition(&Plan::ranges(2)).expect("it has two");
        let fill = runtime.codelet::<(Write<[u64]>,), ()>("fill").cpu("fill", |_, (x,)| x.fill(5)).build();
        let set = runtime.codelet::<(Write<Vec<u64>>,), ()>("set").cpu("set", |_, (x,)| *x = vec![5; 4]).build();
        let look = runtime.codelet::<(Read<Vec<u64>>, Read<[u64]>), ()>("look").cpu("look", |_, _| {}).build();
        let before = runtime.task(&look, (&x, &array)).submit().expect("the task is sound");
        runtime.invalidate(&x).expect("it is the runtime's own");
        runtime.invalidate(&halves[1]).expect("it is the runtime's own");
        let after = runtime.task(&look, (&x, &halves[0])).submit().expect("the task is sound");
        assert_eq!(runtime.wait(before).expect("it ends"), Outcome::Done);
        let Outcome::Cancelled(cause) = runtime.wait(after).expect("it ends") else { panic!("it reads x") };
        assert_eq!(cause.to_string(), "the program has invalidated the data");
        runtime.wait_all().expect("the program knows what it has invalidated");
        assert!(matches!(runtime.read(&array), Err(DataError::Bad(_))) && runtime.read(&halves[0]).is_ok());
        runtime.task(&set, (&x,)).submit().expect("the task is sound");
        runtime.task(&fill, (&halves[1],)).submit().expect("the task is sound");
        let last = runtime.task(&look, (&x, &array)).submit().expect("the task is sound");
        assert_eq!(runtime.wait(last).expect("it ends"), Outcome::Done);
        assert_eq!(runtime.read(&array).expect("it is good again")[49..51], [1, 5]);
        assert_eq!(*runtime.read(&x).expect("it is good again"), [5; 4]);
    }
}

#[test]
fn foreign_data_is_refused() {
    let (runtime, other) = (start(EAGER, 2, 2), start(EAGER, 2, 2));
    let array = other.array(vec![0_u64; 4]);
    for refused in [runtime.wont_use(&array), runtime.prefetch(&array, 1), runtime.invalidate(&array)] {
        assert!(matches!(refused, Err(DataError::Foreign)));
    }
}

#[test]
fn unused_parts_are_in_a_captured_graph() {
    let runtime = on_nodes(EAGER, 2, 2).capture_graph().build().expect("the runtime starts");
    let array = runtime.array(vec![0_u64; 100]);
    let halves = array.partition(&Plan::ranges(2)).expect("it has two");
    let add = runtime.codelet::<(ReadWrite<[u64]>,), ()>("add").cpu("add", |_, (x,)| x[0] += 1).build();
    for half in &halves {
        runtime.task(&add, (half,)).submit().expect("the task is sound");
    }
    runtime.wont_use(&halves[1]).expect("it is the runtime's own");
    runtime.wait_all().expect("every task runs");
    let graph = runtime.take_graph().expect("it is captured");
    let [hint] = &graph.wont_use[..] else { panic!("one piece: {:?}", graph.wont_use) };
    assert_eq!(hint.submitted, 2);
    assert!(
        graph.tasks[1].accesses.iter().any(|access| (access.data, access.mode) == (hint.data, AccessMode::ReadWrite))
    );
}

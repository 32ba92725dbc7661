//! The graph that a program submits is captured with its order, its data and the lengths of its tasks.

use proptest::prelude::*;
use sched_core::Arch;
use sched_host::graph::{AccessMode, TaskGraph};
use sched_host::runtime::{Commute, Many, Plan, Read, ReadWrite, Runtime, SubmitError, Write};
use sched_tests::stock::{EAGER, builder};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

fn capturing(workers: usize) -> Runtime {
    builder(EAGER, workers, Vec::new()).capture_graph().build().expect("the runtime starts")
}

type Accesses = (Many<Read<u64>>, Many<Write<u64>>, Many<ReadWrite<u64>>, Many<Commute<u64>>);

fn modes() -> impl Strategy<Value = Vec<Option<AccessMode>>> {
    let mode =
        prop::sample::select(vec![AccessMode::Read, AccessMode::Write, AccessMode::ReadWrite, AccessMode::Commute]);
    prop::collection::vec(prop::option::of(mode), 4)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// What is captured is what was submitted, one by one or by a recording.
    #[test]
    fn a_captured_graph_has_the_accesses_that_were_submitted(
        tasks in prop::collection::vec((modes(), any::<prop::sample::Index>(), 0..5_i32), 1..30),
        replayed: bool,
    ) {
        let runtime = capturing(2);
        let step = runtime.codelet::<Accesses, ()>("step").cpu("step", |_, _| {}).build();
        let data: Vec<_> = (0..4).map(|number| runtime.register_sized(0, 100 + number)).collect();
        let lists = |modes: &[Option<AccessMode>]| {
            let of = |mode| data.iter().zip(modes).filter(move |(_, of)| **of == Some(mode)).map(|(data, _)| data.clone());
            let of = |mode| of(mode).collect::<Vec<_>>();
            (of(AccessMode::Read), of(AccessMode::Write), of(AccessMode::ReadWrite), of(AccessMode::Commute))
        };
        if replayed {
            let recording = runtime.record(|recorder| {
                let mut captured = Vec::new();
                for (modes, before, priority) in &tasks {
                    let (read, write, update, commute) = lists(modes);
                    let mut task = recorder.task(&step, (&read, &write, &update, &commute)).priority(*priority);
                    if !captured.is_empty() {
                        task = task.after(captured[before.index(captured.len())]);
                    }
                    captured.push(task.submit()?);
                }
                Ok::<(), SubmitError>(())
            });
            runtime.run(&recording.expect("the tasks are sound")).expect("every task runs");
        } else {
            let mut submitted = Vec::new();
            for (modes, before, priority) in &tasks {
                let (read, write, update, commute) = lists(modes);
                let mut task = runtime.task(&step, (&read, &write, &update, &commute)).priority(*priority);
                if !submitted.is_empty() {
                    task = task.after(submitted[before.index(submitted.len())]);
                }
                submitted.push(task.submit().expect("the task is sound"));
            }
        }
        runtime.wait_all().expect("every task runs");
        let graph = runtime.take_graph().expect("it is captured");
        prop_assert_eq!(graph.tasks.len(), tasks.len());
        let kinds: Vec<&str> = graph.kinds.iter().map(|kind| &*kind.name).collect();
        prop_assert_eq!(kinds, ["step"]);
        for (number, (task, (modes, before, priority))) in graph.tasks.iter().zip(&tasks).enumerate() {
            prop_assert!(!task.lengths.is_empty(), "it has run");
            prop_assert_eq!(task.priority, *priority);
            let after: Vec<u32> = task.after.iter().map(|before| before.0).collect();
            let expected = if number == 0 { Vec::new() } else { vec![before.index(number) as u32] };
            prop_assert_eq!(after, expected);
            let mut accesses: Vec<(u64, AccessMode)> =
                task.accesses.iter().map(|access| (graph.data[access.data.index()].bytes, access.mode)).collect();
            accesses.sort_by_key(|(bytes, _)| *bytes);
            let expected: Vec<(u64, AccessMode)> =
                (100..).zip(modes).filter_map(|(bytes, mode)| Some((bytes, (*mode)?))).collect();
            prop_assert_eq!(accesses, expected);
        }
    }
}

/// Numbers of the tasks that each task waits for.
fn before(graph: &TaskGraph) -> Vec<Vec<u32>> {
    let dependencies = graph.dependencies();
    graph.ids().map(|task| dependencies.predecessors(task).iter().map(|before| before.0).collect()).collect()
}

#[test]
fn parts_are_captured_as_the_pieces_that_they_have_in_common() {
    let runtime = capturing(1);
    let add = runtime
        .codelet::<(ReadWrite<[u32]>,), ()>("add")
        .cpu("add", |_, (part,)| part.iter_mut().for_each(|value| *value += 1))
        .build();
    let x = runtime.array(vec![0_u32; 100]);
    let (halves, thirds) = (x.partition(&Plan::ranges(2)).unwrap(), x.partition(&Plan::chunks(40)).unwrap());
    for part in [&halves[0], &halves[1], &thirds[0], &thirds[1], &x] {
        runtime.task(&add, (part,)).submit().expect("the task is sound");
    }
    runtime.wait_all().expect("every task runs");
    let graph = runtime.take_graph().expect("it is captured");
    assert_eq!(graph.bytes(), 400, "each element once");
    let sizes: Vec<u64> = graph.tasks.iter().map(|task| graph.bytes_of(task)).collect();
    assert_eq!(sizes, [200, 200, 160, 160, 400]);
    let before = before(&graph);
    assert_eq!(before[..4], [vec![], vec![], vec![0], vec![0, 1]]);
    assert!([1, 2, 3].iter().all(|task| before[4].contains(task)), "{before:?}");
    assert!(runtime.take_graph().expect("it is captured").tasks.is_empty(), "it was taken");
}

#[test]
fn a_runtime_that_was_not_asked_captures_nothing() {
    let runtime = builder(EAGER, 1, Vec::new()).build().expect("the runtime starts");
    assert_eq!(runtime.take_graph(), None);
}

/// Lengths by the time of the processor leave out what the thread waits, for the processor or for anything else.
#[test]
fn captured_lengths_are_those_of_the_clock_or_of_the_processor() {
    for of_processor in [false, true] {
        let runtime = capturing(1);
        if of_processor {
            runtime.capture_processor_time();
        }
        let (_keep, never) = channel::<()>();
        let wait = runtime.codelet::<(Write<Duration>,), Receiver<()>>("wait").cpu("wait", |context, (waited,)| {
            let began = Instant::now();
            let _ = context.params.recv_timeout(Duration::from_millis(50));
            *waited = began.elapsed();
        });
        let (wait, waited) = (wait.build(), runtime.register(Duration::ZERO));
        runtime.task_with(&wait, never, (&waited,)).submit().expect("the task is sound");
        let waited = runtime.unregister(waited).expect("it is computed").expect("it is the only handle");
        let graph = runtime.take_graph().expect("it is captured");
        let length = graph.tasks[0].lengths.get(Arch::CPU).expect("it has run on a core");
        assert_eq!(length < waited, of_processor, "{length:?} of {waited:?}");
    }
}

//! Every program gives the result of running its tasks sequentially in the order of submission.

use proptest::prelude::*;
use sched_host::graph::{AccessMode, DataId, Datum, Task, TaskGraph, TaskId};
use sched_host::runtime::{Commute, Handle, Many, Read, ReadWrite, Runtime, Scratch, TaskRef, Write};
use sched_tests::stock::{SHAPES, runtime};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicUsize, Ordering::*};

const HANDLES: usize = 4;

#[derive(Clone, Debug)]
struct Step {
    /// At most one access to each handle.
    modes: [Option<AccessMode>; HANDLES],
    /// Earlier steps to wait for, as fractions of those there are.
    after: Vec<prop::sample::Index>,
    priority: i32,
}

impl Step {
    fn with(&self, wanted: AccessMode) -> Vec<usize> {
        (0..HANDLES).filter(|handle| self.modes[*handle] == Some(wanted)).collect()
    }
}

fn mode() -> impl Strategy<Value = Option<AccessMode>> {
    prop_oneof![
        3 => Just(None),
        2 => Just(Some(AccessMode::Read)),
        1 => Just(Some(AccessMode::Write)),
        1 => Just(Some(AccessMode::ReadWrite)),
        2 => Just(Some(AccessMode::Commute)),
    ]
}

fn step() -> impl Strategy<Value = Step> {
    let after = prop::collection::vec(any::<prop::sample::Index>(), 0..3);
    (prop::array::uniform4(mode()), after, -2..3).prop_map(|(modes, after, priority)| Step { modes, after, priority })
}

/// What a task sees of its reading accesses.
fn seen(reads: impl Iterator<Item = i64>, updates: impl Iterator<Item = i64>) -> i64 {
    reads.chain(updates).fold(0, |sum: i64, value| sum.wrapping_mul(31).wrapping_add(value))
}

fn written(seen: i64, index: usize) -> i64 {
    seen.wrapping_mul(7).wrapping_add(index as i64 + 1)
}

/// What commuting tasks add: the sum does not depend on their order.
fn added(seen: i64, index: usize) -> i64 {
    seen.wrapping_add(1 << (index % 40))
}

/// Values at the end, and what each step saw, when the steps run one after the other.
fn one_after_the_other(steps: &[Step]) -> (Vec<i64>, Vec<i64>) {
    let mut values = vec![0_i64; HANDLES];
    let mut sights = Vec::new();
    for (index, step) in steps.iter().enumerate() {
        let of = |mode| step.with(mode).into_iter().map(|handle| values[handle]).collect::<Vec<_>>();
        let sight = seen(of(AccessMode::Read).into_iter(), of(AccessMode::ReadWrite).into_iter());
        sights.push(sight);
        for handle in step.with(AccessMode::Write).into_iter().chain(step.with(AccessMode::ReadWrite)) {
            values[handle] = written(sight, index);
        }
        for handle in step.with(AccessMode::Commute) {
            values[handle] = values[handle].wrapping_add(added(sight, index));
        }
    }
    (values, sights)
}

#[derive(Default)]
struct Notes {
    runs: AtomicUsize,
    sight: AtomicI64,
    began: AtomicUsize,
    ended: AtomicUsize,
}

struct Params {
    index: usize,
    notes: Arc<Vec<Notes>>,
    clock: Arc<AtomicUsize>,
}

/// The program as a task graph.
fn graph(steps: &[Step]) -> TaskGraph {
    let mut graph = TaskGraph::new("steps");
    let kind = graph.add_kind("step");
    let data: Vec<DataId> = (0..HANDLES).map(|_| graph.add_data(Datum::new(8))).collect();
    for (index, step) in steps.iter().enumerate() {
        let accesses = data.iter().zip(&step.modes).filter_map(|(data, mode)| Some((*data, (*mode)?)));
        let task = accesses.fold(Task::new(kind), |task, (data, mode)| task.access(data, mode));
        let after = step.after.iter().filter(|_| index > 0);
        graph.add_task(after.fold(task, |task, before| task.after(TaskId(before.index(index) as u32))));
    }
    graph
}

type Accesses = (Many<Read<i64>>, Many<Write<i64>>, Many<ReadWrite<i64>>, Many<Commute<i64>>, Scratch<usize>);

fn check(runtime: &Runtime, steps: &[Step]) {
    let handles: Vec<Handle<i64>> = (0..HANDLES).map(|_| runtime.register(0)).collect();
    let pad = runtime.scratchpad(|| 0_usize);
    let codelet = runtime
        .codelet::<Accesses, Params>("step")
        .cpu("step", |context, (reads, writes, updates, commutes, pad)| {
            let Params { index, notes, clock } = context.params;
            let notes = &notes[*index];
            notes.began.store(clock.fetch_add(1, SeqCst), SeqCst);
            *pad = *index;
            let sight = seen(reads.iter().map(|value| **value), updates.iter().map(|value| **value));
            // Lets others in, if the runtime does.
            std::thread::yield_now();
            for value in writes.into_iter().chain(updates) {
                *value = written(sight, *index);
            }
            for value in commutes {
                *value = value.wrapping_add(added(sight, *index));
            }
            assert_eq!(*pad, *index, "a scratchpad belongs to one task at a time");
            notes.sight.store(sight, SeqCst);
            notes.runs.fetch_add(1, SeqCst);
            notes.ended.store(clock.fetch_add(1, SeqCst), SeqCst);
        })
        .build();
    let notes: Arc<Vec<Notes>> = Arc::new(steps.iter().map(|_| Notes::default()).collect());
    let clock = Arc::new(AtomicUsize::new(0));
    let mut tasks: Vec<TaskRef> = Vec::new();
    for (index, step) in steps.iter().enumerate() {
        let of = |mode| step.with(mode).into_iter().map(|handle| handles[handle].clone()).collect::<Vec<_>>();
        let params = Params { index, notes: Arc::clone(&notes), clock: Arc::clone(&clock) };
        let (reads, writes) = (of(AccessMode::Read), of(AccessMode::Write));
        let (updates, commutes) = (of(AccessMode::ReadWrite), of(AccessMode::Commute));
        let data = (&reads, &writes, &updates, &commutes, &pad);
        let mut task = runtime.task_with(&codelet, params, data).priority(step.priority);
        for before in step.after.iter().filter(|_| index > 0) {
            task = task.after(tasks[before.index(index)]);
        }
        tasks.push(task.submit().expect("the task is sound"));
    }
    runtime.wait_all().expect("every task runs");

    let (values, sights) = one_after_the_other(steps);
    let (all, dependencies) = (notes, graph(steps).dependencies());
    for (index, notes) in all.iter().enumerate() {
        assert_eq!(notes.runs.load(SeqCst), 1, "task {index} runs once");
        assert_eq!(notes.sight.load(SeqCst), sights[index], "task {index} sees what was written last before it");
        for before in dependencies.predecessors(TaskId(index as u32)).iter().map(|before| before.index()) {
            let (ended, began) = (all[before].ended.load(SeqCst), notes.began.load(SeqCst));
            assert!(ended < began, "task {index} waits for task {before}");
        }
    }
    for (handle, value) in handles.iter().zip(values) {
        assert_eq!(*runtime.read(handle).expect("the data is good"), value);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn any_program_gives_what_it_gives_in_order(
        steps in prop::collection::vec(step(), 1..60),
        shape in 0..SHAPES.len(),
        workers in 1_usize..=4,
    ) {
        check(&runtime(SHAPES[shape], workers), &steps);
    }
}

#[test]
fn a_long_program_gives_what_it_gives_in_order() {
    use proptest::strategy::ValueTree;
    let mut source = proptest::test_runner::TestRunner::deterministic();
    let program = prop::collection::vec(step(), 3000..=3000).new_tree(&mut source).expect("a program").current();
    for shape in SHAPES {
        // The runtime runs another program: nothing that the first leaves behind disturbs it.
        let runtime = runtime(shape, 4);
        check(&runtime, &program);
        check(&runtime, &program[..500]);
    }
}

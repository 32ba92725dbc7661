//! Every program gives the result of running its tasks sequentially in the order of submission.

use proptest::prelude::*;
use sched_core::{Build, BuildError, Component, Family, Info, Node, Offer, Push, Refusal, Refused};
use sched_host::graph::{AccessMode, DataId, Datum, Task, TaskGraph, TaskId};
use sched_host::runtime::{Commute, Handle, Many, Read, ReadWrite, Runtime, Scratch, TaskRef, Write};
use sched_tests::hold::Hold;
use sched_tests::stock::{SHAPES, builder, runtime};
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
    /// Whether the program waits for all tasks before it goes on.
    is_waited_for: bool,
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
    let is_waited_for = prop::bool::weighted(0.05);
    (prop::array::uniform4(mode()), after, -2..3, is_waited_for)
        .prop_map(|(modes, after, priority, is_waited_for)| Step { modes, after, priority, is_waited_for })
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
        if step.is_waited_for {
            runtime.wait_all().expect("every task runs");
        }
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

/// Counts the tasks that are pushed into a tree.
#[derive(Debug)]
struct Counter;

static PUSHED: AtomicUsize = AtomicUsize::new(0);

impl Build for Counter {
    const INFO: Info = Info::new("counter", Family::SpecialPurpose, "Counts pushes.");

    fn build(_: &sched_core::Params) -> Result<Self, BuildError> {
        Ok(Counter)
    }
}

impl Component for Counter {
    fn push_task(&self, node: Node<'_>, task: sched_core::Task) -> Push {
        PUSHED.fetch_add(1, SeqCst);
        match node.children().next() {
            Some(child) => node.push_to(child, task),
            None => Err(Refused::new(task, Refusal::NoWorker)),
        }
    }
}

#[test]
fn a_commuting_task_is_scheduled_a_few_times_however_many_wait() {
    let tree = r#"counter { fifo { eager { each "worker" { worker } } } }"#;
    for tasks in [10, 4000] {
        let runtime = builder(tree, 4, vec![Offer::of::<Counter>()]).unchecked().build().expect("the runtime starts");
        let data = [runtime.register(0_usize), runtime.register(0)];
        let count = runtime
            .codelet::<(Commute<usize>, Commute<usize>), ()>("count")
            .cpu("count", |_, (one, other)| {
                *one += 1;
                // Lets others come and wait.
                std::thread::yield_now();
                *other += 1;
            })
            .build();
        let one = runtime.codelet::<(Commute<usize>,), ()>("one").cpu("one", |_, (one,)| *one += 1).build();
        PUSHED.store(0, SeqCst);
        for task in 0..tasks {
            match task % 4 {
                0 => runtime.task(&one, (&data[0],)).submit(),
                1 => runtime.task(&one, (&data[1],)).submit(),
                2 => runtime.task(&count, (&data[0], &data[1])).submit(),
                _ => runtime.task(&count, (&data[1], &data[0])).submit(),
            }
            .expect("the task is sound");
        }
        runtime.wait_all().expect("every task runs");
        let sum =
            *runtime.read(&data[0]).expect("the data is good") + *runtime.read(&data[1]).expect("the data is good");
        assert_eq!(sum, (0..tasks).map(|task| if task % 4 < 2 { 1 } else { 2 }).sum::<usize>());
        // Once when it is ready, and for each end of a task before it on one of two data.
        let pushed = PUSHED.load(SeqCst);
        assert!(pushed <= 5 * tasks, "{pushed} pushes of {tasks} tasks");
    }
}

#[test]
fn an_urgent_commuter_does_not_wait_for_one_that_lies_in_a_queue() {
    let tree = r#"prio { eager { each "worker" { worker } } }"#;
    let runtime = builder(tree, 1, Vec::new()).build().expect("the runtime starts");
    let log = runtime.register(Vec::new());
    let commute = runtime
        .codelet::<(Commute<Vec<i32>>,), i32>("commute")
        .cpu("commute", |context, (log,)| log.push(*context.params))
        .build();
    let hold = Hold::new(&runtime);
    let gate = hold.worker();
    for priority in [0, 2, 1, 3] {
        runtime.task_with(&commute, priority, (&log,)).priority(priority).submit().expect("it is sound");
    }
    drop(gate);
    assert_eq!(*runtime.read(&log).expect("the data is good"), [3, 2, 1, 0]);
}

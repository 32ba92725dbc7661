//! Random programs on several memory nodes, with every family of policies.

use super::{CHOSEN, bus, resident, start};
use proptest::prelude::*;
use sched_core::Arch;
use sched_host::runtime::{AccessMode, Commute, Handle, Many, Outcome, Read, ReadWrite, Runtime, Write};
use sched_host::topology::Topology;
use sched_tests::stock::registry;
use std::ops::Range;
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

const DATA: usize = 4;

#[derive(Clone, Default, PartialEq, Debug)]
struct Value {
    log: Vec<usize>,
    sum: usize,
}

#[derive(Clone, Debug)]
struct Step {
    modes: [Option<AccessMode>; DATA],
    /// What the program says afterwards of this data.
    advice: Option<(usize, Advice)>,
}

#[derive(Clone, Copy, PartialEq, Debug)]
enum Advice {
    Unused,
    WantedOn(u32),
    Invalid,
}

fn advice() -> impl Strategy<Value = Advice> {
    prop_oneof![1 => Just(Advice::Unused), 4 => (0..4_u32).prop_map(Advice::WantedOn)]
}

fn step(advice: impl Strategy<Value = Advice>) -> impl Strategy<Value = Step> {
    let mode = prop_oneof![
        3 => Just(None),
        3 => Just(Some(AccessMode::Read)),
        1 => Just(Some(AccessMode::Write)),
        2 => Just(Some(AccessMode::ReadWrite)),
        1 => Just(Some(AccessMode::Commute)),
    ];
    let advice = prop_oneof![4 => Just(None), 1 => (0..DATA, advice).prop_map(Some)];
    (prop::array::uniform4(mode), advice).prop_map(|(modes, advice)| Step { modes, advice })
}

impl Step {
    /// A step that changes in order what it would change in any order.
    fn in_order(mut self) -> Step {
        let commuting = self.modes.iter_mut().filter(|mode| **mode == Some(AccessMode::Commute));
        commuting.for_each(|mode| *mode = Some(AccessMode::ReadWrite));
        self
    }

    fn with(&self, mode: AccessMode) -> impl Iterator<Item = usize> {
        (0..DATA).filter(move |data| self.modes[*data] == Some(mode))
    }
}

/// What a step sees of data that it reads.
fn seen<'a>(values: impl Iterator<Item = &'a Value>) -> usize {
    let numbers = values.flat_map(|value| value.log.iter().copied().chain([value.sum, value.log.len()]));
    numbers.fold(0, |hash: usize, number| hash.wrapping_mul(31).wrapping_add(number))
}

/// Values at the end, and what each step saw, when the steps of these indices run one after the other. A step that uses
/// what is invalid does not run, and what it would have written is invalid.
fn in_order(steps: &[Step], indices: impl Iterator<Item = usize>) -> (Vec<Option<Value>>, Vec<Vec<usize>>) {
    let (mut values, mut sights) = (vec![Some(Value::default()); DATA], vec![Vec::new(); steps.len()]);
    for (index, step) in indices.map(|index| (index, &steps[index])) {
        let changed = || step.with(AccessMode::ReadWrite).chain(step.with(AccessMode::Commute));
        let is_sound = step.with(AccessMode::Read).chain(changed()).all(|data| values[data].is_some());
        if is_sound {
            sights[index].push(seen(step.with(AccessMode::Read).flat_map(|data| &values[data])));
            step.with(AccessMode::Write).for_each(|data| values[data] = Some(Value { log: vec![index], sum: 0 }));
            step.with(AccessMode::ReadWrite).for_each(|data| values[data].iter_mut().for_each(|v| v.log.push(index)));
            step.with(AccessMode::Commute).for_each(|data| values[data].iter_mut().for_each(|v| v.sum += index));
        } else {
            changed().chain(step.with(AccessMode::Write)).for_each(|data| values[data] = None);
        }
        if let Some((data, Advice::Invalid)) = step.advice {
            values[data] = None;
        }
    }
    (values, sights)
}

type Accesses = (Many<Read<Value>>, Many<Write<Value>>, Many<ReadWrite<Value>>, Many<Commute<Value>>);

/// Runs the steps; those of `recorded` are recorded, and replayed this number of times.
// Longer than 60 lines: the same data is used by tasks, by their replays, and by the checks of both.
fn check(runtime: &Runtime, steps: &[Step], recorded: Range<usize>, times: usize) {
    let handles: Vec<Handle<Value>> =
        (0..DATA).map(|_| runtime.replicated(Value::default()).bytes(100).register()).collect();
    let sights: Arc<Vec<Mutex<Vec<usize>>>> = Arc::new(steps.iter().map(|_| Mutex::default()).collect());
    let noted = Arc::clone(&sights);
    let codelet = runtime
        .codelet::<Accesses, usize>("step")
        .cpu("step", move |context, (reads, writes, updates, commutes)| {
            let index = *context.params;
            noted[index].lock().unwrap().push(seen(reads.into_iter()));
            // Whatever lies there is not to be read.
            writes.into_iter().for_each(|value| *value = Value { log: vec![index], sum: 0 });
            updates.into_iter().for_each(|value| value.log.push(index));
            commutes.into_iter().for_each(|value| value.sum += index);
        })
        .estimate(Arch::CPU, Duration::from_micros(10))
        .build();
    let data_of = |step: &Step| {
        let of = |mode| step.with(mode).map(|data| handles[data].clone()).collect::<Vec<_>>();
        [AccessMode::Read, AccessMode::Write, AccessMode::ReadWrite, AccessMode::Commute].map(of)
    };
    // Who does not let it choose makes nothing of it.
    let worker = |index: usize| (index * 7 % runtime.workers()) as u64;
    let recording = runtime.record(|recorder| {
        recorded.clone().try_for_each(|index| {
            let [read, write, update, commute] = data_of(&steps[index]);
            let task = recorder.task_with(&codelet, index, (&read, &write, &update, &commute));
            task.sched_data(worker(index)).submit().map(drop)
        })
    });
    let recording = recording.expect("the tasks are sound");
    for (index, step) in steps.iter().enumerate() {
        if index == recorded.start {
            for _ in 0..times {
                let replay = runtime.replay(&recording).expect("no replay is in progress");
                assert_eq!(runtime.wait(replay).expect("every task runs"), Outcome::Done);
            }
        }
        if recorded.contains(&index) {
            continue;
        }
        let [read, write, update, commute] = data_of(step);
        let task = runtime.task_with(&codelet, index, (&read, &write, &update, &commute));
        task.sched_data(worker(index)).submit().expect("the task is sound");
        let nodes = runtime.memory_nodes().len().max(1) as u32;
        let advised = step.advice.map_or(Ok(()), |(data, advice)| match advice {
            Advice::WantedOn(node) => runtime.prefetch(&handles[data], node % nodes),
            Advice::Unused => runtime.wont_use(&handles[data]),
            Advice::Invalid => runtime.invalidate(&handles[data]),
        });
        advised.expect("it is the runtime's own");
    }
    runtime.wait_all().expect("no task fails");
    let again = (0..times).flat_map(|_| recorded.clone());
    let (values, expected) = in_order(steps, (0..recorded.start).chain(again).chain(recorded.end..steps.len()));
    let sights: Vec<Vec<usize>> = sights.iter().map(|sight| sight.lock().unwrap().clone()).collect();
    assert_eq!(sights, expected, "each task sees what was written last before it");
    drop(recording);
    for (handle, value) in handles.into_iter().zip(values) {
        let Some(value) = value else {
            let error = runtime.read(&handle).map(|value| value.clone()).expect_err("the data is not good");
            assert!(error.to_string().contains("the program has invalidated the data"), "{error}");
            continue;
        };
        assert_eq!(*runtime.read(&handle).expect("the data is good"), value);
        assert_eq!(runtime.unregister(handle).expect("the data is good").expect("it is the only handle"), value);
    }
    assert!(resident(runtime).iter().all(|bytes| *bytes == 0), "all memory is given back");
}

/// One of each family of policies, as it is shipped.
const POLICIES: [&str; 6] = ["tree-eager", "tree-ws", "tree-dmda", "tree-dmdar", "tree-heft", "tree-eager-prefetching"];

fn shipped(policy: &str, workers: usize, nodes: usize) -> Runtime {
    static MACHINE: OnceLock<Topology> = OnceLock::new();
    let machine = MACHINE.get_or_init(|| Topology::this_machine().expect("the machine can be explored"));
    let builder = Runtime::builder().policy(policy).registry(registry(Vec::new())).topology(machine.clone());
    let builder = builder.workers(workers).bind(false).memory_nodes(nodes).bus(bus(nodes));
    builder.build().expect("the runtime starts")
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn any_program_gives_what_it_gives_in_order(
        steps in prop::collection::vec(step(advice()), 1..80),
        policy in prop::sample::select(&POLICIES[..]),
        (workers, nodes) in (1_usize..=4).prop_flat_map(|workers| (Just(workers), 1..=workers)),
    ) {
        check(&shipped(policy, workers, nodes), &steps, 0..0, 0);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// The program takes values back at times: what would use them does not run, nor what would use its results, until
    /// a task writes them completely.
    #[test]
    fn what_uses_an_invalid_value_does_not_run_in_any_program(
        steps in prop::collection::vec(step(prop_oneof![1 => advice(), 2 => Just(Advice::Invalid)]), 1..60),
        policy in prop::sample::select(&POLICIES[..]),
        (workers, nodes) in (1_usize..=4).prop_flat_map(|workers| (Just(workers), 1..=workers)),
    ) {
        // Which of several commuting tasks comes first, and is spared, is anybody's guess.
        let steps: Vec<Step> = steps.into_iter().map(Step::in_order).collect();
        check(&shipped(policy, workers, nodes), &steps, 0..0, 0);
    }

    /// Part of the program is recorded and replayed several times.
    #[test]
    fn a_replayed_program_gives_what_it_gives_in_order(
        steps in prop::collection::vec(step(advice()), 1..80),
        (start, end) in (any::<prop::sample::Index>(), any::<prop::sample::Index>()),
        times in 0_usize..4,
        policy in prop::sample::select(&POLICIES[..]),
        (workers, nodes) in (1_usize..=4).prop_flat_map(|workers| (Just(workers), 1..=workers)),
    ) {
        let (start, end) = (start.index(steps.len()), end.index(steps.len() + 1));
        check(&shipped(policy, workers, nodes), &steps, start.min(end)..end.max(start), times);
    }
}

#[test]
fn a_long_program_gives_what_it_gives_in_order() {
    use proptest::strategy::ValueTree;
    let mut source = proptest::test_runner::TestRunner::deterministic();
    let program =
        prop::collection::vec(step(advice()), 2000..=2000).new_tree(&mut source).expect("a program").current();
    POLICIES.iter().for_each(|policy| check(&shipped(policy, 4, 3), &program, 0..0, 0));
    let everywhere = start(CHOSEN, 4, 3);
    check(&everywhere, &program, 0..0, 0);
    assert_eq!(everywhere.transfers().len(), 6, "between any two nodes");
}

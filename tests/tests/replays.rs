//! Programs of tasks, replays, reads, swaps and other threads: what comes out is what one step after the other gives.
//!
//! A recording stands in the orders of its data from one replay to the next, so each of these steps may be what the next
//! replay, or a task behind it, has to notice.

use proptest::prelude::*;
use sched_host::runtime::{
    Codelet, Context, Handle, Read, ReadWrite, Recorder, Recording, Runtime, SubmitError, TaskRef,
};
use sched_tests::stock::{EAGER, runtime};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::*};

/// Number of data.
const DATA: usize = 5;
/// Number of recordings.
const RECORDINGS: usize = 3;

/// A task reads two data, and changes a third one.
#[derive(Clone, Copy, Debug)]
struct Spec {
    reads: [usize; 2],
    changes: usize,
    add: u64,
}

#[derive(Clone, Debug)]
enum Step {
    Task(Spec),
    /// A task that another thread submits.
    TaskElsewhere(Spec),
    Replay(usize),
    /// The program reads, and does not wait before.
    Read(usize),
    Write(usize, u64),
    /// Exchanges two data in a recording.
    Swap(usize, usize, usize),
    /// Drops a recording, perhaps while it runs, and records these tasks instead.
    Record(usize, Vec<Spec>),
    WaitAll,
}

fn spec() -> impl Strategy<Value = Spec> {
    (0..DATA, 1..DATA, 1..DATA, any::<u64>()).prop_map(|(changes, one, other, add)| Spec {
        reads: [(changes + one) % DATA, (changes + other) % DATA],
        changes,
        add,
    })
}

fn step() -> impl Strategy<Value = Step> {
    let specs = || prop::collection::vec(spec(), 0..6);
    prop_oneof![
        8 => (0..RECORDINGS).prop_map(Step::Replay),
        5 => spec().prop_map(Step::Task),
        2 => (0..DATA).prop_map(Step::Read),
        1 => (0..DATA, any::<u64>()).prop_map(|(data, value)| Step::Write(data, value)),
        1 => (0..RECORDINGS, 0..DATA, 1..DATA).prop_map(|(number, one, other)| Step::Swap(number, one, (one + other) % DATA)),
        1 => (0..RECORDINGS, specs()).prop_map(|(number, specs)| Step::Record(number, specs)),
        1 => Just(Step::WaitAll),
    ]
}

type Accesses = (Read<u64>, Read<u64>, ReadWrite<u64>);

/// One recording: what it does, and its replay.
struct Recorded {
    specs: Vec<Spec>,
    recording: Recording,
    replay: Option<TaskRef>,
}

struct Program {
    runtime: Runtime,
    codelet: Codelet<Accesses, u64>,
    data: Vec<Handle<u64>>,
    /// What the data are when all tasks so far have ended.
    expected: Vec<u64>,
    recordings: Vec<Recorded>,
}

fn mix(reads: [u64; 2], value: u64, add: u64) -> u64 {
    value.wrapping_mul(3).wrapping_add(reads[0].rotate_left(7)).wrapping_add(reads[1].rotate_left(19)).wrapping_add(add)
}

impl Program {
    fn new(tree: &str, workers: usize, specs: &[Vec<Spec>]) -> Program {
        let runtime = runtime(tree, workers);
        let kernel = |context: &Context<'_, u64>, (one, other, value): (&u64, &u64, &mut u64)| {
            // So that tasks meet in many ways.
            (0..context.params % 4).for_each(|_| std::thread::yield_now());
            *value = mix([*one, *other], *value, *context.params);
        };
        let codelet = runtime.codelet("mix").cpu("mix", kernel).build();
        let data: Vec<_> = (0..DATA as u64).map(|value| runtime.register(value)).collect();
        let mut program =
            Program { runtime, codelet, data, expected: (0..DATA as u64).collect(), recordings: Vec::new() };
        program.recordings = specs.iter().map(|specs| program.record(specs.clone())).collect();
        program
    }

    fn record(&self, specs: Vec<Spec>) -> Recorded {
        let submit = |recorder: &Recorder, Spec { reads: [one, other], changes, add }: Spec| {
            let data = (&self.data[one], &self.data[other], &self.data[changes]);
            recorder.task_with(&self.codelet, add, data).submit().map(drop)
        };
        let recording = self.runtime.record(|recorder| specs.iter().try_for_each(|spec| submit(recorder, *spec)));
        Recorded { recording: recording.expect("the tasks are sound"), specs, replay: None }
    }

    fn submit(&self, Spec { reads: [one, other], changes, add }: Spec) -> Result<TaskRef, SubmitError> {
        let data = (&self.data[one], &self.data[other], &self.data[changes]);
        self.runtime.task_with(&self.codelet, add, data).submit()
    }

    fn expect(&mut self, specs: &[Spec]) {
        for Spec { reads, changes, add } in specs {
            self.expected[*changes] = mix(reads.map(|read| self.expected[read]), self.expected[*changes], *add);
        }
    }

    /// Waits for the replay of a recording.
    fn wait_for(&mut self, number: usize) {
        if let Some(replay) = self.recordings[number].replay.take() {
            self.runtime.wait(replay).expect("every task runs");
        }
    }

    fn step(&mut self, step: &Step) {
        match step {
            Step::Task(spec) => {
                self.submit(*spec).expect("the task is sound");
                self.expect(&[*spec]);
            }
            Step::TaskElsewhere(spec) => {
                let submitted = std::thread::scope(|scope| scope.spawn(|| self.submit(*spec)).join());
                submitted.expect("it does not panic").expect("the task is sound");
                self.expect(&[*spec]);
            }
            Step::Replay(number) => {
                self.wait_for(*number);
                let recorded = &mut self.recordings[*number];
                recorded.replay = Some(self.runtime.replay(&recorded.recording).expect("it does not run"));
                let specs = recorded.specs.clone();
                self.expect(&specs);
            }
            Step::Read(data) => {
                assert_eq!(*self.runtime.read(&self.data[*data]).expect("it is good"), self.expected[*data]);
            }
            Step::Write(data, value) => {
                *self.runtime.write(&self.data[*data]).expect("it is good") = *value;
                self.expected[*data] = *value;
            }
            Step::Swap(number, one, other) => {
                self.wait_for(*number);
                let recorded = &mut self.recordings[*number];
                if recorded.recording.swap(&self.data[*one], &self.data[*other]).is_ok() {
                    let swapped = |data: usize| match data {
                        data if data == *one => *other,
                        data if data == *other => *one,
                        data => data,
                    };
                    for Spec { reads, changes, .. } in &mut recorded.specs {
                        (*reads, *changes) = (reads.map(swapped), swapped(*changes));
                    }
                }
            }
            Step::Record(number, specs) => self.recordings[*number] = self.record(specs.clone()),
            Step::WaitAll => self.runtime.wait_all().expect("every task runs"),
        }
    }

    fn run(mut self, steps: &[Step]) {
        steps.iter().for_each(|step| self.step(step));
        (0..DATA).for_each(|data| self.step(&Step::Read(data)));
    }
}

#[test]
fn a_datum_that_many_have_read_still_knows_of_the_recording() {
    let runtime = runtime(EAGER, 2);
    let (from, to) = (runtime.register(1_u64), runtime.register(0_u64));
    let is_changed = Arc::new(AtomicBool::new(false));
    let copy = {
        let is_changed = Arc::clone(&is_changed);
        let kernel = move |_: &Context<'_, ()>, (from, to): (&u64, &mut u64)| {
            // Long enough for a task that does not wait.
            (0..20_000).take_while(|_| !is_changed.load(Acquire)).for_each(|_| std::thread::yield_now());
            *to = *from;
        };
        runtime.codelet::<(Read<u64>, ReadWrite<u64>), ()>("copy").cpu("copy", kernel).build()
    };
    let look = runtime.codelet::<(Read<u64>,), ()>("look").cpu("look", |_, _| ()).build();
    let change = {
        let kernel = move |_: &Context<'_, ()>, (value,): (&mut u64,)| {
            *value += 1;
            is_changed.store(true, Release);
        };
        runtime.codelet::<(ReadWrite<u64>,), ()>("change").cpu("change", kernel).build()
    };
    let recording = runtime.record(|recorder| recorder.task(&copy, (&from, &to)).submit().map(drop));
    let recording = recording.expect("the task is sound");
    runtime.run(&recording).expect("it runs");
    // Those that have ended are forgotten when they are many.
    for _ in 0..100 {
        runtime.task(&look, (&from,)).submit().expect("the task is sound");
    }
    runtime.wait_all().expect("every task runs");
    runtime.replay(&recording).expect("it does not run");
    runtime.task(&change, (&from,)).submit().expect("the task is sound");
    runtime.wait_all().expect("no two tasks meet");
    assert_eq!((*runtime.read(&to).expect("it is good"), *runtime.read(&from).expect("it is good")), (1, 2));
}

#[test]
fn replays_and_other_threads_do_not_wait_for_each_other() {
    let runtime = runtime(EAGER, 2);
    let [one, other] = [(); 2].map(|()| runtime.register(0_u64));
    let both = runtime.codelet::<(ReadWrite<u64>, ReadWrite<u64>), ()>("both");
    let both = both.cpu("both", |_, (one, other)| (*one, *other) = (*one + 1, *other + 1)).build();
    let recording = runtime.record(|recorder| recorder.task(&both, (&one, &other)).submit().map(drop));
    let recording = recording.expect("the task is sound");
    // The first ones by the only thread that submits.
    (0..10).for_each(|_| runtime.run(&recording).expect("it runs"));
    std::thread::scope(|scope| {
        for data in [(&one, &other), (&other, &one)] {
            let (runtime, both) = (&runtime, &both);
            scope.spawn(move || {
                (0..2000).for_each(|_| _ = runtime.task(both, data).submit().expect("the task is sound"));
            });
        }
        (0..2000).for_each(|_| runtime.run(&recording).expect("it runs"));
    });
    let found = [&one, &other].map(|data| *runtime.read(data).expect("it is good"));
    assert_eq!(found, [6010; 2]);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    #[test]
    fn replays_and_tasks_run_as_if_one_after_the_other(
        recorded in prop::collection::vec(prop::collection::vec(spec(), 0..8), RECORDINGS),
        steps in prop::collection::vec(step(), 1..60),
        workers in 1_usize..4,
    ) {
        for tree in [EAGER, "work-stealing { each \"worker\" { worker } }"] {
            Program::new(tree, workers, &recorded).run(&steps);
        }
    }

    /// From some step on, several threads submit.
    #[test]
    fn so_they_do_where_several_threads_submit(
        recorded in prop::collection::vec(prop::collection::vec(spec(), 0..8), RECORDINGS),
        steps in prop::collection::vec(prop_oneof![20 => step(), 1 => spec().prop_map(Step::TaskElsewhere)], 1..60),
        workers in 1_usize..4,
    ) {
        Program::new(EAGER, workers, &recorded).run(&steps);
    }
}

//! Data lives as long as handles or tasks name it, and no longer.

use proptest::prelude::*;
use proptest::sample::Index;
use sched_host::runtime::{Codelet, Commute, Handle, Many, Read, ReadWrite, Recording, Runtime, TaskRef, Write};
use sched_tests::stock::{EAGER, SHAPES, runtime};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::*};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;

const ALIVE: u64 = 0x5EED_0A11_FE00_u64;

/// A value that knows whether it was dropped.
struct Canary {
    word: u64,
    dropped: Arc<AtomicUsize>,
}

impl Drop for Canary {
    fn drop(&mut self) {
        assert_eq!(self.word, ALIVE, "a value is dropped once");
        self.word = 0;
        self.dropped.fetch_add(1, SeqCst);
    }
}

type Accesses = (Many<Read<Canary>>, Many<Write<Canary>>, Many<ReadWrite<Canary>>, Many<Commute<Canary>>);

#[derive(Default)]
struct Params {
    /// Handles that go when the task has ended, or, if it drops them itself, while it runs.
    taken_along: Vec<Handle<Canary>>,
    fails: bool,
}

#[derive(Clone, Debug)]
enum Step {
    Register,
    /// A task with data, by number and mode.
    Submit {
        data: Vec<(Index, u8)>,
        how: How,
    },
    Drop(Index),
    Cancel(Index),
    /// Another thread gets a handle, submits a task with it, and drops it.
    Elsewhere(Index),
    Record(Vec<(Index, u8)>),
    Replay(Index),
    Forget(Index),
    Wait,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum How {
    Plain,
    /// With fields that few tasks have.
    Named,
    Fails,
    /// With the last handle of its first datum among its parameters.
    TakesAlong,
    /// It nests tasks with the same data.
    Nests,
}

fn accesses() -> impl Strategy<Value = Vec<(Index, u8)>> {
    prop::collection::vec((any::<Index>(), 0..4_u8), 0..4)
}

fn step() -> impl Strategy<Value = Step> {
    let how = prop_oneof![
        6 => Just(How::Plain),
        1 => Just(How::Named),
        1 => Just(How::Fails),
        2 => Just(How::TakesAlong),
        1 => Just(How::Nests),
    ];
    prop_oneof![
        5 => Just(Step::Register),
        12 => (accesses(), how).prop_map(|(data, how)| Step::Submit { data, how }),
        4 => any::<Index>().prop_map(Step::Drop),
        1 => any::<Index>().prop_map(Step::Cancel),
        2 => any::<Index>().prop_map(Step::Elsewhere),
        1 => accesses().prop_map(Step::Record),
        1 => any::<Index>().prop_map(Step::Replay),
        1 => any::<Index>().prop_map(Step::Forget),
        1 => Just(Step::Wait),
    ]
}

/// Handles by mode, each datum once.
fn by_mode(data: &[(Index, u8)], handles: &[Handle<Canary>]) -> [Vec<Handle<Canary>>; 4] {
    let mut by_mode: [Vec<Handle<Canary>>; 4] = Default::default();
    let mut named = Vec::new();
    for (index, mode) in data.iter().filter(|_| !handles.is_empty()) {
        let at = index.index(handles.len());
        if !named.contains(&at) {
            named.push(at);
            by_mode[*mode as usize].push(handles[at].clone());
        }
    }
    by_mode
}

struct Program<'r> {
    runtime: &'r Runtime,
    step: Codelet<Accesses, Params>,
    nests: Codelet<Accesses, Params>,
    handles: Vec<Handle<Canary>>,
    recordings: Vec<Recording>,
    tasks: Vec<TaskRef>,
    elsewhere: Sender<Handle<Canary>>,
    registered: usize,
    dropped: Arc<AtomicUsize>,
}

impl Program<'_> {
    fn run(&mut self, step: &Step) {
        match step {
            Step::Register => {
                self.registered += 1;
                self.handles.push(self.runtime.register(Canary { word: ALIVE, dropped: Arc::clone(&self.dropped) }));
            }
            Step::Submit { data, how } => self.submit(data, *how),
            Step::Drop(index) if !self.handles.is_empty() => {
                drop(self.handles.swap_remove(index.index(self.handles.len())));
            }
            Step::Cancel(index) if !self.tasks.is_empty() => {
                self.runtime.cancel(self.tasks[index.index(self.tasks.len())]);
            }
            Step::Elsewhere(index) if !self.handles.is_empty() => {
                let handle = self.handles[index.index(self.handles.len())].clone();
                self.elsewhere.send(handle).expect("the other thread listens");
            }
            Step::Record(data) => {
                let [reads, writes, updates, commutes] = by_mode(data, &self.handles);
                let recording = self.runtime.record(|recorder| {
                    let data = (&reads, &writes, &updates, &commutes);
                    recorder.task_with(&self.step, Params::default(), data).submit().map(drop)
                });
                self.recordings.push(recording.expect("the task is sound"));
            }
            Step::Replay(index) if !self.recordings.is_empty() => {
                // One that runs is refused.
                let _ = self.runtime.replay(&self.recordings[index.index(self.recordings.len())]);
            }
            Step::Forget(index) if !self.recordings.is_empty() => {
                drop(self.recordings.swap_remove(index.index(self.recordings.len())));
            }
            Step::Wait => drop(self.runtime.wait_all()),
            _ => {}
        }
    }

    fn submit(&mut self, data: &[(Index, u8)], how: How) {
        let [reads, writes, updates, commutes] = by_mode(data, &self.handles);
        let mut params = Params { fails: how == How::Fails, ..Params::default() };
        if let (How::TakesAlong, Some((first, _))) = (how, data.first())
            && !self.handles.is_empty()
        {
            params.taken_along.push(self.handles.swap_remove(first.index(self.handles.len())));
        }
        let codelet = if how == How::Nests { &self.nests } else { &self.step };
        let mut task = self.runtime.task_with(codelet, params, (&reads, &writes, &updates, &commutes));
        if how == How::Named {
            task = task.name("named");
        }
        let task = task.submit();
        // These handles go before the task has ended, as a rule.
        drop((reads, writes, updates, commutes));
        self.tasks.push(task.expect("the task is sound"));
    }
}

fn check(shape: &str, steps: &[Step]) {
    let runtime = runtime(shape, 2);
    let (dropped, saw_dead) = (Arc::default(), Arc::new(AtomicBool::new(false)));
    let look = |saw_dead: Arc<AtomicBool>| {
        move |canary: &Canary| {
            if canary.word != ALIVE {
                saw_dead.store(true, SeqCst);
            }
        }
    };
    let seen = look(Arc::clone(&saw_dead));
    let kernel = move |params: &Params, reads: Vec<&Canary>, written: [Vec<&mut Canary>; 3]| {
        // Lets others in, if the runtime does.
        thread::yield_now();
        reads.iter().for_each(|canary| seen(canary));
        written.iter().flatten().for_each(|canary| seen(canary));
        drop(params.taken_along.clone());
        assert!(!params.fails, "the kernel fails as it is asked to");
    };
    let inner = kernel.clone();
    let step = runtime.codelet::<Accesses, Params>("step");
    let step = step.cpu("step", move |context, (reads, writes, updates, commutes)| {
        kernel(context.params, reads, [writes, updates, commutes]);
    });
    let nested = runtime.codelet::<(), ()>("nested").cpu("nested", |_, ()| {}).build();
    let nests = runtime.codelet::<Accesses, Params>("nests");
    let nests = nests.cpu("nests", move |context, (reads, writes, updates, commutes)| {
        context.nest().task(&nested, ()).submit().expect("it is free");
        inner(context.params, reads, [writes, updates, commutes]);
    });
    let (step, nests) = (step.build(), nests.nests().build());
    let read = {
        let seen = look(Arc::clone(&saw_dead));
        let read = runtime.codelet::<(Read<Canary>,), ()>("read");
        read.cpu("read", move |_, (canary,)| seen(canary)).build()
    };
    let (elsewhere, gets) = channel();
    let registered = thread::scope(|scope| {
        let runtime = &runtime;
        scope.spawn(move || {
            gets.iter().for_each(|handle: Handle<Canary>| drop(runtime.task(&read, (&handle,)).submit()));
        });
        let (handles, recordings, tasks) = (Vec::new(), Vec::new(), Vec::new());
        let dropped = Arc::clone(&dropped);
        let (registered, runtime) = (0, runtime);
        let mut program = Program { runtime, step, nests, handles, recordings, tasks, elsewhere, registered, dropped };
        steps.iter().for_each(|step| program.run(step));
        // The handles that are left go while tasks run, too.
        program.registered
    });
    let _ = runtime.wait_all();
    assert!(!saw_dead.load(SeqCst), "a kernel saw a value that was dropped");
    assert_eq!(dropped.load(SeqCst), registered, "each value is dropped when nobody names it any more");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(if cfg!(miri) { 3 } else { 256 }))]
    #[test]
    fn values_live_as_long_as_handles_and_tasks_name_them(
        shape in prop::sample::select(SHAPES.to_vec()),
        steps in prop::collection::vec(step(), 1..if cfg!(miri) { 12 } else { 120 }),
    ) {
        check(shape, &steps);
    }
}

#[test]
fn a_value_goes_with_the_last_task_that_names_it() {
    let runtime = runtime(EAGER, 1);
    let dropped = Arc::default();
    let (go_on, waits) = channel::<()>();
    let wait = runtime.codelet::<(ReadWrite<Canary>,), Receiver<()>>("wait");
    let wait = wait
        .cpu("wait", |context, _| {
            let _ = context.params.recv();
        })
        .build();
    let (used, other) = (Canary { word: ALIVE, dropped: Arc::clone(&dropped) }, Arc::clone(&dropped));
    let (used, unused) = (runtime.register(used), runtime.register(Canary { word: ALIVE, dropped: other }));
    runtime.task_with(&wait, waits, (&used,)).submit().expect("the task is sound");
    drop(unused);
    assert_eq!(dropped.load(SeqCst), 1, "no task names it");
    drop(used);
    assert_eq!(dropped.load(SeqCst), 1, "a task names it");
    drop(go_on);
    runtime.wait_all().expect("every task runs");
    assert_eq!(dropped.load(SeqCst), 2);
}

#[test]
fn data_is_taken_back_only_without_tasks_of_other_handles() {
    let runtime = runtime(EAGER, 2);
    let add = runtime.codelet::<(ReadWrite<u64>,), ()>("add").cpu("add", |_, (x,)| *x += 1).build();
    for _ in 0..if cfg!(miri) { 3 } else { 300 } {
        let handle = runtime.register(0);
        let other = handle.clone();
        let taken = thread::scope(|scope| {
            let (runtime, add) = (&runtime, &add);
            scope.spawn(move || {
                (0..20).for_each(|_| {
                    runtime.task(add, (&other,)).submit().expect("the task is sound");
                });
                drop(other);
            });
            runtime.unregister(handle).expect("it is computed")
        });
        let value = match taken {
            Ok(value) => value,
            Err(handle) => runtime.unregister(handle).expect("it is computed").expect("it is the only handle"),
        };
        assert_eq!(value, 20);
    }
}

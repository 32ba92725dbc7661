//! Components of a real run hear of the tasks to come, and `plan` uses them.

use sched_core::{Arch, Offer, Stage};
use sched_host::context::SchedContext;
use sched_host::graph::{AccessMode, Datum, Lengths, Task, TaskGraph};
use sched_host::policy::{Policy, library};
use sched_host::runtime::{Builder, Codelet, Context, Handle, Many, Read, ReadWrite, Runtime, Write};
use sched_host::sim::{Platform, Simulation};
use sched_host::trace::{Event, EventLog};
use sched_tests::hold::Hold;
use sched_tests::meanwhile::submit_meanwhile;
use sched_tests::onlooker::{Onlooker, seen};
use sched_tests::place;
use sched_tests::stock::{EAGER, builder, policy, registry};
use std::sync::atomic::{AtomicUsize, Ordering::*};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

/// A runtime whose root is the onlooker of this number.
fn looking(number: i64, workers: usize) -> Builder {
    builder(&onlooker(number), workers, vec![Offer::of::<Onlooker>()])
}

fn onlooker(number: i64) -> String {
    format!(r#"onlooker number={number} {{ fifo {{ eager {{ each "worker" {{ worker }} }} }} }}"#)
}

fn shipped(name: &str) -> Policy {
    library().iter().map(|shipped| shipped.policy()).find(|policy| policy.name == name).expect("it is shipped")
}

/// Does nothing. Pushed last, it has the onlooker look once more.
fn nothing(runtime: &Runtime) -> Codelet<(), ()> {
    runtime.codelet::<(), ()>("nothing").cpu("nothing", |_, ()| {}).build()
}

#[test]
fn what_is_submitted_is_reported_with_its_dependencies_and_data() {
    let runtime = looking(1, 1).build().expect("it starts");
    let held = Hold::new(&runtime).worker();
    let (one, two) = (runtime.register(0_u64), runtime.register([0_u32; 3]));
    let set = runtime.codelet::<(Write<u64>,), ()>("set").cpu("set", |_, (value,)| *value = 1).build();
    let sum = runtime
        .codelet::<(Read<u64>, ReadWrite<[u32; 3]>), ()>("sum")
        .cpu("sum", |_, (from, to)| to[0] += *from as u32)
        .build();
    let first = runtime.task(&set, (&one,)).submit().expect("the task is sound").sequence();
    let second = runtime.task(&sum, (&one, &two)).submit().expect("the task is sound");
    let third = runtime.task(&nothing(&runtime), ()).after(second).submit().expect("the task is sound").sequence();
    let last = runtime.task(&nothing(&runtime), ()).submit().expect("the task is sound").sequence();
    let (second, shown) = (second.sequence(), seen(1));
    assert_eq!(shown.keys().copied().collect::<Vec<_>>(), [1, first, second, third, last]);
    assert_eq!(shown[&1].stage, Stage::Taken, "it keeps the worker busy");
    assert_eq!((shown[&first].stage, &*shown[&first].successors), (Stage::Ready, &[second][..]));
    assert_eq!((shown[&second].stage, &*shown[&second].successors), (Stage::Waiting, &[third][..]));
    assert_eq!((shown[&last].stage, shown[&last].successors.len()), (Stage::Ready, 0));
    let of = |task: u64| -> Vec<_> {
        shown[&task].accesses.iter().map(|access| (access.bytes, access.reads, access.writes)).collect()
    };
    assert_eq!((of(first), of(second)), (vec![(8, false, true)], vec![(8, true, false), (12, true, true)]));
    assert_eq!(shown[&first].accesses[0].data, shown[&second].accesses[0].data);
    assert!(shown.values().all(|task| !task.passes));
    drop(held);
    runtime.wait_all().expect("every task runs");
    let after = runtime.task(&nothing(&runtime), ()).submit().expect("the task is sound").sequence();
    assert_eq!(seen(1).into_keys().collect::<Vec<_>>(), [after], "the others have ended");
}

#[test]
fn an_access_of_the_application_is_reported_as_what_ends_by_itself() {
    let runtime = looking(2, 1).build().expect("it starts");
    let data = runtime.register(0_u64);
    let reads = runtime.read(&data).expect("the data is good");
    let set = runtime.codelet::<(Write<u64>,), ()>("set").cpu("set", |_, (value,)| *value = 1).build();
    let waits = runtime.task(&set, (&data,)).submit().expect("the task is sound").sequence();
    runtime.task(&nothing(&runtime), ()).submit().expect("the task is sound");
    // Only the one without data was pushed, and it has seen both others.
    let shown = seen(2);
    let access = shown.values().find(|task| task.passes).expect("the application reads");
    assert_eq!((&*access.successors, shown[&waits].stage), (&[waits][..], Stage::Waiting));
    drop(reads);
    runtime.wait_all().expect("every task runs");
}

#[test]
fn each_context_hears_of_its_own_tasks() {
    let runtime = looking(3, 2).build().expect("it starts");
    let other = runtime.context("other").policy_value(policy(&onlooker(4))).build().expect("it fits");
    let hold = Hold::new(&runtime);
    let held = [hold.worker(), hold.worker()];
    let mut sequences = [Vec::new(), Vec::new()];
    let nothing = nothing(&runtime);
    for number in 0..10 {
        let task = runtime.task(&nothing, ());
        let task = if number % 2 == 0 { task } else { task.context(&other) };
        sequences[number % 2].push(task.submit().expect("the task is sound").sequence());
    }
    let shown = |number| seen(number).into_keys().filter(|task| *task > 2).collect::<Vec<_>>();
    assert_eq!([shown(3), shown(4)], sequences);
    drop(held);
    runtime.wait_all().expect("every task runs");
}

#[test]
fn who_comes_late_hears_of_what_was_submitted_before() {
    let runtime = builder(EAGER, 1, vec![Offer::of::<Onlooker>()]).build().expect("it starts");
    let context = runtime.default_context();
    let data = runtime.register(0_u64);
    let step = runtime.codelet::<(ReadWrite<u64>,), ()>("step").cpu("step", |_, (step,)| *step += 1).build();
    for round in 0..3 {
        let held = Hold::new(&runtime).worker();
        let chain: Vec<u64> =
            (0..50).map(|_| runtime.task(&step, (&data,)).submit().expect("the task is sound").sequence()).collect();
        context.swap_policy_value(policy(&onlooker(5))).expect("it fits");
        // The first of the chain was pushed into the new tree.
        let shown = seen(5);
        let lines: Vec<(u64, usize)> = shown.iter().map(|(task, shown)| (*task, shown.successors.len())).collect();
        let of_chain = chain.iter().map(|task| (*task, usize::from(task != &chain[49])));
        let expected: Vec<_> = std::iter::once((chain[0] - 1, 0)).chain(of_chain).collect();
        assert_eq!(lines, expected, "round {round}");
        drop(held);
        runtime.wait_all().expect("every task runs");
        context.swap_policy_value(policy(EAGER)).expect("it fits");
        runtime.task(&step, (&data,)).submit().expect("the task is sound");
        runtime.wait_all().expect("every task runs");
    }
}

/// What is submitted behind a gate: two long tasks, and a short one that something longer waits for. Whoever looks
/// ahead has the short one begin before both long ones have.
const TASKS: [(&str, u64); 5] = [("gate", 100), ("long", 30), ("long", 30), ("short", 10), ("end", 40)];

/// Which tasks have begun.
#[derive(Default)]
struct Begun {
    names: Mutex<Vec<&'static str>>,
    changed: Condvar,
}

impl Begun {
    fn note(&self, name: &'static str) {
        self.names.lock().expect("nobody panics").push(name);
        self.changed.notify_all();
    }

    /// Waits until `count` tasks have begun.
    fn wait_for(&self, count: usize) {
        let names = self.names.lock().expect("nobody panics");
        drop(self.changed.wait_while(names, |names| names.len() < count).expect("nobody panics"));
    }
}

/// The order in which two workers begin these tasks by a policy.
fn order_in_a_real_run(policy: &str) -> Vec<&'static str> {
    // Longer than any test, so that nothing depends on how fast it goes.
    let seconds = |count: u64| Duration::from_secs(count * 1000);
    let runtime = builder(EAGER, 2, Vec::new()).policy_value(shipped(policy)).build().expect("it starts");
    let (open, opened) = channel::<()>();
    let opened = Mutex::new(Some(opened));
    let begun = Arc::new(Begun::default());
    let (start, results) = (runtime.register(()), runtime.register(()));
    let codelet = |name: &'static str, length: u64, body: Box<dyn Fn(&Begun) + Send + Sync>| {
        let begun = Arc::clone(&begun);
        let codelet = runtime.codelet::<(Many<Read<()>>, Many<ReadWrite<()>>), ()>(name);
        let kernel = move |_: &Context<'_>, _: (Vec<&()>, Vec<&mut ()>)| {
            begun.note(name);
            body(&begun);
        };
        let codelet = codelet.cpu(name, kernel);
        match length {
            // The gate has no expected duration.
            0 => codelet.build(),
            length => codelet.estimate(Arch::CPU, seconds(length)).build(),
        }
    };
    let wait = move |_: &Begun| {
        let opened: Option<Receiver<()>> = opened.lock().expect("nobody panics").take();
        let _ = opened.expect("it runs once").recv();
    };
    let gate = codelet("gate", 0, Box::new(wait));
    // So that the first two keep both workers until both have begun.
    let long = codelet("long", 30, Box::new(|begun| begun.wait_for(3)));
    let (short, end) =
        (codelet("short", 10, Box::new(|begun| begun.wait_for(3))), codelet("end", 40, Box::new(|_| {})));
    let none = Vec::new();
    let (start, results) = (vec![start], vec![results]);
    let submit = |codelet, from: &Vec<_>, to: &Vec<_>| {
        runtime.task(codelet, (from, to)).submit().expect("the task is sound");
    };
    submit(&gate, &none, &start);
    submit(&long, &start, &none);
    submit(&long, &start, &none);
    submit(&short, &start, &results);
    submit(&end, &results, &none);
    open.send(()).expect("the gate is closed");
    runtime.wait_all().expect("every task runs");
    assert_eq!(runtime.faults(), []);
    std::mem::take(&mut *begun.names.lock().expect("nobody panics"))
}

/// The order in which two simulated workers begin these tasks by a policy.
fn order_in_a_simulation(policy: &str) -> Vec<&'static str> {
    let mut graph = TaskGraph::new("behind a gate");
    let [start, results] = [(); 2].map(|()| graph.add_data(Datum::new(8)));
    for (name, length) in TASKS {
        let kind = graph.add_kind(name);
        let task = match name {
            "gate" => Task::new(kind).access(start, AccessMode::ReadWrite),
            "long" => Task::new(kind).access(start, AccessMode::Read),
            "short" => Task::new(kind).access(start, AccessMode::Read).access(results, AccessMode::ReadWrite),
            _ => Task::new(kind).access(results, AccessMode::Read),
        };
        let lengths = Lengths::default().with(Arch::CPU, Duration::from_secs(length));
        graph.add_task(Task { lengths, ..task });
    }
    let machine = r#"platform "two" { memory "ram"; workers "cpu" arch="cpu" memory="ram" count=2 }"#;
    let machine = Platform::parse("two.kdl", machine).expect("the text is sound");
    let mut log = EventLog::default();
    let simulation = Simulation::new(graph, machine).registry(registry(Vec::new())).policy(policy);
    simulation.observe(&mut log).expect("it runs");
    let begun = log.events.iter().filter_map(|stamped| match stamped.event {
        Event::Started { task, .. } => Some(TASKS[place(task)].0),
        _ => None,
    });
    begun.collect()
}

#[test]
fn a_real_run_goes_by_what_is_to_come_as_a_simulation_does() {
    for order in [order_in_a_real_run, order_in_a_simulation] {
        let mut by_plan = order("tree-plan");
        by_plan[1..3].sort_unstable();
        assert_eq!(by_plan[..3], ["gate", "long", "short"], "who looks ahead begins at once what much waits for");
        let by_replan = order("tree-replan");
        assert_eq!(by_replan[..3], ["gate", "long", "long"], "who does not cannot know");
    }
}

#[test]
fn ready_tasks_behind_many_that_wait_are_not_kept() {
    // A window of four is full of what waits for the application, which waits for what comes behind.
    let tree = r#"plan window=4 { each "worker" { prio { worker } } }"#;
    // Without the slots for tasks without an expected duration.
    let runtime = builder(tree, 2, Vec::new()).unchecked().build().expect("it starts");
    let known = |name: &str| {
        let codelet = runtime.codelet::<(Many<ReadWrite<u64>>,), ()>(name).cpu(name, |_, (values,)| {
            values.into_iter().for_each(|value| *value += 1);
        });
        codelet.estimate(Arch::CPU, Duration::from_micros(10)).build()
    };
    let step = known("step");
    let (kept, free) = (vec![runtime.register(0)], vec![runtime.register(0)]);
    let reads = runtime.read(&kept[0]).expect("the data is good");
    for _ in 0..20 {
        runtime.task(&step, (&kept,)).submit().expect("the task is sound");
    }
    let behind: Vec<_> = (0..20).map(|_| runtime.task(&step, (&free,)).submit().expect("the task is sound")).collect();
    runtime.wait(behind[19]).expect("nothing keeps it");
    drop(reads);
    runtime.wait_all().expect("every task runs");
    assert_eq!([*runtime.read(&kept[0]).expect("it is good"), *runtime.read(&free[0]).expect("it is good")], [20, 20]);
}

/// A linear congruential generator.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % limit
    }
}

const THREADS: usize = 3;

/// Tasks that each thread submits.
const PER_THREAD: usize = 600;

/// All tasks: each of those that threads submit submits another.
const ALL: usize = 2 * THREADS * PER_THREAD;

/// How often each task ran or ended.
type Counts = Arc<Vec<AtomicUsize>>;

/// Data that a task reads and writes; its number and whether it fails.
type Counted = Codelet<(Many<Read<u64>>, Many<ReadWrite<u64>>), (usize, bool)>;

/// Codelets of different expected lengths, whose tasks count themselves and submit another one.
fn counting_codelets(runtime: &Runtime, ran: &Counts, ended: &Counts) -> [Counted; 3] {
    let second = {
        let ran = Arc::clone(ran);
        let codelet = runtime.codelet::<(), usize>("second");
        codelet.cpu("second", move |context, ()| _ = ran[*context.params].fetch_add(1, SeqCst)).build()
    };
    let codelet = |name: &str, lengths: Option<u64>| {
        let (ran, ended, second) = (Arc::clone(ran), Arc::clone(ended), second.clone());
        let codelet = runtime.codelet::<(Many<Read<u64>>, Many<ReadWrite<u64>>), (usize, bool)>(name);
        let codelet = codelet.cpu(name, move |context, (_, values)| {
            let (task, fails) = *context.params;
            ran[task].fetch_add(1, SeqCst);
            values.into_iter().for_each(|value| *value += 1);
            let next = context.submitter().task_with(&second, task + THREADS * PER_THREAD, ());
            let ended = Arc::clone(&ended);
            let next = next.on_end(move |_| _ = ended[task + THREADS * PER_THREAD].fetch_add(1, SeqCst));
            next.submit().expect("the task is sound");
            assert!(!fails, "on purpose");
        });
        match lengths {
            Some(micros) => codelet.estimate(Arch::CPU, Duration::from_micros(micros)).build(),
            None => codelet.build(),
        }
    };
    [codelet("short", Some(20)), codelet("long", Some(300)), codelet("unknown", None)]
}

/// Submits tasks that read and write random data, some of them to another context, some after one another.
fn submit_randomly(
    thread: usize,
    runtime: &Runtime,
    other: &SchedContext,
    data: &[Handle<u64>],
    codelets: &[Counted],
    ended: &Counts,
) -> impl FnMut(usize) {
    let mut random = Random(thread as u64);
    let mut before = None;
    move |number| {
        let task = thread * PER_THREAD + number;
        let mut pick = || -> Vec<usize> {
            let mut chosen: Vec<usize> = (0..random.below(3)).map(|_| random.below(20) as usize).collect();
            chosen.sort_unstable();
            chosen.dedup();
            chosen
        };
        // What is read is never written by the same task.
        let from: Vec<_> = pick().into_iter().map(|at| data[at].clone()).collect();
        let to: Vec<_> = pick().into_iter().map(|at| data[20 + at].clone()).collect();
        let fails = random.below(100) == 0 && to.is_empty();
        let codelet = &codelets[random.below(3) as usize];
        let ended = Arc::clone(ended);
        let mut new = runtime
            .task_with(codelet, (task, fails), (&from, &to))
            .on_end(move |_| _ = ended[task].fetch_add(1, SeqCst));
        if random.below(4) == 0 {
            new = new.context(other);
        }
        if let Some(before) = before.filter(|_| random.below(8) == 0) {
            new = new.after(before);
        }
        before = Some(new.submit().expect("the task is sound"));
    }
}

#[test]
fn every_task_ends_once_however_the_policy_changes_and_whatever_fails() {
    let runtime = builder(EAGER, 3, Vec::new()).policy_value(shipped("tree-plan")).build().expect("it starts");
    let other = runtime.context("other").policy_value(shipped("tree-plan")).workers([1, 2]).build().expect("it fits");
    let (ran, ended): (Counts, Counts) = (
        Arc::new((0..ALL).map(|_| AtomicUsize::new(0)).collect()),
        Arc::new((0..ALL).map(|_| AtomicUsize::new(0)).collect()),
    );
    let data: Vec<_> = (0..40).map(|_| runtime.register(0_u64)).collect();
    let codelets = counting_codelets(&runtime, &ran, &ended);
    let submitter = |thread| submit_randomly(thread, &runtime, &other, &data, &codelets, &ended);
    let swap = |number: usize| {
        let turns = ["tree-ws", "tree-plan", "tree-heft", "tree-plan", "tree-eager", "tree-plan"];
        let context = if number.is_multiple_of(3) { other.clone() } else { runtime.default_context() };
        context.swap_policy_value(shipped(turns[number % turns.len()])).expect("it fits");
    };
    let end = submit_meanwhile(&runtime, (THREADS, PER_THREAD), submitter, swap);
    assert!(!matches!(end, Err(sched_host::runtime::RunError::Stalled(_))), "{end:?}");
    for task in 0..ALL {
        let (ran, ended) = (ran[task].load(SeqCst), ended[task].load(SeqCst));
        // What was cancelled did not run, and submitted nothing.
        assert!(ran <= 1 && ran <= ended, "task {task} ran {ran} times and ended {ended} times");
        assert!(task >= THREADS * PER_THREAD || ended == 1, "task {task} ended {ended} times");
    }
    assert_eq!(runtime.faults(), []);
}

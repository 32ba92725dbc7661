//! Statements of the StarPU handbook about its schedulers, checked from submission to execution.

use sched_core::*;
use sched_host::policy::{Source, library};
use sched_host::runtime::Runtime;
use sched_tests::by_hand::{ByHand, Mixed};
use sched_tests::hold::Hold;
use sched_tests::stock::{self, builder, policy};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::Mutex as StdMutex;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::time::Duration;

/// Passes calls on, and records them in the diary of its number.
#[derive(Debug)]
struct Diary {
    number: usize,
}

/// Entries of a diary.
#[derive(Default)]
struct Pages {
    built: AtomicUsize,
    dropped: AtomicUsize,
    /// The workers in the context, each time that they changed.
    workers: StdMutex<Vec<Vec<u32>>>,
}

/// One for each test.
static DIARIES: [Pages; 2] =
    [const { Pages { built: AtomicUsize::new(0), dropped: AtomicUsize::new(0), workers: StdMutex::new(Vec::new()) } };
        2];

impl Build for Diary {
    const INFO: Info = Info::new("diary", Family::SpecialPurpose, "Writes down what happens to it.")
        .params(const { &[Param::int("number", 0, "which of the diaries")] });

    fn build(params: &Params) -> Result<Self, BuildError> {
        let number = usize::try_from(params.int("number")?).map_err(|_| BuildError::new("expected a number from 0"))?;
        DIARIES[number].built.fetch_add(1, SeqCst);
        Ok(Diary { number })
    }
}

impl Component for Diary {
    fn push_task(&self, node: Node<'_>, task: Task) -> Push {
        node.push_to(Child(0), task)
    }

    fn notify_change_workers(&self, node: Node<'_>) {
        let workers = node.workers_in_context().iter().map(|worker| worker.0).collect();
        DIARIES[self.number].workers.lock().expect("nobody panics").push(workers);
    }
}

impl Drop for Diary {
    fn drop(&mut self) {
        DIARIES[self.number].dropped.fetch_add(1, SeqCst);
    }
}

/// Runs a few tasks to the end.
fn work(runtime: &Runtime) {
    let nothing = runtime.codelet::<(), ()>("nothing").cpu("nothing", |_, ()| {}).build();
    for _ in 0..20 {
        runtime.task(&nothing, ()).submit().expect("the task is sound");
    }
    runtime.wait_all().expect("every task runs");
}

#[test]
fn every_component_hears_when_workers_join_or_leave() {
    let tree = r#"fifo { diary number=0 { eager { each "worker" { diary number=0 { worker } } } } }"#;
    let runtime = builder(tree, 3, vec![Offer::of::<Diary>()]).build().expect("it starts");
    let context = runtime.default_context();
    // Those above all workers, and above each that is there.
    let heard = |change: &str, all: &[u32]| {
        let mut pages = DIARIES[0].workers.lock().expect("nobody panics");
        let found: BTreeSet<Vec<u32>> = pages.drain(..).filter(|workers| !workers.is_empty()).collect();
        let each = all.iter().map(|worker| vec![*worker]);
        assert_eq!(found, each.chain([all.to_vec()]).collect(), "{change}");
    };
    heard("the beginning", &[0, 1, 2]);
    context.remove_workers([2]).expect("there is this worker");
    heard("one leaves", &[0, 1]);
    work(&runtime);
    context.add_workers([2]).expect("there is this worker");
    heard("it is back", &[0, 1, 2]);
    work(&runtime);
    assert_eq!(DIARIES[0].workers.lock().expect("nobody panics").len(), 0, "nothing else changed");
}

#[test]
fn every_component_is_dropped_once_with_its_tree() {
    let counts = || (DIARIES[1].built.load(SeqCst), DIARIES[1].dropped.load(SeqCst));
    let tree = r#"fifo { eager { each "worker" { diary number=1 { worker } } } }"#;
    let runtime = builder(tree, 2, vec![Offer::of::<Diary>()]).build().expect("it starts");
    assert_eq!(counts(), (2, 0));
    work(&runtime);
    runtime.default_context().swap_policy_value(policy(stock::EAGER)).expect("it fits");
    work(&runtime);
    assert_eq!(counts(), (2, 2), "the tree that gave way is gone");
    runtime.default_context().swap_policy_value(policy(tree)).expect("it fits");
    let other = runtime.context("other").policy_value(policy(tree)).workers([1]).build().expect("it fits");
    assert_eq!(counts(), (5, 2), "contexts share no component");
    other.delete().expect("it has no task");
    assert_eq!(counts(), (5, 3), "a context takes its own with it, and leaves those of others");
    work(&runtime);
    drop((other, runtime));
    assert_eq!(counts(), (5, 5));
}

/// The order in which the only worker runs tasks of these priorities, all submitted before it looks for one.
fn order(policy: &str, priorities: &[i32]) -> Vec<usize> {
    let shipped = Source::find(policy).and_then(|source| source.policy()).expect("it is shipped");
    let runtime = builder(stock::EAGER, 1, Vec::new()).policy_value(shipped).build().expect("it starts");
    let order = Arc::new(StdMutex::new(Vec::new()));
    let note = Arc::clone(&order);
    let note = runtime
        .codelet::<(), usize>("note")
        .cpu("note", move |call, ()| note.lock().expect("nobody panics").push(*call.params))
        .build();
    let held = Hold::new(&runtime).worker();
    for (number, priority) in priorities.iter().enumerate() {
        runtime.task_with(&note, number, ()).priority(*priority).submit().expect("the task is sound");
    }
    drop(held);
    runtime.wait_all().expect("every task runs");
    order.lock().expect("nobody panics").clone()
}

#[test]
fn prio_based_schedulers_run_what_is_urgent_first() {
    let priorities: Vec<i32> = (0..40).map(|task| task * 7 % 5 - 2).collect();
    // With prefetching, the first two lie in the worker's own queue when the others come.
    for (policy, ahead) in
        [("tree-prio", 0), ("tree-random-prio", 0), ("tree-prio-prefetching", 2), ("tree-random-prio-prefetching", 2)]
    {
        let order = order(policy, &priorities);
        let later: Vec<usize> = order.iter().copied().filter(|task| *task >= ahead).collect();
        let mut expected = later.clone();
        expected.sort_by_key(|task| (-priorities[*task], *task));
        assert_eq!((order.len(), &later), (40, &expected), "{policy}");
    }
}

#[test]
fn an_eager_scheduler_gives_the_next_task_to_whoever_is_free_first() {
    let shipped = Source::find("tree-eager").and_then(|source| source.policy()).expect("it is shipped");
    let tree = ByHand::new(&shipped, &stock::registry(Vec::new()), &Mixed { cpus: 3, gpus: 0 }, None);
    let tasks = [(); 4].map(|()| tree.push(Arch::CPU, None));
    let pulled = [2, 0, 2, 1].map(|worker| tree.pull(worker).expect("there are tasks"));
    assert_eq!(pulled, tasks);
    assert_eq!(tree.pull(0), None);
}

#[test]
fn the_books_of_workers_are_kept_under_every_policy_that_reports_lengths() {
    for shipped in library().iter().filter(|shipped| shipped.text.contains("best-implementation")) {
        let runtime = builder(stock::EAGER, 2, Vec::new()).policy_value(shipped.policy()).build();
        let runtime = runtime.unwrap_or_else(|error| panic!("{}: {error:?}", shipped.name));
        let held = Hold::lasting(&runtime, Duration::from_secs(1000)).worker();
        let lengths = || {
            let mut lengths: Vec<u64> = runtime.expectations().iter().map(|of| of.length.as_secs()).collect();
            lengths.sort_unstable();
            lengths
        };
        assert_eq!(lengths(), [0, 1000], "{}", shipped.name);
        drop(held);
        runtime.wait_all().expect("it ends");
        assert_eq!(lengths(), [0, 0], "{}", shipped.name);
    }
}

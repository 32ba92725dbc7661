//! Policies are swapped while tasks run: each task runs once, and a failed swap leaves the old policy in use.

use proptest::prelude::*;
use sched_core::Offer;
use sched_host::context::ContextError;
use sched_host::policy::library;
use sched_host::runtime::{Codelet, ReadWrite, Runtime};
use sched_host::tree::FaultKind;
use sched_tests::awkward::{Hanging, Unbuildable, hold_pushes};
use sched_tests::bad::Bad;
use sched_tests::hold::{Held, Hold};
use sched_tests::meanwhile::submit_meanwhile;
use sched_tests::stock::{EAGER, SHAPES, builder, policy, runtime};
use std::sync::atomic::{AtomicUsize, Ordering::*};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread;

/// Counts how often each task ran.
struct Counted {
    codelet: Codelet<(), usize>,
    runs: Arc<Vec<AtomicUsize>>,
}

impl Counted {
    fn new(runtime: &Runtime, tasks: usize) -> Counted {
        let runs: Arc<Vec<_>> = Arc::new((0..tasks).map(|_| AtomicUsize::new(0)).collect());
        let counter = Arc::clone(&runs);
        let codelet = runtime
            .codelet::<(), usize>("count")
            .cpu("count", move |context, ()| {
                counter[*context.params].fetch_add(1, SeqCst);
            })
            .build();
        Counted { codelet, runs }
    }

    fn assert_once(&self) {
        for (task, runs) in self.runs.iter().enumerate() {
            assert_eq!(runs.load(SeqCst), 1, "task {task}");
        }
    }
}

/// Keeps every worker busy until it is let go. The policy must be one that gives a task to any free worker: one that
/// binds tasks to workers may put the second behind the first.
fn hold(runtime: &Runtime, workers: usize) -> Vec<Held> {
    let hold = Hold::new(runtime);
    (0..workers).map(|_| hold.worker()).collect()
}

#[test]
fn every_shipped_policy_gives_way_to_every_other() {
    let policies: Vec<_> = library().iter().map(|shipped| shipped.policy()).collect();
    let runtime = builder(EAGER, 2, Vec::new()).build().expect("it starts");
    let context = runtime.default_context();
    let pairs: Vec<(usize, usize)> =
        (0..policies.len()).flat_map(|from| (0..policies.len()).map(move |to| (from, to))).collect();
    let tasks = pairs.len() * 6;
    let counted = Counted::new(&runtime, tasks);
    for (number, (from, to)) in pairs.into_iter().enumerate() {
        // What holds the workers goes to them by a policy that binds no task to one that is busy.
        let held = hold(&runtime, 2);
        context.swap_policy_value(policies[from].clone()).expect("every shipped policy fits");
        for task in number * 6..number * 6 + 6 {
            let priority = task as i32 % 3;
            runtime.task_with(&counted.codelet, task, ()).priority(priority).submit().expect("the task is sound");
        }
        // The tasks sit in the tree now: nobody is free.
        context.swap_policy_value(policies[to].clone()).expect("every shipped policy fits");
        assert_eq!(context.policy(), policies[to].name);
        drop(held);
        runtime.wait_all().expect("every task runs");
        context.swap_policy_value(policy(EAGER)).expect("it fits");
    }
    counted.assert_once();
    assert_eq!(runtime.faults(), []);
}

/// Tasks that note their parameters, and what they have noted.
fn noting(runtime: &Runtime) -> (Codelet<(), i32>, Arc<Mutex<Vec<i32>>>) {
    let order = Arc::new(Mutex::new(Vec::new()));
    let noted = Arc::clone(&order);
    let note = runtime
        .codelet::<(), i32>("note")
        .cpu("note", move |context, ()| noted.lock().expect("nobody panics").push(*context.params))
        .build();
    (note, order)
}

#[test]
fn tasks_keep_their_order() {
    let runtime = builder(EAGER, 1, Vec::new()).build().expect("it starts");
    let held = hold(&runtime, 1);
    let (note, order) = noting(&runtime);
    for number in 0..10 {
        runtime.task_with(&note, number, ()).submit().expect("the task is sound");
    }
    let context = runtime.default_context();
    context.swap_policy("tree-eager-prefetching").expect("it fits");
    for number in 10..20 {
        runtime.task_with(&note, number, ()).submit().expect("the task is sound");
    }
    context.swap_policy("tree-eager").expect("it fits");
    drop(held);
    runtime.wait_all().expect("every task runs");
    assert_eq!(*order.lock().expect("nobody panics"), (0..20).collect::<Vec<_>>());
}

/// Runs tasks of all priorities up to 4 that were in a tree of heteroprio, which makes their priorities equal, and come
/// to the next one: the second half first.
fn by_priority(runtime: &Runtime, submit: impl FnOnce(&Codelet<(), i32>)) -> Vec<i32> {
    let (note, order) = noting(runtime);
    let context = runtime.default_context();
    let held = hold(runtime, 1);
    context.swap_policy_value(policy(r#"heteroprio { each "worker" { prio { worker } } }"#)).expect("it fits");
    submit(&note);
    context.swap_policy_value(policy(r#"prio { eager { each "worker" { worker } } }"#)).expect("it fits");
    drop(held);
    runtime.wait_all().expect("every task runs");
    order.lock().expect("nobody panics").clone()
}

#[test]
fn the_next_policy_goes_by_the_priorities_of_the_application() {
    // Unchecked, since nothing knows the lengths of tasks.
    let runtime = runtime(EAGER, 1);
    for round in 0..2 {
        let order = by_priority(&runtime, |note| {
            for number in 0..10 {
                runtime.task_with(note, number, ()).priority(number % 5 - 2).submit().expect("the task is sound");
            }
        });
        assert_eq!(order, [4, 9, 3, 8, 2, 7, 1, 6, 0, 5], "round {round}");
    }
}

#[test]
fn a_replay_has_the_priorities_of_the_application_again() {
    // Unchecked, since nothing knows the lengths of tasks.
    let runtime = runtime(EAGER, 1);
    let (note, order) = noting(&runtime);
    let recording = runtime.record(|recorder| {
        (0..5).try_for_each(|number| recorder.task_with(&note, number, ()).priority(number % 3).submit().map(drop))
    });
    let recording = recording.expect("the tasks are sound");
    let context = runtime.default_context();
    for tree in
        [r#"heteroprio { each "worker" { prio { worker } } }"#, r#"prio { eager { each "worker" { worker } } }"#]
    {
        order.lock().expect("nobody panics").clear();
        let held = hold(&runtime, 1);
        context.swap_policy_value(policy(tree)).expect("it fits");
        runtime.replay(&recording).expect("it does not run");
        drop(held);
        runtime.wait_all().expect("every task runs");
        context.swap_policy_value(policy(EAGER)).expect("it fits");
    }
    assert_eq!(*order.lock().expect("nobody panics"), [2, 1, 4, 0, 3], "in the tree that goes by them");
}

#[test]
fn tasks_run_once_however_often_the_policy_changes() {
    const THREADS: usize = 3;
    const TASKS: usize = 2000;
    let runtime = builder(EAGER, 3, Vec::new()).unchecked().build().expect("it starts");
    let counted = Counted::new(&runtime, THREADS * TASKS);
    let chain = runtime.register(0_u64);
    let step = runtime.codelet::<(ReadWrite<u64>,), ()>("step").cpu("step", |_, (step,)| *step += 1).build();
    let submitter = |thread: usize| {
        let (runtime, counted, chain, step) = (&runtime, &counted, &chain, &step);
        move |task: usize| {
            let new = runtime.task_with(&counted.codelet, thread * TASKS + task, ()).priority((task % 5) as i32);
            new.submit().expect("the task is sound");
            runtime.task(step, (chain,)).submit().expect("the task is sound");
        }
    };
    let context = runtime.default_context();
    let swap = |swaps: usize| context.swap_policy_value(policy(SHAPES[swaps % SHAPES.len()])).expect("it fits");
    submit_meanwhile(&runtime, (THREADS, TASKS), submitter, swap).expect("every task runs");
    counted.assert_once();
    assert_eq!(*runtime.read(&chain).expect("the data is good"), (THREADS * TASKS) as u64);
    assert_eq!(runtime.faults(), []);
}

#[test]
fn a_task_may_swap_its_own_policy() {
    let runtime = runtime(EAGER, 2);
    let context = runtime.default_context();
    let swap = runtime
        .codelet::<(), usize>("swap")
        .cpu("swap", move |call, ()| context.swap_policy_value(policy(SHAPES[*call.params])).expect("it fits"))
        .build();
    for round in 0..50 {
        runtime.task_with(&swap, round % SHAPES.len(), ()).submit().expect("the task is sound");
    }
    runtime.wait_all().expect("every task runs");
}

/// Tasks in the tree, an attempt that fails, and the old policy does them.
fn assert_goes_on(tree: &str, offers: Vec<Offer>, attempt: impl FnOnce(&Runtime) -> ContextError) -> ContextError {
    let runtime = builder(tree, 2, offers).unchecked().build().expect("it starts");
    let held = hold(&runtime, 2);
    let counted = Counted::new(&runtime, 100);
    for task in 0..100 {
        runtime.task_with(&counted.codelet, task, ()).submit().expect("the task is sound");
    }
    let before = runtime.survey();
    let error = attempt(&runtime);
    let nodes = |survey: &[sched_host::tree::NodeState]| {
        survey.iter().map(|node| (node.node.clone(), node.tasks, node.quarantined)).collect::<Vec<_>>()
    };
    assert_eq!(nodes(&before), nodes(&runtime.survey()), "every task is where it was");
    drop(held);
    runtime.wait_all().expect("every task runs");
    counted.assert_once();
    error
}

#[test]
fn a_wrong_policy_leaves_the_old_one_at_work() {
    let error = assert_goes_on(EAGER, Vec::new(), |runtime| {
        runtime.default_context().swap_policy("tree-eagle").expect_err("there is no such policy")
    });
    assert!(error.to_string().contains("tree-eagle"), "{error}");
    let error = assert_goes_on(EAGER, Vec::new(), |runtime| {
        runtime.default_context().swap_policy_value(policy("fifo { }")).expect_err("it reaches no worker")
    });
    assert!(matches!(error, ContextError::Policy(_)), "{error}");
}

#[test]
fn a_component_that_cannot_be_built_leaves_the_old_policy_at_work() {
    for what in ["refuse", "panic"] {
        let error = assert_goes_on(EAGER, vec![Offer::of::<Unbuildable>()], |runtime| {
            let tree = format!(r#"fifo {{ unbuildable what="{what}" {{ eager {{ each "worker" {{ worker }} }} }} }}"#);
            runtime.default_context().swap_policy_value(policy(&tree)).expect_err("it cannot be built")
        });
        assert!(matches!(error, ContextError::Policy(_)), "{error}");
        assert!(format!("{error:?}").contains("bad on purpose"), "{error:?}");
    }
}

#[test]
fn a_new_tree_that_fails_gives_way_to_the_old_one() {
    for (what, after) in [("panic in push", 0), ("panic in push", 5), ("panic after storing", 50)] {
        let error = assert_goes_on(SHAPES[1], vec![Offer::of::<Bad>()], |runtime| {
            let bad = format!(r#"bad what="{what}" after={after}"#);
            let tree = format!(r#"{bad} {{ fifo {{ eager {{ each "worker" {{ worker }} }} }} }}"#);
            runtime.default_context().swap_policy_value(policy(&tree)).expect_err("it fails")
        });
        let ContextError::Failed { faults, .. } = &error else { panic!("{error}") };
        assert!(matches!(faults[0].kind, FaultKind::Panicked { .. }), "{error}");
        assert!(error.to_string().contains("goes on as it was"), "{error}");
    }
}

#[test]
fn a_queue_that_was_full_before_a_swap_that_fails_has_room_afterwards() {
    let runtime = builder(SHAPES[1], 1, vec![Offer::of::<Bad>()]).unchecked().build().expect("it starts");
    let first = hold(&runtime, 1);
    let counted = Counted::new(&runtime, 100);
    let submit = |tasks: std::ops::Range<usize>| {
        tasks.for_each(|task| _ = runtime.task_with(&counted.codelet, task, ()).submit().expect("the task is sound"));
    };
    let (begins, begun) = channel();
    let (go_on, goes_on) = channel::<()>();
    let gate = runtime.codelet::<(), (Sender<()>, Receiver<()>)>("gate").cpu("gate", |context, ()| {
        context.params.0.send(()).expect("the test listens");
        let _ = context.params.1.recv();
    });
    let gate = gate.build();
    // The pull of the second task leaves two in the queue.
    submit(0..1);
    runtime.task_with(&gate, (begins, goes_on), ()).submit().expect("the task is sound");
    submit(1..100);
    drop(first);
    begun.recv().expect("it begins");
    let held: Vec<u64> = runtime.survey().iter().map(|node| node.tasks).collect();
    assert!(held.contains(&2), "the queue is full: {held:?}");
    let bad = policy(r#"bad what="panic in push" after=5 { fifo { eager { each "worker" { worker } } } }"#);
    runtime.default_context().swap_policy_value(bad).expect_err("it fails");
    drop(go_on);
    runtime.wait_all().expect("every task runs");
    counted.assert_once();
}

#[test]
fn tasks_of_a_node_that_failed_move_too() {
    // It fails while the workers are held, so that its tasks are in the fallback store or still with it.
    for what in ["panic after storing", "panic in can_pull", "drop", "leak", "hoard", "deaf"] {
        let tree = format!(r#"bad what="{what}" after=3 {{ fifo {{ eager {{ each "worker" {{ worker }} }} }} }}"#);
        let runtime = builder(EAGER, 2, vec![Offer::of::<Bad>()]).unchecked().build().expect("it starts");
        let held = hold(&runtime, 2);
        let context = runtime.default_context();
        context.swap_policy_value(policy(&tree)).expect("it is bad later only");
        let counted = Counted::new(&runtime, 50);
        for task in 0..50 {
            runtime.task_with(&counted.codelet, task, ()).submit().expect("the task is sound");
        }
        context.swap_policy_value(policy(EAGER)).expect("it fits");
        drop(held);
        runtime.wait_all().expect("every task runs");
        counted.assert_once();
        // The runtime still reports the faults of the old tree.
        let says = runtime.faults().iter().any(|fault| fault.component == "bad");
        assert_eq!(
            says,
            ["panic after storing", "drop", "leak", "deaf"].contains(&what),
            "{what}: {:?}",
            runtime.faults()
        );
    }
}

#[test]
fn a_component_that_hangs_keeps_the_old_policy() {
    let runtime = builder(EAGER, 2, vec![Offer::of::<Hanging>()]).unchecked().build().expect("it starts");
    let context = runtime.default_context();
    let tree = r#"hanging { fifo { eager { each "worker" { worker } } } }"#;
    context.swap_policy_value(policy(tree)).expect("it hangs later only");
    let counted = Counted::new(&runtime, 20);
    let held = hold_pushes();
    thread::scope(|scope| {
        let submitter = scope.spawn(|| {
            for task in 0..20 {
                runtime.task_with(&counted.codelet, task, ()).submit().expect("the task is sound");
            }
        });
        held.wait_until_somebody_hangs();
        let error = context.swap_policy_value(policy(EAGER)).expect_err("somebody is inside");
        assert!(matches!(error, ContextError::Busy { .. }), "{error}");
        drop(held);
        submitter.join().expect("it goes on");
    });
    runtime.wait_all().expect("every task runs");
    context.swap_policy_value(policy(EAGER)).expect("nobody hangs any more");
    counted.assert_once();
}

#[derive(Clone, Copy, Debug)]
enum Step {
    Submit(usize),
    Swap(usize),
    Add(u32),
    Remove(u32),
    Wait,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        4 => (1_usize..40).prop_map(Step::Submit),
        3 => (0..SHAPES.len()).prop_map(Step::Swap),
        2 => (0_u32..3).prop_map(Step::Add),
        2 => (0_u32..3).prop_map(Step::Remove),
        1 => Just(Step::Wait),
    ];
    prop::collection::vec(step, 1..30)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, ..ProptestConfig::default() })]

    #[test]
    fn any_sequence_of_changes_runs_each_task_once(steps in steps()) {
        let runtime = builder(EAGER, 3, Vec::new()).unchecked().build().expect("it starts");
        let context = runtime.context("changing").policy_value(policy(EAGER)).workers([0, 1]).build().expect("it fits");
        let tasks = steps.iter().map(|step| if let Step::Submit(count) = step { *count } else { 0 }).sum();
        let counted = Counted::new(&runtime, tasks);
        let mut submitted = 0;
        for step in steps {
            match step {
                Step::Submit(count) => {
                    for task in submitted..submitted + count {
                        let task = runtime.task_with(&counted.codelet, task, ()).context(&context);
                        task.submit().expect("the task is sound");
                    }
                    submitted += count;
                }
                Step::Swap(shape) => context.swap_policy_value(policy(SHAPES[shape])).expect("it fits"),
                Step::Add(worker) => context.add_workers([worker]).expect("there is this worker"),
                Step::Remove(worker) => context.remove_workers([worker]).expect("there is this worker"),
                // Without workers it would stall.
                Step::Wait if !context.workers().is_empty() => context.wait_all().expect("every task runs"),
                Step::Wait => {}
            }
        }
        context.add_workers([2]).expect("there is this worker");
        context.wait_all().expect("every task runs");
        prop_assert_eq!(context.stats().finished, tasks as u64);
        counted.assert_once();
        prop_assert_eq!(runtime.faults(), []);
    }
}

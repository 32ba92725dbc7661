//! A valid policy never stalls: random trees that pass the check run any graph of tasks to its end.

use proptest::prelude::*;
use sched_core::*;
use sched_host::policy::{Policy, SimpleFlags, library};
use sched_host::runtime::{
    Builder, Many, ReadWrite, RunError, Runtime, StartError, SubmitError, Submitter, TaskRef, WhenFull,
};
use sched_host::text::Finding;
use sched_tests::stock::{EAGER, builder, registry};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::*};
use std::sync::{Arc, Barrier};
use std::time::Duration;

/// Long enough for a worker that the system keeps waiting; only a stall takes so long.
const QUIET: Duration = Duration::from_secs(1);

/// A queue with any thresholds, around `inner`.
fn queue(inner: impl Strategy<Value = String>) -> impl Strategy<Value = String> {
    let bound = prop_oneof![
        2 => Just(String::new()),
        2 => (1..4_u32).prop_map(|tasks| format!(" ntasks-threshold={tasks}")),
        1 => (1..4_u32).prop_map(|length| format!(" exp-len-threshold={length}.0")),
    ];
    (bound, inner).prop_map(|(bound, inner)| format!("fifo{bound} {{ {inner} }}"))
}

/// `inner` below queues of any thresholds and choices of implementations, in any order.
fn stack(inner: impl Strategy<Value = String> + 'static) -> impl Strategy<Value = String> {
    inner.boxed().prop_recursive(3, 3, 1, |inner| {
        prop_oneof![queue(inner.clone()), inner.prop_map(|inner| format!("best-implementation {{ {inner} }}"))]
    })
}

/// Workers below an eager component, or below two levels of them, with anything between.
fn mapped() -> impl Strategy<Value = String> {
    let workers =
        || stack(Just("worker".to_owned())).prop_map(|chain| format!("eager {{ each \"worker\" {{ {chain} }} }}"));
    let nested = stack(workers()).prop_map(|inner| format!("eager {{ each \"memory-node\" {{ {inner} }} }}"));
    // Two ways to each worker.
    let shared = (stack(Just("use \"leaf\"".to_owned())), stack(Just("use \"leaf\"".to_owned())))
        .prop_map(|(one, other)| format!("eager {{ each \"worker\" {{ {one}; {other} }} }}"));
    prop_oneof![3 => workers(), 2 => nested, 1 => shared]
}

/// A tree that passes the check.
fn tree() -> impl Strategy<Value = String> {
    let queued = stack(mapped()).prop_map(|tree| format!("fifo {{ {tree} }}"));
    let dealt = stack(Just("worker".to_owned()))
        .prop_map(|chain| format!("eager {{ each \"worker\" {{ fifo {{ {chain} }} }} }}"));
    prop_oneof![5 => queued, 1 => dealt].prop_map(|tree| match tree.contains("use \"leaf\"") {
        true => tree + r#"; shared "leaf" each="worker" { worker }"#,
        false => tree,
    })
}

/// Simple schedulers around any decision, one or several that the application chooses among, with flags that are sound.
fn simple() -> impl Strategy<Value = Policy> {
    let decisions = [
        "eager",
        "eager-prio",
        "random",
        "work-stealing",
        "mct",
        "block-cyclic",
        "heft",
        "heteroprio",
        "replan",
        "plan",
    ];
    let one_of = |words: &[&'static str]| prop::sample::select(words.to_vec());
    let flags = (
        one_of(&decisions),
        one_of(&["decide-workers", "decide-memory-nodes", "decide-archs"]),
        one_of(&["", "perfmodel"]),
        one_of(&["", "fifo-above", "fifo-above-prio"]),
        one_of(&["", "fifos-below", "fifos-below-prio ready exp", "fifos-below ready-first ntasks-threshold=1"]),
        one_of(&["", "fifos-below no-limit"]),
        one_of(&["", "ws-below"]),
        one_of(&["", "impl"]),
    );
    let words = flags.prop_map(|(decision, decide, models, above, below, free, steal, best)| {
        let below = if free.is_empty() { below } else { free };
        [decision, decide, models, above, below, steal, best].join(" ")
    });
    let catalogue = registry(Vec::new()).catalogue();
    prop::collection::vec(words, 1..3).prop_filter_map("flags are missing", move |schedulers| {
        let flags = SimpleFlags::parse(&schedulers.join(";")).expect("the words are sound");
        SimpleFlags::user_choice("simple", &flags, &catalogue).ok()
    })
}

/// A task: which of two handles it changes, if any, and which task before it waits for; whether its length is known,
/// and which scheduler it is for, where there are several.
#[derive(Clone, Debug)]
struct Step {
    handle: Option<usize>,
    after: Option<prop::sample::Index>,
    priority: i32,
    known: bool,
    choice: u64,
}

fn step() -> impl Strategy<Value = Step> {
    let after = prop::option::of(any::<prop::sample::Index>());
    let of_scheduler = (any::<bool>(), 0..3_u64);
    (prop::option::of(0..2_usize), after, -1..2, of_scheduler)
        .prop_map(|(handle, after, priority, (known, choice))| Step { handle, after, priority, known, choice })
}

fn run(builder: Builder, tree: &str, steps: &[Step]) -> Result<(), TestCaseError> {
    let runtime = builder.quiet_period(QUIET).build().map_err(|error| TestCaseError::fail(format!("{error:?}")))?;
    let handles = [runtime.register(0_usize), runtime.register(0_usize)];
    let codelet = |name: &str, known: bool| {
        let codelet =
            runtime.codelet::<(Many<ReadWrite<usize>>,), Arc<AtomicUsize>>(name).cpu(name, |context, (counts,)| {
                counts.into_iter().for_each(|count| *count += 1);
                context.params.fetch_add(1, Relaxed);
            });
        if known { codelet.estimate(Arch::CPU, Duration::from_micros(1)).build() } else { codelet.build() }
    };
    let codelets = [codelet("count", false), codelet("count with a model", true)];
    let count = Arc::new(AtomicUsize::new(0));
    let mut tasks: Vec<TaskRef> = Vec::new();
    for (index, step) in steps.iter().enumerate() {
        let data: Vec<_> = step.handle.iter().map(|handle| handles[*handle].clone()).collect();
        let codelet = &codelets[usize::from(step.known)];
        let mut task = runtime.task_with(codelet, Arc::clone(&count), (&data,)).priority(step.priority);
        if let Some(before) = step.after.filter(|_| index > 0) {
            task = task.after(tasks[before.index(index)]);
        }
        tasks.push(task.sched_data(step.choice).submit().expect("the task is sound"));
    }
    let ended = runtime.wait_all();
    prop_assert!(ended.is_ok(), "{:?} with\n{}", ended.err(), tree);
    prop_assert_eq!(count.load(Relaxed), steps.len());
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, max_shrink_iters: 60, ..ProptestConfig::default() })]

    #[test]
    fn a_valid_tree_runs_every_task(
        tree in tree(),
        workers in 1_usize..=3,
        steps in prop::collection::vec(step(), 1..40),
    ) {
        run(builder(&tree, workers, Vec::new()), &tree, &steps)?;
    }

    #[test]
    fn simple_schedulers_run_every_task(
        policy in simple(),
        workers in 1_usize..=3,
        steps in prop::collection::vec(step(), 1..40),
    ) {
        let text = policy.to_kdl();
        run(builder(EAGER, workers, Vec::new()).policy_value(policy), &text, &steps)?;
    }

    #[test]
    fn shipped_policies_run_every_task(
        shipped in prop::sample::select(library()),
        workers in 1_usize..=3,
        steps in prop::collection::vec(step(), 1..40),
    ) {
        run(builder(EAGER, workers, Vec::new()).policy_value(shipped.policy()), shipped.name, &steps)?;
    }
}

/// A stack that waits to be pulled from, as the simplest of plugins would.
struct Stack(Mutex<Vec<Task>>);

impl Build for Stack {
    const INFO: Info = Info::new("stack", Family::FlowControl, "Gives back the task that was pushed last.")
        .storage(Storage::Unbounded)
        .pulled_only();

    fn build(_params: &Params) -> Result<Self, BuildError> {
        Ok(Stack(Mutex::default()))
    }
}

impl Component for Stack {
    fn push_task(&self, node: Node<'_>, task: Task) -> Push {
        self.0.lock().push(task);
        node.children_can_pull();
        Ok(())
    }

    fn pull_task(&self, _node: Node<'_>, _to: Child) -> Option<Task> {
        self.0.lock().pop()
    }

    fn drain(&self) -> Vec<Task> {
        std::mem::take(&mut *self.0.lock())
    }
}

/// Tasks do not move if such a runtime is started unchecked.
fn assert_stalls(builder: Builder) {
    let runtime = builder.unchecked().build().expect("it starts");
    let codelet = runtime.codelet::<(), ()>("nothing").cpu("nothing", |_, ()| {}).build();
    for _ in 0..20 {
        let _ = runtime.task(&codelet, ()).submit().expect("the task is sound");
    }
    let error = runtime.wait_all().expect_err("nothing moves");
    assert!(matches!(error, RunError::Stalled(_)), "{error}");
}

#[test]
fn what_has_no_pump_does_stall() {
    for tree in [
        r#"stack { eager { each "worker" { fifo ntasks-threshold=1 { worker } } } }"#,
        r#"fifo { eager { each "worker" { stack { worker } } } }"#,
    ] {
        let builder = || builder(tree, 2, vec![Offer::of::<Stack>()]).quiet_period(Duration::from_millis(100));
        assert_eq!(broken_rules(builder()), ["V3"], "{tree}");
        assert_stalls(builder());
    }
}

/// Each of the tasks waits for one that it has submitted, and no worker is left.
#[test]
fn tasks_that_wait_for_others_without_a_worker_stall() {
    for workers in [1, 2] {
        let builder = builder(EAGER, workers, Vec::new()).quiet_period(Duration::from_millis(100));
        let runtime = Arc::new(builder.build().expect("it starts"));
        let inside = Arc::downgrade(&runtime);
        let nothing = runtime.codelet::<(), ()>("nothing").cpu("nothing", |_, ()| {}).build();
        let (all_began, reports) = (Arc::new(Barrier::new(workers)), Arc::new(Mutex::new(Vec::new())));
        let noted = Arc::clone(&reports);
        let waits = runtime.codelet::<(), ()>("waits").cpu("waits", move |_, ()| {
            let runtime = inside.upgrade().expect("the test has it");
            all_began.wait();
            let inner = runtime.task(&nothing, ()).submit().expect("the task is sound");
            // The first that gives up frees its worker for the others.
            if let Err(stalled) = runtime.wait(inner) {
                noted.lock().push(stalled.to_string());
            }
        });
        let waits = waits.build();
        for _ in 0..workers {
            runtime.task(&waits, ()).submit().expect("the task is sound");
        }
        // This thread may see the stall as well.
        while let Err(error) = runtime.wait_all() {
            assert!(matches!(error, RunError::Stalled(_)), "{error}");
        }
        let reports = reports.lock();
        assert!(reports.iter().any(|report| report.contains("executes a task that waits for others")), "{reports:?}");
        let first = reports.first().expect("one of them gives up");
        assert!(first.ends_with("are in tasks that wait: nest tasks in these instead"), "{first}");
    }
}

#[test]
fn what_is_left_to_be_pulled_through_what_sorts_does_stall() {
    let select = r#"perfmodel-select {
        perfmodel { mct { use "leaf" } }; calibrator { eager-calibration { use "leaf" } }; no-perfmodel { eager { use "leaf" } }
    }"#;
    for top in [select, r#"user-choice { eager { use "leaf" } }"#] {
        let tree = |leaf: &str| format!("fifo {{ {top} }}; shared \"leaf\" each=\"worker\" {{ {leaf} }}");
        assert_eq!(broken_rules(builder(&tree("fifo { worker }"), 2, Vec::new())), [""; 0]);
        let builder = || builder(&tree("worker"), 2, Vec::new()).quiet_period(Duration::from_millis(100));
        assert!(broken_rules(builder()).iter().all(|rule| *rule == "V3") && !broken_rules(builder()).is_empty());
        assert_stalls(builder());
    }
}

#[test]
fn a_choice_of_no_child_is_named_where_the_run_stalls() {
    let tree = r#"fifo { user-choice { fifo { eager { use "leaf" } }; fifo { eager { use "leaf" } } } }
        shared "leaf" each="worker" { fifo { worker } }"#;
    let builder = builder(tree, 1, Vec::new()).quiet_period(Duration::from_millis(100));
    let runtime = builder.build().expect("it starts");
    let codelet = runtime.codelet::<(), ()>("nothing").cpu("nothing", |_, ()| {}).build();
    for choice in [0, 1, 7] {
        runtime.task(&codelet, ()).sched_data(choice).submit().expect("the task is sound");
    }
    let error = runtime.wait_all().expect_err("the queue keeps one").to_string();
    assert!(error.contains("last choice of no child: 7, where the children are 0 to 1"), "{error}");
}

/// The rules that keep a runtime from starting.
fn broken_rules(builder: Builder) -> Vec<&'static str> {
    match builder.build() {
        Err(StartError::Policy(errors)) => errors.findings().iter().map(Finding::id).collect(),
        Err(error) => panic!("{error}"),
        Ok(_) => Vec::new(),
    }
}

/// The host handles a root that refuses, but the policy is invalid.
#[test]
fn a_policy_that_breaks_a_rule_on_progress_starts_only_unchecked() {
    for tree in [
        r#"fifo ntasks-threshold=1 { eager { each "worker" { worker } } }"#,
        r#"eager { each "worker" { worker } }"#,
        r#"eager { each "worker" { fifo ntasks-threshold=1 { worker } } }"#,
    ] {
        assert_eq!(broken_rules(builder(tree, 1, Vec::new())), ["V1"], "{tree}");

        let runtime = builder(tree, 1, Vec::new()).unchecked().build().expect("it starts");
        let codelet = runtime.codelet::<(), ()>("nothing").cpu("nothing", |_, ()| {}).build();
        for _ in 0..20 {
            let _ = runtime.task(&codelet, ()).submit().expect("the task is sound");
        }
        runtime.wait_all().expect("what the root refuses is kept elsewhere");
    }
}

/// With threads of their own for all workers, or with a worker that is the thread that waits.
fn runtimes(change: impl Fn(Builder) -> Builder) -> impl Iterator<Item = Runtime> {
    [false, true].into_iter().map(move |is_main| {
        let builder = change(builder(EAGER, 2, Vec::new()).quiet_period(Duration::from_millis(100)));
        if is_main { builder.main_worker() } else { builder }.build().expect("it starts")
    })
}

#[test]
fn a_wait_for_the_default_context_or_for_room_stalls_while_the_program_holds_the_data() {
    for runtime in runtimes(|builder| builder.bound_tasks(3, WhenFull::Wait)) {
        let add = runtime.codelet::<(ReadWrite<u64>,), ()>("add").cpu("add", |_, (x,)| *x += 1).build();
        let x = runtime.register(0);
        let held = runtime.read(&x).expect("it is there");
        // What holds the data counts as one.
        let submitted = (0..3).map(|_| runtime.task(&add, (&x,)).submit()).collect::<Vec<_>>();
        assert!(submitted.iter().take(2).all(Result::is_ok), "{submitted:?}");
        assert!(matches!(runtime.task(&add, (&x,)).submit(), Err(SubmitError::Full { .. })));
        assert!(matches!(runtime.default_context().wait_all(), Err(RunError::Stalled(_))));
        drop(held);
        runtime.wait_all().expect("every task runs");
    }
}

#[test]
fn a_context_without_workers_stalls_whatever_another_one_does() {
    const MANY: u64 = 20_000_000;
    for runtime in runtimes(|builder| builder) {
        let nothing = runtime.codelet::<(), ()>("nothing").cpu("nothing", |_, ()| {}).build();
        let busy = runtime.context("busy").build().expect("there is room");
        let empty = runtime.context("empty").workers([]).build().expect("there is room");
        runtime.task(&nothing, ()).context(&empty).submit().expect("it is sound");
        let is_over = AtomicBool::new(false);
        let submitter: Submitter = (*runtime).clone();
        std::thread::scope(|scope| {
            let others = scope.spawn(|| {
                let submit = |_: &u64| submitter.task(&nothing, ()).context(&busy).submit().is_ok();
                (0..MANY).take_while(|_| !is_over.load(SeqCst)).filter(submit).count() as u64
            });
            let stalled = empty.wait_all();
            is_over.store(true, SeqCst);
            assert!(matches!(stalled, Err(RunError::Stalled(_))), "{stalled:?}");
            assert!(others.join().expect("it submits") < MANY, "only when nothing else moved");
        });
        empty.add_workers([0]).expect("there is this worker");
        runtime.wait_all().expect("every task runs");
    }
}

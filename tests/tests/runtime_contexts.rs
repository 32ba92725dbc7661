//! Several contexts at once: each task runs once, where and when it should.

use sched_core::Offer;
use sched_host::context::{ContextError, SchedContext};
use sched_host::runtime::{Codelet, Outcome, ReadWrite, RunError, Runtime, SubmitError};
use sched_host::tree::FaultKind;
use sched_tests::bad::Bad;
use sched_tests::hold::Hold;
use sched_tests::meanwhile::submit_meanwhile;
use sched_tests::stock::{EAGER, SHAPES, builder, policy};
use std::sync::atomic::{AtomicUsize, Ordering::*};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

fn start(workers: usize) -> Runtime {
    // However busy the machine is, workers get to run within this.
    let patient = Duration::from_secs(60);
    let offers = vec![Offer::of::<Bad>()];
    builder(EAGER, workers, offers).quiet_period(patient).unchecked().build().expect("it starts")
}

fn context(runtime: &Runtime, name: &str, tree: &str, workers: impl IntoIterator<Item = u32>) -> SchedContext {
    runtime.context(name).policy_value(policy(tree)).workers(workers).build().expect("the policy fits")
}

/// What tasks were given, and the workers that ran them.
type Notes = Arc<Mutex<Vec<(usize, u32)>>>;

/// A codelet that notes what it is given, and the worker that ran it.
fn noting(runtime: &Runtime) -> (Codelet<(), usize>, Notes) {
    let notes = Arc::new(Mutex::new(Vec::new()));
    let noted = Arc::clone(&notes);
    let codelet = runtime
        .codelet::<(), usize>("note")
        .cpu("note", move |call, ()| noted.lock().expect("nobody panics").push((*call.params, call.worker.0)))
        .build();
    (codelet, notes)
}

#[test]
fn tasks_run_on_the_workers_of_their_context() {
    for shape in SHAPES {
        let runtime = start(4);
        let (left, right) = (context(&runtime, "left", shape, [0, 1]), context(&runtime, "right", EAGER, 2..4));
        let (note, notes) = noting(&runtime);
        for task in 0..400 {
            let context = if task % 2 == 0 { &left } else { &right };
            runtime.task_with(&note, task, ()).context(context).submit().expect("the task is sound");
        }
        left.wait_all().expect("every task runs");
        right.wait_all().expect("every task runs");
        assert_eq!((left.stats().finished, right.stats().finished), (200, 200));
        let notes = notes.lock().expect("nobody panics");
        assert!(notes.iter().all(|(task, worker)| (task % 2 == 0) == (*worker < 2)), "{notes:?}");
        let mut tasks: Vec<_> = notes.iter().map(|(task, _)| *task).collect();
        tasks.sort_unstable();
        assert_eq!(tasks, (0..400).collect::<Vec<_>>());
    }
}

#[test]
fn a_worker_of_several_contexts_serves_them_in_turn() {
    let runtime = start(1);
    let contexts: Vec<_> = ["a", "b", "c"].iter().map(|name| context(&runtime, name, EAGER, [0])).collect();
    let (note, notes) = noting(&runtime);
    let held = Hold::new(&runtime).worker_of(&contexts[0]);
    for (number, context) in contexts.iter().enumerate() {
        for _ in 0..50 {
            runtime.task_with(&note, number, ()).context(context).submit().expect("the task is sound");
        }
    }
    drop(held);
    runtime.wait_all().expect("every task runs");
    let notes = notes.lock().expect("nobody panics");
    for turn in notes.chunks(3) {
        let mut served: Vec<_> = turn.iter().map(|(context, _)| *context).collect();
        served.sort_unstable();
        assert_eq!(served, [0, 1, 2], "each gets its share");
    }
}

#[test]
fn tasks_belong_to_the_current_context() {
    let runtime = start(2);
    let (a, b) = (context(&runtime, "a", EAGER, [0]), context(&runtime, "b", EAGER, [1]));
    let nothing = runtime.codelet::<(), ()>("nothing").cpu("nothing", |_, ()| {}).build();
    let inner = nothing.clone();
    let parent = runtime
        .codelet::<(), ()>("parent")
        .cpu("parent", move |call, ()| {
            call.submitter().task(&inner, ()).submit().expect("the task is sound");
        })
        .build();
    let other = b.clone();
    let last = nothing.clone();
    let elsewhere = runtime
        .codelet::<(), ()>("elsewhere")
        .cpu("elsewhere", move |call, ()| {
            other.with(|| call.submitter().task(&last, ()).submit().expect("the task is sound"));
            call.submitter().task(&last, ()).submit().expect("the task is sound");
        })
        .build();
    a.with(|| {
        runtime.task(&nothing, ()).submit().expect("the task is sound");
        b.with(|| runtime.task(&nothing, ()).submit().expect("the task is sound"));
        runtime.task(&parent, ()).submit().expect("the task is sound");
        runtime.task(&elsewhere, ()).submit().expect("the task is sound");
        runtime.task(&parent, ()).context(&b).submit().expect("the task is sound");
    });
    runtime.task(&nothing, ()).submit().expect("the task is sound");
    runtime.wait_all().expect("every task runs");
    let finished: Vec<_> = runtime.contexts().iter().map(|context| context.stats().finished).collect();
    assert_eq!(finished, [1, 5, 4]);
}

#[test]
fn workers_come_and_go_while_tasks_run() {
    const TASKS: usize = 3000;
    for shape in [EAGER, SHAPES[1], SHAPES[5], SHAPES[7]] {
        let runtime = start(4);
        let contexts = [context(&runtime, "a", shape, [0, 1]), context(&runtime, "b", EAGER, [1, 2])];
        let runs: Arc<Vec<AtomicUsize>> = Arc::new((0..TASKS).map(|_| AtomicUsize::new(0)).collect());
        let counter = Arc::clone(&runs);
        let count = runtime
            .codelet::<(), usize>("count")
            .cpu("count", move |call, ()| {
                counter[*call.params].fetch_add(1, SeqCst);
            })
            .build();
        let submitter = |number: usize| {
            let (runtime, count, contexts) = (&runtime, &count, &contexts);
            move |task: usize| {
                let new = runtime.task_with(count, 2 * task + number, ()).context(&contexts[task % 2]);
                new.submit().expect("the task is sound");
            }
        };
        let change = |changes: usize| {
            let context = &contexts[changes / 3 % 2];
            let (one, other) = (changes as u32 % 4, changes as u32 / 4 % 4);
            context.remove_workers([one, other]).expect("there are these workers");
            // No context is without workers for long.
            context.add_workers([other, (one + 2) % 4]).expect("there are these workers");
        };
        submit_meanwhile(&runtime, (2, TASKS / 2), submitter, change).expect("every task runs");
        assert!(runs.iter().all(|runs| runs.load(SeqCst) == 1), "each task once");
        assert_eq!(contexts.iter().map(|context| context.stats().finished).sum::<u64>(), TASKS as u64);
        assert_eq!(runtime.faults(), []);
    }
}

#[test]
fn a_context_may_be_empty_for_a_while() {
    let runtime = start(2);
    let empty = context(&runtime, "empty", EAGER, []);
    assert!(empty.workers().is_empty());
    let (note, notes) = noting(&runtime);
    for task in 0..100 {
        runtime.task_with(&note, task, ()).context(&empty).submit().expect("the task is sound");
    }
    // The runtime goes on for the others.
    let nothing = runtime.codelet::<(), ()>("nothing").cpu("nothing", |_, ()| {}).build();
    runtime.task(&nothing, ()).submit().expect("the task is sound");
    runtime.default_context().wait_all().expect("nothing keeps it");
    empty.swap_policy("tree-eager-prefetching").expect("it fits");
    assert_eq!(empty.stats().finished, 0);
    empty.add_workers([1]).expect("there is this worker");
    empty.wait_all().expect("every task runs");
    assert_eq!(*notes.lock().expect("nobody panics"), (0..100).map(|task| (task, 1)).collect::<Vec<_>>(), "in order");
    empty.remove_workers([1]).expect("there is this worker");
    empty.wait_all().expect("there is nothing to wait for");
}

#[test]
fn a_context_that_has_no_workers_is_named() {
    let quiet = Duration::from_millis(40);
    let runtime = builder(EAGER, 2, Vec::new()).quiet_period(quiet).build().expect("it starts");
    let empty = context(&runtime, "nobody's", EAGER, []);
    let nothing = runtime.codelet::<(), ()>("nothing").cpu("nothing", |_, ()| {}).build();
    let task = runtime.task(&nothing, ()).context(&empty).submit().expect("the task is sound");
    // Progress in other contexts does not help it.
    let held = Hold::new(&runtime).worker();
    let Err(RunError::Stalled(report)) = empty.wait_all() else { panic!("nobody runs it") };
    let says = "context `nobody's` (policy `test`) has 1 of them and no workers";
    assert!(report.to_string().contains(says), "{report}");
    drop(held);
    let Err(RunError::Stalled(report)) = runtime.wait_all() else { panic!("nobody runs it") };
    assert!(report.to_string().contains(says), "{report}");
    let Err(ContextError::Stalled { .. }) = empty.delete() else { panic!("it has a task") };
    empty.add_workers([0]).expect("there is this worker");
    assert_eq!(runtime.wait(task).expect("it runs now"), Outcome::Done);
    runtime.wait_all().expect("every task runs");
    empty.delete().expect("nothing is left");
}

#[test]
fn priorities_have_a_range() {
    let runtime = start(1);
    let ranged = runtime.context("ranged").workers([0]).priorities(1..=9).build().expect("it fits");
    assert_eq!((ranged.min_priority(), ranged.max_priority()), (1, 9));
    let nothing = runtime.codelet::<(), ()>("nothing").cpu("nothing", |_, ()| {}).build();
    let submit = |priority: i32| runtime.task(&nothing, ()).context(&ranged).priority(priority).submit();
    for priority in [1, 9] {
        submit(priority).expect("it is one of the range");
    }
    for priority in [i32::MIN, 0, 10] {
        let error = submit(priority).expect_err("it is none of the range");
        assert!(matches!(error, SubmitError::Priority { min: 1, max: 9, .. }), "{error}");
        assert!(error.to_string().ends_with(&format!("was given priority {priority}; context `ranged` has 1 to 9")));
    }
    runtime.task(&nothing, ()).context(&ranged).submit().expect("without a priority it has the lowest");
    runtime.task(&nothing, ()).priority(100).submit().expect("other contexts have other ranges");
    runtime.wait_all().expect("every task runs");
    assert_eq!(ranged.stats().submitted, 3, "what is refused is not counted");
    #[expect(clippy::reversed_empty_ranges, reason = "that is the mistake")]
    let error = runtime.context("none").priorities(3..=2).build().expect_err("the range is empty");
    assert!(matches!(error, ContextError::Priorities { .. }), "{error}");
}

#[test]
fn priorities_of_the_default_context_have_a_range_too() {
    let runtime = builder(EAGER, 1, Vec::new()).priorities(1..=9).build().expect("it starts");
    let default = runtime.default_context();
    assert_eq!((default.min_priority(), default.max_priority()), (1, 9));
    let data = runtime.register(0_u64);
    let add = runtime.codelet::<(ReadWrite<u64>,), ()>("add").cpu("add", |_, (sum,)| *sum += 1).build();
    let error = runtime.task(&add, (&data,)).priority(10).submit().expect_err("it is none of the range");
    assert!(error.to_string().ends_with("was given priority 10; context `default` has 1 to 9"), "{error}");
    runtime.task(&add, (&data,)).priority(9).submit().expect("it is one of the range");
    runtime.task(&add, (&data,)).submit().expect("without a priority it has the lowest");
    *runtime.write(&data).expect("the data is good") += 1;
    assert_eq!(*runtime.read(&data).expect("the data is good"), 3, "data has no priority");
    // The data is there a moment before its task is counted.
    runtime.wait_all().expect("every task runs");
    let stats = default.stats();
    assert_eq!((stats.submitted, stats.finished), (2, 2), "nor is reading or writing it a task");
    let other = runtime.context("other").build().expect("it fits");
    assert_eq!((other.min_priority(), other.max_priority()), (i32::MIN, i32::MAX));
    #[expect(clippy::reversed_empty_ranges, reason = "that is the mistake")]
    let error = builder(EAGER, 1, Vec::new()).priorities(3..=2).build().map(|_| ()).expect_err("the range is empty");
    assert_eq!(error.to_string(), "priorities range from 3 to 2, which is nothing");
}

#[test]
fn failures_are_reported_by_context() {
    let runtime = start(2);
    let (bad, good) = (context(&runtime, "bad", EAGER, [0]), context(&runtime, "good", EAGER, [1]));
    let fail = runtime.codelet::<(), ()>("fail").cpu("fail", |_, ()| panic!("on purpose")).build();
    let failed = runtime.task(&fail, ()).context(&bad).submit().expect("the task is sound");
    let nothing = runtime.codelet::<(), ()>("nothing").cpu("nothing", |_, ()| {}).build();
    runtime.task(&nothing, ()).context(&bad).after(failed).submit().expect("the task is sound");
    runtime.task(&nothing, ()).context(&good).submit().expect("the task is sound");
    good.wait_all().expect("nothing failed there");
    let Err(RunError::Failed { failed, cancelled }) = bad.wait_all() else { panic!("a task failed") };
    assert_eq!((failed.len(), cancelled), (1, 1));
    runtime.wait_all().expect("it is reported once");
}

/// The policy of the default context is for one worker, and the workers of the other are to come to it.
#[test]
fn a_context_that_cannot_be_deleted_goes_on() {
    let runtime = start(2);
    let other = context(&runtime, "other", EAGER, [1]);
    let default = runtime.default_context();
    default.remove_workers([1]).expect("there is this worker");
    let narrow = sched_tests::stock::policy("fifo { worker }");
    default.swap_policy_value(narrow).expect("it has one worker");
    let error = other.delete().expect_err("its worker has nowhere to go");
    let said = format!("{error:?}");
    assert!(said.contains("`worker` stands for 2 workers"), "{said}");
    assert_eq!((default.workers(), other.workers()), (vec![0], vec![1]));
    let (note, notes) = noting(&runtime);
    for context in [&default, &other] {
        runtime.task_with(&note, 0, ()).context(context).submit().expect("it takes tasks");
    }
    runtime.wait_all().expect("every task runs");
    assert_eq!(notes.lock().expect("nobody panics").len(), 2);
    default.swap_policy("tree-eager").expect("it is known");
    other.delete().expect("its worker goes there now");
    assert_eq!(default.workers(), [0, 1]);
}

/// The next context takes the place of one that was deleted.
#[test]
fn the_current_context_that_is_gone_is_not_confused_with_the_next_one() {
    let runtime = start(2);
    let gone = context(&runtime, "gone", EAGER, [0]);
    let fail = runtime.codelet::<(), ()>("fail").cpu("fail", |_, ()| panic!("on purpose")).build();
    let next = gone.with(|| {
        gone.delete().expect("it has no tasks");
        let next = context(&runtime, "next", EAGER, [1]);
        let failed = runtime.task(&fail, ()).context(&next).submit().expect("the task is sound");
        assert!(matches!(runtime.wait(failed), Ok(Outcome::Failed(_))));
        runtime.wait_current().expect("the tasks of the next context are not its own");
        next
    });
    let reported = next.with(|| runtime.wait_current());
    assert!(matches!(reported, Err(RunError::Failed { .. })), "{reported:?}");
}

#[test]
fn faults_and_surveys_name_the_context() {
    let runtime = start(2);
    assert!(runtime.survey().iter().all(|node| node.context.is_empty()), "there is but one");
    let bad = context(
        &runtime,
        "b",
        r#"bad what="panic in push" after=3 { fifo { eager { each "worker" { worker } } } }"#,
        [0],
    );
    let nothing = runtime.codelet::<(), ()>("nothing").cpu("nothing", |_, ()| {}).build();
    for _ in 0..10 {
        runtime.task(&nothing, ()).context(&bad).submit().expect("the task is sound");
    }
    runtime.wait_all().expect("every task runs");
    let faults = runtime.faults();
    assert_eq!((faults.len(), &*faults[0].context), (1, "b"));
    assert!(matches!(faults[0].kind, FaultKind::Panicked { .. }));
    assert!(faults[0].to_string().starts_with("context `b`, component `bad`"), "{}", faults[0]);
    let contexts: Vec<_> = runtime.survey().into_iter().map(|node| node.context).collect();
    assert_eq!(contexts, ["default", "default", "default", "default", "b", "b", "b", "b"]);
    bad.delete().expect("nothing is left");
    assert_eq!(runtime.faults(), faults, "what it did is not forgotten");
}

#[test]
fn a_deleted_context_finishes_its_tasks_first() {
    let runtime = start(3);
    let default = runtime.default_context();
    default.remove_workers([2]).expect("there is this worker");
    let gone = context(&runtime, "gone", EAGER, [1, 2]);
    let (note, notes) = noting(&runtime);
    let hold = Hold::new(&runtime);
    let held = [hold.worker_of(&gone), hold.worker_of(&gone)];
    let inner = note.clone();
    let parent = runtime
        .codelet::<(), ()>("parent")
        .cpu("parent", move |call, ()| {
            call.submitter().task_with(&inner, 0, ()).submit().expect("tasks of its tasks are taken to the end");
        })
        .build();
    for _ in 0..10 {
        runtime.task(&parent, ()).context(&gone).submit().expect("the task is sound");
    }
    thread::scope(|scope| {
        let deleter = scope.spawn(|| gone.delete());
        // Until it takes no more tasks from outside.
        let mut taken = 0;
        while runtime.task_with(&note, 0, ()).context(&gone).submit().is_ok() {
            taken += 1;
        }
        drop(held);
        deleter.join().expect("it returns").expect("its tasks end");
        assert_eq!(notes.lock().expect("nobody panics").len(), 10 + taken);
    });
    for error in [gone.delete(), gone.add_workers([0]), gone.swap_policy("tree-eager")] {
        assert!(matches!(error, Err(ContextError::Deleted { .. })), "{error:?}");
    }
    let late = runtime.task_with(&note, 0, ()).context(&gone).submit();
    assert!(matches!(late, Err(SubmitError::Deleted { .. })), "{late:?}");
    assert_eq!(default.workers(), [0, 1, 2], "worker 2 was in no other context");
    assert_eq!(runtime.contexts(), [default]);
    // A later context in the same place is another one.
    let next = context(&runtime, "gone", EAGER, [0]);
    assert!(next != gone);
    assert_eq!((next.stats().submitted, next.wait_all().is_ok()), (0, true));
    assert!(matches!(gone.delete(), Err(ContextError::Deleted { .. })));
    runtime.task_with(&note, 1, ()).context(&next).submit().expect("the task is sound");
    next.wait_all().expect("every task runs");
    assert_eq!(next.stats().finished, 1);
}

#[test]
fn contexts_are_made_and_deleted_while_others_work() {
    let runtime = start(3);
    let busy = context(&runtime, "busy", SHAPES[7], [0, 1, 2]);
    let add = runtime.codelet::<(ReadWrite<u64>,), ()>("add").cpu("add", |_, (sum,)| *sum += 1).build();
    let (sum, other) = (runtime.register(0_u64), runtime.register(0_u64));
    thread::scope(|scope| {
        scope.spawn(|| {
            for _ in 0..3000 {
                runtime.task(&add, (&sum,)).context(&busy).submit().expect("the task is sound");
            }
        });
        for round in 0..40 {
            let brief = context(&runtime, "brief", SHAPES[round % SHAPES.len()], [round as u32 % 3]);
            for _ in 0..20 {
                runtime.task(&add, (&other,)).context(&brief).submit().expect("the task is sound");
            }
            brief.delete().expect("its tasks end");
        }
    });
    runtime.wait_all().expect("every task runs");
    assert_eq!((*runtime.read(&sum).expect("it is good"), *runtime.read(&other).expect("it is good")), (3000, 800));
}

#[test]
fn what_makes_no_sense_is_refused() {
    let runtime = start(2);
    let a = context(&runtime, "a", EAGER, [0]);
    let error = runtime.context("a").build().expect_err("there is one");
    assert!(matches!(error, ContextError::NameTaken { .. }), "{error}");
    let error = runtime.context("b").workers([0, 2]).build().expect_err("there is no worker 2");
    assert_eq!(error.to_string(), "there is no worker 2, only workers 0 to 1");
    assert!(a.add_workers([7]).is_err() && a.remove_workers([7]).is_err());
    let error = runtime.context("b").policy("tree-eagle").build().expect_err("there is no such policy");
    assert!(error.to_string().contains("tree-eagle"), "{error}");
    // A policy is checked even for a context without workers.
    let wrong = runtime.context("b").policy_value(policy("fifo { }")).workers([]).build();
    assert!(matches!(wrong, Err(ContextError::Policy(_))), "{wrong:?}");
    assert!(matches!(runtime.default_context().delete(), Err(ContextError::Default)));
    assert_eq!(runtime.contexts().len(), 2);
    let own = a.clone();
    let suicide = runtime
        .codelet::<(), ()>("suicide")
        .cpu("suicide", move |_, ()| assert!(matches!(own.delete(), Err(ContextError::Inside { .. }))))
        .build();
    runtime.task(&suicide, ()).context(&a).submit().expect("the task is sound");
    a.wait_all().expect("it asserts no more than that");
    let other = start(1);
    let foreign = other.codelet::<(), ()>("foreign").cpu("foreign", |_, ()| {}).build();
    let error = other.task(&foreign, ()).context(&a).submit().expect_err("it is of another runtime");
    assert!(error.to_string().contains("a context of another runtime"), "{error}");
}

#[test]
fn the_default_context_waits_for_its_own_tasks() {
    let runtime = start(2);
    let other = context(&runtime, "other", EAGER, [0, 1]);
    let held = Hold::new(&runtime).worker_of(&other);
    let nothing = runtime.codelet::<(), ()>("nothing").cpu("nothing", |_, ()| {}).build();
    for _ in 0..200 {
        for _ in 0..10 {
            runtime.task(&nothing, ()).submit().expect("the task is sound");
        }
        runtime.default_context().wait_all().expect("every task runs");
        assert_eq!(runtime.default_context().stats().finished % 10, 0);
    }
    assert_eq!((other.stats().submitted, other.stats().finished), (1, 0));
    drop(held);
    runtime.wait_all().expect("every task runs");
}

//! Tasks are cancelled by the program or by their deadlines, submissions are bounded, and data is read where that need
//! not wait.

use proptest::prelude::*;
use sched_host::runtime::{DataError, Outcome, Plan, Read, ReadWrite, Runtime, SubmitError, TaskRef, WhenFull, Write};
use sched_tests::hold::Hold;
use sched_tests::stock::{EAGER, SHAPES, builder, runtime};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::*};
use std::time::{Duration, Instant};

fn is_cancelled(runtime: &Runtime, task: TaskRef) -> bool {
    matches!(runtime.wait(task).expect("it ends"), Outcome::Cancelled(why) if why.cancelled)
}

#[test]
fn a_cancelled_task_does_not_run_wherever_it_is() {
    for shape in SHAPES {
        let runtime = runtime(shape, 1);
        let count = runtime.codelet::<(ReadWrite<u64>,), ()>("count").cpu("count", |_, (x,)| *x += 1).build();
        let copy = runtime.codelet::<(Read<u64>, Write<u64>), ()>("copy").cpu("copy", |_, (x, y)| *y = *x).build();
        let (x, y, z) = (runtime.register(0), runtime.register(0), runtime.register(0));
        let busy = Hold::new(&runtime).worker();
        let ready = runtime.task(&count, (&x,)).name("in the tree").submit().expect("the task is sound");
        let waiting = runtime.task(&count, (&z,)).submit().expect("the task is sound");
        let behind = runtime.task(&count, (&z,)).submit().expect("the task is sound");
        let reader = runtime.task(&copy, (&x, &y)).submit().expect("the task is sound");
        assert!(runtime.cancel(ready) && !runtime.cancel(ready), "once");
        assert!(runtime.cancel(behind));
        drop(busy);
        assert!(is_cancelled(&runtime, ready) && is_cancelled(&runtime, reader) && is_cancelled(&runtime, behind));
        assert_eq!(runtime.wait(waiting).expect("it ends"), Outcome::Done);
        assert!(!runtime.cancel(waiting), "it has ended");
        runtime.wait_all().expect("what the program cancels is not reported");
        let Err(DataError::Bad(why)) = runtime.read(&y) else { panic!("it was not written") };
        let sequence = ready.sequence();
        assert_eq!(
            why.to_string(),
            format!("task {sequence} `in the tree` (codelet `count`) was cancelled: the program cancelled it")
        );
        // Data that is written anew is good again.
        runtime.task(&copy, (&runtime.register(5), &y)).submit().expect("the task is sound");
        assert_eq!(*runtime.read(&y).expect("it is written"), 5);
    }
}

#[test]
fn all_tasks_of_a_context_are_cancelled_and_no_others() {
    let runtime = runtime(EAGER, 2);
    let context = runtime.context("other").workers([1]).build().expect("it is made");
    let ran = Arc::new(AtomicU64::new(0));
    let noted = Arc::clone(&ran);
    let free = runtime.codelet::<(), u64>("free").cpu("free", move |context, ()| {
        noted.fetch_add(*context.params, Relaxed);
    });
    let free = free.build();
    let hold = Hold::new(&runtime);
    let (first, second) = (hold.worker(), hold.worker());
    for _ in 0..10 {
        runtime.task_with(&free, 1, ()).submit().expect("the task is sound");
        runtime.task_with(&free, 100, ()).context(&context).submit().expect("the task is sound");
    }
    assert_eq!(context.cancel(), 10);
    drop((first, second));
    context.wait_all().expect("what the program cancels is not reported");
    runtime.wait_all().expect("every other task runs");
    assert_eq!(ran.load(Relaxed), 10);
    let busy = [hold.worker(), hold.worker()];
    (0..5).for_each(|_| {
        runtime.task_with(&free, 1, ()).submit().expect("the task is sound");
    });
    assert_eq!(runtime.cancel_all(), 5);
    drop(busy);
    runtime.wait_all().expect("what the program cancels is not reported");
    assert_eq!(ran.load(Relaxed), 10);
}

#[test]
fn a_task_is_not_begun_after_its_deadline() {
    let runtime = runtime(EAGER, 1);
    let free = runtime.codelet::<(), ()>("free").cpu("free", |_, ()| {}).build();
    let busy = Hold::new(&runtime).worker();
    let soon = Instant::now() + Duration::from_millis(1);
    let late = runtime.task(&free, ()).deadline(soon).submit().expect("the task is sound");
    let behind = runtime.task(&free, ()).after(late).submit().expect("the task is sound");
    let far = Instant::now() + Duration::from_secs(3600);
    let in_time = runtime.task(&free, ()).deadline(far).submit().expect("the task is sound");
    while Instant::now() < soon {
        std::thread::yield_now();
    }
    drop(busy);
    assert!(is_cancelled(&runtime, late) && is_cancelled(&runtime, behind));
    assert_eq!(runtime.wait(in_time).expect("it ends"), Outcome::Done);
    runtime.wait_all().expect("deadlines are not reported");
}

#[test]
fn no_more_tasks_are_in_flight_than_the_bound() {
    for policy in SHAPES {
        let runtime =
            builder(policy, 2, Vec::new()).unchecked().bound_tasks(10, WhenFull::Wait).build().expect("it starts");
        let (begun, most) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
        let ended = Arc::clone(&begun);
        let free = runtime.codelet::<(), ()>("free").cpu("free", |_, ()| {}).build();
        for submitted in 1..=2000_u64 {
            let ended = Arc::clone(&ended);
            let task = runtime.task(&free, ()).on_end(move |_| {
                ended.fetch_add(1, SeqCst);
            });
            task.submit().expect("there is room in the end");
            most.fetch_max(submitted - begun.load(SeqCst), SeqCst);
        }
        runtime.wait_all().expect("every task runs");
        // An end is counted here a moment before it is counted there.
        assert!(most.load(SeqCst) <= 10, "{most:?}");
    }
}

#[test]
fn a_full_runtime_refuses_or_reports_a_stall() {
    let runtime = builder(EAGER, 1, Vec::new()).bound_tasks(3, WhenFull::Refuse).build().expect("it starts");
    let nested = runtime.codelet::<(), u64>("nested").cpu("nested", |_, _| {}).build();
    let inner = nested.clone();
    let many = runtime.codelet::<(), ()>("many").cpu("many", move |context, ()| {
        (0..20).for_each(|n| {
            context.submitter().task_with(&inner, n, ()).submit().expect("it is taken");
        });
    });
    let many = many.build();
    let busy = Hold::new(&runtime).worker();
    (0..2).for_each(|_| {
        runtime.task(&many, ()).submit().expect("there is room");
    });
    let refused = runtime.task(&many, ()).submit().expect_err("it is full");
    assert_eq!(refused.to_string(), "codelet `many` was submitted while 3 tasks are in flight, which is the bound");
    drop(busy);
    runtime.wait_all().expect("tasks of tasks are taken");
    drop(runtime);
    let stalls = builder(EAGER, 1, Vec::new()).quiet_period(Duration::from_millis(20));
    let runtime = stalls.bound_tasks(1, WhenFull::Wait).priorities(0..=3).build().expect("it starts");
    assert_eq!((runtime.default_context().min_priority(), runtime.default_context().max_priority()), (0, 3));
    let count = runtime.codelet::<(ReadWrite<u64>,), ()>("count").cpu("count", |_, (x,)| *x += 1).build();
    let x = runtime.register(0);
    let held = runtime.read(&x).expect("the data is good");
    runtime.task(&count, (&x,)).submit().expect("there is room");
    let refused = runtime.task(&count, (&x,)).submit().expect_err("the program itself holds x");
    assert!(matches!(refused, SubmitError::Full { most: 1, .. }), "{refused}");
    drop(held);
    let refused = runtime.task(&count, (&x,)).priority(4).submit().expect_err("the priority is too high");
    assert!(matches!(refused, SubmitError::Priority { max: 3, .. }), "{refused}");
    assert_eq!(*runtime.read(&x).expect("the data is good"), 1);
}

#[test]
fn data_is_read_where_that_does_not_wait() {
    let runtime = runtime(EAGER, 1);
    let add = runtime
        .codelet::<(ReadWrite<[u64]>,), ()>("add")
        .cpu("add", |_, (part,)| part.iter_mut().for_each(|x| *x += 1))
        .build();
    let x = runtime.array(vec![0_u64; 10]);
    let halves = x.partition(&Plan::ranges(2)).expect("it fits");
    let busy = Hold::new(&runtime).worker();
    runtime.task(&add, (&halves[0],)).submit().expect("the task is sound");
    assert!(runtime.try_read(&x).expect("the data is good").is_none(), "a part of it is written");
    assert_eq!(runtime.try_read(&halves[1]).expect("the data is good").expect("nobody writes it").len(), 5);
    drop(busy);
    runtime.wait_all().expect("every task runs");
    assert_eq!(runtime.try_read(&x).expect("the data is good").expect("nobody writes it")[0], 1);
    let other = builder(EAGER, 1, Vec::new()).build().expect("it starts");
    assert!(matches!(other.try_read(&x), Err(DataError::Foreign)));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// Whatever is cancelled, the others give what they give one after the other, without what was cancelled.
    #[test]
    fn what_is_not_cancelled_gives_what_it_gives_in_order(
        tasks in prop::collection::vec((0..4_usize, 0..4_usize, prop::bool::weighted(0.2)), 1..60),
        workers in 1..4_usize,
    ) {
        let runtime = runtime(EAGER, workers);
        let set = runtime
            .codelet::<(Write<Vec<usize>>,), usize>("set")
            .cpu("set", |context, (to,)| *to = vec![*context.params])
            .build();
        let append = runtime
            .codelet::<(Read<Vec<usize>>, ReadWrite<Vec<usize>>), usize>("append")
            .cpu("append", |context, (from, to)| to.extend(from.iter().take(3).copied().chain([*context.params])))
            .build();
        let data: Vec<_> = (0..4).map(|_| runtime.register(Vec::new())).collect();
        let mut expected: Vec<Option<Vec<usize>>> = vec![Some(Vec::new()); 4];
        let hold = Hold::new(&runtime);
        let busy: Vec<_> = (0..workers).map(|_| hold.worker()).collect();
        let mut submitted = Vec::new();
        for (number, (from, to, cancelled)) in tasks.iter().enumerate() {
            let task = if from == to {
                runtime.task_with(&set, number, (&data[*to],)).submit()
            } else {
                runtime.task_with(&append, number, (&data[*from], &data[*to])).submit()
            };
            submitted.push(task.expect("the task is sound"));
            expected[*to] = match (cancelled, from == to) {
                (true, _) => None,
                (false, true) => Some(vec![number]),
                (false, false) => expected[*from].clone().zip(expected[*to].clone()).map(|(from, mut to)| {
                    to.extend(from.into_iter().take(3).chain([number]));
                    to
                }),
            };
        }
        for (task, (.., cancelled)) in submitted.iter().zip(&tasks) {
            prop_assert!(!cancelled || runtime.cancel(*task));
        }
        drop(busy);
        runtime.wait_all().expect("what the program cancels is not reported");
        for (data, expected) in data.iter().zip(expected) {
            prop_assert_eq!(runtime.read(data).ok().map(|value| value.clone()), expected);
        }
    }
}

//! A task ends with the tasks that are nested in it, and its data is complete only then.

use proptest::prelude::*;
use sched_host::runtime::{
    ArrayHandle, Codelet, Commute, Context, DataError, Handle, Outcome, Plan, Read, ReadWrite, Redux, Runtime,
    SubmitError, Write,
};
use sched_tests::hold::Hold;
use sched_tests::stock::{EAGER, SHAPES, runtime};
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering::*};
use std::sync::{Arc, Mutex, OnceLock};

/// A change of a range of an array, and changes of ranges of that which are part of it.
#[derive(Clone, Debug)]
struct Step {
    range: Range<usize>,
    factor: u64,
    steps: Vec<Step>,
}

type Change = Codelet<(ReadWrite<[u64]>,), (ArrayHandle<u64>, Step)>;

fn change(values: &mut [u64], factor: u64) {
    let mut last = factor;
    for value in values {
        last = value.wrapping_mul(factor).wrapping_add(last);
        *value = last;
    }
}

/// What a step does to the values of the range that it is relative to.
fn in_order(values: &mut [u64], step: &Step) {
    let values = &mut values[step.range.clone()];
    change(values, step.factor);
    step.steps.iter().for_each(|step| in_order(values, step));
}

fn part(of: &ArrayHandle<u64>, range: &Range<usize>) -> ArrayHandle<u64> {
    of.partition(&Plan::these_ranges([range.clone()])).expect("it is inside")[0].clone()
}

fn changing(runtime: &Runtime) -> Change {
    let itself: Arc<OnceLock<Change>> = Arc::default();
    let inner = Arc::clone(&itself);
    let kernel = move |context: &Context<'_, (ArrayHandle<u64>, Step)>, (values,): (&mut [u64],)| {
        let (handle, step) = context.params;
        let nest = context.nest();
        for step in &step.steps {
            let part = part(handle, &step.range);
            let nested = nest.task_with(inner.get().expect("it is set"), (part.clone(), step.clone()), (&part,));
            nested.submit().expect("it is part of the data");
        }
        // The kernel has the data until it returns.
        change(values, step.factor);
    };
    let codelet: Change = runtime.codelet("change").cpu("change", kernel).nests().build();
    let _ = itself.set(codelet.clone());
    codelet
}

/// A step of an array of this length, which nests no deeper than this.
fn step(length: usize, depth: u32) -> BoxedStrategy<Step> {
    let range = (0..length).prop_flat_map(move |start| (Just(start), start + 1..=length));
    let steps = range.prop_flat_map(move |(start, end)| {
        let nested = match depth {
            0 => Just(Vec::new()).boxed(),
            _ => prop::collection::vec(step(end - start, depth - 1), 0..4).boxed(),
        };
        (Just(start..end), 2..5_u64, nested)
    });
    steps.prop_map(|(range, factor, steps)| Step { range, factor, steps }).boxed()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn nested_tasks_give_what_they_give_in_order(
        steps in prop::collection::vec(step(12, 3), 1..12),
        (shape, workers) in (prop::sample::select(&SHAPES[..]), 1..4_usize),
    ) {
        let runtime = runtime(shape, workers);
        let codelet = changing(&runtime);
        let mut expected: Vec<u64> = (0..12).collect();
        let x = runtime.array(expected.clone());
        for step in &steps {
            let part = part(&x, &step.range);
            runtime.task_with(&codelet, (part.clone(), step.clone()), (&part,)).submit().expect("the task is sound");
            in_order(&mut expected, step);
        }
        runtime.wait_all().expect("every task runs");
        prop_assert_eq!(runtime.read(&x).expect("the data is good").to_vec(), expected);
    }
}

#[test]
fn a_task_has_ended_when_its_nested_tasks_have() {
    for shape in SHAPES {
        for workers in [1, 3] {
            let runtime = runtime(shape, workers);
            let log: Arc<Mutex<Vec<&str>>> = Arc::default();
            let (inner, noted) = (Arc::clone(&log), Arc::clone(&log));
            let leaf = runtime.codelet::<(), ()>("leaf").cpu("leaf", move |_, ()| inner.lock().unwrap().push("leaf"));
            let leaf = leaf.build();
            let nested = leaf.clone();
            let tree = runtime
                .codelet::<(Write<u64>,), ()>("tree")
                .cpu("tree", move |context, (x,)| {
                    let nest = context.nest();
                    let first = nest.task(&nested, ()).submit().expect("it is free");
                    (0..9).for_each(|_| {
                        nest.task(&nested, ()).after(first).submit().expect("it is free");
                    });
                    *x = 1;
                })
                .nests()
                .build();
            let show = runtime
                .codelet::<(Read<u64>,), ()>("show")
                .cpu("show", move |_, _| noted.lock().unwrap().push("behind"))
                .build();
            let x = runtime.register(0);
            let ended = Arc::clone(&log);
            let task = runtime.task(&tree, (&x,)).on_end(move |_| ended.lock().unwrap().push("end"));
            let task = task.submit().expect("the task is sound");
            runtime.task(&show, (&x,)).submit().expect("the task is sound");
            assert_eq!(runtime.wait(task).expect("it ends"), Outcome::Done);
            runtime.wait_all().expect("every task runs");
            let expected: Vec<&str> = std::iter::repeat_n("leaf", 10).chain(["end", "behind"]).collect();
            assert_eq!(*log.lock().unwrap(), expected);
        }
    }
}

/// Adds its number to a list, and has the tasks below it do so.
type Listing = Codelet<(Redux<Vec<u64>>,), Vec<u64>>;

#[test]
fn nested_tasks_reduce_in_the_place_of_their_task() {
    for workers in [1, 3] {
        let runtime = runtime(EAGER, workers);
        let list = runtime.reduction_in_order(Vec::new(), Vec::new, |all: &mut Vec<u64>, part| all.extend(part));
        let itself: Arc<OnceLock<Listing>> = Arc::default();
        let (inner, handle) = (Arc::clone(&itself), list.clone());
        let kernel = move |context: &Context<'_, Vec<u64>>, (list,): (&mut Vec<u64>,)| {
            let [number, below @ ..] = &context.params[..] else { return };
            list.push(*number);
            // Each of those below nests the next.
            if !below.is_empty() {
                let nested = context.nest();
                let nested = nested.task_with(inner.get().expect("it is set"), below.to_vec(), (&handle,));
                nested.submit().expect("the task reduces too");
            }
        };
        let listing: Listing = runtime.codelet("list").cpu("list", kernel).nests().build();
        let _ = itself.set(listing.clone());
        let hold = Hold::new(&runtime);
        // Those that nest begin when all are submitted, so what they nest has greater numbers.
        let held: Vec<_> = (0..workers).map(|_| hold.worker()).collect();
        for numbers in [vec![1, 2, 3], vec![4], vec![5, 6], vec![7]] {
            runtime.task_with(&listing, numbers, (&list,)).submit().expect("the task is sound");
        }
        drop(held);
        assert_eq!(*runtime.read(&list).expect("every task runs"), [1, 2, 3, 4, 5, 6, 7]);
    }
}

/// The memory that each takes does not grow with the depth, nor does the stack where they end.
#[test]
fn tasks_nest_a_hundred_thousand_deep() {
    const DEPTH: u64 = 100_000;
    type Deep = Codelet<(ReadWrite<u64>,), (u64, Handle<u64>)>;
    let runtime = runtime(EAGER, 2);
    let itself: Arc<OnceLock<Deep>> = Arc::default();
    let inner = Arc::clone(&itself);
    let kernel = move |context: &Context<'_, (u64, Handle<u64>)>, (x,): (&mut u64,)| {
        let (left, handle) = context.params;
        *x += 1;
        if *left > 0 {
            let deep = inner.get().expect("it is set");
            context.nest().task_with(deep, (left - 1, handle.clone()), (handle,)).submit().expect("it is sound");
        }
    };
    let deep: Deep = runtime.codelet("deep").cpu("deep", kernel).nests().build();
    let _ = itself.set(deep.clone());
    let x = runtime.register(0);
    let task = runtime.task_with(&deep, (DEPTH - 1, x.clone()), (&x,)).submit().expect("it is sound");
    assert_eq!(runtime.wait(task).expect("nothing stalls"), Outcome::Done);
    assert_eq!(*runtime.read(&x).expect("it is good"), DEPTH);
}

#[test]
fn the_failure_of_a_nested_task_is_that_of_the_whole() {
    for shape in SHAPES {
        let runtime = runtime(shape, 2);
        let fail =
            runtime.codelet::<(ReadWrite<u64>,), ()>("fail").cpu("fail", |_, (_,)| Err::<(), &str>("no way")).build();
        let ran = Arc::new(AtomicU64::new(0));
        let tree = runtime
            .codelet::<(ReadWrite<u64>, ReadWrite<u64>), (Handle<u64>, Codelet<(ReadWrite<u64>,)>)>("tree")
            .cpu("tree", |context, _| {
                let (x, fail) = context.params;
                context.nest().task(fail, (x,)).submit().expect("it is part of the data");
            })
            .nests()
            .build();
        let noted = Arc::clone(&ran);
        let free = runtime.codelet::<(), ()>("free").cpu("free", move |_, ()| {
            noted.fetch_add(1, Relaxed);
        });
        let free = free.build();
        let (x, y) = (runtime.register(0), runtime.register(0));
        let task = runtime.task_with(&tree, (x.clone(), fail), (&x, &y)).submit().expect("the task is sound");
        runtime.task(&free, ()).after(task).submit().expect("the task is sound");
        let Outcome::Cancelled(why) = runtime.wait(task).expect("it ends") else { panic!("a nested task fails") };
        assert_eq!((why.codelet.as_str(), why.message.as_str()), ("fail", "no way"));
        for data in [&x, &y] {
            assert!(matches!(runtime.read(data), Err(DataError::Bad(_))), "all of its data may be wrong");
        }
        let report = runtime.wait_all().expect_err("it is reported").to_string();
        assert!(report.contains("no way\n1 task that depends on what failed was not run"), "{report}");
        assert_eq!(ran.load(Relaxed), 0);
    }
}

#[test]
fn nested_tasks_that_might_wait_for_their_own_task_are_refused() {
    let runtime = runtime(EAGER, 2);
    let (x, y) = (runtime.register(0_u64), runtime.register(0_u64));
    type Held = (Codelet<(ReadWrite<u64>,)>, Codelet<(Read<u64>,)>, Handle<u64>, Handle<u64>);
    let update = runtime.codelet::<(ReadWrite<u64>,), ()>("update").cpu("update", |_, (x,)| *x += 1).build();
    let look = runtime.codelet::<(Read<u64>,), ()>("look").cpu("look", |_, (_,)| {}).build();
    let texts: Arc<Mutex<Vec<String>>> = Arc::default();
    let noted = Arc::clone(&texts);
    let tree = runtime
        .codelet::<(Read<u64>,), Held>("tree")
        .cpu("tree", move |context, (_,)| {
            let (update, look, x, y) = context.params;
            let nest = context.nest();
            let note = |refused: Result<_, SubmitError>| {
                noted.lock().unwrap().push(refused.map(|_| ()).map_or_else(|why| why.to_string(), |()| "taken".into()));
            };
            note(nest.task(update, (x,)).submit());
            note(nest.task(look, (x,)).submit());
            note(nest.task(update, (y,)).submit());
            let outside = context.submitter().task(look, (x,)).submit().expect("it runs on its own");
            note(nest.task(look, (x,)).submit());
            let own = context.submitter().register(1_u64);
            note(nest.task(update, (&own,)).submit());
            note(nest.task(look, (&own,)).submit());
            let _ = outside;
        })
        .nests()
        .build();
    let hold = Hold::new(&runtime);
    let held = runtime.read(&y).expect("the data is good");
    runtime
        .task_with(&tree, (update.clone(), look.clone(), x.clone(), y.clone()), (&x,))
        .submit()
        .expect("it is sound");
    let busy = hold.worker();
    while texts.lock().unwrap().len() < 6 {
        std::thread::yield_now();
    }
    drop((held, busy));
    runtime.wait_all().expect("every task runs");
    let refused = |why: &str| format!("codelet `update` was nested in a task: {why}");
    assert_eq!(
        *texts.lock().unwrap(),
        [
            refused("the task that it is nested in names the data with an access that does not allow this one"),
            "taken".to_owned(),
            refused("tasks outside use data that the task which it is nested in does not name"),
            "taken".to_owned(),
            "taken".to_owned(),
            "taken".to_owned(),
        ]
    );
}

#[test]
fn a_task_that_does_not_nest_says_how() {
    let runtime = runtime(EAGER, 2);
    let plain = runtime.codelet::<(), ()>("plain").cpu("plain", |context, ()| drop(context.nest())).build();
    runtime.task(&plain, ()).submit().expect("the task is sound");
    let report = runtime.wait_all().expect_err("it panics").to_string();
    assert!(report.contains("tasks nest if their codelet was built with `nests()`"), "{report}");
    let deep = runtime.codelet::<(), ()>("deep").cpu("deep", |_, ()| {}).nests().build();
    let refused = runtime.record(|recorder| recorder.task(&deep, ()).submit().map(drop)).expect_err("it nests");
    assert!(matches!(refused, SubmitError::Recorded { what: "nested tasks", .. }), "{refused}");
}

#[test]
fn a_task_whose_kernel_fails_cancels_what_waits_for_its_data() {
    let runtime = runtime(EAGER, 1);
    let ran = Arc::new(AtomicU64::new(0));
    let noted = Arc::clone(&ran);
    let update = runtime.codelet::<(ReadWrite<u64>,), ()>("update").cpu("update", move |_, (x,)| {
        *x += 1;
        noted.fetch_add(1, Relaxed);
    });
    let update = update.build();
    let inner = update.clone();
    let tree = runtime
        .codelet::<(ReadWrite<u64>,), Handle<u64>>("tree")
        .cpu("tree", move |context, (_,)| {
            context.nest().task(&inner, (context.params,)).submit().expect("it is part of the data");
            Err::<(), &str>("the kernel fails")
        })
        .nests()
        .build();
    let x = runtime.register(0);
    let task = runtime.task_with(&tree, x.clone(), (&x,)).submit().expect("the task is sound");
    assert!(matches!(runtime.wait(task).expect("it ends"), Outcome::Failed(why) if why.message == "the kernel fails"));
    assert!(runtime.wait_all().is_err());
    assert_eq!(ran.load(Relaxed), 0);
}

#[test]
fn commuting_tasks_nest_one_at_a_time() {
    for shape in SHAPES {
        let runtime = runtime(shape, 3);
        let add = runtime
            .codelet::<(ReadWrite<Vec<u64>>,), u64>("add")
            .cpu("add", |context, (log,)| log.push(*context.params))
            .build();
        let tree = runtime
            .codelet::<(Commute<Vec<u64>>,), (u64, Handle<Vec<u64>>)>("tree")
            .cpu("tree", move |context, (log,)| {
                let (number, handle) = context.params;
                log.push(*number);
                let nest = context.nest();
                (0..3).for_each(|_| {
                    nest.task_with(&add, *number, (handle,)).submit().expect("it is part of the data");
                });
            })
            .nests()
            .build();
        let log = runtime.register(Vec::new());
        for number in 0..20 {
            runtime.task_with(&tree, (number, log.clone()), (&log,)).submit().expect("the task is sound");
        }
        runtime.wait_all().expect("every task runs");
        let log = runtime.read(&log).expect("the data is good");
        assert_eq!(log.len(), 80);
        assert!(log.chunks(4).all(|four| four.iter().all(|number| *number == four[0])), "{:?}", *log);
    }
}

/// The outermost task has the turn until it ends, and it ends with the innermost ones.
#[test]
fn tasks_that_commute_on_what_a_task_far_around_commutes_on_do_not_wait_for_its_turn() {
    type Level<A> = Codelet<(A,), Handle<u64>>;
    for shape in SHAPES {
        let runtime = runtime(shape, 3);
        let inner = runtime.codelet::<(Commute<u64>,), ()>("inner").cpu("inner", |_, (sum,)| *sum += 1).build();
        let middle: Level<ReadWrite<u64>> = runtime
            .codelet("middle")
            .cpu("middle", move |context: &Context<'_, Handle<u64>>, (sum,): (&mut u64,)| {
                *sum += 1;
                let nest = context.nest();
                (0..3).for_each(|_| _ = nest.task(&inner, (context.params,)).submit().expect("it is part of the data"));
            })
            .nests()
            .build();
        let outer: Level<Commute<u64>> = runtime
            .codelet("outer")
            .cpu("outer", move |context: &Context<'_, Handle<u64>>, (sum,): (&mut u64,)| {
                *sum += 1;
                let nested = context.nest().task_with(&middle, context.params.clone(), (context.params,)).submit();
                nested.expect("it is part of the data");
            })
            .nests()
            .build();
        let sum = runtime.register(0);
        for _ in 0..10 {
            runtime.task_with(&outer, sum.clone(), (&sum,)).submit().expect("the task is sound");
        }
        runtime.wait_all().expect("every task runs");
        assert_eq!(*runtime.read(&sum).expect("the data is good"), 50);
    }
}

#[test]
fn a_task_that_nests_is_cancelled_before_it_begins_and_not_afterwards() {
    let runtime = runtime(EAGER, 1);
    let leaf = runtime.codelet::<(), ()>("leaf").cpu("leaf", |_, ()| {}).build();
    let tree = runtime
        .codelet::<(), ()>("tree")
        .cpu("tree", move |context, ()| {
            context.nest().task(&leaf, ()).submit().expect("it is free");
        })
        .nests()
        .build();
    let busy = Hold::new(&runtime).worker();
    let (first, second) = (runtime.task(&tree, ()).submit(), runtime.task(&tree, ()).submit());
    assert!(runtime.cancel(first.expect("the task is sound")));
    drop(busy);
    let second = second.expect("the task is sound");
    assert_eq!(runtime.wait(second).expect("it ends"), Outcome::Done);
    assert!(!runtime.cancel(second));
    runtime.wait_all().expect("what the program cancels is not reported");
    assert_eq!(runtime.stats()[0].tasks, 4, "the busy one, one leaf, and both trees");
}

#[test]
fn a_task_submitted_while_another_is_nested_comes_after_that_or_keeps_it_from_being_nested() {
    let runtime = runtime(EAGER, 2);
    type Params = (u64, Handle<u64>, ArrayHandle<u64>);
    let nested = runtime.codelet::<(ReadWrite<u64>,), ()>("nested").cpu("nested", |_, (y,)| *y += 1).build();
    let of_part = runtime.codelet::<(ReadWrite<[u64]>,), ()>("part").cpu("part", |_, (y,)| y[0] += 1).build();
    let both = runtime.codelet::<(ReadWrite<u64>, Read<u64>, Read<[u64]>), ()>("both");
    let both = both.cpu("both", |_, (x, y, part)| *x += *y + part[0]).build();
    let (began, refused) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
    let (begin, refuse) = (Arc::clone(&began), Arc::clone(&refused));
    let tree = runtime.codelet::<(ReadWrite<u64>,), Params>("tree").cpu("tree", move |context, (x,)| {
        let (round, y, part) = context.params;
        *x += 1;
        begin.store(*round, SeqCst);
        let nest = context.nest();
        let submitted = [nest.task(&nested, (y,)).submit(), nest.task(&of_part, (part,)).submit()];
        refuse.fetch_add(submitted.iter().filter(|nested| nested.is_err()).count() as u64, SeqCst);
    });
    let tree = tree.nests().build();
    const ROUNDS: u64 = 300;
    let mut taken = 0;
    for round in 1..=ROUNDS {
        let (x, y, whole) = (runtime.register(0), runtime.register(0), runtime.array(vec![0; 4]));
        let part = whole.partition(&Plan::ranges(2)).expect("there are two halves")[0].clone();
        runtime.task_with(&tree, (round, y.clone(), part.clone()), (&x,)).submit().expect("it is sound");
        while began.load(SeqCst) != round {
            std::thread::yield_now();
        }
        // Some of these come before the nested ones, some between them, and some after.
        (0..round * 7 % 60).for_each(|_| std::hint::spin_loop());
        let last = runtime.task(&both, (&x, &y, &part)).submit().expect("it is sound");
        assert_eq!(runtime.wait(last).expect("nobody waits for itself"), Outcome::Done, "round {round}");
        runtime.wait_all().expect("every task runs");
        let sum = *runtime.read(&y).expect("it is good") + runtime.read(&whole).expect("it is good")[0];
        assert_eq!(*runtime.read(&x).expect("it is good"), 1 + sum, "round {round}");
        taken += sum;
    }
    assert_eq!(taken + refused.load(SeqCst), 2 * ROUNDS);
}

//! Data that still belongs to the program, lent to tasks for the time of a scope.

use super::{CHOSEN, resident, start};
use sched_host::runtime::{
    ArrayHandle, DataError, MatrixLayout, Plan, Read, ReadWrite, Runtime, SubmitError, TaskBuilder, Write,
};
use sched_tests::stock::builder;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::mpsc::{Receiver, channel};

fn runtimes() -> [Runtime; 2] {
    [builder(CHOSEN, 2, Vec::new()).unchecked().build().expect("the runtime starts"), start(CHOSEN, 2, 2)]
}

type Add = sched_host::runtime::Codelet<(ReadWrite<[u64]>,), u64>;

/// Adds a number to each element; 0 is not to be added.
fn add(runtime: &Runtime) -> Add {
    let add = |context: &sched_host::runtime::Context<'_, u64>, (part,): (&mut [u64],)| {
        assert_ne!(*context.params, 0, "nothing to add");
        part.iter_mut().for_each(|value| *value += context.params);
    };
    runtime.codelet("add").cpu("add", add).build()
}

#[test]
fn what_is_lent_is_changed_in_place() {
    for runtime in runtimes() {
        let add = add(&runtime);
        let dot = runtime
            .codelet::<(Read<[u64]>, Read<Vec<u64>>, Write<u64>), ()>("dot")
            .cpu("dot", |_, (x, y, sum)| *sum = x.iter().zip(y).map(|(x, y)| x * y).sum())
            .build();
        let (mut x, y, mut sum) = (vec![1u64; 100], vec![2u64; 100], 0);
        let before = x.as_ptr();
        let handle = runtime.scope(|scope| {
            let (x, y, sum) = (scope.array(&mut x), scope.lend_ref(&y), scope.lend(&mut sum));
            for (number, part) in x.partition(&Plan::ranges(4)).expect("it fits").iter().enumerate() {
                let task: TaskBuilder<'_, _, u64> = scope.task_with(&add, number as u64 + 1, (part,));
                task.sched_data(number as u64 % 2).submit().expect("the task is sound");
            }
            scope.task(&dot, (&x, &y, &sum)).sched_data(1).submit().expect("the task is sound");
            assert_eq!(*runtime.read(&sum).expect("the data is good"), 700);
            scope.task_with(&add, 10, (&x,)).sched_data(1).submit().expect("the task is sound");
            sum
        });
        assert_eq!((before, x.as_ptr(), x[0], x[99], sum), (x.as_ptr(), before, 12, 15, 700));
        // The handle left the scope: it is of no use.
        let refused =
            runtime.task(&dot, (&runtime.array(x), &runtime.register(y), &handle.expect("all is well"))).submit();
        let refused = refused.expect_err("the scope has ended");
        assert_eq!(
            refused.to_string(),
            "codelet `dot` was given lent data that it cannot use so: the scope that lent the data has ended: nothing \
             uses the data afterwards"
        );
        runtime.wait_all().expect("every task ran");
        assert!(resident(&runtime).iter().all(|bytes| *bytes == 0), "copies are gone");
    }
}

#[test]
fn what_is_lent_for_reading_is_not_written() {
    let [runtime, _] = runtimes();
    let x = vec![1u64; 10];
    let ended = runtime.scope(|scope| {
        let x = scope.array_ref(&x);
        let half = &x.partition(&Plan::ranges(2)).expect("it fits")[0];
        let refused = scope.task_with(&add(&runtime), 1, (half,)).submit().expect_err("it writes");
        assert!(matches!(refused, SubmitError::Loan { why: "the data was lent for reading only", .. }), "{refused}");
    });
    ended.expect("nothing failed");
    assert_eq!(x, [1; 10]);
}

/// However the program would use what it cannot, it gets an error, and no panic.
#[test]
fn what_the_program_cannot_use_is_an_error() {
    const READ_ONLY: &str = "the data was lent for reading only";
    let [runtime, _] = runtimes();
    let x = vec![1u64; 10];
    let y = 5u64;
    let left = runtime.scope(|scope| {
        let (x, y) = (scope.array_ref(&x), scope.lend_ref(&y));
        assert_eq!((runtime.read(&x).expect("it is good")[9], *runtime.read(&y).expect("it is good")), (1, 5));
        let refused = [
            runtime.write(&x).map(drop),
            runtime.write(&y).map(drop),
            runtime.acquire_write(&x, |_| panic!("nothing to write")),
            runtime.lease_write(&x, |_| panic!("nothing to write")),
        ];
        for refused in refused {
            assert!(matches!(refused, Err(DataError::Loan(READ_ONLY))), "{refused:?}");
        }
        assert!(runtime.unregister(x.clone()).expect("no error").is_err(), "it belongs to the scope");
        (x, y)
    });
    let (x, y) = left.expect("nothing failed");
    let refused = [
        runtime.read(&x).map(drop),
        runtime.read(&y).map(drop),
        runtime.try_read(&y).map(drop),
        runtime.acquire_read(&x, |_| panic!("nothing to read")),
        runtime.lease_read(&x, |_| panic!("nothing to read")),
    ];
    for refused in refused {
        assert!(matches!(&refused, Err(DataError::Loan(why)) if why.contains("has ended")), "{refused:?}");
    }
    for runtime in runtimes() {
        let values = vec![1u64; 10];
        let x = runtime.scope(|scope| scope.array_ref(&values)).expect("nothing failed");
        drop(values);
        for refused in [runtime.prefetch(&x, 0), runtime.wont_use(&x), runtime.invalidate(&x)] {
            assert!(matches!(&refused, Err(DataError::Loan(why)) if why.contains("has ended")), "{refused:?}");
        }
    }
    assert!(runtime.unregister(x).expect("no error").is_err() && runtime.unregister(y).expect("no error").is_err());
    runtime.wait_all().expect("nothing fails");
}

/// Also those that name parts without elements.
#[test]
fn all_tasks_have_ended_when_the_scope_ends() {
    for runtime in runtimes() {
        let count = runtime
            .codelet::<(Read<[u64]>, ReadWrite<usize>), ()>("count")
            .cpu("count", |_, (part, count)| *count += 1 + part.len())
            .build();
        let wait = runtime.codelet::<(ReadWrite<usize>,), Receiver<()>>("wait");
        let wait = wait.cpu("wait", |context, _| context.params.recv().unwrap_or_default()).build();
        for length in [0, 3] {
            let (values, count_of_all) = (vec![7u64; length], runtime.register(0));
            let (go_on, until) = channel();
            runtime.task_with(&wait, until, (&count_of_all,)).submit().expect("the task is sound");
            let ended = runtime.scope(|scope| {
                let values = scope.array_ref(&values);
                for part in &values.partition(&Plan::ranges(5)).expect("the plan fits") {
                    scope.task(&count, (part, &count_of_all)).sched_data(1).submit().expect("the task is sound");
                }
                drop(go_on);
            });
            ended.expect("nothing failed");
            assert_eq!(runtime.try_read(&count_of_all).expect("it is good").map(|count| *count), Some(5 + length));
            runtime.wait_all().expect("every task ran");
        }
    }
}

#[test]
fn a_matrix_is_lent_by_its_pointer_and_its_strides() {
    for runtime in runtimes() {
        let fill = runtime
            .codelet::<(Write<sched_host::runtime::Matrix<u8>>,), u8>("fill")
            .cpu("fill", |context, (mut tile,)| tile.fill(*context.params))
            .build();
        // 2 × 3, column after column, with room for a third row.
        let mut values = [0u8; 9];
        let layout = MatrixLayout::column_major(2, 3).strides(1, 3);
        let ended = runtime.scope(|scope| {
            let first = NonNull::from(&mut values).cast::<u8>();
            // SAFETY: the values are there until the scope ends, and nothing else uses them.
            let matrix = unsafe { scope.matrix_from_raw(first, layout) }.expect("the layout is sound");
            for (number, column) in matrix.partition(&Plan::columns(3)).expect("it fits").iter().enumerate() {
                let number = number as u8;
                runtime
                    .task_with(&fill, number + 1, (column,))
                    .sched_data(u64::from(number) % 2)
                    .submit()
                    .expect("sound");
            }
        });
        ended.expect("nothing failed");
        assert_eq!(values, [1, 1, 0, 2, 2, 0, 3, 3, 0]);
    }
}

#[test]
fn tasks_have_ended_when_the_scope_panics() {
    for runtime in runtimes() {
        let ran = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&ran);
        let count = runtime
            .codelet::<(ReadWrite<[u64]>,), ()>("count")
            .cpu("count", move |_, (part,)| {
                part.iter_mut().for_each(|value| *value += 1);
                counted.fetch_add(1, SeqCst);
            })
            .build();
        let mut x = vec![0u64; 1000];
        let panicked = catch_unwind(AssertUnwindSafe(|| {
            let _ = runtime.scope(|scope| {
                let x = scope.array(&mut x);
                for (number, part) in x.partition(&Plan::ranges(100)).expect("it fits").iter().enumerate() {
                    scope.task(&count, (part,)).sched_data(number as u64 % 2).submit().expect("the task is sound");
                }
                panic!("on purpose");
            });
        }));
        panicked.expect_err("the panic goes on");
        assert_eq!(ran.load(SeqCst), 100);
        assert_eq!(x, [1; 1000]);
    }
}

#[test]
fn a_task_that_fails_is_reported_by_its_scope() {
    for runtime in runtimes() {
        let (add, mut x, mut y) = (add(&runtime), vec![0u64; 10], vec![0u64; 10]);
        let ended = runtime.scope(|scope| {
            let (x, y): (ArrayHandle<u64>, ArrayHandle<u64>) = (scope.array(&mut x), scope.array(&mut y));
            let halves = x.partition(&Plan::ranges(2)).expect("it fits");
            scope.task_with(&add, 0, (&halves[0],)).sched_data(1).submit().expect("the task is sound");
            scope.task_with(&add, 7, (&halves[1],)).sched_data(1).submit().expect("the task is sound");
            scope.task_with(&add, 7, (&x,)).submit().expect("the task is sound");
            scope.task_with(&add, 1, (&y,)).sched_data(1).submit().expect("the task is sound");
        });
        let Err(DataError::Bad(failure)) = ended else { panic!("a task failed") };
        assert!(failure.message.contains("nothing to add"), "{failure}");
        runtime.wait_all().expect_err("the failure is reported here too");
        assert_eq!((&x[5..], &y[..]), (&[7u64; 5][..], &[1u64; 10][..]), "what was computed is there");
    }
}

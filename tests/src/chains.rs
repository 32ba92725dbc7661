//! Work for a runtime that shows whether every task runs once.

use sched_host::runtime::{ArrayHandle, KernelCall, Read, ReadWrite, Runtime};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::SeqCst};

/// How often each task has run.
pub struct Runs(Arc<Vec<AtomicU32>>);

/// Submits `count` tasks of several priorities, in chains by shared data. Each submits another from inside, which
/// doubles the number.
///
/// # Panics
/// If a task is not accepted.
#[must_use]
pub fn submit_chains(runtime: &Runtime, tasks: usize) -> Runs {
    let runs: Arc<Vec<AtomicU32>> = Arc::new((0..2 * tasks).map(|_| AtomicU32::new(0)).collect());
    let counters = Arc::clone(&runs);
    let second = runtime
        .codelet::<(), usize>("second")
        .cpu("second", move |context, ()| {
            counters[*context.params].fetch_add(1, SeqCst);
        })
        .build();
    let counters = Arc::clone(&runs);
    let first = runtime
        .codelet::<(ReadWrite<usize>,), usize>("first")
        .cpu("first", move |context, (steps,)| {
            *steps += 1;
            counters[*context.params].fetch_add(1, SeqCst);
            let next = context.submitter().task_with(&second, context.params + tasks, ());
            next.submit().expect("the task is sound");
        })
        .build();
    let chains = [(); 7].map(|()| runtime.register(0_usize));
    for number in 0..tasks {
        let task = runtime.task_with(&first, number, (&chains[number % chains.len()],));
        task.priority(number as i32 % 5 - 2).submit().expect("the task is sound");
    }
    Runs(runs)
}

impl Runs {
    /// How often each task has run.
    pub fn counts(&self) -> impl Iterator<Item = u32> {
        self.0.iter().map(|runs| runs.load(SeqCst))
    }

    /// Asserts that each task of `what` has run once.
    ///
    /// # Panics
    /// If one has not run, or more than once.
    pub fn assert_once(&self, what: &str) {
        for (task, runs) in self.counts().enumerate() {
            assert_eq!(runs, 1, "{what}: task {task} runs once");
        }
    }
}

/// Arrays to which tasks on cores and devices add.
pub struct Sums {
    sums: Vec<ArrayHandle<f64>>,
    /// Number of tasks that add to each.
    tasks: usize,
}

const ADD: &str = "
__kernel void axpy(__global const double *x, uint from, __global double *y, uint to, uint n, double factor) {
    if (get_global_id(0) < n) y[to + get_global_id(0)] += factor * x[from + get_global_id(0)];
}
";

/// Submits tasks in four chains by arrays of eight elements, each with implementations for cores and for devices.
///
/// # Panics
/// If a task is not accepted.
#[must_use]
pub fn submit_sums(runtime: &Runtime, tasks: usize) -> Sums {
    let add = runtime
        .codelet::<(Read<[f64]>, ReadWrite<[f64]>), ()>("add")
        .cpu("add", |_, (x, y)| y.iter_mut().zip(x).for_each(|(y, x)| *y += x))
        .opencl(ADD, "axpy", |(), (x, y)| {
            let call = KernelCall::over([8]).arg(&x).arg(x.offset()).arg(&y).arg(y.offset());
            call.arg(y.len()).arg(1.0)
        })
        .build();
    let one = runtime.array(vec![1.0; 8]);
    let sums: Vec<ArrayHandle<f64>> = (0..4).map(|_| runtime.array(vec![0.0; 8])).collect();
    for number in 0..tasks {
        for sum in &sums {
            let task = runtime.task(&add, (&one, sum)).priority(number as i32 % 5 - 2);
            task.submit().expect("the task is sound");
        }
    }
    Sums { sums, tasks }
}

impl Sums {
    /// Asserts that each task of `what` has run once; they have ended.
    ///
    /// # Panics
    /// If one has not run, or more than once.
    pub fn assert_once(&self, runtime: &Runtime, what: &str) {
        for sum in &self.sums {
            let sum = runtime.read(sum).unwrap_or_else(|error| panic!("{what}: {error}"));
            assert_eq!(*sum, [self.tasks as f64; 8], "{what}: each task adds once");
        }
    }
}

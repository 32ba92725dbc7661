//! Work for a runtime that shows whether every task runs once.

use sched_host::runtime::{ReadWrite, Runtime};
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

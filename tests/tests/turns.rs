//! Turns of tasks that commute: whoever is to take a free turn, and does not, passes it on.

use sched_host::runtime::{Codelet, Commute, Handle, Outcome, Runtime, TaskRef, Where, Write};
use sched_tests::stock::{EAGER, runtime};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant};

type Wait = (Sender<()>, Receiver<()>);

/// A runtime with workers of which each test keeps all but the last busy.
struct Commuters {
    runtime: Runtime,
    wait: Codelet<(Commute<u64>,), Wait>,
    add: Codelet<(Commute<u64>,), ()>,
    add_both: Codelet<(Commute<u64>, Commute<u64>), ()>,
    nothing: Codelet<(), ()>,
    last: Where,
}

impl Commuters {
    fn new(workers: u32) -> Commuters {
        let runtime = runtime(EAGER, workers as usize);
        let wait = runtime.codelet::<(Commute<u64>,), Wait>("wait").cpu("wait", |context, _| {
            context.params.0.send(()).expect("the test waits for it");
            // Until the other end is dropped.
            let _ = context.params.1.recv();
        });
        Commuters {
            wait: wait.build(),
            add: runtime.codelet::<(Commute<u64>,), ()>("add").cpu("add", |_, (x,)| *x += 1).build(),
            add_both: runtime
                .codelet("add")
                .cpu("add", |_, (x, y): (&mut u64, &mut u64)| (*x, *y) = (*x + 1, *y + 1))
                .build(),
            nothing: runtime.codelet::<(), ()>("nothing").cpu("nothing", |_, ()| {}).build(),
            last: Where::worker(workers - 1),
            runtime,
        }
    }

    /// A task on another worker has the turn at this data until what this returns is dropped.
    fn hold(&self, data: &Handle<u64>, worker: u32) -> Sender<()> {
        let ((go_on, until), (began, has_begun)) = (channel::<()>(), channel());
        let task = self.runtime.task_with(&self.wait, (began, until), (data,)).only_on(Where::worker(worker));
        task.submit().expect("the task is sound");
        has_begun.recv().expect("it begins");
        go_on
    }

    fn submit(&self, data: &Handle<u64>, deadline: Option<Instant>) -> TaskRef {
        let task = self.runtime.task(&self.add, (data,)).only_on(self.last.clone());
        let task = deadline.into_iter().fold(task, |task, deadline| task.deadline(deadline));
        task.submit().expect("the task is sound")
    }

    /// Returns when the last worker has tried all tasks so far: those whose turn another has lie at their data.
    fn wait_until_all_are_tried(&self) {
        let last = self.runtime.task(&self.nothing, ()).only_on(self.last.clone()).submit();
        assert!(self.is_done(last.expect("the task is sound")));
    }

    /// Overwrites the data, which is good then.
    fn set(&self, data: &Handle<u64>, value: u64) {
        let set = self.runtime.codelet::<(Write<u64>,), u64>("set").cpu("set", |context, (x,)| *x = *context.params);
        self.runtime.task_with(&set.build(), value, (data,)).submit().expect("the task is sound");
    }

    /// The data can be used again, once what was not computed is overwritten.
    fn assert_free(&self, data: &Handle<u64>) {
        self.set(data, 5);
        assert!(self.is_done(self.submit(data, None)), "the turn is free");
        assert_eq!(*self.runtime.read(data).expect("it is good"), 6);
    }

    fn is_done(&self, task: TaskRef) -> bool {
        matches!(self.runtime.wait(task).expect("it ends"), Outcome::Done)
    }

    fn is_cancelled(&self, task: TaskRef) -> bool {
        matches!(self.runtime.wait(task).expect("it ends"), Outcome::Cancelled(why) if why.cancelled)
    }
}

#[test]
fn all_that_wait_for_a_turn_end_when_all_are_cancelled() {
    let here = Commuters::new(2);
    let x = here.runtime.register(0);
    let busy = here.hold(&x, 0);
    let waiting = [(); 3].map(|()| here.submit(&x, None));
    here.wait_until_all_are_tried();
    assert_eq!(here.runtime.cancel_all(), 3);
    drop(busy);
    here.runtime.wait_all().expect("what the program cancels is not reported");
    assert!(waiting.into_iter().all(|task| here.is_cancelled(task)));
    here.assert_free(&x);
}

#[test]
fn who_waits_for_a_turn_behind_a_cancelled_or_late_task_ends_too() {
    let here = Commuters::new(2);
    let x = here.runtime.register(0);
    let busy = here.hold(&x, 0);
    let cancelled = here.submit(&x, None);
    let deadline = Instant::now() + Duration::from_millis(5);
    let late = here.submit(&x, Some(deadline));
    let last = [(); 2].map(|()| here.submit(&x, None));
    here.wait_until_all_are_tried();
    assert!(here.runtime.cancel(cancelled));
    while Instant::now() <= deadline {
        std::thread::yield_now();
    }
    drop(busy);
    assert!(here.is_cancelled(cancelled) && here.is_cancelled(late));
    // What they add to was not computed.
    assert!(last.into_iter().all(|task| here.is_cancelled(task)));
    here.assert_free(&x);
}

#[test]
fn who_lacks_another_turn_passes_a_free_one_on() {
    let here = Commuters::new(3);
    let (x, y) = (here.runtime.register(0), here.runtime.register(0));
    let has_y = here.hold(&y, 0);
    let needs_both = here.runtime.task(&here.add_both, (&x, &y)).only_on(here.last.clone()).submit();
    let needs_both = needs_both.expect("the task is sound");
    here.wait_until_all_are_tried();
    let has_x = here.hold(&x, 1);
    let needs_y = here.submit(&y, None);
    here.wait_until_all_are_tried();
    drop(has_y);
    assert!(here.is_done(needs_y), "it waits for y alone");
    assert!(!here.runtime.is_done(needs_both));
    drop(has_x);
    assert!(here.is_done(needs_both));
    assert_eq!([&x, &y].map(|data| *here.runtime.read(data).expect("it is good")), [1, 2]);
}

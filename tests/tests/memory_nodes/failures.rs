//! Copies and kernels that fail.

use super::{CHOSEN, Log, expect, log, moved, start};
use sched_core::WorkerId;
use sched_host::runtime::{Outcome, Read, ReadWrite, Write};
use sched_tests::hold::Hold;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};

#[derive(Debug)]
struct Fragile {
    value: u32,
    broken: Arc<AtomicBool>,
}

impl Clone for Fragile {
    fn clone(&self) -> Fragile {
        assert!(!self.broken.load(SeqCst), "it broke");
        Fragile { value: self.value, broken: Arc::clone(&self.broken) }
    }
}

#[test]
fn a_clone_that_panics_fails_the_task_and_nothing_else() {
    // No queue of the worker's own, which would have it copied ahead.
    let runtime = start(r#"fifo { eager { each "worker" { worker } } }"#, 2, 2);
    let broken = Arc::new(AtomicBool::new(true));
    let data = runtime.replicated(Fragile { value: 1, broken: Arc::clone(&broken) }).register();
    let add = runtime
        .codelet::<(Read<Fragile>, ReadWrite<u32>), ()>("add")
        .cpu("add", |_, (fragile, sum)| *sum += fragile.value)
        .build();
    let hold = Hold::new(&runtime);
    let (one, two) = (hold.worker(), hold.worker());
    let (gate_of_0, gate_of_1) = if one.worker == WorkerId(0) { (one, two) } else { (two, one) };
    let lost = runtime.register(0u32);
    let task = runtime.task(&add, (&data, &lost)).name("the unlucky one").submit().expect("the task is sound");
    drop(gate_of_1);
    let Outcome::Failed(failure) = runtime.wait(task).expect("it ends") else { panic!("its data cannot be copied") };
    let shown = failure.to_string();
    assert!(shown.contains("the unlucky one") && shown.contains("codelet `add`"), "{shown}");
    assert!(shown.ends_with("while its data was copied to the worker's memory node: it broke"), "{shown}");
    runtime.read(&lost).map(|_| ()).expect_err("it was not computed");
    // Once it can be copied, all is well: what was there is still good.
    broken.store(false, SeqCst);
    let sum = runtime.register(0u32);
    let task = runtime.task(&add, (&data, &sum)).submit().expect("the task is sound");
    assert_eq!(runtime.wait(task).expect("it ends"), Outcome::Done);
    drop(gate_of_0);
    runtime.wait_all().expect_err("one task failed");
    assert_eq!(*runtime.read(&sum).expect("the data is good"), 1);
    assert_eq!(moved(&runtime), [(0, 1, 1)]);
}

#[test]
fn a_task_that_fails_while_it_writes_spoils_the_data_until_it_is_written_whole() {
    let runtime = start(CHOSEN, 2, 2);
    let log = log(&runtime);
    let fail = runtime.codelet::<(ReadWrite<Log>,), ()>("fail").cpu("fail", |_, (_,)| panic!("halfway")).build();
    let replace = runtime.codelet::<(Write<Log>,), ()>("replace").cpu("replace", |_, (log,)| *log = vec![9]).build();
    let expect = expect(&runtime);
    runtime.task(&fail, (&log,)).sched_data(1).submit().expect("the task is sound");
    let cancelled = runtime.task_with(&expect, 0, (&log,)).sched_data(0).submit().expect("the task is sound");
    assert!(matches!(runtime.wait(cancelled).expect("it ends"), Outcome::Cancelled(_)));
    runtime.task(&replace, (&log,)).sched_data(0).submit().expect("the task is sound");
    let good = runtime.task_with(&expect, 1, (&log,)).sched_data(1).submit().expect("the task is sound");
    assert_eq!(runtime.wait(good).expect("it ends"), Outcome::Done);
    runtime.wait_all().expect_err("one task failed");
    assert_eq!(*runtime.read(&log).expect("the data is good"), [9]);
}

#[test]
fn one_memory_node_copies_nothing() {
    // A type that cannot be copied in time.
    let broken = Arc::new(AtomicBool::new(true));
    let runtime = start(CHOSEN, 2, 1);
    let data = runtime.replicated(Fragile { value: 1, broken }).register();
    let read = runtime.codelet::<(ReadWrite<Fragile>,), ()>("read").cpu("read", |_, (data,)| data.value += 1).build();
    for worker in [0, 1, 0, 1] {
        runtime.task(&read, (&data,)).sched_data(worker).submit().expect("the task is sound");
    }
    runtime.wont_use(&data).expect("it is the runtime's own");
    assert_eq!(runtime.read(&data).expect("the data is good").value, 5);
    assert_eq!((runtime.transfers(), runtime.memory_nodes()), (Vec::new(), Vec::new()));
}

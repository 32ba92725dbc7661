//! Schedulers that go by where data is.

use super::{CHOSEN, Log, append, expect, log, moved, start};
use sched_core::{Arch, WorkerId};
use sched_host::runtime::{Read, ReadWrite};
use sched_tests::hold::Hold;
use std::sync::atomic::{AtomicU32, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use std::time::Duration;

#[test]
fn a_queue_prefers_the_task_whose_data_is_there() {
    let runtime = start(r#"fifo ready=#true { eager { each "worker" { worker } } }"#, 2, 2);
    let hold = Hold::new(&runtime);
    let (one, two) = (hold.worker(), hold.worker());
    let far = log(&runtime);
    // What is on memory node 0 is far for worker 1, and near for worker 0.
    let order = Arc::new(Order::default());
    let visit = |name: &'static str, order: &Arc<Order>| {
        let order = Arc::clone(order);
        runtime.codelet::<(Read<Log>,), ()>(name).cpu(name, move |_, (_,)| order.note(name)).build()
    };
    let (gate_of_1, gate_of_0) = if one.worker == WorkerId(1) { (one, two) } else { (two, one) };
    // Ends on worker 1, so that its data is there.
    let near = log(&runtime);
    let append = append(&runtime);
    runtime.task_with(&append, 1, (&near,)).submit().expect("the task is sound");
    drop(gate_of_1);
    assert_eq!(runtime.read(&near).expect("the data is good").len(), 1);
    let gate_of_1 = hold.worker();
    assert_eq!(gate_of_1.worker, WorkerId(1), "the other one is busy");
    runtime.task(&visit("far", &order), (&far,)).submit().expect("the task is sound");
    runtime.task(&visit("near", &order), (&near,)).submit().expect("the task is sound");
    drop(gate_of_1);
    while order.noted().len() < 2 {
        std::thread::yield_now();
    }
    drop(gate_of_0);
    runtime.wait_all().expect("every task runs");
    assert_eq!(order.noted(), ["near", "far"]);
}

/// The order in which tasks ran.
#[derive(Default)]
struct Order(Mutex<Vec<&'static str>>);

impl Order {
    fn note(&self, name: &'static str) {
        self.0.lock().expect("no test panics here").push(name);
    }

    fn noted(&self) -> Vec<&'static str> {
        self.0.lock().expect("no test panics here").clone()
    }
}

#[test]
fn tasks_go_where_their_data_is() {
    let runtime = start(r#"mct { each "worker" { fifo { worker } } }"#, 2, 2);
    let count = Arc::new([const { AtomicU32::new(0) }; 2]);
    let on = Arc::clone(&count);
    let visit = runtime
        .codelet::<(ReadWrite<Log>,), ()>("visit")
        .cpu("visit", move |context, (_,)| {
            on[context.worker.0 as usize].fetch_add(1, SeqCst);
        })
        .estimate(Arch::CPU, Duration::from_micros(10))
        .build();
    let log = log(&runtime);
    for _ in 0..20 {
        // One at a time, so that both workers are free whenever one is chosen.
        let task = runtime.task(&visit, (&log,)).submit().expect("the task is sound");
        runtime.wait(task).expect("it ends");
    }
    assert_eq!([count[0].load(SeqCst), count[1].load(SeqCst)], [20, 0]);
    assert_eq!(moved(&runtime), []);
}

#[test]
fn a_queue_has_data_fetched_while_its_worker_is_busy() {
    let runtime = start(CHOSEN, 2, 2);
    let (expect, log) = (expect(&runtime), log(&runtime));
    let gate = Hold::new(&runtime).worker_given(1);
    runtime.task_with(&expect, 0, (&log,)).sched_data(1).submit().expect("the task is sound");
    while runtime.transfers().is_empty() {
        std::thread::yield_now();
    }
    drop(gate);
    runtime.wait_all().expect("every task runs");
    assert_eq!(moved(&runtime), [(0, 1, 1)], "and the worker finds it there");
}

#[test]
fn a_plan_goes_by_where_data_is() {
    let runtime = start(r#"plan { each "worker" { prio { worker } } }"#, 2, 2);
    let ran_on = Arc::new(Mutex::new(Vec::new()));
    let on = Arc::clone(&ran_on);
    let visit = runtime
        .codelet::<(ReadWrite<Log>,), ()>("visit")
        .cpu("visit", move |context, (_,)| on.lock().expect("no test panics here").push(context.worker))
        .estimate(Arch::CPU, Duration::from_micros(10))
        .build();
    let log = log(&runtime);
    let held = Hold::lasting(&runtime, Duration::from_secs(100_000)).worker();
    // The other worker is expected to be busy for longer than a copy takes.
    runtime.task(&visit, (&log,)).submit().expect("the task is sound");
    runtime.read(&log).expect("the data is good");
    let first = ran_on.lock().expect("no test panics here")[0];
    assert_ne!(first, held.worker);
    drop(held);
    runtime.wait_all().expect("every task runs");
    // Now both are free, and the data is where the first task has changed it.
    for _ in 0..20 {
        runtime.task(&visit, (&log,)).submit().expect("the task is sound");
    }
    runtime.wait_all().expect("every task runs");
    assert_eq!(*ran_on.lock().expect("no test panics here"), [first; 21]);
}

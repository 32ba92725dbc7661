//! Policies are swapped, and devices join and leave contexts, while copies are under way: each task runs once.

use super::{On, axpy, with_devices};
use proptest::prelude::*;
use sched_driver_fake::hold_copies;
use sched_host::runtime::{ArrayHandle, Runtime};
use sched_tests::stock::{EAGER, SHAPES, policy};

/// Arrays to which tasks add, and one that they add.
struct Sums {
    ones: ArrayHandle<f64>,
    sums: Vec<ArrayHandle<f64>>,
    /// Number of tasks for each.
    expected: Vec<f64>,
}

impl Sums {
    fn new(runtime: &Runtime, count: usize) -> Sums {
        let sums = (0..count).map(|_| runtime.array(vec![0.0; 8])).collect();
        Sums { ones: runtime.array(vec![1.0; 8]), sums, expected: vec![0.0; count] }
    }

    /// A task that was executed twice, or not at all, makes a wrong sum.
    fn check(&self, runtime: &Runtime) {
        for (sum, expected) in self.sums.iter().zip(&self.expected) {
            assert_eq!(*runtime.read(sum).expect("it was computed"), [*expected; 8]);
        }
    }
}

#[test]
fn a_swap_does_not_wait_for_copies_and_loses_nothing() {
    let runtime = with_devices("fake:12").policy_value(policy(EAGER)).unchecked().build().expect("it starts");
    let on_device = axpy(&runtime, On::Devices);
    let context = runtime.default_context();
    for shape in SHAPES {
        let mut sums = Sums::new(&runtime, 3);
        let held = hold_copies(12);
        let submit = |sums: &mut Sums| {
            for (sum, expected) in sums.sums.iter().zip(&mut sums.expected) {
                runtime.task_with(&on_device, 1.0, (&sums.ones, sum)).submit().expect("it is taken");
                *expected += 1.0;
            }
        };
        submit(&mut sums);
        held.wait_for_one();
        context.swap_policy_value(policy(shape)).expect("it fits");
        submit(&mut sums);
        context.swap_policy_value(policy(EAGER)).expect("it fits");
        drop(held);
        runtime.wait_all().expect("no task fails");
        sums.check(&runtime);
    }
    assert_eq!(runtime.faults(), []);
}

#[test]
fn a_device_leaves_a_context_while_it_copies() {
    let runtime = with_devices("fake:13").policy_value(policy(EAGER)).unchecked().build().expect("it starts");
    let (on_device, anywhere) = (axpy(&runtime, On::Devices), axpy(&runtime, On::Both));
    let device = runtime.devices()[0].worker;
    let context = runtime.context("both").policy_value(policy(EAGER)).workers([0, device]).build().expect("it fits");
    let sums = Sums { expected: vec![11.0], ..Sums::new(&runtime, 1) };
    let sum = &sums.sums[0];
    let held = hold_copies(13);
    let task = runtime.task_with(&on_device, 1.0, (&sums.ones, sum)).context(&context);
    task.submit().expect("it is taken");
    held.wait_for_one();
    context.remove_workers([device]).expect("it is there");
    for _ in 0..10 {
        let task = runtime.task_with(&anywhere, 1.0, (&sums.ones, sum)).context(&context);
        task.submit().expect("it is taken");
    }
    drop(held);
    context.wait_all().expect("no task fails");
    sums.check(&runtime);
    assert_eq!(context.workers(), [0]);
    assert_eq!(runtime.faults(), []);
}

#[derive(Clone, Copy, Debug)]
enum Step {
    Submit { sum: usize, tasks: usize, on: On },
    Swap(usize),
    Add(usize),
    Remove(usize),
    Prefetch { sum: usize, device: usize },
    Wait,
}

const SUMS: usize = 4;

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let on = prop_oneof![Just(On::Cores), Just(On::Devices), Just(On::Both)];
    let step = prop_oneof![
        5 => (0..SUMS, 1usize..20, on).prop_map(|(sum, tasks, on)| Step::Submit { sum, tasks, on }),
        3 => (0..SHAPES.len()).prop_map(Step::Swap),
        2 => (0usize..3).prop_map(Step::Add),
        2 => (0usize..3).prop_map(Step::Remove),
        1 => (0..SUMS, 0usize..2).prop_map(|(sum, device)| Step::Prefetch { sum, device }),
        1 => Just(Step::Wait),
    ];
    prop::collection::vec(step, 1..30)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    /// With room for three arrays, so that data is evicted meanwhile.
    #[test]
    fn any_sequence_of_changes_runs_each_task_once(steps in steps()) {
        let choice: sched_host::runtime::DeviceChoice = "fake:0,fake:1".parse().expect("it names devices");
        let builder = with_devices("none").devices(choice.memory_limit(3 * 64)).policy_value(policy(EAGER)).unchecked();
        let runtime = builder.build().expect("it starts");
        let workers = [0, runtime.devices()[0].worker, runtime.devices()[1].worker];
        let context = runtime.context("changing").policy_value(policy(EAGER)).workers(workers);
        let context = context.build().expect("it fits");
        let codelets = [On::Cores, On::Devices, On::Both].map(|on| (on, axpy(&runtime, on)));
        let mut sums = Sums::new(&runtime, SUMS);
        for step in steps {
            match step {
                Step::Submit { sum, tasks, on } => {
                    let (_, codelet) = codelets.iter().find(|(of, _)| *of == on).expect("there is one for each");
                    for _ in 0..tasks {
                        let task = runtime.task_with(codelet, 1.0, (&sums.ones, &sums.sums[sum])).context(&context);
                        task.submit().expect("it is taken");
                    }
                    sums.expected[sum] += tasks as f64;
                }
                Step::Swap(shape) => context.swap_policy_value(policy(SHAPES[shape])).expect("it fits"),
                Step::Add(worker) => context.add_workers([workers[worker]]).expect("there is this worker"),
                Step::Remove(worker) => context.remove_workers([workers[worker]]).expect("there is this worker"),
                Step::Prefetch { sum, device } => {
                    let node = runtime.devices()[device].memory_node;
                    runtime.prefetch(&sums.sums[sum], node).expect("there is such a node");
                }
                // Without some of the workers it would stall.
                Step::Wait => {
                    context.add_workers(workers).expect("there are these workers");
                    context.wait_all().expect("no task fails");
                }
            }
        }
        context.add_workers(workers).expect("there are these workers");
        context.wait_all().expect("no task fails");
        sums.check(&runtime);
        prop_assert_eq!(runtime.faults(), []);
    }
}

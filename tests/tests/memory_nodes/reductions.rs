//! Data that many tasks add to at once.

use super::{CHOSEN, start};
use proptest::prelude::*;
use sched_host::runtime::{Codelet, Commute, DataError, Read, ReadWrite, Reduction, Redux, Runtime, Write};
use sched_host::topology::Topology;
use sched_tests::stock::builder;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Barrier, OnceLock};

#[derive(Clone, Copy, Debug)]
enum Step {
    Add,
    Look,
    Multiply,
    Set,
    Swap,
}

/// What tasks see of the value; their numbers are parameters.
type Sights = Arc<Vec<OnceLock<u64>>>;

struct Steps {
    add: Codelet<(Redux<u64>,), usize>,
    look: Codelet<(Read<u64>,), usize>,
    multiply: Codelet<(ReadWrite<u64>,), usize>,
    set: Codelet<(Write<u64>,), usize>,
    swap: Codelet<(Commute<u64>,), usize>,
    sights: Sights,
}

impl Steps {
    fn new(runtime: &Runtime, steps: usize) -> Steps {
        let sights: Sights = Arc::new((0..steps).map(|_| OnceLock::new()).collect());
        let noted = Arc::clone(&sights);
        Steps {
            add: runtime
                .codelet("add")
                .cpu("add", |context, (sum,): (&mut u64,)| *sum += *context.params as u64)
                .build(),
            look: runtime
                .codelet::<(Read<u64>,), usize>("look")
                .cpu("look", move |context, (value,): (&u64,)| {
                    noted[*context.params].set(*value).expect("it runs once")
                })
                .build(),
            multiply: runtime.codelet("multiply").cpu("multiply", |_, (value,): (&mut u64,)| *value %= 1000).build(),
            set: runtime
                .codelet("set")
                .cpu("set", |context, (value,): (&mut u64,)| *value = *context.params as u64)
                .build(),
            swap: runtime
                .codelet("swap")
                .cpu("swap", |context, (value,): (&mut u64,)| *value ^= *context.params as u64)
                .build(),
            sights,
        }
    }
}

fn check(runtime: &Runtime, value: &Reduction<u64>, steps: &[Step]) {
    let tasks = Steps::new(runtime, steps.len());
    let (mut expected, mut seen) = (0u64, vec![None; steps.len()]);
    for (number, step) in steps.iter().enumerate() {
        let worker = (number * 7 % runtime.workers()) as u64;
        let submitted = match step {
            Step::Add => runtime.task_with(&tasks.add, number, (value,)).sched_data(worker).submit(),
            Step::Look => runtime.task_with(&tasks.look, number, (value,)).sched_data(worker).submit(),
            Step::Multiply => runtime.task_with(&tasks.multiply, number, (value,)).sched_data(worker).submit(),
            Step::Set => runtime.task_with(&tasks.set, number, (value,)).sched_data(worker).submit(),
            Step::Swap => runtime.task_with(&tasks.swap, number, (value,)).sched_data(worker).submit(),
        };
        submitted.expect("the task is sound");
        match step {
            Step::Add => expected += number as u64,
            Step::Look => seen[number] = Some(expected),
            Step::Multiply => expected %= 1000,
            Step::Set => expected = number as u64,
            Step::Swap => expected ^= number as u64,
        }
    }
    assert_eq!(*runtime.read(value).expect("the data is good"), expected);
    runtime.wait_all().expect("every task runs");
    assert_eq!(tasks.sights.iter().map(|sight| sight.get().copied()).collect::<Vec<_>>(), seen);
}

fn runtime(workers: usize, nodes: usize) -> Runtime {
    match nodes {
        1 => builder(CHOSEN, workers, Vec::new()).unchecked().build().expect("the runtime starts"),
        _ => start(CHOSEN, workers, nodes),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn any_program_with_reductions_gives_what_it_gives_in_order(
        steps in prop::collection::vec(
            prop_oneof![
                8 => Just(Step::Add),
                2 => Just(Step::Look),
                1 => Just(Step::Multiply),
                1 => Just(Step::Set),
                1 => Just(Step::Swap),
            ],
            1..100,
        ),
        in_order in any::<bool>(),
        (workers, nodes) in (1_usize..=4).prop_flat_map(|workers| (Just(workers), 1..=workers)),
    ) {
        let runtime = runtime(workers, nodes);
        let value = match in_order {
            true => runtime.reduction_in_order(0, || 0, |sum, part| *sum += part),
            false => runtime.reduction(0, || 0, |sum, part| *sum += part),
        };
        check(&runtime, &value, &steps);
        runtime.unregister(value).expect("the data is good").expect("it is the only handle");
    }
}

#[test]
fn a_reduction_in_order_has_the_same_bits_on_any_workers() {
    let terms: Vec<f64> = (1..200).map(|number| 1e16f64.powf(1.0 / f64::from(number)) * 0.1).collect();
    let expected = terms.iter().fold(0.0, |sum, term| sum + (0.3 + term));
    for turn in 0..4 {
        let runtime = runtime(3, 1);
        let add =
            runtime.codelet::<(Redux<f64>,), f64>("add").cpu("add", |context, (sum,)| *sum += context.params).build();
        let sum = runtime.reduction_in_order(0.0, || 0.3, |sum: &mut f64, part| *sum += part);
        for (number, term) in terms.iter().enumerate() {
            let worker = (number * (turn + 5) % 3) as u64;
            runtime.task_with(&add, *term, (&sum,)).sched_data(worker).submit().expect("the task is sound");
        }
        let sum = runtime.read(&sum).expect("the data is good").to_bits();
        assert_eq!(sum, expected.to_bits());
    }
}

#[test]
fn tasks_that_reduce_run_at_once() {
    let runtime = runtime(2, 1);
    let both = Barrier::new(2);
    // Each waits for the other inside the kernel.
    let meet = move |_: &sched_host::runtime::Context<'_>, (sum,): (&mut u64,)| {
        both.wait();
        *sum += 1;
    };
    let meet = runtime.codelet::<(Redux<u64>,), ()>("meet").cpu("meet", meet).build();
    let sum = runtime.reduction(10, || 0, |sum, part| *sum += part);
    for worker in 0..2 {
        runtime.task(&meet, (&sum,)).sched_data(worker).submit().expect("the task is sound");
    }
    assert_eq!(*runtime.read(&sum).expect("the data is good"), 12);
}

#[test]
fn members_of_a_team_reduce_on_their_own() {
    let machine = Topology::from_synthetic("core:4 pu:1").expect("the description is sound");
    let tree = r#"each "combined-worker" { fifo { combined-worker } }"#;
    let tree = format!(
        r#"user-choice {{ fifo {{ eager {{ each "worker" {{ worker }} }} }}
        {tree}
    }}"#
    );
    let runtime = builder(&tree, 4, Vec::new()).unchecked().topology(machine).build().expect("the runtime starts");
    let count = runtime
        .codelet::<(Redux<Vec<usize>>,), ()>("count")
        .cpu_spmd("count_spmd", 4, |context, (counts,)| counts.push(context.team().size()))
        .build();
    for in_order in [false, true] {
        let combine = |all: &mut Vec<usize>, part: Vec<usize>| all.extend(part);
        let counts = match in_order {
            true => runtime.reduction_in_order(Vec::new(), Vec::new, combine),
            false => runtime.reduction(Vec::new(), Vec::new, combine),
        };
        for choice in [1, 0, 1, 0] {
            runtime.task(&count, (&counts,)).sched_data(choice).submit().expect("the task is sound");
        }
        let counts = runtime.unregister(counts).expect("the data is good").expect("it is the only handle");
        let of = |size: usize| counts.iter().filter(|count| **count == size).count();
        assert_eq!(counts.len(), of(1) + of(2) + of(4));
        assert!(of(1) >= 2 && of(2) % 2 == 0 && of(4) % 4 == 0, "each member of a team adds: {counts:?}");
    }
}

#[test]
fn what_failed_to_reduce_is_bad_until_it_is_overwritten() {
    let runtime = runtime(2, 1);
    let add = runtime
        .codelet::<(Redux<u64>,), u64>("add")
        .cpu("add", |context, (sum,)| {
            assert_ne!(*context.params, 0, "nothing to add");
            *sum += context.params;
        })
        .build();
    let set = runtime.codelet::<(Write<u64>,), ()>("set").cpu("set", |_, (sum,)| *sum = 0).build();
    let sum = runtime.reduction(0, || 0, |sum, part| *sum += part);
    for term in [1, 0, 2] {
        runtime.task_with(&add, term, (&sum,)).submit().expect("the task is sound");
    }
    let Err(DataError::Bad(failure)) = runtime.read(&sum) else { panic!("a task failed") };
    assert!(failure.message.contains("nothing to add"), "{failure}");
    runtime.task(&set, (&sum,)).submit().expect("the task is sound");
    runtime.task_with(&add, 5, (&sum,)).submit().expect("the task is sound");
    assert_eq!(*runtime.read(&sum).expect("it was overwritten"), 5);
}

#[test]
fn what_was_lost_while_it_was_added_up_is_replaced_by_a_lease() {
    let runtime = runtime(2, 1);
    let add = runtime.codelet::<(Redux<u64>,), ()>("add").cpu("add", |_, (sum,)| *sum += 1).build();
    let sum = runtime.reduction(0, || 0, |_, _| panic!("nothing is added"));
    let read = || catch_unwind(AssertUnwindSafe(|| *runtime.read(&sum).expect("no task has failed")));
    runtime.task(&add, (&sum,)).submit().expect("the task is sound");
    (0..2).for_each(|_| drop(read().expect_err("it is lost")));
    runtime.lease_write(&sum, |mut lease| *lease.writing() = 7).expect("it is the runtime's own");
    assert_eq!(read().expect("it was overwritten"), 7);
}

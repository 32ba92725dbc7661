//! What a runtime can do alone, it can do as one of several ranks: contexts, swaps, components that fail.

use sched_core::Offer;
use sched_host::cluster::{Cluster, ClusterError};
use sched_host::runtime::{Codelet, Handle, Read, ReadWrite, Runtime};
use sched_host::tree::FaultKind;
use sched_tests::bad::{Bad, Deal};
use sched_tests::stock::{EAGER, SHAPES, builder, policy};
use std::time::Duration;

const RANKS: usize = 3;
const STEPS: u64 = 120;

/// A rank with a component that misbehaves, where its tree has it.
fn rank(tree: &str, workers: usize) -> Runtime {
    let builder = builder(tree, workers, vec![Offer::of::<Bad>(), Offer::of::<Deal>()]);
    builder.quiet_period(Duration::from_secs(60)).unchecked().build().expect("it starts")
}

/// Ranks that begin with one policy.
fn on_ranks<T: Send>(workers: usize, body: impl Fn(&Cluster) -> T + Sync) -> Vec<T> {
    let body = |cluster: &Cluster| Ok::<T, ClusterError>(body(cluster));
    let all = Cluster::local(RANKS, |_| Ok(rank(EAGER, workers)), body).expect("the ranks start");
    all.into_iter().map(|given| given.expect("it has ended")).collect()
}

/// The words with which all ranks have failed.
fn words_of(results: Vec<Result<(), ClusterError>>) -> Vec<String> {
    results.into_iter().map(|result| result.expect_err("it fails").to_string()).collect()
}

type Step = Codelet<(Read<u64>, ReadWrite<u64>), u64>;

/// 3·y + x + the number of a step.
fn next(y: u64, x: u64, number: u64) -> u64 {
    y.wrapping_mul(3).wrapping_add(x).wrapping_add(number)
}

/// y := [`next`].
fn step(runtime: &Runtime) -> Step {
    let step = runtime.codelet::<(Read<u64>, ReadWrite<u64>), u64>("step");
    step.cpu("step", |context, (x, y)| *y = next(*y, *x, *context.params)).build()
}

/// What a [`step`] reads and writes: each rank sends, and receives.
fn accesses(step: u64) -> (usize, usize) {
    let from = step as usize % RANKS;
    (from, (from + 1 + step as usize / RANKS % (RANKS - 1)) % RANKS)
}

fn in_order() -> Vec<u64> {
    let mut values: Vec<u64> = (0..RANKS as u64).collect();
    for number in 0..STEPS {
        let (from, to) = accesses(number);
        values[to] = next(values[to], values[from], number);
    }
    values
}

fn data(cluster: &Cluster) -> Vec<Handle<u64>> {
    (0..RANKS).map(|rank| cluster.register_on(rank, || rank as u64, || 0).expect("a rank")).collect()
}

/// The values that this rank owns are those of a program on one rank.
fn check(cluster: &Cluster, data: Vec<Handle<u64>>) {
    for (number, (handle, expected)) in data.into_iter().zip(in_order()).enumerate() {
        let value = cluster.unregister(handle).expect("it was computed");
        assert_eq!(value, (number == cluster.rank()).then_some(expected), "data {number}");
    }
}

#[test]
fn tasks_of_contexts_are_ordered_over_all_ranks() {
    for shape in SHAPES {
        let finished = on_ranks(2, |cluster| {
            let runtime = cluster.runtime();
            let context = |name, tree, worker| {
                runtime.context(name).policy_value(policy(tree)).workers([worker]).build().expect("the policy fits")
            };
            let contexts = [context("left", shape, 0), context("right", EAGER, 1)];
            let (step, data) = (step(runtime), data(cluster));
            for number in 0..STEPS {
                let (from, to) = accesses(number);
                let context = &contexts[number as usize % 2];
                let named = (&data[from], &data[to]);
                match number % 3 {
                    0 => cluster.submit(runtime.task_with(&step, number, named).context(context)),
                    1 => context.with(|| cluster.submit_with(&step, number, named, |task| task)),
                    _ => cluster.submit_with(&step, number, named, |task| task.context(context)),
                }
                .expect("it is sound");
            }
            cluster.wait_all().expect("all is well");
            check(cluster, data);
            contexts.map(|context| context.stats().finished)
        });
        let of = |context: usize| finished.iter().map(|rank| rank[context]).sum::<u64>();
        assert_eq!((of(0), of(1)), (STEPS / 2, STEPS / 2), "{shape}");
    }
}

#[test]
fn a_context_that_is_waited_for_waits_for_messages() {
    on_ranks(1, |cluster| {
        let runtime = cluster.runtime();
        let context = runtime.context("own").policy_value(policy(EAGER)).workers([0]).build().expect("it fits");
        let (step, data) = (step(runtime), data(cluster));
        for number in 0..STEPS {
            let (from, to) = accesses(number);
            let task = runtime.task_with(&step, number, (&data[from], &data[to])).context(&context);
            cluster.submit(task).expect("it is sound");
        }
        // Those of this rank, which need what others send.
        context.wait_all().expect("all is well");
        assert_eq!(*runtime.read(&data[cluster.rank()]).expect("it was computed"), in_order()[cluster.rank()]);
        cluster.wait_all().expect("all is well");
        drop(context);
        check(cluster, data);
    });
}

#[test]
fn ranks_swap_policies_on_their_own_while_tasks_run() {
    let names = on_ranks(2, |cluster| {
        let (runtime, context) = (cluster.runtime(), cluster.runtime().default_context());
        let (step, data) = (step(runtime), data(cluster));
        for number in 0..STEPS {
            let (from, to) = accesses(number);
            cluster
                .submit_with(&step, number, (&data[from], &data[to]), |task| task.priority(number as i32 % 3))
                .expect("it is sound");
            // Rank 0 keeps its policy.
            let shape = SHAPES[(number as usize / 10 + cluster.rank()) % SHAPES.len()];
            if number % 10 == 9 && cluster.rank() > 0 {
                context.swap_policy_value(policy(shape)).expect("it fits");
            }
        }
        if cluster.rank() == 2 {
            let error = context.swap_policy("no-such-policy").expect_err("there is none").to_string();
            assert!(error.contains("no-such-policy"), "{error}");
            context.swap_policy("tree-ws").expect("it fits");
        }
        cluster.wait_all().expect("all is well");
        check(cluster, data);
        assert_eq!(runtime.faults(), []);
        context.policy()
    });
    assert_eq!(names, ["test", "test", "tree-ws"]);
}

#[test]
fn a_component_that_fails_on_one_rank_is_quarantined_there_and_all_tasks_run() {
    for what in ["panic in push", "panic after storing", "panic in pull", "drop"] {
        let trees = [
            format!(r#"fifo {{ bad what="{what}" after=7 {{ eager {{ each "worker" {{ worker }} }} }} }}"#),
            format!(r#"eager {{ each "worker" {{ bad what="{what}" after=7 stores=#true {{ worker }} }} }}"#),
        ];
        let mut noted = 0;
        for tree in trees {
            let faults = on_ranks(2, |cluster| {
                let (runtime, context) = (cluster.runtime(), cluster.runtime().default_context());
                if cluster.rank() == 1 {
                    context.swap_policy_value(policy(&tree)).expect("it fits");
                }
                let (step, data) = (step(runtime), data(cluster));
                for number in 0..STEPS {
                    let (from, to) = accesses(number);
                    cluster.submit(runtime.task_with(&step, number, (&data[from], &data[to]))).expect("it is sound");
                }
                cluster.wait_all().unwrap_or_else(|error| panic!("{tree}: {error}"));
                check(cluster, data);
                runtime.faults()
            });
            assert!(faults[0].is_empty() && faults[2].is_empty(), "{tree}: {faults:?}");
            for fault in &faults[1] {
                let expected = match fault.kind {
                    FaultKind::Panicked { .. } => what.starts_with("panic"),
                    FaultKind::Dropped { .. } => what == "drop",
                    _ => false,
                };
                assert!(expected && fault.node.ends_with("bad"), "{tree}: {fault}");
            }
            noted += faults[1].len();
        }
        assert!(noted > 0, "{what}: a fault is noted");
    }
}

/// What two ranks say of a run in which rank 1 has no worker for a task, so that what rank 0 waits for never comes. This
/// many tasks wait behind it, and rank 0 has `most` of them in flight at most.
fn words_of_a_stall(behind: u64, most: Option<usize>) -> Vec<String> {
    let words = Cluster::local(
        2,
        |_| builder(EAGER, 1, Vec::new()).quiet_period(Duration::from_millis(60)).build(),
        |cluster| {
            let runtime = cluster.runtime();
            let unserved =
                runtime.context("unserved").policy_value(policy(EAGER)).workers([]).build().expect("it fits");
            let data = [0, 1].map(|rank| cluster.register_on(rank, || 1_u64, || 0).expect("a rank"));
            let step = step(runtime);
            most.into_iter().filter(|_| cluster.rank() == 0).for_each(|most| cluster.bound_in_flight(most));
            let first = runtime.task_with(&step, 1, (&data[0], &data[1])).context(&unserved);
            cluster.submit(first).expect("it is sound");
            for number in 0..behind {
                let task = runtime.task_with(&step, number, (&data[1], &data[0]));
                cluster.submit(task).expect("it is sound");
            }
            cluster.wait_all()
        },
    );
    words_of(words.expect("the ranks start"))
}

#[test]
fn tasks_that_nobody_on_a_rank_can_run_fail_on_all_with_one_word() {
    let words = words_of_a_stall(1, None);
    assert!(words[0].contains("rank 1: ") && words[0].contains("unserved"), "{}", words[0]);
    assert_eq!(words[0], words[1]);
}

/// Rank 0 waits for room, and has not submitted what rank 1 has.
#[test]
fn a_rank_that_waits_for_room_in_vain_learns_of_a_stall_as_others_do() {
    let words = words_of_a_stall(20, Some(1));
    assert!(words[0].contains("rank 1: ") && words[0].contains("unserved"), "{}", words[0]);
    assert_eq!(words[0], words[1]);
}

/// The word of a kernel that panics in a context is that of a kernel that panics.
#[test]
fn a_kernel_that_panics_in_a_context_is_the_word_of_all() {
    let words = on_ranks(1, |cluster| {
        let runtime = cluster.runtime();
        let context = runtime.context("own").policy_value(policy(EAGER)).workers([0]).build().expect("it fits");
        let fail = runtime.codelet::<(ReadWrite<u64>,), ()>("fail").cpu("fail", |_, (_,)| panic!("no luck")).build();
        let (step, data) = (step(runtime), data(cluster));
        cluster.submit(runtime.task(&fail, (&data[1],)).context(&context)).expect("it is sound");
        let after = runtime.task_with(&step, 0, (&data[1], &data[2])).context(&context);
        cluster.submit(after).expect("it is sound");
        let error: ClusterError = cluster.wait_all().expect_err("a kernel panicked");
        error.to_string()
    });
    assert!(words[0].contains("rank 1: ") && words[0].contains("no luck"), "{}", words[0]);
    assert!(words.iter().all(|word| *word == words[0]), "{words:?}");
}

#[test]
fn a_component_that_keeps_a_task_is_named_on_all_ranks_that_wait_for_each_other() {
    let ranks = |_| {
        let offers = vec![Offer::of::<Bad>(), Offer::of::<Deal>()];
        builder(EAGER, 1, offers).quiet_period(Duration::from_millis(60)).unchecked().build()
    };
    let words = Cluster::local(RANKS, ranks, |cluster| {
        let (step, data) = (step(cluster.runtime()), data(cluster));
        if cluster.rank() == 1 {
            let keeps = policy(r#"bad what="leak" { eager { each "worker" { worker } } }"#);
            cluster.runtime().default_context().swap_policy_value(keeps).expect("it fits");
        }
        for number in 0..STEPS {
            let (from, to) = accesses(number);
            cluster.submit(cluster.runtime().task_with(&step, number, (&data[from], &data[to]))).expect("it is sound");
        }
        cluster.wait_all()
    });
    let words = words_of(words.expect("the ranks start"));
    assert!(words[0].contains("rank 1: the run has stalled") && words[0].contains("bad"), "{}", words[0]);
    assert!(words.iter().all(|word| *word == words[0]), "{words:?}");
}

mod arrays;
mod early_ends;
mod memory;
mod parts;
mod reductions;

use super::{Cluster, ClusterError, Sent};
use proptest::prelude::*;
use sched_graph::generate::{cholesky, lu, qr};
use sched_graph::ranks::{Grid, Shares, rank_of};
use sched_graph::{AccessMode, Datum, TaskGraph};
use sched_runtime::{Codelet, Handle, Many, Read, ReadWrite, Runtime, StartError, Write};
use std::sync::Arc;
use std::time::Duration;

fn runtime() -> Result<Runtime, StartError> {
    let registry = Arc::new(sched_tree::plugin::Registry::compiled_in());
    let builder = Runtime::builder().registry(registry).workers(2).bind(false);
    builder.quiet_period(Duration::from_secs(60)).build()
}

fn on_ranks<T: Send>(ranks: usize, body: impl Fn(&Cluster) -> T + Sync) -> Vec<T> {
    let body = |cluster: &Cluster| Ok::<T, ClusterError>(body(cluster));
    let all = Cluster::local(ranks, |_| runtime(), body).expect("the ranks start");
    all.into_iter().map(|given| given.expect("it has ended")).collect()
}

type Values = Vec<u64>;
type Change = Codelet<(Many<Read<Values>>, Many<Write<Values>>, Many<ReadWrite<Values>>), u64>;

/// Mixes what is read and the parameter into what is written.
fn change(runtime: &Runtime) -> Change {
    let kernel = |context: &sched_runtime::Context<'_, u64>, (reads, writes, updates): Views<'_>| {
        let seen = reads.iter().flat_map(|values| values.iter()).fold(*context.params, |seen, value| mix(seen, *value));
        writes.into_iter().for_each(|values| values.iter_mut().for_each(|value| *value = seen));
        updates.into_iter().for_each(|values| values.iter_mut().for_each(|value| *value = mix(*value, seen)));
    };
    runtime.codelet("change").cpu("change", kernel).build()
}

type Views<'a> = (Vec<&'a Values>, Vec<&'a mut Values>, Vec<&'a mut Values>);

fn mix(a: u64, b: u64) -> u64 {
    (a ^ b).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(17)
}

const DATA: usize = 5;

#[derive(Clone, Debug)]
enum Step {
    Task { modes: [Option<AccessMode>; DATA], on: Option<usize>, is_pruned: bool },
    Flush(usize),
    Give(usize, usize),
    Bring(usize, usize),
    Wait,
}

fn step() -> impl Strategy<Value = Step> {
    let mode = prop_oneof![
        3 => Just(None),
        3 => Just(Some(AccessMode::Read)),
        1 => Just(Some(AccessMode::Write)),
        2 => Just(Some(AccessMode::ReadWrite)),
    ];
    let task = (prop::array::uniform5(mode), prop::option::of(0..4_usize), any::<bool>());
    prop_oneof![
        12 => task.prop_map(|(modes, on, is_pruned)| Step::Task { modes, on, is_pruned }),
        1 => (0..DATA).prop_map(Step::Flush),
        1 => (0..DATA, 0..4_usize).prop_map(|(data, rank)| Step::Give(data, rank)),
        1 => (0..DATA, 0..4_usize).prop_map(|(data, rank)| Step::Bring(data, rank)),
        1 => Just(Step::Wait),
    ]
}

/// Length of the values: each datum has its own.
fn len(data: usize) -> usize {
    [1, 7, 64, 0, 3000][data]
}

fn with(modes: &[Option<AccessMode>; DATA], mode: AccessMode) -> Vec<usize> {
    (0..DATA).filter(|data| modes[*data] == Some(mode)).collect()
}

fn in_order(steps: &[Step]) -> Vec<Values> {
    let mut values: Vec<Values> = (0..DATA).map(|data| vec![data as u64; len(data)]).collect();
    for (index, step) in steps.iter().enumerate() {
        let Step::Task { modes, .. } = step else { continue };
        let read = with(modes, AccessMode::Read);
        let seen = read.iter().flat_map(|data| values[*data].clone()).fold(index as u64, mix);
        with(modes, AccessMode::Write).iter().for_each(|data| values[*data].fill(seen));
        for data in with(modes, AccessMode::ReadWrite) {
            values[data].iter_mut().for_each(|value| *value = mix(*value, seen));
        }
    }
    values
}

fn run(cluster: &Cluster, steps: &[Step], owners: &[usize; DATA]) -> Result<Vec<Option<Values>>, ClusterError> {
    let ranks = cluster.ranks();
    let change = change(cluster.runtime());
    let register = |(data, owner): (usize, &usize)| {
        cluster.register_on(owner % ranks, || vec![data as u64; len(data)], move || vec![0; len(data)])
    };
    let handles: Vec<Handle<Values>> = owners.iter().enumerate().map(register).collect::<Result<_, _>>()?;
    for (index, step) in steps.iter().enumerate() {
        match step {
            Step::Task { modes, on, is_pruned } => {
                let of = |mode| with(modes, mode).iter().map(|data| handles[*data].clone()).collect::<Vec<_>>();
                let [read, write, update] = [AccessMode::Read, AccessMode::Write, AccessMode::ReadWrite].map(of);
                let task = || cluster.runtime().task_with(&change, index as u64, (&read, &write, &update));
                match on {
                    Some(rank) => cluster.submit_on(rank % ranks, task())?,
                    None if *is_pruned => {
                        cluster.submit_with(&change, index as u64, (&read, &write, &update), |task| task)?
                    }
                    None => cluster.submit(task())?,
                };
            }
            Step::Flush(data) => cluster.flush(&handles[*data])?,
            Step::Give(data, rank) => cluster.give(&handles[*data], rank % ranks)?,
            Step::Bring(data, rank) => cluster.bring(&handles[*data], rank % ranks)?,
            Step::Wait => cluster.wait_all()?,
        }
    }
    cluster.wait_all()?;
    handles.into_iter().map(|handle| cluster.unregister(handle)).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// Whoever owns what, and wherever tasks run: the values are those of one rank, one task after the other.
    #[test]
    fn any_program_gives_what_it_gives_in_order(
        steps in prop::collection::vec(step(), 1..60),
        owners in prop::array::uniform5(0..4_usize),
        ranks in prop::sample::select(&[1_usize, 2, 3, 4][..]),
    ) {
        let expected = in_order(&steps);
        let found = on_ranks(ranks, |cluster| run(cluster, &steps, &owners).expect("all is well"));
        for (data, value) in expected.iter().enumerate() {
            let of_owners: Vec<&Values> = found.iter().filter_map(|rank| rank[data].as_ref()).collect();
            prop_assert_eq!(of_owners, [value], "data {}", data);
        }
    }
}

#[test]
fn a_task_is_built_only_where_it_runs() {
    let built = on_ranks(3, |cluster| {
        let set = cluster.runtime().codelet::<(Write<u64>,), u64>("set").cpu("set", |c, (x,)| *x = *c.params).build();
        let x = cluster.register_on(1, || 0_u64, || 0).expect("a rank");
        let mut is_built = false;
        let task = cluster.submit_with(&set, 7, (&x,), |task| {
            is_built = true;
            task.priority(3)
        });
        let task = task.expect("it is sound");
        assert_eq!(task.is_some(), is_built);
        // What no rank owns, and what is submitted by one rank alone, is found as it is with tasks that are built.
        let own = cluster.runtime().register(0_u64);
        let refused = cluster.submit_with(&set, 1, (&own,), |task| task).expect_err("nobody owns it").to_string();
        assert!(refused.starts_with("codelet `set` names data"), "{refused}");
        cluster.wait_all().expect("all is well");
        if cluster.rank() == 2 {
            cluster.submit_with(&set, 8, (&x,), |task| task).expect("it is sound");
        }
        let word = cluster.wait_all().expect_err("they differ").to_string();
        assert!(word.ends_with("rank 1 has no such task, rank 2 submits `set`"), "{word}");
        is_built
    });
    assert_eq!(built, [false, true, false]);
}

#[test]
fn a_rank_that_sends_for_a_task_learns_its_priority() {
    let asked = on_ranks(3, |cluster| {
        let add = cluster.runtime().codelet::<(Read<u64>, ReadWrite<u64>), ()>("add").cpu("add", |_, (x, y)| *y += x);
        let add = add.build();
        let [x, y] = [0, 1].map(|rank| cluster.register_on(rank, || 1_u64, || 0).expect("a rank"));
        let asked = [false, true].map(|_| {
            let mut is_asked = false;
            let task = cluster.submit_with(&add, (), (&x, &y), |task| {
                is_asked = true;
                task.priority(3)
            });
            task.expect("it is sound");
            is_asked
        });
        cluster.wait_all().expect("all is well");
        asked
    });
    // Rank 0 sends for the first one.
    assert_eq!(asked, [[true, false], [true, true], [false, false]]);
}

#[test]
fn values_are_sent_once_and_again_after_a_write() {
    let sent = on_ranks(2, |cluster| {
        let runtime = cluster.runtime();
        let change = change(runtime);
        let number = |owner, value| cluster.register_on(owner, move || vec![value], || vec![0_u64]);
        let (a, b) = (number(0, 1).expect("a rank"), number(1, 2).expect("a rank"));
        let none: Vec<Handle<Values>> = Vec::new();
        let task = |reads: &Handle<Values>, updates: &Handle<Values>| {
            let (reads, updates) = (vec![reads.clone()], vec![updates.clone()]);
            cluster.submit(runtime.task_with(&change, 0, (&reads, &none, &updates))).expect("it is sound")
        };
        // Both run on rank 1; a is sent before the first one.
        let ran = [task(&a, &b).is_some(), task(&a, &b).is_some()];
        cluster.wait_all().expect("all is well");
        (ran, cluster.exchange(&[cluster.rank() as u8]).expect("all are there"))
    });
    let all = vec![vec![0], vec![1]];
    assert_eq!(sent, [([false, false], all.clone()), ([true, true], all)]);
}

/// Values that ranks have sent while a graph ran, whose data is dealt to a grid of them.
fn sent_for(graph: &TaskGraph, ranks: usize) -> Vec<Sent> {
    let owners = Grid::new(ranks).owners(&graph.data);
    on_ranks(ranks, |cluster| {
        let register = |(datum, owner): (&Datum, &usize)| {
            let len = datum.bytes as usize / size_of::<u64>();
            cluster.register_on(*owner, || vec![1; len], move || vec![0; len]).expect("a rank")
        };
        let handles: Vec<Handle<Values>> = graph.data.iter().zip(&owners).map(register).collect();
        submit(cluster, graph, &owners, &handles);
        cluster.wait_all().expect("all is well");
        cluster.sent()
    })
}

/// Submits the tasks of a graph, whose data has these owners.
fn submit(cluster: &Cluster, graph: &TaskGraph, owners: &[usize], handles: &[Handle<Values>]) {
    let change = change(cluster.runtime());
    for task in &graph.tasks {
        let of = |mode| {
            let accesses = task.accesses.iter().filter(|access| access.mode == mode);
            accesses.map(|access| handles[access.data.index()].clone()).collect::<Vec<_>>()
        };
        let [read, write, update] = [AccessMode::Read, AccessMode::Write, AccessMode::ReadWrite].map(of);
        // The codelet names its data by mode, the graph in the order of its own.
        let owned = task.accesses.iter().map(|access| (access.mode, owners[access.data.index()]));
        let task = cluster.runtime().task_with(&change, 1, (&read, &write, &update));
        cluster.submit_on(rank_of(owned, 0), task).expect("it is sound");
    }
}

#[test]
fn a_factorisation_sends_what_a_simulated_cluster_sends() {
    for graph in [cholesky(7, 4), lu(4, 4), qr(4, 4)] {
        for ranks in [1, 2, 3, 4, 6] {
            let shares = Shares::block_cyclic(&graph, ranks);
            let planned = (0..ranks as u32).map(|rank| {
                let own = shares.messages.iter().filter(|message| message.from == rank);
                Sent { values: own.clone().count() as u64, bytes: own.map(|message| message.bytes).sum() }
            });
            assert_eq!(sent_for(&graph, ranks), planned.collect::<Vec<_>>(), "{} on {ranks} ranks", graph.name);
        }
    }
}

#[test]
fn a_value_for_all_goes_along_a_tree() {
    for (owner, ranks) in [(0, 8), (5, 8), (3, 7), (0, 1)] {
        let sent = on_ranks(ranks, |cluster| {
            let set = cluster.runtime().codelet::<(Write<u64>,), ()>("set").cpu("set", |_, (x,)| *x = 42).build();
            let x = cluster.register_on(owner, || 0_u64, || 0).expect("a rank");
            cluster.submit(cluster.runtime().task(&set, (&x,))).expect("it is sound");
            cluster.bring_everywhere(&x).expect("it is registered");
            cluster.wait_all().expect("all is well");
            assert_eq!(*cluster.runtime().read(&x).expect("it is good"), 42);
            cluster.sent().values
        });
        assert_eq!(sent.iter().sum::<u64>(), ranks as u64 - 1);
        assert!(sent.iter().all(|sent| *sent <= 3), "{sent:?}: no rank sends to all others");
    }
}

#[test]
fn a_rank_that_passes_a_value_on_may_end_after_the_wait() {
    for _ in 0..20 {
        let found = on_ranks(8, |cluster| {
            let x = cluster.register_on(0, || vec![42_u64; 5000], || vec![0; 5000]).expect("a rank");
            cluster.bring_everywhere(&x).expect("it is registered");
            cluster.wait_all().expect("all is well");
            // The leaves of the tree read what others, which have ended by then, have passed on.
            (cluster.rank() > 3).then(|| cluster.runtime().read(&x).expect("it came").iter().sum::<u64>())
        });
        assert!(found[4..].iter().all(|sum| *sum == Some(42 * 5000)), "{found:?}");
    }
}

#[test]
fn what_was_not_computed_is_not_passed_on() {
    let words = on_ranks(6, |cluster| {
        let fail =
            cluster.runtime().codelet::<(Write<u64>,), ()>("fail").cpu("fail", |_, (_,)| panic!("no luck")).build();
        let x = cluster.register_on(2, || 0_u64, || 0).expect("a rank");
        cluster.submit(cluster.runtime().task(&fail, (&x,))).expect("it is sound");
        cluster.bring_everywhere(&x).expect("it is registered");
        let _ = cluster.wait_all().expect_err("a kernel panicked");
        cluster.runtime().read(&x).map(|x| *x).expect_err("there is no value").to_string()
    });
    let says_so_once =
        |word: &String| word.contains("no luck") && word.matches("the data was not computed").count() == 1;
    assert!(words.iter().all(says_so_once), "{words:?}");
}

#[test]
fn any_bound_on_what_is_in_flight_lets_programs_run_to_the_end() {
    let graph = cholesky(6, 4);
    for most in [0, 1, 2, 7] {
        let owners = Grid::new(3).owners(&graph.data);
        let found = on_ranks(3, |cluster| {
            // One rank may be far ahead of the others.
            if cluster.rank() > 0 {
                cluster.bound_in_flight(most);
            }
            let register = |owner: &usize| cluster.register_on(*owner, || vec![1; 2], || vec![0; 2]).expect("a rank");
            let handles: Vec<Handle<Values>> = owners.iter().map(register).collect();
            submit(cluster, &graph, &owners, &handles);
            cluster.wait_all().expect("all is well");
            handles.into_iter().map(|handle| cluster.unregister(handle).expect("it is good")).collect::<Vec<_>>()
        });
        let alone = on_ranks(1, |cluster| {
            let register = |_: &usize| cluster.register_on(0, || vec![1; 2], || vec![0; 2]).expect("a rank");
            let handles: Vec<Handle<Values>> = owners.iter().map(register).collect();
            submit(cluster, &graph, &vec![0; owners.len()], &handles);
            handles.into_iter().map(|handle| cluster.unregister(handle).expect("it is good")).collect::<Vec<_>>()
        });
        for (data, value) in alone[0].iter().enumerate() {
            let there: Vec<&Option<Values>> = found.iter().map(|rank| &rank[data]).filter(|of| of.is_some()).collect();
            assert_eq!(there, [value], "at most {most} in flight, data {data}");
        }
    }
}

#[test]
fn a_rank_that_waits_for_the_others_is_a_worker_meanwhile() {
    let start = |_| {
        let registry = Arc::new(sched_tree::plugin::Registry::compiled_in());
        Runtime::builder().registry(registry).workers(1).main_worker().bind(false).build()
    };
    for most in [None, Some(1)] {
        let found = Cluster::local(2, start, |cluster| {
            let set = cluster.runtime().codelet::<(Write<u64>,), u64>("set");
            let set = set.cpu("set", |context, (x,)| *x = *context.params).build();
            let x = cluster.register_on(1, || 0_u64, || 0)?;
            // Rank 1 comes to the wait at once, and rank 0 needs its values before that.
            if cluster.rank() == 0 {
                most.into_iter().for_each(|most| cluster.bound_in_flight(most));
            }
            for value in 1..=5 {
                cluster.submit(cluster.runtime().task_with(&set, value, (&x,)))?;
                cluster.bring(&x, 0)?;
            }
            let value = (cluster.rank() == 0).then(|| cluster.runtime().read(&x).map(|x| *x)).transpose()?;
            cluster.wait_all()?;
            Ok::<_, ClusterError>(value)
        });
        let found: Result<Vec<Option<u64>>, _> = found.expect("the ranks start").into_iter().collect();
        assert_eq!(found.expect("all is well"), [Some(5), None], "{most:?}");
    }
}

#[test]
fn a_rank_that_is_at_work_between_two_waits_does_not_stall_others() {
    let start = |_| {
        let registry = Arc::new(sched_tree::plugin::Registry::compiled_in());
        Runtime::builder().registry(registry).workers(1).bind(false).quiet_period(Duration::from_millis(150)).build()
    };
    let found = Cluster::local(2, start, |cluster| {
        let set = cluster.runtime().codelet::<(Write<u64>,), ()>("set").cpu("set", |_, (x,)| *x = 5).build();
        let x = cluster.register_on(1, || 0_u64, || 0)?;
        cluster.wait_all()?;
        if cluster.rank() == 1 {
            std::thread::sleep(Duration::from_millis(1500));
        }
        cluster.submit(cluster.runtime().task(&set, (&x,)))?;
        cluster.bring(&x, 0)?;
        let value = (cluster.rank() == 0).then(|| cluster.runtime().read(&x).map(|x| *x)).transpose()?;
        cluster.wait_all()?;
        Ok::<_, ClusterError>(value)
    });
    let found: Result<Vec<Option<u64>>, _> = found.expect("the ranks start").into_iter().collect();
    assert_eq!(found.expect("all is well"), [Some(5), None]);
}

#[test]
fn a_failure_on_one_rank_is_the_word_of_all() {
    let words = on_ranks(3, |cluster| {
        let runtime = cluster.runtime();
        let fail = runtime.codelet::<(ReadWrite<u64>,), ()>("fail").cpu("fail", |_, (_,)| panic!("no luck")).build();
        let copy = runtime.codelet::<(Read<u64>, Write<u64>), ()>("copy").cpu("copy", |_, (x, y)| *y = *x).build();
        let set = runtime.codelet::<(Write<u64>,), ()>("set").cpu("set", |_, (x,)| *x = 5).build();
        let x = cluster.register_on(1, || 1_u64, || 0).expect("a rank");
        let y = cluster.register_on(2, || 2_u64, || 0).expect("a rank");
        cluster.submit(runtime.task(&fail, (&x,))).expect("it is sound");
        cluster.submit(runtime.task(&copy, (&x, &y))).expect("it is sound");
        let first = cluster.wait_all().expect_err("a kernel panicked").to_string();
        // What was not computed is not to be had, on whichever rank.
        let reason = (cluster.rank() == 2).then(|| runtime.read(&y).map(|y| *y).expect_err("it is bad").to_string());
        // The cluster goes on.
        cluster.submit(runtime.task(&set, (&x,))).expect("it is sound");
        cluster.submit(runtime.task(&copy, (&x, &y))).expect("it is sound");
        cluster.wait_all().expect("all is well");
        (first, reason, cluster.unregister(y).expect("it is good"))
    });
    let first = &words[0].0;
    assert!(first.contains("rank 1: ") && first.contains("no luck"), "{first}");
    assert!(words.iter().all(|(word, ..)| word == first), "{words:?}");
    let reason = words[2].1.as_ref().expect("rank 2 has looked");
    assert!(reason.contains("no luck"), "{reason}");
    assert_eq!(words[2].2, Some(5));
}

#[test]
fn ranks_that_submit_different_tasks_are_told_which() {
    let words = on_ranks(3, |cluster| {
        let runtime = cluster.runtime();
        let [one, two] = ["one", "two"].map(|name| {
            runtime.codelet::<(Read<u64>, ReadWrite<u64>), ()>(name).cpu(name, |_, (x, y)| *y += x).build()
        });
        let x = cluster.register_on(0, || 1_u64, || 0).expect("a rank");
        let y = cluster.register_on(1, || 2_u64, || 0).expect("a rank");
        cluster.submit(runtime.task(&one, (&x, &y))).expect("it is sound");
        let second = if cluster.rank() == 2 { &two } else { &one };
        cluster.submit(runtime.task(second, (&y, &x))).expect("it is sound");
        if cluster.rank() == 0 {
            // Rank 1 never hears of this one, and does not send what it needs.
            cluster.submit_on(0, runtime.task(&one, (&y, &x))).expect("it is sound");
        }
        cluster.wait_all().expect_err("they differ").to_string()
    });
    let word = "the ranks do not submit the same tasks in the same order: task 1 is the first that differs, or its data: \
                rank 0 submits `one`, rank 1 submits `one`, rank 2 submits `two`";
    assert_eq!(words, [word; 3]);
}

#[test]
fn ranks_that_do_different_things_with_data_are_told_which() {
    let word_of = |body: &(dyn Fn(&Cluster) + Sync)| {
        let words = on_ranks(3, |cluster| {
            body(cluster);
            cluster.wait_all().expect_err("they differ").to_string()
        });
        assert!(words.iter().all(|word| *word == words[0]), "{words:?}");
        words[0]
            .strip_prefix("the ranks do not submit the same tasks in the same order: ")
            .expect("it differs")
            .to_owned()
    };
    let word = word_of(&|cluster| {
        let _ = cluster.register_on(0, || 1_u64, || 0).expect("a rank");
        let _ = cluster.register_on(usize::from(cluster.rank() == 1), || 1_u64, || 0).expect("a rank");
    });
    let of = |rank: usize, owner: usize| format!("rank {rank} registers data 1 with owner {owner}");
    assert_eq!(word, format!("they differ after 0 tasks: {}, {}, {}", of(0, 0), of(1, 1), of(2, 0)));
    let word = word_of(&|cluster| {
        let set = cluster.runtime().codelet::<(Write<u64>,), ()>("set").cpu("set", |_, (x,)| *x = 1).build();
        let x = cluster.register_on(0, || 1_u64, || 0).expect("a rank");
        cluster.submit(cluster.runtime().task(&set, (&x,))).expect("it is sound");
        match cluster.rank() {
            0 => cluster.bring(&x, 2).expect("it is registered"),
            1 => cluster.give(&x, 2).expect("it is registered"),
            _ => {}
        }
    });
    let each = "rank 0 brings data 0 to rank 2, rank 1 brings data 0 to rank 2, rank 2 has no such task";
    assert_eq!(word, format!("they differ after 1 tasks: {each}"));
}

#[test]
fn a_runtime_with_hooks_of_its_own_is_no_rank() {
    let word = |hook: fn(&Runtime) -> bool| {
        let start = |_| {
            let registry = Arc::new(sched_tree::plugin::Registry::compiled_in());
            let runtime = Runtime::builder().registry(registry).workers(1).bind(false).build()?;
            assert!(hook(&runtime));
            Ok(runtime)
        };
        let body = |_: &Cluster| -> Result<(), ClusterError> { unreachable!("they have no program") };
        Cluster::local(2, start, body).expect_err("it is refused").to_string()
    };
    let text = |hook: &str| format!("the runtime has a {hook} already, and ranks need theirs: start it without one");
    assert_eq!(word(|runtime| runtime.progression_hook(|| false)), text("progression hook"));
    assert_eq!(word(|runtime| runtime.quiet_hook(|_| true)), text("quiet hook"));
}

#[test]
fn ranks_with_different_policies_do_not_start() {
    let start = |rank: usize| {
        let registry = Arc::new(sched_tree::plugin::Registry::compiled_in());
        let policy = if rank == 1 { "tree-ws" } else { "tree-eager" };
        Runtime::builder().registry(registry).policy(policy).workers(1).bind(false).build()
    };
    let body = |_: &Cluster| -> Result<(), ClusterError> { unreachable!("they have no program") };
    let word = Cluster::local(3, start, body).expect_err("they differ").to_string();
    assert!(word.starts_with("the ranks differ in the policy: ranks 0, 2: `tree-eager` ("), "{word}");
    assert!(word.contains("; rank 1: `tree-ws` ("), "{word}");
}

#[test]
fn wrong_use_is_a_clear_error() {
    on_ranks(2, |cluster| {
        let runtime = cluster.runtime();
        let add = runtime.codelet::<(Read<u64>, ReadWrite<u64>), ()>("add").cpu("add", |_, (x, y)| *y += x).build();
        let (own, shared) = (runtime.register(1_u64), cluster.register_on(1, || 2_u64, || 0).expect("a rank"));
        let refused = cluster.submit(runtime.task(&add, (&own, &shared))).expect_err("nobody owns it").to_string();
        assert!(refused.starts_with("codelet `add` names data"), "{refused}");
        assert!(refused.ends_with("which no rank owns: register it with `Cluster::register_on`"), "{refused}");
        let refused = cluster.bring(&own, 0).expect_err("nobody owns it").to_string();
        assert!(refused.starts_with("the program names data") && refused.contains("which no rank owns"), "{refused}");
        let refused = cluster.register_on(2, || 0_u64, || 0).expect_err("there is no such rank").to_string();
        assert_eq!(refused, "there is no rank 2: there are 2, from 0");
        let array = cluster.register_array(4, 2, |places| places.collect::<Vec<usize>>()).expect("there is memory");
        for divided in [array.whole().clone(), array[1].clone()] {
            let refused = cluster.unregister_array(divided).expect_err("it is divided").to_string();
            assert!(refused.ends_with("take it out with `Cluster::gather_array`"), "{refused}");
        }
        let gathered = cluster.gather_array(array, 0).expect("it is still there");
        assert_eq!(gathered, (cluster.rank() == 0).then(|| vec![0, 1, 2, 3]));
        cluster.wait_all().expect("all is well");
    });
}

/// The rank that would run a task learns that it is refused, and the others do not.
#[test]
fn ranks_know_the_same_of_data_after_a_refused_task() {
    let found = on_ranks(3, |cluster| {
        let runtime = cluster.runtime();
        let copy =
            runtime.codelet::<(Read<Values>, ReadWrite<Values>), ()>("copy").cpu("copy", |_, (x, y)| y.clone_from(x));
        let copy = copy.build();
        let [x, y] = [0, 1].map(|owner| cluster.register_on(owner, || vec![1], || vec![0]).expect("a rank"));
        cluster.bring_everywhere(&y).expect("it is the cluster's");
        // Rank 0 waits for what rank 2 would write; and the copies of what rank 1 would write are out of date.
        let on_another = cluster.submit_on(2, runtime.task(&copy, (&x, &x))).is_err();
        let on_owner = cluster.submit(runtime.task(&copy, (&y, &y))).is_err();
        cluster.bring_everywhere(&y).expect("it is the cluster's");
        cluster.wait_all().expect("no task has failed");
        let y = runtime.read(&y).expect("it is as it was").clone();
        (on_another, on_owner, y, cluster.unregister(x).map_err(|error| error.to_string()))
    });
    let why = "the data was not computed: codelet `copy` was given one handle twice, and writes to it";
    assert_eq!(
        found,
        [
            (false, false, vec![1], Err(why.to_owned())),
            (false, true, vec![1], Ok(None)),
            (true, false, vec![1], Ok(None)),
        ]
    );
}

#[test]
fn sizes_that_differ_between_ranks_are_an_error() {
    let words = on_ranks(2, |cluster| {
        let (here, rank) = (cluster.rank(), 1 - cluster.rank());
        let x = cluster.register_on(0, || vec![1_u64; 4], move || vec![0; 4 + here]).expect("a rank");
        cluster.bring(&x, 1).expect("it is registered");
        cluster.wait_all().expect("no task fails");
        (rank == 0).then(|| cluster.runtime().read(&x).map(|x| x.len()).expect_err("it does not fit").to_string())
    });
    let word = words[1].as_ref().expect("rank 1 has looked");
    assert!(word.contains("a message of 32 bytes came for data of 40"), "{word}");
}

#[test]
fn blocks_are_dealt_in_turn_to_a_grid_that_is_nearly_square() {
    let owners = on_ranks(6, |cluster| {
        (0..4).map(|row| (0..4).map(|column| cluster.block_cyclic(row, column)).collect()).collect::<Vec<Vec<_>>>()
    });
    assert_eq!(owners[0], [[0, 1, 2, 0], [3, 4, 5, 3], [0, 1, 2, 0], [3, 4, 5, 3]]);
    assert!(owners.iter().all(|of_rank| *of_rank == owners[0]));
}

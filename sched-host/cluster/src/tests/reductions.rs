//! Reductions across ranks.

use super::{Cluster, ClusterError, Values, mix, on_ranks};
use proptest::prelude::*;
use sched_graph::ranks::Shares;
use sched_graph::{AccessMode, DataId, Datum, Task, TaskGraph};
use sched_runtime::{Handle, Many, Read, ReadWrite, Reduction, Redux, Write};

const PLAIN: usize = 3;
const SUMS: usize = 2;
const LEN: usize = 5;

/// What a program does with plain data and sums.
#[derive(Clone, Debug)]
enum Step {
    /// Adds a mix of plain data to a sum.
    Add {
        reads: [bool; PLAIN],
        to: usize,
        on: Option<usize>,
    },
    /// The same for both sums, beside a change of plain data.
    AddBoth {
        changes: usize,
    },
    /// Mixes a sum into plain data.
    Use {
        sum: usize,
        changes: usize,
        on: Option<usize>,
    },
    /// Changes a sum.
    Change {
        sum: usize,
        on: Option<usize>,
    },
    /// Sets a sum, whatever it was.
    Set {
        sum: usize,
        on: Option<usize>,
    },
    Bring(usize, usize),
    Give(usize, usize),
    Flush(usize),
    Wait,
}

fn step() -> impl Strategy<Value = Step> {
    let (sum, plain, rank) = (0..SUMS, 0..PLAIN, 0..4_usize);
    let on = prop::option::of(rank.clone());
    prop_oneof![
        8 => (any::<[bool; PLAIN]>(), sum.clone(), on.clone()).prop_map(|(reads, to, on)| Step::Add { reads, to, on }),
        2 => plain.clone().prop_map(|changes| Step::AddBoth { changes }),
        3 => (sum.clone(), plain, on.clone()).prop_map(|(sum, changes, on)| Step::Use { sum, changes, on }),
        2 => (sum.clone(), on.clone()).prop_map(|(sum, on)| Step::Change { sum, on }),
        1 => (sum.clone(), on).prop_map(|(sum, on)| Step::Set { sum, on }),
        1 => (sum.clone(), rank.clone()).prop_map(|(sum, rank)| Step::Bring(sum, rank)),
        1 => (sum.clone(), rank).prop_map(|(sum, rank)| Step::Give(sum, rank)),
        1 => sum.prop_map(Step::Flush),
        1 => Just(Step::Wait),
    ]
}

fn seen<'a>(values: impl IntoIterator<Item = &'a Values>, index: u64) -> u64 {
    values.into_iter().flatten().fold(index, |seen, value| mix(seen, *value))
}

fn add(sum: &mut Values, part: u64) {
    sum.iter_mut().zip(0_u64..).for_each(|(sum, place)| *sum = sum.wrapping_add(mix(part, place)));
}

fn blend(values: &mut Values, by: u64) {
    values.iter_mut().for_each(|value| *value = mix(*value, by));
}

/// Plain data, and sums.
type State = (Vec<Values>, Vec<Values>);

fn in_order(steps: &[Step]) -> State {
    let mut plain: Vec<Values> = (0..PLAIN as u64).map(|data| vec![data; LEN]).collect();
    let mut sums: Vec<Values> = (0..SUMS as u64).map(|data| vec![10 + data; LEN]).collect();
    for (index, step) in (0_u64..).zip(steps) {
        match step {
            Step::Add { reads, to, .. } => {
                let read = (0..PLAIN).filter(|data| reads[*data]).map(|data| &plain[data]);
                add(&mut sums[*to], seen(read, index));
            }
            Step::AddBoth { changes } => {
                blend(&mut plain[*changes], index);
                let part = seen([&plain[*changes]], index);
                sums.iter_mut().for_each(|sum| add(sum, part));
            }
            Step::Use { sum, changes, .. } => blend(&mut plain[*changes], seen([&sums[*sum]], index)),
            Step::Change { sum, .. } => blend(&mut sums[*sum], index),
            Step::Set { sum, .. } => sums[*sum].fill(index),
            _ => {}
        }
    }
    (plain, sums)
}

/// Submits a task of a codelet with these data and parameters, on a rank if one is given.
macro_rules! submit {
    ($cluster:expr, $on:expr, $codelet:expr, $params:expr, $data:expr) => {
        match $on {
            Some(rank) => {
                let task = $cluster.runtime().task_with($codelet, $params, $data);
                $cluster.submit_on(rank % $cluster.ranks(), task)?
            }
            None => $cluster.submit_with($codelet, $params, $data, |task| task)?,
        }
    };
}

type Found = (Vec<Option<Values>>, Vec<Option<Values>>);

fn run(cluster: &Cluster, steps: &[Step], owners: &[usize]) -> Result<Found, ClusterError> {
    let (plain, sums) = submit(cluster, steps, owners)?;
    cluster.wait_all()?;
    let sums = sums.into_iter().map(|sum| cluster.unregister(Handle::clone(&sum))).collect::<Result<_, _>>()?;
    let plain = plain.into_iter().map(|handle| cluster.unregister(handle)).collect::<Result<_, _>>()?;
    Ok((plain, sums))
}

/// Plain data, and sums.
type Handles = (Vec<Handle<Values>>, Vec<Reduction<Values>>);

/// Submits a program.
fn submit(cluster: &Cluster, steps: &[Step], owners: &[usize]) -> Result<Handles, ClusterError> {
    let (runtime, ranks) = (cluster.runtime(), cluster.ranks());
    let adds = runtime.codelet::<(Many<Read<Values>>, Redux<Values>), u64>("add");
    let adds = adds.cpu("add", |context, (reads, sum)| add(sum, seen(reads, *context.params))).build();
    let both = runtime.codelet::<(ReadWrite<Values>, Redux<Values>, Redux<Values>), u64>("both");
    let both = both.cpu("both", |context, (values, one, other)| {
        blend(values, *context.params);
        let part = seen([&*values], *context.params);
        [one, other].into_iter().for_each(|sum| add(sum, part));
    });
    let both = both.build();
    let uses = runtime.codelet::<(Read<Values>, ReadWrite<Values>), u64>("use");
    let uses = uses.cpu("use", |context, (sum, values)| blend(values, seen([sum], *context.params))).build();
    let changes = runtime.codelet::<(ReadWrite<Values>,), u64>("change");
    let changes = changes.cpu("change", |context, (sum,)| blend(sum, *context.params)).build();
    let sets = runtime.codelet::<(Write<Values>,), u64>("set");
    let sets = sets.cpu("set", |context, (sum,)| sum.fill(*context.params)).build();
    let owner = |data: usize| owners[data] % ranks;
    let plain = |data: usize| cluster.register_on(owner(data), || vec![data as u64; LEN], || vec![0; LEN]);
    let plain: Vec<Handle<Values>> = (0..PLAIN).map(plain).collect::<Result<_, _>>()?;
    let combine = |sum: &mut Values, part: Values| {
        sum.iter_mut().zip(part).for_each(|(sum, part)| *sum = sum.wrapping_add(part));
    };
    let sum = |data: usize| {
        cluster.reduction_on(owner(PLAIN + data), || vec![10 + data as u64; LEN], || vec![0; LEN], combine)
    };
    let sums: Vec<Reduction<Values>> = (0..SUMS).map(sum).collect::<Result<_, _>>()?;
    for (index, step) in (0_u64..).zip(steps) {
        match step {
            Step::Add { reads, to, on } => {
                let reads: Vec<_> = (0..PLAIN).filter(|data| reads[*data]).map(|data| plain[data].clone()).collect();
                submit!(cluster, on, &adds, index, (&reads, &sums[*to]));
            }
            Step::AddBoth { changes } => {
                submit!(cluster, None::<usize>, &both, index, (&plain[*changes], &sums[0], &sums[1]));
            }
            Step::Use { sum, changes, on } => _ = submit!(cluster, on, &uses, index, (&sums[*sum], &plain[*changes])),
            Step::Change { sum, on } => _ = submit!(cluster, on, &changes, index, (&sums[*sum],)),
            Step::Set { sum, on } => _ = submit!(cluster, on, &sets, index, (&sums[*sum],)),
            Step::Bring(sum, rank) => cluster.bring(&sums[*sum], rank % ranks)?,
            Step::Give(sum, rank) => cluster.give(&sums[*sum], rank % ranks)?,
            Step::Flush(sum) => cluster.flush(&sums[*sum])?,
            Step::Wait => cluster.wait_all()?,
        }
    }
    Ok((plain, sums))
}

/// The program as a graph, as far as one can say it: tasks run where their data is.
fn graph_of(steps: &[Step]) -> TaskGraph {
    let mut graph = TaskGraph::new("program");
    let kind = graph.add_kind("k");
    let data: Vec<DataId> = (0..PLAIN + SUMS).map(|_| graph.add_data(Datum::new(8 * LEN as u64))).collect();
    let (plain, sums) = data.split_at(PLAIN);
    for step in steps {
        let task = Task::new(kind);
        let task = match step {
            Step::Add { reads, to, .. } => {
                let read = (0..PLAIN)
                    .filter(|data| reads[*data])
                    .fold(task, |task, data| task.access(plain[data], AccessMode::Read));
                read.access(sums[*to], AccessMode::Redux)
            }
            Step::AddBoth { changes } => {
                let task = task.access(plain[*changes], AccessMode::ReadWrite);
                sums.iter().fold(task, |task, sum| task.access(*sum, AccessMode::Redux))
            }
            Step::Use { sum, changes, .. } => {
                task.access(sums[*sum], AccessMode::Read).access(plain[*changes], AccessMode::ReadWrite)
            }
            Step::Change { sum, .. } => task.access(sums[*sum], AccessMode::ReadWrite),
            Step::Set { sum, .. } => task.access(sums[*sum], AccessMode::Write),
            Step::Bring(..) | Step::Give(..) | Step::Flush(..) | Step::Wait => continue,
        };
        graph.add_task(task);
    }
    graph
}

/// The step without what a graph cannot say; `None` if nothing is left.
fn plainly(step: Step) -> Option<Step> {
    Some(match step {
        Step::Add { reads, to, .. } => Step::Add { reads, to, on: None },
        Step::Use { sum, changes, .. } => Step::Use { sum, changes, on: None },
        Step::Change { sum, .. } => Step::Change { sum, on: None },
        Step::Set { sum, .. } => Step::Set { sum, on: None },
        Step::AddBoth { .. } => step,
        Step::Bring(..) | Step::Give(..) | Step::Flush(..) | Step::Wait => return None,
    })
}

/// Whoever serves messages calls what adds: a worker, a thread that waits, or that of the messages.
#[test]
fn what_adds_up_a_sum_may_panic() {
    let found = on_ranks(3, |cluster| {
        let runtime = cluster.runtime();
        let count = runtime.codelet::<(Redux<u64>,), ()>("count").cpu("count", |_, (sum,)| *sum += 1).build();
        let add = |sum: &mut u64, part| *sum = sum.checked_add(part).expect("there is room for one");
        let on_arrival = cluster.reduction_on(0, || u64::MAX - 1, || 0, add).expect("a rank");
        let at_the_sender = cluster.reduction_on(0, || 0, || 0, |_, _| panic!("nothing is added")).expect("a rank");
        for task in 0..6 {
            cluster.submit_on(1 + task % 2, runtime.task(&count, (&on_arrival,))).expect("the task is sound");
        }
        cluster.submit_on(2, runtime.task(&count, (&at_the_sender,))).expect("the task is sound");
        let sums = [on_arrival, at_the_sender].map(|sum| Handle::clone(&sum));
        sums.iter().for_each(|sum| cluster.bring(sum, 1).expect("it is the cluster's"));
        cluster.wait_all().expect("no task has failed");
        sums.map(|sum| cluster.unregister(sum).map_err(|error| error.to_string()))
    });
    let [on_arrival, at_the_sender] = found[0].clone().map(|found| found.expect_err("nothing was added up"));
    let why = "the data was not computed: what adds a part to a reduction has panicked: there is room for one";
    assert!(on_arrival.starts_with(why), "{on_arrival}");
    let why = "the data was not computed: what adds up a reduction has panicked: nothing is added";
    assert!(at_the_sender.starts_with(why), "{at_the_sender}");
    assert_eq!(found[1..], [[Ok(None), Ok(None)], [Ok(None), Ok(None)]]);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Wherever tasks add, and whoever owns the sums: they are those of one rank, one task after the other.
    #[test]
    fn sums_are_those_of_one_task_after_the_other(
        steps in prop::collection::vec(step(), 1..50),
        owners in prop::collection::vec(0..4_usize, PLAIN + SUMS),
        ranks in prop::sample::select(&[1_usize, 2, 3, 4][..]),
    ) {
        let (plain, sums) = in_order(&steps);
        let found = on_ranks(ranks, |cluster| run(cluster, &steps, &owners).expect("all is well"));
        for (data, value) in plain.iter().enumerate() {
            let of_owners: Vec<&Values> = found.iter().filter_map(|(plain, _)| plain[data].as_ref()).collect();
            prop_assert_eq!(of_owners, [value], "data {}", data);
        }
        for (sum, value) in sums.iter().enumerate() {
            let of_owners: Vec<&Values> = found.iter().filter_map(|(_, sums)| sums[sum].as_ref()).collect();
            prop_assert_eq!(of_owners, [value], "sum {}", sum);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// A simulated cluster sends what real ranks send, sums included.
    #[test]
    fn sums_travel_as_on_a_simulated_cluster(
        steps in prop::collection::vec(step(), 1..50),
        owners in prop::collection::vec(0..4_usize, PLAIN + SUMS),
        ranks in 1..5_usize,
    ) {
        let steps: Vec<Step> = steps.into_iter().filter_map(plainly).collect();
        let owned: Vec<usize> = owners.iter().map(|owner| owner % ranks).collect();
        let shares = Shares::new(&graph_of(&steps), &owned, ranks);
        let sent = on_ranks(ranks, |cluster| {
            let _data = submit(cluster, &steps, &owners).expect("it is sound");
            cluster.wait_all().expect("all is well");
            cluster.sent().values
        });
        let planned = |rank: usize| shares.messages.iter().filter(|message| message.from as usize == rank).count() as u64;
        prop_assert_eq!(sent, (0..ranks).map(planned).collect::<Vec<_>>());
    }
}

#[test]
fn parts_are_added_along_a_tree_and_only_where_there_are_any() {
    let found = on_ranks(8, |cluster| {
        let runtime = cluster.runtime();
        let add = runtime.codelet::<(Redux<u64>,), u64>("add").cpu("add", |context, (sum,)| *sum += context.params);
        let add = add.build();
        let sum = cluster.reduction_on(3, || 100_u64, || 0, |sum, part| *sum += part).expect("a rank");
        for number in 0..40_u64 {
            let task = runtime.task_with(&add, number, (&sum,));
            cluster.submit_on([0, 1, 2, 4, 5, 6][number as usize % 6], task).expect("it is sound");
        }
        cluster.bring(&sum, 3).expect("it is registered");
        cluster.wait_all().expect("all is well");
        (cluster.sent().values, *runtime.read(&sum).expect("it is good"))
    });
    assert_eq!(found[3].1, 100 + (0..40).sum::<u64>());
    let sent: Vec<u64> = found.iter().map(|(sent, _)| *sent).collect();
    assert_eq!(sent, [1, 1, 1, 0, 1, 1, 1, 0]);
}

#[test]
fn a_part_that_was_not_computed_spoils_the_sum_until_it_is_set() {
    let words = on_ranks(3, |cluster| {
        let runtime = cluster.runtime();
        let add = runtime.codelet::<(Redux<u64>,), u64>("add").cpu("add", |context, (sum,)| {
            assert_ne!(*context.params, 7, "no luck");
            *sum += context.params;
        });
        let set = runtime.codelet::<(Write<u64>,), ()>("set").cpu("set", |_, (sum,)| *sum = 1).build();
        let add = add.build();
        let sum = cluster.reduction_on(0, || 0_u64, || 0, |sum, part| *sum += part).expect("a rank");
        for number in 5..9_u64 {
            let task = runtime.task_with(&add, number, (&sum,));
            cluster.submit_on(number as usize % 3, task).expect("it is sound");
        }
        cluster.bring_everywhere(&sum).expect("it is registered");
        let word = cluster.wait_all().expect_err("a kernel panicked").to_string();
        let bad = runtime.read(&sum).map(|sum| *sum).expect_err("there is no sum").to_string();
        assert!(bad.contains("no luck"), "{bad}");
        cluster.submit(runtime.task(&set, (&sum,))).expect("it is sound");
        for rank in 0..3 {
            cluster.submit_on(rank, runtime.task_with(&add, 10, (&sum,))).expect("it is sound");
        }
        cluster.bring_everywhere(&sum).expect("it is registered");
        cluster.wait_all().expect("all is well");
        assert_eq!(*runtime.read(&sum).expect("it is good"), 31);
        word
    });
    assert!(words.iter().all(|word| word.contains("rank 1: ") && word.contains("no luck")), "{words:?}");
}

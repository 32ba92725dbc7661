//! Arrays in parts, with tasks on parts and on the whole.

use super::{mix, on_ranks};
use crate::{Cluster, ClusterError};
use proptest::prelude::*;
use sched_runtime::{Many, Read, ReadWrite, Write};

/// What a task, or the program, does with an array and a number.
#[derive(Clone, Debug)]
enum Act {
    /// Parts are mixed into another part, on a rank.
    Blend(Vec<usize>, usize, Option<usize>),
    /// The whole array is mixed with the number.
    All(Option<usize>),
    /// The whole array is mixed into the number.
    Count(Option<usize>),
    /// A part, or the whole, is set.
    Set(Option<usize>, Option<usize>),
    /// Each part goes to the rank of its number times the first value plus the second.
    Redistribute(usize, usize),
    /// A part, or the whole, is brought to a rank.
    Bring(Option<usize>, usize),
    Wait,
}

fn act() -> impl Strategy<Value = Act> {
    let (part, on) = (0..9_usize, prop::option::of(0..4_usize));
    let some_part = prop::option::of(0..9_usize);
    prop_oneof![
        6 => (prop::collection::vec(part.clone(), 0..4), part, on.clone()).prop_map(|(from, to, on)| Act::Blend(from, to, on)),
        2 => on.clone().prop_map(Act::All),
        2 => on.clone().prop_map(Act::Count),
        1 => (some_part.clone(), on).prop_map(|(part, on)| Act::Set(part, on)),
        1 => (0..5_usize, 0..5_usize).prop_map(|(times, more)| Act::Redistribute(times, more)),
        1 => (some_part, 0..4_usize).prop_map(|(part, rank)| Act::Bring(part, rank)),
        1 => Just(Act::Wait),
    ]
}

fn seen(values: &[u64], from: u64) -> u64 {
    values.iter().fold(from, |seen, value| mix(seen, *value))
}

fn blend(values: &mut [u64], by: u64) {
    values.iter_mut().for_each(|value| *value = mix(*value, by));
}

/// Places of the parts.
fn ranges(len: usize, parts: usize) -> Vec<std::ops::Range<usize>> {
    (0..parts).map(|part| crate::parts::range(len, parts, part)).collect()
}

/// The parts that are read, without the one that is written.
fn others(from: &[usize], to: usize, parts: usize) -> Vec<usize> {
    let mut from: Vec<usize> = from.iter().map(|part| part % parts).filter(|part| *part != to).collect();
    from.sort_unstable();
    from.dedup();
    from
}

fn in_order(len: usize, parts: usize, acts: &[Act]) -> (Vec<u64>, u64) {
    let (mut values, mut number): (Vec<u64>, _) = ((0..len as u64).collect(), 1);
    let ranges = ranges(len, parts);
    for (index, act) in (0_u64..).zip(acts) {
        match act {
            Act::Blend(from, to, _) => {
                let to = to % parts;
                let by =
                    others(from, to, parts).iter().fold(index, |by, part| seen(&values[ranges[*part].clone()], by));
                blend(&mut values[ranges[to].clone()], by);
            }
            Act::All(_) => blend(&mut values, number),
            Act::Count(_) => number = seen(&values, number),
            Act::Set(part, _) => values[part.map_or(0..len, |part| ranges[part % parts].clone())].fill(index),
            Act::Redistribute(..) | Act::Bring(..) | Act::Wait => {}
        }
    }
    (values, number)
}

fn run(
    cluster: &Cluster,
    len: usize,
    parts: usize,
    acts: &[Act],
) -> Result<(Option<Vec<u64>>, Option<u64>), ClusterError> {
    let (runtime, ranks) = (cluster.runtime(), cluster.ranks());
    let blends = runtime.codelet::<(Many<Read<[u64]>>, ReadWrite<[u64]>), u64>("blend");
    let blends = blends.cpu("blend", |context, (from, to)| {
        blend(to, from.iter().fold(*context.params, |by, values| seen(values, by)));
    });
    let blends = blends.build();
    let all =
        runtime.codelet::<(Read<u64>, ReadWrite<[u64]>), ()>("all").cpu("all", |_, (by, to)| blend(to, *by)).build();
    let count = runtime.codelet::<(Read<[u64]>, ReadWrite<u64>), ()>("count");
    let count = count.cpu("count", |_, (values, number)| *number = seen(values, *number)).build();
    let set =
        runtime.codelet::<(Write<[u64]>,), u64>("set").cpu("set", |context, (to,)| to.fill(*context.params)).build();
    let number = cluster.register_on(ranks - 1, || 1_u64, || 0)?;
    let array = cluster.register_array(len, parts, |places| places.map(|place| place as u64).collect())?;
    for (index, act) in (0_u64..).zip(acts) {
        macro_rules! submit {
            ($on:expr, $codelet:expr, $params:expr, $data:expr) => {
                match $on {
                    Some(rank) => cluster.submit_on(rank % ranks, runtime.task_with($codelet, $params, $data))?,
                    None => cluster.submit_with($codelet, $params, $data, |task| task)?,
                }
            };
        }
        match act {
            Act::Blend(from, to, on) => {
                let to = to % parts;
                let from: Vec<_> = others(from, to, parts).iter().map(|part| array[*part].clone()).collect();
                submit!(on, &blends, index, (&from, &array[to]));
            }
            Act::All(on) => _ = submit!(on, &all, (), (&number, array.whole())),
            Act::Count(on) => _ = submit!(on, &count, (), (array.whole(), &number)),
            Act::Set(part, on) => {
                let to = part.map_or(array.whole(), |part| &array[part % parts]);
                submit!(on, &set, index, (to,));
            }
            Act::Redistribute(times, more) => {
                cluster.redistribute_array(&array, |part| (part * times + more) % ranks)?
            }
            Act::Bring(part, rank) => {
                cluster.bring(part.map_or(array.whole(), |part| &array[part % parts]), rank % ranks)?;
            }
            Act::Wait => cluster.wait_all()?,
        }
    }
    Ok((cluster.gather_array(array, 0)?, cluster.unregister(number)?))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Whichever parts tasks name, and wherever they run: the values are those of one rank, one task after the other.
    #[test]
    fn arrays_in_parts_are_those_of_one_task_after_the_other(
        len in 0..40_usize,
        parts in 1..9_usize,
        acts in prop::collection::vec(act(), 0..30),
        ranks in 1..5_usize,
    ) {
        let (values, number) = in_order(len, parts, &acts);
        let found = on_ranks(ranks, |cluster| run(cluster, len, parts, &acts).expect("all is well"));
        prop_assert_eq!(found[0].0.as_ref(), Some(&values));
        prop_assert_eq!(found[ranks - 1].1, Some(number));
        prop_assert!(found[1..].iter().all(|(values, _)| values.is_none()));
    }
}

#[test]
fn parts_that_no_rank_owns_are_refused_and_failures_spoil_their_part() {
    let words = on_ranks(2, |cluster| {
        let runtime = cluster.runtime();
        let fail = runtime.codelet::<(Write<[u64]>,), ()>("fail").cpu("fail", |_, (_,)| panic!("no luck")).build();
        let array = cluster.register_array(10, 2, |places| vec![1; places.len()]).expect("it fits");
        let thirds = array.whole().partition(&sched_runtime::Plan::ranges(3)).expect("it is divided");
        let refused = cluster.submit(runtime.task(&fail, (&thirds[0],))).expect_err("nobody owns it").to_string();
        assert!(refused.starts_with("codelet `fail` names data"), "{refused}");
        cluster.submit(runtime.task(&fail, (&array[1],))).expect("it is sound");
        cluster.bring(array.whole(), 0).expect("it is registered");
        let word = cluster.wait_all().expect_err("a kernel panicked").to_string();
        if cluster.rank() == 0 {
            assert_eq!(*runtime.read(&array[0]).expect("it is good"), [1; 5]);
            assert!(runtime.read(&array[1]).is_err());
        }
        word
    });
    assert!(words[0].contains("no luck") && words[0] == words[1], "{words:?}");
}

#[test]
fn values_that_do_not_fit_their_places_end_all_ranks_with_the_same_word() {
    let words = on_ranks(2, |cluster| {
        let made = |places: std::ops::Range<usize>| vec![1_u64; if places.start == 5 { 3 } else { places.len() }];
        let array = cluster.register_array(10, 2, made);
        array.map(drop).and_then(|()| cluster.wait_all()).expect_err("rank 1 makes 3 of 5").to_string()
    });
    let says = "rank 1 has made 3 values for places 5..10 of an array of 10, expected 5";
    assert!(words[0].starts_with(says) && words[0] == words[1], "{words:?}");
    let words = on_ranks(2, |cluster| {
        let array = cluster.register_array_on(0, 4, || vec![1_u64; 7]);
        array.map(drop).and_then(|()| cluster.wait_all()).expect_err("rank 0 makes 7 of 4").to_string()
    });
    assert!(words[0].starts_with("rank 0 has made 7 values for an array of 4, expected 4"), "{words:?}");
    assert_eq!(words[0], words[1]);
}

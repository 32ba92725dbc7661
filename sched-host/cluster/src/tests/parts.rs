//! Vectors in parts.

use super::{mix, on_ranks};
use crate::{Cluster, ClusterError};
use proptest::prelude::*;
use sched_runtime::{Many, Read, ReadWrite};

/// What is done with a vector.
#[derive(Clone, Debug)]
enum Step {
    /// Each part is mixed with the last value of the one before it, from the first to the last.
    Sweep,
    /// One part is mixed with the values of all others.
    Blend(usize),
    /// Each part goes to the rank of its number times the first value plus the second.
    Redistribute(usize, usize),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        Just(Step::Sweep),
        (0..9_usize).prop_map(Step::Blend),
        (0..5_usize, 0..5_usize).prop_map(|(times, more)| Step::Redistribute(times, more)),
    ]
}

fn blend(part: &mut [u64], by: u64) {
    part.iter_mut().for_each(|value| *value = mix(*value, by));
}

/// The vector as the parts of one program.
fn in_order(parts: &mut [Vec<u64>], steps: &[Step]) {
    for step in steps {
        match step {
            Step::Sweep => (1..parts.len()).for_each(|part| {
                let by = parts[part - 1].last().map_or(1, |last| *last);
                blend(&mut parts[part], by);
            }),
            Step::Blend(part) => {
                let part = part % parts.len();
                let others = parts.iter().enumerate().filter(|(other, _)| *other != part);
                let by = others.flat_map(|(_, values)| values).fold(2, |seen, value| mix(seen, *value));
                blend(&mut parts[part], by);
            }
            Step::Redistribute(..) => {}
        }
    }
}

fn run(cluster: &Cluster, (len, count): (usize, usize), steps: &[Step]) -> Result<Option<Vec<u64>>, ClusterError> {
    let (runtime, ranks) = (cluster.runtime(), cluster.ranks());
    let sweep = runtime.codelet::<(Read<Vec<u64>>, ReadWrite<Vec<u64>>), ()>("sweep");
    let sweep = sweep.cpu("sweep", |_, (before, part)| blend(part, before.last().map_or(1, |last| *last))).build();
    let all = runtime.codelet::<(Many<Read<Vec<u64>>>, ReadWrite<Vec<u64>>), ()>("all");
    let all = all.cpu("all", |_, (others, part)| {
        blend(part, others.iter().flat_map(|values| values.iter()).fold(2, |seen, value| mix(seen, *value)));
    });
    let all = all.build();
    let parts = cluster.register_in_parts(len, count, |places| places.map(|place| place as u64).collect())?;
    for step in steps {
        match step {
            Step::Sweep => {
                for pair in parts.windows(2) {
                    cluster.submit_with(&sweep, (), (&pair[0], &pair[1]), |task| task)?;
                }
            }
            Step::Blend(part) => {
                let part = part % parts.len();
                let others = parts.iter().enumerate().filter(|(other, _)| *other != part);
                let others: Vec<_> = others.map(|(_, handle)| handle.clone()).collect();
                cluster.submit_with(&all, (), (&others, &parts[part]), |task| task)?;
            }
            Step::Redistribute(times, more) => cluster.redistribute(&parts, |part| (part * times + more) % ranks)?,
        }
    }
    cluster.gather(parts, ranks - 1)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    /// However long the vector is, and into how many parts it is divided among how many ranks.
    #[test]
    fn vectors_in_parts_are_those_of_one_task_after_the_other(
        len in 0..40_usize,
        count in 1..9_usize,
        steps in prop::collection::vec(step(), 0..12),
        ranks in 1..5_usize,
    ) {
        let mut found = on_ranks(ranks, |cluster| run(cluster, (len, count), &steps).expect("all is well"));
        let found_last = found.pop().flatten().expect("the last rank has it");
        prop_assert!(found.iter().all(Option::is_none));
        let lengths = (0..count).map(|part| len / count + usize::from(part < len % count));
        let mut next = 0..len as u64;
        let mut parts: Vec<Vec<u64>> = lengths.map(|length| next.by_ref().take(length).collect()).collect();
        in_order(&mut parts, &steps);
        prop_assert_eq!(found_last, parts.concat());
    }
}

#[test]
fn a_program_goes_on_after_a_vector_was_gathered() {
    on_ranks(3, |cluster| {
        for rank in 0..3 {
            let parts = cluster.register_in_parts(10, 4, |places| places.map(|place| place as u64).collect());
            let found = cluster.gather(parts.expect("it is new"), rank).expect("all is well");
            assert_eq!(found, (cluster.rank() == rank).then(|| (0..10).collect()));
        }
        cluster.wait_all().expect("all ranks have done the same");
    });
}

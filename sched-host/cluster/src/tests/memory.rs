//! A rank that has no memory for a value says so to all.

use super::on_ranks;
use crate::Cluster;
use sched_runtime::{Read, ReadWrite, Redux, Write};

const LEN: usize = 10_000;

/// The word of all ranks when rank 1 has no memory for what `body` has it hold; then it has, and all is well.
fn word_of(body: impl Fn(&Cluster) + Sync) -> String {
    let words = on_ranks(3, |cluster| {
        if cluster.rank() == 1 {
            cluster.office.desk().memory().bound(LEN);
        }
        body(cluster);
        let word = cluster.wait_all().expect_err("there is no memory").to_string();
        cluster.office.desk().memory().bound(usize::MAX);
        // Else others might send before.
        cluster.exchange(&[]).expect("all are there");
        body(cluster);
        cluster.wait_all().expect("there is memory");
        word
    });
    assert!(words.iter().all(|word| *word == words[0]), "{words:?}");
    words[0].clone()
}

const ADVICE: &str = "use more ranks or less data, or allow it more (`ulimit -v`, control groups)";

#[test]
fn a_value_that_is_received() {
    let word = word_of(|cluster| {
        let sum = cluster.runtime().codelet::<(Read<Vec<u64>>, ReadWrite<u64>), ()>("sum");
        let sum = sum.cpu("sum", |_, (x, y)| *y += x.iter().sum::<u64>()).build();
        let x = cluster.register_on(0, || vec![1; LEN], || vec![0; LEN]).expect("a rank");
        let y = cluster.register_on(1, || 0_u64, || 0).expect("a rank");
        cluster.submit(cluster.runtime().task(&sum, (&x, &y))).expect("it is sound");
    });
    let word = word.strip_prefix("rank 1: rank 1 has no memory for 80000 bytes of data ").expect("that is why");
    assert!(word.ends_with(ADVICE), "{word}");
}

#[test]
fn several_values_that_are_brought() {
    let word = word_of(|cluster| {
        for owner in [0, 2] {
            let x = cluster.register_on(owner, || vec![1_u8; LEN + 1], || vec![0; LEN + 1]).expect("a rank");
            cluster.bring(&x, 1).expect("it is registered");
        }
    });
    assert!(word.ends_with(&format!("{ADVICE}; and for 1 more")), "{word}");
}

#[test]
fn a_value_that_is_computed_for_another() {
    let word = word_of(|cluster| {
        let set = cluster.runtime().codelet::<(Write<Vec<u64>>,), ()>("set").cpu("set", |_, (x,)| x.fill(1)).build();
        let x = cluster.register_on(0, || vec![0; LEN], || vec![0; LEN]).expect("a rank");
        cluster.submit_on(1, cluster.runtime().task(&set, (&x,))).expect("it is sound");
    });
    assert!(word.contains("rank 1 has no memory for 80000 bytes of data 0"), "{word}");
}

#[test]
fn a_part_of_a_sum() {
    let word = word_of(|cluster| {
        let add = cluster.runtime().codelet::<(Read<u64>, Redux<Vec<u64>>), ()>("add");
        let add = add.cpu("add", |_, (x, sum)| sum.iter_mut().for_each(|sum| *sum += x)).build();
        let zeros = || vec![0; LEN];
        let fold = |sum: &mut Vec<u64>, part: Vec<u64>| sum.iter_mut().zip(part).for_each(|(sum, part)| *sum += part);
        let sum = cluster.reduction_on(1, zeros, zeros, fold).expect("a rank");
        for owner in 0..3 {
            let x = cluster.register_on(owner, || 1, || 0_u64).expect("a rank");
            cluster.submit(cluster.runtime().task(&add, (&x, &sum))).expect("it is sound");
        }
        cluster.bring(&sum, 0).expect("it is registered");
    });
    assert!(word.contains("rank 1 has no memory for 80000 bytes of data 0"), "{word}");
}

#[test]
fn an_array() {
    let words = on_ranks(2, |cluster| {
        // More than any address space, on one of them.
        let len = if cluster.rank() == 1 { usize::MAX >> 8 } else { 10 };
        let array = cluster.register_array(len, 2, |places| vec![0_u64; places.len()]);
        let error = array.map(drop).and_then(|()| cluster.wait_all());
        error.expect_err("there is no memory").to_string()
    });
    assert!(words[0].starts_with("rank 1 has no memory for an array of "), "{}", words[0]);
    assert_eq!(words[0], words[1]);
}

/// Its value comes with the first message, which tells of the failure.
#[test]
fn a_task_writes_where_a_value_was_not_computed() {
    let found = on_ranks(2, |cluster| {
        let runtime = cluster.runtime();
        let fail = runtime.codelet::<(ReadWrite<Vec<u64>>,), ()>("fail").cpu("fail", |_, _| Err("on purpose")).build();
        let fill = runtime.codelet::<(Write<Vec<u64>>,), u64>("fill");
        let fill = fill.cpu("fill", |context, (x,)| x.fill(*context.params)).build();
        let [sent, given] =
            [(); 2].map(|()| cluster.register_on(0, || vec![1; 10], || vec![0; 10]).expect("it is new"));
        for x in [&sent, &given] {
            cluster.submit(runtime.task(&fail, (x,))).expect("the task is sound");
        }
        cluster.bring(&sent, 1).expect("there is such a rank");
        cluster.give(&given, 1).expect("there is such a rank");
        cluster.wait_all().expect_err("two tasks have failed");
        cluster.submit_on(1, runtime.task_with(&fill, 7, (&sent,))).expect("the task is sound");
        cluster.submit(runtime.task_with(&fill, 8, (&given,))).expect("the task is sound");
        for x in [&sent, &given] {
            cluster.bring_everywhere(x).expect("there are such ranks");
        }
        cluster.wait_all().expect("every task runs");
        [sent, given].map(|x| runtime.read(&x).expect("it was written").clone())
    });
    assert_eq!(found, [[vec![7; 10], vec![8; 10]], [vec![7; 10], vec![8; 10]]]);
}

//! Ranks that end before the others.

use super::{on_ranks, runtime};
use crate::{Cluster, ClusterError};
use parking_lot::Mutex;
use sched_runtime::{Read, ReadWrite, Runtime};
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::SeqCst;
use std::sync::{Arc, Barrier};

#[test]
fn a_rank_that_panics_leaves_nobody_waiting() {
    let panic = std::panic::catch_unwind(|| {
        on_ranks(3, |cluster| {
            assert_ne!(cluster.rank(), 1, "on purpose");
            let word = cluster.wait_all().expect_err("a rank is gone").to_string();
            assert!(word.starts_with("rank 1 has panicked: ") && word.contains("on purpose"), "{word}");
        })
    });
    let panic = panic.expect_err("rank 1 has panicked");
    let text = panic.downcast_ref::<String>().expect("it has a text");
    assert!(text.contains("on purpose"), "{text}");
}

#[test]
fn a_rank_that_returns_an_error_ends_the_others_with_its_words() {
    let last = AtomicUsize::new(usize::MAX);
    for failing in 0..3 {
        last.store(failing, SeqCst);
        let words = Cluster::local(
            3,
            |_| runtime(),
            |cluster| {
                let runtime = cluster.runtime();
                let add =
                    runtime.codelet::<(Read<u64>, ReadWrite<u64>), ()>("add").cpu("add", |_, (x, y)| *y += x).build();
                let data: Vec<_> =
                    (0..3).map(|rank| cluster.register_on(rank, || 1_u64, || 0).expect("a rank")).collect();
                for step in 0..30 {
                    let (read, written) = (step % 3, (step + 1 + step / 3 % 2) % 3);
                    if (step, cluster.rank()) == (10, failing) {
                        return Err("the disk is full".to_owned());
                    }
                    cluster.submit(runtime.task(&add, (&data[read], &data[written]))).expect("it is sound");
                }
                cluster.wait_all().map_err(|error| error.to_string())
            },
        );
        let words: Vec<String> =
            words.expect("the ranks start").into_iter().map(|word| word.expect_err("a rank is gone")).collect();
        for (rank, word) in words.into_iter().enumerate() {
            let expected = if rank == failing {
                "the disk is full".to_owned()
            } else {
                format!("rank {failing} has ended: the disk is full")
            };
            assert_eq!(word, expected, "rank {rank}");
        }
    }
}

#[test]
fn a_rank_that_returns_early_leaves_nobody_waiting() {
    for leaving in 0..3 {
        let words = on_ranks(3, |cluster| {
            let x = cluster.register_on(leaving, || 1_u64, || 0).expect("a rank");
            cluster.wait_all().expect("all are there");
            if cluster.rank() == leaving {
                return None;
            }
            cluster.bring(&x, cluster.rank()).expect("it is registered");
            let read = cluster.runtime().read(&x).map(|x| *x).expect_err("it never comes").to_string();
            Some((read, cluster.wait_all().expect_err("a rank is gone").to_string()))
        });
        let why = format!("rank {leaving} has ended before the others");
        for (read, waited) in words.into_iter().flatten() {
            assert!(read.contains(&why), "{read}");
            assert!(waited.contains(&why), "{waited}");
        }
    }
}

#[test]
fn what_a_rank_sent_before_it_left_arrives() {
    let words = on_ranks(3, |cluster| {
        let x = cluster.register_on(0, || 7_u64, || 0).expect("a rank");
        (1..3).for_each(|rank| cluster.bring(&x, rank).expect("it is registered"));
        cluster.wait_all().expect("all is well");
        *cluster.runtime().read(&x).expect("it has come")
    });
    assert_eq!(words, [7; 3]);
}

#[test]
fn a_rank_that_waits_in_vain_for_a_value_learns_why() {
    let words = Cluster::local(
        2,
        |_| runtime(),
        |cluster| {
            let x = cluster.register_on(1, || 1_u64, || 0)?;
            if cluster.rank() == 1 {
                return Err(ClusterError::Mpi("it is only pretended"));
            }
            cluster.bring(&x, 0)?;
            Ok(cluster.runtime().read(&x).map(|x| *x).expect_err("it never comes").to_string())
        },
    );
    let words = words.expect("the ranks start");
    let word = words[0].as_ref().expect("it has read");
    assert!(word.contains("rank 1 has ended: MPI does not start: it is only pretended"), "{word}");
}

#[test]
fn a_panic_cancels_what_has_not_begun_on_every_rank_with_the_same_word() {
    // The only worker is the thread that waits: nothing begins before.
    let start = |_| {
        let registry = Arc::new(sched_tree::plugin::Registry::compiled_in());
        Runtime::builder().registry(registry).workers(1).main_worker().bind(false).build()
    };
    let (ran, words, all) = (AtomicUsize::new(0), Mutex::new(Vec::new()), Barrier::new(3));
    let (ran, words, all) = (&ran, &words, &all);
    let body = |cluster: &Cluster| {
        let runtime = cluster.runtime();
        let count = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&count);
        let note = runtime.codelet::<(Read<u64>, ReadWrite<u64>), ()>("note");
        let note = note.cpu("note", move |_, (_, _)| _ = counted.fetch_add(1, SeqCst)).build();
        let data: Vec<_> = (0..3).map(|rank| cluster.register_on(rank, || 1_u64, || 0).expect("a rank")).collect();
        // Those that need nothing from others, and those that do.
        for step in 0..30 {
            let (read, written) = (step % 3, (step + 1 + step / 3 % 2) % 3);
            cluster.submit(runtime.task(&note, (&data[read], &data[written]))).expect("it is sound");
        }
        // Else a rank that has just begun might find that another is gone.
        all.wait();
        assert_ne!(cluster.rank(), 1, "on purpose");
        words.lock().push(cluster.wait_all().expect_err("a rank is gone").to_string());
        ran.fetch_add(count.load(SeqCst), SeqCst);
        Ok::<(), ClusterError>(())
    };
    let panic = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| Cluster::local(3, start, body)));
    assert!(panic.is_err(), "rank 1 has panicked");
    let words = std::mem::take(&mut *words.lock());
    assert!(words.len() == 2 && words[0] == words[1], "{words:?}");
    assert!(words[0].starts_with("rank 1 has panicked: ") && words[0].contains("on purpose"), "{}", words[0]);
    assert_eq!(ran.load(SeqCst), 0);
}

//! What a kernel that several workers execute sees and does.

use super::{CHOICE, Notes, meeting, start, start_from};
use sched_core::WorkerId;
use sched_host::runtime::{Commute, Context, Many, Outcome, Read, ReadWrite};
use sched_host::topology::Topology;
use sched_tests::conformance::Origin;
use sched_tests::stock;
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex};

#[test]
fn an_spmd_kernel_runs_on_every_member_at_once() {
    for origin in Origin::ALL {
        let runtime = start_from(origin, CHOICE);
        assert_eq!((runtime.workers(), runtime.combined_workers().len()), (4, 3));
        for (choice, workers) in [(1, vec![0, 1, 2, 3]), (2, vec![0, 1]), (3, vec![2, 3])] {
            let notes = Arc::new(Notes::default());
            let meeting = meeting(&runtime, &notes);
            let task = runtime.task(&meeting, ()).sched_data(choice).submit().expect("the task is sound");
            assert_eq!(runtime.wait(task).expect("it ends"), Outcome::Done);
            let mut members = std::mem::take(&mut *notes.members.lock().expect("nobody panics"));
            members.sort_by_key(|(rank, ..)| *rank);
            let ranks: Vec<usize> = members.iter().map(|(rank, ..)| *rank).collect();
            assert_eq!(ranks, (0..workers.len()).collect::<Vec<_>>());
            assert!(members.iter().all(|(_, size, ..)| *size == workers.len()));
            assert_eq!(members.iter().map(|(_, _, worker, _)| worker.0).collect::<Vec<_>>(), workers);
            let threads: BTreeSet<String> = members.iter().map(|(.., thread)| format!("{thread:?}")).collect();
            assert_eq!(threads.len(), workers.len(), "each has a thread of its own");
        }
        // One worker is a team as well.
        let notes = Arc::new(Notes::default());
        let alone = meeting(&runtime, &notes);
        runtime.task(&alone, ()).submit().expect("the task is sound");
        runtime.wait_all().expect("it runs");
        assert_eq!(notes.most.load(SeqCst), 1);
        assert_eq!(runtime.stats().iter().map(|worker| worker.tasks).sum::<u64>(), 4, "a task is counted once");
        assert_eq!(runtime.faults(), []);
    }
}

#[test]
fn members_write_parts_of_the_data() {
    let runtime = start(CHOICE);
    let (x, y) = (runtime.register((0..10).collect::<Vec<i64>>()), runtime.register(vec![100_i64; 10]));
    let many: Vec<_> = (0..3).map(|_| runtime.register([0_i64; 5])).collect();
    let pads = runtime.scratchpad(Vec::<usize>::new);
    type Accesses =
        (Read<Vec<i64>>, ReadWrite<Vec<i64>>, Many<Commute<[i64; 5]>>, sched_host::runtime::Scratch<Vec<usize>>);
    let add = runtime
        .codelet::<Accesses, i64>("add")
        .cpu_spmd("add_spmd", 4, |context, (x, y, many, pad)| {
            let team = context.team();
            pad.push(team.rank());
            assert_eq!(pad.len(), 1, "nobody else has this scratchpad");
            let begin = [0, 3, 6, 8][team.rank()];
            assert_eq!((team.size(), y.len()), (4, [3, 3, 2, 2][team.rank()]));
            y.iter_mut().zip(&x[begin..]).for_each(|(y, x)| *y += context.params * x);
            many.into_iter().flatten().for_each(|value| *value += 1);
            pad.clear();
        })
        .build();
    runtime.task_with(&add, 2, (&x, &y, &many, &pads)).sched_data(1).submit().expect("the task is sound");
    runtime.wait_all().expect("it runs");
    let expected: Vec<i64> = (0..10).map(|x| 100 + 2 * x).collect();
    assert_eq!(*runtime.read(&y).expect("the data is good"), expected);
    assert_eq!(*runtime.read(&many[2]).expect("the data is good"), [1; 5]);
}

#[test]
fn a_forking_kernel_runs_once_and_has_the_others_at_its_disposal() {
    for origin in Origin::ALL {
        let runtime = start_from(origin, CHOICE);
        let data = runtime.register(vec![1_u64; 1000]);
        let runs = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&runs);
        let sum = runtime
            .codelet::<(ReadWrite<Vec<u64>>,), ()>("double")
            .cpu_fork("double_fork", 4, move |context, (data,)| {
                count.fetch_add(1, SeqCst);
                let team = context.team();
                assert_eq!((team.rank(), team.size(), context.worker), (0, 4, WorkerId(0)));
                team.barrier();
                let sums: Vec<AtomicUsize> = (0..4).map(|_| AtomicUsize::new(0)).collect();
                let parts = team.share(data);
                team.run(|member| {
                    let part = parts.take(member);
                    part.iter_mut().for_each(|value| *value *= 2);
                    sums[member.rank()].store(part.len(), SeqCst);
                    member.barrier();
                    assert_eq!(sums.iter().map(|sum| sum.load(SeqCst)).sum::<usize>(), 1000);
                    member.run(|alone| assert_eq!((alone.size(), alone.worker()), (1, member.worker())));
                });
                assert_eq!(data.iter().sum::<u64>(), 2000);
            })
            .build();
        runtime.task(&sum, (&data,)).sched_data(1).submit().expect("the task is sound");
        runtime.wait_all().expect("it runs");
        assert_eq!(runs.load(SeqCst), 1);
    }
}

#[test]
fn implementations_are_chosen_by_the_size_of_the_team() {
    let runtime = start(CHOICE);
    let ran = Arc::new(Mutex::new(Vec::new()));
    let note = |name: &'static str| {
        let ran = Arc::clone(&ran);
        move |context: &Context<'_>, ()| {
            ran.lock().expect("nobody panics").push((name, context.team().size()));
        }
    };
    let codelet = runtime
        .codelet::<(), ()>("any")
        .cpu("alone", note("alone"))
        .cpu_fork("up_to_2", 2, note("up_to_2"))
        .cpu_fork("up_to_4", 4, note("up_to_4"))
        .build();
    for choice in [0, 2, 1] {
        let task = runtime.task(&codelet, ()).sched_data(choice).submit().expect("the task is sound");
        runtime.wait(task).expect("it ends");
    }
    assert_eq!(*ran.lock().expect("nobody panics"), [("alone", 1), ("up_to_2", 2), ("up_to_4", 4)]);
}

/// The processing units that this thread may run on, as Linux lists them.
fn allowed() -> String {
    let status = std::fs::read_to_string("/proc/thread-self/status").expect("the system says");
    let line = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"));
    line.expect("it is in there").trim().to_owned()
}

#[test]
fn members_are_bound_each_to_a_unit_and_a_fork_to_all() {
    let machine = Topology::this_machine().expect("the machine can be explored");
    let [first, second, ..] = *machine.allowed_pus() else {
        sched_test_support::skipped("this machine has one processing unit");
        return;
    };
    let runtime = stock::builder(CHOICE, 2, Vec::new()).unchecked().bind(true).build().expect("the runtime starts");
    if runtime.bound_workers() < 2 {
        sched_test_support::skipped("the system does not bind threads");
        return;
    }
    let seen = Arc::new(Mutex::new(Vec::new()));
    let (note, note_fork) = (Arc::clone(&seen), Arc::clone(&seen));
    let spmd = runtime.codelet::<(), ()>("spmd").cpu_spmd("spmd", 2, move |context, ()| {
        note.lock().expect("nobody panics").push((context.team().rank(), allowed()));
    });
    let fork = runtime.codelet::<(), ()>("fork").cpu_fork("fork", 2, move |context, ()| {
        note_fork.lock().expect("nobody panics").push((context.team().rank(), allowed()));
    });
    let (spmd, fork) = (spmd.build(), fork.build());
    for _ in 0..2 {
        for codelet in [&spmd, &fork] {
            let task = runtime.task(codelet, ()).sched_data(1).submit().expect("the task is sound");
            assert_eq!(runtime.wait(task).expect("it ends"), Outcome::Done);
        }
        let mut seen = std::mem::take(&mut *seen.lock().expect("nobody panics"));
        let (_, fork) = seen.pop().expect("it ran");
        seen.sort();
        // Which unit is whose, the plan says.
        let of = |rank: usize| seen[rank].1.parse::<u32>().expect("one unit");
        assert_eq!((seen.len(), of(0).min(of(1)), of(0).max(of(1))), (2, first, second));
        assert!(fork == format!("{first}-{second}") || fork == format!("{first},{second}"), "{fork}");
    }
}

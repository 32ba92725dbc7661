//! Parallel tasks: several workers execute one together.

mod kernels;

use sched_core::{Arch, WorkerId};
use sched_host::runtime::{Builder, Codelet, Context, Outcome, ReadWrite, RunError, Runtime, WhenFull, Write};
use sched_host::topology::Topology;
use sched_tests::conformance::Origin;
use sched_tests::hold::Hold;
use sched_tests::stock;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use std::thread::{self, ThreadId};
use std::time::Duration;

/// `sched_data` 0: one worker; 1: the first combined worker, which is all workers; 2 and more: the next.
const CHOICE: &str = r#"user-choice {
    fifo { eager { each "worker" { worker } } }
    each "combined-worker" { fifo { combined-worker } }
}"#;

/// Four workers, combined in all, 0 and 1, 2 and 3.
fn four(tree: &str) -> Builder {
    let machine = Topology::from_synthetic("l2:2 core:2 pu:1").expect("the description is sound");
    stock::builder(tree, 4, Vec::new()).topology(machine).unchecked()
}

fn start(tree: &str) -> Runtime {
    start_from(Origin::BuiltIn, tree)
}

fn start_from(origin: Origin, tree: &str) -> Runtime {
    let runtime = four(tree).registry(origin.registry()).build();
    runtime.unwrap_or_else(|error| panic!("{origin:?}, {tree}: {error:?}"))
}

/// A codelet that notes the thread, rank, size and worker of each member, and meets the others three times.
#[derive(Default)]
struct Notes {
    members: Mutex<Vec<(usize, usize, WorkerId, ThreadId)>>,
    inside: AtomicUsize,
    most: AtomicUsize,
}

fn meeting(runtime: &Runtime, notes: &Arc<Notes>) -> Codelet<(), ()> {
    let notes = Arc::clone(notes);
    let kernel = move |context: &Context<'_>, ()| {
        let team = context.team();
        let inside = notes.inside.fetch_add(1, SeqCst) + 1;
        notes.most.fetch_max(inside, SeqCst);
        // All are inside now.
        team.barrier();
        assert_eq!(notes.inside.load(SeqCst), team.size());
        team.barrier();
        notes.members.lock().expect("nobody panics").push((
            team.rank(),
            team.size(),
            context.worker,
            thread::current().id(),
        ));
        notes.inside.fetch_sub(1, SeqCst);
        team.barrier();
        assert_eq!(notes.inside.load(SeqCst), 0);
    };
    runtime.codelet::<(), ()>("meeting").cpu_spmd("meeting_spmd", 4, kernel).build()
}

#[test]
fn overlapping_teams_do_not_deadlock_and_meet_in_one_order() {
    for origin in Origin::ALL {
        let runtime = start_from(origin, CHOICE);
        let order: Arc<Vec<Mutex<Vec<usize>>>> = Arc::new((0..4).map(|_| Mutex::default()).collect());
        let note = Arc::clone(&order);
        let parallel = runtime
            .codelet::<(), usize>("parallel")
            .cpu_spmd("parallel_spmd", 4, move |context, ()| {
                note[context.worker.0 as usize].lock().expect("nobody panics").push(*context.params);
                context.team().barrier();
            })
            .build();
        let done = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&done);
        let single = runtime
            .codelet::<(), ()>("single")
            .cpu("single", move |_, ()| {
                count.fetch_add(1, SeqCst);
            })
            .build();
        thread::scope(|scope| {
            for submitter in 0..4 {
                let (runtime, parallel, single) = (&runtime, &parallel, &single);
                scope.spawn(move || {
                    for round in 0..100 {
                        let number = submitter * 100 + round;
                        let task = runtime.task_with(parallel, number, ());
                        task.sched_data(1 + (number % 3) as u64).submit().expect("the task is sound");
                        runtime.task(single, ()).submit().expect("the task is sound");
                    }
                });
            }
        });
        runtime.wait_all().expect("every task runs");
        assert_eq!(done.load(SeqCst), 400);
        let order: Vec<Vec<usize>> = order.iter().map(|order| order.lock().expect("nobody panics").clone()).collect();
        assert_eq!(order.iter().map(Vec::len).sum::<usize>(), 134 * 4 + 133 * 2 + 133 * 2);
        // Tasks of all four are in the same order everywhere, also among those of a pair.
        for (a, b) in [(0, 1), (2, 3)] {
            assert_eq!(order[a], order[b], "workers {a} and {b}");
        }
        let of_all = |worker: usize| order[worker].iter().copied().filter(|number| number % 3 == 0).collect::<Vec<_>>();
        assert_eq!(of_all(0), of_all(2));
        assert_eq!(runtime.faults(), []);
    }
}

#[test]
fn parallel_and_single_tasks_share_every_kind_of_tree() {
    let trees = [
        r#"fifo { eager { each "worker" { worker }; each "combined-worker" { combined-worker } } }"#,
        r#"prio { eager { each "worker" { prio ntasks-threshold=2 { worker } }; each "combined-worker" { fifo ntasks-threshold=1 { combined-worker } } } }"#,
        r#"eager-prio { each "worker" { worker }; each "combined-worker" { combined-worker } }"#,
        r#"work-stealing { each "worker" { worker }; each "combined-worker" { combined-worker } }"#,
        r#"prio { random { each "worker" { worker }; each "combined-worker" { combined-worker } } }"#,
        r#"heft { each "worker" { best-implementation { worker } }; each "combined-worker" { best-implementation { combined-worker } } }"#,
        r#"heteroprio { each "worker" { fifo { worker } }; each "combined-worker" { fifo { combined-worker } } }"#,
        r#"fifo { eager { each "l2" { fifo { eager { each "worker" { worker }; each "combined-worker" { combined-worker } } } } } }"#,
    ];
    for (origin, tree) in Origin::ALL.into_iter().flat_map(|origin| trees.map(|tree| (origin, tree))) {
        let runtime = start_from(origin, tree);
        let (together, alone) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
        let count = Arc::clone(&together);
        let next = {
            let alone = Arc::clone(&alone);
            runtime
                .codelet::<(), ()>("alone")
                .cpu("alone", move |context, ()| {
                    assert_eq!(context.team().size(), 1);
                    alone.fetch_add(1, SeqCst);
                })
                .estimate(Arch::CPU, Duration::from_micros(10))
                .build()
        };
        let single = next.clone();
        let parallel = runtime
            .codelet::<(Write<Vec<u8>>,), ()>("together")
            .cpu_spmd("together_spmd", 4, move |context, (part,)| {
                part.fill(1);
                context.team().barrier();
                if context.team().rank() == 0 {
                    count.fetch_add(1, SeqCst);
                    context.submitter().task(&next, ()).submit().expect("the task is sound");
                }
            })
            .estimate(Arch::CPU, Duration::from_micros(40))
            .estimate_parallel(Arch::CPU, 2, Duration::from_micros(21))
            .estimate_parallel(Arch::CPU, 4, Duration::from_micros(12))
            .build();
        let data: Vec<_> = (0..5).map(|_| runtime.register(vec![0_u8; 64])).collect();
        for number in 0..300 {
            let handle = &data[number % data.len()];
            runtime.task(&parallel, (handle,)).priority(number as i32 % 3).submit().expect("the task is sound");
            runtime.task(&single, ()).submit().expect("the task is sound");
        }
        runtime.wait_all().unwrap_or_else(|end| panic!("{tree}: {end}"));
        assert_eq!((together.load(SeqCst), alone.load(SeqCst)), (300, 600), "{tree}");
        assert_eq!(runtime.faults(), [], "{tree}");
        assert!(runtime.survey().iter().all(|node| node.tasks == 0), "{tree}");
    }
}

#[test]
fn a_member_that_fails_fails_the_task_and_nobody_else_hangs() {
    for origin in Origin::ALL {
        let runtime = start_from(origin, CHOICE);
        let data = runtime.register(vec![0_u8; 8]);
        let fails = runtime
            .codelet::<(ReadWrite<Vec<u8>>,), ()>("fails")
            .cpu_spmd("fails_spmd", 4, |context, _| {
                if context.team().rank() == 2 {
                    panic!("member 2 is out");
                }
                context.team().barrier();
                unreachable!("the barrier never opens");
            })
            .build();
        let task = runtime.task(&fails, (&data,)).sched_data(1).submit().expect("the task is sound");
        let depends = runtime.task(&fails, (&data,)).sched_data(2).submit().expect("the task is sound");
        let Ok(Outcome::Failed(failure)) = runtime.wait(task) else { panic!("the task fails") };
        assert_eq!((&*failure.message, &*failure.implementation, failure.worker), ("member 2 is out", "fails_spmd", 4));
        assert!(matches!(runtime.wait(depends), Ok(Outcome::Cancelled(_))), "its input is bad");
        let leaves = runtime
            .codelet::<(), ()>("leaves")
            .cpu_spmd("leaves_spmd", 4, |context, ()| {
                if context.team().rank() != 1 {
                    context.team().barrier();
                }
            })
            .build();
        let task = runtime.task(&leaves, ()).sched_data(1).submit().expect("the task is sound");
        let Ok(Outcome::Failed(failure)) = runtime.wait(task) else { panic!("the task fails") };
        assert_eq!(failure.message, "a member of the team returned while others waited for it at a barrier");
        let forks = runtime
            .codelet::<(), ()>("forks")
            .cpu_fork("forks", 4, |context, ()| {
                context.team().run(|member| {
                    assert!(member.rank() != 3, "member 3 is out");
                    member.barrier();
                });
            })
            .build();
        let task = runtime.task(&forks, ()).sched_data(1).submit().expect("the task is sound");
        let Ok(Outcome::Failed(failure)) = runtime.wait(task) else { panic!("the task fails") };
        assert_eq!(failure.message, "member 3 is out");
        let Err(RunError::Failed { failed, cancelled }) = runtime.wait_all() else { panic!("tasks failed") };
        assert_eq!((failed.len(), cancelled), (3, 1));
        // All workers are there again.
        let notes = Arc::new(Notes::default());
        let meeting = meeting(&runtime, &notes);
        runtime.task(&meeting, ()).sched_data(1).submit().expect("the task is sound");
        runtime.wait_all().expect("it runs");
        assert_eq!(notes.most.load(SeqCst), 4);
    }
}

#[test]
fn a_team_is_never_larger_than_its_task_allows() {
    let runtime = start(CHOICE);
    let pair = runtime.codelet::<(), ()>("pair").cpu_fork("pair", 2, |context, ()| {
        assert!(context.team().size() <= 2);
    });
    let pair = pair.build();
    // The first combined worker has four members: the host finds another place.
    let task = runtime.task(&pair, ()).sched_data(1).submit().expect("the task is sound");
    assert_eq!(runtime.wait(task).expect("it ends"), Outcome::Done);
}

#[test]
fn a_team_waits_for_its_last_member_without_a_stall() {
    let runtime = four(CHOICE).quiet_period(Duration::from_millis(100)).build().expect("the runtime starts");
    let held = Hold::new(&runtime).worker();
    let notes = Arc::new(Notes::default());
    let meeting = meeting(&runtime, &notes);
    let task = runtime.task(&meeting, ()).sched_data(1).submit().expect("the task is sound");
    thread::scope(|scope| {
        let waiter = scope.spawn(|| runtime.wait(task));
        // Three are there, and the fourth is busy.
        stock::let_quiet_periods_pass(&runtime, 3);
        assert_eq!(notes.most.load(SeqCst), 0);
        assert!(!waiter.is_finished(), "that is no stall");
        drop(held);
    });
    // On a machine that is busy otherwise, the team may have taken longer to begin than the run may be quiet.
    let mut waits = runtime.wait(task);
    while matches!(waits, Err(RunError::Stalled(_))) {
        waits = runtime.wait(task);
    }
    assert_eq!(waits.expect("it ends"), Outcome::Done);
}

#[test]
fn the_books_tell_when_workers_should_be_free() {
    let runtime = start(
        r#"mct { each "worker" { best-implementation { worker } }; each "combined-worker" { best-implementation { combined-worker } } }"#,
    );
    let hold = Hold::lasting(&runtime, Duration::from_secs(1000));
    let held = [(); 4].map(|()| hold.worker());
    let begin = runtime.expectations();
    let length = |of: &sched_host::runtime::WorkerExpectation| of.length.as_secs();
    assert!(begin.iter().all(|of| length(of) == 1000 && of.end == of.start + of.length), "{begin:?}");
    // 100 s for two rather than 300 s for one, or 150 s for four.
    let task = runtime
        .codelet::<(), ()>("task")
        .cpu_fork("task", 4, |_, ()| {})
        .estimate(Arch::CPU, Duration::from_secs(300))
        .estimate_parallel(Arch::CPU, 2, Duration::from_secs(100))
        .estimate_parallel(Arch::CPU, 4, Duration::from_secs(150))
        .build();
    let expected = |tasks: [u64; 4]| {
        runtime.task(&task, ()).submit().expect("the task is sound");
        assert_eq!(runtime.expectations().iter().map(length).collect::<Vec<_>>(), tasks);
    };
    let first = runtime.expectations();
    // Which pair goes first depends on which was first to begin; both are used, one after the other.
    runtime.task(&task, ()).submit().expect("the task is sound");
    let after: Vec<u64> = runtime.expectations().iter().map(length).collect();
    assert!(after == [1100, 1100, 1000, 1000] || after == [1000, 1000, 1100, 1100], "{first:?} {after:?}");
    expected([1100; 4]);
    drop(held);
    runtime.wait_all().expect("every task runs");
    assert!(runtime.expectations().iter().all(|of| of.length.is_zero()));
}

#[test]
fn every_member_of_a_team_submits_and_waits_as_its_task_does() {
    let runtime = four(CHOICE).bound_tasks(1, WhenFull::Refuse).build().expect("the runtime starts");
    let runtime = Arc::new(runtime);
    let nothing = runtime.codelet::<(), ()>("nothing").cpu("nothing", |_, ()| {}).build();
    let (inner, seen) = (Arc::downgrade(&runtime), Arc::new(Mutex::new(Vec::new())));
    let note = Arc::clone(&seen);
    let submit = move |context: &Context<'_>, ()| {
        let runtime = inner.upgrade().expect("it is there");
        let is_taken = runtime.task(&nothing, ()).submit().is_ok();
        // What waits would wait for its own task.
        let is_refused = catch_unwind(AssertUnwindSafe(|| runtime.read(&runtime.register(0)).is_ok())).is_err();
        note.lock().expect("nobody panics").push((context.team().rank(), is_taken, is_refused));
    };
    let submit = runtime.codelet::<(), ()>("submit").cpu_spmd("submit_spmd", 4, submit).build();
    runtime.task(&submit, ()).sched_data(1).submit().expect("there is room");
    runtime.wait_all().expect("every task runs");
    let mut seen = std::mem::take(&mut *seen.lock().expect("nobody panics"));
    seen.sort_unstable();
    assert_eq!(seen, [0, 1, 2, 3].map(|rank| (rank, true, true)));
}

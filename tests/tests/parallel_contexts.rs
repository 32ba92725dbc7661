//! Parallel tasks in several contexts, and while their policies and workers change: each is executed once, by all of
//! its team, and no worker waits for ever.

use sched_core::Arch;
use sched_host::context::SchedContext;
use sched_host::runtime::{Codelet, Runtime};
use sched_host::topology::Topology;
use sched_tests::conformance::Origin;
use sched_tests::meanwhile::submit_meanwhile;
use sched_tests::stock::{self, policy};
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Barrier, Mutex};
use std::thread;
use std::time::Duration;

/// One queue for all workers and teams.
const TEAMS: &str = r#"fifo { eager { each "worker" { worker }; each "combined-worker" { combined-worker } } }"#;

/// Four workers, combined in all, 0 and 1, 2 and 3. However busy the machine is, workers get to run in time.
fn start(origin: Origin) -> Runtime {
    let machine = Topology::from_synthetic("l2:2 core:2 pu:1").expect("the description is sound");
    let builder = stock::builder(TEAMS, 4, Vec::new()).topology(machine).registry(origin.registry());
    builder.quiet_period(Duration::from_secs(60)).build().expect("the runtime starts")
}

fn context(runtime: &Runtime, name: &str, workers: impl IntoIterator<Item = u32>) -> SchedContext {
    runtime.context(name).policy_value(policy(TEAMS)).workers(workers).build().expect("the policy fits")
}

/// How often each task began and was ended by all of its team.
#[derive(Default)]
struct Count {
    began: AtomicUsize,
    members: AtomicUsize,
    ended: AtomicUsize,
}

/// A codelet of each kind, whose tasks are numbered.
struct Counted {
    counts: Arc<Vec<Count>>,
    codelets: [Codelet<(), usize>; 3],
}

impl Counted {
    fn new(runtime: &Runtime, tasks: usize) -> Counted {
        let counts: Arc<Vec<Count>> = Arc::new((0..tasks).map(|_| Count::default()).collect());
        let micros = Duration::from_micros;
        let (of_spmd, of_fork, of_one) = (Arc::clone(&counts), Arc::clone(&counts), Arc::clone(&counts));
        let spmd = runtime
            .codelet::<(), usize>("spmd")
            .cpu_spmd("spmd", 4, move |call, ()| {
                let (count, team) = (&of_spmd[*call.params], call.team());
                count.members.fetch_add(1, SeqCst);
                team.barrier();
                assert_eq!(count.members.load(SeqCst), team.size(), "all are there");
                if team.rank() == 0 {
                    count.began.fetch_add(1, SeqCst);
                    count.ended.fetch_add(1, SeqCst);
                }
            })
            .estimate(Arch::CPU, micros(40))
            .estimate_parallel(Arch::CPU, 2, micros(21))
            .estimate_parallel(Arch::CPU, 4, micros(12))
            .build();
        let fork = runtime
            .codelet::<(), usize>("fork")
            .cpu_fork("fork", 4, move |call, ()| {
                let (count, team) = (&of_fork[*call.params], call.team());
                count.began.fetch_add(1, SeqCst);
                team.run(|member| {
                    count.members.fetch_add(1, SeqCst);
                    member.barrier();
                });
                assert_eq!(count.members.load(SeqCst), team.size(), "all were there");
                count.ended.fetch_add(1, SeqCst);
            })
            .estimate(Arch::CPU, micros(40))
            .estimate_parallel(Arch::CPU, 2, micros(21))
            .build();
        let one = runtime
            .codelet::<(), usize>("one")
            .cpu("one", move |call, ()| {
                let count = &of_one[*call.params];
                for count in [&count.began, &count.members, &count.ended] {
                    count.fetch_add(1, SeqCst);
                }
            })
            .build();
        Counted { counts, codelets: [spmd, fork, one] }
    }

    fn submit(&self, runtime: &Runtime, context: &SchedContext, task: usize) {
        let codelet = &self.codelets[task % self.codelets.len()];
        runtime.task_with(codelet, task, ()).context(context).submit().expect("the task is sound");
    }

    fn assert_once(&self, runtime: &Runtime) {
        for (number, count) in self.counts.iter().enumerate() {
            let (began, ended) = (count.began.load(SeqCst), count.ended.load(SeqCst));
            assert_eq!((began, ended), (1, 1), "task {number}");
            assert!((1..=4).contains(&count.members.load(SeqCst)), "task {number}");
        }
        assert_eq!(runtime.faults(), []);
        assert!(runtime.survey().iter().all(|node| node.tasks == 0));
    }
}

/// Submits all tasks to the contexts in turn from two threads, while `change` is called again and again. Each task
/// runs once.
fn run_while(tasks: usize, contexts: &[SchedContext], runtime: &Runtime, change: impl FnMut(usize) + Send) {
    let counted = Counted::new(runtime, tasks);
    let submitter = |part: usize| {
        let counted = &counted;
        move |task: usize| counted.submit(runtime, &contexts[task % contexts.len()], 2 * task + part)
    };
    submit_meanwhile(runtime, (2, tasks / 2), submitter, change).expect("every task runs");
    counted.assert_once(runtime);
}

#[test]
fn contexts_beside_each_other_have_teams_of_their_own() {
    for origin in Origin::ALL {
        let runtime = start(origin);
        let contexts = [context(&runtime, "left", [0, 1]), context(&runtime, "right", [2, 3])];
        let counted = Counted::new(&runtime, 300);
        (0..300).for_each(|task| counted.submit(&runtime, &contexts[task % 2], task));
        runtime.wait_all().expect("every task runs");
        counted.assert_once(&runtime);
        assert!(
            counted.counts.iter().all(|count| count.members.load(SeqCst) <= 2),
            "a team has workers of its context only"
        );
        assert_eq!(contexts.map(|context| context.stats().finished), [150, 150]);
    }
}

#[test]
fn teams_of_contexts_that_share_workers_do_not_wait_for_each_other() {
    for origin in Origin::ALL {
        let runtime = start(origin);
        let contexts =
            [context(&runtime, "all", 0..4), context(&runtime, "most", 0..4), context(&runtime, "two", [1, 2])];
        let counted = Counted::new(&runtime, 600);
        thread::scope(|scope| {
            for part in 0..3 {
                let (counted, contexts, runtime) = (&counted, &contexts, &runtime);
                scope.spawn(move || {
                    (part..600).step_by(3).for_each(|task| counted.submit(runtime, &contexts[task / 3 % 3], task))
                });
            }
        });
        runtime.wait_all().expect("every task runs");
        counted.assert_once(&runtime);
    }
}

#[test]
fn parallel_tasks_run_once_while_the_policy_changes() {
    for origin in Origin::ALL {
        let runtime = start(origin);
        let context = runtime.default_context();
        run_while(600, std::slice::from_ref(&context), &runtime, |change| {
            let policy = if change % 2 == 0 { "tree-pheft" } else { "tree-eager" };
            context.swap_policy(policy).expect("it fits");
        });
    }
}

#[test]
fn parallel_tasks_run_once_while_members_of_teams_come_and_go() {
    for origin in Origin::ALL {
        let runtime = start(origin);
        let contexts = [context(&runtime, "a", 0..4), context(&runtime, "b", 0..4)];
        run_while(600, &contexts, &runtime, |change| {
            let (context, worker) = (&contexts[change / 5 % 2], change as u32 % 4);
            context.remove_workers([worker, (worker + 1) % 4]).expect("there are these workers");
            context.add_workers([(worker + 1) % 4, (worker + 2) % 4]).expect("there are these workers");
        });
    }
}

#[test]
fn parallel_tasks_run_once_while_policies_and_members_change_at_once() {
    for origin in Origin::ALL {
        let runtime = start(origin);
        let contexts = [context(&runtime, "a", 0..4), context(&runtime, "b", 0..4)];
        run_while(400, &contexts, &runtime, |change| {
            let (context, worker) = (&contexts[change % 2], change as u32 / 8 % 4);
            match change / 2 % 4 {
                0 => context.swap_policy("tree-pheft").expect("it fits"),
                1 => context.remove_workers([worker]).expect("there is this worker"),
                2 => context.swap_policy("tree-eager").expect("it fits"),
                _ => context.add_workers([worker]).expect("there is this worker"),
            }
        });
    }
}

#[test]
fn a_worker_does_its_own_tasks_and_those_of_its_teams_in_turn() {
    let runtime = start(Origin::BuiltIn);
    // Parallel tasks for the team of all, and tasks for worker 3 alone.
    let only_teams = r#"user-choice { fifo { eager { each "worker" { worker } } }
        each "combined-worker" { fifo { combined-worker } } }"#;
    let (together, alone) = (runtime.context("together"), runtime.context("alone"));
    let together = together.policy_value(policy(only_teams)).build().expect("the policy fits");
    let alone = alone.policy("tree-eager").workers([3]).build().expect("the policy fits");
    let (order, gate) = (Arc::new(Mutex::new(Vec::new())), Arc::new(Barrier::new(2)));
    let note = |what: char| {
        let order = Arc::clone(&order);
        move |worker: u32| {
            if worker == 3 {
                order.lock().expect("nobody panics").push(what);
            }
        }
    };
    let (note_team, note_alone) = (note('T'), note('A'));
    let team = runtime.codelet::<(), ()>("team").cpu_spmd("team", 4, move |call, ()| note_team(call.worker.0)).build();
    let one = runtime.codelet::<(), ()>("one").cpu("one", move |call, ()| note_alone(call.worker.0)).build();
    let held = Arc::clone(&gate);
    let hold = runtime.codelet::<(), ()>("hold").cpu("hold", move |_, ()| {
        held.wait();
        held.wait();
    });
    // Worker 3 is busy until all is submitted, and no team is complete without it.
    runtime.task(&hold.build(), ()).context(&alone).submit().expect("the task is sound");
    gate.wait();
    for _ in 0..8 {
        runtime.task(&team, ()).context(&together).sched_data(1).submit().expect("the task is sound");
        runtime.task(&one, ()).context(&alone).submit().expect("the task is sound");
    }
    gate.wait();
    runtime.wait_all().expect("every task runs");
    let order: String = order.lock().expect("nobody panics").iter().collect();
    // Who calls the team for its next task may come late: then the worker does one more of its own.
    let count = |what: char, of: &str| of.chars().filter(|done| *done == what).count();
    assert_eq!((count('T', &order), count('A', &order)), (8, 8), "{order}");
    for (end, _) in order.char_indices() {
        let (teams, own) = (count('T', &order[..=end]), count('A', &order[..=end]));
        assert!(teams <= own + 1, "tasks of the worker's own wait behind those of its teams: {order}");
    }
}

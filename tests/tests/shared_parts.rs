//! Parts of policies that contexts share: one component with a node in each context, which knows all workers and those
//! of the context; and every task runs once through whatever happens to one of the contexts.

use sched_core::*;
use sched_host::context::{ContextError, SchedContext};
use sched_host::graph::TaskGraph;
use sched_host::graph::generate::{cholesky, independent};
use sched_host::policy::FlatMachine;
use sched_host::runtime::{Runtime, Where};
use sched_host::sim::{Context as SimContext, Platform, Simulation, When};
use sched_host::trace::{Digest, EventLog};
use sched_host::tree::context::lay;
use sched_host::tree::{
    ContextFacts, FaultKind, Ledger, NodeState, Phase, Services, Slot, SlotId, SwapError, TaskEnd, Tree, WorkerFacts,
};
use sched_tests::awkward::{Hanging, hold_pushes};
use sched_tests::bad::Bad;
use sched_tests::chains::submit_chains;
use sched_tests::fake_services::FakeServices;
use sched_tests::hold::Hold;
use sched_tests::stock::{self, EAGER, policy};
use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::thread;
use std::time::Duration;

/// A queue that notes the workers that it knows in each context.
#[derive(Default)]
struct Scout {
    tasks: Mutex<VecDeque<Task>>,
    pushed: AtomicU64,
    seen: Mutex<BTreeSet<String>>,
}

impl Build for Scout {
    const INFO: Info =
        Info::new("scout", Family::FlowControl, "Looks around.").storage(Storage::Unbounded).pulled_only();

    fn build(_params: &Params) -> Result<Self, BuildError> {
        Ok(Scout::default())
    }
}

impl Component for Scout {
    fn push_task(&self, node: Node<'_>, task: Task) -> Push {
        let numbers = |workers: WorkerSet| workers.iter().map(|worker| worker.0).collect::<Vec<_>>();
        let (all, here) = (numbers(node.workers()), numbers(node.workers_in_context()));
        self.seen.lock().insert(format!("{}: {here:?} of {all:?}", node.context().unwrap_or_default()));
        self.pushed.fetch_add(1, Relaxed);
        self.tasks.lock().push_back(task);
        node.children_can_pull();
        Ok(())
    }

    fn pull_task(&self, node: Node<'_>, _to: Child) -> Option<Task> {
        let own = self.tasks.lock().pop_front();
        own.or_else(|| node.pull_from_parents())
    }

    fn drain(&self) -> Vec<Task> {
        self.tasks.lock().drain(..).collect()
    }

    fn describe(&self, report: &mut Report) {
        report.fact("tasks", self.tasks.lock().len());
        report.fact("pushed", self.pushed.load(Relaxed));
        self.seen.lock().iter().for_each(|seen| report.fact("seen", seen));
    }
}

/// Number of executions that a component has heard of which fails.
static HEARD: AtomicU64 = AtomicU64::new(0);

/// Passes tasks on, hears of their execution, and fails at the second one.
#[derive(Default)]
struct Faltering {
    pushed: AtomicU64,
}

impl Build for Faltering {
    const INFO: Info = Info::new("faltering", Family::SpecialPurpose, "Fails.").forwards_push().hears_tasks();

    fn build(_params: &Params) -> Result<Self, BuildError> {
        Ok(Faltering::default())
    }
}

impl Component for Faltering {
    fn push_task(&self, node: Node<'_>, task: Task) -> Push {
        assert_eq!(self.pushed.fetch_add(1, Relaxed), 0, "on purpose");
        node.push_to(Child(0), task)
    }

    fn task_started(&self, _node: Node<'_>, _task: &Execution) {
        HEARD.fetch_add(1, Relaxed);
    }

    fn task_ended(&self, _node: Node<'_>, _task: &Execution, _end: &ExecutionEnd) {
        HEARD.fetch_add(1, Relaxed);
    }
}

/// A tree above a part that contexts share.
fn over(part: &str) -> String {
    format!(r#"eager {{ use "common" }}; shared "common" between-contexts=#true {{ {part} }}"#)
}

const SCOUT: &str = r#"scout { eager { each "worker" { worker } } }"#;

/// Trees whose shared part is a queue for all, queues for each worker, a short one above which tasks wait, and one that
/// is shared by the branches of each tree as well.
const SHARING: [&str; 4] = [
    r#"eager { use "all" }; shared "all" between-contexts=#true { fifo { eager { each "worker" { worker } } } }"#,
    r#"fifo { random { each "worker" { use "own" } } }
       shared "own" each="worker" between-contexts=#true { fifo ntasks-threshold=2 { worker } }"#,
    r#"eager-prio { use "narrow" }
       shared "narrow" between-contexts=#true { prio ntasks-threshold=1 { eager { each "worker" { worker } } } }"#,
    r#"work-stealing { use "leaf" }
       shared "leaf" each="worker" between-contexts=#true { best-implementation { worker } }"#,
];

fn start(workers: usize) -> Runtime {
    let offers = vec![Offer::of::<Scout>(), Offer::of::<Bad>()];
    stock::builder(EAGER, workers, offers).quiet_period(Duration::from_secs(60)).build().expect("it starts")
}

fn context(runtime: &Runtime, name: &str, tree: &str, workers: impl IntoIterator<Item = u32>) -> SchedContext {
    runtime.context(name).policy_value(policy(tree)).workers(workers).build().expect("the policy fits")
}

/// What the shared component of a context says of itself.
fn facts(context: &SchedContext, component: &str, name: &str) -> Vec<String> {
    let of_it = |node: &NodeState| node.component == component;
    let node = context.survey().into_iter().find(of_it).expect("the context has it");
    node.facts.into_iter().filter(|(fact, _)| fact == name).map(|(_, value)| value).collect()
}

#[test]
fn workers_and_workers_in_context_differ_in_a_living_tree() {
    let runtime = start(4);
    let (a, b) = (context(&runtime, "a", &over(SCOUT), [0, 1]), context(&runtime, "b", &over(SCOUT), [1, 2]));
    let (in_a, in_b) = (a.with(|| submit_chains(&runtime, 100)), b.with(|| submit_chains(&runtime, 50)));
    runtime.wait_all().expect("every task runs");
    in_a.assert_once("a");
    in_b.assert_once("b");
    let seen = ["a: [0, 1] of [0, 1, 2, 3]", "b: [1, 2] of [0, 1, 2, 3]"];
    assert_eq!(facts(&a, "scout", "seen"), seen);
    assert_eq!(facts(&b, "scout", "pushed"), ["300"], "it is one component");
    // Another context leaves it alone, and a worker that joins is one of the context.
    a.add_workers([3]).expect("the policy fits");
    let more = a.with(|| submit_chains(&runtime, 10));
    runtime.wait_all().expect("every task runs");
    more.assert_once("a");
    assert_eq!(facts(&a, "scout", "pushed"), ["320"], "it lives on");
    let seen = [&["a: [0, 1, 3] of [0, 1, 2, 3]"], &seen[..]].concat();
    assert_eq!(facts(&b, "scout", "seen"), seen);
}

#[test]
fn tasks_stay_in_a_shared_part_while_a_context_has_it_and_leave_with_the_last() {
    let runtime = start(2);
    let (a, b) = (context(&runtime, "a", &over(SCOUT), [0, 1]), context(&runtime, "b", &over(SCOUT), [0, 1]));
    let hold = Hold::new(&runtime);
    let held = [hold.worker_of(&a), hold.worker_of(&b)];
    let runs = [a.with(|| submit_chains(&runtime, 7)), b.with(|| submit_chains(&runtime, 7))];
    let waiting = |context: &SchedContext| facts(context, "scout", "tasks");
    assert_eq!((waiting(&a), waiting(&b)), (vec!["14".to_owned()], vec!["14".to_owned()]));
    a.swap_policy_value(policy(EAGER)).expect("the policy fits");
    assert_eq!(waiting(&b), ["14"], "they are in reach of the workers of the other context");
    a.swap_policy_value(policy(&over(SCOUT))).expect("the policy fits");
    assert_eq!(waiting(&a), ["14"], "it is the same part again");
    b.swap_policy_value(policy(EAGER)).expect("the policy fits");
    a.remove_workers([1]).expect("the policy fits");
    assert_eq!(waiting(&a), ["14"]);
    a.swap_policy_value(policy(EAGER)).expect("the policy fits");
    let queued: u64 = a.survey().iter().map(|node| node.tasks).sum();
    assert_eq!(queued, 14, "the last context that had the part has its tasks");
    drop(held);
    runtime.wait_all().expect("every task runs");
    runs.iter().for_each(|runs| runs.assert_once("held"));
}

#[test]
fn every_task_runs_once_whatever_happens_to_the_contexts() {
    for tree in SHARING {
        let runtime = start(4);
        let (a, b) = (context(&runtime, "a", tree, [0, 1]), context(&runtime, "b", tree, [1, 2, 3]));
        let done = AtomicBool::new(false);
        thread::scope(|scope| {
            let submitting = [&a, &b].map(|context| {
                let runtime = &runtime;
                scope.spawn(move || {
                    for _ in 0..20 {
                        let runs = context.with(|| submit_chains(runtime, 60));
                        context.wait_all().expect("every task runs");
                        runs.assert_once(tree);
                    }
                })
            });
            let changing = scope.spawn(|| {
                let mut round = 0;
                while !done.load(Relaxed) {
                    // A change that would leave tasks without a worker in reach may be refused.
                    let change = match round % 8 {
                        0 => a.add_workers([2]),
                        1 => a.swap_policy_value(policy(EAGER)),
                        2 => b.remove_workers([1, 2]),
                        3 => a.swap_policy_value(policy(tree)),
                        4 => a.remove_workers([2]),
                        5 => b.rebuild(),
                        6 => b.add_workers([1, 2]),
                        _ => {
                            let brief = context(&runtime, "brief", tree, [0, 3]);
                            let _runs = brief.with(|| submit_chains(&runtime, 5));
                            brief.delete()
                        }
                    };
                    assert!(matches!(change, Ok(()) | Err(ContextError::Stranded { .. })), "{tree}: {change:?}");
                    round += 1;
                }
            });
            for thread in submitting {
                thread.join().expect("every task runs once");
            }
            done.store(true, Relaxed);
            changing.join().expect("changes are made, or refused");
        });
        runtime.wait_all().expect("every task runs");
        assert!(runtime.faults().is_empty(), "{tree}: {:?}", runtime.faults());
    }
}

#[test]
fn a_shared_component_that_fails_is_passed_by_in_all_contexts() {
    for what in ["panic in push", "panic in pull", "panic after storing"] {
        let runtime = start(3);
        let part = format!(r#"bad what="{what}" after=20 stores=#true {{ eager {{ each "worker" {{ worker }} }} }}"#);
        // Idle workers pull too, and the part must not fail before both contexts have it.
        let hold = Hold::new(&runtime);
        let held = [hold.worker(), hold.worker(), hold.worker()];
        let (a, b) = (context(&runtime, "a", &over(&part), [0, 1]), context(&runtime, "b", &over(&part), [1, 2]));
        drop(held);
        let runs = [a.with(|| submit_chains(&runtime, 100)), b.with(|| submit_chains(&runtime, 100))];
        runtime.wait_all().expect("every task runs");
        runs.iter().for_each(|runs| runs.assert_once(what));
        let faults = runtime.faults();
        let panics = faults.iter().filter(|fault| matches!(fault.kind, FaultKind::Panicked { .. }));
        assert!(panics.count() >= 1 && faults.iter().all(|fault| fault.component == "bad"), "{faults:?}");
        // Each passes it by, at the latest when it has something to do again.
        let runs = [a.with(|| submit_chains(&runtime, 20)), b.with(|| submit_chains(&runtime, 20))];
        runtime.wait_all().expect("every task runs");
        runs.iter().for_each(|runs| runs.assert_once(what));
        for context in [&a, &b] {
            let failed: Vec<_> = context.survey().into_iter().filter(|node| node.quarantined).collect();
            assert_eq!(failed.len(), 1, "{what} in {}", context.name());
        }
    }
}

#[test]
fn parts_of_one_name_that_differ_are_refused() {
    let runtime = start(2);
    let a = context(&runtime, "a", &over(r#"fifo sorted=#false { eager { each "worker" { worker } } }"#), [0]);
    let other = over(r#"fifo { eager { each "worker" { worker } } }"#);
    let error = runtime.context("b").policy_value(policy(&other)).workers([1]).build().expect_err("it differs");
    assert!(matches!(error, ContextError::SharedPart { .. }));
    let text = error.to_string();
    let there = r#"the shared part `common` is `shared "common" between-contexts=#true { fifo sorted=#false { eager {"#;
    assert!(text.contains(there), "{text}");
    assert!(
        text.contains("another context, and would be `shared \"common\" between-contexts=#true { fifo {"),
        "{text}"
    );
    assert_eq!(runtime.contexts().len(), 2);
    a.swap_policy_value(policy(&other)).expect("nobody else has it");
    context(&runtime, "b", &other, [1]);
}

#[test]
fn a_context_does_not_leave_tasks_behind_that_only_its_workers_can_execute() {
    let runtime = start(2);
    let (a, b) = (context(&runtime, "a", &over(SCOUT), [0]), context(&runtime, "b", &over(SCOUT), [1]));
    let hold = Hold::new(&runtime);
    // By number: a worker of either context may take a task of the other from the part that they share.
    let held = [hold.worker_at(&a, WorkerId(0)), hold.worker_at(&b, WorkerId(1))];
    let nothing = runtime.codelet::<(), ()>("nothing").cpu("nothing", |_, ()| {}).build();
    runtime.task(&nothing, ()).context(&a).only_on(Where::worker(0)).submit().expect("the task is sound");
    let error = a.swap_policy_value(policy(EAGER)).expect_err("the task would be out of reach");
    assert!(matches!(&error, ContextError::Stranded { tasks: 1, .. }), "{error}");
    assert_eq!(facts(&a, "scout", "tasks"), ["1"], "it goes on as it was");
    // The queue gives it to any worker that asks; the host keeps it in reach of those of `a`.
    drop(held);
    a.wait_all().expect("every task runs");
    a.swap_policy_value(policy(EAGER)).expect("nothing is left in the part");
}

/// Trees of one ledger, whose workers never run.
struct Trees {
    trees: Vec<Tree>,
    ledger: Arc<Ledger>,
    services: Arc<FakeServices>,
}

impl Trees {
    /// A tree of this policy for each of these sets of workers.
    fn new(tree: &str, workers: &[&[u32]]) -> Result<Trees, SwapError> {
        let (services, ledger) = (Arc::new(FakeServices::new(4)), Arc::new(Ledger::new()));
        ledger.grow();
        let made = workers.iter().map(|workers| {
            let workers: WorkerSet = workers.iter().copied().map(WorkerId).collect();
            let registry = stock::registry(vec![Offer::of::<Bad>(), Offer::of::<Hanging>(), Offer::of::<Faltering>()]);
            let parts = lay(&policy(tree), &FlatMachine { workers: 4 }, &workers, &registry, true);
            let parts = parts.expect("the policy fits");
            let services: Arc<dyn Services> = services.clone();
            let (ledger, facts) = (Arc::clone(&ledger), ContextFacts::default());
            Tree::assemble_in_context(parts, &[WorkerFacts::CPU; 4], services, ledger, 0, None, facts)
        });
        Ok(Trees { trees: made.collect::<Result<_, _>>()?, ledger, services })
    }

    fn push(&self, tree: usize, task: u32) -> &'static Slot {
        let slot = self.ledger.slot(SlotId(task));
        slot.set_phase(Phase::Waiting);
        slot.head().reset();
        slot.head().archs.store(1, Relaxed);
        self.trees[tree].push(slot, None, None);
        slot
    }
}

#[test]
fn room_in_a_shared_queue_is_announced_to_the_context_that_waits_for_it() {
    let trees = Trees::new(SHARING[2], &[&[0], &[1]]).expect("both define it equally");
    let (in_b, in_a) = (trees.push(1, 0), trees.push(0, 1));
    trees.services.sleeping.insert(0);
    let _ = trees.services.take_woken();
    // The task of the one fills the queue, so that of the other waits above.
    let pulled = trees.trees[1].pull(WorkerId(1)).expect("there is a task");
    assert_eq!(pulled.id(), in_b.id());
    assert_eq!(trees.services.take_woken(), [0], "there is room for its task");
    assert_eq!(trees.trees[0].pull(WorkerId(0)).map(Slot::id), Some(in_a.id()));
    // Nobody waits any longer.
    trees.services.sleeping.insert(0);
    trees.push(1, 2);
    let _ = trees.services.take_woken();
    assert!(trees.trees[1].pull(WorkerId(1)).is_some());
    assert_eq!(trees.services.take_woken(), [] as [u32; 0]);
}

#[test]
fn a_task_in_a_shared_part_is_in_reach_of_all_contexts_that_have_it() {
    let trees = Trees::new(SHARING[0], &[&[0], &[1]]).expect("both define it equally");
    let task = trees.push(0, 0);
    assert_eq!(trees.trees[1].pull(WorkerId(1)).map(Slot::id), Some(task.id()));
    assert!(trees.trees[0].pull(WorkerId(0)).is_none(), "and is there once");
}

#[test]
fn a_shared_component_that_failed_in_one_context_hears_of_no_task_of_another() {
    let tree = over(r#"faltering { fifo { eager { each "worker" { worker } } } }"#);
    let trees = Trees::new(&tree, &[&[0], &[1]]).expect("both define it equally");
    let [a, b] = &trees.trees[..] else { panic!("two trees") };
    let task = trees.push(1, 0);
    // The queue below is shared, too.
    assert_eq!(b.pull(WorkerId(1)).map(Slot::id), Some(task.id()));
    b.note_execution(task, WorkerId(1), WorkerId(1), None);
    assert_eq!(HEARD.load(Relaxed), 1);
    let other = trees.push(0, 1);
    assert!(a.survey().iter().any(|node| node.component == "faltering" && node.quarantined), "it fails there");
    let end = TaskEnd { length: Duration::ZERO, energy: None, failed: false };
    b.note_execution(task, WorkerId(1), WorkerId(1), Some(end));
    assert_eq!(HEARD.load(Relaxed), 1, "calls pass it by in both");
    assert!(b.survey().iter().any(|node| node.component == "faltering" && node.quarantined));
    let pulled = a.pull(WorkerId(0)).or_else(|| b.pull(WorkerId(1)));
    assert_eq!(pulled.map(Slot::id), Some(other.id()), "what it had is taken back");
}

#[test]
fn a_failure_that_another_context_cannot_see_to_at_once_is_seen_to_when_its_call_ends() {
    let tree = r#"hanging { eager { each "worker" { use "own" } } }
       shared "own" each="worker" between-contexts=#true { bad what="panic in pull" after=1 stores=#true { worker } }"#;
    let trees = Trees::new(tree, &[&[1], &[0, 1]]).expect("both define it equally");
    let [a, b] = &trees.trees[..] else { panic!("two trees") };
    let tasks = [0, 1, 2].map(|task| trees.push(0, task));
    assert_eq!(a.pull(WorkerId(1)).map(Slot::id), Some(tasks[0].id()));
    let held = hold_pushes();
    thread::scope(|scope| {
        // Goes to worker 0 alone, so that it does not meet the component that fails.
        let push = scope.spawn(|| trees.push(1, 3));
        held.wait_until_somebody_hangs();
        assert_eq!(a.pull(WorkerId(1)).map(Slot::id), Some(tasks[1].id()), "the component fails with it");
        assert!(b.pull(WorkerId(0)).is_none(), "it looks, and a call is inside its tree");
        let early = a.swap(Vec::new(), &|| ()).expect_err("a task of the part may be in that call");
        let said = "the shared part `own/worker 1/bad` failed, and another context has not left it yet";
        assert_eq!(early.to_string(), said);
        drop(held);
        push.join().expect("the push goes on");
    });
    assert_eq!(a.pull(WorkerId(1)).map(Slot::id), Some(tasks[2].id()), "it was taken back from the component");
}

#[test]
fn a_simulation_shares_parts_between_contexts_too() {
    for tree in SHARING {
        let graph = TaskGraph::side_by_side("two", &[&cholesky(5, 960), &cholesky(5, 960)]);
        let simulation = || {
            let platform = Platform::flat(4, Duration::from_millis(1));
            Simulation::new(graph.clone(), platform)
                .registry(stock::registry(Vec::new()))
                .context(SimContext::new("a").policy_value(policy(tree)).workers([0, 1]))
                .context(SimContext::new("b").policy_value(policy(tree)).workers([1, 2, 3]))
                .swap_policy_value("a", policy(EAGER), When::AfterTasks(10))
                .remove_workers("b", [2], When::AfterTasks(5))
                .swap_policy_value("a", policy(tree), When::AfterTasks(20))
        };
        let mut log = EventLog::default();
        let outcome = simulation().observe(&mut log).unwrap_or_else(|error| panic!("{tree}: {error}"));
        assert_eq!(outcome.contexts[1].tasks, 35);
        let mut digests = [Digest::default(), Digest::default()];
        for digest in &mut digests {
            simulation().observe(digest).expect("it runs to the end");
        }
        assert_eq!(digests[0].value(), digests[1].value(), "{tree}");
    }
    let graph = independent(3, Duration::from_millis(1));
    let error = Simulation::new(graph, Platform::flat(2, Duration::from_millis(1)))
        .registry(stock::registry(Vec::new()))
        .context(SimContext::new("a").policy_value(policy(&over(r#"fifo { eager { each "worker" { worker } } }"#))))
        .context(SimContext::new("b").policy_value(policy(&over(r#"prio { eager { each "worker" { worker } } }"#))))
        .run()
        .expect_err("the parts differ");
    let sources = std::iter::successors(Some(&error as &dyn std::error::Error), |error| error.source());
    let text: Vec<String> = sources.map(ToString::to_string).collect();
    assert!(text.concat().contains("shared part `common`"), "{text:?}");
}

//! Tasks of replays wait at home, outside of the tree, where the policy would keep them there: each runs once, after
//! those before it, whatever becomes of the worker that it waits for.

use proptest::prelude::*;
use sched_core::WorkerId;
use sched_host::runtime::{Codelet, Outcome, Recording, RunError, Runtime, TaskRef, WorkerStats};
use sched_tests::stock;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

const STEALING: &str = "work-stealing { each \"worker\" { worker } }";

/// How long a task waits for others that have to run meanwhile.
const PATIENCE: Duration = Duration::from_secs(60);

/// A task that is held up, where it says that it has begun, and what lets it go on.
type Held = (usize, Sender<WorkerId>, Receiver<()>);

/// What the tasks of a graph do.
struct Scene {
    /// Of each task, those that it waits for.
    after: Vec<Vec<usize>>,
    runs: Vec<AtomicUsize>,
    /// Whether a task ran before one that it waits for.
    is_wrong: AtomicBool,
    /// The tasks that are held up in the next replay: each says on which worker, and waits.
    held: Mutex<Vec<Held>>,
    /// The task that fails.
    fails: Option<usize>,
}

impl Scene {
    fn new(after: Vec<Vec<usize>>) -> Scene {
        let runs = after.iter().map(|_| AtomicUsize::new(0)).collect();
        Scene { after, runs, is_wrong: AtomicBool::new(false), held: Mutex::default(), fails: None }
    }

    /// Four columns, of which all but the first exchange values with their neighbours.
    fn columns(levels: usize) -> Scene {
        let before = |level: usize, column: usize| match (level, column) {
            (0, _) => Vec::new(),
            (_, 0) => vec![4 * (level - 1)],
            _ => {
                (1_usize..4).filter(|other| other.abs_diff(column) <= 1).map(|other| 4 * (level - 1) + other).collect()
            }
        };
        Scene::new((0..4 * levels).map(|task| before(task / 4, task % 4)).collect())
    }

    fn run(&self, task: usize, worker: WorkerId) {
        let held = {
            let mut held = self.held.lock().expect("nobody panics");
            held.iter().position(|(held, ..)| *held == task).map(|at| held.swap_remove(at))
        };
        if let Some((_, begins, goes_on)) = held {
            begins.send(worker).expect("the test listens");
            let _ = goes_on.recv_timeout(PATIENCE);
        }
        let run = self.runs[task].load(SeqCst);
        if self.after[task].iter().any(|other| self.runs[*other].load(SeqCst) != run + 1) {
            self.is_wrong.store(true, SeqCst);
        }
        assert!(self.fails != Some(task), "it fails");
        self.runs[task].fetch_add(1, SeqCst);
    }

    /// Holds a task of the next replay up. Returns where it says that it has begun, and what lets it go on.
    fn hold(&self, task: usize) -> (Receiver<WorkerId>, Sender<()>) {
        let ((begins, begun), (go_on, goes_on)) = (channel(), channel());
        self.held.lock().expect("nobody panics").push((task, begins, goes_on));
        (begun, go_on)
    }

    fn record(self: &Arc<Scene>, runtime: &Runtime, priority: i32) -> Recording {
        let scene = Arc::clone(self);
        let run = runtime.codelet::<(), usize>("run");
        let run = run.cpu("run", move |context, ()| scene.run(*context.params, context.worker)).build();
        let recording = runtime.record(|recorder| {
            let mut tasks: Vec<TaskRef> = Vec::new();
            for (task, after) in self.after.iter().enumerate() {
                let after: Vec<TaskRef> = after.iter().map(|other| tasks[*other]).collect();
                let task = recorder.task_with(&run, task, ()).priority(priority);
                tasks.push(task.after(&after).submit()?);
            }
            Ok::<(), sched_host::runtime::SubmitError>(())
        });
        recording.expect("the tasks are sound")
    }

    #[track_caller]
    fn assert_each_ran(&self, times: usize) {
        let runs: Vec<usize> = self.runs.iter().map(|runs| runs.load(SeqCst)).collect();
        assert!(runs.iter().all(|runs| *runs == times), "{times} times: {runs:?}");
        assert!(!self.is_wrong.load(SeqCst), "a task ran too early");
    }
}

fn at_home(runtime: &Runtime) -> u64 {
    runtime.stats().iter().map(|WorkerStats { at_home, .. }| at_home).sum()
}

fn finish(runtime: &Runtime, replay: TaskRef) -> Outcome {
    runtime.wait(replay).expect("every task runs")
}

/// Waits until all tasks but those of the first column have run. Returns whether they have.
fn others_run(scene: &Scene) -> bool {
    let began = std::time::Instant::now();
    let is_left = |(task, runs): (usize, &AtomicUsize)| !task.is_multiple_of(4) && runs.load(SeqCst) == 0;
    while scene.runs.iter().enumerate().any(is_left) {
        if began.elapsed() > PATIENCE {
            return false;
        }
        std::thread::yield_now();
    }
    true
}

#[test]
fn tasks_of_narrow_graphs_wait_at_home() {
    let runtime = stock::runtime(STEALING, 2);
    let scene = Arc::new(Scene::columns(100));
    let recording = scene.record(&runtime, 0);
    for _ in 0..20 {
        let replay = runtime.replay(&recording).expect("it does not run");
        assert_eq!(finish(&runtime, replay), Outcome::Done);
    }
    scene.assert_each_ran(20);
    assert!(at_home(&runtime) > 100, "a worker that is busy with one of its columns leaves the other");
}

#[test]
fn others_take_what_waits_at_home_with_a_busy_worker() {
    for workers in 2..=4 {
        let runtime = stock::runtime(STEALING, workers);
        let scene = Arc::new(Scene::columns(50));
        let recording = scene.record(&runtime, 0);
        let (begun, go_on) = scene.hold(4);
        let replay = runtime.replay(&recording).expect("it does not run");
        begun.recv().expect("it begins");
        assert!(others_run(&scene), "nobody takes what waits for a busy worker");
        drop(go_on);
        assert_eq!(finish(&runtime, replay), Outcome::Done);
        scene.assert_each_ran(1);
    }
}

#[test]
fn what_waits_at_home_is_run_when_its_worker_leaves_the_context() {
    let runtime = stock::runtime(STEALING, 2);
    let scene = Arc::new(Scene::columns(50));
    let recording = scene.record(&runtime, 0);
    for round in 1..=3 {
        let (begun, go_on) = scene.hold(4);
        let replay = runtime.replay(&recording).expect("it does not run");
        let worker = begun.recv().expect("it begins").0;
        runtime.default_context().remove_workers([worker]).expect("there is this worker");
        drop(go_on);
        assert_eq!(finish(&runtime, replay), Outcome::Done);
        scene.assert_each_ran(round);
        runtime.default_context().add_workers([worker]).expect("there is this worker");
    }
}

/// A replay of which two of four tasks wait at home, since the workers are held up in the other two. Returns what lets
/// these go on.
fn two_of_four_wait(runtime: &Runtime) -> (Recording, TaskRef, Arc<AtomicBool>) {
    let ((begins, begun), goes_on) = (channel(), Arc::new(AtomicBool::new(false)));
    let (begins, go_on) = (Mutex::new(begins), Arc::clone(&goes_on));
    let run = runtime.codelet::<(), bool>("run").cpu("run", move |context, ()| {
        if *context.params && !goes_on.load(SeqCst) {
            begins.lock().expect("nobody panics").send(()).expect("the test listens");
            while !goes_on.load(SeqCst) {
                std::thread::yield_now();
            }
        }
    });
    let run = run.build();
    let recording = runtime.record(|recorder| {
        let first =
            (0..4).map(|_| recorder.task_with(&run, false, ()).submit()).collect::<Result<Vec<TaskRef>, _>>()?;
        (0..4).try_for_each(|_| recorder.task_with(&run, true, ()).after(&first).submit().map(drop))
    });
    let recording = recording.expect("the tasks are sound");
    let replay = runtime.replay(&recording).expect("it does not run");
    (0..2).for_each(|_| begun.recv_timeout(PATIENCE).expect("both workers have one"));
    (recording, replay, go_on)
}

#[test]
fn what_waits_at_home_is_run_when_workers_come_to_a_context_that_has_lost_all() {
    let runtime = stock::runtime(STEALING, 2);
    let (_recording, replay, go_on) = two_of_four_wait(&runtime);
    let context = runtime.default_context();
    context.remove_workers([0, 1]).expect("all may leave");
    let sleeps = || runtime.stats().iter().map(|worker| worker.sleeps).collect::<Vec<u64>>();
    let (before, began) = (sleeps(), std::time::Instant::now());
    go_on.store(true, SeqCst);
    while sleeps().iter().zip(&before).any(|(now, before)| now == before) {
        assert!(began.elapsed() < PATIENCE, "a worker without a context sleeps");
        std::thread::yield_now();
    }
    context.add_workers([0, 1]).expect("there are these workers");
    assert_eq!(finish(&runtime, replay), Outcome::Done);
}

#[test]
fn the_report_of_a_stall_counts_what_waits_at_home() {
    let runtime = stock::builder(STEALING, 2, Vec::new()).quiet_period(Duration::from_millis(40));
    let runtime = runtime.build().expect("it starts");
    let (_recording, replay, go_on) = two_of_four_wait(&runtime);
    let context = runtime.default_context();
    context.remove_workers([0, 1]).expect("all may leave");
    go_on.store(true, SeqCst);
    let Err(RunError::Stalled(report)) = runtime.wait_all() else { panic!("nobody runs the rest") };
    assert_eq!((report.unfinished, report.at_home), (3, 2), "{report}");
    assert!(report.to_string().contains("2 at home with workers"), "{report}");
    context.add_workers([0, 1]).expect("there are these workers");
    assert_eq!(finish(&runtime, replay), Outcome::Done);
}

/// A replay in which each of two workers is held up, so that the tasks after those of the first column are not ready or
/// wait at home. Returns what lets both go on.
fn hold_both(runtime: &Runtime, scene: &Arc<Scene>, recording: &Recording) -> (TaskRef, [Sender<()>; 2]) {
    let held = [4, 7].map(|task| scene.hold(task));
    let replay = runtime.replay(recording).expect("it does not run");
    let go_on = held.map(|(begun, go_on)| {
        begun.recv_timeout(PATIENCE).expect("it begins");
        go_on
    });
    (replay, go_on)
}

#[test]
fn what_waits_at_home_takes_turns_with_the_tasks_of_a_context_that_comes() {
    let runtime = stock::runtime(STEALING, 2);
    let scene = Arc::new(Scene::columns(50));
    let recording = scene.record(&runtime, 0);
    let (replay, [first, other]) = hold_both(&runtime, &scene, &recording);
    let policy = stock::policy(STEALING);
    let second = runtime.context("second").policy_value(policy).workers([0, 1]).build().expect("it fits");
    // Each of its tasks submits another one, so that the worker that is not held up always has one.
    let goes_on = Arc::new(AtomicBool::new(true));
    let (is_on, next) = (Arc::clone(&goes_on), Arc::new(OnceLock::<Codelet<(), ()>>::new()));
    let again = Arc::clone(&next);
    let run = runtime.codelet::<(), ()>("other").cpu("other", move |call, ()| {
        if is_on.load(SeqCst) {
            let run = again.get().expect("it was set before the first one");
            call.submitter().task(run, ()).submit().expect("the task is sound");
        }
    });
    let run = next.get_or_init(|| run.build());
    (0..4).for_each(|_| _ = runtime.task(run, ()).context(&second).submit().expect("the task is sound"));
    drop(other);
    let have_run = others_run(&scene);
    goes_on.store(false, SeqCst);
    assert!(have_run, "what waits at home has its turn");
    drop(first);
    assert_eq!(finish(&runtime, replay), Outcome::Done);
    runtime.wait_all().expect("every task runs");
    scene.assert_each_ran(1);
    second.delete().expect("nothing is left");
    // Later replays leave tasks again.
    let so_far = at_home(&runtime);
    for _ in 0..20 {
        let replay = runtime.replay(&recording).expect("it does not run");
        assert_eq!(finish(&runtime, replay), Outcome::Done);
    }
    assert!(at_home(&runtime) > so_far);
}

#[test]
fn a_policy_with_one_queue_takes_over_in_the_middle_of_a_replay() {
    let runtime = stock::runtime(STEALING, 2);
    let scene = Arc::new(Scene::columns(50));
    let recording = scene.record(&runtime, 0);
    let (begun, go_on) = scene.hold(100);
    let replay = runtime.replay(&recording).expect("it does not run");
    begun.recv().expect("it begins");
    runtime.default_context().swap_policy_value(stock::policy(stock::EAGER)).expect("it fits");
    drop(go_on);
    assert_eq!(finish(&runtime, replay), Outcome::Done);
    scene.assert_each_ran(1);

    let so_far = at_home(&runtime);
    let replay = runtime.replay(&recording).expect("it does not run");
    assert_eq!(finish(&runtime, replay), Outcome::Done);
    scene.assert_each_ran(2);
    assert_eq!(at_home(&runtime), so_far, "with one queue, tasks wait nowhere else");
}

#[test]
fn what_waits_at_home_is_cancelled() {
    let runtime = stock::runtime(STEALING, 2);
    let scene = Arc::new(Scene::columns(200));
    let recording = scene.record(&runtime, 0);
    let (begun, go_on) = scene.hold(100);
    let replay = runtime.replay(&recording).expect("it does not run");
    begun.recv().expect("it begins");
    runtime.cancel_all();
    drop(go_on);
    assert!(matches!(finish(&runtime, replay), Outcome::Cancelled(_)));
    let runs: Vec<usize> = scene.runs.iter().map(|runs| runs.swap(0, SeqCst)).collect();
    assert!(runs.iter().all(|runs| *runs <= 1) && runs[104] == 0, "{runs:?}");

    let replay = runtime.replay(&recording).expect("it does not run");
    assert_eq!(finish(&runtime, replay), Outcome::Done);
    scene.assert_each_ran(1);
}

#[test]
fn what_waits_for_a_task_that_fails_is_cancelled_and_the_rest_runs() {
    let runtime = stock::runtime(STEALING, 2);
    let scene = Arc::new(Scene { fails: Some(40), ..Scene::columns(50) });
    let recording = scene.record(&runtime, 0);
    for round in 1..=3 {
        let replay = runtime.replay(&recording).expect("it does not run");
        assert!(matches!(finish(&runtime, replay), Outcome::Cancelled(_)));
        let ran =
            |task: usize| scene.runs[task].load(SeqCst) == if task.is_multiple_of(4) && task >= 40 { 0 } else { round };
        let others: Vec<usize> = (0..200).filter(|task| !ran(*task)).collect();
        assert!(others.is_empty(), "{others:?} after {round} replays");
    }
}

#[test]
fn tasks_with_priorities_wide_graphs_and_teams_do_not_wait_at_home() {
    let with_teams = "work-stealing { each \"worker\" { worker }; each \"combined-worker\" { combined-worker } }";
    let wide = || Scene::new((0..1000).map(|task: usize| task.checked_sub(200).into_iter().collect()).collect());
    let cases: [(&str, i32, Scene); 3] =
        [(STEALING, 1, Scene::columns(20)), (with_teams, 0, Scene::columns(20)), (STEALING, 0, wide())];
    for (tree, priority, scene) in cases {
        let (runtime, scene) = (stock::runtime(tree, 2), Arc::new(scene));
        let recording = scene.record(&runtime, priority);
        for _ in 0..3 {
            let replay = runtime.replay(&recording).expect("it does not run");
            assert_eq!(finish(&runtime, replay), Outcome::Done);
        }
        scene.assert_each_ran(3);
        assert_eq!(at_home(&runtime), 0, "{tree}, priority {priority}");
    }
}

fn graph() -> impl Strategy<Value = Vec<Vec<usize>>> {
    let before = prop::collection::btree_set(1_usize..12, 0..4);
    prop::collection::vec(before, 1..80).prop_map(|tasks| {
        let numbered = tasks.into_iter().enumerate();
        numbered.map(|(task, before)| before.into_iter().filter_map(|back| task.checked_sub(back)).collect()).collect()
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, ..ProptestConfig::default() })]

    /// Two graphs at once, by workers that come and go.
    #[test]
    fn replays_of_any_graphs_run_each_task_after_those_before_it(
        graphs in prop::array::uniform2(graph()),
        workers in 2_usize..=4,
        leaves in any::<bool>(),
    ) {
        let runtime = stock::runtime(STEALING, workers);
        let scenes = graphs.map(|graph| Arc::new(Scene::new(graph)));
        let recordings = [0, 1].map(|number: usize| scenes[number].record(&runtime, 0));
        for round in 1..=10 {
            let replays = recordings.each_ref().map(|recording| runtime.replay(recording).expect("it does not run"));
            if leaves && round % 2 == 0 {
                runtime.default_context().remove_workers([0]).expect("there is this worker");
                runtime.default_context().add_workers([0]).expect("there is this worker");
            }
            for (replay, scene) in replays.into_iter().zip(&scenes) {
                prop_assert_eq!(finish(&runtime, replay), Outcome::Done);
                scene.assert_each_ran(round);
            }
        }
    }
}

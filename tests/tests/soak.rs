//! Every task runs once, for as long as one has patience: while components panic, policies are swapped, workers join
//! and leave, plugins are rebuilt, and two contexts come to share a part and leave it.
//!
//! `SCHED_SOAK_TASKS=100000000 cargo test --release -p sched-tests --test soak -- --ignored --nocapture` runs at least
//! this many tasks, or stops after `SCHED_SOAK_SECONDS`. A small number runs always.

use sched_core::Offer;
use sched_host::context::SchedContext;
use sched_host::plugin::{RegistryBuilder, SearchPath};
use sched_host::runtime::{Codelet, Handle, ReadWrite, Runtime};
use sched_test_support::has_compiler;
use sched_tests::bad::Bad;
use sched_tests::in_c::folder_of;
use sched_tests::stock::{self, EAGER, SHAPES, policy};
use std::io::Write;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering::*};
use std::thread;
use std::time::{Duration, Instant};

/// Tasks between two looks at the counters.
const BATCH: usize = 1 << 13;

/// Changes of the context that there are at least.
const LEAST: u64 = 12;

/// Trees in which a component panics after some calls.
const PANICKING: [&str; 4] = [
    r#"fifo { bad what="panic in push" after=500 { eager { each "worker" { worker } } } }"#,
    r#"bad what="panic in pull" after=500 stores=#true { eager { each "worker" { worker } } }"#,
    r#"fifo { eager { each "worker" { bad what="panic in can_push" after=50 { fifo ntasks-threshold=2 { worker } } } } }"#,
    r#"fifo { bad what="panic in can_pull" after=50 { eager { each "worker" { worker } } } }"#,
];

/// The tree with the component of the plugin that is rebuilt.
const REBUILT: &str = r#"lifo-in-c { eager { each "worker" { worker } } }"#;

/// Trees with parts that contexts share. In the last one the part fails.
const SHARING: [&str; 4] = [
    r#"eager { use "all" }; shared "all" between-contexts=#true { fifo { eager { each "worker" { worker } } } }"#,
    r#"fifo { random { each "worker" { use "own" } } }
       shared "own" each="worker" between-contexts=#true { fifo ntasks-threshold=2 { worker } }"#,
    r#"eager-prio { use "narrow" }
       shared "narrow" between-contexts=#true { prio ntasks-threshold=1 { eager { each "worker" { worker } } } }"#,
    r#"fifo { eager { use "frail" } }
       shared "frail" between-contexts=#true {
           bad what="panic in pull" after=500 stores=#true { eager { each "worker" { worker } } }
       }"#,
];

/// What was done to the contexts meanwhile.
#[derive(Default)]
struct Done {
    rounds: AtomicU64,
    swaps: AtomicU64,
    resizes: AtomicU64,
    rescans: AtomicU64,
    taken_up: AtomicU64,
    shared: AtomicU64,
}

impl Done {
    fn is_enough(&self) -> bool {
        self.rounds.load(Acquire) >= LEAST && self.shared.load(Acquire) > 0
    }
}

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok().map(|text| text.parse().unwrap_or_else(|error| panic!("{name}={text}: {error}")))
}

/// Changes the first context until `stop` is set. `builds` are two builds of the plugin in `plugins`, if there is a C
/// compiler.
fn disturb(
    runtime: &Runtime,
    context: &SchedContext,
    plugins: &Path,
    builds: Option<[&Path; 2]>,
    (done, stop): (&Done, &AtomicBool),
) {
    let mut round = 0_usize;
    while !stop.load(Acquire) {
        let tree = match round % 4 {
            0 => PANICKING[round / 4 % PANICKING.len()],
            1 => SHAPES[round / 4 % SHAPES.len()],
            2 => SHARING[round / 4 % SHARING.len()],
            _ if builds.is_some() => REBUILT,
            _ => EAGER,
        };
        // A tree whose root may refuse is no valid policy.
        if context.swap_policy_value(policy(tree)).is_ok() {
            done.swaps.fetch_add(1, Relaxed);
        }
        let resized =
            if round.is_multiple_of(2) { context.remove_workers([2, 3]) } else { context.add_workers([2, 3]) };
        if resized.is_ok() {
            done.resizes.fetch_add(1, Relaxed);
        }
        if let Some(builds) = builds.filter(|_| round.is_multiple_of(5)) {
            let draft = plugins.join("draft");
            std::fs::copy(builds[round / 5 % 2], &draft).expect("a file can be written");
            std::fs::rename(&draft, plugins.join("lifo.so")).expect("a file can be renamed");
            done.taken_up.fetch_add(runtime.rescan().len() as u64, Relaxed);
            done.rescans.fetch_add(1, Relaxed);
        }
        round += 1;
        done.rounds.fetch_add(1, Release);
    }
}

/// Changes the second context until `stop` is set: it shares a part with the first one at times.
fn disturb_beside(context: &SchedContext, (done, stop): (&Done, &AtomicBool)) {
    let mut round = 0_usize;
    while !stop.load(Acquire) {
        let tree = if round % 3 == 2 { EAGER } else { SHARING[round % SHARING.len()] };
        // A part that the first context has failed to change, or defines otherwise, stays.
        if context.swap_policy_value(policy(tree)).is_ok() && tree != EAGER {
            done.shared.fetch_add(1, Relaxed);
        }
        let resized = if round.is_multiple_of(2) { context.remove_workers([1]) } else { context.add_workers([1]) };
        if resized.is_ok() {
            done.resizes.fetch_add(1, Relaxed);
        }
        round += 1;
    }
}

/// Tasks that count how often each ran: most are independent, one of eight is in a chain.
struct Work {
    alone: Codelet<(), usize>,
    chained: Codelet<(ReadWrite<u64>,), usize>,
    chains: Vec<Handle<u64>>,
    runs: Arc<Vec<AtomicU8>>,
}

impl Work {
    fn new(runtime: &Runtime) -> Work {
        let runs: Arc<Vec<AtomicU8>> = Arc::new((0..BATCH).map(|_| AtomicU8::new(0)).collect());
        let (first, second) = (Arc::clone(&runs), Arc::clone(&runs));
        let alone = runtime.codelet::<(), usize>("alone").cpu("alone", move |context, ()| {
            first[*context.params].fetch_add(1, Relaxed);
        });
        let chained =
            runtime.codelet::<(ReadWrite<u64>,), usize>("chained").cpu("chained", move |context, (steps,)| {
                *steps += 1;
                second[*context.params].fetch_add(1, Relaxed);
            });
        let chains = (0..16).map(|_| runtime.register(0_u64)).collect();
        Work { alone: alone.build(), chained: chained.build(), chains, runs }
    }

    fn run_batch(&self, runtime: &Runtime, contexts: [&SchedContext; 2]) {
        for task in 0..BATCH {
            let context = contexts[task / 64 % 2];
            let submitted = match task % 8 {
                0 => {
                    let chain = &self.chains[task / 8 % self.chains.len()];
                    runtime.task_with(&self.chained, task, (chain,)).context(context).submit()
                }
                _ => runtime.task_with(&self.alone, task, ()).context(context).submit(),
            };
            submitted.expect("the task is sound");
        }
        runtime.wait_all().unwrap_or_else(|end| panic!("{end}"));
        for (task, runs) in self.runs.iter().enumerate() {
            assert_eq!(runs.swap(0, Relaxed), 1, "task {task} runs once");
        }
    }
}

/// Runs at least this many tasks, or as many as come until the time is over. Gives the number.
fn soak(tasks: u64, limit: Duration) -> u64 {
    let built = has_compiler().then(|| {
        let source = "sched-core/examples/c/lifo.c";
        folder_of(&[("one", source, &["-O0"]), ("other", source, &["-O2"])])
    });
    let plugins = tempfile::tempdir().expect("there is room for a folder");
    let files = built.as_ref().map(|built| [built.path().join("one.so"), built.path().join("other.so")]);
    if let Some([one, _]) = &files {
        std::fs::copy(one, plugins.path().join("lifo.so")).expect("a file can be written");
    }
    let registry = RegistryBuilder::default().search_path(SearchPath::empty().with_folder(plugins.path()));
    let registry = registry.components("test", vec![Offer::of::<Bad>()]).load().expect("the components are sound");
    let runtime = stock::builder(EAGER, 4, Vec::new()).registry(Arc::new(registry)).build().expect("it starts");
    let context = runtime.context("soaked").policy_value(policy(EAGER)).workers([0, 1, 2, 3]).build().expect("it fits");
    let beside = runtime.context("beside").policy_value(policy(EAGER)).workers([0, 1]).build().expect("it fits");
    let (work, stop, done) = (Work::new(&runtime), AtomicBool::new(false), Done::default());
    let (began, mut count) = (Instant::now(), 0);
    let builds = files.as_ref().map(|files| files.each_ref().map(|file| &**file));
    thread::scope(|scope| {
        let disturber = scope.spawn(|| disturb(&runtime, &context, plugins.path(), builds, (&done, &stop)));
        let other = scope.spawn(|| disturb_beside(&beside, (&done, &stop)));
        while count < tasks && began.elapsed() < limit || !done.is_enough() {
            work.run_batch(&runtime, [&context, &beside]);
            count += BATCH as u64;
        }
        stop.store(true, Release);
        disturber.join().expect("no change panics");
        other.join().expect("no change panics");
    });
    let [swaps, resizes, rescans, taken, shared] =
        [done.swaps, done.resizes, done.rescans, done.taken_up, done.shared].map(|all| all.into_inner());
    let faults = runtime.faults().len();
    let _ = writeln!(
        std::io::stdout(),
        "{count} tasks once each in {:.0?}: {swaps} swaps, {resizes} resizes, {rescans} rescans that found {taken} new \
         builds, {shared} swaps to a shared part beside, {faults} faults on record",
        began.elapsed()
    );
    assert!(swaps > 0 && resizes > 0, "the context was changed meanwhile");
    count
}

#[test]
fn every_task_runs_once_whatever_happens() {
    assert!(soak(BATCH as u64, Duration::from_secs(3600)) >= BATCH as u64);
}

#[test]
#[ignore = "takes minutes: see above"]
fn every_task_runs_once_for_a_long_time() {
    let tasks = number("SCHED_SOAK_TASKS").unwrap_or(10_000_000);
    let limit = number("SCHED_SOAK_SECONDS").unwrap_or(3600);
    soak(tasks, Duration::from_secs(limit));
}

//! Schedulers that decide by expected lengths, with lengths that the runtime measures.

use sched_core::*;
use sched_host::model::{Fingerprint, Model, Models, Quantity, SizeInfo, Store, Variant};
use sched_host::policy::Source;
use sched_host::runtime::{Codelet, Read, ReadWrite, Runtime};
use sched_tests::stock::{EAGER, builder};
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// Sorted by what models know; each of the three slots runs its tasks on either worker.
const SORTED: &str = r#"fifo {
    perfmodel-select {
        perfmodel { mct { each "worker" { fifo { use "leaf" } } } }
        calibrator { eager-calibration { each "worker" { fifo { use "leaf" } } } }
        no-perfmodel { eager { each "worker" { fifo { use "leaf" } } } }
    }
}
shared "leaf" each="worker" { worker }"#;

fn models(directory: &Path) -> Arc<Models> {
    Arc::new(Models::with_store(Store::new(directory, Fingerprint::named("here"))))
}

fn runtime(models: Arc<Models>) -> Runtime {
    builder(SORTED, 2, Vec::new()).unchecked().models(models).build().expect("the runtime starts")
}

type Sum = Codelet<(Read<Vec<f64>>, ReadWrite<f64>), ()>;

fn sum(runtime: &Runtime) -> Sum {
    let codelet = runtime.codelet("sum").cpu("slow", |_, (values, sum): (&Vec<f64>, &mut f64)| {
        *sum += values.iter().sum::<f64>();
    });
    codelet.model(Model::history("sum")).build()
}

fn add_up(runtime: &Runtime, codelet: &Sum, times: usize) {
    let values = runtime.register_sized(vec![1.0; 100], 800);
    let result = runtime.register_sized(0.0, 8);
    for _ in 0..times {
        runtime.task(codelet, (&values, &result)).submit().expect("a good task");
    }
    runtime.wait_all().expect("it ends");
    assert_eq!(*runtime.read(&result).expect("it is there"), 100.0 * times as f64);
}

#[test]
fn tasks_run_before_their_model_is_calibrated_while_it_is_and_after() {
    let directory = tempfile::tempdir().expect("a directory");
    for run in 1..=3 {
        let models = models(directory.path());
        let runtime = runtime(Arc::clone(&models));
        add_up(&runtime, &sum(&runtime), 6);
        drop(runtime);
        let measured = models.find("sum").expect("it was declared").measurements();
        assert_eq!(measured.samples(), 6 * run, "each task of each run is one sample");
        let (key, measured) = measured.variants.first_key_value().expect("one variant");
        assert_eq!(*key, (Variant::of(Arch::CPU), Quantity::Time));
        let (footprint, entry) = measured.entries.first_key_value().expect("one size");
        assert_eq!((measured.entries.len(), entry.bytes), (1, 808));
        let size = SizeInfo { footprint: *footprint, bytes: entry.bytes, ..SizeInfo::default() };
        let estimate = models.estimate("sum", Arch::CPU, 1, 0, &size);
        // The models of this run may have more than what was stored before.
        assert_eq!(estimate.known().is_some(), run > 1, "{estimate:?}");
    }
}

#[test]
fn nothing_is_measured_of_codelets_without_a_model_nor_by_runtimes_without_models() {
    let models = Arc::new(Models::in_memory());
    let runtime = runtime(Arc::clone(&models));
    let plain = runtime.codelet("plain").cpu("plain", |_, ()| {}).build();
    let _: &Codelet<(), ()> = &plain;
    for _ in 0..5 {
        runtime.task(&plain, ()).submit().expect("a good task");
    }
    runtime.wait_all().expect("they end");
    assert!(models.find("plain").is_none());

    let without = builder(SORTED, 2, Vec::new()).unchecked().without_models().build().expect("the runtime starts");
    add_up(&without, &sum(&without), 12);
    assert!(without.models().is_none());
}

#[test]
fn a_panic_is_no_sample() {
    let models = Arc::new(Models::in_memory());
    let runtime = runtime(Arc::clone(&models));
    let bad = runtime
        .codelet::<(), bool>("bad")
        .cpu("bad", |context, ()| assert!(*context.params))
        .model(Model::history("bad"))
        .build();
    for good in [true, false, true] {
        runtime.task_with(&bad, good, ()).submit().expect("a task");
    }
    assert!(runtime.wait_all().is_err());
    assert_eq!(models.find("bad").expect("it was declared").measurements().samples(), 2);
}

#[test]
fn implementations_are_measured_apart() {
    let models = Arc::new(Models::in_memory());
    let tree = r#"fifo { perfmodel-select {
        perfmodel { mct { each "worker" { fifo { use "leaf" } } } }
        calibrator { eager-calibration { each "worker" { fifo { use "leaf" } } } }
        no-perfmodel { eager { each "worker" { fifo { use "leaf" } } } }
    } }
    shared "leaf" each="worker" { best-implementation { worker } }"#;
    let runtime = builder(tree, 1, Vec::new()).unchecked().models(Arc::clone(&models)).build().expect("it starts");
    measure_two_implementations(&runtime, &models);
}

#[test]
fn equal_workers_measure_without_a_calibrator_under_a_policy_that_needs_no_lengths_there() {
    let models = Arc::new(Models::in_memory());
    let plan = Source::find("tree-plan").and_then(|source| source.policy()).expect("it is shipped");
    let runtime = builder(EAGER, 2, Vec::new()).policy_value(plan).models(Arc::clone(&models)).build();
    measure_two_implementations(&runtime.expect("it starts"), &models);
}

/// Runs forty tasks one after the other, with two implementations.
fn measure_two_implementations(runtime: &Runtime, models: &Models) {
    let two: Codelet<(), ()> =
        runtime.codelet("two").cpu("one", |_, ()| {}).cpu("other", |_, ()| {}).model(Model::history("two")).build();
    for _ in 0..40 {
        runtime.task(&two, ()).submit().expect("a good task");
        runtime.wait_all().expect("it ends");
    }
    let measured = models.find("two").expect("it was declared").measurements();
    let samples: Vec<u64> = measured.variants.values().map(|variant| variant.samples()).collect();
    assert_eq!(samples.iter().sum::<u64>(), 40);
    assert!(samples.len() == 2 && samples.iter().all(|samples| *samples >= 10), "{samples:?}");
}

#[test]
fn parameters_of_a_multiple_regression_come_with_the_task() {
    let models = Arc::new(Models::in_memory());
    let runtime = runtime(Arc::clone(&models));
    let spin = runtime
        .codelet::<(), u32>("spin")
        .cpu("spin", |context, ()| {
            std::hint::black_box(
                (0..*context.params * 50).fold(0u64, |sum, n| std::hint::black_box(sum + u64::from(n))),
            );
        })
        .model(Model::multiple("spin", [[1].into()]))
        .model_params(|rounds| [f64::from(*rounds)])
        .build();
    for round in 0..60 {
        runtime.task_with(&spin, 10 + round % 20, ()).submit().expect("a good task");
    }
    runtime.wait_all().expect("they end");
    let measured = models.find("spin").expect("it was declared").measurements();
    let entries = &measured.variants.first_key_value().expect("one variant").1.entries;
    let mut params: Vec<f64> = entries.values().map(|entry| entry.params[0]).collect();
    params.sort_by(f64::total_cmp);
    assert_eq!(params, (10..30).map(f64::from).collect::<Vec<f64>>());
}

/// Records the expectations of passing tasks.
struct Witness;

static SEEN: Mutex<Vec<Estimate>> = Mutex::new(Vec::new());

impl Build for Witness {
    const INFO: Info = Info::new("witness", Family::SpecialPurpose, "Notes what is expected.");

    fn build(_params: &Params) -> Result<Self, BuildError> {
        Ok(Witness)
    }
}

impl Component for Witness {
    fn push_task(&self, node: Node<'_>, task: Task) -> Push {
        let worker = node.each_worker_in_context().next().expect("there is a worker");
        SEEN.lock().expect("no test panics in here").push(node.expected_length(worker, &task));
        node.push_to(Child(0), task)
    }
}

#[test]
fn what_the_application_says_counts_more_than_what_is_measured_and_that_more_than_nothing() {
    let models = Arc::new(Models::in_memory());
    let tree = r#"fifo { witness { eager { each "worker" { fifo { worker } } } } }"#;
    let builder = builder(tree, 1, vec![Offer::of::<Witness>()]).unchecked();
    let runtime = builder.models(Arc::clone(&models)).build().expect("the runtime starts");
    let seven = Duration::from_secs(7);
    let said: Codelet<(), ()> = runtime
        .codelet("said")
        .cpu("said", |_, ()| {})
        .estimate(Arch::CPU, seven)
        .model(Model::history("said"))
        .build();
    let measured: Codelet<(), ()> =
        runtime.codelet("measured").cpu("measured", |_, ()| {}).model(Model::history("measured")).build();
    let nothing: Codelet<(), ()> = runtime.codelet("nothing").cpu("nothing", |_, ()| {}).build();
    let expected = |codelet: &Codelet<(), ()>| {
        runtime.task(codelet, ()).submit().expect("a good task");
        runtime.wait_all().expect("it ends");
        std::mem::take(&mut *SEEN.lock().expect("no test panics in here"))
    };
    for _ in 0..10 {
        assert_eq!(expected(&measured), [Estimate::Uncalibrated]);
        assert_eq!(expected(&said), [Estimate::Known(seven)]);
        assert_eq!(expected(&nothing), [Estimate::NoModel]);
    }
    assert!(matches!(expected(&measured)[..], [Estimate::Known(length)] if length < seven));
    assert_eq!(expected(&said), [Estimate::Known(seven)]);
    assert_eq!(models.find("said").expect("it was declared").measurements().samples(), 11);
}

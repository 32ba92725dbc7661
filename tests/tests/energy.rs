//! Energy: given by the application, and measured with counters in the kernel's format.

use sched_core::Arch;
use sched_host::energy::EnergyMeter;
use sched_host::model::{Fingerprint, Model, Models, SizeInfo, Store, Variant};
use sched_host::runtime::{Codelet, CodeletBuilder, MeasureError, ReadWrite, Runtime, Submitter};
use sched_host::topology::Topology;
use sched_tests::stock::{EAGER, builder};
use std::fs;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tempfile::TempDir;

/// How many workers ran each task, in order.
type Teams = Arc<Mutex<Vec<usize>>>;

/// Two workers, also as one combined worker. Tasks go where they end first; a joule costs `gamma` µs.
fn two(gamma: f64) -> Runtime {
    let tree = format!(
        r#"mct gamma={gamma:?} {{ each "worker" {{ fifo {{ worker }} }}; each "combined-worker" {{ fifo {{ combined-worker }} }} }}"#
    );
    let machine = Topology::from_synthetic("l2:1 core:2 pu:1").expect("the description is sound");
    builder(&tree, 2, Vec::new()).topology(machine).unchecked().build().expect("the runtime starts")
}

/// Takes 10 s alone, and 6 s on both workers.
fn faster_together(runtime: &Runtime, teams: &Teams) -> CodeletBuilder<(), ()> {
    let teams = Arc::clone(teams);
    let codelet = runtime.codelet("noted").cpu_fork("noted", 2, move |context, ()| {
        teams.lock().expect("nobody panics").push(context.team().size());
    });
    codelet.estimate(Arch::CPU, Duration::from_secs(10)).estimate_parallel(Arch::CPU, 2, Duration::from_secs(6))
}

/// Number of workers that run a task with this price of a joule and these joules alone and together.
fn chosen(gamma: f64, energies: &[(usize, f64)]) -> usize {
    let runtime = two(gamma);
    let teams = Teams::default();
    let codelet = faster_together(&runtime, &teams);
    let codelet =
        energies.iter().fold(codelet, |codelet, (size, joules)| codelet.energy_parallel(Arch::CPU, *size, *joules));
    runtime.task(&codelet.build(), ()).submit().expect("the task is sound");
    runtime.wait_all().expect("it runs");
    let teams = teams.lock().expect("nobody panics");
    assert_eq!(teams.len(), 1);
    teams[0]
}

#[test]
fn a_joule_has_its_price_where_the_application_says_what_tasks_take() {
    let frugal_alone = [(1, 5.0), (2, 30.0)];
    assert_eq!(chosen(0.0, &frugal_alone), 2, "the faster one, where energy costs nothing");
    // 25 J more against 4 s less.
    assert_eq!(chosen(1e5, &frugal_alone), 2);
    assert_eq!(chosen(2e5, &frugal_alone), 1);
    assert_eq!(chosen(2e5, &[]), 2, "nothing is said");
}

#[test]
fn what_is_no_energy_says_nothing_and_what_is_said_last_counts() {
    for wrong in [-1000.0, f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
        assert_eq!(chosen(2e5, &[(1, 5.0), (2, 30.0), (2, wrong)]), 1, "{wrong}");
    }
    assert_eq!(chosen(2e5, &[(1, 5.0), (2, 30.0), (2, 5.0)]), 2);
}

/// A folder with the counter of one package, as the kernel has it.
#[derive(Clone)]
struct Powercap(Arc<Mutex<TempDir>>);

impl Powercap {
    fn new() -> Powercap {
        let folder = tempfile::tempdir().expect("a folder");
        let zone = folder.path().join("intel-rapl:0");
        fs::create_dir(&zone).expect("a folder");
        for (file, text) in
            [("name", "package-0"), ("max_energy_range_uj", "65532610987"), ("energy_uj", "65532000000")]
        {
            fs::write(zone.join(file), text).expect("it can be written");
        }
        Powercap(Arc::new(Mutex::new(folder)))
    }

    fn meter(&self) -> EnergyMeter {
        EnergyMeter::open_at(self.0.lock().expect("nobody panics").path()).expect("there is a counter")
    }

    /// Advances the counter by `microjoules`, and wraps it around at its range.
    fn burn(&self, microjoules: u64) {
        let folder = self.0.lock().expect("nobody panics");
        let counter = folder.path().join("intel-rapl:0/energy_uj");
        let shown: u64 = fs::read_to_string(&counter).expect("it is there").parse().expect("a number");
        fs::write(&counter, ((shown + microjoules) % 65_532_610_987).to_string()).expect("it can be written");
    }
}

type Burn = Codelet<(ReadWrite<u64>,), u64>;

/// Tasks that take the microjoules of their parameter.
fn burning(runtime: &Runtime, powercap: &Powercap, name: &str) -> Burn {
    let powercap = powercap.clone();
    runtime
        .codelet(name)
        .cpu("burn", move |context, _: (&mut u64,)| {
            assert!(*context.params < 1_000_000, "too much");
            powercap.burn(*context.params);
        })
        .model(Model::history(name))
        .build()
}

fn runtime(models: &Arc<Models>) -> Runtime {
    builder(EAGER, 2, Vec::new()).unchecked().models(Arc::clone(models)).build().expect("the runtime starts")
}

fn models(directory: &Path) -> Arc<Models> {
    Arc::new(Models::with_store(Store::new(directory, Fingerprint::named("here"))))
}

/// What is known of a task of the only size that was measured.
fn known(models: &Models, name: &str) -> Option<f64> {
    let measured = models.find(name).expect("it was declared").measurements();
    let (footprint, entry) = measured.variants.values().next()?.entries.first_key_value()?;
    let size = SizeInfo { footprint: *footprint, bytes: entry.bytes, ..SizeInfo::default() };
    models.energy(name, Arch::CPU, 1, 0, &size)
}

#[test]
fn what_one_runtime_measures_the_next_one_knows() {
    let directory = tempfile::tempdir().expect("a directory");
    let powercap = Powercap::new();
    for round in 1..=2 {
        let models = models(directory.path());
        let runtime = runtime(&models);
        let tasks = burning(&runtime, &powercap, "burn");
        assert_eq!(known(&models, "burn"), (round == 2).then_some(0.25));
        let data: Vec<_> = (0..20).map(|_| runtime.register(0u64)).collect();
        // Tasks from before do not count.
        runtime.task_with(&tasks, 1000, (&data[0],)).submit().expect("the task is sound");
        let found = runtime.measure_energy(&tasks, &powercap.meter(), |submitter| {
            for (number, data) in data.iter().enumerate() {
                submitter.task_with(&tasks, if number % 2 == 0 { 200_000 } else { 300_000 }, (data,)).submit()?;
            }
            Ok(())
        });
        let found = found.expect("the runs agree");
        assert!((found.joules - 0.25).abs() < 1e-12, "{found:?}");
        assert_eq!((found.tasks, found.variant), (20, Variant::of(Arch::CPU)));
        assert_eq!((found.consumption.joules, found.consumption.idle), (5.0, 0.0));
        let learned = known(&models, "burn").expect("twenty tasks are enough");
        assert!((learned - 0.25).abs() < 1e-12, "{learned}");
    }
}

#[test]
fn what_two_runtimes_measure_at_once_is_added_up() {
    let directory = tempfile::tempdir().expect("a directory");
    let powercap = Powercap::new();
    let runtimes = [(); 2].map(|()| runtime(&models(directory.path())));
    for runtime in &runtimes {
        let tasks = burning(runtime, &powercap, "burn");
        assert_eq!(measure(runtime, &powercap, &tasks, &[5_000; 6]).expect("the runs agree"), 0.005);
    }
    drop(runtimes);
    let learned = known(&models(directory.path()), "burn").expect("six alone would be too few");
    assert!((learned - 0.005).abs() < 1e-12, "{learned}");
}

#[test]
fn schedulers_go_by_what_was_measured_where_nothing_is_said() {
    for (said, then) in [(None, 2), (Some(1.0), 1)] {
        let powercap = Powercap::new();
        let runtime = two(1e9);
        let teams = Teams::default();
        let codelet = faster_together(&runtime, &teams).model(Model::history("noted"));
        let codelet = codelet.energy_parallel(Arch::CPU, 2, 30.0);
        let codelet = said.into_iter().fold(codelet, |codelet, joules| codelet.energy(Arch::CPU, joules)).build();
        let found = runtime.measure_energy(&codelet, &powercap.meter(), |submitter| {
            for _ in 0..10 {
                submitter.task(&codelet, ()).submit()?;
            }
            powercap.burn(500_000_000);
            Ok(())
        });
        let found = found.expect("the runs agree");
        assert_eq!((found.joules, found.variant), (50.0, Variant::of(Arch::CPU)), "what is not known counts as none");
        runtime.task(&codelet, ()).submit().expect("the task is sound");
        runtime.wait_all().expect("it runs");
        assert_eq!(teams.lock().expect("nobody panics").last(), Some(&then), "{said:?} J were said");
    }
}

/// Result of a batch of tasks with these microjoules.
fn measure(runtime: &Runtime, powercap: &Powercap, tasks: &Burn, batch: &[u64]) -> Result<f64, MeasureError> {
    let data = runtime.register(0u64);
    let submit = |submitter: &Submitter| {
        for microjoules in batch {
            submitter.task_with(tasks, *microjoules, (&data,)).submit()?;
        }
        Ok(())
    };
    runtime.measure_energy(tasks, &powercap.meter(), submit).map(|found| found.joules)
}

#[test]
fn batches_that_say_nothing_are_refused_and_teach_nothing() {
    let models = Arc::new(Models::in_memory());
    let runtime = runtime(&models);
    let powercap = Powercap::new();
    let meter = powercap.meter();
    let tasks = burning(&runtime, &powercap, "burn");
    let other = burning(&runtime, &powercap, "other");
    let (small, large) = (runtime.register_sized(0u64, 8), runtime.register_sized(0u64, 800));
    let samples = || models.find("burn").expect("it was declared").measurements().variants.len();

    let error = measure(&runtime, &powercap, &tasks, &[]).expect_err("there was no task");
    assert_eq!(error.to_string(), "no task of codelet `burn` ran while its energy was measured");
    let error = measure(&runtime, &powercap, &tasks, &[0, 0]).expect_err("the counter stood still");
    assert!(error.to_string().starts_with("2 tasks of codelet `burn` took 0.000000 J in "), "{error}");
    let unlike = runtime.measure_energy(&tasks, &meter, |submitter| {
        submitter.task_with(&tasks, 9, (&small,)).submit()?;
        submitter.task_with(&tasks, 9, (&large,)).submit()?;
        submitter.task_with(&tasks, 9, (&large,)).submit().map(|_| ())
    });
    let display_text = unlike.expect_err("they differ in size").to_string();
    let expected = "the tasks of codelet `burn` differ in variant or footprint while their energy is measured: ";
    assert!(
        display_text.starts_with(expected) && display_text.contains("2 ran on cpu implementation 0 with footprint "),
        "{display_text}"
    );
    let mixed = runtime.measure_energy(&tasks, &meter, |submitter| {
        submitter.task_with(&tasks, 9, (&small,)).submit()?;
        submitter.task_with(&other, 9, (&large,)).submit().map(|_| ())
    });
    insta::assert_snapshot!(mixed.expect_err("another codelet ran too"), @"2 tasks ran while the energy of codelet `burn` was measured, and only 1 of them were its own");
    let error = measure(&runtime, &powercap, &tasks, &[9, 1_000_000, 9]).expect_err("one fails");
    assert!(matches!(error, MeasureError::Run(_)), "{error}");
    assert_eq!(samples(), 1, "times are learned all the same, and no energy");

    // Later measurements still succeed.
    assert_eq!(measure(&runtime, &powercap, &tasks, &[2_000, 4_000]).expect("the runs agree"), 0.003);
    assert_eq!(samples(), 2);
}

#[test]
fn what_idling_takes_is_taken_off_where_the_meter_was_told() {
    let models = Arc::new(Models::in_memory());
    let runtime = runtime(&models);
    let powercap = Powercap::new();
    let tasks = burning(&runtime, &powercap, "burn");
    let data = runtime.register(0u64);
    let batch = |watts: f64| {
        let meter = powercap.meter().above_idle(watts);
        runtime.measure_energy(&tasks, &meter, |submitter| {
            submitter.task_with(&tasks, 900_000, (&data,)).submit().map(|_| ())
        })
    };
    let found = batch(1e-9).expect("hardly anything is taken off");
    assert!(found.consumption.idle > 0.0 && (found.joules + found.consumption.idle - 0.9).abs() < 1e-12);
    assert!(matches!(batch(1e12), Err(MeasureError::Nothing { tasks: 1, .. })), "more than the machine draws");
}

#[test]
fn a_codelet_without_a_model_or_of_another_runtime_is_refused() {
    let models = Arc::new(Models::in_memory());
    let (here, elsewhere) = (runtime(&models), runtime(&models));
    let powercap = Powercap::new();
    let plain = here.codelet::<(), ()>("plain").cpu("plain", |_, ()| {}).build();
    let submitted = |_: &_| panic!("nothing is submitted in vain");
    let error = here.measure_energy(&plain, &powercap.meter(), submitted).expect_err("it has no model");
    assert_eq!(error.to_string(), "codelet `plain` has no performance model to record the measurement");
    let error = elsewhere.measure_energy(&plain, &powercap.meter(), submitted).expect_err("it is not from there");
    assert_eq!(error.to_string(), "codelet `plain` belongs to another runtime");
    let tasks = burning(&here, &powercap, "burn");
    let within = here.measure_energy(&tasks, &powercap.meter(), |_| {
        let error = measure(&here, &powercap, &tasks, &[9]).expect_err("one at a time");
        assert_eq!(error.to_string(), "the energy of codelet `burn` is being measured already");
        Ok(())
    });
    assert!(matches!(within, Err(MeasureError::NoTasks { .. })));
}

//! Damaged plugins are a line in a list, and a plugin that is rebuilt while it is used does no harm.
#![expect(clippy::print_stdout, reason = "the figures are what longer runs are read for")]

use sched_host::plugin::{FileState, IN_PLACE_VARIABLE, LoadErrorKind, PluginChange, Registry, SearchPath};
use sched_host::runtime::Runtime;
use sched_host::text::hash::SplitMix64;
use sched_host::topology::Topology;
use sched_tests::chains::submit_chains;
use sched_tests::fixtures::{self, Profile, stock_plugin};
use sched_tests::plugin_folder::{LIFO, fixture_folder, load};
use std::fs;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;

/// The error of the only file of a folder.
fn rejected(registry: &Registry) -> Option<&LoadErrorKind> {
    registry.rejected().next().map(|error| &error.kind)
}

#[test]
fn a_plugin_that_ends_the_process_is_a_line() {
    let folder = fixture_folder(&["aborts-in-build", "from-1-0"]);
    let registry = load(folder.path());
    let Some(LoadErrorKind::Fatal(how)) = rejected(&registry) else { panic!("{:?}", registry.files()) };
    assert_eq!(how, "it ends the process by SIGABRT (it gave up)");
    assert!(registry.component("from-1-0").is_some() && registry.component("aborts-in-build").is_none());
}

/// Whether this is a process that has this test alone and the variable set. Otherwise one is started, and passes.
fn is_alone(test: &str, variable: &str) -> bool {
    if std::env::var_os(variable).is_some() {
        return true;
    }
    let program = std::env::current_exe().expect("this program has a path");
    let ran = Command::new(program).args([test, "--exact", "--nocapture"]).env(variable, "1").status();
    let status = ran.expect("it starts");
    assert!(status.success(), "{test}: {status}");
    false
}

/// In a process of its own, whose end is this test's failure and not that of all.
#[test]
fn a_plugin_with_a_wrong_bit_never_ends_the_process() {
    if !is_alone("a_plugin_with_a_wrong_bit_never_ends_the_process", "SCHED_BIT_FLIPS_ALONE") {
        return;
    }
    let sound = fs::read(stock_plugin(LIFO, Profile::Debug)).expect("it is built");
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("lifo.so");
    let number = |name, default| std::env::var(name).map_or(default, |number| number.parse().expect("a number"));
    let flips = number("SCHED_BIT_FLIPS", 60);
    let mut random = SplitMix64(number("SCHED_BIT_FLIPS_SEED", 11));
    let (mut loaded, mut fatal) = (0, 0);
    for _ in 0..flips {
        let mut bytes = sound.clone();
        let bit = random.next() as usize % (bytes.len() * 8);
        bytes[bit / 8] ^= 1 << (bit % 8);
        fs::write(&file, &bytes).expect("written");
        match &load(folder.path()).files()[0].state {
            FileState::Loaded(_) => loaded += 1,
            FileState::Rejected(error) => fatal += u32::from(matches!(error.kind, LoadErrorKind::Fatal(_))),
            other => panic!("bit {bit}: {other:?}"),
        }
    }
    println!("of {flips} plugins with one wrong bit {loaded} were loaded, {fatal} failed their trial");
    assert!(loaded > 0, "most bits are of no importance");
}

/// A runtime whose root is a `lifo` of this file.
fn runtime_with(file: &Path) -> Runtime {
    let folder = file.parent().expect("it is in a folder");
    let mut registry = Registry::load(&SearchPath::empty().with_folder(folder));
    registry.add_builtin("stock", sched_components::stock()).expect("they are sound");
    Runtime::builder()
        .registry(Arc::new(registry))
        .topology(Topology::this_machine().expect("the machine can be explored"))
        .policy_value(sched_tests::stock::policy(r#"lifo { eager { each "worker" { worker } } }"#))
        .workers(2)
        .bind(false)
        .build()
        .expect("it starts")
}

#[test]
fn a_plugin_that_is_overwritten_while_tasks_run_does_no_harm() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("lifo.so");
    fs::copy(stock_plugin(LIFO, Profile::Debug), &file).expect("copied");
    let runtime = runtime_with(&file);
    for _ in 0..3 {
        let runs = submit_chains(&runtime, 100);
        // In place: the same file, with other content and shorter.
        fs::write(&file, [0; 100]).expect("written");
        runtime.wait_all().expect("every task runs");
        runs.assert_once("");
    }
    assert_eq!(runtime.faults(), []);
}

#[test]
fn a_rebuilt_plugin_is_taken_into_use_while_tasks_run() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("lifo.so");
    fs::copy(stock_plugin(LIFO, Profile::Debug), &file).expect("copied");
    let runtime = runtime_with(&file);
    let package = || runtime.survey().swap_remove(0).plugin;
    assert_eq!(runtime.rescan(), [], "nothing has changed");
    assert_eq!(package(), LIFO);
    let runs = submit_chains(&runtime, 200);
    // Another plugin with a component of that name stands for the new build.
    fs::copy(fixtures::plugin("duplicate-name"), &file).expect("copied");
    assert_eq!(runtime.rescan(), [PluginChange::Rebuilt(file.clone())]);
    assert_eq!(package(), LIFO, "what is in use stays");
    runtime.default_context().rebuild().expect("it can be built");
    assert_eq!(package(), "duplicate-name");
    runtime.wait_all().expect("every task runs");
    runs.assert_once("");
    // A build that is no use, and the end of the file: the context goes on with what it has.
    fs::write(&file, b"damaged").expect("written");
    let [PluginChange::Rejected(error)] = &runtime.rescan()[..] else { panic!("it cannot be loaded") };
    assert_eq!(error.path, file);
    runtime.default_context().rebuild().expect_err("nothing offers the component");
    fs::remove_file(&file).expect("removed");
    assert_eq!(runtime.rescan(), [PluginChange::Removed(file)]);
    let runs = submit_chains(&runtime, 50);
    runtime.wait_all().expect("every task runs");
    runs.assert_once("");
}

#[test]
fn a_registry_of_one_file_looks_at_that_file_again() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("lifo.so");
    fs::copy(stock_plugin(LIFO, Profile::Debug), &file).expect("copied");
    let registry = Registry::of_file(&file).expect("it is a plugin");
    let again = registry.rescan();
    assert_eq!(PluginChange::between(&registry, &again), []);
    assert!(again.component("lifo").is_some());
    fs::copy(fixtures::plugin("duplicate-name"), &file).expect("copied");
    assert_eq!(PluginChange::between(&again, &again.rescan()), [PluginChange::Rebuilt(file)]);
}

/// The system's loader would return the old library for the new file. In a process of its own, since the variable is
/// read where plugins are loaded.
#[test]
fn another_build_at_the_path_of_a_library_that_was_loaded_in_place_is_refused() {
    let name = "another_build_at_the_path_of_a_library_that_was_loaded_in_place_is_refused";
    if !is_alone(name, IN_PLACE_VARIABLE) {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("lifo.so");
    fs::copy(stock_plugin(LIFO, Profile::Debug), &file).expect("copied");
    let first = load(folder.path());
    assert!(first.component("lifo").is_some() && load(folder.path()).component("lifo").is_some());
    // As compilers do it: a new file of the same name.
    fs::remove_file(&file).expect("removed");
    fs::copy(fixtures::plugin("duplicate-name"), &file).expect("copied");
    let second = load(folder.path());
    assert_eq!(rejected(&second), Some(&LoadErrorKind::Replaced));
    assert!(second.component("lifo").is_none(), "it would be the one of the first build");
}

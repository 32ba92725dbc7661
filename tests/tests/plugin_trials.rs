//! Damaged plugins are a line in a list, and a plugin that is rebuilt while it is used does no harm.
#![expect(clippy::print_stdout, reason = "the figures are what longer runs are read for")]

use sched_host::plugin::{FileState, LoadErrorKind, Registry, SearchPath};
use sched_host::runtime::Runtime;
use sched_host::text::hash::SplitMix64;
use sched_host::topology::Topology;
use sched_tests::chains::submit_chains;
use sched_tests::fixtures::{Profile, stock_plugin};
use sched_tests::plugin_folder::{LIFO, fixture_folder, load};
use std::fs;
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

#[test]
fn a_plugin_with_a_wrong_bit_never_ends_the_process() {
    let sound = fs::read(stock_plugin(LIFO, Profile::Debug)).expect("it is built");
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("lifo.so");
    let flips = std::env::var("SCHED_BIT_FLIPS").map_or(60, |flips| flips.parse().expect("a number of bit flips"));
    let mut random = SplitMix64(11);
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

#[test]
fn a_plugin_that_is_overwritten_while_tasks_run_does_no_harm() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("lifo.so");
    fs::copy(stock_plugin(LIFO, Profile::Debug), &file).expect("copied");
    let mut registry = Registry::load(&SearchPath::empty().with_folder(folder.path()));
    registry.add_builtin("stock", sched_components::stock()).expect("they are sound");
    let runtime = Runtime::builder()
        .registry(Arc::new(registry))
        .topology(Topology::this_machine().expect("the machine can be explored"))
        .policy_value(sched_tests::stock::policy(r#"lifo { eager { each "worker" { worker } } }"#))
        .workers(2)
        .bind(false)
        .build()
        .expect("it starts");
    for _ in 0..3 {
        let runs = submit_chains(&runtime, 100);
        // In place: the same file, with other content and shorter.
        fs::write(&file, [0; 100]).expect("written");
        runtime.wait_all().expect("every task runs");
        runs.assert_once("");
    }
    assert_eq!(runtime.faults(), []);
}

//! `sched plugin new`: the crate of each family, and its sources in C, build outside of this repository, pass their own
//! tests, and their policies run.

use sched_core::Params;
use sched_core::rig::Examination;
use sched_host::graph::generate::cholesky;
use sched_host::policy::parse;
use sched_host::sim::Simulation;
use sched_host::sim::platform::find;
use sched_test_support::has_compiler;
use sched_tests::chains::submit_chains;
use sched_tests::fixtures::{repository, target_folder};
use sched_tests::in_c::with_stock;
use sched_tests::program::{Ran, command_of, program, sched};
use sched_tests::stock;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;

const FAMILIES: [&str; 4] = ["flow-control", "resource-mapping", "special-purpose", "worker"];

fn text(path: &Path) -> &str {
    path.to_str().expect("its name is text")
}

/// Runs cargo in the new crate, with the dependencies of the workspace's lock file.
fn cargo(folder: &Path, words: &[&str]) -> Ran {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| env!("CARGO").into());
    let mut command = Command::new(cargo);
    let target = target_folder().join("outside");
    command.args(words).args(["--offline", "--target-dir"]).arg(target).current_dir(folder);
    Ran::of(&mut command)
}

#[test]
fn a_new_component_of_each_family_is_tested_checked_run_and_simulated() {
    let folder = tempfile::tempdir().expect("there is room for a folder");
    let plugins = folder.path().join("plugins");
    fs::create_dir(&plugins).expect("a folder can be made");
    for family in FAMILIES {
        let name = format!("new-{family}");
        let path = folder.path().join(&name);
        let core = repository().join("sched-core");
        let new = ["plugin", "new", &name, "--family", family, "--path", text(&path), "--sched-core", text(&core)];
        let made = sched(&new);
        assert_eq!((made.code, &*made.err), (0, ""), "{family}: {made:?}");
        fs::copy(repository().join("Cargo.lock"), path.join("Cargo.lock")).expect("the lock file can be copied");

        let tested = cargo(&path, &["test"]);
        assert_eq!(tested.code, 0, "{family}: {tested:?}");
        assert!(tested.out.contains("test result: ok"), "{family}: {tested:?}");
        let built = cargo(&path, &["build"]);
        assert!(built.code == 0 && !built.says("warning"), "{family}: {built:?}");
        let library = format!("libnew_{}.so", family.replace('-', "_"));
        fs::copy(target_folder().join("outside/debug").join(&library), plugins.join(&library)).expect("it was built");

        assert_works(&plugins, &path.join(format!("{name}.kdl")), family);
    }
}

/// Checks, runs and simulates a new policy with the plugin in a folder.
fn assert_works(plugins: &Path, policy: &Path, family: &str) {
    let with = |words: &[&str]| {
        let ran = sched(&[&["--plugin-dir", text(plugins)], words].concat());
        assert_eq!((ran.code, &*ran.err), (0, ""), "{family}: {ran:?}");
        ran
    };
    assert!(with(&["check", text(policy)]).out.ends_with("ok\n"), "{family}");
    let on = ["--policy", text(policy), "--json"];
    let run = ["run", "cholesky", "--tiles", "4", "--tile-size", "16", "--workers", "2"];
    let run = with(&[&run[..], &on].concat()).json();
    assert_eq!(run["runs"][0]["faults"].as_array().map(Vec::len), Some(0), "{family}: {run}");
    let simulated = with(&[&["simulate", "cholesky", "--tiles", "6", "--platform", "cpu9-gpu3"][..], &on].concat());
    let simulated = simulated.json();
    assert_eq!(simulated["runs"][0]["faults"].as_array().map(Vec::len), Some(0), "{family}: {simulated}");
}

#[test]
fn a_new_component_in_c_of_each_family_is_compiled_examined_run_and_simulated() {
    if !has_compiler() {
        return;
    }
    let folder = tempfile::tempdir().expect("there is room for a folder");
    for family in FAMILIES {
        let name = format!("new-{family}");
        let path = folder.path().join(&name);
        let made = sched(&["plugin", "new", &name, "--family", family, "--c", "--path", text(&path)]);
        assert_eq!((made.code, &*made.err), (0, ""), "{family}: {made:?}");
        // As the Makefile does, and without a warning.
        let mut compiler = Command::new("cc");
        compiler.args(["-std=c11", "-Wall", "-Wextra", "-Werror", "-pedantic", "-O2", "-fPIC", "-shared", "-pthread"]);
        compiler.args(["-o", "plugin.so", &format!("{name}.c")]).current_dir(&path);
        let compiled = Ran::of(&mut compiler);
        assert_eq!((compiled.code, &*compiled.err), (0, ""), "{family}: {compiled:?}");

        let registry = with_stock(&path);
        let component = registry.component(&name).expect("the plugin has it");
        let make = |params: &Params| component.build(params).map_err(|error| error.to_string());
        assert_eq!(Examination::new(component.info(), &make).rounds(100).run(), [], "{family}");

        let text = fs::read_to_string(path.join(format!("{name}.kdl"))).expect("it was written");
        let policy = parse("new.kdl", &text).expect("it is sound").remove(0);
        let builder = stock::builder(stock::EAGER, 2, Vec::new()).registry(Arc::clone(&registry));
        let runtime = builder.policy_value(policy.clone()).build().unwrap_or_else(|error| panic!("{family}: {error}"));
        let runs = submit_chains(&runtime, 100);
        runtime.wait_all().unwrap_or_else(|end| panic!("{family}: {end}"));
        runs.assert_once(family);
        assert_eq!(runtime.faults(), [], "{family}");
        let platform = find("cpu9-gpu3").expect("it is shipped");
        let simulation = Simulation::new(cholesky(5, 960), platform).registry(registry).policy_value(policy);
        let outcome = simulation.run().unwrap_or_else(|error| panic!("{family}: {error}"));
        assert_eq!((outcome.tasks, outcome.faults), (35, vec![]), "{family}");
    }
}

#[test]
fn the_makefile_of_a_component_in_c_builds_and_examines_it() {
    let has_make = Command::new("make").arg("--version").output().is_ok_and(|output| output.status.success());
    if !has_compiler() || !has_make {
        return if !has_make {
            sched_test_support::skipped("there is no make")
        };
    }
    let folder = tempfile::tempdir().expect("there is room for a folder");
    let path = folder.path().join("my-change");
    let made = sched(&["plugin", "new", "my-change", "--family", "special-purpose", "--c", "--path", text(&path)]);
    assert!(made.code == 0 && made.out.contains("make check"), "{made:?}");
    let mut make = command_of(Path::new("make"));
    make.arg("check").env("SCHED", program()).current_dir(&path);
    let checked = Ran::of(&mut make);
    assert!(checked.code == 0 && checked.out.ends_with("ok\n"), "{checked:?}");
    assert!(path.join("libmy_change.so").exists());
}

#[test]
fn what_cannot_be_written_is_refused_with_the_fix() {
    let stock = sched(&["plugin", "new", "fifo", "--family", "worker"]);
    assert_eq!((stock.code, &*stock.out), (1, ""));
    assert!(stock.says("`fifo` is a stock component") && stock.says("choose another name"), "{stock:?}");
    let json = sched(&["plugin", "new", "My_Queue", "--family", "worker", "--json"]);
    let error: serde_json::Value = serde_json::from_str(&json.err).expect("an error is a line of JSON");
    assert_eq!((json.code, &error["error"]["help"]), (1, &"for example `my-queue`".into()), "{error}");
    assert_eq!(sched(&["plugin", "new", "m", "--family", "wrker"]).code, 2);
}

//! `sched plugin new`: the crate of each family builds outside of this repository, passes its own tests, and its policy
//! runs.

use sched_tests::fixtures::{repository, target_folder};
use sched_tests::program::{Ran, sched};
use std::fs;
use std::path::Path;
use std::process::Command;

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
        assert!(built.code == 0 && !built.err.contains("warning"), "{family}: {built:?}");
        let library = format!("libnew_{}.so", family.replace('-', "_"));
        fs::copy(target_folder().join("outside/debug").join(&library), plugins.join(&library)).expect("it was built");

        let policy = path.join(format!("{name}.kdl"));
        let with = |words: &[&str]| {
            let ran = sched(&[&["--plugin-dir", text(&plugins)], words].concat());
            assert_eq!((ran.code, &*ran.err), (0, ""), "{family}: {ran:?}");
            ran
        };
        assert!(with(&["check", text(&policy)]).out.ends_with("ok\n"), "{family}");
        let on = ["--policy", text(&policy), "--json"];
        let run = ["run", "cholesky", "--tiles", "4", "--tile-size", "16", "--workers", "2"];
        let run = with(&[&run[..], &on].concat()).json();
        assert_eq!(run["runs"][0]["faults"].as_array().map(Vec::len), Some(0), "{family}: {run}");
        let simulated = with(&[&["simulate", "cholesky", "--tiles", "6", "--platform", "cpu9-gpu3"][..], &on].concat());
        let simulated = simulated.json();
        assert_eq!(simulated["runs"][0]["faults"].as_array().map(Vec::len), Some(0), "{family}: {simulated}");
    }
}

#[test]
fn what_cannot_be_written_is_refused_with_the_fix() {
    let stock = sched(&["plugin", "new", "fifo", "--family", "worker"]);
    assert_eq!((stock.code, &*stock.out), (1, ""));
    assert!(
        stock.err.contains("`fifo` is a stock component") && stock.err.contains("choose another name"),
        "{stock:?}"
    );
    let json = sched(&["plugin", "new", "My_Queue", "--family", "worker", "--json"]);
    let error: serde_json::Value = serde_json::from_str(&json.err).expect("an error is a line of JSON");
    assert_eq!((json.code, &error["error"]["help"]), (1, &"for example `my-queue`".into()), "{error}");
    assert_eq!(sched(&["plugin", "new", "m", "--family", "wrker"]).code, 2);
}

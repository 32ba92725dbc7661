//! The program ends with an error that names node and call when a component does not come back; and it takes plugins
//! into use that are rebuilt while tasks run.

use sched_test_support::has_compiler;
use sched_tests::fixtures::{self, Profile, stock_plugin};
use sched_tests::in_c::folder_of;
use sched_tests::plugin_folder::{LIFO, fixture_folder};
use sched_tests::program::{command, is_of_machine, sched};
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

/// Writes a policy of this tree; gives the path of its file.
fn policy(folder: &Path, tree: &str) -> String {
    let file = folder.join("stuck.kdl");
    fs::write(&file, format!("policy \"stuck\" {{ {tree}; }}")).expect("it can be written");
    file.into_os_string().into_string().expect("text")
}

const RUN: &[&str] = &["run", "cholesky", "--workers", "1"];
const SIMULATE: &[&str] = &["simulate", "cholesky"];
const SWAP: &[&str] = &["simulate", "cholesky", "--swap-to", "tree-eager"];

#[test]
fn a_component_that_does_not_come_back_ends_the_program_which_names_it() {
    let plugins = fixture_folder(&["misbehaving"]);
    let plugins = plugins.path().to_str().expect("text");
    let folder = tempfile::tempdir().expect("a folder");
    let every = "eager { each \"worker\" { worker } }";
    for (method, command, tree, node) in [
        ("push_task", RUN, format!("sticks in=push_task {{ {every} }}"), "sticks"),
        ("pull_task", RUN, format!("fifo {{ sticks in=pull_task {{ {every} }} }}"), "fifo/sticks"),
        ("push_task", SIMULATE, format!("sticks in=push_task {{ {every} }}"), "sticks"),
        ("pull_task", SIMULATE, format!("fifo {{ sticks in=pull_task {{ {every} }} }}"), "fifo/sticks"),
        // What it asks comes back each time.
        ("push_task", RUN, format!("sticks in=\"ask push_task\" {{ sticks {{ {every} }} }}"), "sticks"),
        ("push_task", SIMULATE, format!("sticks in=\"ask push_task\" {{ sticks {{ {every} }} }}"), "sticks"),
        ("task_started", RUN, format!("sticks in=task_started {{ {every} }}"), "sticks"),
        ("task_ended", SIMULATE, format!("sticks in=task_ended {{ {every} }}"), "sticks"),
        ("export", SWAP, format!("sticks in=export {{ {every} }}"), "sticks"),
        ("build", RUN, format!("sticks in=build {{ {every} }}"), ""),
        ("build", SIMULATE, format!("sticks in=build {{ {every} }}"), ""),
    ] {
        let policy = policy(folder.path(), &tree);
        let options =
            ["--patience", "0.5", "--plugin-dir", plugins, "--policy", &policy, "--tiles", "3", "--tile-size", "24"];
        let ran = sched(&[command, &options].concat());
        // Before it is built, there is only its file.
        let of = match node {
            "" => format!("{plugins}/misbehaving.so"),
            node => format!("misbehaving, node `{node}`"),
        };
        let named = format!("component `sticks` of {of}: `{method}` has not come back for");
        assert!(ran.code == 1 && ran.says(&named), "{command:?} {tree}: {ran:?}");
        assert!(ran.says("--patience SECONDS gives it more time"), "{ran:?}");
        let ran = sched(&[command, &options, &["--json"]].concat());
        let error: serde_json::Value = serde_json::from_str(&ran.err).unwrap_or_else(|why| panic!("{why}: {ran:?}"));
        let said = error["error"]["message"].as_str().expect("a message");
        assert!(ran.code == 1 && said.contains(&named) && error["error"]["code"] == "sched::stuck", "{ran:?}");
    }
}

#[test]
fn a_destructor_that_does_not_come_back_is_named_and_left_behind() {
    let plugins = fixture_folder(&["misbehaving"]);
    let folder = tempfile::tempdir().expect("a folder");
    let policy = policy(folder.path(), "sticks in=drop { eager { each \"worker\" { worker } } }");
    let plugins = plugins.path().to_str().expect("text");
    let ran = sched(&["simulate", "cholesky", "--tiles", "3", "--plugin-dir", plugins, "--policy", &policy]);
    let named =
        "component `sticks` of misbehaving, node `sticks`: `drop` did not come back within 5s and was left behind";
    assert!(ran.code == 0 && ran.says(named), "{ran:?}");
}

#[test]
fn a_destructor_is_named_where_its_component_came_into_no_tree() {
    let plugins = fixture_folder(&["misbehaving", "panics-in-build"]);
    let plugins = plugins.path().to_str().expect("text");
    let folder = tempfile::tempdir().expect("a folder");
    let left = |node| {
        format!(
            "component `sticks` of misbehaving, node `{node}`: `drop` did not come back within 5s and was left behind"
        )
    };
    let file = policy(folder.path(), "sticks in=drop { panics-in-build { eager { each \"worker\" { worker } } } }");
    let simulate = ["simulate", "cholesky", "--tiles", "3", "--plugin-dir", plugins, "--policy", &file];
    let ran = sched(&simulate);
    assert!(ran.code == 1 && ran.says(&left("sticks")), "{ran:?}");
    assert!(ran.says("panics-in-build"), "the reason is given: {ran:?}");
    // The second context builds a part that the first one has already.
    let text = r#"policy "stuck" {
        shared "queue" between-contexts=#true { sticks in=drop { eager { each "worker" { worker } } } }
        prio { use "queue" }
    }"#;
    fs::write(folder.path().join("stuck.kdl"), text).expect("it can be written");
    let ran = sched(&[&simulate[..], &["--context", "a:workers=0"]].concat());
    assert!(ran.code == 0 && ran.err.matches(&left("queue/sticks")).count() == 2, "{ran:?}");
}

#[test]
fn a_component_that_ends_the_program_is_named_and_is_no_success() {
    let plugins = fixture_folder(&["misbehaving"]);
    let plugins = plugins.path().to_str().expect("text");
    let folder = tempfile::tempdir().expect("a folder");
    let policy = policy(folder.path(), r#"sticks in="exit push_task" { eager { each "worker" { worker } } }"#);
    let small = ["--policy", &policy, "--tiles", "3"];
    for command in
        [[RUN, &small, &["--tile-size", "24"]].concat(), [SIMULATE, &small].concat(), vec!["check", "--run", &policy]]
    {
        let ran = sched(&[&command[..], &["--plugin-dir", plugins, "--json"]].concat());
        let error: serde_json::Value = serde_json::from_str(&ran.err).unwrap_or_else(|why| panic!("{why}: {ran:?}"));
        let said = error["error"]["message"].as_str().expect("a message");
        let named = "component `sticks` of misbehaving, node `sticks`: `push_task` (thread";
        assert!(ran.code == 1 && said.contains(named) && error["error"]["code"] == "sched::ended", "{ran:?}");
        assert_eq!(ran.out, "", "{ran:?}");
    }
}

#[test]
fn a_component_that_crashes_is_named_and_ends_the_program_as_crashes_do() {
    let plugins = fixture_folder(&["misbehaving"]);
    let plugins = plugins.path().to_str().expect("text");
    let folder = tempfile::tempdir().expect("a folder");
    for (how, method) in [("abort", "push_task"), ("overflow", "push_task"), ("overflow", "build")] {
        let tree = format!("sticks in=\"{how} {method}\" {{ eager {{ each \"worker\" {{ worker }} }} }}");
        let policy = policy(folder.path(), &tree);
        let words = ["simulate", "cholesky", "--tiles", "3", "--plugin-dir", plugins, "--policy", &policy];
        let ended = command(&words).output().expect("it starts");
        let said = String::from_utf8_lossy(&ended.stderr);
        let named = match method {
            // Before it is built, there is only its file, and no node.
            "build" => format!("component `sticks` of {plugins}/misbehaving.so: `build` (thread `build`)\n"),
            _ => "component `sticks` of misbehaving, node `sticks`: `push_task` (thread `main`)\n".to_owned(),
        };
        assert!(ended.status.code().is_none() && said.contains(&named), "{how}: {} {said}", ended.status);
        let ended = command(&[&words[..], &["--json"]].concat()).output().expect("it starts");
        let said = String::from_utf8_lossy(&ended.stderr);
        // What the system and the C library say of it is beyond the program.
        let line = said.lines().find(|line| line.starts_with('{')).unwrap_or_else(|| panic!("{how}: {said}"));
        let error: serde_json::Value = serde_json::from_str(line).expect("it is an object");
        let message = error["error"]["message"].as_str().expect("a message");
        assert!(message.ends_with(named.trim_end()) && error["error"]["code"] == "sched::crashed", "{how}: {line}");
    }
}

#[test]
fn components_that_end_the_program_in_two_threads_at_once_are_named() {
    if !has_compiler() {
        return;
    }
    let ends: [(&str, &[&str], _); 3] = [
        ("exits", &["-DEND=exit(0)"], Some(1)),
        ("exits-quickly", &["-DEND=quick_exit(0)"], Some(1)),
        ("aborts", &["-DEND=abort()"], None),
    ];
    let folder = tempfile::tempdir().expect("a folder");
    let policy = policy(folder.path(), r#"fifo { ends { eager { each "worker" { worker } } } }"#);
    for (name, options, code) in ends {
        let plugins = folder_of(&[(name, "tests/fixtures/c/ends.c", options)]);
        let plugins = plugins.path().to_str().expect("text");
        let small = ["--workers", "2", "--tiles", "3", "--tile-size", "24", "--policy", &policy];
        for _ in 0..8 {
            let mut run = command(&[&["run", "cholesky", "--plugin-dir", plugins], &small[..]].concat());
            let ended = run.output().expect("it starts");
            let said = String::from_utf8_lossy(&ended.stderr);
            let named = "component `ends` of ends, node `fifo/ends`: `pull_task` (thread";
            assert!(ended.status.code() == code && said.contains(named), "{name}: {} {said}", ended.status);
        }
    }
}

#[test]
fn a_plugin_that_hangs_when_it_is_tried_costs_no_more_than_the_patience() {
    let plugins = fixture_folder(&["hangs-in-build"]);
    let options = ["plugins", "--plugin-dir", plugins.path().to_str().expect("text"), "--patience", "1"];
    let ran = sched(&options);
    assert!(ran.code == 0 && ran.out.contains("it does not come back within 2 s"), "{ran:?}");
}

#[test]
fn a_program_that_watches_its_plugins_takes_a_new_build_into_use() {
    let builds = [stock_plugin(LIFO, Profile::Debug), fixtures::plugin("duplicate-name")];
    let said = watched(&builds, "lifo", "context `default` uses them");
    assert!(said.iter().any(|line| line.contains("plugins: ") && line.contains("lifo.so")), "{said:?}");
}

#[test]
fn a_program_that_watches_its_plugins_says_why_a_new_build_is_of_no_use() {
    let builds = ["misbehaving", "own-fifo"].map(fixtures::plugin);
    let said = watched(&builds, "panics-in-push after=1000000000", "context `default` goes on as it was");
    let line = said.last().expect("it is said");
    assert!(line.contains("there is no component `panics-in-push`"), "{line}");
}

#[test]
fn a_run_uses_the_builds_that_came_during_the_run_before() {
    let builds = [stock_plugin(LIFO, Profile::Debug), fixtures::plugin("duplicate-name")];
    // A run is over before the folder is looked at.
    let words = ["--tiles", "2", "--tile-size", "8", "--repeat", "100000"];
    let said = watched_in(&words, &builds, "lifo", "lifo.so: rebuilt");
    assert_eq!(said.len(), 1, "nothing else is to be said: {said:?}");
}

/// What a run says whose `root` is of the first of these builds, up to the line with `awaited`; the builds take turns.
fn watched(builds: &[PathBuf; 2], root: &str, awaited: &str) -> Vec<String> {
    // The run would take minutes: it is ended when it has said what is waited for.
    watched_in(&["--tiles", "150", "--tile-size", "8"], builds, root, awaited)
}

/// [`watched`], with these options.
fn watched_in(words: &[&str], builds: &[PathBuf; 2], root: &str, awaited: &str) -> Vec<String> {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("lifo.so");
    // As a linker does it that does not write in place.
    let put = |build: usize| {
        let next = folder.path().join("next");
        fs::copy(&builds[build], &next).and_then(|_| fs::rename(&next, &file)).expect("it can be replaced");
    };
    put(0);
    let policy = policy(folder.path(), &format!("{root} {{ eager {{ each \"worker\" {{ worker }} }} }}"));
    let plugins = folder.path().to_str().expect("text");
    let watch = ["run", "cholesky", "--workers", "1", "--watch-plugins", "--plugin-dir", plugins, "--policy", &policy];
    let mut run = command(&[&watch[..], words].concat());
    let mut run = run.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().expect("it starts");
    let (send, lines) = channel();
    let errors = BufReader::new(run.stderr.take().expect("it is piped"));
    let reader = std::thread::spawn(move || errors.lines().map_while(Result::ok).try_for_each(|line| send.send(line)));
    let mut said = Vec::new();
    let mut builds = [1, 0].into_iter().cycle();
    let found = loop {
        match lines.recv_timeout(Duration::from_secs(2)) {
            Ok(line) if is_of_machine(&line) => {}
            Ok(line) => {
                said.push(line);
                if said.last().is_some_and(|line| line.contains(awaited)) {
                    break true;
                }
            }
            // It may not have begun to watch when the last build came: here is another.
            Err(RecvTimeoutError::Timeout) => put(builds.next().expect("there are always more")),
            Err(RecvTimeoutError::Disconnected) => break false,
        }
    };
    let _ = run.kill();
    run.wait().expect("it ends");
    drop(lines);
    let _ = reader.join();
    assert!(found, "{said:?}");
    said
}

//! Completion scripts and manual pages.

use sched_tests::program;
use std::fs;

const COMMANDS: [&str; 14] = [
    "run",
    "simulate",
    "compare",
    "plugins",
    "plugin",
    "policies",
    "tree",
    "check",
    "topology",
    "graph",
    "model",
    "bench",
    "completions",
    "man",
];

#[test]
fn shells_hear_of_every_command_and_of_options() {
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let script = program::sched(&["completions", shell]);
        assert_eq!((script.code, &*script.err), (0, ""), "{shell}");
        let missing: Vec<_> = COMMANDS
            .iter()
            .chain(&["cholesky", "plugin-dir", "tile-size"])
            .filter(|word| !script.out.contains(*word))
            .collect();
        assert!(missing.is_empty(), "{shell}: {missing:?}");
    }
    let unknown = program::sched(&["completions", "bsh"]);
    assert!(unknown.code == 2 && unknown.says("possible values: bash,"), "{unknown:?}");
}

#[test]
fn every_command_has_a_page() {
    let folder = tempfile::tempdir().expect("a folder");
    let pages = folder.path().join("man1");
    let ran = program::sched(&["man", "--dir", pages.to_str().expect("a name that is text")]);
    assert_eq!((ran.code, &*ran.err), (0, ""));
    for command in COMMANDS.iter().chain(&["run-cholesky", "model-import"]) {
        let page = fs::read_to_string(pages.join(format!("sched-{command}.1"))).expect("the page is there");
        assert!(page.contains(".SH DESCRIPTION") && page.contains(".SH OPTIONS"), "{command}: {page}");
    }
    let whole = program::sched(&["man"]);
    assert_eq!(whole.out, fs::read_to_string(pages.join("sched.1")).expect("the page is there"));
    let run = fs::read_to_string(pages.join("sched-run-lu.1")).expect("the page is there");
    assert!(run.contains(".nf\nExamples:\n"), "the lines of examples stay as they are: {run}");
    let nowhere = program::sched(&["man", "--dir", "/dev/null/pages"]);
    assert!(nowhere.code == 1 && nowhere.says("`/dev/null/pages` cannot be written"), "{nowhere:?}");
}

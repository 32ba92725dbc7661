//! The guide to policies is correct.

use sched_host::policy::{Level, read};
use sched_tests::plugin_folder::folder_of;
use sched_tests::{fixtures, program};
use std::fs;
use std::path::Path;

fn page() -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/policies.md");
    fs::read_to_string(path).expect("the page can be read")
}

#[test]
fn its_policies_are_valid_on_several_machines() {
    let page = page();
    let texts: Vec<&str> =
        page.split("```kdl\n").skip(1).map(|rest| rest.split("```").next().unwrap_or_default()).collect();
    assert_eq!(texts.len(), 6);
    let folder = tempfile::tempdir().expect("a folder");
    // One policy chooses the component of a plugin.
    let plugins = folder_of([("libmine.so", fixtures::plugin("own-fifo"))]);
    for text in texts {
        let read = read("policies.md", text);
        assert!(read.findings.is_empty() && read.policies.len() == 1, "{:?}", read.findings);
        let file = folder.path().join(format!("{}.kdl", read.policies[0].name));
        fs::write(&file, text).expect("the file can be written");
        for machine in ["core:1 pu:1", "core:4 pu:2", "node:2 core:4 pu:2"] {
            let mut words = vec!["check", file.to_str().expect("text"), "--synthetic", machine];
            if text.contains("libmine.so") {
                words.extend(["--plugin-dir", plugins.path().to_str().expect("text")]);
            }
            let ran = program::sched(&words);
            assert!(ran.code == 0 && ran.err.is_empty() && ran.out.ends_with("ok\n"), "{text}\non {machine}: {ran:?}");
        }
    }
}

#[test]
fn its_command_with_another_value_runs() {
    let page = page();
    let line =
        page.lines().find(|line| line.starts_with("sched run ") && line.contains(" --set ")).expect("it has one");
    let words: Vec<&str> = line.split(' ').skip(1).collect();
    let name = words.iter().find_map(|word| word.strip_suffix(".kdl")).expect("it names a file of the page");
    let text = page.split("```kdl\n").skip(1).map(|rest| rest.split("```").next().unwrap_or_default());
    let text = text.into_iter().find(|text| text.contains(&format!("policy \"{name}\""))).expect("the policy is there");
    let folder = tempfile::tempdir().expect("a folder");
    fs::write(folder.path().join(format!("{name}.kdl")), text).expect("the file can be written");
    let small = ["--tiles", "3", "--tile-size", "8"];
    let ran = program::command(&[&words[..], &small].concat()).current_dir(folder.path()).output().expect("it runs");
    assert!(ran.status.success(), "{line}: {}", String::from_utf8_lossy(&ran.stderr));
}

#[test]
fn it_names_every_level() {
    let page = page();
    let missing: Vec<&str> =
        Level::ALL.iter().map(|level| level.name()).filter(|name| !page.contains(&format!("`{name}`"))).collect();
    assert!(missing.is_empty(), "{missing:?}");
}

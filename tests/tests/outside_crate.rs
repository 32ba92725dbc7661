//! A crate outside of this repository, whose only dependency is `sched-host`, and whose program is the README's.

use sched_tests::fixtures::{repository, target_folder};
use sched_tests::program::{Ran, command_of};
use std::fs;
use std::path::PathBuf;
use std::process::Command;

/// The program under "Use the library".
fn program() -> String {
    let readme = fs::read_to_string(repository().join("README.md")).expect("README.md can be read");
    let section = readme.split("\n## Use the library\n").nth(1).expect("README.md has this section");
    let program = section.split("```rust\n").nth(1).and_then(|rest| rest.split("```").next());
    program.expect("the section has a program").to_owned()
}

/// Builds the crate in a folder of its own, with the dependencies of the workspace's lock file. What it depends on is
/// built once.
fn built() -> PathBuf {
    let folder = tempfile::tempdir().expect("there is room for a folder");
    let write = |name: &str, text: &str| fs::write(folder.path().join(name), text).expect("the file can be written");
    let host = repository().join("sched-host");
    fs::create_dir(folder.path().join("src")).expect("a folder can be made");
    write("src/main.rs", &program());
    write(
        "Cargo.toml",
        &format!(
            "[package]\nname = \"outside\"\nversion = \"0.1.0\"\nedition = \"2024\"\n\n\
             [dependencies]\nsched-host = {{ path = {host:?} }}\n\n[workspace]\n"
        ),
    );
    fs::copy(repository().join("Cargo.lock"), folder.path().join("Cargo.lock")).expect("the lock file can be copied");
    let target = target_folder().join("outside");
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| env!("CARGO").into());
    let mut command = Command::new(cargo);
    command.args(["build", "--offline", "--target-dir"]).arg(&target).current_dir(folder.path());
    let build = Ran::of(&mut command);
    assert_eq!(build.code, 0, "{}", build.err);
    target.join("debug/outside")
}

#[test]
fn the_readmes_program_builds_and_prints_the_number() {
    let outside = built();
    let run = Ran::of(&mut command_of(&outside));
    assert_eq!((run.code, run.out.as_str(), run.err.as_str()), (0, "1.5\n", ""));
    // The environment chooses the policy where the program does not.
    assert_eq!(Ran::of(command_of(&outside).env("SCHED_POLICY", "tree-heft")).out, "1.5\n");
    let wrong = Ran::of(command_of(&outside).env("SCHED_POLICY", "tree-heff"));
    assert_eq!(wrong.code, 1);
    insta::assert_snapshot!(wrong.err, @r#"
    Error: policy `tree-heff`: 1 error
      there is no policy `tree-heff` (policy::unknown)
        help: did you mean `tree-heft`?
              a policy of your own is given by the path of its file, which ends in `.kdl`
              the environment variable SCHED_POLICY names this policy
    "#);
}

#[test]
fn the_documentation_of_the_library_has_the_same_program() {
    let library = fs::read_to_string(repository().join("sched-host/src/lib.rs")).expect("lib.rs can be read");
    let lines = library
        .lines()
        .map(|line| line.strip_prefix("//!").map_or(line, |line| line.strip_prefix(' ').unwrap_or(line)));
    let text: String = lines.map(|line| format!("{line}\n")).collect();
    assert!(text.contains(&format!("```\n{}```\n", program())), "{text}");
}

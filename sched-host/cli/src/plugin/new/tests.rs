use super::*;
use clap::Parser;

#[derive(Parser)]
struct Command {
    #[command(flatten)]
    args: Args,
}

fn run_with(words: &[&str]) -> Result<String, String> {
    let args = Command::try_parse_from(["new"].iter().chain(words)).map_err(|error| error.to_string())?.args;
    let mut out = Vec::new();
    run(&args, &mut out).map_err(|error| error.to_string())?;
    Ok(String::from_utf8(out).expect("text"))
}

fn core() -> String {
    format!("{}/../../sched-core", env!("CARGO_MANIFEST_DIR"))
}

#[test]
fn the_output_says_what_was_written_and_what_to_do_next() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("my queue").display().to_string();
    let (core, real) = (core(), fs::canonicalize(core()).expect("it is there").display().to_string());
    let words = ["my-queue", "--family", "flow-control", "--path", &path, "--sched-core", &core];
    let said = run_with(&words).expect("it is written");
    let said = said.replace(&path, "DIR/my queue").replace(&real, "CORE");
    insta::assert_snapshot!(said, @r"
    DIR/my queue: the component `my-queue`, of the family flow-control
      Cargo.toml
      src/lib.rs
      my-queue.kdl
      README.md
      .gitignore
    It uses sched-core in CORE.

    Next:
      cd 'DIR/my queue'
      cargo test                                                            # in the rig: with fake neighbours and a fake clock
      cargo build --release                                                 # the plugin
      sched plugin test target/release/libmy_queue.so                       # random calls, runs and simulations
      sched --plugin-dir target/release check my-queue.kdl                  # is the policy sound?
      sched --plugin-dir target/release run cholesky --policy my-queue.kdl  # real work
    ");
    let error = run_with(&words).expect_err("it exists");
    assert!(error.ends_with("exists already; nothing was written"), "{error}");
    let lines = fs::read_to_string(format!("{path}/src/lib.rs")).expect("it is there");
    assert!(lines.lines().all(|line| line.chars().count() <= 120), "lines are not too long");
    assert!(!lines.contains("__"), "every place is filled in");
}

#[test]
fn json_has_the_same() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("m").display().to_string();
    let words = ["m", "--family", "worker", "--path", &path, "--git", "https://example.org/a", "--json"];
    let said = run_with(&words).expect("it is written").replace(&path, "DIR");
    insta::assert_snapshot!(said, @r#"
    {
      "component": "m",
      "family": "worker",
      "path": "DIR",
      "files": [
        "Cargo.toml",
        "src/lib.rs",
        "m.kdl",
        "README.md",
        ".gitignore"
      ],
      "sched_core": {
        "git": "https://example.org/a"
      },
      "next": [
        "cargo test",
        "cargo build --release",
        "sched plugin test target/release/libm.so",
        "sched --plugin-dir target/release check m.kdl",
        "sched --plugin-dir target/release run cholesky --policy m.kdl"
      ]
    }
    "#);
    let manifest = fs::read_to_string(format!("{path}/Cargo.toml")).expect("it is there");
    assert!(manifest.contains(r#"sched-core = { git = "https://example.org/a", features = ["rig"] }"#), "{manifest}");
}

#[test]
fn what_cannot_be_done_is_refused_and_leaves_nothing_behind() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("x/y").display().to_string();
    let of = |words: &[&str]| run_with(&[words, &["--path", &path]].concat()).expect_err("it is refused");
    let unknown = of(&["m", "--family", "flow-contrl"]);
    assert!(unknown.contains("a similar value exists: 'flow-control'"), "{unknown}");
    let elsewhere = of(&["m", "--family", "worker", "--sched-core", folder.path().to_str().expect("text")]);
    assert!(elsewhere.contains("is not the folder of sched-core: its Cargo.toml cannot be read"), "{elsewhere}");
    let other = of(&["m", "--family", "worker", "--sched-core", env!("CARGO_MANIFEST_DIR")]);
    assert!(other.contains("its Cargo.toml is that of another package"), "{other}");
    assert!(of(&["eager", "--family", "worker"]).contains("`eager` is a stock component"));
    assert_eq!(fs::read_dir(folder.path()).expect("it is there").count(), 0);
    let barred = ["m", "--family", "worker", "--path", "/proc/m", "--git", "g"];
    assert!(run_with(&barred).expect_err("nobody can write there").starts_with("`/proc/m` cannot be written"));
}

#[test]
fn the_program_knows_the_core_of_its_repository_wherever_it_was_built() {
    let args = |words: &[&str]| Command::parse_from(["new", "m", "--family", "worker"].iter().chain(words)).args;
    let core = Source::Path(fs::canonicalize(core()).expect("it is there"));
    // The target folder of this test is inside of the repository, or outside.
    assert_eq!(source(&args(&[])).expect("the repository is there"), core);
    let repository = format!("{}/../..", env!("CARGO_MANIFEST_DIR"));
    assert_eq!(source(&args(&["--sched-core", &repository])).expect("the repository has it"), core);
}

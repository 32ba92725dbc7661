//! What pages and comments tell cargo to run, cargo finds from the root of the repository.

use sched_tests::repository::{files, metadata, root};
use serde_json::Value;
use std::fs;

/// What one command names: a target of a kind, or nothing but packages.
#[derive(Debug, Default, PartialEq)]
struct Named {
    targets: Vec<(&'static str, String)>,
    packages: Vec<String>,
    everywhere: bool,
}

/// The words of a text without the signs of comments and tables.
fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split_whitespace().filter(|word| !matches!(*word, "//!" | "///" | "//" | "#" | "|"))
}

/// What the commands in a text name, those of cargo that run something.
fn commands(text: &str) -> Vec<Named> {
    let words: Vec<&str> = words(text).collect();
    let starts = |at: usize| words[at].trim_start_matches(['`', '(', '"']) == "cargo";
    let is_run = |at: usize| matches!(words.get(at + 1), Some(&("run" | "test" | "bench" | "build")));
    let mut found = Vec::new();
    for at in (0..words.len()).filter(|at| starts(*at) && is_run(*at)) {
        let mut named = Named::default();
        let mut rest = words[at + 2..].iter();
        while let Some(word) = rest.next() {
            let kind = match *word {
                "--example" => "example",
                "--test" => "test",
                "--bench" => "bench",
                "-p" | "--package" => "package",
                "--" | "&&" => break,
                other => {
                    named.everywhere |= matches!(other, "--workspace" | "--all");
                    if other.contains('`') {
                        break;
                    }
                    continue;
                }
            };
            let Some(value) = rest.next() else { break };
            let name = value.split('`').next().unwrap_or_default().trim_end_matches(['.', ',', ';', ':', '"']);
            if kind == "package" {
                named.packages.push(name.to_owned());
            } else {
                named.targets.push((kind, name.to_owned()));
            }
            if value.contains('`') {
                break;
            }
        }
        found.push(named);
    }
    found
}

/// Packages of the workspace with their targets, as cargo sees them.
struct Workspace {
    /// Kind, target, package, and whether cargo looks there if a command names no package.
    targets: Vec<(String, String, String, bool)>,
}

impl Workspace {
    fn read() -> Self {
        let metadata = metadata();
        let list = |value: &Value| value.as_array().expect("a list").clone();
        let text = |value: &Value| value.as_str().expect("a text").to_owned();
        let defaults = list(&metadata["workspace_default_members"]);
        let mut targets = Vec::new();
        for package in list(&metadata["packages"]) {
            for target in list(&package["targets"]) {
                for kind in list(&target["kind"]) {
                    let by_default = defaults.contains(&package["id"]);
                    targets.push((text(&kind), text(&target["name"]), text(&package["name"]), by_default));
                }
            }
        }
        Self { targets }
    }

    /// Why cargo does not find what the command names, if so.
    fn objection(&self, command: &Named) -> Option<String> {
        let known = |package: &&String| self.targets.iter().any(|(_, _, name, _)| name == *package);
        if let Some(package) = command.packages.iter().find(|package| !known(package)) {
            return Some(format!("there is no package {package}"));
        }
        let is_seen = |package: &String, by_default: bool| {
            let in_named = command.packages.contains(package);
            command.everywhere || in_named || (command.packages.is_empty() && by_default)
        };
        let is_found = |kind: &str, name: &str| {
            self.targets
                .iter()
                .any(|(k, n, package, by_default)| k == kind && n == name && is_seen(package, *by_default))
        };
        let missing = command.targets.iter().find(|(kind, name)| !is_found(kind, name))?;
        Some(format!("cargo finds no {} {} where the command looks", missing.0, missing.1))
    }
}

#[test]
fn cargo_finds_what_pages_and_comments_name() {
    let workspace = Workspace::read();
    let mut wrong = Vec::new();
    let mut count = 0;
    for path in files(&root(), &[".md", ".rs"]) {
        if path.ends_with(file!()) {
            continue;
        }
        let text = fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        let name = path.display();
        for command in commands(&text) {
            count += command.targets.len();
            wrong.extend(workspace.objection(&command).map(|objection| format!("{name}: {objection}: {command:?}")));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(count > 5, "{count} targets are named: commands are not recognised");
}

#[test]
fn what_cargo_does_not_find_is_said() {
    let workspace = Workspace {
        targets: vec![
            ("example".to_owned(), "shown".to_owned(), "offered".to_owned(), true),
            ("test".to_owned(), "hidden".to_owned(), "aside".to_owned(), false),
        ],
    };
    let text = "Run `cargo run --example shown`, or\n//! `cargo test --test hidden -- --ignored`,\n\
                `cargo test -p aside\n//! --test hidden`, `cargo test --workspace --test hidden`, cargo itself,\n\
                `cargo run --release -p gone --example shown -- --test none`, `cargo run --example lost.`";
    let objections: Vec<Option<String>> = commands(text).iter().map(|command| workspace.objection(command)).collect();
    let expected = [
        None,
        Some("cargo finds no test hidden where the command looks"),
        None,
        None,
        Some("there is no package gone"),
        Some("cargo finds no example lost where the command looks"),
    ];
    assert_eq!(objections, expected.map(|objection| objection.map(str::to_owned)));
}

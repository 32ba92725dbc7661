//! The subcommands about policies.

use super::{catalogue, shown, stock};
use crate::cli::{policies, tree};
use crate::policy::Catalogue;
use clap::Parser;
use insta::assert_snapshot;

#[derive(Parser)]
enum Sched {
    Policies(policies::Args),
    Tree(tree::Args),
}

fn sched(catalogue: &Catalogue, line: &str) -> String {
    let mut out = Vec::new();
    let result = match Sched::try_parse_from(std::iter::once("sched").chain(line.split(' '))) {
        Ok(Sched::Policies(args)) => policies::run(&args, catalogue, &mut out),
        Ok(Sched::Tree(args)) => tree::run(&args, catalogue, &mut out),
        Err(error) => return error.to_string(),
    };
    match result {
        Ok(_) => String::from_utf8(out).expect("it is text"),
        Err(report) => shown(&*report),
    }
}

#[test]
fn policies_lists_what_is_shipped() {
    // How it is broken into lines depends on the terminal.
    let list = sched(&stock(), "policies");
    assert!(list.contains("tree-eager-prefetching") && list.contains("One queue for all"), "{list}");
    assert!(!list.contains("not usable"), "{list}");
}

#[test]
fn policies_says_what_cannot_be_used() {
    let list = sched(&Catalogue::default(), "policies");
    assert!(list.contains("not usable here:"), "{list}");
}

#[test]
fn policies_shows_the_text() {
    assert!(sched(&catalogue(), "policies --show modular-eager").contains("policy \"tree-eager\" {"));
}

#[test]
fn policies_speaks_json() {
    let list: serde_json::Value = serde_json::from_str(&sched(&stock(), "policies --json")).expect("it is JSON");
    assert_eq!((&list[0]["name"], &list[0]["usable"]), (&"tree-eager".into(), &true.into()));
    let one = sched(&catalogue(), "policies --json --show tree-eager");
    let one: serde_json::Value = serde_json::from_str(&one).expect("it is JSON");
    assert!(one["text"].as_str().is_some_and(|text| text.contains("fifo {")));
}

#[test]
fn tree_draws() {
    assert_snapshot!(sched(&catalogue(), "tree tree-eager --workers 8"), @r"
    fifo
    └─ eager
       └─ worker × 8 (workers 0–7)
    ");
    assert_eq!(sched(&catalogue(), "tree tree-eager --workers 8 --unfold").lines().count(), 10);
    assert!(sched(&catalogue(), "tree tree-eager --workers 2 --format dot").starts_with("digraph \"tree-eager\" {"));
}

#[test]
fn tree_shows_what_is_wrong() {
    assert_snapshot!(sched(&catalogue(), "tree tree-eagre"), @r"
      × policy `tree-eagre`: 1 error

    Error: policy::unknown

      × there is no policy `tree-eagre`
      help: did you mean `tree-eager`?
            a policy of your own is given by the path of its file, which ends in `.kdl`
    ");
    assert!(sched(&catalogue(), "tree tree-eager --workers 0").contains("invalid value '0'"));
}

#[test]
fn help_teaches_by_example() {
    assert!(sched(&catalogue(), "tree --help").contains("sched tree mine.kdl --workers 64"));
    assert!(sched(&catalogue(), "policies --help").contains("sched policies --show tree-eager > mine.kdl"));
}

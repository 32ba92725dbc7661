//! Checking whole policies.

use super::{EAGER, HEFT, PREFETCHING, catalogue, policy, read, shown};
use crate::{Catalogue, Component, Each, FlatMachine, Level, Policy, check, expand};
use insta::assert_snapshot;
use sched_core::{Family, Info, Value};
use sched_text::Finding;

#[test]
fn valid_policies_have_no_problems() {
    for text in [EAGER, PREFETCHING, HEFT] {
        let findings = check(&policy(text), &catalogue());
        assert!(findings.is_empty(), "{findings:?}");
    }
}

#[test]
fn a_worker_of_its_own_needs_no_decision_and_several_do() {
    let alone = policy(r#"policy "p" { fifo { each "machine" { worker } } }"#);
    assert!(check(&alone, &catalogue()).is_empty());
    assert!(expand(&alone, &catalogue(), &FlatMachine { workers: 1 }).is_ok());
    let rules = |tree: &str| {
        let policy = policy(&format!(r#"policy "p" {{ {tree} }}"#));
        let findings = expand(&policy, &catalogue(), &FlatMachine { workers: 2 }).expect_err("nobody decides");
        findings.findings().iter().map(Finding::id).collect::<Vec<_>>()
    };
    assert_eq!(rules(r#"fifo { each "machine" { worker } }"#), ["V4"], "one leaf for two workers");
    assert_eq!(rules(r#"fifo { each "worker" { worker } }"#), ["V2"], "two children of a queue");
}

#[test]
fn each_machine_counts_as_one_child() {
    let text = r#"policy "p" { fifo { each "machine" { eager { each "worker" { worker } } } } }"#;
    assert!(check(&policy(text), &catalogue()).is_empty());
}

#[test]
fn without_plugins_the_help_says_where_they_were_looked_for() {
    let nothing = Catalogue::default().looked_at(["/usr/lib/sched/libflow.so", "./plugins"]);
    let findings = check(&policy("policy \"p\" {\n    fifo { worker }\n}"), &nothing);
    assert_snapshot!(shown(&findings[0]), @r#"
    V7 policy::component

      × there is no component `fifo`
       ╭─[test.kdl:2:5]
     1 │ policy "p" {
     2 │     fifo { worker }
       ·     ──┬─
       ·       ╰── unknown component
     3 │ }
       ╰────
      help: no plugin is loaded; looked at: /usr/lib/sched/libflow.so, ./plugins
            say where plugins are with `--plugin-dir`, or in a program of your own with `Builder::search_path`
            why: a policy is made of the components that the loaded plugins provide
    "#);
}

#[test]
fn plugins_that_were_looked_in_are_named_once_each() {
    let info = |name: &'static str| Info::new(name, Family::FlowControl, "").describe();
    let mixed = Catalogue::new([(info("a"), "two"), (info("b"), "one"), (info("c"), "two")]);
    let told = shown(&check(&policy(r#"policy "p" { fifo { worker } }"#), &mixed)[0]);
    assert!(told.contains("looked in plugins: one, two\n"), "{told}");
}

#[test]
fn a_policy_built_by_a_program_is_shown_as_text() {
    let leaf = Component::new("fifo").set("ntasks-threshold", Value::Int(-2)).child(Component::new("worker"));
    let policy = Policy::new("built", Component::new("fifo").child(Each::new(Level::Numa).child(leaf)));
    let findings = check(&policy, &catalogue());
    assert_snapshot!(findings.iter().map(|finding| shown(finding)).collect::<Vec<_>>().join("\n"), @r#"
    V7 policy::parameter

      × `ntasks-threshold` of `fifo` cannot be -2
       ╭─[policy built (built by a program):4:35]
     3 │         each "numa" {
     4 │             fifo ntasks-threshold=-2 {
       ·                                   ─┬
       ·                                    ╰── found -2, expected a whole number of at least 0
     5 │                 worker
       ╰────
      help: `ntasks-threshold`: tasks held at most; 0 means no limit (default 0)
            why: a component declares its parameters with type, range and default
    V2 policy::each

      × `each "numa"` gives `fifo` several children, and it takes one
       ╭─[policy built (built by a program):3:9]
     1 │ policy "built" {
     2 │     fifo {
       ·     ──┬─
       ·       ╰── takes one child
     3 │         each "numa" {
       ·         ─────┬─────
       ·              ╰── one child for each numa
     4 │             fifo ntasks-threshold=-2 {
       ╰────
      help: put a component between that takes several: `eager { each "numa" { … } }`
            why: `each` repeats its children, so it stands where several children may
    "#);
}

#[test]
fn a_component_cannot_be_called_like_a_word_of_the_language() {
    let policy = Policy::new("built", Component::new("each").child(Component::new("worker")));
    let findings = check(&policy, &catalogue());
    assert_eq!(findings.iter().map(Finding::rule).collect::<Vec<_>>(), ["policy::component"]);
    assert_eq!(findings[0].message(), "a component is called `each`, a word of the language");
}

#[test]
fn all_broken_rules_are_reported_in_one_go() {
    let parsed = read("test.kdl", "policy \"p\" { eagr { each \"worker\" { fifo depth=1 { use \"x\" }; fifo } } }");
    let findings = check(&parsed.policies[0], &catalogue());
    let mut rules: Vec<&str> = findings.iter().map(Finding::rule).collect();
    rules.sort_unstable();
    assert_eq!(rules, ["policy::arity", "policy::component", "policy::parameter", "policy::shared"]);
}

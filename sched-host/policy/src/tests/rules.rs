//! Checking whole policies.

use super::{EAGER, HEFT, PREFETCHING, catalogue, policy, read, shown};
use crate::{Audience, Catalogue, Component, Each, FlatMachine, Level, Policy, Stock, check, expand};
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
fn without_components_there_is_one_error_which_says_where_they_were_looked_for() {
    let nothing = Catalogue::default().looked_at(["/usr/lib/sched/libflow.so", "./plugins"]);
    let display_text = |catalogue: &Catalogue| {
        let problems =
            check(&policy("policy \"p\" {\n    fifo { eager { each \"worker\" { worker } } }\n}"), catalogue);
        problems.iter().map(|problem| shown(problem)).collect::<Vec<_>>().join("\n")
    };
    assert_snapshot!(display_text(&nothing), @r#"
    V7 policy::component

      × no component plugins were found: looked in /usr/lib/sched/libflow.so, ./plugins
      help: name the folder of the plugins with SCHED_PLUGIN_PATH or `Builder::search_path`
            or compile the components in, with the feature `stock` of sched-host
            why: a policy is made of the components that plugins offer and that are compiled in
    "#);
    let refused = nothing.stock(Stock::Refused).not_loaded(["libflow.so: it is empty"]);
    assert_snapshot!(display_text(&refused.clone().audience(Audience::CommandLine)), @r#"
    V7 policy::component

      × no component plugins were found: looked in /usr/lib/sched/libflow.so, ./plugins
      help: name the folder of the plugins with `--plugin-dir` or SCHED_PLUGIN_PATH
            or leave out `--no-builtin`, which refuses the components that are compiled in
            not loaded: libflow.so: it is empty
            why: a policy is made of the components that plugins offer and that are compiled in
    "#);
    assert_snapshot!(display_text(&refused), @r#"
    V7 policy::component

      × no component plugins were found: looked in /usr/lib/sched/libflow.so, ./plugins
      help: name the folder of the plugins with SCHED_PLUGIN_PATH or `Builder::search_path`
            or leave out `Builder::without_builtin`, which refuses the components that are compiled in
            not loaded: libflow.so: it is empty
            why: a policy is made of the components that plugins offer and that are compiled in
    "#);
}

#[test]
fn a_component_that_is_unknown_in_several_places_is_one_error() {
    let text = r#"policy "p" { fifi { eager { each "worker" { fifi { worker } } } } }"#;
    assert_snapshot!(check(&policy(text), &catalogue()).iter().map(|problem| shown(problem)).collect::<String>(), @r#"
    V7 policy::component

      × there is no component `fifi`
       ╭─[test.kdl:1:14]
     1 │ policy "p" { fifi { eager { each "worker" { fifi { worker } } } } }
       ·              ──┬─                           ──┬─
       ·                │                              ╰── and here
       ·                ╰── unknown component
       ╰────
      help: did you mean `fifo`?
            components come from: flow-control, resource-mapping, special-purpose, worker
            why: a policy is made of the components that plugins offer and that are compiled in
    "#);
}

#[test]
fn plugins_that_were_looked_in_are_named_once_each() {
    let info = |name: &'static str| Info::new(name, Family::FlowControl, "").describe();
    let mixed = Catalogue::new([(info("a"), "two"), (info("b"), "one"), (info("c"), "two")]);
    let display_text = shown(&check(&policy(r#"policy "p" { fifo { worker } }"#), &mixed)[0]);
    assert!(display_text.contains("components come from: one, two\n"), "{display_text}");
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
            why: `each` repeats its children, so it needs a parent that takes several
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

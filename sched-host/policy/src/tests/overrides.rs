//! Which of several components of one name a policy means.

use super::{catalogue, policy, read, shown, wrong};
use crate::catalogue::{Entry, Offers};
use crate::{Audience, Catalogue, FlatMachine, Override, Parsed, check, expand};
use insta::assert_snapshot;
use std::sync::Arc;

/// The small catalogue, with stock components compiled in, and another `fifo` and two `lifo` in plugins.
fn contested() -> Catalogue {
    let small = catalogue();
    let offers = small.iter().map(|entry| {
        let other = |file: &str, plugin: &str| Entry {
            plugin: plugin.to_owned(),
            file: Some(format!("/plugins/{file}").into()),
            ..entry.clone()
        };
        let mut info = (*entry.info).clone();
        info.package = "sched-components".to_owned();
        let stock = Entry { info: Arc::new(info), plugin: "sched-components".to_owned(), file: None };
        let (entries, owner) = match entry.info.name.as_str() {
            "fifo" => (vec![other("libmine.so", "my-queues"), stock], Some("sched-components".to_owned())),
            "lifo" => (vec![other("libmine.so", "my-queues"), other("libtheirs.so", "their-queues")], None),
            _ => (vec![stock], Some("sched-components".to_owned())),
        };
        let offers = Offers { entries, owner, meant: None };
        Offers { meant: offers.by_rule(), ..offers }
    });
    Catalogue::of_offers(offers.collect()).audience(Audience::CommandLine)
}

fn display_text(text: &str) -> String {
    let Parsed { policies, findings } = read("test.kdl", text);
    assert!(findings.is_empty(), "{findings:?}");
    let findings = policies.iter().flat_map(|policy| check(policy, &contested()));
    findings.map(|finding| shown(&finding)).collect::<Vec<_>>().join("\n")
}

/// The files that the components of a policy come from, from the root down.
fn files(text: &str) -> Vec<String> {
    let plan = expand(&policy(text), &contested(), &FlatMachine { workers: 1 });
    let plan = plan.unwrap_or_else(|errors| panic!("{}", shown(&errors)));
    let file =
        |file: &Option<std::path::PathBuf>| file.as_ref().map_or("-".to_owned(), |file| file.display().to_string());
    plan.nodes.iter().map(|node| format!("{} {}", node.info.name, file(&node.file))).collect()
}

#[test]
fn a_policy_chooses_among_several_components_of_a_name() {
    let tree = r#"fifo { eager { each "worker" { fifo ntasks-threshold=2 { worker } } } }"#;
    let of = |line: &str| files(&format!("policy \"p\" {{ {line}; {tree} }}"));
    let mine = ["fifo /plugins/libmine.so", "eager -", "fifo /plugins/libmine.so", "worker -"];
    assert_eq!(of(r#"override "fifo""#), mine);
    assert_eq!(of(r#"override "fifo" from="libmine.so""#), mine);
    assert_eq!(of(r#"override "fifo" from="my-queues""#), mine);
    assert_eq!(of(r#"override "fifo" from="sched-components""#), ["fifo -", "eager -", "fifo -", "worker -"]);
    let lifo = |line: &str| files(&format!("policy \"p\" {{ {line} lifo {{ worker }} }}"));
    assert_eq!(lifo(""), ["lifo /plugins/libmine.so", "worker -"], "the first in the search path");
    assert_eq!(lifo(r#"override "lifo" from="libtheirs.so";"#), ["lifo /plugins/libtheirs.so", "worker -"]);
}

#[test]
fn an_override_at_the_top_of_a_file_holds_for_all_policies_that_it_concerns() {
    let text = r#"
        override "fifo" from="libmine.so"
        policy "a" { eager { each "worker" { worker } } }
        policy "b" { fifo { each "machine" { worker } } }
        policy "c" { use "q"; shared "q" { fifo { worker } } }"#;
    let overrides = |index: usize| read("test.kdl", text).policies[index].overrides.clone();
    assert_eq!(overrides(0), []);
    assert_eq!(overrides(1), [Override::new("fifo").from("libmine.so")]);
    assert_eq!(overrides(2), [Override::new("fifo").from("libmine.so")]);
}

#[test]
fn a_stock_name_that_a_plugin_offers_too_has_to_be_chosen() {
    assert_snapshot!(display_text(r#"policy "p" { fifo { eager { each "worker" { fifo ntasks-threshold=2 { worker } } } } }"#), @r#"
    V7 policy::component

      × component `fifo` is offered by /plugins/libmine.so and by sched-components (compiled in)
       ╭─[test.kdl:1:14]
     1 │ policy "p" { fifo { eager { each "worker" { fifo ntasks-threshold=2 { worker } } } } }
       ·              ──┬─                           ──┬─
       ·                │                              ╰── and here
       ·                ╰── which one is meant?
       ╰────
      help: choose one in the policy, with `override "fifo" from="libmine.so"`, or for all policies, with
            `--override fifo=libmine.so`
            or take libmine.so out of the search path; from="sched-components" means the stock component
            why: a policy is made of the components that plugins offer and that are compiled in
    "#);
}

#[test]
fn an_override_of_nothing_is_an_error() {
    assert_snapshot!(display_text(r#"
policy "p" {
    override "fifo" from="libmin.so"
    override "eager"
    override "worker" from="libmine.so"
    override "lifo"
    fifo { eager { each "worker" { worker } } }
}"#), @r#"
    V7 policy::override

      ⚠ policy `p` has no component `lifo`
       ╭─[test.kdl:6:14]
     5 │     override "worker" from="libmine.so"
     6 │     override "lifo"
       ·              ───┬──
       ·                 ╰── overrides nothing
     7 │     fifo { eager { each "worker" { worker } } }
       ╰────
      help: leave it out, or name a component of the policy
            why: `override` chooses, once, among several components of one name
    V7 policy::override

      × `libmin.so` offers no component `fifo`
       ╭─[test.kdl:3:26]
     2 │ policy "p" {
     3 │     override "fifo" from="libmin.so"
       ·                          ─────┬─────
       ·                               ╰── neither a plugin nor a package that offers it
     4 │     override "eager"
       ╰────
      help: did you mean `libmine.so`?
            `fifo` is offered by /plugins/libmine.so and by sched-components (compiled in)
            why: `override` chooses among the components that plugins offer, and those that are compiled in
    V7 policy::override

      × no plugin offers another component `eager`
       ╭─[test.kdl:4:14]
     3 │     override "fifo" from="libmin.so"
     4 │     override "eager"
       ·              ───┬───
       ·                 ╰── overridden here
     5 │     override "worker" from="libmine.so"
       ╰────
      help: it is offered by sched-components (compiled in)
            why: `override` chooses among the components that plugins offer, and those that are compiled in
    V7 policy::override

      × `libmine.so` offers no component `worker`
       ╭─[test.kdl:5:28]
     4 │     override "eager"
     5 │     override "worker" from="libmine.so"
       ·                            ──────┬─────
       ·                                  ╰── neither a plugin nor a package that offers it
     6 │     override "lifo"
       ╰────
      help: `worker` is offered by sched-components (compiled in)
            why: `override` chooses among the components that plugins offer, and those that are compiled in
    "#);
}

// Longer than 60 lines because of its golden text.
#[test]
fn what_an_override_cannot_be() {
    assert_snapshot!(wrong(r#"
policy "p" {
    override "fifo"
    override "fifo" from="a"
    override "eager" form="b" { worker }
    override from=1
    fifo { override "eager"; worker }
}"#), @r#"
    V7 policy::override

      × `override` has no property `form`
       ╭─[test.kdl:5:22]
     4 │     override "fifo" from="a"
     5 │     override "eager" form="b" { worker }
       ·                      ────┬───
       ·                          ╰── unknown property
     6 │     override from=1
       ╰────
      help: did you mean `from`?
    V7 policy::override

      × `override "eager"` cannot have children
       ╭─[test.kdl:5:33]
     4 │     override "fifo" from="a"
     5 │     override "eager" form="b" { worker }
       ·                                 ───┬──
       ·                                    ╰── this is below `override`
     6 │     override from=1
       ╰────
      help: an override chooses a component for the whole policy
    V7 policy::override

      × `override` lacks a name
       ╭─[test.kdl:6:5]
     5 │     override "eager" form="b" { worker }
     6 │     override from=1
       ·     ────┬───
       ·         ╰── expected a name after this
     7 │     fifo { override "eager"; worker }
       ╰────
      help: write `override "fifo" from="libmine.so"`
    V7 policy::misplaced

      × `override` cannot stand inside a tree
       ╭─[test.kdl:7:12]
     6 │     override from=1
     7 │     fifo { override "eager"; worker }
       ·            ────┬───
       ·                ╰── not here
     8 │ }
       ╰────
      help: move it up: it stands directly in a policy or a policy file
    V7 policy::override

      × `override "fifo"` is given twice
       ╭─[test.kdl:4:14]
     2 │ policy "p" {
     3 │     override "fifo"
       ·              ───┬──
       ·                 ╰── first here
     4 │     override "fifo" from="a"
       ·              ───┬──
       ·                 ╰── again here
     5 │     override "eager" form="b" { worker }
       ╰────
      help: leave one of them out
            why: `override` chooses, once, among several components of one name
    V7 policy::override

      ⚠ policy `p` has no component `eager`
       ╭─[test.kdl:5:14]
     4 │     override "fifo" from="a"
     5 │     override "eager" form="b" { worker }
       ·              ───┬───
       ·                 ╰── overrides nothing
     6 │     override from=1
       ╰────
      help: leave it out, or name a component of the policy
            why: `override` chooses, once, among several components of one name
    V7 policy::override

      × `a` offers no component `fifo`
       ╭─[test.kdl:4:26]
     3 │     override "fifo"
     4 │     override "fifo" from="a"
       ·                          ─┬─
       ·                           ╰── neither a plugin nor a package that offers it
     5 │     override "eager" form="b" { worker }
       ╰────
      help: `fifo` is offered by flow-control (compiled in)
            why: `override` chooses among the components that plugins offer, and those that are compiled in
    "#);
}

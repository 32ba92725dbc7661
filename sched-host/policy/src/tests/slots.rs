//! Slots that may be left out, slots beside other children, and parameters that are one of several texts.

use super::{policy, shown};
use crate::{Catalogue, FlatMachine, TreePlan, check, expand_unchecked};
use sched_core::{Family, Info, Param, Slot, Storage};

fn catalogue() -> Catalogue {
    let fifo = Info::new("fifo", Family::FlowControl, "A queue.")
        .storage(Storage::Unbounded)
        .params(const { &[Param::choice("order", "age", &["age", "length"], "what it is sorted by")] });
    let eager = Info::new("eager", Family::ResourceMapping, "The first that takes it.").forwards_push();
    let router = Info::new("router", Family::ResourceMapping, "Has a child for tasks that nobody takes.")
        .slots_beside_children(
            const { &[Slot { name: "fallback", doc: "what nobody takes" }, Slot { name: "spare", doc: "what is late" }] },
        )
        .optional_slots(&["spare"]);
    let gate = Info::new("gate", Family::SpecialPurpose, "Opens and closes.")
        .slots(const { &[Slot { name: "main", doc: "most tasks" }, Slot { name: "spare", doc: "the others" }] })
        .optional_slots(&["spare"]);
    let valve = Info::new("valve", Family::SpecialPurpose, "Opens and closes.")
        .slots(const { &[Slot { name: "main", doc: "most tasks" }, Slot { name: "spare", doc: "the others" }] })
        .optional_slots(&["main", "spare"]);
    let worker = Info::new("worker", Family::Worker, "A leaf.").storage(Storage::Unbounded);
    Catalogue::new([fifo, eager, router, gate, valve, worker].map(|info| (info.describe(), "test")))
}

fn plan(tree: &str) -> Result<TreePlan, String> {
    let text = format!("policy \"p\" {{\n    {tree}\n    shared \"leaf\" each=\"worker\" {{ worker }}\n}}");
    expand_unchecked(&policy(&text), &catalogue(), &FlatMachine { workers: 2 }).map_err(|errors| shown(&errors))
}

/// The path of each child of a node, and its slot.
fn children(plan: &TreePlan, path: &str) -> Vec<(String, String)> {
    let node = plan.find(path).expect("the plan has it");
    let child = |child: &crate::plan::Child| (plan[child.node].path.clone(), child.slot.clone().unwrap_or_default());
    node.children.iter().map(child).collect()
}

fn pairs(of: &[(&str, &str)]) -> Vec<(String, String)> {
    of.iter().map(|(path, slot)| ((*path).to_owned(), (*slot).to_owned())).collect()
}

#[test]
fn a_component_has_many_children_and_slots() {
    let plan = plan(r#"router { fallback { eager { use "leaf" } }; each "worker" { fifo { use "leaf" } } }"#);
    let plan = plan.expect("it is right");
    let expected = [("router/worker 0/fifo", ""), ("router/worker 1/fifo", ""), ("router/fallback/eager", "fallback")];
    assert_eq!(children(&plan, "router"), pairs(&expected), "those in slots come last");
}

#[test]
fn slots_beside_children_have_rules_too() {
    let error = |tree: &str| plan(tree).expect_err("it is wrong");
    let without = error(r#"router { each "worker" { worker } }"#);
    assert!(without.contains("`router` lacks its slot `fallback`") && !without.contains("spare"), "{without}");
    let nothing = error(r#"router { fallback { eager { use "leaf" } } }"#);
    assert!(nothing.contains("`router` has no child"), "{nothing}");
    let twice = error(
        r#"router { use "leaf"; fallback { eager { use "leaf" } }; fallback { fifo { eager { use "leaf" } } } }"#,
    );
    assert!(twice.contains("slot `fallback` of `router` is given twice"), "{twice}");
    let unknown =
        error(r#"router { use "leaf"; fallbck { eager { use "leaf" } }; fallback { eager { use "leaf" } } }"#);
    assert!(unknown.contains("no component `fallbck`"), "what is no slot is a component: {unknown}");
}

#[test]
fn an_optional_slot_may_be_left_out() {
    let one = plan(r#"gate { main { eager { use "leaf" } } }"#).expect("it is right");
    assert_eq!(children(&one, "gate"), pairs(&[("gate/main/eager", "main")]));
    let both = plan(r#"gate { spare { eager { use "leaf" } }; main { eager { use "leaf" } } }"#).expect("it is right");
    assert_eq!(children(&both, "gate"), pairs(&[("gate/main/eager", "main"), ("gate/spare/eager", "spare")]));
    let vanished = r#"gate { spare { eager { each "worker" only="7" { worker } } }; main { eager { use "leaf" } } }"#;
    let vanished = plan(vanished).expect("a machine may lack what it is for");
    assert_eq!(children(&vanished, "gate"), pairs(&[("gate/main/eager", "main")]));
    let neither = plan(r#"gate { spare { eager { use "leaf" } } }"#).expect_err("it is wrong");
    assert!(neither.contains("`gate` lacks its slot `main`"), "{neither}");
}

#[test]
fn a_component_without_a_child_in_any_slot_is_left_out_and_the_check_says_so() {
    const BOTH: &str = r#"fifo { eager { valve; use "leaf" } }"#;
    let plan = plan(BOTH).expect("it goes without");
    assert_eq!(children(&plan, "fifo/eager").len(), 2, "the leaves");
    let whole = |tree: &str| {
        let text = format!("policy \"p\" {{\n    {tree}\n    shared \"leaf\" each=\"worker\" {{ worker }}\n}}");
        shown(&sched_text::Findings::new("test.kdl", check(&policy(&text), &catalogue())))
    };
    insta::assert_snapshot!(whole(BOTH), @r#"
      × test.kdl: 0 errors and 1 warning

    Warning: V7 policy::slots

      ⚠ `valve` is left out, as it has no child
       ╭─[test.kdl:2:20]
     1 │ policy "p" {
     2 │     fifo { eager { valve; use "leaf" } }
       ·                    ──┬──
       ·                      ╰── none of its slots is filled
     3 │     shared "leaf" each="worker" { worker }
       ╰────
      help: fill one of the slots of `valve`: `main`, `spare`
            why: a component with slots sorts tasks into them, and needs one child in each
    "#);
    insta::assert_snapshot!(self::plan("fifo { valve }").expect_err("nothing is left"), @r#"
      × policy `p`: 1 error

    Error: V4 policy::empty

      × nothing is left of policy `p`
       ╭─[test.kdl:2:12]
     1 │ policy "p" {
     2 │     fifo { valve }
       ·            ──┬──
       ·              ╰── left out, as none of its slots is filled
     3 │     shared "leaf" each="worker" { worker }
       ╰────
      help: fill one, with workers in it
    "#);
}

#[test]
fn the_rules_look_below_children_and_slots() {
    // A slot and a child that refuse nothing: the tree keeps every task, so nothing is wrong with it.
    let text = r#"policy "p" { fifo { router { each "worker" { use "leaf" }; fallback { eager { use "leaf" } } } }
        shared "leaf" each="worker" { worker } }"#;
    let findings = check(&policy(text), &catalogue());
    let messages: Vec<&str> = findings.iter().map(|finding| finding.message()).collect();
    assert_eq!(messages, Vec::<&str>::new());
    // A queue of nothing but itself, in the slot, is found.
    let text = text.replace("eager { use", "fifo order=1 { use");
    let findings = check(&policy(&text), &catalogue());
    assert!(findings.iter().any(|finding| finding.message().contains("`order` of `fifo`")), "{findings:?}");
}

#[test]
fn a_choice_is_one_of_its_texts() {
    let of = |order: &str| plan(&format!(r#"fifo order="{order}" {{ eager {{ use "leaf" }} }}"#));
    assert!(of("length").is_ok());
    let error = of("lenght").expect_err("it is wrong");
    assert!(error.contains(r#"expected one of "age", "length""#), "{error}");
}

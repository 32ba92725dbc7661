//! Parameters that are set from outside a policy's text.

use super::{catalogue, shown};
use crate::{Adjustment, Policy, Source, check, parse};
use insta::assert_snapshot;

const TEXT: &str = r#"policy "p" {
    fifo {
        eager {
            each "numa" { fifo ntasks-threshold=2 { eager { each "worker" { fifo { use "leaf" } } } } }
        }
    }
    shared "leaf" each="worker" { fifo { worker } }
}"#;

fn policy() -> Policy {
    parse("p.kdl", TEXT).expect("it is right").remove(0)
}

fn adjusted(set: &[&str]) -> Result<Policy, String> {
    let read: Result<Vec<Adjustment>, _> = set.iter().map(|text| Adjustment::parse(text)).collect();
    let adjusted = read.and_then(|adjustments| policy().adjusted(&adjustments));
    adjusted.map_err(|errors| errors.findings().iter().map(|finding| shown(finding)).collect::<Vec<_>>().join("\n"))
}

/// The lines of the policy that differ from the text above.
fn changed(set: &[&str]) -> String {
    let before: Vec<String> = policy().to_kdl().lines().map(str::to_owned).collect();
    let after = adjusted(set).expect("it is right").to_kdl();
    after.lines().filter(|line| !before.iter().any(|known| known == line)).map(str::trim).collect::<Vec<_>>().join("\n")
}

#[test]
fn a_name_means_each_component_a_path_those_below() {
    assert_snapshot!(changed(&["eager/fifo.ntasks-threshold=7"]), @r#"
policy "p+eager/fifo.ntasks-threshold=7" {
fifo ntasks-threshold=7 {
fifo ntasks-threshold=7 {
"#);
    assert_snapshot!(changed(&["fifo.exp-len-threshold=1e+3"]), @r#"
policy "p+fifo.exp-len-threshold=1000.0" {
fifo exp-len-threshold=1000.0 {
fifo ntasks-threshold=2 exp-len-threshold=1000.0 {
fifo exp-len-threshold=1000.0 {
fifo exp-len-threshold=1000.0 {
"#);
    assert_snapshot!(changed(&["leaf/fifo.ready=#true", "leaf/fifo.ntasks-threshold=3", "leaf/fifo.ntasks-threshold=4"]), @r#"
policy "p+leaf/fifo.ready=#true+leaf/fifo.ntasks-threshold=3+leaf/fifo.ntasks-threshold=4" {
fifo ready=#true ntasks-threshold=4 {
"#);
}

#[test]
fn what_is_not_there_is_named() {
    assert_snapshot!(adjusted(&["fifp.ntasks-threshold=7", "eager/worker.x=1"]).expect_err("neither is there"), @r#"
V7 policy::setting

  × policy `p` has no component `fifp`
  help: did you mean `fifo`?
V7 policy::setting

  × policy `p+fifp.ntasks-threshold=7` has no component `eager/worker`
  help: a path names components and slots from above, without what `each` adds: `mct/prio`
"#);
}

#[test]
fn a_setting_has_one_form() {
    for text in [
        "fifo",
        "fifo.=1",
        ".x=1",
        "fifo=1",
        "a//b.x=1",
        "fifo.x=1 y=2",
        "fifo.x=1; other",
        "fifo.x=1 { a }",
        "fifo.x=",
    ] {
        assert!(adjusted(&[text]).is_err(), "{text}");
    }
    assert_snapshot!(adjusted(&["fifo.ntasks-threshold"]).expect_err("there is no value"), @r#"
policy::setting

  × `fifo.ntasks-threshold` sets no parameter of a component
  help: write `component.parameter=value`, such as `mct.beta=2.0`
"#);
    let large = adjusted(&["fifo.ntasks-threshold=99999999999999999999"]).expect("the check refuses it");
    assert!(!check(&large, &catalogue()).is_empty());
}

#[test]
fn unknown_parameters_are_reported_at_the_component() {
    let adjusted = adjusted(&["leaf/fifo.ntask-threshold=1"]).expect("there is such a component");
    assert_snapshot!(check(&adjusted, &catalogue()).iter().map(|finding| shown(finding)).collect::<Vec<_>>().join("\n"), @r#"
V7 policy::parameter

  × `fifo` has no parameter `ntask-threshold`
   ╭─[p.kdl:7:35]
 6 │     }
 7 │     shared "leaf" each="worker" { fifo { worker } }
   ·                                   ──┬─
   ·                                     ╰── unknown parameter
 8 │ }
   ╰────
  help: did you mean `ntasks-threshold`?
        why: a component declares its parameters with type, range and default
"#);
}

#[test]
fn settings_stand_behind_the_name_of_a_policy() {
    let found = |name: &str| Source::find(name).and_then(|source| source.policy()).map(|policy| policy.name);
    assert_eq!(found("tree-heft+mct.beta=2.5").expect("it is right"), "tree-heft+mct.beta=2.5");
    assert_eq!(
        found("modular-heft+mct.beta=1e+3+mct/prio.ntasks-threshold=9").expect("it is right"),
        "tree-heft+mct.beta=1000.0+mct/prio.ntasks-threshold=9"
    );
    assert!(found("tree-heft+beta").is_err(), "that is the name of a policy, which does not exist");
}

#[test]
fn a_parameter_is_set_once() {
    let twice = Source::find("tree-heft+mct.beta=0+mct/prio.ntasks-threshold=9+mct.beta=50").expect_err("which?");
    assert_snapshot!(twice.findings().iter().map(|finding| shown(finding)).collect::<Vec<_>>().join("\n"), @r"
policy::setting

  × `mct.beta` is given twice, as 0 and as 50
  help: leave one of them out
");
    let narrower = Source::find("tree-heft+prio.ntasks-threshold=1+mct/prio.ntasks-threshold=2");
    assert!(narrower.is_ok(), "a path may say more");
}

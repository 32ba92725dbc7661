//! Levels and architectures that a machine does not have: their errors.

use super::wrong;
use insta::assert_snapshot;

#[test]
fn unknown_level() {
    assert_snapshot!(wrong(r#"policy "p" {
    eager { each "wroker" { worker } }
}"#), @r#"
V7 policy::level

  × there is no level `wroker` of the machine
   ╭─[test.kdl:2:18]
 1 │ policy "p" {
 2 │     eager { each "wroker" { worker } }
   ·                  ────┬───
   ·                      ╰── unknown level
 3 │ }
   ╰────
  help: did you mean `worker`?
"#);
}

#[test]
fn level_far_from_any() {
    assert_snapshot!(wrong(r#"policy "p" {
    eager { each "rack" { worker } }
}"#), @r#"
V7 policy::level

  × there is no level `rack` of the machine
   ╭─[test.kdl:2:18]
 1 │ policy "p" {
 2 │     eager { each "rack" { worker } }
   ·                  ───┬──
   ·                     ╰── unknown level
 3 │ }
   ╰────
  help: levels: `worker`, `memory-node`, `arch`, `machine`, `numa`, `package`, `l3`, `l2`, `core`,
        `combined-worker`
"#);
}

#[test]
fn unknown_arch() {
    assert_snapshot!(wrong(r#"policy "p" {
    eager { each "worker" arch="cudda" { worker } }
}"#), @r#"
V7 policy::arch

  × there is no architecture `cudda`
   ╭─[test.kdl:2:32]
 1 │ policy "p" {
 2 │     eager { each "worker" arch="cudda" { worker } }
   ·                                ───┬───
   ·                                   ╰── unknown architecture
 3 │ }
   ╰────
  help: architectures: `cpu`, `cuda`, `opencl`, `hip`, `sycl`, `mpi`, `fpga`
"#);
}

#[test]
fn arch_of_wrong_type() {
    assert_snapshot!(wrong(r#"policy "p" {
    eager { each "worker" arch=1 { worker } }
}"#), @r#"
V7 policy::each

  × `arch` is 1
   ╭─[test.kdl:2:32]
 1 │ policy "p" {
 2 │     eager { each "worker" arch=1 { worker } }
   ·                                ┬
   ·                                ╰── expected a text in quotes
 3 │ }
   ╰────
  help: write `arch="1"`, if that is its name
"#);
}

#[test]
fn unknown_property_of_each() {
    assert_snapshot!(wrong(r#"policy "p" {
    eager { each "worker" arhc="cpu" { worker } }
}"#), @r#"
V7 policy::each

  × `each` has no property `arhc`
   ╭─[test.kdl:2:27]
 1 │ policy "p" {
 2 │     eager { each "worker" arhc="cpu" { worker } }
   ·                           ─────┬────
   ·                                ╰── unknown property
 3 │ }
   ╰────
  help: did you mean `arch`?
"#);
}

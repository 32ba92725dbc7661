//! Policies with wrong names of components, parameters and slots: their errors.

use super::wrong;
use insta::assert_snapshot;

#[test]
fn unknown_component() {
    assert_snapshot!(wrong(r#"policy "p" {
    fifo { eagr { each "worker" { worker } } }
}"#), @r#"
V7 policy::component

  × there is no component `eagr`
   ╭─[test.kdl:2:12]
 1 │ policy "p" {
 2 │     fifo { eagr { each "worker" { worker } } }
   ·            ──┬─
   ·              ╰── unknown component
 3 │ }
   ╰────
  help: did you mean `eager`?
        components come from: flow-control, resource-mapping, special-purpose, worker
        why: a policy is made of the components that plugins offer and that are compiled in
"#);
}

#[test]
fn component_far_from_any() {
    assert_snapshot!(wrong(r#"policy "p" {
    fifo { quantum { worker } }
}"#), @r#"
V7 policy::component

  × there is no component `quantum`
   ╭─[test.kdl:2:12]
 1 │ policy "p" {
 2 │     fifo { quantum { worker } }
   ·            ───┬───
   ·               ╰── unknown component
 3 │ }
   ╰────
  help: components: `fifo`, `prio`, `lifo`, `eager`, `eager-calibration`, `mct`, `random`, `perfmodel-
        select`, `best-implementation`, `tee`, `sink`, `worker`, `combined-worker`
        components come from: flow-control, resource-mapping, special-purpose, worker
        why: a policy is made of the components that plugins offer and that are compiled in
"#);
}

#[test]
fn unknown_parameter() {
    assert_snapshot!(wrong(r#"policy "p" {
    fifo ntasks-treshold=2 { worker }
}"#), @r#"
V7 policy::parameter

  × `fifo` has no parameter `ntasks-treshold`
   ╭─[test.kdl:2:10]
 1 │ policy "p" {
 2 │     fifo ntasks-treshold=2 { worker }
   ·          ────────┬────────
   ·                  ╰── unknown parameter
 3 │ }
   ╰────
  help: did you mean `ntasks-threshold`?
        why: a component declares its parameters with type, range and default
"#);
}

#[test]
fn parameter_of_a_component_without_any() {
    assert_snapshot!(wrong(r#"policy "p" {
    fifo { eager depth=2 { each "worker" { worker } } }
}"#), @r#"
V7 policy::parameter

  × `eager` has no parameter `depth`
   ╭─[test.kdl:2:18]
 1 │ policy "p" {
 2 │     fifo { eager depth=2 { each "worker" { worker } } }
   ·                  ───┬───
   ·                     ╰── unknown parameter
 3 │ }
   ╰────
  help: there are no parameters of `eager`
        why: a component declares its parameters with type, range and default
"#);
}

#[test]
fn parameter_of_wrong_type() {
    assert_snapshot!(wrong(r#"policy "p" {
    fifo ntasks-threshold="two" ready=1 { worker }
}"#), @r#"
V7 policy::parameter

  × `ntasks-threshold` of `fifo` cannot be "two"
   ╭─[test.kdl:2:27]
 1 │ policy "p" {
 2 │     fifo ntasks-threshold="two" ready=1 { worker }
   ·                           ──┬──
   ·                             ╰── found "two", expected a whole number of at least 0
 3 │ }
   ╰────
  help: `ntasks-threshold`: tasks held at most; 0 means no limit (default 0)
        why: a component declares its parameters with type, range and default
V7 policy::parameter

  × `ready` of `fifo` cannot be 1
   ╭─[test.kdl:2:39]
 1 │ policy "p" {
 2 │     fifo ntasks-threshold="two" ready=1 { worker }
   ·                                       ┬
   ·                                       ╰── found 1, expected #true or #false
 3 │ }
   ╰────
  help: `ready`: prefers tasks whose data is there (default #false)
        why: a component declares its parameters with type, range and default
"#);
}

#[test]
fn parameter_beyond_all_numbers() {
    let text =
        "policy \"p\" {\n    fifo ntasks-threshold=99999999999999999999999999 exp-len-threshold=#inf { worker }\n}";
    assert_snapshot!(wrong(text), @r#"
    V7 policy::parameter

      × `ntasks-threshold` of `fifo` cannot be 1e26
       ╭─[test.kdl:2:27]
     1 │ policy "p" {
     2 │     fifo ntasks-threshold=99999999999999999999999999 exp-len-threshold=#inf { worker }
       ·                           ─────────────┬────────────
       ·                                        ╰── found 1e26, expected a whole number from 0 to 9223372036854775807
     3 │ }
       ╰────
      help: `ntasks-threshold`: tasks held at most; 0 means no limit (default 0)
            why: a component declares its parameters with type, range and default
    V7 policy::parameter

      × `exp-len-threshold` of `fifo` cannot be #inf
       ╭─[test.kdl:2:72]
     1 │ policy "p" {
     2 │     fifo ntasks-threshold=99999999999999999999999999 exp-len-threshold=#inf { worker }
       ·                                                                        ──┬─
       ·                                                                          ╰── found #inf, expected a number of at least 0 that is finite
     3 │ }
       ╰────
      help: `exp-len-threshold`: expected length held at most; 0 means no limit, in µs (default 0.0)
            why: a component declares its parameters with type, range and default
    "#);
    assert!(wrong(&text.replace("#inf", "1e400")).contains("found #inf, expected a number of at least 0"));
}

#[test]
fn parameter_out_of_range() {
    assert_snapshot!(wrong(r#"policy "p" {
    fifo ntasks-threshold=-1 exp-len-threshold=-0.5 { worker }
}"#), @r#"
V7 policy::parameter

  × `ntasks-threshold` of `fifo` cannot be -1
   ╭─[test.kdl:2:27]
 1 │ policy "p" {
 2 │     fifo ntasks-threshold=-1 exp-len-threshold=-0.5 { worker }
   ·                           ─┬
   ·                            ╰── found -1, expected a whole number of at least 0
 3 │ }
   ╰────
  help: `ntasks-threshold`: tasks held at most; 0 means no limit (default 0)
        why: a component declares its parameters with type, range and default
V7 policy::parameter

  × `exp-len-threshold` of `fifo` cannot be -0.5
   ╭─[test.kdl:2:48]
 1 │ policy "p" {
 2 │     fifo ntasks-threshold=-1 exp-len-threshold=-0.5 { worker }
   ·                                                ──┬─
   ·                                                  ╰── found -0.5, expected a number of at least 0
 3 │ }
   ╰────
  help: `exp-len-threshold`: expected length held at most; 0 means no limit, in µs (default 0.0)
        why: a component declares its parameters with type, range and default
"#);
}

#[test]
fn parameter_set_twice() {
    assert_snapshot!(wrong(r#"policy "p" {
    fifo ntasks-threshold=2 ready=#true ntasks-threshold=3 { worker }
}"#), @r#"
V7 policy::parameter

  × `ntasks-threshold` of `fifo` is set twice
   ╭─[test.kdl:2:41]
 1 │ policy "p" {
 2 │     fifo ntasks-threshold=2 ready=#true ntasks-threshold=3 { worker }
   ·          ─────────┬────────             ─────────┬────────
   ·                   │                              ╰── again here
   ·                   ╰── first here
 3 │ }
   ╰────
  help: leave one of them out
        why: a component declares its parameters with type, range and default
"#);
}

#[test]
fn slot_missing_and_misspelt() {
    assert_snapshot!(wrong(r#"policy "p" {
    perfmodel-select {
        perfmodel { worker }
        calibratr { worker }
    }
}"#), @r#"
V7 policy::slots

  × `perfmodel-select` has no slot `calibratr`
   ╭─[test.kdl:4:9]
 3 │         perfmodel { worker }
 4 │         calibratr { worker }
   ·         ────┬────
   ·             ╰── unknown slot
 5 │     }
   ╰────
  help: did you mean `calibrator`?
        why: a component with slots sorts tasks into them, and needs one child in each
V7 policy::slots

  × `perfmodel-select` lacks its slots `calibrator` and `no-perfmodel`
   ╭─[test.kdl:2:5]
 1 │ policy "p" {
 2 │     perfmodel-select {
   ·     ────────┬───────
   ·             ╰── expected `calibrator` and `no-perfmodel` below
 3 │         perfmodel { worker }
   ╰────
  help: add `calibrator { … }`: tasks whose model is not calibrated
        add `no-perfmodel { … }`: tasks without a model
        why: a component with slots sorts tasks into them, and needs one child in each
"#);
}

#[test]
fn slot_given_twice() {
    assert_snapshot!(wrong(r#"policy "p" {
    perfmodel-select {
        perfmodel { worker }
        calibrator { worker }
        no-perfmodel { worker }
        perfmodel { worker }
    }
}"#), @r"
V7 policy::slots

  × slot `perfmodel` of `perfmodel-select` is given twice
   ╭─[test.kdl:6:9]
 2 │     perfmodel-select {
 3 │         perfmodel { worker }
   ·         ────┬────
   ·             ╰── first here
 4 │         calibrator { worker }
 5 │         no-perfmodel { worker }
 6 │         perfmodel { worker }
   ·         ────┬────
   ·             ╰── again here
 7 │     }
   ╰────
  help: leave one of them out
        why: a component with slots sorts tasks into them, and needs one child in each
");
}

#[test]
fn slot_with_parameters_and_two_children() {
    assert_snapshot!(wrong(r#"policy "p" {
    perfmodel-select {
        perfmodel alpha=1.0 { worker; worker }
        calibrator { worker }
        no-perfmodel { worker }
    }
}"#), @r"
V7 policy::slots

  × `perfmodel` is a slot of `perfmodel-select` and has no parameters
   ╭─[test.kdl:3:19]
 2 │     perfmodel-select {
 3 │         perfmodel alpha=1.0 { worker; worker }
   ·                   ────┬────
   ·                       ╰── not here
 4 │         calibrator { worker }
   ╰────
  help: parameters are set at a component: at the slot's child, or at the one that has the slot
        why: a component with slots sorts tasks into them, and needs one child in each
V2 policy::arity

  × slot `perfmodel` takes one child, and 2 are given
   ╭─[test.kdl:3:39]
 2 │     perfmodel-select {
 3 │         perfmodel alpha=1.0 { worker; worker }
   ·         ────┬────                     ───┬──
   ·             │                            ╰── one too many
   ·             ╰── takes one child
 4 │         calibrator { worker }
   ╰────
  help: put a component between that takes several, such as `eager { … }`
        why: a component declares whether it takes no child (a leaf), one, or several
");
}

#[test]
fn each_where_a_slot_is_expected() {
    assert_snapshot!(wrong(r#"policy "p" {
    perfmodel-select {
        each "worker" { worker }
        perfmodel { worker }
        calibrator { each "numa" { worker } }
        no-perfmodel { worker }
    }
}"#), @r#"
V7 policy::slots

  × below `perfmodel-select` stand its slots
   ╭─[test.kdl:3:9]
 2 │     perfmodel-select {
 3 │         each "worker" { worker }
   ·         ──────┬──────
   ·               ╰── expected a slot
 4 │         perfmodel { worker }
   ╰────
  help: slots of `perfmodel-select`: `perfmodel`, `calibrator`, `no-perfmodel`
        `each` and `use` stand inside a slot
        why: a component with slots sorts tasks into them, and needs one child in each
V2 policy::each

  × `each "numa"` gives slot `calibrator` several children, and it takes one
   ╭─[test.kdl:5:22]
 4 │         perfmodel { worker }
 5 │         calibrator { each "numa" { worker } }
   ·         ─────┬────   ─────┬─────
   ·              │            ╰── one child for each numa
   ·              ╰── takes one child
 6 │         no-perfmodel { worker }
   ╰────
  help: put a component between that takes several: `eager { each "numa" { … } }`
        why: `each` repeats its children, so it needs a parent that takes several
"#);
}

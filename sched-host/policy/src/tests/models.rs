//! Policies that decide by performance models which tasks may not have: their errors.

use super::{shown, stalls};
use crate::{Catalogue, check, parse};
use insta::assert_snapshot;
use sched_core::{Family, Info};

#[test]
fn models_without_selection() {
    assert_snapshot!(stalls(r#"policy "p" {
    prio { mct { each "worker" { prio ntasks-threshold=30 { worker } } } }
}"#), @r#"
    V5 policy::models

      × `mct` decides by performance models, and may get tasks without one
       ╭─[test.kdl:2:12]
     1 │ policy "p" {
     2 │     prio { mct { each "worker" { prio ntasks-threshold=30 { worker } } } }
       ·            ─┬─
       ·             ╰── expected below a slot `perfmodel`
     3 │ }
       ╰────
      help: write `perfmodel-select { perfmodel { mct { … } }; calibrator { … }; no-perfmodel { … } }`
            why: a task whose model is missing or not calibrated has no expected length to decide by
"#);
}

#[test]
fn models_in_the_wrong_slot() {
    assert_snapshot!(stalls(r#"policy "p" {
    prio {
        perfmodel-select {
            perfmodel    { mct { use "leaf" } }
            calibrator   { eager-calibration { use "leaf" } }
            no-perfmodel { mct beta=0.5 { use "leaf" } }
        }
    }
    shared "leaf" each="worker" { worker }
}"#), @r#"
    V5 policy::models

      × `mct` decides by performance models, and may get tasks without one
       ╭─[test.kdl:6:28]
     5 │             calibrator   { eager-calibration { use "leaf" } }
     6 │             no-perfmodel { mct beta=0.5 { use "leaf" } }
       ·                            ─┬─
       ·                             ╰── expected below a slot `perfmodel`
     7 │         }
       ╰────
      help: write `perfmodel-select { perfmodel { mct { … } }; calibrator { … }; no-perfmodel { … } }`
            why: a task whose model is missing or not calibrated has no expected length to decide by
"#);
}

#[test]
fn models_that_are_shared_with_a_wrong_slot() {
    assert_snapshot!(stalls(r#"policy "p" {
    prio {
        perfmodel-select {
            perfmodel    { use "decide" }
            calibrator   { use "decide" }
            no-perfmodel { eager { use "leaf" } }
        }
    }
    shared "decide" { mct { use "leaf" } }
    shared "leaf" each="worker" { worker }
}"#), @r#"
    V5 policy::models

      × `mct` decides by performance models, and may get tasks without one
        ╭─[test.kdl:9:23]
      8 │     }
      9 │     shared "decide" { mct { use "leaf" } }
        ·                       ─┬─
        ·                        ╰── expected below a slot `perfmodel`
     10 │     shared "leaf" each="worker" { worker }
        ╰────
      help: write `perfmodel-select { perfmodel { mct { … } }; calibrator { … }; no-perfmodel { … } }`
            why: a task whose model is missing or not calibrated has no expected length to decide by
"#);
}

#[test]
fn models_where_nothing_selects() {
    let mct = Info::new("mct", Family::ResourceMapping, "").needs_models().may_refuse(false);
    let worker = Info::new("worker", Family::Worker, "");
    let catalogue = Catalogue::new([(mct.describe(), "p"), (worker.describe(), "p")]);
    let policies = parse("test.kdl", r#"policy "p" { mct { each "worker" { worker } } }"#).expect("the text is sound");
    let findings = check(&policies[0], &catalogue);
    assert_snapshot!(findings.iter().map(|finding| shown(finding)).collect::<String>(), @r#"
    V5 policy::models

      × `mct` decides by performance models, and may get tasks without one
       ╭─[test.kdl:1:14]
     1 │ policy "p" { mct { each "worker" { worker } } }
       ·              ─┬─
       ·               ╰── expected below a slot `perfmodel`
       ╰────
      help: load a plugin with a component that has a slot `perfmodel`, such as `perfmodel-select`
            why: a task whose model is missing or not calibrated has no expected length to decide by
"#);
}

//! Policies in which a task would be refused that nobody keeps: their errors.

use super::{stalls, stock};
use crate::{check, read};
use insta::assert_snapshot;

#[test]
fn bounded_root() {
    assert_snapshot!(stalls(r#"policy "p" {
    fifo ntasks-threshold=8 { eager { each "worker" { worker } } }
}"#), @r#"
    V1 policy::refusal

      × the root may refuse tasks: no unbounded queue stands above `fifo`, which is bounded
       ╭─[test.kdl:2:10]
     1 │ policy "p" {
     2 │     fifo ntasks-threshold=8 { eager { each "worker" { worker } } }
       ·          ─────────┬────────
       ·                   ╰── full at this bound
     3 │ }
       ╰────
      help: set `ntasks-threshold` to 0, or put an unbounded queue at the top: `fifo { fifo { … } }`
            why: a task that the root refuses is lost: an unbounded queue must be above all that may refuse
"#);
}

#[test]
fn root_bounded_by_length() {
    assert_snapshot!(stalls(r#"policy "p" {
    prio ntasks-threshold=0 exp-len-threshold=1e6 { worker }
}"#), @r#"
    V1 policy::refusal

      × the root may refuse tasks: no unbounded queue stands above `prio`, which is bounded
       ╭─[test.kdl:2:29]
     1 │ policy "p" {
     2 │     prio ntasks-threshold=0 exp-len-threshold=1e6 { worker }
       ·                             ──────────┬──────────
       ·                                       ╰── full at this bound
     3 │ }
       ╰────
      help: set `exp-len-threshold` to 0, or put an unbounded queue at the top: `fifo { prio { … } }`
            why: a task that the root refuses is lost: an unbounded queue must be above all that may refuse
"#);
}

#[test]
fn root_without_a_queue() {
    assert_snapshot!(stalls(r#"policy "p" {
    eager { each "worker" { worker } }
}"#), @r#"
    V1 policy::refusal

      × the root may refuse tasks: no queue above `eager` keeps them for its workers
       ╭─[test.kdl:2:5]
     1 │ policy "p" {
     2 │     eager { each "worker" { worker } }
       ·     ──┬──                   ───┬──
       ·       │                        ╰── this worker
       ·       ╰── keeps no task, and hands a worker one only when it pulls
     3 │ }
       ╰────
      help: put an unbounded queue at the top: `fifo { eager { … } }`
            why: a task that the root refuses is lost: an unbounded queue must be above all that may refuse
"#);
}

#[test]
fn bounded_queues_below_a_root_without_queue() {
    assert_snapshot!(stalls(r#"policy "p" {
    eager {
        each "worker" arch="cpu"  { fifo { worker } }
        each "worker" arch="cuda" { best-implementation { fifo ntasks-threshold=2 { worker } } }
    }
}"#), @r#"
    V1 policy::refusal

      × the root may refuse tasks: no unbounded queue stands above `fifo`, which is bounded
       ╭─[test.kdl:4:64]
     1 │ policy "p" {
     2 │     eager {
       ·     ──┬──
       ·       ╰── tasks enter here
     3 │         each "worker" arch="cpu"  { fifo { worker } }
     4 │         each "worker" arch="cuda" { best-implementation { fifo ntasks-threshold=2 { worker } } }
       ·                                                                ─────────┬────────
       ·                                                                         ╰── full at this bound
     5 │     }
       ╰────
      help: put an unbounded queue at the top: `fifo { eager { … } }`
            why: a task that the root refuses is lost: an unbounded queue must be above all that may refuse
"#);
}

#[test]
fn bounded_queue_that_is_shared() {
    assert_snapshot!(stalls(r#"policy "p" {
    random { use "queue" }
    shared "queue" each="worker" { prio exp-len-threshold=5.0 { worker } }
}"#), @r#"
    V1 policy::refusal

      × the root may refuse tasks: no unbounded queue stands above `prio`, which is bounded
       ╭─[test.kdl:3:41]
     1 │ policy "p" {
     2 │     random { use "queue" }
       ·     ───┬──
       ·        ╰── tasks enter here
     3 │     shared "queue" each="worker" { prio exp-len-threshold=5.0 { worker } }
       ·                                         ──────────┬──────────
       ·                                                   ╰── full at this bound
     4 │ }
       ╰────
      help: put an unbounded queue at the top: `fifo { random { … } }`
            why: a task that the root refuses is lost: an unbounded queue must be above all that may refuse
"#);
}

#[test]
fn bounded_queue_above_an_unbounded_one() {
    assert_snapshot!(stalls(r#"policy "p" {
    fifo ntasks-threshold=2 { fifo { eager { each "worker" { worker } } } }
}"#), @r#"
    V1 policy::refusal

      × the root may refuse tasks: no unbounded queue stands above `fifo`, which is bounded
       ╭─[test.kdl:2:10]
     1 │ policy "p" {
     2 │     fifo ntasks-threshold=2 { fifo { eager { each "worker" { worker } } } }
       ·          ─────────┬────────
       ·                   ╰── full at this bound
     3 │ }
       ╰────
      help: set `ntasks-threshold` to 0, or put an unbounded queue at the top: `fifo { fifo { … } }`
            why: a task that the root refuses is lost: an unbounded queue must be above all that may refuse
"#);
}

#[test]
fn root_that_may_refuse() {
    assert_snapshot!(stalls(r#"policy "p" {
    eager-calibration { each "worker" { fifo { worker } } }
}"#), @r#"
    V1 policy::refusal

      × the root may refuse tasks: no unbounded queue stands above `eager-calibration`, which may refuse
       ╭─[test.kdl:2:5]
     1 │ policy "p" {
     2 │     eager-calibration { each "worker" { fifo { worker } } }
       ·     ────────┬────────
       ·             ╰── may refuse a task
     3 │ }
       ╰────
      help: put an unbounded queue at the top: `fifo { eager-calibration { … } }`
            why: a task that the root refuses is lost: an unbounded queue must be above all that may refuse
"#);
}

#[test]
fn slots_at_the_root() {
    assert_snapshot!(stalls(r#"policy "p" {
    perfmodel-select {
        perfmodel    { mct { use "leaf" } }
        calibrator   { eager-calibration { use "leaf" } }
        no-perfmodel { random { use "leaf" } }
    }
    shared "leaf" each="worker" { fifo { worker } }
}"#), @r#"
    V1 policy::refusal

      × the root may refuse tasks: no unbounded queue stands above `perfmodel-select`, which may refuse
       ╭─[test.kdl:2:5]
     1 │ policy "p" {
     2 │     perfmodel-select {
       ·     ────────┬───────
       ·             ╰── may refuse a task
     3 │         perfmodel    { mct { use "leaf" } }
       ╰────
      help: put an unbounded queue at the top: `fifo { perfmodel-select { … } }`
            why: a task that the root refuses is lost: an unbounded queue must be above all that may refuse
"#);
}

#[test]
fn decisions_above_queues_without_bound_need_none_above_them() {
    for tree in [
        r#"random { use "queue" }"#,
        r#"eager-calibration { use "queue" }"#,
        r#"perfmodel-select { perfmodel { mct { use "queue" } }; calibrator { random { use "queue" } }; no-perfmodel { use "only" } }"#,
        r#"user-choice { eager { use "queue" }; random { use "queue" } }"#,
    ] {
        let check = |queue: &str| {
            let text = format!(
                r#"policy "p" {{ {tree}; shared "queue" each="worker" {{ {queue} {{ worker }} }}; shared "only" {{ fifo {{ eager {{ use "queue" }} }} }} }}"#
            );
            let policy = &read("test.kdl", &text).policies[0];
            let findings = check(policy, &stock());
            findings.iter().filter(|finding| finding.is_error()).map(|finding| finding.id()).collect::<Vec<_>>()
        };
        assert_eq!(check("fifo"), [""; 0], "{tree}");
        assert_eq!(check("fifo ntasks-threshold=2"), ["V1"], "{tree}");
    }
}

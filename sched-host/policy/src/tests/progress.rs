//! Policies in which tasks would stop moving: their errors.

use super::{shown, stalls, stock};
use crate::{Catalogue, check, parse};
use insta::assert_snapshot;
use sched_core::{Family, Info, Storage};

#[test]
fn queue_that_does_not_pump_above_another() {
    assert_snapshot!(stalls(r#"policy "p" {
    lifo { eager { each "worker" { fifo ntasks-threshold=2 { worker } } } }
}"#), @r#"
    V3 policy::pump

      × nothing moves tasks from `lifo` to `fifo`
       ╭─[test.kdl:2:36]
     1 │ policy "p" {
     2 │     lifo { eager { each "worker" { fifo ntasks-threshold=2 { worker } } } }
       ·     ──┬─                           ──┬─
       ·       │                              ╰── asks above for more, and does not pull
       ·       ╰── keeps tasks until it is pulled
     3 │ }
       ╰────
      help: leave out one of the two queues, or put `fifo` in the place of `lifo`
            why: between two queues tasks move only if the upper one pumps, and the lower one says when it has
            room
"#);
}

#[test]
fn queue_that_asks_for_nothing_below_another() {
    assert_snapshot!(stalls(r#"policy "p" {
    fifo { random { use "stack" } }
    shared "stack" each="worker" { lifo { worker } }
}"#), @r#"
    V3 policy::pump

      × nothing moves tasks from `fifo` to `lifo`
       ╭─[test.kdl:3:36]
     1 │ policy "p" {
     2 │     fifo { random { use "stack" } }
       ·     ──┬─
       ·       ╰── sends tasks down when it is asked for more
     3 │     shared "stack" each="worker" { lifo { worker } }
       ·                                    ──┬─
       ·                                      ╰── never asks above for more
     4 │ }
       ╰────
      help: leave out one of the two queues, or put `fifo` in the place of `lifo`
            why: between two queues tasks move only if the upper one pumps, and the lower one says when it has
            room
"#);
}

#[test]
fn two_queues_that_wait_to_be_pulled() {
    assert_snapshot!(stalls(r#"policy "p" {
    lifo { lifo { eager { each "worker" { worker } } } }
}"#), @r#"
    V3 policy::pump

      × nothing moves tasks from `lifo` to `lifo`
       ╭─[test.kdl:2:12]
     1 │ policy "p" {
     2 │     lifo { lifo { eager { each "worker" { worker } } } }
       ·     ──┬─   ──┬─
       ·       │      ╰── never asks above for more
       ·       ╰── keeps tasks until it is pulled
     3 │ }
       ╰────
      help: leave out one of the two queues, or put `fifo` in the place of both
            why: between two queues tasks move only if the upper one pumps, and the lower one says when it has
            room
"#);
}

#[test]
fn several_children_of_a_component_that_does_not_choose() {
    assert_snapshot!(stalls(r#"policy "p" {
    fifo { tee { each "worker" { worker } } }
}"#), @r#"
    V2 policy::family

      × `tee` has several children, and is of the special-purpose family
       ╭─[test.kdl:2:12]
     1 │ policy "p" {
     2 │     fifo { tee { each "worker" { worker } } }
       ·            ─┬─
       ·             ╰── does not choose among children
     3 │ }
       ╰────
      help: give it one child, such as `tee { eager { … } }`
            or its plugin is wrong: a component that chooses is of the resource-mapping family, or has slots
            why: only a component that chooses, or that has slots, knows which of several children a task is for
"#);
}

#[test]
fn everything_is_reported_in_one_go() {
    assert_snapshot!(stalls(r#"policy "p" {
    fifo ntasks-threshold=8 {
        eager {
            each "wroker" { worker }
            each "worker" { fifo depth=2 { mct { worker } } }
        }
    }
}"#), @r#"
    V7 policy::level

      × there is no level `wroker` of the machine
       ╭─[test.kdl:4:18]
     3 │         eager {
     4 │             each "wroker" { worker }
       ·                  ────┬───
       ·                      ╰── unknown level
     5 │             each "worker" { fifo depth=2 { mct { worker } } }
       ╰────
      help: did you mean `worker`?
    V7 policy::parameter

      × `fifo` has no parameter `depth`
       ╭─[test.kdl:5:34]
     4 │             each "wroker" { worker }
     5 │             each "worker" { fifo depth=2 { mct { worker } } }
       ·                                  ───┬───
       ·                                     ╰── unknown parameter
     6 │         }
       ╰────
      help: parameters of `fifo`: `ntasks-threshold`, `exp-len-threshold`, `ready`, `sorted`
            why: a component declares its parameters with type, range and default
    V1 policy::refusal

      × the root may refuse tasks: no unbounded queue stands above `fifo`, which is bounded
       ╭─[test.kdl:2:10]
     1 │ policy "p" {
     2 │     fifo ntasks-threshold=8 {
       ·          ─────────┬────────
       ·                   ╰── full at this bound
     3 │         eager {
       ╰────
      help: set `ntasks-threshold` to 0, or put an unbounded queue at the top: `fifo { fifo { … } }`
            why: a task that the root refuses is lost: an unbounded queue must be above all that may refuse
    V5 policy::models

      × `mct` decides by performance models, and may get tasks without one
       ╭─[test.kdl:5:44]
     4 │             each "wroker" { worker }
     5 │             each "worker" { fifo depth=2 { mct { worker } } }
       ·                                            ─┬─
       ·                                             ╰── expected below a slot `perfmodel`
     6 │         }
       ╰────
      help: write `perfmodel-select { perfmodel { mct { … } }; calibrator { … }; no-perfmodel { … } }`
            why: a task whose model is missing or not calibrated has no expected length to decide by
"#);
}

#[test]
fn workers_that_would_have_to_pull_through_what_sorts() {
    let text = r#"policy "p" {
    fifo {
        perfmodel-select {
            perfmodel    { mct { use "leaf" } }
            calibrator   { eager-calibration { use "leaf" } }
            no-perfmodel { fifo { eager { use "leaf" } } }
        }
    }
    shared "leaf" each="worker" { worker }
}"#;
    let policies = parse("test.kdl", text).expect("the text is sound");
    let findings = check(&policies[0], &stock());
    assert_snapshot!(findings.iter().map(|finding| shown(finding)).collect::<String>(), @r#"
V3 policy::push

  × no worker gets what `mct` leaves for it to pull, through `perfmodel-select`
   ╭─[test.kdl:4:28]
 2 │     fifo {
 3 │         perfmodel-select {
   ·         ────────┬───────
   ·                 ╰── pulls end here
 4 │             perfmodel    { mct { use "leaf" } }
   ·                            ─┬─
   ·                             ╰── hands a worker a task only when it pulls
 5 │             calibrator   { eager-calibration { use "leaf" } }
   ╰────
    ╭─[test.kdl:9:35]
  8 │     }
  9 │     shared "leaf" each="worker" { worker }
    ·                                   ───┬──
    ·                                      ╰── this worker
 10 │ }
    ╰────
  help: put a queue above the worker: `fifo ntasks-threshold=2 { worker }`
        why: a component that sorts tasks reacts to a pull by a push, so workers cannot pull tasks through
        it
"#);
}

#[test]
fn a_queue_that_is_only_pulled_above_what_sorts() {
    let lifo = Info::new("lifo", Family::FlowControl, "Gives back the task that was pushed last.");
    let lifo = (lifo.storage(Storage::Unbounded).pulled_only().describe(), "lifo");
    let stock = sched_components::stock();
    let offers = stock.iter().map(|offer| (offer.info().describe(), "stock"));
    let catalogue = Catalogue::new(offers.chain([lifo]));
    let shown_of = |text: &str| {
        let policies = parse("test.kdl", text).expect("the text is sound");
        check(&policies[0], &catalogue).iter().map(|finding| shown(finding)).collect::<String>()
    };
    let text = r#"policy "p" {
    lifo {
        user-choice {
            each "worker" { best-implementation { worker } }
        }
    }
}"#;
    assert_snapshot!(shown_of(text), @r#"
V3 policy::sort

  × nothing moves tasks from `lifo` to workers, through `user-choice`
   ╭─[test.kdl:3:9]
 1 │ policy "p" {
 2 │     lifo {
   ·     ──┬─
   ·       ╰── keeps tasks until it is pulled
 3 │         user-choice {
   ·         ─────┬─────
   ·              ╰── asks above for more, and does not pull
 4 │             each "worker" { best-implementation { worker } }
   ·                                                   ───┬──
   ·                                                      ╰── this worker
 5 │         }
   ╰────
  help: put `fifo` in the place of `lifo`
        why: a component that sorts tasks reacts to a pull by a push, so the queue above it must send them
        down
"#);
    assert_eq!(shown_of(&text.replace("lifo", "fifo")), "");
    // Tasks are pulled through what does not sort.
    assert_eq!(shown_of(&text.replace("user-choice", "random")), "");
    // Queues below are the only problem where there are some.
    let queued = text.replace("best-implementation", "fifo ntasks-threshold=2");
    assert_eq!(shown_of(&queued).matches("V3 policy::").count(), 1, "{}", shown_of(&queued));
}

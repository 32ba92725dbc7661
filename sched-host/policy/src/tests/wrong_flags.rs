//! Flags of the simple scheduler that are unknown, missing or contradict each other: their errors.

use super::{shown, stock};
use crate::{SimpleFlags, check};
use insta::assert_snapshot;

fn wrong(text: &str) -> String {
    let found = SimpleFlags::parse(text).and_then(|flags| SimpleFlags::user_choice("simple", &flags, &stock()));
    shown(&found.expect_err("something is wrong"))
}

#[test]
fn unknown_words_get_a_suggestion() {
    assert_snapshot!(wrong("mct decide-wrokers fifos-bellow ready heft beta=2.0"), @r"
      × simple scheduler: 3 errors

    Error: V7 policy::flags

      × there is no flag `decide-wrokers` of a simple scheduler
       ╭─[simple scheduler:1:5]
     1 │ mct decide-wrokers fifos-bellow ready heft beta=2.0
       ·     ───────┬──────
       ·            ╰── unknown flag
       ╰────
      help: did you mean `decide-workers`?

    Error: V7 policy::flags

      × there is no flag `fifos-bellow` of a simple scheduler
       ╭─[simple scheduler:1:20]
     1 │ mct decide-wrokers fifos-bellow ready heft beta=2.0
       ·                    ──────┬─────
       ·                          ╰── unknown flag
       ╰────
      help: did you mean `fifos-below`?

    Error: V7 policy::flags

      × there is no flag `heft` of a simple scheduler
       ╭─[simple scheduler:1:39]
     1 │ mct decide-wrokers fifos-bellow ready heft beta=2.0
       ·                                       ──┬─
       ·                                         ╰── unknown flag
       ╰────
      help: flags: `decide-workers`, `decide-memory-nodes`, `decide-archs`, `decide-always`, `perfmodel`, `fifo-
            above`, `fifo-above-prio`, `fifos-below`, `fifos-below-prio`, `ready`, `ready-first`, `exp`, `no-
            limit`, `ws-below`, `impl`, `combined-workers`
    ");
}

#[test]
fn words_that_need_others_say_which() {
    assert_snapshot!(wrong("eager fifo-above ready exp-len-threshold=1e6"), @r"
      × simple scheduler: 3 errors

    Error: V7 policy::flags

      × nothing says among what `eager` decides
       ╭─[simple scheduler:1:1]
     1 │ eager fifo-above ready exp-len-threshold=1e6
       · ──┬──
       ·   ╰── decides
       ╰────
      help: add `decide-workers`, `decide-memory-nodes` or `decide-archs`

    Error: V7 policy::flags

      × `ready` is about the queues below, and there are none
       ╭─[simple scheduler:1:18]
     1 │ eager fifo-above ready exp-len-threshold=1e6
       ·                  ──┬──
       ·                    ╰── of which queues?
       ╰────
      help: add `fifos-below` or `fifos-below-prio`

    Error: V7 policy::flags

      × `exp-len-threshold` is about the queues below, and there are none
       ╭─[simple scheduler:1:24]
     1 │ eager fifo-above ready exp-len-threshold=1e6
       ·                        ──────────┬──────────
       ·                                  ╰── of which queues?
       ╰────
      help: add `fifos-below` or `fifos-below-prio`
    ");
}

// Longer than 60 lines because of its golden text.
#[test]
fn contradictions_are_explained() {
    let words = "eager decide-memnodes decide-archs fifos-below-prio ready-first no-limit ntasks-threshold=0 impl impl";
    assert_snapshot!(wrong(words), @r"
      × simple scheduler: 5 errors

    Error: V7 policy::flags

      × `impl` is given twice
       ╭─[simple scheduler:1:98]
     1 │ eager decide-memnodes decide-archs fifos-below-prio ready-first no-limit ntasks-threshold=0 impl impl
       ·                                                                                             ──┬─ ──┬─
       ·                                                                                               │    ╰── again here
       ·                                                                                               ╰── first here
       ╰────

    Error: V7 policy::flags

      × `decide-memory-nodes` and `decide-archs` contradict each other
       ╭─[simple scheduler:1:23]
     1 │ eager decide-memnodes decide-archs fifos-below-prio ready-first no-limit ntasks-threshold=0 impl impl
       ·       ───────┬─────── ──────┬─────
       ·              │              ╰── among these
       ·              ╰── or these
       ╰────
      help: a branch is a worker, a memory node or an architecture: leave out all but one

    Error: V7 policy::flags

      × `ready-first` and `fifos-below-prio` contradict each other
       ╭─[simple scheduler:1:53]
     1 │ eager decide-memnodes decide-archs fifos-below-prio ready-first no-limit ntasks-threshold=0 impl impl
       ·                                    ────────┬─────── ─────┬─────
       ·                                            │             ╰── this
       ·                                            ╰── or this
       ╰────
      help: one sorts by data first, the other by priority: write `ready`, or `fifos-below`

    Error: V7 policy::flags

      × `ntasks-threshold` and `no-limit` contradict each other
       ╭─[simple scheduler:1:74]
     1 │ eager decide-memnodes decide-archs fifos-below-prio ready-first no-limit ntasks-threshold=0 impl impl
       ·                                                                 ────┬─── ─────────┬────────
       ·                                                                     │             ╰── this
       ·                                                                     ╰── or this
       ╰────
      help: a queue has a bound or has none: leave out one of them

    Error: V7 policy::flags

      × `ntasks-threshold` is 0
       ╭─[simple scheduler:1:91]
     1 │ eager decide-memnodes decide-archs fifos-below-prio ready-first no-limit ntasks-threshold=0 impl impl
       ·                                                                                           ┬
       ·                                                                                           ╰── expected a whole number of tasks from 1
       ╰────
      help: write `no-limit` for queues without bound
    ");
    assert_snapshot!(wrong("eager decide-archs combined-workers fifo-above"), @r"
      × simple scheduler: 1 error

    Error: V7 policy::flags

      × combined workers are decided among workers
       ╭─[simple scheduler:1:20]
     1 │ eager decide-archs combined-workers fifo-above
       ·                    ────────┬───────
       ·                            ╰── not below a memory node or an architecture
       ╰────
      help: write `decide-workers`, or leave out `combined-workers`
    ");
}

#[test]
fn what_is_missing_is_said() {
    let three = "mct decide-workers fifos-below; random decide-archs; mct decide-workers perfmodel fifo-above";
    assert_snapshot!(wrong(three), @r"
      × simple scheduler: 4 errors

    Error: V7 policy::flags

      × `mct` decides by performance models, and may get tasks without one
       ╭─[simple scheduler:1:1]
     1 │ mct decide-workers fifos-below
       · ─┬─
       ·  ╰── needs models
       ╰────
      help: add `perfmodel`

    Error: V7 policy::flags

      × nothing keeps tasks while queues below are full
       ╭─[simple scheduler:1:1]
     1 │ mct decide-workers fifos-below
       · ─┬─
       ·  ╰── keeps no task
       ╰────
      help: add `fifo-above`, or `no-limit` for queues below that are never full

    Error: V7 policy::flags

      × nothing keeps tasks while no worker asks for one
       ╭─[simple scheduler:1:1]
     1 │ random decide-archs
       · ───┬──
       ·    ╰── keeps no task
       ╰────
      help: add `fifo-above`, or `impl`

    Error: V7 policy::flags

      × below `perfmodel`, tasks are pushed, and here workers would have to pull them
       ╭─[simple scheduler:1:1]
     1 │ mct decide-workers perfmodel fifo-above
       · ─┬─
       ·  ╰── leaves tasks to be pulled by its workers
       ╰────
      help: add `fifos-below` or `impl`
    ");
}

#[test]
fn what_is_no_list_of_words() {
    assert_snapshot!(wrong("eager 3 decide-workers { worker }"), @r"
      × simple scheduler: 2 errors

    Error: V7 policy::parameter

      × `eager` is given 3 without a name
       ╭─[simple scheduler:1:7]
     1 │ eager 3 decide-workers { worker }
       ·       ┬
       ·       ╰── expected a parameter, `name=value`
       ╰────
      help: write `eager name=3`, or `{ … }` if it is a child

    Error: V7 policy::flags

      × a simple scheduler is described by words, and has no children
       ╭─[simple scheduler:1:26]
     1 │ eager 3 decide-workers { worker }
       ·                          ───┬──
       ·                             ╰── this is below the decision
       ╰────
      help: write a policy for a tree of your own: `sched policies` prints this one as a start
    ");
    assert_snapshot!(wrong(""), @r"
      × simple scheduler: 1 error

    Error: V7 policy::flags

      × a simple scheduler needs a component that decides
      help: write `eager decide-workers fifo-above`, say
    ");
    assert!(SimpleFlags::from_names(["eager", "decide-workers", ";", "eager", "decide-archs"]).is_err());
    assert!(SimpleFlags::from_names::<&str>([]).is_err());
    assert!(SimpleFlags::user_choice("none", &[], &stock()).is_err());
}

#[test]
fn an_unknown_decision_is_found_by_the_check() {
    let flags = SimpleFlags::from_names(["mtc", "decide-workers", "fifo-above"]).expect("the words are sound");
    let findings = check(&flags.policy("p", &stock()).expect("it is built"), &stock());
    assert!(shown(&findings[0]).contains("did you mean `mct`?"), "{}", shown(&findings[0]));
}

#[test]
fn a_bound_is_given_once_and_has_a_limit() {
    let words = "eager decide-workers fifo-above fifos-below ntasks-threshold=4294967296 ntasks-threshold=2";
    assert_snapshot!(wrong(words), @r"
      × simple scheduler: 2 errors

    Error: V7 policy::flags

      × `ntasks-threshold` is given twice
       ╭─[simple scheduler:1:73]
     1 │ eager decide-workers fifo-above fifos-below ntasks-threshold=4294967296 ntasks-threshold=2
       ·                                             ─────────────┬───────────── ─────────┬────────
       ·                                                          │                       ╰── again here
       ·                                                          ╰── first here
       ╰────

    Error: V7 policy::flags

      × `ntasks-threshold` is 4294967296
       ╭─[simple scheduler:1:62]
     1 │ eager decide-workers fifo-above fifos-below ntasks-threshold=4294967296 ntasks-threshold=2
       ·                                                              ─────┬────
       ·                                                                   ╰── expected 4294967295 tasks at most
       ╰────
      help: write `no-limit` for queues without bound
    ");
    assert!(SimpleFlags::parse(&words.replace("=4294967296 ntasks-threshold=2", "=4294967295")).is_ok());
}

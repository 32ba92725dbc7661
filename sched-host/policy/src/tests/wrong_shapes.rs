//! Policies of wrong shape, and wrong sharing: their errors.

use super::wrong;
use insta::assert_snapshot;

#[test]
fn leaf_with_a_child() {
    assert_snapshot!(wrong(r#"policy "p" {
    fifo { worker { fifo } }
}"#), @r#"
V2 policy::arity

  × `worker` takes no child
   ╭─[test.kdl:2:21]
 1 │ policy "p" {
 2 │     fifo { worker { fifo } }
   ·            ───┬──   ──┬─
   ·               │       ╰── this is below a leaf
   ·               ╰── the leaf
 3 │ }
   ╰────
  help: close its braces before this, or move the child above the leaf
        why: a component declares whether it takes no child (a leaf), one, or several
V2 policy::arity

  × `fifo` has no child
   ╭─[test.kdl:2:21]
 1 │ policy "p" {
 2 │     fifo { worker { fifo } }
   ·                     ──┬─
   ·                       ╰── expected exactly one child below
 3 │ }
   ╰────
  help: a tree ends in workers: give it a child that leads to one
        why: a component declares whether it takes no child (a leaf), one, or several
"#);
}

#[test]
fn one_child_missing() {
    assert_snapshot!(wrong(r#"policy "p" {
    fifo
}"#), @r#"
V2 policy::arity

  × `fifo` has no child
   ╭─[test.kdl:2:5]
 1 │ policy "p" {
 2 │     fifo
   ·     ──┬─
   ·       ╰── expected exactly one child below
 3 │ }
   ╰────
  help: a tree ends in workers: give it a child that leads to one
        why: a component declares whether it takes no child (a leaf), one, or several
"#);
}

#[test]
fn one_child_too_many() {
    assert_snapshot!(wrong(r#"policy "p" {
    fifo {
        eager { each "worker" { worker } }
        worker
    }
}"#), @r#"
V2 policy::arity

  × `fifo` takes one child, and 2 are given
   ╭─[test.kdl:4:9]
 1 │ policy "p" {
 2 │     fifo {
   ·     ──┬─
   ·       ╰── takes one child
 3 │         eager { each "worker" { worker } }
 4 │         worker
   ·         ───┬──
   ·            ╰── one too many
 5 │     }
   ╰────
  help: put a component between that takes several, such as `eager { … }`
        why: a component declares whether it takes no child (a leaf), one, or several
"#);
}

#[test]
fn several_children_missing() {
    assert_snapshot!(wrong(r#"policy "p" {
    fifo { eager { } }
}"#), @r#"
V2 policy::arity

  × `eager` has no child
   ╭─[test.kdl:2:12]
 1 │ policy "p" {
 2 │     fifo { eager { } }
   ·            ──┬──
   ·              ╰── expected one or more children below
 3 │ }
   ╰────
  help: write `eager { each "worker" { worker } }`
        why: a component declares whether it takes no child (a leaf), one, or several
"#);
}

#[test]
fn each_below_a_component_that_takes_one() {
    assert_snapshot!(wrong(r#"policy "p" {
    fifo { each "worker" { worker } }
}"#), @r#"
V2 policy::each

  × `each "worker"` gives `fifo` several children, and it takes one
   ╭─[test.kdl:2:12]
 1 │ policy "p" {
 2 │     fifo { each "worker" { worker } }
   ·     ──┬─   ──────┬──────
   ·       │          ╰── one child for each worker
   ·       ╰── takes one child
 3 │ }
   ╰────
  help: put a component between that takes several: `eager { each "worker" { … } }`
        why: `each` repeats its children, so it needs a parent that takes several
"#);
}

#[test]
fn each_of_nothing() {
    assert_snapshot!(wrong(r#"policy "p" {
    fifo { eager { each "worker" } }
}"#), @r#"
V2 policy::arity

  × `each "worker"` repeats nothing
   ╭─[test.kdl:2:20]
 1 │ policy "p" {
 2 │     fifo { eager { each "worker" } }
   ·                    ──────┬──────
   ·                          ╰── expected a component in its braces
 3 │ }
   ╰────
  help: write `each "worker" { worker }`
        why: a component declares whether it takes no child (a leaf), one, or several
"#);
}

#[test]
fn leaf_that_is_no_worker() {
    assert_snapshot!(wrong(r#"policy "p" {
    fifo { sink }
}"#), @r#"
V4 policy::leaf

  × `sink` is a leaf and not a worker
   ╭─[test.kdl:2:12]
 1 │ policy "p" {
 2 │     fifo { sink }
   ·            ──┬─
   ·              ╰── of the special-purpose family
 3 │ }
   ╰────
  help: its plugin is wrong: a component that is not a worker declares children
        why: a task that reaches a leaf must be given to a worker there
"#);
}

#[test]
fn undefined_use() {
    assert_snapshot!(wrong(r#"policy "p" {
    fifo { eager { use "leef" } }
    shared "leaf" each="worker" { worker }
}"#), @r#"
V7 policy::shared

  × nothing shared is called `leef`
   ╭─[test.kdl:2:20]
 1 │ policy "p" {
 2 │     fifo { eager { use "leef" } }
   ·                    ─────┬────
   ·                         ╰── undefined
 3 │     shared "leaf" each="worker" { worker }
   ╰────
  help: did you mean `leaf`?
        add `shared "leef" each="worker" { … }` to the policy or to its file
        why: `use "name"` links to `shared "name"` of the same policy or file, which is one component
"#);
}

#[test]
fn use_of_several_where_one_is_taken() {
    assert_snapshot!(wrong(r#"policy "p" {
    fifo { use "leaf" }
    shared "leaf" each="worker" { worker }
}"#), @r#"
V2 policy::use

  × `use "leaf"` gives `fifo` several children, and it takes one
   ╭─[test.kdl:2:12]
 1 │ policy "p" {
 2 │     fifo { use "leaf" }
   ·     ──┬─   ─────┬────
   ·       │         ╰── one child for each worker
   ·       ╰── takes one child
 3 │     shared "leaf" each="worker" { worker }
   ╰────
  help: put a component between that takes several: `eager { use "leaf" }`
        why: outside an `each`, `use` links to every instance of what is shared
"#);
}

#[test]
fn unused_shared() {
    assert_snapshot!(wrong(r#"policy "p" {
    fifo { worker }
    shared "leaf" each="worker" { worker }
}"#), @r#"
V4 policy::unused

  ⚠ nothing uses `shared "leaf"`
   ╭─[test.kdl:3:12]
 2 │     fifo { worker }
 3 │     shared "leaf" each="worker" { worker }
   ·            ───┬──
   ·               ╰── unused
 4 │ }
   ╰────
  help: link to it with `use "leaf"`, or leave it out
        why: what is shared exists only where a `use` links to it
"#);
}

#[test]
fn shared_twice() {
    assert_snapshot!(wrong(r#"shared "leaf" { worker }
policy "p" {
    fifo { use "leaf" }
    shared "leaf" { worker }
}"#), @r#"
V7 policy::shared

  × `shared "leaf"` is given twice
   ╭─[test.kdl:1:8]
 1 │ shared "leaf" { worker }
   ·        ───┬──
   ·           ╰── again here
 2 │ policy "p" {
 3 │     fifo { use "leaf" }
 4 │     shared "leaf" { worker }
   ·            ───┬──
   ·               ╰── first here
 5 │ }
   ╰────
  help: give one of them another name
        why: `use "name"` links to `shared "name"` of the same policy or file, which is one component
"#);
}

#[test]
fn what_contexts_share_has_nothing_of_one_context_below() {
    assert_snapshot!(wrong(r#"policy "p" {
    fifo { use "q" }
    shared "q" between-contexts=#true {
        eager {
            each "worker" { use "leaf" }
            each "combined-worker" { combined-worker }
        }
    }
    shared "leaf" each="worker" { worker }
}"#), @r#"
V2 policy::between-contexts

  × `leaf` stands below what contexts share, and is not shared
    ╭─[test.kdl:5:29]
  4 │         eager {
  5 │             each "worker" { use "leaf" }
    ·                             ─────┬────
    ·                                  ╰── below `shared "q" between-contexts=#true`
  6 │             each "combined-worker" { combined-worker }
  7 │         }
  8 │     }
  9 │     shared "leaf" each="worker" { worker }
    ·            ───┬──
    ·               ╰── defined here
 10 │ }
    ╰────
  help: write `shared "leaf" between-contexts=#true`
        why: what contexts share is one part with one shape, whatever workers each of them has
V2 policy::between-contexts

  × combined workers cannot be in `q`, which contexts share
   ╭─[test.kdl:6:13]
 5 │             each "worker" { use "leaf" }
 6 │             each "combined-worker" { combined-worker }
   ·             ───────────┬──────────
   ·                        ╰── combined workers
 7 │         }
   ╰────
  help: a team belongs to one context: define its leaves without `between-contexts`
        why: what contexts share is one part with one shape, whatever workers each of them has
"#);
}

#[test]
fn shared_that_is_a_repetition() {
    assert_snapshot!(wrong(r#"policy "p" {
    fifo { eager { use "leaves" } }
    shared "leaves" { each "worker" { worker } }
}"#), @r#"
V7 policy::shared

  × `shared "leaves"` is a repetition and not a component
   ╭─[test.kdl:3:23]
 2 │     fifo { eager { use "leaves" } }
 3 │     shared "leaves" { each "worker" { worker } }
   ·                       ──────┬──────
   ·                             ╰── expected a component
 4 │ }
   ╰────
  help: say it in the head: `shared "leaves" each="worker" { … }`
        why: `use "name"` links to `shared "name"` of the same policy or file, which is one component
"#);
}

#[test]
fn cycle() {
    assert_snapshot!(wrong(r#"policy "p" {
    fifo { use "a" }
    shared "a" { fifo { use "b" } }
    shared "b" { prio { use "a" } }
}"#), @r#"
V6 policy::cycle

  × `shared "a"` is below itself
   ╭─[test.kdl:4:25]
 3 │     shared "a" { fifo { use "b" } }
 4 │     shared "b" { prio { use "a" } }
   ·                         ───┬───
   ·                            ╰── leads back: a → b → a
 5 │ }
   ╰────
  help: leave out one `use` of the round
        why: tasks move down the tree; in a cycle they would move for ever
"#);
}

#[test]
fn two_roots() {
    assert_snapshot!(wrong(r#"policy "p" {
    fifo { worker }
    prio { worker }
}"#), @r#"
V2 policy::root

  × policy `p` has 2 roots
   ╭─[test.kdl:3:5]
 1 │ policy "p" {
 2 │     fifo { worker }
   ·     ──┬─
   ·       ╰── this is the root
 3 │     prio { worker }
   ·     ──┬─
   ·       ╰── expected the end of the policy
 4 │ }
   ╰────
  help: put one of them below the other, or all below one that takes several children
        why: tasks enter a scheduler at one component, its root
"#);
}

#[test]
fn empty_policy() {
    assert_snapshot!(wrong(r#"policy "p" { }"#), @r#"
    V2 policy::root

      × policy `p` is empty
       ╭─[test.kdl:1:8]
     1 │ policy "p" { }
       ·        ─┬─
       ·         ╰── expected a component in its braces
       ╰────
      help: the smallest policy that works is `fifo { eager { each "worker" { worker } } }`
            why: tasks enter a scheduler at one component, its root
    "#);
}

#[test]
fn root_that_is_no_component() {
    assert_snapshot!(wrong(r#"policy "p" {
    each "worker" { worker }
}"#), @r#"
V2 policy::root

  × the root of policy `p` is not a component
   ╭─[test.kdl:2:5]
 1 │ policy "p" {
 2 │     each "worker" { worker }
   ·     ──────┬──────
   ·           ╰── expected a component
 3 │ }
   ╰────
  help: put a component above it that takes several children, such as `eager { … }`
        why: tasks enter a scheduler at one component, its root
"#);
}

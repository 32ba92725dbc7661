//! Text that is no policy: its errors.

use super::{parse, wrong};
use insta::assert_snapshot;

#[test]
fn syntax_error_shows_where() {
    assert_snapshot!(wrong(r#"policy "p" {
    fifo ntasks-threshold= {
        worker
    }
}"#), @r#"
V7 policy::syntax

  × Expected property value
   ╭─[test.kdl:2:26]
 1 │ policy "p" {
 2 │     fifo ntasks-threshold= {
   ·                          ┬
   ·                          ╰── here
 3 │         worker
   ╰────
  help: a component is written `name param=value { children }`
"#);
}

#[test]
fn unclosed_brace() {
    assert_snapshot!(wrong(r#"policy "p" {
    fifo {
        worker
}"#), @r#"
V7 policy::syntax

  × the `{` of `fifo` is not closed
   ╭─[test.kdl:2:10]
 1 │ policy "p" {
 2 │     fifo {
   ·          ┬
   ·          ╰── not closed
 3 │         worker
   ╰────
  help: add a `}` behind what stands in it
"#);
    let one_line = wrong(r#"policy "p" { fifo { eager { each "worker" { worker } } }"#);
    assert!(one_line.contains("the `{` of `policy` is not closed"), "{one_line}");
    let askew = "policy \"p\" {\nfifo {\n        eager { each \"worker\" { worker }\n  }\n}";
    assert_eq!(wrong(askew).matches("is not closed").count(), 1, "{}", wrong(askew));
}

#[test]
fn a_brace_too_many() {
    assert_snapshot!(wrong(r#"policy "p" {
    fifo { worker }}
    // What is said of } in a comment, or in a "}", does not count.
}"#), @r#"
V7 policy::syntax

  × a `}` closes nothing
   ╭─[test.kdl:4:1]
 3 │     // What is said of } in a comment, or in a "}", does not count.
 4 │ }
   · ┬
   · ╰── nothing is open here
   ╰────
  help: take it away, or add the `{` that it should close
"#);
}

#[test]
fn unclosed_text() {
    assert_snapshot!(wrong(r#"policy "p {
    fifo { eager { each "worker { worker } } }
}"#), @r#"
V7 policy::syntax

  × a text in quotes is not closed
   ╭─[test.kdl:1:8]
 1 │ policy "p {
   ·        ──┬─
   ·          ╰── begins here
 2 │     fifo { eager { each "worker { worker } } }
   ╰────
  help: each text has `"` at its end, on the same line
V7 policy::syntax

  × a text in quotes is not closed
   ╭─[test.kdl:2:25]
 1 │ policy "p {
 2 │     fifo { eager { each "worker { worker } } }
   ·                         ───────────┬──────────
   ·                                    ╰── begins here
 3 │ }
   ╰────
  help: each text has `"` at its end, on the same line
"#);
}

#[test]
fn unclosed_comment() {
    assert_snapshot!(wrong("policy \"p\" { fifo { worker } }\n/* an afterthought"), @r#"
V7 policy::syntax

  × a comment is not closed
   ╭─[test.kdl:2:1]
 1 │ policy "p" { fifo { worker } }
 2 │ /* an afterthought
   · ─┬
   ·  ╰── begins here
   ╰────
  help: end it with `*/`
"#);
}

#[test]
fn components_on_one_line() {
    assert_snapshot!(wrong(r#"policy "p" {
    user-choice {
        fifo { worker } fifo ntasks-threshold=2 { worker }
    }
}"#), @r#"
V7 policy::syntax

  × a component begins on the line where another one ends
   ╭─[test.kdl:3:25]
 2 │     user-choice {
 3 │         fifo { worker } fifo ntasks-threshold=2 { worker }
   ·                         ──┬─
   ·                           ╰── here
 4 │     }
   ╰────
  help: write it on a line of its own, or put a `;` between the two
"#);
}

#[test]
fn old_style_boolean() {
    assert_snapshot!(wrong(r#"policy "p" {
    fifo ready=true { worker }
}"#), @r#"
V7 policy::syntax

  × Expected identifier string
   ╭─[test.kdl:2:16]
 1 │ policy "p" {
 2 │     fifo ready=true { worker }
   ·                ──┬─
   ·                  ╰── here
 3 │ }
   ╰────
  help: write `#true`
"#);
}

#[test]
fn unknown_top_level_node() {
    assert_snapshot!(wrong(r#"polcy "p" {
    fifo { worker }
}"#), @r#"
V7 policy::unknown-node

  × `polcy` cannot stand at the top of a policy file
   ╭─[test.kdl:1:1]
 1 │ polcy "p" {
   · ──┬──
   ·   ╰── unknown
 2 │     fifo { worker }
   ╰────
  help: did you mean `policy`?
        a component stands inside `policy "name" { … }`
"#);
}

#[test]
fn component_at_the_top() {
    assert_snapshot!(wrong(r#"fifo {
    worker
}"#), @r#"
V7 policy::unknown-node

  × `fifo` cannot stand at the top of a policy file
   ╭─[test.kdl:1:1]
 1 │ fifo {
   · ──┬─
   ·   ╰── unknown
 2 │     worker
   ╰────
  help: what a file holds: `policy`, `shared`, `override`
        a component stands inside `policy "name" { … }`
"#);
}

#[test]
fn policy_without_name() {
    assert_snapshot!(wrong(r#"policy {
    fifo { worker }
}"#), @r#"
V7 policy::policy

  × `policy` lacks a name
   ╭─[test.kdl:1:1]
 1 │ policy {
   · ───┬──
   ·    ╰── expected a name after this
 2 │     fifo { worker }
   ╰────
  help: write `policy "my-policy" { … }`
"#);
}

#[test]
fn policy_name_is_a_number() {
    assert_snapshot!(wrong(r#"policy 3 {
    fifo { worker }
}"#), @r#"
V7 policy::policy

  × `policy` is given 3
   ╭─[test.kdl:1:8]
 1 │ policy 3 {
   ·        ┬
   ·        ╰── expected a name
 2 │     fifo { worker }
   ╰────
  help: write `policy "my-policy" { … }`
"#);
}

/// It would be printed as a line of its own, or change the colours of the terminal.
#[test]
fn policy_name_has_two_lines_and_an_escape() {
    assert_snapshot!(wrong(r#"policy "one\ntwo\u{1b}[31m" {
    fifo { worker }
}"#), @r#"
V7 policy::policy

  × `policy` is given "one\ntwo\u001b[31m"
   ╭─[test.kdl:1:8]
 1 │ policy "one\ntwo\u{1b}[31m" {
   ·        ──────────┬─────────
   ·                  ╰── expected a name without line breaks and other control characters
 2 │     fifo { worker }
   ╰────
  help: write `policy "my-policy" { … }`
"#);
}

#[test]
fn two_policies_of_one_name() {
    assert_snapshot!(wrong(r#"policy "p" { fifo { worker } }
policy "p" { prio { worker } }"#), @r#"
V7 policy::duplicate-policy

  × two policies are called `p`
   ╭─[test.kdl:2:8]
 1 │ policy "p" { fifo { worker } }
   ·        ─┬─
   ·         ╰── first here
 2 │ policy "p" { prio { worker } }
   ·        ─┬─
   ·         ╰── again here
   ╰────
  help: give one of them another name
"#);
}

#[test]
fn shared_inside_a_tree() {
    assert_snapshot!(wrong(r#"policy "p" {
    fifo {
        shared "leaf" { worker }
        worker
    }
}"#), @r#"
V7 policy::misplaced

  × `shared` cannot stand inside a tree
   ╭─[test.kdl:3:9]
 2 │     fifo {
 3 │         shared "leaf" { worker }
   ·         ───┬──
   ·            ╰── not here
 4 │         worker
   ╰────
  help: move it up: it stands directly in a policy or a policy file
"#);
}

#[test]
fn use_with_children() {
    assert_snapshot!(wrong(r#"policy "p" {
    fifo { use "leaf" { worker } }
    shared "leaf" { worker }
}"#), @r#"
V7 policy::use

  × `use "leaf"` cannot have children
   ╭─[test.kdl:2:25]
 1 │ policy "p" {
 2 │     fifo { use "leaf" { worker } }
   ·                         ───┬──
   ·                            ╰── this is below `use`
 3 │     shared "leaf" { worker }
   ╰────
  help: what is below stands in `shared "leaf" { … }`
"#);
}

#[test]
fn type_annotation() {
    assert_snapshot!(wrong(r#"policy "p" {
    (queue)fifo { worker }
}"#), @r#"
V7 policy::annotation

  × the type annotation `(queue)` means nothing in a policy
   ╭─[test.kdl:2:12]
 1 │ policy "p" {
 2 │     (queue)fifo { worker }
   ·            ──┬─
   ·              ╰── annotated here
 3 │ }
   ╰────
  help: leave it out
"#);
}

#[test]
fn empty_file() {
    assert_snapshot!(wrong(r#"// nothing yet
"#), @r#"
V7 policy::no-policy

  × `test.kdl` holds no policy
  help: write `policy "name" { … }`
"#);
}

#[test]
fn deeply_nested_text_is_refused() {
    let nested = |depth: usize| format!("policy \"p\" {{ {} worker {} }}", "fifo {".repeat(depth), "}".repeat(depth));
    assert!(parse("test.kdl", &nested(60)).is_ok());
    let errors = parse("test.kdl", &nested(5000)).unwrap_err();
    assert_eq!(errors.findings()[0].message(), "braces nest more than 64 deep");
    assert!(parse("test.kdl", &"/*".repeat(5000)).is_err());
}

#[test]
fn a_text_that_would_take_minutes_to_read_is_refused() {
    assert!(parse("test.kdl", &format!("{}\npolicy \"p\" {{ worker; }}", " ".repeat(1 << 17))).is_ok());
    let errors = parse("test.kdl", &"a ".repeat(5_000_000)).unwrap_err();
    assert_eq!(errors.findings()[0].message(), "it has 10000000 bytes, and 4 MiB are the most");
}

#[test]
fn argument_where_a_parameter_is_expected() {
    assert_snapshot!(wrong(r#"policy "p" {
    fifo 2 { worker }
}"#), @r#"
V7 policy::parameter

  × `fifo` is given 2 without a name
   ╭─[test.kdl:2:10]
 1 │ policy "p" {
 2 │     fifo 2 { worker }
   ·          ┬
   ·          ╰── expected a parameter, `name=value`
 3 │ }
   ╰────
  help: write `fifo name=2`, or `{ … }` if it is a child
"#);
}

#[test]
fn null_as_a_value() {
    assert_snapshot!(wrong(r#"policy "p" {
    fifo ready=#null { worker }
}"#), @r#"
V7 policy::parameter

  × `ready` is `#null`
   ╭─[test.kdl:2:16]
 1 │ policy "p" {
 2 │     fifo ready=#null { worker }
   ·                ──┬──
   ·                  ╰── expected a number, a text, `#true` or `#false`
 3 │ }
   ╰────
  help: leave the parameter out to have its default
"#);
}

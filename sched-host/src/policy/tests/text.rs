//! Texts that are not policies: what their authors are told.

use super::{EAGER, parse, policy, read, wrong};
use crate::policy::PolicyErrors;
use insta::assert_snapshot;

#[test]
fn reads_the_comment_above_as_the_documentation() {
    let text = "// Licence: any.\n\n// One queue. Simple.\n//\n//   More of it.\npolicy \"p\" { fifo { worker } }";
    let policy = policy(text);
    assert_eq!(policy.doc, "One queue. Simple.\n\n  More of it.");
    assert_eq!(policy.summary(), "One queue.");
}

#[test]
fn reads_several_policies_with_definitions_for_all() {
    let text = r#"
        shared "leaf" each="worker" { worker }
        policy "one" { fifo { eager { use "leaf" } } }
        policy "two" { prio { eager { use "mine" } }; shared "mine" { fifo { worker } } }
    "#;
    let policies = parse("test.kdl", text).expect("it is valid");
    let names = |index: usize| policies[index].shared.iter().map(|shared| shared.name.as_str()).collect::<Vec<_>>();
    assert_eq!((names(0), names(1)), (vec!["leaf"], vec!["mine"]));
}

#[test]
fn errors_give_file_line_and_column() {
    let errors: PolicyErrors = parse("dir/p.kdl", "policy \"p\" {\n  fifo µ=#null { worker }\n}").unwrap_err();
    assert_eq!(errors.problems()[0].position(), Some(("dir/p.kdl", 2, 10)));
    assert_eq!(errors.to_string(), "dir/p.kdl: 1 error");
}

#[test]
fn commented_out_parts_are_not_there() {
    assert_eq!(
        policy(
            r#"policy "tree-eager" { fifo { /-prio { worker }
        eager /-ready=#true { each "worker" { worker } } } }"#
        ),
        policy(EAGER)
    );
}

#[test]
fn all_problems_of_a_text_are_reported() {
    let parsed = read("test.kdl", "policy {\n fifo 1 { each \"nmua\" { worker } }\n}\nstray\npolicy \"b\" { use }");
    let lines: Vec<usize> = parsed.problems.iter().filter_map(|problem| Some(problem.position()?.1)).collect();
    assert_eq!(lines, [1, 2, 2, 4, 5]);
}

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
   ·                          ╰── not property value
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

  × No closing '}' for child block
   ╭─[test.kdl:1:12]
 1 │ policy "p" {
   ·            ┬
   ·            ╰── not closed
 2 │     fifo {
   ╰────
  help: a component is written `name param=value { children }`
V7 policy::syntax

  × Closing '}' was not found after nodes
   ╭─[test.kdl:4:1]
 3 │         worker
 4 │ }
   · ┬
   · ╰── not closed
   ╰────
  help: a component is written `name param=value { children }`
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
   ·                  ╰── not identifier string
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
   ·   ╰── expected `policy` or `shared`
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
   ·   ╰── expected `policy` or `shared`
 2 │     worker
   ╰────
  help: what a file holds: `policy`, `shared`
        a component stands inside `policy "name" { … }`
"#);
}

#[test]
fn policy_without_name() {
    assert_snapshot!(wrong(r#"policy {
    fifo { worker }
}"#), @r#"
V7 policy::policy

  × `policy` has no name
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

  × 3 is not a name
   ╭─[test.kdl:1:8]
 1 │ policy 3 {
   ·        ┬
   ·        ╰── expected a text in quotes
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
  help: did you mean `cuda`?
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
fn null_and_huge_values() {
    assert_snapshot!(wrong(r#"policy "p" {
    fifo ready=#null ntasks-threshold=99999999999999999999 { worker }
}"#), @r#"
V7 policy::parameter

  × `ready` is `#null`
   ╭─[test.kdl:2:16]
 1 │ policy "p" {
 2 │     fifo ready=#null ntasks-threshold=99999999999999999999 { worker }
   ·                ──┬──
   ·                  ╰── expected a number, a text, `#true` or `#false`
 3 │ }
   ╰────
  help: leave the parameter out to have its default
V7 policy::parameter

  × `ntasks-threshold` is a number that is too large
   ╭─[test.kdl:2:39]
 1 │ policy "p" {
 2 │     fifo ready=#null ntasks-threshold=99999999999999999999 { worker }
   ·                                       ──────────┬─────────
   ·                                                 ╰── expected a number from -9223372036854775808 to 9223372036854775807
 3 │ }
   ╰────
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
   ·                            ╰── this is below a `use`
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
    assert_eq!(errors.problems()[0].message(), "braces nest more than 64 deep");
    assert!(parse("test.kdl", &"/*".repeat(5000)).is_err());
}

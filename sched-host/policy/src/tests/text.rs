//! Reading policies.

use super::{EAGER, parse, policy, read};
use sched_text::Findings;

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
    let errors: Findings = parse("dir/p.kdl", "policy \"p\" {\n  fifo µ=#null { worker }\n}").unwrap_err();
    assert_eq!(errors.findings()[0].position(), Some(("dir/p.kdl", 2, 10)));
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
    let lines: Vec<usize> = parsed.findings.iter().filter_map(|finding| Some(finding.position()?.1)).collect();
    assert_eq!(lines, [1, 2, 2, 4, 5]);
}

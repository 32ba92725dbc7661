//! Paths named in the repository's documents exist.

use sched_tests::repository::{files, root};
use std::fs;
use std::path::Path;

/// Beside these, all of `docs/`.
const AT_THE_ROOT: [&str; 4] = ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md"];

/// The lines outside fenced blocks, with their numbers.
fn prose(text: &str) -> Vec<(usize, &str)> {
    let mut fenced = false;
    let mut lines = Vec::new();
    for (line, number) in text.lines().zip(1..) {
        if line.trim_start().starts_with("```") {
            fenced = !fenced;
        } else if !fenced {
            lines.push((number, line));
        }
    }
    lines
}

/// Spans between backticks.
fn spans(line: &str) -> impl Iterator<Item = &str> {
    line.split('`').skip(1).step_by(2)
}

/// Targets of links that are not addresses.
fn links(line: &str) -> impl Iterator<Item = &str> {
    let targets = line.split("](").skip(1).filter_map(|rest| rest.split(')').next());
    targets.filter(|target| !target.contains("://") && !target.starts_with('#'))
}

/// `a/{b,c}` is `a/b` and `a/c`.
fn alternatives(path: &str) -> Vec<String> {
    let Some((before, rest)) = path.split_once('{') else { return vec![path.to_owned()] };
    let Some((names, after)) = rest.split_once('}') else { return vec![path.to_owned()] };
    names.split(',').map(|name| format!("{before}{}{after}", name.trim())).collect()
}

/// The paths from the root that a span means, if it is one of a path: the first folder or file stands at the root.
/// `path::test` is the file of a test.
fn paths(span: &str) -> Vec<String> {
    let path = span.split("::").next().unwrap_or_default().trim_end_matches('/');
    let first = path.split('/').next().unwrap_or_default();
    let is_inside = !first.is_empty() && first != "..";
    let is_path = is_inside && !path.contains([' ', '<', '*', '…']) && root().join(first).exists();
    if is_path { alternatives(path) } else { Vec::new() }
}

/// What is wrong in a page of this text, whose links start from `folder`.
fn flaws(text: &str, folder: &Path) -> Vec<String> {
    let mut wrong = Vec::new();
    for (number, line) in prose(text) {
        for span in spans(line) {
            let gone = |path: &String| !root().join(path).exists() && !path.starts_with("target/");
            wrong.extend(paths(span).into_iter().filter(gone).map(|path| format!("{number}: `{path}` is not there")));
            let is_source = span.ends_with(".rs") && !span.contains([' ', '*']);
            if is_source && paths(span).is_empty() {
                wrong.push(format!("{number}: `{span}` is no path from the root of the repository"));
            }
        }
        for link in links(line) {
            let file = link.split('#').next().unwrap_or_default();
            if !folder.join(file).exists() {
                wrong.push(format!("{number}: the link to {link} leads nowhere"));
            }
        }
    }
    wrong
}

#[test]
fn every_path_that_a_page_names_is_there() {
    let at_the_root = AT_THE_ROOT.iter().map(|name| root().join(name));
    let mut wrong = Vec::new();
    for page in at_the_root.chain(files(&root().join("docs"), &[".md"])) {
        let text = fs::read_to_string(&page).unwrap_or_else(|error| panic!("{}: {error}", page.display()));
        let folder = page.parent().expect("a page lies in a folder");
        let name = page.strip_prefix(root()).expect("a page of the repository").display().to_string();
        wrong.extend(flaws(&text, folder).into_iter().map(|flaw| format!("{name}:{flaw}")));
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn paths_that_lead_nowhere_are_found() {
    let text = "See `sched-core/src/{task,tusk}.rs`, `task.rs`, `tests/tests/documents.rs::name`,\n\
                [a](README.md), [b](READYOU.md#c), [d](https://example.org), `sched run`.\n\
                ```sh\nls `sched-core/gone`\n```\n\
                `sched-core/gone`";
    let expected = [
        "1: `sched-core/src/tusk.rs` is not there",
        "1: `task.rs` is no path from the root of the repository",
        "2: the link to READYOU.md#c leads nowhere",
        "6: `sched-core/gone` is not there",
    ];
    assert_eq!(flaws(text, &root()), expected);
}

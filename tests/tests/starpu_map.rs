//! The map of StarPU's names is complete, and the tests that it names are there.

use sched_tests::repository::root;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;

/// One row: the name, what it is called here, and the tests.
struct Row {
    line: usize,
    name: String,
    here: String,
    tests: String,
}

fn rows() -> Vec<Row> {
    let text = fs::read_to_string(root().join("docs/starpu-map.md")).expect("the map can be read");
    let lines = text.lines().zip(1..).filter(|(line, _)| line.starts_with("| ") && !line.starts_with("| StarPU |"));
    let row = |(line, number): (&str, usize)| {
        let cells: Vec<&str> = line.trim_matches('|').split(" | ").map(str::trim).collect();
        let [name, here, tests] = cells[..] else { panic!("line {number}: three columns are expected: {line}") };
        let [name, here, tests] = [name.trim_matches('`'), here, tests].map(str::to_owned);
        Row { line: number, name, here, tests }
    };
    lines.map(row).collect()
}

/// Whether `text` has a test of this name.
fn has_test(text: &str, name: &str) -> bool {
    let lines: Vec<&str> = text.lines().map(str::trim).collect();
    let is_it = |line: &str| line.strip_prefix("fn ").is_some_and(|rest| rest.starts_with(&format!("{name}(")));
    lines.iter().enumerate().filter(|(_, line)| is_it(line)).any(|(at, _)| {
        let above = lines[..at].iter().rev();
        above.take_while(|line| line.starts_with("#[") || line.starts_with("//")).any(|line| *line == "#[test]")
    })
}

#[test]
fn every_row_names_tests_that_are_there() {
    let mut files: BTreeMap<String, Option<String>> = BTreeMap::new();
    let mut wrong = Vec::new();
    let mut seen = BTreeSet::new();
    for Row { line, name, here, tests } in rows() {
        if !seen.insert(name.clone()) {
            wrong.push(format!("line {line}: `{name}` has a row already"));
        }
        if here.is_empty() {
            wrong.push(format!("line {line}: what is `{name}` called here?"));
        }
        for test in tests.split(", ").map(|test| test.trim_matches('`')) {
            let Some((file, function)) = test.split_once("::") else {
                wrong.push(format!("line {line}: `{test}` is not `path::function`"));
                continue;
            };
            let text = files.entry(file.to_owned()).or_insert_with(|| fs::read_to_string(root().join(file)).ok());
            match text {
                None => wrong.push(format!("line {line}: there is no file {file}")),
                Some(text) if !has_test(text, function) => {
                    wrong.push(format!("line {line}: {file} has no test {function}"));
                }
                Some(_) => {}
            }
        }
    }
    assert!(wrong.is_empty(), "docs/starpu-map.md:\n{}", wrong.join("\n"));
    assert!(!seen.is_empty());
}

/// StarPU's identifiers in a text, and their fields as `structure::field`.
fn identifiers(text: &str) -> BTreeSet<String> {
    let of_name = |character: char| character.is_ascii_alphanumeric() || character == '_';
    let mut found = BTreeSet::new();
    let mut rest = text;
    while let Some(start) = rest.find(of_name) {
        rest = &rest[start..];
        let (word, after) = rest.split_at(rest.find(|character| !of_name(character)).unwrap_or(rest.len()));
        rest = after;
        if !word.trim_start_matches('_').to_ascii_lowercase().starts_with("starpu_") {
            continue;
        }
        let field = after.strip_prefix("::").unwrap_or("");
        let field = &field[..field.find(|character| !of_name(character)).unwrap_or(field.len())];
        if !field.is_empty() {
            found.insert(format!("{word}::{field}"));
        }
        found.insert(word.to_owned());
    }
    found
}

#[test]
fn identifiers_are_found_with_their_fields() {
    let text = "12. \\var int starpu_task::predicted of STARPU_SCHED; a _starpu_x_y(), no restarpu_z, STARPU_DECIDE_*.";
    let found: Vec<String> = identifiers(text).into_iter().collect();
    assert_eq!(found, ["STARPU_DECIDE_", "STARPU_SCHED", "_starpu_x_y", "starpu_task", "starpu_task::predicted"]);
}

#[test]
fn every_name_of_the_handbook_has_a_row() {
    let Ok(folder) = fs::read_dir(root().join("../shared/seeds")) else {
        sched_test_support::skipped("the handbook's chapter is not beside the repository");
        return;
    };
    let named: BTreeSet<String> = rows().into_iter().map(|row| row.name.trim_end_matches('*').to_owned()).collect();
    let mut missing = BTreeSet::new();
    for entry in folder {
        let path = entry.expect("the folder can be read").path();
        if path.extension().is_some_and(|end| end == "txt") {
            let text = fs::read(&path).expect("the chapter can be read");
            let found = identifiers(&String::from_utf8_lossy(&text));
            missing.extend(found.into_iter().filter(|name| !named.contains(name)));
        }
    }
    assert!(missing.is_empty(), "docs/starpu-map.md has no row for: {missing:?}");
}

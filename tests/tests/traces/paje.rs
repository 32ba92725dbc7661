//! Paje's format, read by a reader that believes the header only.

use crate::factorisation;
use sched_host::trace::{Event, Format, Stamped};
use std::collections::{BTreeMap, BTreeSet};

/// A line: the event, and its fields by name.
type Line = (String, BTreeMap<String, String>);

/// Reads a file: every line has the fields that its event's definition in the header says, of their types.
fn read(text: &str) -> Vec<Line> {
    let mut events: BTreeMap<String, (String, Vec<(String, String)>)> = BTreeMap::new();
    let mut defined: Option<String> = None;
    let mut lines = Vec::new();
    for line in text.lines() {
        if let Some(header) = line.strip_prefix('%') {
            assert!(lines.is_empty(), "the header comes first: {line}");
            let words: Vec<&str> = header.split_whitespace().collect();
            match (&words[..], &mut defined) {
                (["EventDef", name, number], defined @ None) => {
                    let before = events.insert((*number).to_owned(), ((*name).to_owned(), Vec::new()));
                    assert!(before.is_none(), "{number} is defined twice");
                    *defined = Some((*number).to_owned());
                }
                (["EndEventDef"], defined @ Some(_)) => *defined = None,
                ([field, kind @ ("string" | "date" | "double" | "color")], Some(number)) => {
                    let (_, fields) = events.get_mut(number).expect("it was defined");
                    fields.push(((*field).to_owned(), (*kind).to_owned()));
                }
                _ => panic!("a header does not say: {line}"),
            }
            continue;
        }
        let mut words = words(line).into_iter();
        let number = words.next().expect("a line begins with a number");
        let (name, fields) = events.get(&number).unwrap_or_else(|| panic!("{number} is not defined: {line}"));
        let words: Vec<String> = words.collect();
        assert_eq!(words.len(), fields.len(), "fields of {name}: {line}");
        for (word, (field, kind)) in words.iter().zip(fields) {
            if kind == "date" || kind == "double" {
                assert!(word.parse::<f64>().is_ok_and(|number| number >= 0.0), "{field}: {line}");
            }
        }
        lines.push((name.clone(), fields.iter().map(|(field, _)| field.clone()).zip(words).collect()));
    }
    lines
}

/// Splits at spaces outside of quotation marks.
fn words(line: &str) -> Vec<String> {
    let mut words = Vec::new();
    for (place, part) in line.split('"').enumerate() {
        match place % 2 {
            0 => words.extend(part.split_whitespace().map(str::to_owned)),
            _ => words.push(part.to_owned()),
        }
    }
    words
}

fn written() -> Vec<Line> {
    let mut trace = factorisation();
    // The first transfer once more, at the end.
    let moved = |stamped: &&Stamped| matches!(stamped.event, Event::TransferStarted(_));
    let first = *trace.events.iter().find(moved).expect("data moves");
    let Event::TransferStarted(again) = first.event else { unreachable!("it was looked for") };
    trace.events.push(Stamped { nanos: trace.end, event: first.event });
    trace.events.push(Stamped { nanos: trace.end, event: Event::TransferEnded(again) });
    let mut out = Vec::new();
    Format::Paje.write(&trace, &mut out).expect("memory can be written");
    read(&String::from_utf8(out).expect("it is text"))
}

#[test]
fn every_line_is_as_the_header_says_and_names_what_was_made_before() {
    let mut types = BTreeMap::from([("0".to_owned(), "container".to_owned())]);
    let mut values = BTreeSet::new();
    let mut containers = BTreeMap::from([("0".to_owned(), "0".to_owned())]);
    let mut now = 0.0;
    for (event, fields) in written() {
        if let Some(time) = fields.get("Time").map(|time| time.parse::<f64>().expect("a date")) {
            assert!(time >= now, "{event} {fields:?} comes too late: it is {now}");
            now = time;
        }
        let known = |field: &str, of: &BTreeMap<String, String>| {
            assert!(of.contains_key(&fields[field]), "{event}: {field} is not known: {fields:?}");
        };
        match event.as_str() {
            "PajeDefineEntityValue" => {
                known("Type", &types);
                assert!(values.insert((fields["Type"].clone(), fields["Alias"].clone())), "{fields:?}");
            }
            define if define.starts_with("PajeDefine") => {
                known("Type", &types);
                assert!(types.insert(fields["Alias"].clone(), define.to_owned()).is_none(), "{fields:?}");
            }
            "PajeCreateContainer" => {
                known("Type", &types);
                known("Container", &containers);
                assert!(containers.insert(fields["Alias"].clone(), fields["Type"].clone()).is_none(), "{fields:?}");
            }
            "PajeSetState" => {
                known("Container", &containers);
                assert!(values.contains(&(fields["Type"].clone(), fields["Value"].clone())), "{fields:?}");
            }
            "PajeStartLink" => known("StartContainer", &containers),
            "PajeEndLink" => known("EndContainer", &containers),
            "PajeDestroyContainer" => assert_eq!(fields["Name"], "p"),
            _ => {
                known("Type", &types);
                known("Container", &containers);
            }
        }
    }
}

#[test]
fn every_task_is_a_state_once_and_every_link_ends() {
    let (mut tasks, mut links, mut variables) = (Vec::new(), BTreeSet::new(), BTreeMap::new());
    let mut keys = BTreeSet::new();
    for (event, fields) in written() {
        match event.as_str() {
            "PajeSetState" if fields["Value"].starts_with('c') => tasks.push(fields["Task"].clone()),
            "PajeStartLink" => {
                assert!(keys.insert(fields["Key"].clone()), "readers refuse a key for a second time: {fields:?}");
                links.insert(fields["Key"].clone());
            }
            "PajeEndLink" => assert!(links.remove(&fields["Key"]), "{fields:?}"),
            "PajeSetVariable" => {
                variables.insert(fields["Container"].clone(), fields["Value"].clone());
            }
            _ => {}
        }
    }
    let all: BTreeSet<&String> = tasks.iter().collect();
    assert_eq!((tasks.len(), all.len()), (120, 120));
    assert!(all.contains(&"gemm(7,6,5)".to_owned()));
    assert!(links.is_empty(), "{links:?}");
    assert!(!variables.is_empty() && variables.values().all(|left| left == "0"), "{variables:?}");
}

#[test]
fn the_beginning_of_a_file() {
    let mut out = Vec::new();
    Format::Paje.write(&factorisation(), &mut out).expect("memory can be written");
    let text = String::from_utf8(out).expect("it is text");
    let definitions: Vec<&str> = text.lines().filter(|line| !line.starts_with('%')).take(20).collect();
    insta::assert_snapshot!(definitions.join("\n"), @r#"
    0 P 0 "Program"
    0 W P "Worker"
    0 M P "Memory"
    0 K P "Link"
    0 N P "Scheduler node"
    1 S W "Worker state"
    1 T K "Transfer"
    2 E W "Wake" "0 0 0"
    2 R N "Refusal" "0.8 0.1 0.1"
    2 F N "Fault" "0.9 0 0.5"
    2 G N "Log" "0.4 0.4 0.4"
    3 Q N "Tasks" "0.2 0.4 0.7"
    4 L P M M "Data"
    5 c0 S "potrf" "0.902 0.624 0.000"
    5 c1 S "trsm" "0.800 0.475 0.655"
    5 c2 S "syrk" "0.835 0.369 0.000"
    5 c3 S "gemm" "0.000 0.620 0.451"
    5 idle S "idle" "0.93 0.94 0.96"
    5 fetch S "waits for data" "0.7 0.74 0.8"
    5 between S "between tasks" "1 1 1"
    "#);
}

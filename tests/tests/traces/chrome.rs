//! Chrome's format, read back.

use crate::factorisation;
use sched_host::trace::{Format, Trace};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

fn events(trace: &Trace) -> Vec<Value> {
    let mut out = Vec::new();
    Format::Chrome.write(trace, &mut out).expect("memory can be written");
    let file: Value = serde_json::from_slice(&out).expect("it is JSON");
    file["traceEvents"].as_array().expect("a list").clone()
}

fn number(event: &Value, key: &str) -> u64 {
    event[key].as_u64().unwrap_or_else(|| panic!("{key} of {event}"))
}

/// Names of tracks, by group and track.
fn tracks(events: &[Value]) -> BTreeMap<(u64, u64), String> {
    let named = events.iter().filter(|event| event["name"] == "thread_name");
    let name = |event: &Value| event["args"]["name"].as_str().expect("a name").to_owned();
    named.map(|event| ((number(event, "pid"), number(event, "tid")), name(event))).collect()
}

#[test]
fn every_task_is_there_once_and_spans_of_a_track_do_not_overlap() {
    let events = events(&factorisation());
    let mut tasks = BTreeSet::new();
    let mut spans: BTreeMap<(u64, u64), Vec<(f64, f64)>> = BTreeMap::new();
    for event in events.iter().filter(|event| event["ph"] == "X") {
        if event["cat"] == "task" {
            assert!(tasks.insert(number(&event["args"], "task")), "{event} is there twice");
        }
        let (ts, dur) = (event["ts"].as_f64().expect("a time"), event["dur"].as_f64().expect("a length"));
        spans.entry((number(event, "pid"), number(event, "tid"))).or_default().push((ts, ts + dur));
    }
    assert_eq!(tasks, (1..=120).collect());
    let tracks = tracks(&events);
    for (track, mut spans) in spans {
        assert!(tracks.contains_key(&track), "{track:?} has no name");
        spans.sort_by(|a, b| a.0.total_cmp(&b.0));
        for pair in spans.windows(2) {
            assert!(pair[0].1 <= pair[1].0 + 1e-6, "{} overlaps itself: {pair:?}", tracks[&track]);
        }
    }
}

#[test]
fn workers_links_and_nodes_have_tracks_of_their_names() {
    let events = events(&factorisation());
    let names: BTreeSet<String> = tracks(&events).into_values().collect();
    for name in ["cpu 0", "cpu 8", "gpu 9", "gpu 11", "ram → gpu0", "gpu2 → ram"] {
        assert!(names.contains(name), "{name} is not among {names:?}");
    }
    let of = |cat: &str| events.iter().filter(|event| event["cat"] == cat).cloned().collect::<Vec<_>>();
    let first = of("task").into_iter().find(|task| task["args"]["task"] == 1).expect("it was executed");
    assert_eq!((&first["name"], &first["args"]["name"]), (&"potrf".into(), &"potrf(0)".into()));
    assert!(!of("idle").is_empty() && !of("fetch").is_empty() && !of("wake").is_empty());
    assert!(of("refusal").iter().all(|mark| mark["args"]["why"] == "full" && mark["ph"] == "i"), "short queues refuse");
    assert!(!of("refusal").is_empty());
    assert!(of("transfer").iter().any(|transfer| transfer["args"]["bytes"] == 960 * 960 * 8));
}

#[test]
fn queues_have_counters_that_end_at_nothing() {
    let events = events(&factorisation());
    let mut last = BTreeMap::new();
    for event in events.iter().filter(|event| event["ph"] == "C") {
        last.insert(event["name"].as_str().expect("a name").to_owned(), number(&event["args"], "tasks"));
    }
    assert!(last.contains_key("tasks in fifo"), "{last:?}");
    assert!(last.values().all(|left| *left == 0), "{last:?}");
}

#[test]
fn arrows_have_both_ends_and_lead_forward() {
    let events = events(&factorisation());
    let ends = |ph: &str| {
        let arrows = events.iter().filter(|event| event["ph"] == ph);
        arrows.map(|event| (number(event, "id"), event["ts"].as_f64().expect("a time"))).collect::<BTreeMap<_, _>>()
    };
    let (from, to) = (ends("s"), ends("f"));
    assert!(from.len() > 100 && from.keys().eq(to.keys()), "{} and {}", from.len(), to.len());
    assert!(from.iter().all(|(task, at)| *at <= to[task]));
}

#[test]
fn names_are_escaped_and_dropped_events_are_reported() {
    let mut trace = factorisation();
    trace.title = "a \"quoted\"\nname".to_owned();
    trace.dropped = 7;
    let mut out = Vec::new();
    Format::Chrome.write(&trace, &mut out).expect("memory can be written");
    let file: Value = serde_json::from_slice(&out).expect("it is JSON");
    assert_eq!(file["otherData"]["title"], "a \"quoted\"\nname");
    assert_eq!(file["otherData"]["dropped_events"], 7);
}

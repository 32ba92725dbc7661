//! Paje's format, which ViTE and others open: a header that defines the events with their fields, and a line for each
//! event.
//!
//! The file is a tree of containers: workers with a state, links between memories with a state (and an arrow between
//! their memories for each transfer), and nodes of the scheduler with a variable, the number of tasks in them.
//! Refusals, wakes, faults and lines of the log are events. Times are in milliseconds.

use super::event::{Event, Transfer};
use super::gantt::reason_colour;
use super::timeline::{Activity, Timeline};
use super::track::Trace;
use sched_core::{MemoryNode, WorkerId};
use sched_graph::DataId;
use sched_memory::Reason;
use sched_tree::NoteKind;
use std::collections::BTreeMap;
use std::io::{self, Write};

/// Event definitions with the fields of their lines. The place of an event is its number.
const EVENTS: [(&str, &[(&str, &str)]); 13] = [
    ("PajeDefineContainerType", &[("Alias", "string"), ("Type", "string"), ("Name", "string")]),
    ("PajeDefineStateType", &[("Alias", "string"), ("Type", "string"), ("Name", "string")]),
    ("PajeDefineEventType", &[("Alias", "string"), ("Type", "string"), ("Name", "string"), ("Color", "color")]),
    ("PajeDefineVariableType", &[("Alias", "string"), ("Type", "string"), ("Name", "string"), ("Color", "color")]),
    (
        "PajeDefineLinkType",
        &[
            ("Alias", "string"),
            ("Type", "string"),
            ("StartContainerType", "string"),
            ("EndContainerType", "string"),
            ("Name", "string"),
        ],
    ),
    ("PajeDefineEntityValue", &[("Alias", "string"), ("Type", "string"), ("Name", "string"), ("Color", "color")]),
    (
        "PajeCreateContainer",
        &[("Time", "date"), ("Alias", "string"), ("Type", "string"), ("Container", "string"), ("Name", "string")],
    ),
    (
        "PajeSetState",
        &[("Time", "date"), ("Type", "string"), ("Container", "string"), ("Value", "string"), ("Task", "string")],
    ),
    ("PajeSetVariable", &[("Time", "date"), ("Type", "string"), ("Container", "string"), ("Value", "double")]),
    ("PajeNewEvent", &[("Time", "date"), ("Type", "string"), ("Container", "string"), ("Value", "string")]),
    (
        "PajeStartLink",
        &[
            ("Time", "date"),
            ("Type", "string"),
            ("Container", "string"),
            ("StartContainer", "string"),
            ("Value", "string"),
            ("Key", "string"),
        ],
    ),
    (
        "PajeEndLink",
        &[
            ("Time", "date"),
            ("Type", "string"),
            ("Container", "string"),
            ("EndContainer", "string"),
            ("Value", "string"),
            ("Key", "string"),
        ],
    ),
    ("PajeDestroyContainer", &[("Time", "date"), ("Type", "string"), ("Name", "string")]),
];

// Places in `EVENTS`.
const CONTAINER_TYPE: u8 = 0;
const STATE_TYPE: u8 = 1;
const EVENT_TYPE: u8 = 2;
const VARIABLE_TYPE: u8 = 3;
const LINK_TYPE: u8 = 4;
const VALUE: u8 = 5;
const CREATE: u8 = 6;
const SET_STATE: u8 = 7;
const SET_VARIABLE: u8 = 8;
const NEW_EVENT: u8 = 9;
const START_LINK: u8 = 10;
const END_LINK: u8 = 11;
const DESTROY: u8 = 12;

pub(super) fn write(trace: &Trace, out: &mut dyn Write) -> io::Result<()> {
    let timeline = Timeline::of(trace);
    write_header(out)?;
    write_types(trace, out)?;
    write_containers(trace, &timeline, out)?;
    let mut changes = states(trace, &timeline);
    moments(trace, &mut changes);
    changes.sort_by_key(|(nanos, _)| *nanos);
    for (nanos, change) in changes {
        change.write(trace, nanos, out)?;
    }
    let last = trace.events.last().map_or(trace.end, |stamped| stamped.nanos.max(trace.end));
    writeln!(out, "{DESTROY} {} P p", millis(last))
}

fn write_header(out: &mut dyn Write) -> io::Result<()> {
    for (number, (name, fields)) in EVENTS.iter().enumerate() {
        writeln!(out, "%EventDef {name} {number}")?;
        for (field, kind) in *fields {
            writeln!(out, "% {field} {kind}")?;
        }
        writeln!(out, "%EndEventDef")?;
    }
    Ok(())
}

fn write_types(trace: &Trace, out: &mut dyn Write) -> io::Result<()> {
    for (alias, above, name) in [
        ("P", "0", "Program"),
        ("W", "P", "Worker"),
        ("M", "P", "Memory"),
        ("K", "P", "Link"),
        ("N", "P", "Scheduler node"),
    ] {
        writeln!(out, "{CONTAINER_TYPE} {alias} {above} {}", quoted(name))?;
    }
    writeln!(out, "{STATE_TYPE} S W \"Worker state\"")?;
    writeln!(out, "{STATE_TYPE} T K \"Transfer\"")?;
    writeln!(out, "{EVENT_TYPE} E W \"Wake\" \"0 0 0\"")?;
    if trace.events.iter().any(|stamped| matches!(stamped.event, Event::Moved { .. })) {
        writeln!(out, "{EVENT_TYPE} V W \"Move to a context\" \"0 0.5 0.3\"")?;
    }
    writeln!(out, "{EVENT_TYPE} R N \"Refusal\" \"0.8 0.1 0.1\"")?;
    writeln!(out, "{EVENT_TYPE} F N \"Fault\" \"0.9 0 0.5\"")?;
    writeln!(out, "{EVENT_TYPE} G N \"Log\" \"0.4 0.4 0.4\"")?;
    writeln!(out, "{VARIABLE_TYPE} Q N \"Tasks\" \"0.2 0.4 0.7\"")?;
    writeln!(out, "{LINK_TYPE} L P M M \"Data\"")?;
    let colours = trace.kernel_colours();
    for (number, codelet) in trace.codelets.iter().enumerate() {
        writeln!(out, "{VALUE} c{number} S {} {}", quoted(codelet), rgb(colours.get(codelet)))?;
    }
    writeln!(out, "{VALUE} idle S \"idle\" \"0.93 0.94 0.96\"")?;
    writeln!(out, "{VALUE} fetch S \"waits for data\" \"0.7 0.74 0.8\"")?;
    writeln!(out, "{VALUE} between S \"between tasks\" \"1 1 1\"")?;
    for reason in Reason::ALL {
        writeln!(out, "{VALUE} {0} T \"{0}\" {1}", reason.name(), rgb(reason_colour(reason)))?;
    }
    writeln!(out, "{VALUE} free T \"free\" \"1 1 1\"")
}

fn write_containers(trace: &Trace, timeline: &Timeline, out: &mut dyn Write) -> io::Result<()> {
    let start = millis(0);
    writeln!(out, "{CREATE} {start} p P 0 {}", quoted(&trace.title))?;
    for (number, worker) in trace.workers.iter().enumerate() {
        writeln!(out, "{CREATE} {start} w{number} W p {}", quoted(&worker.name))?;
        writeln!(out, "{SET_STATE} {start} S w{number} idle {}", quoted(""))?;
    }
    for (number, memory) in trace.memories.iter().enumerate() {
        writeln!(out, "{CREATE} {start} m{number} M p {}", quoted(memory))?;
    }
    for (from, to) in timeline.links.keys() {
        writeln!(out, "{CREATE} {start} k{}-{} K p {}", from.0, to.0, quoted(&trace.link_name(*from, *to)))?;
        writeln!(out, "{SET_STATE} {start} T k{}-{} free {}", from.0, to.0, quoted(""))?;
    }
    for (number, path) in trace.nodes.iter().enumerate() {
        writeln!(out, "{CREATE} {start} n{number} N p {}", quoted(path))?;
    }
    Ok(())
}

/// A change at one time.
enum Change {
    Worker(WorkerId, Option<Activity>),
    /// A link, and the data that it transfers from now on, if any.
    Link((MemoryNode, MemoryNode), Option<(DataId, Reason)>),
    /// A transfer with this number begins (`true`) or ends.
    Transfer(bool, Transfer, u32),
    Event(Event),
}

/// States of workers and links, and the ends of states that no other follows.
fn states(trace: &Trace, timeline: &Timeline) -> Vec<(u64, Change)> {
    let mut changes = Vec::with_capacity(trace.events.len());
    for (worker, spans) in (0..).map(WorkerId).zip(&timeline.workers) {
        for (place, span) in spans.iter().enumerate() {
            changes.push((span.begin, Change::Worker(worker, Some(span.activity))));
            if spans.get(place + 1).is_none_or(|next| next.begin > span.end) {
                changes.push((span.end, Change::Worker(worker, None)));
            }
        }
    }
    for (link, spans) in &timeline.links {
        for (place, span) in spans.iter().enumerate() {
            changes.push((span.begin, Change::Link(*link, Some((span.transfer.data, span.transfer.why)))));
            if spans.get(place + 1).is_none_or(|next| next.begin > span.end) {
                changes.push((span.end, Change::Link(*link, None)));
            }
        }
    }
    changes
}

fn moments(trace: &Trace, changes: &mut Vec<(u64, Change)>) {
    // Data may use a link again, and readers refuse a key that was used before.
    let mut moving: BTreeMap<(DataId, MemoryNode, MemoryNode), u32> = BTreeMap::new();
    let mut number = 0;
    for stamped in &trace.events {
        let change = match stamped.event {
            Event::Woken { .. }
            | Event::Moved { .. }
            | Event::Refused { .. }
            | Event::QueueLength { .. }
            | Event::Noted { .. } => Change::Event(stamped.event),
            Event::TransferStarted(of) => {
                number += 1;
                moving.insert((of.data, of.from, of.to), number);
                Change::Transfer(true, of, number)
            }
            Event::TransferEnded(of) => match moving.remove(&(of.data, of.from, of.to)) {
                Some(number) => Change::Transfer(false, of, number),
                None => continue,
            },
            _ => continue,
        };
        changes.push((stamped.nanos, change));
    }
}

impl Change {
    fn write(&self, trace: &Trace, nanos: u64, out: &mut dyn Write) -> io::Result<()> {
        let time = millis(nanos);
        match self {
            Change::Worker(worker, activity) => {
                let (value, task) = match activity {
                    Some(Activity::Task { task, codelet }) => (format!("c{}", codelet.0), trace.task_name(*task)),
                    Some(Activity::Fetching { task }) => ("fetch".to_owned(), trace.task_name(*task)),
                    Some(Activity::Idle) => ("idle".to_owned(), String::new()),
                    None => ("between".to_owned(), String::new()),
                };
                writeln!(out, "{SET_STATE} {time} S w{} {value} {}", worker.0, quoted(&task))
            }
            Change::Link((from, to), moving) => {
                let value = moving.map_or("free", |(_, why)| why.name());
                let data = moving.map_or_else(String::new, |(data, _)| trace.data_name(data));
                writeln!(out, "{SET_STATE} {time} T k{}-{} {value} {}", from.0, to.0, quoted(&data))
            }
            Change::Transfer(begins, of, number) => {
                let (event, end) = if *begins { (START_LINK, of.from) } else { (END_LINK, of.to) };
                writeln!(out, "{event} {time} L p m{} {} {number}", end.0, quoted(&trace.data_name(of.data)))
            }
            Change::Event(event) => write_event(trace, event, &time, out),
        }
    }
}

fn write_event(trace: &Trace, event: &Event, time: &str, out: &mut dyn Write) -> io::Result<()> {
    match event {
        Event::Noted { note } => {
            let Some(note) = trace.notes.get(note) else { return Ok(()) };
            let kind = if note.kind == NoteKind::Fault { "F" } else { "G" };
            let text = quoted(&format!("{}: {}", note.kind, note.text));
            writeln!(out, "{NEW_EVENT} {time} {kind} n{} {text}", note.node.0)
        }
        Event::Woken { worker } => writeln!(out, "{NEW_EVENT} {time} E w{} \"wake\"", worker.0),
        Event::Moved { worker, to, .. } => {
            writeln!(out, "{NEW_EVENT} {time} V w{} {}", worker.0, quoted(&format!("to {}", trace.context(*to))))
        }
        Event::Refused { node, why, .. } => {
            writeln!(out, "{NEW_EVENT} {time} R n{} {}", node.0, quoted(&why.to_string()))
        }
        Event::QueueLength { node, length } => writeln!(out, "{SET_VARIABLE} {time} Q n{} {length}", node.0),
        _ => Ok(()),
    }
}

/// A quoted field. The format has no escape for a quotation mark, and readers take two in a row for a part of the next
/// field.
fn quoted(words: &str) -> String {
    if words.is_empty() {
        return "\" \"".to_owned();
    }
    let safe = |c: char| {
        if c == '"' {
            '\''
        } else if c.is_control() {
            ' '
        } else {
            c
        }
    };
    format!("\"{}\"", words.chars().map(safe).collect::<String>())
}

/// Three numbers from 0 to 1 for `#rrggbb`.
fn rgb(hex: &str) -> String {
    let part = |at: usize| {
        let part = hex.get(at..at + 2).and_then(|digits| u8::from_str_radix(digits, 16).ok());
        f64::from(part.unwrap_or(0)) / 255.0
    };
    format!("\"{:.3} {:.3} {:.3}\"", part(1), part(3), part(5))
}

fn millis(nanos: u64) -> String {
    format!("{}.{:06}", nanos / 1_000_000, nanos % 1_000_000)
}

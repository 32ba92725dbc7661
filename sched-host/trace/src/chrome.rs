//! The Trace Event Format of Perfetto and `chrome://tracing`.
//!
//! Three "processes" group the tracks: the workers, the links between memories, and the scheduler, with a counter for
//! each node that stored tasks and a mark for each refusal, fault and line of the log. Where there are several ranks,
//! the workers of each are a process of their own, with a track for the messages that it sends and one for those that
//! it receives, and an arrow from one to the other for each message. A worker that the hypervisor
//! moves to another context has a mark on its track. An arrow leads from a task to each that it made ready. Times are
//! in microseconds, as the format requires, with nanoseconds as decimals.

mod messages;

use super::event::{Event, Note};
use super::timeline::{Activity, Timeline};
use super::track::Trace;
use sched_core::{TaskId, WorkerId};
use sched_tree::NoteKind;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Write};

const WORKERS: u32 = 1;
const LINKS: u32 = 2;
const SCHEDULER: u32 = 3;
/// The first rank.
const RANKS: u32 = 4;

/// One event. The fields are the keys of the format.
#[derive(Serialize, Default)]
struct Line<'a> {
    name: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    cat: &'a str,
    ph: &'a str,
    ts: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    dur: Option<f64>,
    pid: u32,
    tid: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<u64>,
    /// Binding point: an arrow ends at the enclosing slice instead of the next one.
    #[serde(skip_serializing_if = "Option::is_none")]
    bp: Option<&'a str>,
    /// Scope of a mark: its own track.
    #[serde(skip_serializing_if = "Option::is_none")]
    s: Option<&'a str>,
    #[serde(skip_serializing_if = "Args::is_none")]
    args: Args<'a>,
}

/// Details of an event, shown when it is selected.
#[derive(Serialize, Default)]
#[serde(untagged)]
enum Args<'a> {
    #[default]
    None,
    Name {
        name: &'a str,
    },
    Order {
        sort_index: u32,
    },
    Task {
        task: u64,
        #[serde(skip_serializing_if = "Option::is_none")]
        name: Option<&'a str>,
    },
    Transfer {
        data: &'a str,
        bytes: u64,
        why: &'static str,
    },
    Message {
        /// The other rank.
        rank: &'a str,
        bytes: u64,
    },
    Refusal {
        task: u64,
        why: String,
    },
    Length {
        tasks: u32,
    },
    Remark {
        text: &'a str,
    },
    Move {
        #[serde(skip_serializing_if = "Option::is_none")]
        from: Option<&'a str>,
        to: &'a str,
    },
}

impl Args<'_> {
    fn is_none(&self) -> bool {
        matches!(self, Args::None)
    }
}

/// Writer of the lines of a file.
struct Lines<'a> {
    out: &'a mut dyn Write,
    first: bool,
}

impl Lines<'_> {
    fn add(&mut self, line: &Line<'_>) -> io::Result<()> {
        self.out.write_all(if std::mem::take(&mut self.first) { b"\n" } else { b",\n" })?;
        serde_json::to_writer(&mut *self.out, line)?;
        Ok(())
    }

    /// Names a group of tracks.
    fn group(&mut self, pid: u32, name: &str) -> io::Result<()> {
        self.add(&Line { name: "process_name", ph: "M", pid, args: Args::Name { name }, ..Line::default() })?;
        // Ranks stand where the workers of a single process do.
        let args = Args::Order { sort_index: if pid < RANKS { pid } else { WORKERS } };
        self.add(&Line { name: "process_sort_index", ph: "M", pid, args, ..Line::default() })
    }

    /// Names a track.
    fn track(&mut self, pid: u32, tid: u32, name: &str) -> io::Result<()> {
        self.add(&Line { name: "thread_name", ph: "M", pid, tid, args: Args::Name { name }, ..Line::default() })?;
        let args = Args::Order { sort_index: tid };
        self.add(&Line { name: "thread_sort_index", ph: "M", pid, tid, args, ..Line::default() })
    }
}

pub(super) fn write(trace: &Trace, out: &mut dyn Write) -> io::Result<()> {
    let timeline = Timeline::of(trace);
    let about = serde_json::json!({ "title": trace.title, "dropped_events": trace.dropped });
    write!(out, "{{\"displayTimeUnit\":\"ms\",\"otherData\":{about},\"traceEvents\":[")?;
    let mut lines = Lines { out, first: true };
    write_workers(trace, &timeline, &mut lines)?;
    messages::write(trace, &mut lines)?;
    write_links(trace, &timeline, &mut lines)?;
    write_moments(trace, &mut lines)?;
    writeln!(lines.out, "\n]}}")
}

fn write_workers(trace: &Trace, timeline: &Timeline, lines: &mut Lines<'_>) -> io::Result<()> {
    if trace.ranks.is_empty() {
        lines.group(WORKERS, &format!("workers ({})", trace.title))?;
    }
    for (rank, name) in (0..).zip(&trace.ranks) {
        lines.group(RANKS + rank, &format!("{name} ({})", trace.title))?;
    }
    for (id, worker) in (0..).zip(&trace.workers) {
        lines.track(pid(trace, WorkerId(id)), tid(id), &worker.name)?;
    }
    for (id, spans) in timeline.workers.iter().enumerate() {
        for span in spans {
            let name = |task: TaskId| trace.names.get(&task).map(AsRef::as_ref);
            let (what, cat, args) = match span.activity {
                Activity::Task { task, codelet } => {
                    (trace.codelet(codelet), "task", Args::Task { task: task.sequence(), name: name(task) })
                }
                Activity::Fetching { task } => {
                    ("waits for data", "fetch", Args::Task { task: task.sequence(), name: name(task) })
                }
                Activity::Idle => ("idle", "idle", Args::None),
            };
            lines.add(&Line {
                name: what,
                cat,
                ph: "X",
                ts: micros(span.begin),
                dur: Some(micros(span.end - span.begin)),
                pid: pid(trace, WorkerId(id as u32)),
                tid: tid(id as u32),
                args,
                ..Line::default()
            })?;
        }
    }
    Ok(())
}

fn write_links(trace: &Trace, timeline: &Timeline, lines: &mut Lines<'_>) -> io::Result<()> {
    if timeline.links.is_empty() {
        return Ok(());
    }
    lines.group(LINKS, "links between memories")?;
    for (id, ((from, to), spans)) in (0u32..).zip(&timeline.links) {
        lines.track(LINKS, tid(id), &trace.link_name(*from, *to))?;
        for span in spans {
            let (data, why) = (trace.data_name(span.transfer.data), span.transfer.why.name());
            lines.add(&Line {
                name: why,
                cat: "transfer",
                ph: "X",
                ts: micros(span.begin),
                dur: Some(micros(span.end - span.begin)),
                pid: LINKS,
                tid: tid(id),
                args: Args::Transfer { data: &data, bytes: span.transfer.bytes, why },
                ..Line::default()
            })?;
        }
    }
    Ok(())
}

/// Writes marks, counters and arrows, in the order of time.
fn write_moments(trace: &Trace, lines: &mut Lines<'_>) -> io::Result<()> {
    lines.group(SCHEDULER, "scheduler")?;
    let mut marked = BTreeSet::new();
    let mut arrows = Arrows { trace, begun: BTreeMap::new(), ended: BTreeMap::new(), ready: BTreeMap::new() };
    for stamped in &trace.events {
        let ts = micros(stamped.nanos);
        arrows.look(stamped.nanos, &stamped.event, lines)?;
        match stamped.event {
            Event::Woken { worker } => {
                let (pid, tid) = (pid(trace, worker), tid(worker.0));
                let mark = Line { name: "wake", cat: "wake", ph: "i", s: Some("t"), ts, pid, tid, ..Line::default() };
                lines.add(&mark)?;
            }
            Event::Moved { worker, from, to } => {
                let (from, to) = (from.map(|from| trace.context(from)), trace.context(to));
                let (name, args) = (format!("to {to}"), Args::Move { from, to });
                let (cat, ph, s, pid, tid) = ("hypervisor", "i", Some("t"), pid(trace, worker), tid(worker.0));
                lines.add(&Line { name: &name, cat, ph, s, ts, pid, tid, args, ..Line::default() })?;
            }
            Event::Refused { task, node, why } => {
                let path = trace.node_path(node);
                if marked.insert(node) {
                    lines.track(SCHEDULER, tid(node.0), path)?;
                }
                let args = Args::Refusal { task: task.sequence(), why: why.to_string() };
                let (name, ph, s, pid, tid) = ("refusal", "i", Some("t"), SCHEDULER, tid(node.0));
                let mark = Line { name, cat: name, ph, s, ts, pid, tid, args, ..Line::default() };
                lines.add(&mark)?;
            }
            Event::Noted { note } => {
                let Some(note) = trace.notes.get(&note) else { continue };
                let Note { node, kind, text } = note;
                if marked.insert(*node) {
                    lines.track(SCHEDULER, tid(node.0), trace.node_path(*node))?;
                }
                let cat = if *kind == NoteKind::Fault { "fault" } else { "log" };
                let (name, args, tid) = (kind.to_string(), Args::Remark { text }, tid(node.0));
                let (ph, s, pid) = ("i", Some("t"), SCHEDULER);
                lines.add(&Line { name: &name, cat, ph, s, ts, pid, tid, args, ..Line::default() })?;
            }
            Event::QueueLength { node, length } => {
                let path = trace.node_path(node);
                let (name, args) = (format!("tasks in {path}"), Args::Length { tasks: length });
                lines.add(&Line { name: &name, cat: "queue", ph: "C", ts, pid: SCHEDULER, args, ..Line::default() })?;
            }
            _ => {}
        }
    }
    Ok(())
}

/// Arrows from a task to each that it made ready.
struct Arrows<'t> {
    trace: &'t Trace,
    begun: BTreeMap<WorkerId, u64>,
    /// Begin and end of the last task of each worker.
    ended: BTreeMap<WorkerId, (u64, u64)>,
    /// For each task that was made ready, the worker that did it and a time within the task that it executed.
    ready: BTreeMap<TaskId, (WorkerId, u64)>,
}

impl Arrows<'_> {
    fn look(&mut self, now: u64, event: &Event, lines: &mut Lines<'_>) -> io::Result<()> {
        match *event {
            Event::Ended { worker, .. } => {
                if let Some(begin) = self.begun.remove(&worker) {
                    self.ended.insert(worker, (begin, now));
                }
            }
            Event::Ready { task, by: Some(by) } => {
                if let Some((begin, end)) = self.ended.get(&by) {
                    // The end itself belongs to the next slice.
                    self.ready.insert(task, (by, end.saturating_sub(1).max(*begin)));
                }
            }
            Event::Started { task, worker, .. } => {
                self.begun.insert(worker, now);
                if let Some((by, at)) = self.ready.remove(&task) {
                    let arrow = |ph, nanos, worker: WorkerId, bp| Line {
                        name: "makes ready",
                        cat: "dependency",
                        ph,
                        ts: micros(nanos),
                        pid: pid(self.trace, worker),
                        tid: tid(worker.0),
                        id: Some(task.sequence()),
                        bp,
                        ..Line::default()
                    };
                    lines.add(&arrow("s", at, by, None))?;
                    lines.add(&arrow("f", now, worker, Some("e")))?;
                }
            }
            _ => {}
        }
        Ok(())
    }
}

/// The process of a worker.
fn pid(trace: &Trace, worker: WorkerId) -> u32 {
    match trace.workers.get(worker.index()) {
        Some(track) if !trace.ranks.is_empty() => RANKS + track.rank,
        _ => WORKERS,
    }
}

/// Track of an index. Viewers give track 0 another meaning.
fn tid(number: u32) -> u32 {
    number + 1
}

fn micros(nanos: u64) -> f64 {
    nanos as f64 / 1000.0
}

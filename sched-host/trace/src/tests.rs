//! What workers did when, from single events.

mod ranks;

use crate::{
    Activity, CodeletId, Event, Format, Gantt, RankMessage, Stamped, Timeline, Trace, WorkerTrack, gantt,
    measured_bound, planned,
};
use sched_core::{Arch, TaskId, WorkerId};
use sched_graph::generate::cholesky;
use sched_graph::reference::{Links, Problem, Processor, heft};
use sched_graph::{DataId, Task, TaskGraph};
use sched_tree::ObservedNode;

const W: WorkerId = WorkerId(0);

const K: CodeletId = CodeletId(0);

fn t(sequence: u64) -> TaskId {
    TaskId::new(sequence)
}

fn trace(events: &[(u64, Event)]) -> Trace {
    let workers = vec![WorkerTrack::new(0, "cpu".to_owned())];
    let stamped = events.iter().map(|(nanos, event)| Stamped { nanos: *nanos, event: *event });
    let codelets = vec!["k".to_owned()];
    Trace { workers, codelets, nodes: vec!["fifo".to_owned(); 2], ..Trace::default() }.with_events(stamped.collect())
}

fn spans(trace: &Trace) -> Vec<(u64, u64, Activity)> {
    Timeline::of(trace).workers[0].iter().map(|span| (span.begin, span.end, span.activity)).collect()
}

#[test]
fn time_is_idle_fetching_or_with_a_task() {
    // The second task is fetched while the first is executed.
    let trace = trace(&[
        (100, Event::Submitted { task: t(1) }),
        (110, Event::Pulled { task: t(1), worker: W }),
        (120, Event::Started { task: t(1), worker: W, codelet: K }),
        (130, Event::Pulled { task: t(2), worker: W }),
        (140, Event::Ended { task: t(1), worker: W }),
        (145, Event::Started { task: t(2), worker: W, codelet: K }),
        (150, Event::Ended { task: t(2), worker: W }),
        (150, Event::Idle { worker: W }),
        (180, Event::Started { task: t(3), worker: W, codelet: K }),
        (190, Event::Ended { task: t(3), worker: W }),
        (195, Event::Idle { worker: W }),
    ]);
    let task = |sequence| Activity::Task { task: t(sequence), codelet: K };
    assert_eq!(
        spans(&trace),
        [
            (0, 10, Activity::Idle),
            (10, 20, Activity::Fetching { task: t(1) }),
            (20, 40, task(1)),
            (40, 45, Activity::Fetching { task: t(2) }),
            (45, 50, task(2)),
            (50, 80, Activity::Idle),
            (80, 90, task(3)),
        ]
    );
    assert_eq!(trace.end, 90);
}

#[test]
fn a_queue_is_as_long_as_tasks_are_in_it_and_what_is_said_too_late_does_not_count() {
    let trace = trace(&[
        (0, Event::Submitted { task: t(1) }),
        (1, Event::Held { task: t(1), node: ObservedNode(0) }),
        (2, Event::Held { task: t(2), node: ObservedNode(0) }),
        // It passes the second node within a moment.
        (3, Event::Held { task: t(1), node: ObservedNode(1) }),
        (3, Event::Started { task: t(1), worker: W, codelet: K }),
        (4, Event::Held { task: t(1), node: ObservedNode(1) }),
        (5, Event::Held { task: t(2), node: ObservedNode(1) }),
        (9, Event::Ended { task: t(1), worker: W }),
    ]);
    let lengths = trace.events.iter().filter_map(|stamped| match stamped.event {
        Event::QueueLength { node, length } => Some((stamped.nanos, node.0, length)),
        _ => None,
    });
    assert_eq!(lengths.collect::<Vec<_>>(), [(1, 0, 1), (2, 0, 2), (3, 0, 1), (5, 0, 0), (5, 1, 1)]);
}

#[test]
fn ranks_are_shown_apart_with_an_arrow_for_each_message() {
    let workers =
        [(0, 0), (0, 1), (1, 0)].map(|(rank, id)| WorkerTrack::of_rank(rank, ["one", "two"][rank as usize], id, "cpu"));
    let message = |data| RankMessage { data, from: 1, to: 0, bytes: 8 };
    let (first, second) = (message(Some(DataId(7))), message(None));
    let events = [
        (0, Event::Submitted { task: t(1) }),
        (0, Event::Started { task: t(1), worker: WorkerId(2), codelet: K }),
        (50, Event::Ended { task: t(1), worker: WorkerId(2) }),
        (50, Event::Sent(first)),
        (60, Event::Sent(second)),
        (2000, Event::Received(first)),
        (2010, Event::Received(second)),
        // Sent before the trace begins.
        (2020, Event::Received(first)),
    ];
    let stamped = events.map(|(nanos, event)| Stamped { nanos, event }).to_vec();
    let ranks = vec!["one".to_owned(), "two".to_owned()];
    let trace = Trace { ranks, workers: workers.to_vec(), codelets: vec!["k".to_owned()], ..Trace::default() };
    let trace = trace.with_events(stamped);
    let mut json = Vec::new();
    Format::Chrome.write(&trace, &mut json).expect("a vector takes it");
    let json: serde_json::Value = serde_json::from_slice(&json).expect("it is JSON");
    let lines = json["traceEvents"].as_array().expect("it is a list");
    let of = |key: &str, value: &str| lines.iter().filter(|line| line[key] == value).cloned().collect::<Vec<_>>();
    let tracks: Vec<_> =
        of("name", "thread_name").iter().map(|line| (line["pid"].as_u64(), line["args"]["name"].clone())).collect();
    let named = |pid, name: &str| (Some(pid), serde_json::Value::from(name));
    assert_eq!(tracks[..3], [named(4, "0:cpu 0"), named(4, "0:cpu 1"), named(5, "1:cpu 0")]);
    assert_eq!(tracks[3..], [named(4, "receives"), named(5, "sends")]);
    assert_eq!(of("cat", "task")[0]["pid"], 5);
    let ends = |ph: &str| {
        of("ph", ph)
            .iter()
            .map(|line| (line["pid"].as_u64(), line["ts"].as_f64(), line["id"].as_u64()))
            .collect::<Vec<_>>()
    };
    assert_eq!(ends("s"), [(Some(5), Some(0.05), Some(1)), (Some(5), Some(0.06), Some(2))]);
    assert_eq!(ends("f"), [(Some(4), Some(2.0), Some(1)), (Some(4), Some(2.01), Some(2))]);
    let marks = of("cat", "message");
    let mark = marks.iter().find(|line| line["name"] == "data 7" && line["pid"] == 5).expect("it is marked");
    assert_eq!((mark["dur"].as_f64(), &mark["args"]["rank"]), (Some(0.01), &serde_json::Value::from("one")));
    let picture = gantt(&trace, &Gantt::default());
    assert!(picture.contains("one: 2 workers busy") && picture.contains("two: 1 worker busy"), "{picture}");
}

#[test]
fn no_field_of_a_paje_file_is_empty() {
    let mut trace = trace(&[
        (0, Event::Submitted { task: t(1) }),
        (10, Event::Started { task: t(1), worker: W, codelet: K }),
        (20, Event::Ended { task: t(1), worker: W }),
    ]);
    trace.codelets = vec![String::new()];
    trace.names.insert(t(1), "".into());
    let mut out = Vec::new();
    Format::Paje.write(&trace, &mut out).expect("memory can be written");
    let text = String::from_utf8(out).expect("it is text");
    assert!(text.contains("5 c0 S \" \" ") && !text.contains("\"\""), "{text}");
}

#[test]
fn a_plan_is_a_trace_of_its_placements() {
    let graph = cholesky(4, 960);
    let workers = (0..2).map(|id| WorkerTrack::new(id, "cpu".to_owned())).collect();
    let processors = [Processor { arch: Arch::CPU, place: 0 }; 2];
    let problem = Problem::of(&graph, &processors, Links::FREE, |_, _| Some(0.01)).expect("every task can run");
    let schedule = heft(&problem);
    let trace = planned(&graph, &schedule, Trace { workers, ..Trace::of_graph(&graph, "HEFT") });
    assert_eq!(trace.end, (schedule.makespan() * 1e9).round() as u64);
    let tasks = Timeline::of(&trace).workers.into_iter().flatten();
    let tasks = tasks.filter(|span| matches!(span.activity, Activity::Task { .. }));
    assert!(tasks.clone().all(|span| span.end - span.begin >= 9_999_999));
    assert_eq!(tasks.count(), graph.tasks.len());
}

#[test]
fn a_measured_run_cannot_have_been_shorter_than_its_chain_or_its_share() {
    let mut graph = TaskGraph::new("two");
    let kind = graph.add_kind("k");
    let first = graph.add_task(Task::new(kind));
    graph.add_task(Task::new(kind).after(first));
    let events = [
        (0, Event::Submitted { task: t(1) }),
        (1_000, Event::Started { task: t(1), worker: W, codelet: K }),
        (3_000, Event::Ended { task: t(1), worker: W }),
        (4_000, Event::Started { task: t(2), worker: W, codelet: K }),
        (7_000, Event::Ended { task: t(2), worker: W }),
    ];
    let bound = measured_bound(&trace(&events), &graph).expect("all tasks are there");
    assert!((bound - 5e-6).abs() < 1e-12, "{bound}");
    assert_eq!(measured_bound(&trace(&events[..3]), &graph), None, "a task is missing");
    graph.kinds[0].name = "other".to_owned();
    assert_eq!(measured_bound(&trace(&events), &graph), None, "it is another graph");
}

/// The colours of a picture's legend, by the name of the kernel.
fn legend(picture: &str) -> Vec<(String, String)> {
    let swatches = picture.split("<rect ").filter_map(|rest| {
        let (rect, text) = rest.split_once("/><text ")?;
        let (_, fill) = rect.split_once("fill=\"")?;
        let (_, words) = text.split_once('>')?;
        let (kernel, _) = words.split_once('<')?.0.split_once(" (")?;
        Some((kernel.to_owned(), fill.split('"').next()?.to_owned()))
    });
    let mut swatches: Vec<_> = swatches.collect();
    swatches.sort();
    swatches
}

#[test]
fn a_kernel_has_the_same_colour_in_the_graph_and_in_the_chart() {
    let graph = cholesky(5, 64);
    let processors = [Processor { arch: Arch::CPU, place: 0 }; 2];
    let problem = Problem::of(&graph, &processors, Links::FREE, |_, _| Some(0.01)).expect("every task can run");
    let workers = (0..2).map(|worker| WorkerTrack::new(worker, "cpu".to_owned())).collect();
    let trace = planned(&graph, &heft(&problem), Trace { workers, ..Trace::of_graph(&graph, "HEFT") });
    let of_graph = legend(&sched_graph::draw::svg(&graph, &graph.dependencies()));
    let kernels: Vec<&str> = of_graph.iter().map(|(kernel, _)| kernel.as_str()).collect();
    assert_eq!(kernels, ["gemm", "potrf", "syrk", "trsm"]);
    assert_eq!(legend(&gantt(&trace, &Gantt::default())), of_graph);
    // A runtime numbers codelets in the order in which they are defined.
    let renumbered = Trace { codelets: ["trsm", "syrk", "potrf", "gemm"].map(str::to_owned).into(), ..trace };
    assert_eq!(legend(&gantt(&renumbered, &Gantt::default())), of_graph);
}

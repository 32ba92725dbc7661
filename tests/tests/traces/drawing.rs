//! Drawings: what is in them, and how large they are.

use crate::{factorisation, simulated};
use sched_core::{TaskId, WorkerId};
use sched_host::graph::generate::{cholesky, independent};
use sched_host::sim::Platform;
use sched_host::sim::platform::find;
use sched_host::trace::{Bound, CodeletId, Event, Gantt, Stamped, Trace, WorkerTrack, gantt};
use std::collections::BTreeSet;
use std::time::Duration;

const FIRST: TaskId = TaskId::new(1);

fn bounded(seconds: f64) -> Gantt {
    Gantt { bound: Some(Bound { seconds, name: "lower bound".to_owned() }), ..Gantt::default() }
}

/// All texts, and all tooltips; it is XML, and names nothing from elsewhere.
fn texts(drawing: &str) -> Vec<String> {
    let document = roxmltree::Document::parse(drawing).unwrap_or_else(|error| panic!("{error}"));
    for node in document.descendants() {
        for attribute in node.attributes() {
            assert!(!attribute.value().contains("://"), "{attribute:?}");
        }
    }
    let shown = document.descendants().filter(|node| node.has_tag_name(("http://www.w3.org/2000/svg", "text")));
    let titles = document.descendants().filter(|node| node.has_tag_name(("http://www.w3.org/2000/svg", "title")));
    shown.chain(titles).filter_map(|node| node.text().map(str::to_owned)).collect()
}

#[test]
fn rows_legend_lines_and_tooltips() {
    let texts = texts(&gantt(&factorisation(), &bounded(0.08)));
    let has = |wanted: &str| assert!(texts.iter().any(|text| text == wanted), "{wanted} is not among {texts:#?}");
    for wanted in ["cpu 0", "gpu 11", "ram → gpu0", "potrf (8)", "gemm (56)", "idle", "lower bound 80 ms", "0 ms"] {
        has(wanted);
    }
    let starts = |wanted: &str| assert!(texts.iter().any(|text| text.starts_with(wanted)), "{wanted}: {texts:#?}");
    for wanted in
        ["makespan ", "120 tasks on 12 workers, makespan ", "cpu: 9 workers busy ", "potrf(0) (potrf, task 1): "]
    {
        starts(wanted);
    }
}

#[test]
fn twenty_thousand_tasks_stay_small() {
    let graph = cholesky(48, 960);
    let tasks = graph.tasks.len();
    assert!(tasks > 19_000, "{tasks}");
    let drawing = gantt(&simulated(graph, find("cpu9-gpu3").expect("it is shipped"), "tree-eager"), &bounded(1.0));
    assert!(drawing.len() < 800_000, "{} bytes", drawing.len());
    assert!(texts(&drawing).iter().any(|text| text.starts_with(&format!("{tasks} tasks on 12 workers"))));
}

#[test]
fn a_thousand_workers_stay_small() {
    let trace =
        simulated(independent(20_000, Duration::from_millis(1)), Platform::flat(1024, Duration::ZERO), "tree-eager");
    let drawing = gantt(&trace, &Gantt::default());
    assert!(drawing.len() < 1_500_000, "{} bytes", drawing.len());
    texts(&drawing);
}

#[test]
fn workers_side_by_side_without_a_task_share_a_row() {
    let idle_beside = |tasks| {
        let trace =
            simulated(independent(tasks, Duration::from_millis(1)), Platform::flat(64, Duration::ZERO), "tree-ws");
        let started = trace.events.iter().filter_map(|stamped| match stamped.event {
            Event::Started { worker, .. } => Some(worker),
            _ => None,
        });
        let busy = started.collect::<BTreeSet<WorkerId>>().len();
        (busy, texts(&gantt(&trace, &Gantt::default())))
    };
    let (busy, many) = idle_beside(640);
    assert_eq!(busy, 64);
    assert!(!many.iter().any(|text| text.ends_with(" idle")), "{many:?}");
    let (busy, few) = idle_beside(3);
    assert_eq!(busy, 3);
    let rows = few.iter().filter(|text| text.contains(" busy 0.0 % of the time"));
    assert!(rows.clone().count() < 5, "{few:?}");
    assert!(rows.clone().any(|text| text.contains(" to ") && text.contains(": 0 tasks,")), "{few:?}");
    assert!(few.iter().any(|text| text.starts_with("cpu: 64 workers busy ")), "all count: {few:?}");
}

#[test]
fn nothing_at_all_and_strange_names_are_drawn() {
    texts(&gantt(&Trace::default(), &bounded(f64::NAN)));
    texts(&gantt(&Trace::default(), &bounded(0.0)));
    let mut trace = factorisation();
    trace.title = "<&\"\u{1}>".to_owned();
    trace.names.insert(FIRST, "a < b & c".into());
    trace.dropped = 3;
    let texts = texts(&gantt(&trace, &Gantt::default()));
    assert!(texts.iter().any(|text| text.starts_with("a < b & c (potrf, task 1)")));
    assert!(texts.iter().any(|text| text.starts_with("3 events ")), "{texts:?}");
}

#[test]
fn a_title_that_is_too_long_is_shortened_and_whole_in_a_tooltip() {
    let title = "long ".repeat(100);
    let texts = texts(&gantt(&factorisation(), &Gantt { title: Some(title.clone()), ..Gantt::default() }));
    assert!(texts[0].contains('…') && texts[0].chars().count() < 200, "{}", texts[0]);
    assert!(texts.contains(&title));
}

#[test]
fn schedules_side_by_side_share_an_axis() {
    let trace = factorisation();
    let until = Gantt { until: Some(10.0), ..Gantt::default() };
    assert!(texts(&gantt(&trace, &until)).contains(&"10 s".to_owned()));
    let shorter = Gantt { until: Some(1e-6), ..Gantt::default() };
    assert_eq!(gantt(&trace, &shorter), gantt(&trace, &Gantt::default()));
}

#[test]
fn a_task_that_several_execute_together_is_one_task() {
    let on = |event: fn(WorkerId) -> Event| (0..3).map(move |worker| event(WorkerId(worker)));
    let started = on(|worker| Event::Started { task: FIRST, worker, codelet: CodeletId(0) })
        .map(|event| Stamped { nanos: 0, event });
    let ended = on(|worker| Event::Ended { task: FIRST, worker }).map(|event| Stamped { nanos: 50, event });
    let mut trace = Trace::default();
    trace.workers = (0..3).map(|id| WorkerTrack::new(id, "cpu".to_owned())).collect();
    trace.codelets = vec!["potrf".to_owned()];
    let texts = texts(&gantt(&trace.with_events(started.chain(ended).collect()), &Gantt::default()));
    assert!(texts.contains(&"1 task on 3 workers, makespan 50 ns".to_owned()), "{texts:#?}");
    assert!(texts.contains(&"potrf (1)".to_owned()), "{texts:#?}");
}

#[test]
fn a_schedule_of_centuries_is_drawn() {
    let mut trace = factorisation();
    let factor = (1 << 60) / trace.end;
    trace.events.iter_mut().for_each(|stamped| stamped.nanos *= factor);
    trace.end *= factor;
    assert!(texts(&gantt(&trace, &bounded(1.0))).iter().any(|text| text.starts_with("120 tasks on 12 workers")));
}

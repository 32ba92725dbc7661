//! `--explain makespan`: the chain of tasks that a makespan consists of.

use super::table::table;
use sched_trace::{Behind, Chain, Parts, Trace};
use serde::Serialize;
use std::fmt::Write as _;

/// What `--explain` takes for the whole schedule.
pub(super) const MAKESPAN: &str = "makespan";

/// Maximum number of tasks in the table; of more, it shows the first and the last.
const MOST: usize = 40;

/// What a makespan consists of. Fields are JSON keys; times are in seconds.
#[derive(Serialize)]
pub(super) struct MakespanReport {
    before_s: f64,
    needed_s: f64,
    in_the_way_s: f64,
    data_s: f64,
    unassigned_s: f64,
    chain: Vec<LinkReport>,
}

#[derive(Serialize)]
struct LinkReport {
    task: u64,
    name: String,
    worker: u32,
    #[serde(skip)]
    worker_name: String,
    behind: &'static str,
    unassigned_s: f64,
    data_s: f64,
    begin_s: f64,
    end_s: f64,
}

/// The report of a trace; `None` if no task has run.
pub(super) fn report(trace: &Trace) -> Option<MakespanReport> {
    let chain = Chain::of(trace)?;
    let Parts { before, needed, in_the_way, data, unassigned } = chain.parts();
    let link = |link: &sched_trace::Link| LinkReport {
        task: link.task.sequence(),
        name: trace.task_name(link.task),
        worker: link.worker.0,
        worker_name: trace.workers.get(link.worker.index()).map_or_else(String::new, |worker| worker.name.clone()),
        behind: match link.behind {
            Behind::Program => "program",
            Behind::Task => "task",
            Behind::Worker => "worker",
        },
        unassigned_s: seconds(link.unassigned),
        data_s: seconds(link.data),
        begin_s: seconds(link.begin),
        end_s: seconds(link.end),
    };
    let [before_s, needed_s, in_the_way_s, data_s, unassigned_s] =
        [before, needed, in_the_way, data, unassigned].map(seconds);
    let chain = chain.links.iter().map(link).collect();
    Some(MakespanReport { before_s, needed_s, in_the_way_s, data_s, unassigned_s, chain })
}

/// The parts, and a row for each task.
pub(super) fn text(report: &MakespanReport) -> String {
    let total = report.chain.last().map_or(0.0, |last| last.end_s);
    let tasks = sched_text::count(report.chain.len() as u64, "task");
    let mut text = format!("makespan {total:.6} s, a chain of {tasks}, each as soon as the one before had ended\n");
    let parts = [
        (report.needed_s, "tasks that the next one waited for, and the last one"),
        (report.in_the_way_s, "tasks that the worker of the next one was busy with"),
        (report.data_s, "a worker waits for data"),
        (report.unassigned_s, "a task is ready, its later worker is free, and they have not met"),
        (report.before_s, "before the first task"),
    ];
    for (seconds, what) in parts {
        // Writing to a string cannot fail.
        let _ = writeln!(text, "  {seconds:.6} s  {:5.1} %  {what}", 100.0 * seconds / total.max(f64::MIN_POSITIVE));
    }
    let row = |link: &LinkReport| {
        [
            format!("{:.6}", link.begin_s),
            link.name.clone(),
            link.worker_name.clone(),
            format!("{:.6}", link.end_s - link.begin_s),
            link.behind.to_owned(),
            format!("{:.6}", link.data_s),
            format!("{:.6}", link.unassigned_s),
        ]
    };
    let header = ["BEGIN (S)", "TASK", "WORKER", "LENGTH (S)", "BEHIND", "DATA (S)", "UNASSIGNED (S)"];
    let rows: Vec<[String; 7]> = match &report.chain[..] {
        few if few.len() <= MOST => few.iter().map(row).collect(),
        many => {
            let gap = ["…"; 7].map(str::to_owned);
            let (first, last) = (&many[..MOST / 2], &many[many.len() - MOST / 2..]);
            first.iter().map(row).chain([gap]).chain(last.iter().map(row)).collect()
        }
    };
    format!("{text}\n{}\n", table(header, rows, [0, 3, 5, 6]))
}

pub(super) fn seconds(nanos: u64) -> f64 {
    nanos as f64 / 1e9
}

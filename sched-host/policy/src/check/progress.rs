//! Rules of progress: the root never refuses, and every scheduling area has its pumps.
//!
//! A *reservoir* is a component that stores. Reservoirs and leaves divide the tree into *scheduling areas*. Each area
//! needs a pump for each direction of flow: the application pushes into the first; a worker pulls from the area above
//! it; and between two reservoirs the upper one is the pump, which sends tasks down when the lower one signals room.

use super::below::{Keeps, KnownComponent};
use super::site::Subject;
use sched_text::Finding;

/// V1: on each way from the root, an unbounded store comes before anything that may refuse.
pub(super) fn refuses(subject: &Subject<'_>) -> Vec<Finding> {
    let mut findings = Vec::new();
    for root in subject.roots() {
        subject.descend(vec![root], |known| {
            let finding = refusal(subject, known);
            let ends = known.info.stores || finding.is_some();
            findings.extend(finding.map(|finding| with_fix(finding, root, known)));
            if ends { Vec::new() } else { subject.children_of(known) }
        });
    }
    findings
}

/// The reason why this component might refuse a task although everything below accepts it.
fn refusal(subject: &Subject<'_>, known: KnownComponent<'_>) -> Option<Finding> {
    let name = known.name();
    match known.keeps() {
        Keeps::Everything => None,
        Keeps::Some(found) => {
            let message =
                format!("the root may refuse tasks: no unbounded queue stands above `{name}`, which is bounded");
            Some(found.into_iter().fold(Finding::error(message), |finding, (bound, set)| match set {
                Some(setting) => finding.at(setting.span, "full at this bound"),
                None => finding.at(known.span(), format!("full at the default of `{bound}`")),
            }))
        }
        Keeps::Nothing if known.info.wakes_workers => {
            let children = subject.children_of(known);
            let worker = children.into_iter().find(|child| child.is_worker())?;
            Some(
                Finding::error(format!(
                    "the root may refuse tasks: no queue above `{name}` keeps them for its workers"
                ))
                .at(known.span(), "keeps no task, and hands a worker one only when it pulls")
                .at(worker.span(), "this worker"),
            )
        }
        Keeps::Nothing if known.info.may_refuse && !known.info.forwards_push => {
            let message =
                format!("the root may refuse tasks: no unbounded queue stands above `{name}`, which may refuse");
            Some(Finding::error(message).at(known.span(), "may refuse a task"))
        }
        Keeps::Nothing => None,
    }
}

fn with_fix(finding: Finding, root: KnownComponent<'_>, known: KnownComponent<'_>) -> Finding {
    let at_root = std::ptr::eq(root.component, known.component);
    let finding = if at_root { finding } else { finding.at(root.span(), "tasks enter here") };
    let help = format!("put an unbounded queue at the top: `fifo {{ {} {{ … }} }}`", root.name());
    match known.keeps() {
        Keeps::Some(found) if at_root => {
            let bounds: Vec<String> = found.iter().map(|(bound, _)| format!("`{bound}`")).collect();
            finding.help(format!("set {} to 0, or {help}", bounds.join(" and ")))
        }
        _ => finding.help(help),
    }
}

/// V3: between two reservoirs the upper one pumps, and the lower one says when it has room.
pub(super) fn pumps(subject: &Subject<'_>) -> Vec<Finding> {
    let mut findings = Vec::new();
    subject.descend(subject.roots(), |upper| {
        if upper.is_reservoir() {
            let mut lower = Vec::new();
            subject.descend(subject.children_of(upper), |known| {
                lower.extend(Some(known).filter(|known| known.is_reservoir()));
                if known.info.stores { Vec::new() } else { subject.children_of(known) }
            });
            findings.extend(lower.into_iter().filter_map(|lower| no_pump(upper, lower)));
        }
        subject.children_of(upper)
    });
    findings
}

/// V3: where a component that pushes when it is pulled stands above a worker, the reservoir above it pumps.
pub(super) fn sorted(subject: &Subject<'_>) -> Vec<Finding> {
    let mut findings = Vec::new();
    subject.descend(subject.roots(), |upper| {
        if upper.is_reservoir() && upper.info.pulled_only {
            subject.descend(subject.children_of(upper), |sorts| match (sorts.info.stores, sorts.info.pushes_on_pull) {
                (true, _) => Vec::new(),
                (false, true) => {
                    findings.extend(worker_below(subject, sorts).map(|worker| kept_above(upper, sorts, worker)));
                    Vec::new()
                }
                (false, false) => subject.children_of(sorts),
            });
        }
        subject.children_of(upper)
    });
    findings
}

/// A worker below this component without a reservoir in between.
fn worker_below<'a>(subject: &Subject<'a>, above: KnownComponent<'a>) -> Option<KnownComponent<'a>> {
    let mut worker = None;
    subject.descend(subject.children_of(above), |known| {
        worker = worker.or(Some(known).filter(|known| known.is_worker()));
        if known.info.stores { Vec::new() } else { subject.children_of(known) }
    });
    worker
}

fn kept_above(upper: KnownComponent<'_>, sorts: KnownComponent<'_>, worker: KnownComponent<'_>) -> Finding {
    let (up, sort) = (upper.name(), sorts.name());
    Finding::error(format!("nothing moves tasks from `{up}` to workers, through `{sort}`"))
        .at(sorts.span(), "asks above for more, and does not pull")
        .at(upper.span(), "keeps tasks until it is pulled")
        .at(worker.span(), "this worker")
        .help(format!("put `fifo` in the place of `{up}`"))
}

/// V3: below a component that pushes when it is pulled, no component leaves tasks for workers to pull.
pub(super) fn pushed(subject: &Subject<'_>) -> Vec<Finding> {
    let mut findings = Vec::new();
    subject.descend(subject.roots(), |sorts| {
        if sorts.info.pushes_on_pull {
            subject.descend(subject.children_of(sorts), |known| {
                if known.info.stores {
                    return Vec::new();
                }
                let children = subject.children_of(known);
                let worker = children.iter().find(|child| child.is_worker()).filter(|_| known.info.wakes_workers);
                findings.extend(worker.map(|worker| left_to_pull(sorts, known, *worker)));
                children
            });
        }
        subject.children_of(sorts)
    });
    findings
}

fn left_to_pull(sorts: KnownComponent<'_>, leaves: KnownComponent<'_>, worker: KnownComponent<'_>) -> Finding {
    let (sort, name) = (sorts.name(), leaves.name());
    Finding::error(format!("no worker gets what `{name}` leaves for it to pull, through `{sort}`"))
        .at(leaves.span(), "hands a worker a task only when it pulls")
        .at(worker.span(), "this worker")
        .at(sorts.span(), "pulls end here")
        .help(format!("put a queue above the worker: `fifo ntasks-threshold=2 {{ {} }}`", worker.name()))
}

fn no_pump(upper: KnownComponent<'_>, lower: KnownComponent<'_>) -> Option<Finding> {
    let (up, down) = (upper.name(), lower.name());
    let (label_up, label_down, fix) = match (upper.info.pulled_only, lower.info.pulled_only) {
        (false, false) => return None,
        (true, false) => {
            ("keeps tasks until it is pulled", "asks above for more, and does not pull", format!("`{up}`"))
        }
        (false, true) => {
            ("sends tasks down when it is asked for more", "never asks above for more", format!("`{down}`"))
        }
        (true, true) => ("keeps tasks until it is pulled", "never asks above for more", "both".to_owned()),
    };
    Some(
        Finding::error(format!("nothing moves tasks from `{up}` to `{down}`"))
            .at(lower.span(), label_down)
            .at(upper.span(), label_up)
            .help(format!("leave out one of the two queues, or put `fifo` in the place of {fix}")),
    )
}

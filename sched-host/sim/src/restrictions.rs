//! Checks of the workers that may execute the tasks of a simulation, before it starts.

use super::context::Change;
use super::engine::{Opening, PlannedChange};
use super::error::{Nowhere, SimError};
use super::lengths::Lengths;
use super::platform::Platform;
use super::specs::Specs;
use sched_core::{Arch, ArchSet, WorkerId};
use sched_graph::{ContextId, KindId, TaskGraph, Where};
use std::collections::BTreeMap;

/// Checks that each task is restricted to places with a worker that can execute it.
pub(super) fn check(graph: &TaskGraph, specs: &Specs, platform: &Platform, lengths: &Lengths) -> Result<(), SimError> {
    let mut kinds: BTreeMap<KindId, Nowhere> = BTreeMap::new();
    for (id, _) in specs.iter().filter(|(_, spec)| spec.is_special() && spec.runs()) {
        let task = graph.task(id);
        let Some(places) = task.only.as_deref() else { continue };
        if platform.remaining(task, lengths.archs(lengths.row(id))).is_none() {
            let first = || Nowhere {
                kind: graph.kind_of(task).name.clone(),
                places: places.to_string(),
                first: id.0,
                tasks: 0,
            };
            kinds.entry(task.kind).or_insert_with(first).tasks += 1;
        }
    }
    match kinds.is_empty() {
        true => Ok(()),
        false => Err(SimError::Nowhere { platform: platform.name.clone(), tasks: kinds.into_values().collect() }),
    }
}

/// The workers of a context to which none are added, and their architectures.
struct Fixed {
    workers: Vec<(WorkerId, Arch)>,
    archs: ArchSet,
}

/// Checks that each context with workers, to which none are added later, has one that can execute each of its tasks.
/// Those that are `governed` have all of their workers together.
pub(super) fn check_contexts(
    graph: &TaskGraph,
    specs: &Specs,
    platform: &Platform,
    lengths: &Lengths,
    contexts: &[Opening],
    changes: &[PlannedChange],
    governed: &[usize],
) -> Result<(), SimError> {
    let grows = |context: usize| {
        let added = |change: &PlannedChange| matches!(change.change, Some(Change::AddWorkers(_)));
        changes.iter().any(|change| change.context == context && added(change))
    };
    let arch = |worker: WorkerId| platform.classes[platform.workers[worker.index()].class].arch;
    let is_fixed = |(number, context): (usize, &Opening)| {
        let number = [number];
        let those = if governed.contains(&number[0]) { governed } else { &number };
        let workers = those.iter().flat_map(|number| contexts[*number].workers.iter());
        let workers: Vec<(WorkerId, Arch)> = workers.map(|worker| (worker, arch(worker))).collect();
        // Workers of any context execute tasks in parts that contexts share.
        let is_shared = context.policy.shared.iter().any(|shared| shared.between_contexts);
        let archs: ArchSet = workers.iter().map(|(_, arch)| *arch).collect();
        let is_fixed = !workers.is_empty() && !is_shared && !those.iter().any(|number| grows(*number));
        is_fixed.then_some(Fixed { workers, archs })
    };
    let fixed: Vec<Option<Fixed>> = contexts.iter().enumerate().map(is_fixed).collect();
    let mut kinds: BTreeMap<(ContextId, KindId), Nowhere> = BTreeMap::new();
    for (id, spec) in specs.iter().filter(|(_, spec)| spec.runs()) {
        let Some(Fixed { workers, archs: of_workers }) = &fixed[spec.context.index()] else { continue };
        let archs = lengths.archs(lengths.row(id));
        if !spec.is_special() && archs.intersects(*of_workers) {
            continue;
        }
        let task = graph.task(id);
        if workers.iter().any(|(worker, arch)| archs.contains(*arch) && task.is_allowed_on(*worker, *arch)) {
            continue;
        }
        let first = || Nowhere {
            kind: graph.kind_of(task).name.clone(),
            places: task.only.as_deref().map_or_else(String::new, Where::to_string),
            first: id.0,
            tasks: 0,
        };
        kinds.entry((task.context, task.kind)).or_insert_with(first).tasks += 1;
    }
    match kinds.is_empty() {
        true => Ok(()),
        false => {
            let name = |context: ContextId| contexts[context.index()].name.clone();
            let tasks = kinds.into_iter().map(|((context, _), tasks)| (name(context), tasks)).collect();
            Err(SimError::NowhereInContext { tasks })
        }
    }
}

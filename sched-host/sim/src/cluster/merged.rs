//! The nodes of a cluster as one machine, and its traces.

use super::Cluster;
use crate::platform::{Kernels, Layout, Memory, Platform, Route, Worker};
use sched_core::{MemoryNode, WorkerId};
use sched_graph::TaskGraph;
use sched_trace::{Trace, WorkerTrack};
use std::collections::BTreeMap;
use std::sync::Arc;

impl Cluster {
    /// All workers as those of one machine with one memory, on which no schedule takes longer than on the cluster: for
    /// lower bounds and priorities. Of the combined workers it has those of one node of each kind: all kinds of teams.
    #[must_use]
    pub fn merged(&self) -> Platform {
        let kinds = self.kinds();
        let mut merged = Platform { name: self.name.clone(), doc: self.doc.clone(), ..Platform::clone(&kinds[0].0) };
        merged.memories =
            vec![Memory { name: "all".to_owned(), capacity: None, device: false, copied_by_workers: false }];
        (merged.links, merged.routes) = (Vec::new(), vec![Route::default()]);
        (merged.classes, merged.workers) = (Vec::new(), Vec::new());
        merged.names = Vec::new();
        if kinds.len() > 1 {
            merged.kernels = Kernels::default();
        }
        let known: BTreeMap<&str, ()> =
            kinds.iter().flat_map(|(platform, _)| platform.kernels.kinds()).map(|kind| (kind, ())).collect();
        let mut first_class = Vec::with_capacity(kinds.len());
        for (platform, _) in &kinds {
            first_class.push(merged.classes.len());
            for (class, spec) in platform.classes.iter().enumerate() {
                if kinds.len() > 1 {
                    let names = known.keys().copied().chain([Kernels::ANY]);
                    merged.kernels.copy_class(&platform.kernels, names, class, merged.classes.len());
                }
                merged.classes.push(spec.clone());
            }
        }
        let (mut teams, mut has_teams_of) = (Vec::new(), vec![false; kinds.len()]);
        for node in &self.nodes {
            let kind = kinds.iter().position(|(platform, _)| Arc::ptr_eq(platform, node)).unwrap_or(0);
            if !std::mem::replace(&mut has_teams_of[kind], true) {
                let first = merged.workers.len();
                teams.extend(node.combined_workers().into_iter().map(|mut team| {
                    team.members.iter_mut().for_each(|member| *member += first);
                    team
                }));
            }
            let here = |worker: &Worker| Worker {
                class: first_class[kind] + worker.class,
                memory: MemoryNode(0),
                package: None,
            };
            merged.workers.extend(node.workers.iter().map(here));
            merged.names.extend((0..node.workers.len() as u32).map(WorkerId));
        }
        merged.layout = Some(Layout::with_combined(teams));
        merged
    }

    /// The platforms of its nodes, each once, with their number of nodes.
    #[must_use]
    pub fn kinds(&self) -> Vec<(Arc<Platform>, usize)> {
        let mut kinds: Vec<(Arc<Platform>, usize)> = Vec::new();
        for node in &self.nodes {
            match kinds.iter_mut().find(|(platform, _)| Arc::ptr_eq(platform, node)) {
                Some((_, count)) => *count += 1,
                None => kinds.push((Arc::clone(node), 1)),
            }
        }
        kinds
    }

    /// A trace of `graph` on this cluster without events.
    #[must_use]
    pub fn empty_trace(&self, graph: &TaskGraph, title: &str) -> Trace {
        let mut trace = Trace::of_graph(graph, title);
        for (rank, node) in (0..).zip(&self.nodes) {
            let name = format!("node {rank}");
            for (id, worker) in node.workers.iter().enumerate() {
                trace.workers.push(WorkerTrack::of_rank(rank, &name, id, &node.classes[worker.class].name));
            }
            trace.ranks.push(name);
            trace.memories.extend(node.memories.iter().map(|memory| format!("{rank}:{}", memory.name)));
        }
        trace
    }
}

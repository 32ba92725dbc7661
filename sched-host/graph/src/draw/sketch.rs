//! What a picture shows: tasks, or groups of them.

use crate::priorities::bottom_levels;
use crate::summary::levels;
use crate::{Dependencies, TaskGraph, TaskId, Weight};
use std::collections::HashMap;

/// A picture shows no more tasks than this one by one.
pub const MOST: usize = 600;

/// A task, or a group of them.
pub(super) struct Node {
    /// Its kind, by its place among the kinds of the graph.
    pub(super) kind: usize,
    /// How deep it is.
    pub(super) level: usize,
    /// How many tasks it stands for.
    pub(super) tasks: usize,
    /// What is written into it.
    pub(super) label: String,
    /// What is said of it elsewhere.
    pub(super) hint: String,
    /// Which task of the critical path it is, from 0.
    pub(super) critical: Option<usize>,
}

/// What a picture shows.
pub(super) struct Sketch {
    pub(super) nodes: Vec<Node>,
    /// From which node to which, and for how many dependencies.
    pub(super) edges: Vec<(usize, usize, usize)>,
    /// What is not shown, if anything.
    pub(super) note: Option<String>,
}

impl Sketch {
    /// Whether the second node comes behind the first on the critical path.
    pub(super) fn is_critical(&self, from: usize, to: usize) -> bool {
        let (from, to) = (self.nodes[from].critical, self.nodes[to].critical);
        from.is_some_and(|from| to == Some(from + 1))
    }

    pub(super) fn of(graph: &TaskGraph, dependencies: &Dependencies) -> Sketch {
        let levels = levels(dependencies);
        if graph.tasks.len() <= MOST {
            return Sketch::each(graph, dependencies, &levels);
        }
        let tasks = graph.tasks.len();
        let by_level =
            Sketch::groups(graph, dependencies, |task| (levels[task.index()], graph.task(task).kind.index()));
        if by_level.nodes.len() <= MOST {
            let note =
                format!("{tasks} tasks are too many to show each: a box is all tasks of a kind that are equally deep");
            return Sketch { note: Some(note), ..by_level };
        }
        let by_kind = Sketch::groups(graph, dependencies, |task| (0, graph.task(task).kind.index()));
        let note = format!("{tasks} tasks are too many to show each: a box is all tasks of a kind");
        Sketch { note: Some(note), ..by_kind }
    }

    fn each(graph: &TaskGraph, dependencies: &Dependencies, levels: &[usize]) -> Sketch {
        let critical = critical_path(graph, dependencies);
        let node = |(number, task): (usize, &crate::Task)| {
            let kind = &graph.kind_of(task).name;
            let label = task.name.as_deref().unwrap_or(kind).to_owned();
            let mut hint = format!("task {number}: {label}");
            if label != *kind {
                hint.push_str(&format!(" ({kind})"));
            }
            hint.push_str(&format!(", priority {}", task.priority));
            if task.flops > 0.0 {
                hint.push_str(&format!(", {:.3e} flops", task.flops));
            }
            for arch in task.lengths.archs().iter() {
                let length = task.lengths.get(arch).unwrap_or_default();
                hint.push_str(&format!(", {length:?} on {arch}"));
            }
            Node { kind: task.kind.index(), level: levels[number], tasks: 1, label, hint, critical: critical[number] }
        };
        let nodes = graph.tasks.iter().enumerate().map(node).collect();
        let edges = graph
            .ids()
            .flat_map(|task| dependencies.successors(task).iter().map(move |next| (task.index(), next.index(), 1)));
        Sketch { nodes, edges: edges.collect(), note: None }
    }

    /// A node for each level and kind that `group` gives for some task.
    fn groups(graph: &TaskGraph, dependencies: &Dependencies, group: impl Fn(TaskId) -> (usize, usize)) -> Sketch {
        let mut places: HashMap<(usize, usize), usize> = HashMap::new();
        let mut nodes: Vec<Node> = Vec::new();
        let mut of_task = Vec::with_capacity(graph.tasks.len());
        for task in graph.ids() {
            let (level, kind) = group(task);
            let place = *places.entry((level, kind)).or_insert_with(|| {
                let (label, hint) = (String::new(), String::new());
                nodes.push(Node { kind, level, tasks: 0, label, hint, critical: None });
                nodes.len() - 1
            });
            nodes[place].tasks += 1;
            of_task.push(place);
        }
        for node in &mut nodes {
            let name = &graph.kinds[node.kind].name;
            node.label = format!("{name} × {}", node.tasks);
            node.hint = format!("{} tasks of kind {name}", node.tasks);
        }
        let mut counts: HashMap<(usize, usize), usize> = HashMap::new();
        for task in graph.ids() {
            for next in dependencies.successors(task) {
                *counts.entry((of_task[task.index()], of_task[next.index()])).or_default() += 1;
            }
        }
        let mut edges: Vec<(usize, usize, usize)> =
            counts.into_iter().map(|((from, to), count)| (from, to, count)).collect();
        edges.sort_unstable();
        Sketch { nodes, edges, note: None }
    }
}

/// Of each task which one of the heaviest chain it is.
fn critical_path(graph: &TaskGraph, dependencies: &Dependencies) -> Vec<Option<usize>> {
    let weight = Weight::of(graph);
    let behind = bottom_levels(dependencies, |task| weight.of_task(graph, graph.task(task)));
    let heaviest = |tasks: &mut dyn Iterator<Item = TaskId>| {
        tasks.reduce(|best, task| if behind[task.index()] > behind[best.index()] { task } else { best })
    };
    let mut place = vec![None; graph.tasks.len()];
    let mut length = 0;
    let mut next = heaviest(&mut dependencies.entries());
    while let Some(task) = next {
        place[task.index()] = Some(length);
        length += 1;
        next = heaviest(&mut dependencies.successors(task).iter().copied());
    }
    place
}

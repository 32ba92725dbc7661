//! Merges graphs, each in a scheduling context of its own.

use super::{Access, ContextId, DataId, KindId, Task, TaskGraph, TaskId, WontUse};

impl TaskGraph {
    /// Merges graphs that share nothing into one. Their tasks are submitted in turn: the first of each graph, then the
    /// second of each, and so on. Tasks of the first graph belong to context 1, those of the second to context 2, and
    /// so on; see [`Task::context`].
    ///
    /// ```
    /// use sched_graph::{ContextId, TaskGraph, generate::cholesky};
    /// let two = TaskGraph::side_by_side("two", &[&cholesky(4, 100), &cholesky(4, 100)]);
    /// assert_eq!(two.tasks.len(), 40);
    /// assert_eq!((two.tasks[0].context, two.tasks[1].context), (ContextId(1), ContextId(2)));
    /// ```
    ///
    /// # Panics
    /// When there are 2¹⁶ − 1 graphs or more, or 2³² tasks or pieces of data.
    #[must_use]
    pub fn side_by_side(name: impl Into<String>, graphs: &[&TaskGraph]) -> TaskGraph {
        assert!(graphs.len() < usize::from(u16::MAX), "contexts are numbered with 16 bits");
        let mut whole = TaskGraph::new(name);
        let mut parts: Vec<Copied> = Vec::with_capacity(graphs.len());
        for graph in graphs {
            let first_data = u32::try_from(whole.data.len()).expect("data is numbered with 32 bits");
            for datum in &graph.data {
                whole.add_data(datum.clone());
            }
            let kinds = graph.kinds.iter().map(|kind| match whole.kinds.iter().position(|known| known == kind) {
                Some(known) => KindId(known as u32),
                None => {
                    whole.kinds.push(kind.clone());
                    KindId(whole.kinds.len() as u32 - 1)
                }
            });
            parts.push(Copied { kinds: kinds.collect(), first_data, tasks: Vec::with_capacity(graph.tasks.len()) });
        }
        let longest = graphs.iter().map(|graph| graph.tasks.len()).max().unwrap_or(0);
        for number in 0..longest {
            for ((graph, part), context) in graphs.iter().zip(&mut parts).zip((1..=u16::MAX).map(ContextId)) {
                if let Some(task) = graph.tasks.get(number) {
                    let id = whole.add_task(part.moved(task, context));
                    part.tasks.push(id);
                }
            }
        }
        for (graph, part) in graphs.iter().zip(&parts) {
            whole.wont_use.extend(graph.wont_use.iter().map(|hint| part.hint(*hint)));
        }
        whole.wont_use.sort_by_key(|hint| hint.submitted);
        whole
    }
}

/// One of the graphs: where its kinds, data and tasks are in the whole.
struct Copied {
    kinds: Vec<KindId>,
    first_data: u32,
    tasks: Vec<TaskId>,
}

impl Copied {
    fn data(&self, data: DataId) -> DataId {
        DataId(data.0 + self.first_data)
    }

    fn moved(&self, task: &Task, context: ContextId) -> Task {
        Task {
            kind: self.kinds[task.kind.index()],
            context,
            accesses: task.accesses.iter().map(|access| Access { data: self.data(access.data), ..*access }).collect(),
            after: task.after.iter().map(|before| self.tasks[before.index()]).collect(),
            ..task.clone()
        }
    }

    fn hint(&self, hint: WontUse) -> WontUse {
        let last = (hint.submitted as usize).checked_sub(1).and_then(|last| self.tasks.get(last));
        WontUse { submitted: last.map_or(0, |last| last.0 + 1), data: self.data(hint.data) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::generate::{cholesky, stencil};
    use std::time::Duration;

    #[test]
    fn each_graph_keeps_its_shape() {
        let (mut first, second) = (cholesky(5, 100), stencil(3, 4, Duration::from_millis(1), 8));
        first.wont_use.push(WontUse { submitted: 2, data: DataId(1) });
        let whole = TaskGraph::side_by_side("both", &[&first, &second]);
        assert_eq!(whole.wont_use, [WontUse { submitted: 3, data: DataId(1) }]);
        let dependencies = whole.dependencies();
        for (graph, context) in [(&first, 1), (&second, 2)] {
            let of_whole: Vec<TaskId> =
                whole.ids().filter(|task| whole.task(*task).context == ContextId(context)).collect();
            assert_eq!(of_whole.len(), graph.tasks.len());
            let alone = graph.dependencies();
            for (task, moved) in graph.ids().zip(&of_whole) {
                let before: Vec<TaskId> = alone.predecessors(task).iter().map(|id| of_whole[id.index()]).collect();
                assert_eq!(dependencies.predecessors(*moved), before);
                assert_eq!(graph.kind_of(graph.task(task)), whole.kind_of(whole.task(*moved)));
            }
        }
    }
}

//! The shapes of the task graphs on which overhead is measured.

use serde::Serialize;
use std::fmt;

/// A shape of a graph of empty tasks.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Shape {
    /// No task waits for another.
    Independent,
    /// No task waits for another, but the program waits for each ten of them before it submits the next.
    Waited,
    /// Each task waits for the one before.
    Chain,
    /// A tile Cholesky factorisation of 38 × 38 tiles: 9 880 tasks.
    Cholesky,
    /// The same factorisation, recorded before the clock starts, and replayed.
    Replayed,
}

impl Shape {
    /// All shapes.
    pub const ALL: [Shape; 5] = [Shape::Independent, Shape::Waited, Shape::Chain, Shape::Cholesky, Shape::Replayed];

    /// Name in reports and on the command line.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Shape::Independent => "independent",
            Shape::Waited => "waited",
            Shape::Chain => "chain",
            Shape::Cholesky => "cholesky",
            Shape::Replayed => "replayed",
        }
    }

    /// One line that describes it.
    #[must_use]
    pub const fn description(self) -> &'static str {
        match self {
            Shape::Independent => "No task waits for another",
            Shape::Waited => "Independent tasks, of which the program waits for each ten before it submits the next",
            Shape::Chain => "Each task waits for the one before",
            Shape::Cholesky => "A tile Cholesky factorisation of 38 × 38 tiles: 9 880 tasks",
            Shape::Replayed => "The same factorisation, recorded beforehand and replayed",
        }
    }

    /// The graph, for peers that need it beforehand. `tasks` applies to the shapes of variable size.
    pub(super) fn graph(self, tasks: usize) -> Graph {
        match self {
            Shape::Independent => Graph::independent(tasks),
            Shape::Waited => Graph::independent(tasks.next_multiple_of(BATCH)),
            Shape::Chain => Graph {
                successors: (1..=tasks).map(|next| if next < tasks { vec![next as u32] } else { Vec::new() }).collect(),
                waits_for: (0..tasks).map(|task| u32::from(task > 0)).collect(),
            },
            Shape::Cholesky | Shape::Replayed => cholesky_graph(CHOLESKY_TILES),
        }
    }
}

impl fmt::Display for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

const CHOLESKY_TILES: usize = 38;

/// Number of tasks that the program waits for at a time, in [`Shape::Waited`].
pub(super) const BATCH: usize = 10;

/// A task graph.
pub(super) struct Graph {
    pub(super) successors: Vec<Vec<u32>>,
    /// For each task, the number of tasks that it waits for.
    pub(super) waits_for: Vec<u32>,
}

impl Graph {
    pub(super) fn independent(tasks: usize) -> Graph {
        Graph { successors: vec![Vec::new(); tasks], waits_for: vec![0; tasks] }
    }

    pub(super) fn len(&self) -> usize {
        self.successors.len()
    }
}

/// Number of tiles per side of a factorisation with about `tasks` tasks.
pub(super) fn tiles_of(tasks: usize) -> usize {
    (1..).find(|tiles| tiles * (tiles + 1) * (tiles + 2) / 6 >= tasks).unwrap_or(1)
}

/// Number of tiles of the lower triangle.
pub(super) fn lower_tiles(tiles: usize) -> usize {
    tiles * (tiles + 1) / 2
}

/// Calls `task` for each task of a tile Cholesky factorisation, in order, with the tiles that it reads and the one that
/// it writes.
pub(super) fn cholesky(tiles: usize, mut task: impl FnMut(&[usize], usize)) {
    let at = |row: usize, column: usize| row * (row + 1) / 2 + column;
    for k in 0..tiles {
        task(&[], at(k, k));
        for i in k + 1..tiles {
            task(&[at(k, k)], at(i, k));
        }
        for i in k + 1..tiles {
            task(&[at(i, k)], at(i, i));
            for j in k + 1..i {
                task(&[at(i, k), at(j, k)], at(i, j));
            }
        }
    }
}

fn cholesky_graph(tiles: usize) -> Graph {
    let mut graph = Graph { successors: Vec::new(), waits_for: Vec::new() };
    let mut writer: Vec<Option<u32>> = vec![None; lower_tiles(tiles)];
    let mut readers: Vec<Vec<u32>> = vec![Vec::new(); lower_tiles(tiles)];
    cholesky(tiles, |reads, writes| {
        let task = graph.len() as u32;
        graph.successors.push(Vec::new());
        graph.waits_for.push(0);
        let mut before: Vec<u32> = reads.iter().filter_map(|tile| writer[*tile]).collect();
        before.append(&mut readers[writes]);
        before.extend(writer[writes]);
        before.sort_unstable();
        before.dedup();
        for earlier in &before {
            graph.successors[*earlier as usize].push(task);
        }
        graph.waits_for[task as usize] = before.len() as u32;
        reads.iter().for_each(|tile| readers[*tile].push(task));
        writer[writes] = Some(task);
    });
    graph
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cholesky_has_the_tasks_of_its_formula_and_one_source() {
        let graph = Shape::Cholesky.graph(0);
        assert_eq!(graph.len(), 9_880);
        assert_eq!(tiles_of(9_880), 38);
        assert_eq!(graph.waits_for.iter().filter(|count| **count == 0).count(), 1);
        let edges: usize = graph.successors.iter().map(Vec::len).sum();
        assert_eq!(edges as u32, graph.waits_for.iter().sum::<u32>());
    }
}

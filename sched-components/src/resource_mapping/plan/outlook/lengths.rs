//! Lengths of tasks on lanes: most tasks share theirs with many others.

/// See the [module](self).
#[derive(Clone, Default, Debug)]
pub(in crate::resource_mapping::plan) struct Lengths {
    lanes: usize,
    /// By row and lane.
    rows: Vec<u64>,
    /// The row of each task.
    row_of: Vec<u32>,
}

impl Lengths {
    /// Those of no task yet, on this number of lanes.
    pub(in crate::resource_mapping::plan) fn new(lanes: usize) -> Lengths {
        Lengths { lanes, rows: Vec::new(), row_of: Vec::new() }
    }

    /// Adds lengths for any number of tasks, one for each lane. Returns their row.
    pub(in crate::resource_mapping::plan) fn add_row(&mut self, lengths: &[u64]) -> u32 {
        let row = self.rows.len() / self.lanes.max(1);
        self.rows.extend_from_slice(lengths);
        row as u32
    }

    /// The lengths of a row.
    pub(super) fn row(&self, row: u32) -> &[u64] {
        &self.rows[row as usize * self.lanes..][..self.lanes]
    }

    /// Adds a task with the lengths of a row.
    pub(in crate::resource_mapping::plan) fn push(&mut self, row: u32) {
        self.row_of.push(row);
    }

    /// The lengths of a task, by lane.
    pub(super) fn of(&self, task: usize) -> &[u64] {
        self.row(self.row_of[task])
    }

    pub(super) fn get(&self, task: usize, lane: usize) -> u64 {
        self.rows[self.row_of[task] as usize * self.lanes + lane]
    }

    /// The lengths of each task, apart from those of all others from now on.
    pub(in crate::resource_mapping::plan) fn each_apart(&mut self) -> impl Iterator<Item = &mut [u64]> {
        let rows = self.row_of.iter().flat_map(|row| self.row(*row).iter().copied());
        self.rows = rows.collect();
        (0..).zip(&mut self.row_of).for_each(|(task, row)| *row = task);
        self.rows.chunks_mut(self.lanes.max(1))
    }
}

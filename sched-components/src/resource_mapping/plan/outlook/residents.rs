//! What is in memories that not all data fits into, when a plan is made.

use super::{Builder, NEVER, Outlook, View};
use crate::resource_mapping::plan::replicas::Replicas;
use crate::resource_mapping::plan::under_way::UnderWay;
use sched_core::{DataAccess, MemoryNode};
use std::collections::BTreeMap;

impl Outlook {
    /// Finds the replicas in memories that not all data fits into. `data` has the numbers of the data.
    pub(super) fn find_replicas(&mut self, under_way: &UnderWay, data: &BTreeMap<u64, usize>) {
        let total = self.bytes.iter().fold(0, |sum: u64, bytes| sum.saturating_add(*bytes));
        let limits = |memory: usize| under_way.capacity(memory).filter(|capacity| *capacity < total);
        self.replicas = Replicas::new(self.bytes.len(), (0..self.memories).map(limits).collect());
        if !self.replicas.are_limited() {
            return;
        }
        let mut in_use = vec![false; self.copies.len()];
        for (task, lane, _) in &self.sent {
            let memory = self.lanes[*lane].memory;
            self.uses(*task).iter().for_each(|used| in_use[used.data * self.memories + memory] = true);
        }
        let mut there: Vec<(bool, u64, usize)> = Vec::new();
        for memory in 0..self.memories {
            if !self.replicas.limits(memory) {
                continue;
            }
            for (name, number) in data {
                let place = number * self.memories + memory;
                let is_valid = self.copies[place] != NEVER;
                self.allocated[place] = is_valid || in_use[place];
                if self.allocated[place] {
                    self.replicas.take(memory, self.bytes[*number]);
                    there.push((is_valid, under_way.last_use(*name, memory), place));
                }
            }
        }
        there.sort_unstable();
        there.into_iter().for_each(|(.., place)| self.replicas.list(place, false));
    }
}

impl Builder<'_> {
    /// Adds the data that no task here uses and that takes room where not all data fits.
    pub(super) fn add_residents(&mut self) {
        let View { submitted, under_way, .. } = *self.view;
        for memory in 0..self.outlook.memories {
            let Some(capacity) = under_way.capacity(memory) else { continue };
            let is_there = |data: u64| submitted.has_copy(data, MemoryNode(memory as u32));
            let others = under_way.held(memory).filter(|(data, _)| !self.data.contains_key(data) && is_there(*data));
            let others: Vec<(u64, u64)> = others.collect();
            let bytes = others.iter().map(|(_, bytes)| bytes).chain(&self.outlook.bytes);
            if bytes.fold(0, |sum: u64, bytes| sum.saturating_add(*bytes)) > capacity {
                for (data, bytes) in others {
                    self.number_of(DataAccess { data, bytes, reads: false, writes: false });
                }
            }
        }
    }
}

//! Cores that nodes share: ranks of one machine that has fewer cores than they have workers.
//!
//! While more cores are asked for than there are, all work of a group goes on at the same part of its speed (processor
//! sharing): a scheduler that gives each thread its turn in short slices does so in the limit. Work is then ordered by
//! the progress that it needs, in a time of the group that runs at that speed.

use super::SharedCores;
use crate::engine::{CoreWork, Job};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// See the [module](self).
pub(super) struct Processors {
    groups: Vec<Group>,
    /// For each node, its group.
    of_node: Vec<Option<usize>>,
    /// The next end of each group that has one, with its version, and others that are out of date.
    next: BinaryHeap<Reverse<(u64, usize, u64)>>,
}

struct Group {
    cores: f64,
    running: BinaryHeap<Reverse<Running>>,
    /// Number of cores that are asked for.
    asked: f64,
    /// Time up to which progress is counted.
    at: u64,
    /// Nanoseconds that work which runs since the beginning would have got so far.
    progress: f64,
    /// Number of changes.
    version: u64,
}

/// Work that goes on.
#[derive(PartialEq)]
struct Running {
    /// The progress of the group at its end.
    until: f64,
    /// Order of asking.
    sequence: u64,
    node: usize,
    job: Job,
    cores: f64,
}

impl Eq for Running {}

impl PartialOrd for Running {
    fn partial_cmp(&self, other: &Running) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Running {
    fn cmp(&self, other: &Running) -> std::cmp::Ordering {
        self.until.total_cmp(&other.until).then(self.sequence.cmp(&other.sequence))
    }
}

impl Group {
    /// The part of its speed at which work goes on.
    fn rate(&self) -> f64 {
        if self.asked > self.cores { self.cores / self.asked } else { 1.0 }
    }

    fn advance(&mut self, now: u64) {
        self.progress += (now - self.at) as f64 * self.rate();
        self.at = now;
    }

    /// Time of the next end.
    fn next_end(&self) -> Option<u64> {
        let Reverse(first) = self.running.peek()?;
        let left = ((first.until - self.progress) / self.rate()).max(0.0).ceil();
        // What does not fit is never reached: graphs whose lengths add up to so much are refused.
        Some(self.at.saturating_add(left as u64))
    }
}

impl Processors {
    pub(super) fn new(shared: &[SharedCores], nodes: usize) -> Processors {
        let mut of_node = vec![None; nodes];
        let group = |(place, shared): (usize, &SharedCores)| {
            of_node[shared.nodes.clone()].fill(Some(place));
            let (cores, asked, progress) = (shared.cores as f64, 0.0, 0.0);
            Group { cores, running: BinaryHeap::new(), asked, at: 0, progress, version: 0 }
        };
        let groups = shared.iter().enumerate().map(group).collect();
        Processors { groups, of_node, next: BinaryHeap::new() }
    }

    /// A node begins some work.
    pub(super) fn begin(&mut self, now: u64, node: usize, work: CoreWork) {
        let Some(group) = self.of_node[node] else { return };
        let of = &mut self.groups[group];
        of.advance(now);
        of.version += 1;
        let (until, cores) = (of.progress + work.nanos as f64, f64::from(work.cores));
        of.asked += cores;
        of.running.push(Reverse(Running { until, sequence: of.version, node, job: work.job, cores }));
        self.plan(group);
    }

    fn plan(&mut self, group: usize) {
        if let Some(end) = self.groups[group].next_end() {
            self.next.push(Reverse((end, group, self.groups[group].version)));
        }
    }

    /// Time of the next end.
    pub(super) fn next_time(&mut self) -> Option<u64> {
        while let Some(Reverse((time, group, version))) = self.next.peek().copied() {
            if self.groups[group].version == version {
                return Some(time);
            }
            self.next.pop();
        }
        None
    }

    /// Ends the work that is next, and returns its time, its node and what it is.
    pub(super) fn end_next(&mut self) -> Option<(u64, usize, Job)> {
        let now = self.next_time()?;
        let Reverse((_, group, _)) = self.next.pop()?;
        let of = &mut self.groups[group];
        of.advance(now);
        of.version += 1;
        let Reverse(Running { node, job, cores, .. }) = of.running.pop()?;
        of.asked -= cores;
        self.plan(group);
        Some((now, node, job))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sched_core::WorkerId;

    #[test]
    fn work_on_shared_cores_goes_on_at_the_same_part_of_its_speed() {
        // Nodes 1 to 3 share two cores.
        let mut processors = Processors::new(&[SharedCores { nodes: 1..4, cores: 2 }], 4);
        assert_eq!(processors.of_node, [None, Some(0), Some(0), Some(0)]);
        let job = Job::Kernel(WorkerId(0));
        let work = |nanos| CoreWork { job, nanos, cores: 1 };
        processors.begin(0, 1, work(90));
        processors.begin(0, 2, work(60));
        assert_eq!(processors.next_time(), Some(60), "each has a core");
        // From 30 on each has two thirds of one.
        processors.begin(30, 3, work(10));
        assert_eq!(processors.end_next(), Some((45, 3, job)));
        // They have got 40.
        assert_eq!(processors.end_next(), Some((65, 2, job)));
        assert_eq!(processors.end_next(), Some((95, 1, job)));
        assert_eq!(processors.end_next(), None);
    }

    #[test]
    fn equal_work_ends_in_the_order_in_which_it_began() {
        let mut processors = Processors::new(&[SharedCores { nodes: 0..3, cores: 1 }], 3);
        let job = Job::Kernel(WorkerId(0));
        for node in [2, 0, 1] {
            processors.begin(0, node, CoreWork { job, nanos: 100, cores: 1 });
        }
        let ends: Vec<_> = std::iter::from_fn(|| processors.end_next()).map(|(time, node, _)| (time, node)).collect();
        assert_eq!(ends, [(300, 2), (300, 0), (300, 1)]);
    }
}

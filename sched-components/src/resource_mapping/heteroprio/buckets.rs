//! Tasks by their acceleration.

use crate::queue::{ByArchs, Len, Place};
use sched_core::{ArchSet, Report, Task};

/// Accelerations this near to a bucket's belong in it.
const ALIKE: f64 = 0.1;

/// Buckets of tasks, the most accelerated first, and tasks without an acceleration beside them.
#[derive(Default, Debug)]
pub(super) struct Buckets {
    buckets: Vec<Bucket>,
    unknown: ByArchs,
}

#[derive(Debug)]
struct Bucket {
    acceleration: f64,
    tasks: ByArchs,
}

/// An end of the buckets.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum End {
    /// The tasks with the highest acceleration.
    Most,
    /// The tasks with the lowest.
    Least,
}

/// Where a task was taken, for giving it back.
#[derive(Clone, Copy, Debug)]
pub(super) struct Origin {
    /// That of the bucket; buckets are never taken away.
    acceleration: Option<f64>,
    place: Place,
}

impl Len for Buckets {
    fn len(&self) -> usize {
        self.unknown.len() + self.buckets.iter().map(|bucket| bucket.tasks.len()).sum::<usize>()
    }
}

impl Buckets {
    /// Nanoseconds that the tasks were pushed with, added up.
    pub(super) fn expected(&self) -> u64 {
        self.buckets.iter().map(|bucket| bucket.tasks.expected()).fold(self.unknown.expected(), u64::saturating_add)
    }

    /// Adds a task that counts with `expected` nanoseconds.
    pub(super) fn push(&mut self, task: Task, acceleration: Option<f64>, expected: u64) {
        let (archs, priority) = (task.archs(), task.priority());
        let queue = match acceleration {
            None => &mut self.unknown,
            Some(acceleration) => self.bucket(acceleration),
        };
        queue.push(archs, task, priority, expected);
    }

    /// The bucket for an acceleration: the first that is alike, or a new one.
    fn bucket(&mut self, acceleration: f64) -> &mut ByArchs {
        let alike = |bucket: &Bucket| (bucket.acceleration - acceleration).abs() <= ALIKE * bucket.acceleration;
        let index = self.buckets.iter().position(alike).unwrap_or_else(|| {
            let index = self.buckets.partition_point(|bucket| bucket.acceleration > acceleration);
            self.buckets.insert(index, Bucket { acceleration, tasks: ByArchs::default() });
            index
        });
        &mut self.buckets[index].tasks
    }

    /// Takes the first eligible task of an end, or with `None` of those without an acceleration, that some of `archs` can
    /// execute.
    pub(super) fn pop(
        &mut self,
        end: Option<End>,
        archs: ArchSet,
        eligible: impl Fn(&Task) -> bool,
    ) -> Option<(Task, Origin)> {
        let pop = |bucket: &mut Bucket| {
            let (task, place) = bucket.tasks.pop(archs, &eligible)?;
            Some((task, Origin { acceleration: Some(bucket.acceleration), place }))
        };
        match end {
            None => {
                let (task, place) = self.unknown.pop(archs, &eligible)?;
                Some((task, Origin { acceleration: None, place }))
            }
            Some(End::Most) => self.buckets.iter_mut().find_map(pop),
            Some(End::Least) => self.buckets.iter_mut().rev().find_map(pop),
        }
    }

    /// Puts a task back where it was.
    pub(super) fn unpop(&mut self, task: Task, origin: Origin) {
        let queue = match origin.acceleration {
            None => &mut self.unknown,
            Some(acceleration) => self
                .buckets
                .iter_mut()
                .find(|bucket| bucket.acceleration.total_cmp(&acceleration).is_eq())
                .map(|bucket| &mut bucket.tasks)
                .expect("buckets are never taken away"),
        };
        queue.unpop(task.archs(), task, origin.place);
    }

    /// Takes all tasks: those without an acceleration, then the most accelerated ones first.
    pub(super) fn drain(&mut self) -> Vec<Task> {
        let mut tasks = self.unknown.drain();
        tasks.extend(self.buckets.iter_mut().flat_map(|bucket| bucket.tasks.drain()));
        tasks
    }

    pub(super) fn describe(&self, report: &mut Report) {
        for bucket in &self.buckets {
            report.fact(format!("tasks accelerated {:.1} times", bucket.acceleration), bucket.tasks.len());
        }
        report.fact("tasks without acceleration", self.unknown.len());
    }
}

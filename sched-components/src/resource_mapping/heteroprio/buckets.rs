//! Tasks by their acceleration.

use crate::queue::{Able, ByArchs, Len, Place};
use sched_core::{Report, Task};

/// Largest relative difference between a bucket's acceleration and its tasks'.
const TOLERANCE: f64 = 0.1;

/// Buckets of tasks, the most accelerated first, and the tasks without an acceleration.
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
    /// The tasks with the lowest acceleration.
    Least,
}

/// Where a task was taken from, for putting it back.
#[derive(Clone, Copy, Debug)]
pub(super) struct Origin {
    /// The bucket's acceleration; buckets are never removed.
    acceleration: Option<f64>,
    place: Place,
}

impl Len for Buckets {
    fn len(&self) -> usize {
        self.unknown.len() + self.buckets.iter().map(|bucket| bucket.tasks.len()).sum::<usize>()
    }
}

impl Buckets {
    /// Sum of the tasks' expected lengths in nanoseconds.
    pub(super) fn expected(&self) -> u64 {
        self.buckets.iter().map(|bucket| bucket.tasks.expected()).fold(self.unknown.expected(), u64::saturating_add)
    }

    /// Adds a task whose expected length is `expected` nanoseconds.
    pub(super) fn push(&mut self, task: Task, acceleration: Option<f64>, expected: u64) {
        let priority = task.priority();
        let queue = match acceleration {
            None => &mut self.unknown,
            Some(acceleration) => self.bucket(acceleration),
        };
        queue.push(task, priority, expected);
    }

    /// The bucket for an acceleration: the first close enough, or a new one.
    fn bucket(&mut self, acceleration: f64) -> &mut ByArchs {
        let is_near = |bucket: &Bucket| (bucket.acceleration - acceleration).abs() <= TOLERANCE * bucket.acceleration;
        let index = self.buckets.iter().position(is_near).unwrap_or_else(|| {
            let index = self.buckets.partition_point(|bucket| bucket.acceleration > acceleration);
            self.buckets.insert(index, Bucket { acceleration, tasks: ByArchs::default() });
            index
        });
        &mut self.buckets[index].tasks
    }

    /// Takes the first eligible task that `wanted` workers can execute, from an end of the buckets, or with `None` from
    /// the tasks without an acceleration.
    pub(super) fn pop(
        &mut self,
        end: Option<End>,
        wanted: impl Fn(Able) -> bool,
        eligible: impl Fn(&Task) -> bool,
    ) -> Option<(Task, Origin)> {
        let pop = |bucket: &mut Bucket| {
            let (task, place) = bucket.tasks.pop_of(&wanted, &eligible)?;
            Some((task, Origin { acceleration: Some(bucket.acceleration), place }))
        };
        match end {
            None => {
                let (task, place) = self.unknown.pop_of(&wanted, &eligible)?;
                Some((task, Origin { acceleration: None, place }))
            }
            Some(End::Most) => self.buckets.iter_mut().find_map(pop),
            Some(End::Least) => self.buckets.iter_mut().rev().find_map(pop),
        }
    }

    /// Puts a task back at its position.
    pub(super) fn unpop(&mut self, task: Task, origin: Origin) {
        let queue = match origin.acceleration {
            None => &mut self.unknown,
            Some(acceleration) => self
                .buckets
                .iter_mut()
                .find(|bucket| bucket.acceleration.total_cmp(&acceleration).is_eq())
                .map(|bucket| &mut bucket.tasks)
                .expect("buckets are never removed"),
        };
        queue.unpop(task, origin.place);
    }

    /// Removes all tasks: those without an acceleration, then the most accelerated first.
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

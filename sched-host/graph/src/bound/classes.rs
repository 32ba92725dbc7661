//! Classes of tasks that take equally long.

use super::Durations;
use crate::TaskId;
use std::collections::HashMap;

/// More classes than this are made fewer: the solver's time grows with their square.
const MOST: usize = 600;

/// Bits of a length that are dropped, one after the other, until there are few enough classes.
const COARSER: [u32; 8] = [0, 40, 44, 46, 47, 48, 49, 50];

/// Tasks by how long they take in each pool.
pub(super) struct Classes {
    /// Seconds of a task of each class in each pool.
    pub(super) seconds: Vec<Vec<f64>>,
    /// Tasks of each class.
    pub(super) counts: Vec<u32>,
    of_task: Vec<usize>,
}

impl Classes {
    /// The classes of these lengths; if those are too many, of lengths that are a little shorter.
    pub(super) fn of(lengths: &Durations) -> Classes {
        let mut classes = Classes::of_rounded(lengths, COARSER[0]);
        for dropped in &COARSER[1..] {
            if classes.counts.len() <= MOST {
                break;
            }
            classes = Classes::of_rounded(lengths, *dropped);
        }
        classes
    }

    /// With the last bits of each length `dropped`, which makes it shorter by a part of 2 to the power of `dropped` − 52.
    fn of_rounded(lengths: &Durations, dropped: u32) -> Classes {
        let mut known: HashMap<Vec<u64>, usize> = HashMap::new();
        let mut classes = Classes { seconds: Vec::new(), counts: Vec::new(), of_task: Vec::new() };
        for task in (0..lengths.n_tasks() as u32).map(TaskId) {
            let key: Vec<u64> =
                lengths.of_task(task).iter().map(|seconds| seconds.to_bits() >> dropped << dropped).collect();
            let class = *known.entry(key).or_insert_with_key(|key| {
                classes.seconds.push(key.iter().map(|bits| f64::from_bits(*bits)).collect());
                classes.counts.push(0);
                classes.counts.len() - 1
            });
            classes.counts[class] += 1;
            classes.of_task.push(class);
        }
        classes
    }

    pub(super) fn of_task(&self, task: TaskId) -> usize {
        self.of_task[task.index()]
    }

    /// How many tasks of each class are in `chain`.
    pub(super) fn count(&self, chain: &[TaskId]) -> Vec<u32> {
        let mut counts = vec![0; self.counts.len()];
        for task in chain {
            counts[self.of_task(*task)] += 1;
        }
        counts
    }
}

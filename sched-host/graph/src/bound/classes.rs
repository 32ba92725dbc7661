//! Classes of tasks with the same execution times.

use super::Durations;
use crate::TaskId;
use std::collections::HashMap;

/// Largest number of classes; the solver's time grows with its square.
const MOST: usize = 600;

/// Numbers of bits of an execution time to drop, tried in turn until there are few enough classes.
const COARSER: [u32; 8] = [0, 40, 44, 46, 47, 48, 49, 50];

/// Tasks by their execution times in each pool.
pub(super) struct Classes {
    /// Seconds of a task of each class in each pool.
    pub(super) seconds: Vec<Vec<f64>>,
    /// Number of tasks of each class.
    pub(super) counts: Vec<u32>,
    of_task: Vec<usize>,
}

impl Classes {
    /// The classes of these execution times, rounded down where there are too many.
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

    /// The classes with the last `dropped` bits of each time cleared, which shortens it by a fraction of at most
    /// 2^(`dropped` − 52).
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

    /// Number of tasks of each class in `chain`.
    pub(super) fn count(&self, chain: &[TaskId]) -> Vec<u32> {
        let mut counts = vec![0; self.counts.len()];
        for task in chain {
            counts[self.of_task(*task)] += 1;
        }
        counts
    }
}

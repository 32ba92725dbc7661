//! Near which worker each task of a recording is to run.
//!
//! Workers that run each other's neighbours in a graph wait for cache lines from each other all the time. A recording
//! knows its whole graph, so it says beforehand where a task is [at home](sched_core::Task::home), and the same in each
//! replay. Tasks at the same distance from the beginning of the graph, in the order in which they were recorded, are
//! divided into as many equal parts as there are workers: programs submit neighbours one after the other, a row of a
//! grid as much as a column of a matrix.
//!
//! That is a hint for components; which worker runs a task is decided by the policy. It is given where one worker is as
//! good as another, to tasks beside which there are enough others for all workers: several narrow graphs that are
//! replayed at once would otherwise be at home in the same place.

use super::planned::{Planned, Successor};
use parking_lot::Mutex;
use sched_core::{Arch, WorkerId, WorkerSet};
use sched_sync::at_home::WINDOW;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::*};

/// Most tasks beside each other for each worker, in the mean, that [wait at home](super::at_home): whoever looks for one
/// of them sees those at a few distances. Where there are more, the next one hardly ever has to be waited for, and a
/// queue costs less than looks at many that are not ready.
const NARROW: usize = WINDOW / 4;

/// Where the tasks of a recording are at home.
pub(super) struct Homes {
    /// Of each task, its place among those beside it, and their number.
    beside: Box<[(u32, u32)]>,
    /// The tasks in an order in which none waits for a later one: by their distances.
    order: Box<[u32]>,
    /// Number of different distances.
    levels: usize,
    /// The workers among whom the homes are distributed now.
    among: Mutex<WorkerSet>,
    lists: Mutex<Arc<Lists>>,
    /// Number of times that they were distributed.
    distributions: AtomicU32,
}

/// The tasks of a recording that may [wait at home](super::at_home), by their homes.
#[derive(Default)]
pub(super) struct Lists {
    /// Architecture of the workers, if there are any.
    pub(super) arch: Option<Arch>,
    by_worker: Box<[Box<[u32]>]>,
}

impl Lists {
    /// Those at home with this worker, in an order in which none waits for a later one.
    #[inline]
    pub(super) fn of(&self, worker: WorkerId) -> &[u32] {
        self.by_worker.get(worker.index()).map_or(&[], |tasks| tasks)
    }

    /// Whether there are none.
    pub(super) fn is_empty(&self) -> bool {
        self.by_worker.is_empty()
    }
}

impl Homes {
    /// What the tasks need that are waited for by these.
    pub(super) fn new(successors: &[Vec<Successor>]) -> Homes {
        let mut distances = vec![0; successors.len()];
        for (task, successors) in successors.iter().enumerate() {
            let next = distances[task] + 1;
            successors.iter().for_each(|successor| distances[successor.task()] = next.max(distances[successor.task()]));
        }
        let mut widths = vec![0_u32; distances.iter().max().map_or(0, |most| most + 1)];
        let mut places = Vec::with_capacity(distances.len());
        for distance in &distances {
            places.push(widths[*distance]);
            widths[*distance] += 1;
        }
        let beside = places.into_iter().zip(&distances).map(|(place, distance)| (place, widths[*distance])).collect();
        let mut order: Box<[u32]> = (0..successors.len() as u32).collect();
        order.sort_by_key(|task| distances[*task as usize]);
        let (among, lists) = (Mutex::default(), Mutex::default());
        Homes { beside, order, levels: widths.len(), among, lists, distributions: AtomicU32::new(0) }
    }

    /// Distributes the tasks among these workers, if they were distributed among others. No replay is in progress.
    pub(super) fn distribute(&self, tasks: &[Planned], workers: &WorkerSet, arch: impl Fn(WorkerId) -> Arch) {
        let mut among = self.among.lock();
        if *among == *workers {
            return;
        }
        among.clone_from(workers);
        let first = workers.iter().next().map(&arch);
        tasks.iter().zip(self.among(workers, arch)).for_each(|(task, home)| task.set_home(home));
        let is_narrow = tasks.len() <= NARROW * workers.len() * self.levels;
        *self.lists.lock() = Arc::new(if is_narrow { self.listed(tasks, first) } else { Lists::default() });
        self.distributions.fetch_add(1, Release);
    }

    /// The tasks that may wait at home with workers of this architecture. Notes the place of each.
    fn listed(&self, tasks: &[Planned], arch: Option<Arch>) -> Lists {
        let mut by_worker: Vec<Vec<u32>> = Vec::new();
        for index in &self.order {
            let task = &tasks[*index as usize];
            let Some(home) = task.home().filter(|_| arch.is_some_and(|arch| task.may_wait_at_home(arch))) else {
                continue;
            };
            let home = home as usize;
            by_worker.resize_with(by_worker.len().max(home + 1), Vec::new);
            task.set_place(Some(by_worker[home].len() as u32));
            by_worker[home].push(*index);
        }
        Lists { arch, by_worker: by_worker.into_iter().map(Vec::into_boxed_slice).collect() }
    }

    /// The tasks by homes, as they were distributed last.
    pub(super) fn lists(&self) -> Arc<Lists> {
        Arc::clone(&self.lists.lock())
    }

    /// A number that changes when the tasks are distributed anew.
    #[inline]
    pub(super) fn distribution(&self) -> u32 {
        self.distributions.load(Acquire)
    }

    /// Where each task is at home if these are the workers.
    fn among(&self, workers: &WorkerSet, arch: impl Fn(WorkerId) -> Arch) -> impl Iterator<Item = Option<WorkerId>> {
        let workers: Vec<WorkerId> = workers.iter().collect();
        let are_equal = workers.windows(2).all(|pair| arch(pair[0]) == arch(pair[1]));
        let count = if are_equal { workers.len() as u64 } else { 0 };
        self.beside.iter().map(move |(place, width)| {
            let (place, width) = (u64::from(*place), u64::from(*width));
            (count > 1 && width >= count).then(|| workers[(place * count / width) as usize])
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tasks_at_the_same_distance_lie_beside_each_other() {
        // Two chains of three, and one task that waits for the end of the first.
        let after = [vec![1], vec![2], vec![6], vec![4], vec![5], vec![], vec![]];
        let successors: Vec<Vec<Successor>> =
            after.iter().map(|after| after.iter().map(|task| Successor::new(*task, false)).collect()).collect();
        let homes = Homes::new(&successors);
        assert_eq!(homes.beside[..], [(0, 2), (0, 2), (0, 2), (1, 2), (1, 2), (1, 2), (0, 1)]);
        assert!(Homes::new(&[]).beside.is_empty());
    }

    #[test]
    fn each_worker_is_the_home_of_neighbours_if_there_are_enough_for_all() {
        let homes = Homes::new(&[const { Vec::new() }; 7]);
        let of = |workers: &[u32], cuda: u32| -> Vec<Option<u32>> {
            let workers: WorkerSet = workers.iter().copied().map(WorkerId).collect();
            let arch = |worker: WorkerId| if worker.0 == cuda { Arch::CUDA } else { Arch::CPU };
            homes.among(&workers, arch).map(|home| home.map(|worker| worker.0)).collect()
        };
        assert_eq!(of(&[0, 1], 9), [0, 0, 0, 0, 1, 1, 1].map(Some));
        assert_eq!(of(&[2, 5, 8], 9), [2, 2, 2, 5, 5, 8, 8].map(Some));
        let nowhere = [None; 7];
        assert_eq!(of(&[4], 9), nowhere, "a single worker");
        assert_eq!(of(&[0, 1, 2, 3, 4, 5, 6, 7], 9), nowhere, "too few tasks");
        assert_eq!(of(&[0, 1], 1), nowhere, "another kind of worker");
        assert_eq!(of(&[], 9), nowhere);
    }
}

//! The order in which tasks leave, compared with that of a model.

use super::*;
use proptest::prelude::*;

#[derive(Clone, Debug)]
enum Step {
    Push { by: Option<u32>, home: Option<u32>, priority: i32, archs: u8 },
    Pull { by: u32 },
}

fn steps(priorities: std::ops::Range<i32>, archs: std::ops::Range<u8>) -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        3 => (prop::option::of(0u32..4), prop::option::weighted(0.2, 0u32..4), priorities, archs)
            .prop_map(|(by, home, priority, archs)| Step::Push { by, home, priority, archs }),
        2 => (0u32..4).prop_map(|by| Step::Pull { by }),
    ];
    prop::collection::vec(step, 0..80)
}

/// A reference model of a queue.
#[derive(Default)]
struct Model {
    inside: Vec<(i32, u8, TaskId)>,
    /// Tasks that others pushed, until the first pop that finds nothing else.
    arrived: Vec<(i32, u8, TaskId)>,
    /// Whether any task has a priority: then every pop considers the arrivals.
    ranked: bool,
}

impl Model {
    fn push(&mut self, by_owner: bool, task: (i32, u8, TaskId)) {
        if by_owner { &mut self.inside } else { &mut self.arrived }.push(task);
        self.ranked |= task.0 != 0;
    }

    fn take_over(&mut self) {
        if !self.arrived.is_empty() {
            self.inside.append(&mut self.arrived);
            self.ranked = self.inside.iter().any(|task| task.0 != 0);
        }
    }

    /// The last (`newest`) or first of the highest priority, if that is above `least`.
    fn pop(&mut self, able: impl Fn(u8) -> bool, newest: bool, least: Option<i32>) -> Option<TaskId> {
        if self.inside.is_empty() || self.ranked {
            self.take_over();
        }
        let find = |model: &Model| {
            let above = |priority: i32| least.is_none_or(|least| priority > least);
            let tasks = model.inside.iter().enumerate().filter(|(_, task)| able(task.1) && above(task.0));
            let best = if newest {
                tasks.max_by_key(|(index, task)| (task.0, *index))
            } else {
                tasks.max_by_key(|(index, task)| (task.0, Reverse(*index)))
            };
            best.map(|(index, _)| index)
        };
        let found = find(self).or_else(|| {
            self.take_over();
            find(self)
        });
        found.map(|index| self.inside.remove(index).2)
    }

    fn highest(&mut self) -> Option<i32> {
        self.take_over();
        self.inside.iter().map(|task| task.0).max()
    }
}

/// A reference model of the component with four children: the queue of each, and the common one.
#[derive(Default)]
struct Queues([Model; 5]);

const COMMON: usize = 4;

impl Queues {
    fn pull(&mut self, by: u32, order: [u32; 4], able: impl Fn(u8) -> bool) -> Option<TaskId> {
        let [.., common] = &self.0;
        if common.ranked || self.0[by as usize].ranked {
            let least = self.0[by as usize].highest();
            let urgent = self.0[COMMON].pop(&able, false, least);
            if urgent.is_some() {
                return urgent;
            }
        }
        let [own, others @ ..] = order.map(|lane| lane as usize);
        let (mut first, mut rest) = ([(own, true), (COMMON, false)].into_iter(), others.into_iter());
        let found = first.find_map(|(queue, newest)| self.0[queue].pop(&able, newest, None));
        found.or_else(|| rest.find_map(|queue| self.0[queue].pop(&able, false, None)))
    }

    /// As they are given up.
    fn rest(self) -> Vec<TaskId> {
        let tasks = self.0.iter().flat_map(|queue| queue.inside.iter().chain(&queue.arrived));
        let mut tasks: Vec<_> = tasks.map(|(priority, _, task)| (Reverse(*priority), *task)).collect();
        tasks.sort_unstable();
        tasks.into_iter().map(|(_, task)| task).collect()
    }
}

proptest! {
    /// Compares with a model: workers 0 to 2 are CPUs and 3 a CUDA device; the rig checks that no task is lost or given
    /// to a worker that cannot execute it.
    #[test]
    fn own_tasks_last_first_and_others_first_first(steps in steps(-1..2, 1..4)) {
        let rig = (0..4).fold(stealing().workers(3).worker(Arch::CUDA, MemoryNode(1)), |rig, worker| {
            rig.child(FakeChild::worker(worker))
        });
        let able = |worker: u32, archs: u8| archs & if worker == 3 { 2 } else { 1 } != 0;
        let mut model = Queues::default();
        for step in steps {
            match step {
                Step::Push { by, home, priority, archs } => {
                    let names = [Arch::CPU, Arch::CUDA].into_iter().zip([1, 2]);
                    let names = names.filter(|(_, bit)| archs & bit != 0).map(|(arch, _)| arch);
                    let task = rig.task().priority(priority).archs(names);
                    let task = home.into_iter().fold(task, |task, home| task.home(home)).make();
                    rig.set_requester(by.map(WorkerId));
                    prop_assert_eq!(rig.push(task), Ok(()));
                    rig.set_requester(None);
                    let own = by.filter(|by| able(*by, archs));
                    let queue = home.filter(|home| able(*home, archs)).or(own);
                    let queue = queue.map_or(COMMON, |child| child as usize);
                    model.0[queue].push(own == Some(queue as u32), (priority, archs, task));
                }
                Step::Pull { by } => {
                    let order: [u32; 4] = match by {
                        0 => [0, 1, 2, 3],
                        1 => [1, 2, 0, 3],
                        2 => [2, 1, 0, 3],
                        _ => [3, 0, 2, 1],
                    };
                    prop_assert_eq!(rig.pull(Child(by)), model.pull(by, order, |archs| able(by, archs)));
                }
            }
        }
        prop_assert_eq!(rig.drain(), model.rest());
    }

    /// The same where all workers are of one kind, and a share of the common tasks goes to who takes the first of them.
    #[test]
    fn shares_are_taken_in_order(steps in steps(0..1, 1..2)) {
        let (rig, mut model) = (workers(4), Queues::default());
        for step in steps {
            match step {
                Step::Push { by, home, priority, archs } => {
                    let task = home.into_iter().fold(rig.task(), |task, home| task.home(home)).make();
                    rig.set_requester(by.map(WorkerId));
                    prop_assert_eq!(rig.push(task), Ok(()));
                    rig.set_requester(None);
                    let queue = home.or(by).map_or(COMMON, |child| child as usize);
                    model.0[queue].push(by == Some(queue as u32), (priority, archs, task));
                }
                Step::Pull { by } => {
                    let own = &model.0[by as usize];
                    let is_shared = own.inside.is_empty() && own.arrived.is_empty();
                    let len = model.0[COMMON].inside.len() + model.0[COMMON].arrived.len();
                    let order = [0, 1, 3, 2].map(|step| (by + step) % 4);
                    prop_assert_eq!(rig.pull(Child(by)), model.pull(by, order, |_| true));
                    let more = if is_shared { len / 8 } else { 0 };
                    let common = &mut model.0[COMMON].inside;
                    let mut share: Vec<_> = common.drain(..more.min(15).min(common.len())).collect();
                    share.reverse();
                    model.0[by as usize].inside.append(&mut share);
                }
            }
        }
        prop_assert_eq!(rig.drain(), model.rest());
    }
}

//! `block-cyclic`: the owner of the data computes. Each tile of a matrix belongs to one memory node, by its row and
//! column, and every task that writes it is executed there.
//!
//! A policy that chooses by completion times moves a tile whenever some other worker is free a little earlier. Where
//! devices share slow links, each such move makes all others slower, and the decision does not see that. Owner computes
//! decides once for each piece of data: it is written in one memory only, and what must cross a link are the tiles that
//! a task reads and does not write, once for each row and column of owners.
//!
//! **The map.** The owners stand in a grid of r rows and c columns, as square as their number allows; the tile in row i
//! and column j belongs to the owner at (i mod r, j mod c). This is the two-dimensional block-cyclic distribution of
//! ScaLAPACK: in each step of a factorisation all owners have tiles left, and a tile is read by r + c owners at most.
//! Owners are the memory nodes whose workers are at least half as fast, together, as those of the fastest; one that is
//! twice as fast as the slowest owner stands in the grid twice.
//!
//! **Rows and columns** follow from the submitted tasks, so nobody states them: a tile that some task computes from
//! itself alone is on the diagonal; a tile is in the column of the diagonal tile that it is computed from, and in the
//! row of the diagonal tile that is computed from it, or the other way round. Two tiles that were computed from one
//! diagonal tile, and of which a task makes a product, are on opposite sides of the diagonal, as in LU, unless that is
//! contradictory, as in a Cholesky factorisation. Which side is which cannot be known, and makes no difference.
//!
//! **Written together.** Where most tasks write several tiles, as those of a QR factorisation write two of one column,
//! tiles that are written together have one owner, or every such task would move one of them. These groups are dealt to
//! the owners in turn, if there is one for each.
//!
//! **Other data** mostly is the parts of something with one dimension, such as the columns of a stencil. Each owner gets
//! neighbours: what is computed from each other lies close together on an axis, of which each has a part.
//!
//! **The slow kernels.** A task that owners execute less than `least-speedup` times as fast as another worker, such as
//! the factorisation of a diagonal tile, may go to any worker of other memory nodes too, whichever completes it first.
//!
//! Sources: Dongarra, van de Geijn and Walker, *Scalability issues affecting the design of a dense linear algebra
//! library* (1994), for the distribution; Callahan and Kennedy, *Compiling programs for distributed-memory
//! multiprocessors* (1988), for owner computes; Augonnet and others, *StarPU-MPI* (2012), which places the tiles of
//! several machines this way.

mod owners;

use super::completion::{Candidate, Weights};
use super::soonest::Soonest;
use crate::LARGEST;
pub(super) use owners::{MOST_HALVINGS, Owners};
use sched_core::*;

/// Sends each task to the memory node that owns the data it writes.
///
/// What it has learnt of the matrix lives on when workers join or leave: the tasks that showed it have ended by then.
///
/// It stores nothing, and should stand above unbounded queues: where a task goes does not depend on who has room. Among
/// the workers of the owner, the one that is expected to complete the task first gets it. A task that writes nothing
/// goes where it is completed first, and so does every task if the host does not provide the submitted tasks; a task of
/// unknown length goes to the child with the least load. A child that is a worker is woken and pulls the task.
#[derive(Debug)]
pub struct BlockCyclic {
    soonest: Soonest,
    least_speedup: f64,
    owners: Mutex<Owners>,
}

impl Build for BlockCyclic {
    const INFO: Info = Info::new(
        "block-cyclic",
        Family::ResourceMapping,
        "Sends each task to the memory node that owns the data it writes, by a two-dimensional map.",
    )
    .package(env!("CARGO_PKG_NAME"))
    .params(
        const {
            &[
                Weights::ALPHA,
                Weights::BETA,
                Weights::GAMMA,
                Weights::IDLE_POWER,
                Param::float(
                    "least-speedup",
                    4.0,
                    "tasks that the owner's workers accelerate less may go to workers elsewhere",
                )
                .at_least(0)
                .at_most(LARGEST),
            ]
        },
    )
    .lookahead(30)
    .needs_models()
    .forwards_pull()
    .forwards_push()
    .end_is_noted()
    .wakes_workers()
    .keeps_state();

    fn build(params: &Params) -> Result<Self, BuildError> {
        Ok(BlockCyclic {
            soonest: Soonest::read(params)?,
            least_speedup: params.float("least-speedup")?,
            owners: Mutex::default(),
        })
    }
}

impl BlockCyclic {
    /// Keeps the candidates that may get the task: the owner's, and those elsewhere if it gains little there.
    fn restrict(&self, node: Node<'_>, task: &Task, candidates: &mut Vec<Candidate>) {
        let Some(submitted) = node.submitted() else { return };
        let mut owners = self.owners.lock();
        owners.learn(node, submitted);
        let Some(owner) = owners.of_task(submitted, task.id().sequence(), 0) else { return };
        let memory = |candidate: &Candidate| {
            let worker = node.each_child_worker_in_context(candidate.child).next();
            worker.and_then(|worker| node.memory_node(worker))
        };
        let (mut at_owner, mut elsewhere) = (u64::MAX, u64::MAX);
        for candidate in &*candidates {
            match memory(candidate) {
                Some(memory) if memory == owner => at_owner = at_owner.min(candidate.length),
                Some(memory) if !owners.is_owner(memory) => elsewhere = elsewhere.min(candidate.length),
                _ => {}
            }
        }
        if at_owner == u64::MAX {
            return;
        }
        let may_leave = (elsewhere as f64) < self.least_speedup * at_owner as f64;
        candidates.retain(|candidate| {
            let memory = memory(candidate);
            memory == Some(owner) || (may_leave && memory.is_some_and(|memory| !owners.is_owner(memory)))
        });
    }
}

impl Component for BlockCyclic {
    fn push_task(&self, node: Node<'_>, task: Task) -> Push {
        self.soonest.push_task(node, task, |task, candidates| self.restrict(node, task, candidates))
    }

    fn notify_change_workers(&self, _node: Node<'_>) {
        self.owners.lock().forget_workers();
        self.soonest.forget_children();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::resource_mapping::keepers::known;
    use sched_core::rig::{FakeChild, Rig};

    /// A core and two GPUs with a memory each.
    fn machine(foresees: bool) -> Rig {
        let rig = Rig::build::<BlockCyclic>(&[]);
        let rig = if foresees { rig.foreseeing() } else { rig };
        let rig = rig.worker(Arch::CPU, MemoryNode(0)).worker(Arch::CUDA, MemoryNode(1));
        let rig = rig.worker(Arch::CUDA, MemoryNode(2));
        let rig = rig.child(FakeChild::over([0])).child(FakeChild::over([1])).child(FakeChild::over([2]));
        for (worker, length) in [(0, 100), (1, 10), (2, 10)] {
            rig.set_length(0, WorkerId(worker), 0, known(length));
        }
        rig
    }

    fn writes(data: u64) -> DataAccess {
        DataAccess { data, bytes: 8, reads: true, writes: true }
    }

    #[test]
    fn who_owns_the_data_gets_every_task_that_writes_it() {
        let rig = machine(true);
        let tasks = rig.tasks(9);
        for (number, task) in (0..).zip(&tasks) {
            rig.add_access(*task, writes(number % 3));
        }
        for task in &tasks {
            assert_eq!(rig.push(*task), Ok(()));
        }
        let [cores, first, second] = [0, 1, 2].map(|child| rig.child_tasks(Child(child)));
        assert!(cores.is_empty());
        // The diagonal tiles 0, 1 and 2 of a matrix.
        assert_eq!(first, [tasks[0], tasks[2], tasks[3], tasks[5], tasks[6], tasks[8]]);
        assert_eq!(second, [tasks[1], tasks[4], tasks[7]]);
    }

    #[test]
    fn a_task_that_gains_little_goes_to_a_core_that_is_done_first() {
        let rig = machine(true);
        for (worker, length) in [(0, 30), (1, 10), (2, 10)] {
            rig.set_length(1, WorkerId(worker), 0, known(length));
        }
        let heavy = rig.tasks(4);
        let light = rig.task().codelet(1).make();
        for task in heavy.iter().chain([&light]) {
            rig.add_access(*task, writes(0));
        }
        for task in heavy.iter().chain([&light]) {
            assert_eq!(rig.push(*task), Ok(()));
        }
        assert_eq!((rig.child_tasks(Child(0)), rig.child_tasks(Child(1))), (vec![light], heavy));
    }

    #[test]
    fn the_map_of_the_data_lives_on_when_workers_join_or_leave() {
        let rig = machine(true);
        let tasks = rig.tasks(6);
        for (number, task) in (0..).zip(&tasks) {
            rig.add_access(*task, writes(number % 3));
        }
        tasks[..3].iter().for_each(|task| assert_eq!(rig.push(*task), Ok(())));
        rig.notify_change_workers();
        // The owner is the one that is done later.
        rig.set_end(Child(1), Time::from_nanos(1_000_000_000));
        tasks[3..].iter().for_each(|task| assert_eq!(rig.push(*task), Ok(())));
        assert_eq!(rig.child_tasks(Child(1)), [tasks[0], tasks[2], tasks[3], tasks[5]]);
        assert_eq!(rig.child_tasks(Child(2)), [tasks[1], tasks[4]]);
    }

    #[test]
    fn where_nobody_tells_what_a_task_writes_it_goes_where_it_is_done_first() {
        let rig = machine(false);
        for task in rig.tasks(4) {
            assert_eq!(rig.push(task), Ok(()));
        }
        assert_eq!([0, 1, 2].map(|child| rig.child_tasks(Child(child)).len()), [0, 2, 2]);
    }
}

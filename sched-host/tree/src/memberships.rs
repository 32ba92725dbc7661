//! Membership of workers in combined workers.

use sched_core::WorkerId;

/// Members of combined workers.
pub struct Memberships {
    members: Box<[Box<[WorkerId]>]>,
    of_worker: Box<[Box<[WorkerId]>]>,
}

impl Memberships {
    /// Memberships of `workers` simple workers in combined workers with these members, which are numbered after the
    /// simple ones.
    #[must_use]
    pub fn new(workers: usize, members: &[Box<[WorkerId]>]) -> Memberships {
        let mut at_work: Vec<(WorkerId, &[WorkerId])> =
            members.iter().zip(workers..).map(|(team, number)| (WorkerId(number as u32), &**team)).collect();
        at_work.sort_by_key(|(combined, team)| (std::cmp::Reverse(team.len()), *combined));
        let mut of_worker = vec![Vec::new(); workers];
        for (combined, team) in at_work {
            team.iter().for_each(|member| of_worker[member.index()].push(combined));
        }
        Memberships { members: members.into(), of_worker: of_worker.into_iter().map(Vec::into_boxed_slice).collect() }
    }

    /// Combined workers of a worker, larger ones first.
    #[must_use]
    pub fn of(&self, worker: WorkerId) -> &[WorkerId] {
        &self.of_worker[worker.index()]
    }

    /// Index of a combined worker among the combined ones.
    #[must_use]
    pub fn number(&self, combined: WorkerId) -> usize {
        combined.index() - self.of_worker.len()
    }

    /// The members of a combined worker.
    #[must_use]
    pub fn team(&self, combined: WorkerId) -> &[WorkerId] {
        &self.members[self.number(combined)]
    }
}

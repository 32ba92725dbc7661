//! The expected cost of a task below each child, for components that compare their children.

use super::{Child, Node, in_chunks};
use crate::abi::extension::{HostProspectRuns, HostProspects, RawProspect, RawProspectRun, offered};
use crate::estimate::{Estimate, nanos};
use crate::task::Task;
use std::ops::Range;

/// The expected cost of a task below one child. Lengths are plain nanoseconds, which is all that a comparison of many
/// children needs.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Prospect {
    /// Number of workers in the context that can execute it.
    pub able: u32,
    /// Its shortest expected length on these workers, in nanoseconds; `None` where no length is known.
    pub length: Option<u64>,
    /// Expected length of its transfers in nanoseconds: the average where these workers use several memory nodes.
    pub transfer: u64,
    /// Expected energy in joules on the worker with the shortest length, if requested and known to a model.
    pub energy: Option<f64>,
}

/// Number of runs of children for which there is storage at first. It is initialised in each call, and most machines
/// have few kinds of workers.
const FEW_RUNS: usize = 4;

/// Maximum number of runs of children that are queried at once.
const MOST_RUNS: usize = 16;

impl Node<'_> {
    /// Calls `each` with every child, in order, and the expected cost of `task` below it. `with_energy` requests the
    /// energy too.
    ///
    /// The figures are those of [`expected_length`](Self::expected_length) and its siblings for each worker, at a lower
    /// cost. (Falls back to these with a host older than 1.1.)
    pub fn prospects(&self, task: &Task, with_energy: bool, each: impl FnMut(Child, Prospect)) {
        self.prospects_of(0..self.place().children, task, with_energy, each);
    }

    /// [`prospects`](Self::prospects) of the children of these numbers only, which are there.
    #[inline(always)]
    pub(crate) fn prospects_of(
        &self,
        children: Range<u32>,
        task: &Task,
        with_energy: bool,
        mut each: impl FnMut(Child, Prospect),
    ) {
        let Some(table) = offered::<HostProspects>(self.raw.host()) else {
            return children.map(Child).for_each(|child| each(child, self.prospect_of(child, task, with_energy)));
        };
        let (id, start) = (self.id(), children.start);
        let ask = |first: u32, prospects: &mut [RawProspect]| {
            (table.below)(self.raw.call(), id, start + first, task.raw(), with_energy, prospects.into());
        };
        let count = children.end.saturating_sub(start);
        in_chunks(count, RawProspect::NONE, ask, |child, prospect| {
            each(Child(start + child.0), Prospect::read(&prospect));
        });
    }

    /// [`prospects`](Self::prospects) of runs of neighbouring children with equal ones: calls `each` with the number of
    /// children and their prospect, in order. On machines with many workers of few kinds it costs less.
    ///
    /// (Each child may be a run of its own, as it is with a host that does not group them.)
    pub fn prospect_runs(&self, task: &Task, with_energy: bool, mut each: impl FnMut(u32, Prospect)) {
        if let Some(table) = offered::<HostProspectRuns>(self.raw.host())
            && (self.ask_for_runs::<FEW_RUNS>(table, task, with_energy, &mut each)
                || self.ask_for_runs::<MOST_RUNS>(table, task, with_energy, &mut each))
        {
            return;
        }
        self.prospects(task, with_energy, |_, prospect| each(1, prospect));
    }

    /// [`prospect_runs`](Self::prospect_runs) with storage for some of them. Returns whether they were so few.
    #[inline]
    fn ask_for_runs<const MOST: usize>(
        &self,
        table: &HostProspectRuns,
        task: &Task,
        with_energy: bool,
        mut each: impl FnMut(u32, Prospect),
    ) -> bool {
        let mut runs = [RawProspectRun { count: 0, prospect: RawProspect::NONE }; MOST];
        let count = (table.below)(self.raw.call(), self.id(), task.raw(), with_energy, (&mut runs[..]).into()) as usize;
        runs.iter().take(count).for_each(|run| each(run.count, Prospect::read(&run.prospect)));
        count > 0
    }

    /// The models' estimate of `task` on the workers below in the context that can execute it:
    /// [`Uncalibrated`](Estimate::Uncalibrated) if it should be measured on one of them, else the shortest known
    /// length.
    ///
    /// It combines the answers of [`expected_length`](Self::expected_length) for each worker, at a lower cost. (Falls
    /// back to that with a host older than 1.1.)
    #[must_use]
    pub fn expected_below(&self, task: &Task) -> Estimate {
        if let Some(table) = offered::<HostProspects>(self.raw.host()) {
            return Estimate::from_wire((table.here)(self.raw.call(), self.id(), task.raw()));
        }
        let mut least = Estimate::NoModel;
        for worker in self.each_worker_in_context().filter(|worker| self.worker_can_execute(*worker, task)) {
            match (self.expected_length(worker, task), least) {
                (Estimate::Uncalibrated, _) => return Estimate::Uncalibrated,
                (Estimate::Known(length), Estimate::Known(known)) if known <= length => {}
                (known @ Estimate::Known(_), _) => least = known,
                (Estimate::NoModel, _) => {}
            }
        }
        least
    }

    fn prospect_of(&self, child: Child, task: &Task, with_energy: bool) -> Prospect {
        let mut best = None;
        let (mut able, mut transfers) = (0, 0_u64);
        for worker in self.each_child_worker_in_context(child).filter(|worker| self.worker_can_execute(*worker, task)) {
            able += 1;
            if let Estimate::Known(length) = self.expected_length(worker, task)
                && best.is_none_or(|(shortest, _)| length < shortest)
            {
                best = Some((length, worker));
            }
            if self.has_transfers() {
                let transfer = self.memory_node(worker).map(|memory_node| self.expected_transfer(memory_node, task));
                transfers = transfers.saturating_add(transfer.map_or(0, nanos));
            }
        }
        Prospect {
            able,
            length: best.map(|(length, _)| nanos(length)),
            transfer: transfers / u64::from(able.max(1)),
            energy: best.filter(|_| with_energy).and_then(|(_, worker)| self.expected_energy(worker, task)),
        }
    }
}

impl Prospect {
    #[inline]
    fn read(raw: &RawProspect) -> Prospect {
        Prospect {
            able: raw.able,
            length: (raw.length != RawProspect::NONE.length).then_some(raw.length),
            transfer: raw.transfer,
            energy: (!raw.energy.is_nan()).then_some(raw.energy),
        }
    }
}

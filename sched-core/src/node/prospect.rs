//! What is to be expected of a task below each child, for who compares them.

use super::{Child, Node};
use crate::abi::extension::{HostProspects, RawProspect, offered};
use crate::estimate::{Estimate, nanos};
use crate::task::Task;
use std::time::Duration;

/// What is to be expected of a task below one child.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Prospect {
    /// Workers in the context that can execute it.
    pub able: u32,
    /// Its expected length on the one of them where that is the shortest; `None` where no length is known.
    pub length: Option<Duration>,
    /// The expected length of the transfers to them: the average, where they are in several memory nodes.
    pub transfer: Duration,
    /// Expected energy in joules on the worker with the shortest length, where a model knows, if it was asked for.
    pub energy: Option<f64>,
}

impl Node<'_> {
    /// What is to be expected of `task` below each child, in order. `with_energy` asks for the energy as well.
    ///
    /// It says what [`expected_length`](Self::expected_length) and its like say of each worker, and costs less. (A host
    /// older than 1.1 is asked for these.)
    pub fn prospects<'t>(&'t self, task: &'t Task, with_energy: bool) -> impl Iterator<Item = (Child, Prospect)> + 't {
        let table = offered::<HostProspects>(self.raw.host());
        let (call, id) = (self.raw.call(), self.id());
        self.children().map(move |child| {
            let prospect = match table {
                Some(table) => Prospect::read((table.below)(call, id, child.0, task.raw(), with_energy)),
                None => self.prospect_of(child, task, with_energy),
            };
            (child, prospect)
        })
    }

    /// What models know of `task` on the workers below in the context that can execute it:
    /// [`Uncalibrated`](Estimate::Uncalibrated) if it should be measured on one of them, else its shortest known length.
    ///
    /// It says what [`expected_length`](Self::expected_length) says of each worker, and costs less. (A host older than 1.1
    /// is asked for that.)
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
            length: best.map(|(length, _)| length),
            transfer: Duration::from_nanos(transfers / u64::from(able.max(1))),
            energy: best.filter(|_| with_energy).and_then(|(_, worker)| self.expected_energy(worker, task)),
        }
    }
}

impl Prospect {
    #[inline]
    fn read(raw: RawProspect) -> Prospect {
        Prospect {
            able: raw.able,
            length: Estimate::from_wire(raw.length).known(),
            transfer: if raw.transfer == 0 { Duration::ZERO } else { Duration::from_nanos(raw.transfer) },
            energy: (!raw.energy.is_nan()).then_some(raw.energy),
        }
    }
}

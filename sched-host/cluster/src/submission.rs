//! Submission of tasks, of which all ranks hear.

use crate::data::Datum;
use crate::error::ClusterError;
use crate::traffic::{InFlight, Traffic};
use crate::{Cluster, State};
use sched_graph::AccessMode;
use sched_graph::ranks::rank_of;
use sched_runtime::{AccessList, TaskBuilder, TaskRef};
use sched_text::hash::fold;
use smallvec::SmallVec;
use std::sync::Arc;

impl Cluster {
    /// Submits a task, of which all ranks hear: it runs on the owner of the first datum that it writes. Returns it there.
    ///
    /// # Errors
    /// If it names data that no rank owns, or a reduction; and see [`SubmitError`](sched_runtime::SubmitError).
    pub fn submit<L: AccessList, P: Send + 'static>(
        &self,
        task: TaskBuilder<'_, L, P>,
    ) -> Result<Option<TaskRef>, ClusterError> {
        self.submit_to(None, task)
    }

    /// [`submit`](Self::submit), to run on this rank. What it writes for others is sent to its owner.
    ///
    /// # Errors
    /// As for [`submit`](Self::submit), and [`ClusterError::NoRank`].
    pub fn submit_on<L: AccessList, P: Send + 'static>(
        &self,
        rank: usize,
        task: TaskBuilder<'_, L, P>,
    ) -> Result<Option<TaskRef>, ClusterError> {
        self.check_rank(rank)?;
        self.submit_to(Some(rank), task)
    }

    fn submit_to<L: AccessList, P: Send + 'static>(
        &self,
        rank: Option<usize>,
        task: TaskBuilder<'_, L, P>,
    ) -> Result<Option<TaskRef>, ClusterError> {
        let mut state = self.state.lock();
        let State { data, submitted, traffic, log } = &mut *state;
        let mut accesses: SmallVec<[(usize, AccessMode); 8]> = SmallVec::new();
        let mut refused = None;
        task.each_access(&mut |number, mode| match data.place(number) {
            Some(place) if mode != AccessMode::Redux => accesses.push((place, mode)),
            known => _ = refused.get_or_insert((number, known.is_some())),
        });
        if let Some((data, is_known)) = refused {
            let codelet = task.codelet_name().to_owned();
            return Err(match is_known {
                true => ClusterError::Reduced { codelet, data },
                false => ClusterError::NotShared { codelet, data },
            });
        }
        let rank = rank.unwrap_or_else(|| {
            let owned = accesses.iter().map(|(place, mode)| (*mode, data.at(*place).holders.owner()));
            rank_of(owned, (*submitted % self.ranks as u64) as usize)
        });
        *submitted += 1;
        let words = accesses.iter().map(|(place, mode)| (*place as u64) << 3 | *mode as u64);
        log.note(task.codelet_name(), |hash| words.chain([rank as u64]).fold(hash, fold));
        for (place, mode) in &accesses {
            self.prepare(data.at_mut(*place), *mode, rank, traffic)?;
        }
        let mut task_here = None;
        if rank == self.rank {
            traffic.make_room(&self.runtime);
            let submitted = task.submit()?;
            traffic.note(|| InFlight::Task(submitted));
            task_here = Some(submitted);
        }
        for (place, _) in accesses.iter().filter(|(_, mode)| mode.writes()) {
            let datum = data.at_mut(*place);
            if let Some(owner) = datum.holders.write(rank) {
                self.move_value(datum, rank, owner, traffic)?;
            }
        }
        Ok(task_here)
    }

    /// Sees to it that a task on `rank` finds a datum there.
    pub(crate) fn prepare(
        &self,
        datum: &mut Datum,
        mode: AccessMode,
        rank: usize,
        traffic: &mut Traffic,
    ) -> Result<(), ClusterError> {
        if mode.reads() {
            if let Some(from) = datum.holders.bring(rank) {
                self.move_value(datum, from, rank, traffic)?;
            }
        } else if rank == self.rank && !datum.holders.has(rank) {
            Arc::clone(&datum.courier).make_room(&self.runtime)?;
        }
        Ok(())
    }

    /// Sends a value, or receives it, if this rank is one of both.
    fn move_value(&self, datum: &Datum, from: usize, to: usize, traffic: &mut Traffic) -> Result<(), ClusterError> {
        if from != self.rank && to != self.rank {
            return Ok(());
        }
        traffic.make_room(&self.runtime);
        let (courier, desk) = (Arc::clone(&datum.courier), self.office.desk());
        if from == self.rank {
            traffic.sent.values += 1;
            traffic.sent.bytes += datum.bytes;
            courier.send(&self.runtime, desk, to, datum.tag())?;
            traffic.note(|| InFlight::Sent(Arc::clone(&datum.courier)));
        } else {
            courier.receive(&self.runtime, desk, from, datum.tag())?;
            traffic.note(|| InFlight::Received(Arc::clone(&datum.courier)));
        }
        Ok(())
    }
}

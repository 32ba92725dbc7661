//! Submission of tasks, of which all ranks hear.

use crate::data::{Datum, Route};
use crate::directory::Accesses;
use crate::error::ClusterError;
use crate::traffic::{InFlight, Traffic};
use crate::{Cluster, State};
use sched_graph::AccessMode;
use sched_graph::ranks::rank_of;
use sched_runtime::{AccessList, Codelet, TaskBuilder, TaskRef};
use sched_text::hash::{GAMMA, fold};
use smallvec::SmallVec;
use std::sync::Arc;

/// What a value that arrives does to the one that is there.
#[derive(Clone, Copy)]
enum Arrival {
    Replaces,
    Adds,
}

/// The priority of the task for which a value is sent, known to those that ask.
pub(crate) type Urgency<'a> = &'a mut dyn FnMut() -> i32;

/// The priority of a value that is sent for no task.
pub(crate) fn not_urgent() -> i32 {
    0
}

impl Cluster {
    /// Submits a task, of which all ranks hear: it runs on the owner of the first datum that it writes, or else reads.
    /// [Reductions](Self::reduction_on) do not count: to them a task adds wherever it runs. Returns it there.
    ///
    /// # Errors
    /// If it names data that no rank owns; [`ClusterError::TooLong`]; and see
    /// [`SubmitError`](sched_runtime::SubmitError).
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

    /// [`submit`](Self::submit), for programs whose ranks are many: `with`, which sets priority, name, context and so on,
    /// is called only where the task runs, and where a value is sent for it, since that goes by the task's priority. The
    /// data of a task of other ranks is looked up and not held.
    ///
    /// ```
    /// # use sched_cluster::{Cluster, ClusterError};
    /// # use sched_runtime::{Read, ReadWrite, Runtime};
    /// # use std::sync::Arc;
    /// # fn start() -> Result<Runtime, sched_runtime::StartError> {
    /// #     Runtime::builder().registry(Arc::new(sched_tree::plugin::Registry::compiled_in())).workers(1).bind(false).build()
    /// # }
    /// let ran = Cluster::local(2, |_| start(), |cluster| {
    ///     let add = cluster.runtime().codelet::<(Read<f64>, ReadWrite<f64>), f64>("add");
    ///     let add = add.cpu("add", |context, (x, y)| *y += context.params * x).build();
    ///     let x = cluster.register_on(0, || 1.0, || 0.0)?;
    ///     let y = cluster.register_on(1, || 2.0, || 0.0)?;
    ///     let task = cluster.submit_with(&add, 3.0, (&x, &y), |task| task.priority(5))?;
    ///     cluster.wait_all()?;
    ///     Ok::<bool, ClusterError>(task.is_some())
    /// })?;
    /// assert_eq!(ran.into_iter().collect::<Result<Vec<bool>, _>>()?, [false, true]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// As for [`submit`](Self::submit).
    pub fn submit_with<'t, L: AccessList, P: Send + 'static>(
        &'t self,
        codelet: &'t Codelet<L, P>,
        params: P,
        data: L::Passed<'t>,
        with: impl FnOnce(TaskBuilder<'t, L, P>) -> TaskBuilder<'t, L, P>,
    ) -> Result<Option<TaskRef>, ClusterError> {
        let mut state = self.state.lock();
        let mut accesses = Accesses::new();
        state.data.find(&mut accesses, codelet.name(), |visitor| {
            L::visit_passed(&data, &mut |header, mode| visitor(header.number(), mode))
        })?;
        let rank = self.place(&mut state, None, codelet.name(), &accesses);
        self.carry_out(&mut state, rank, &accesses, || with(self.runtime.task_with(codelet, params, data)))
    }

    fn submit_to<L: AccessList, P: Send + 'static>(
        &self,
        rank: Option<usize>,
        task: TaskBuilder<'_, L, P>,
    ) -> Result<Option<TaskRef>, ClusterError> {
        let mut state = self.state.lock();
        let mut accesses = Accesses::new();
        state.data.find(&mut accesses, task.codelet_name(), |visitor| task.each_access(visitor))?;
        let rank = self.place(&mut state, rank, task.codelet_name(), &accesses);
        self.carry_out(&mut state, rank, &accesses, || task)
    }

    /// Notes a task with these accesses. Returns the rank that runs it.
    #[inline]
    fn place(&self, state: &mut State, rank: Option<usize>, codelet: &str, accesses: &Accesses) -> usize {
        let State { data, submitted, log, .. } = state;
        let rank = rank.unwrap_or_else(|| {
            let counted = accesses.iter().filter(|(_, mode)| *mode != AccessMode::Redux);
            let owned = counted.map(|(place, mode)| (*mode, data.at(*place).holders.owner()));
            rank_of(owned, (*submitted % self.ranks as u64) as usize)
        });
        *submitted += 1;
        // One multiplication for each datum: foreign tasks take no time for much else.
        let words = accesses.iter().map(|(place, mode)| (*place as u64) << 3 | *mode as u64);
        let mix = |hash: u64, word: u64| (hash.rotate_left(23) ^ word).wrapping_mul(GAMMA);
        log.note(codelet, |hash| fold(words.fold(hash, mix), rank as u64));
        rank
    }

    /// Sends and receives what a task on `rank` needs, and submits it if that is this one.
    #[inline]
    fn carry_out<'t, L: AccessList, P: Send + 'static>(
        &self,
        state: &mut State,
        rank: usize,
        accesses: &Accesses,
        build: impl FnOnce() -> TaskBuilder<'t, L, P>,
    ) -> Result<Option<TaskRef>, ClusterError> {
        let State { data, traffic, submitted: number, numbers, .. } = state;
        let (mut build, mut task, mut known) = (Some(build), None, None);
        if rank == self.rank
            && let Some(build) = build.take()
        {
            let built = build();
            known = Some(built.urgency());
            task = Some(built);
        }
        // Elsewhere it takes a task that is built, which most submissions do without.
        let mut urgency = || *known.get_or_insert_with(|| build.take().map_or(0, |build| build().urgency()));
        for (place, mode) in accesses {
            match mode {
                AccessMode::Redux => self.contribute(data.at_mut(*place), rank)?,
                _ => self.prepare(data.at_mut(*place), *mode, rank, (traffic, &mut urgency))?,
            }
        }
        let mut task_here = Ok(None);
        if let Some(task) = task {
            traffic.make_room(&self.runtime);
            task_here = task.submit().map(Some);
            if let Ok(Some(submitted)) = task_here {
                traffic.note(|| InFlight::Task(submitted));
                if self.is_recorded {
                    numbers.push((submitted.sequence(), *number));
                }
            }
        }
        for (place, _) in accesses.iter().filter(|(_, mode)| mode.writes() && *mode != AccessMode::Redux) {
            let datum = data.at_mut(*place);
            if let Some(owner) = datum.holders.write(rank) {
                // Where a task is refused, the others do not know: they have noted that it writes, and its owner waits.
                if let Err(refusal) = &task_here {
                    Arc::clone(&datum.courier).fail(&self.runtime, refusal.to_string())?;
                }
                self.move_value(datum, (rank, owner), Arrival::Replaces, (traffic, &mut urgency))?;
            }
        }
        Ok(task_here?)
    }

    /// Sees to it that a task on `rank` finds a datum there.
    #[inline]
    pub(crate) fn prepare(
        &self,
        datum: &mut Datum,
        mode: AccessMode,
        rank: usize,
        (traffic, urgency): (&mut Traffic, Urgency<'_>),
    ) -> Result<(), ClusterError> {
        if mode.reads() {
            if !datum.pending.is_empty() {
                self.settle(datum, (traffic, urgency))?;
            }
            if let Some(from) = datum.holders.bring(rank) {
                self.move_value(datum, (from, rank), Arrival::Replaces, (traffic, urgency))?;
            }
        } else if rank == self.rank && !datum.holders.has(rank) {
            Arc::clone(&datum.courier).make_room(&self.runtime, self.office.desk(), datum.tag())?;
        }
        // What was added so far is read, and added up, or overwritten.
        datum.pending.clear();
        Ok(())
    }

    /// Sees to it that a task on `rank` adds to a reduction there, whose other copies are out of date.
    fn contribute(&self, datum: &mut Datum, rank: usize) -> Result<(), ClusterError> {
        if datum.pending.is_empty() {
            datum.holders.flush();
        }
        if datum.pending.contains(&(rank as u32)) {
            return Ok(());
        }
        datum.pending.push(rank as u32);
        if rank == self.rank && rank != datum.holders.owner() {
            Arc::clone(&datum.courier).make_room(&self.runtime, self.office.desk(), datum.tag())?;
        }
        Ok(())
    }

    /// Adds the parts of a reduction to the value of its owner, along a binomial tree of those that have any.
    pub(crate) fn settle(
        &self,
        datum: &mut Datum,
        (traffic, urgency): (&mut Traffic, Urgency<'_>),
    ) -> Result<(), ClusterError> {
        if datum.pending.is_empty() {
            return Ok(());
        }
        let owner = datum.holders.owner();
        let parts = std::mem::take(&mut datum.pending);
        let parts = parts.into_iter().map(|rank| rank as usize).filter(|rank| *rank != owner);
        let ranks: SmallVec<[usize; 8]> = std::iter::once(owner).chain(parts).collect();
        let mut step = 1;
        while step < ranks.len() {
            for to in (0..ranks.len() - step).step_by(2 * step) {
                self.move_value(datum, (ranks[to + step], ranks[to]), Arrival::Adds, (traffic, urgency))?;
            }
            step *= 2;
        }
        Ok(())
    }

    /// Sends a value, or receives it, if this rank is one of both.
    fn move_value(
        &self,
        datum: &Datum,
        (from, to): (usize, usize),
        arrival: Arrival,
        (traffic, urgency): (&mut Traffic, Urgency<'_>),
    ) -> Result<(), ClusterError> {
        // On all ranks: those that have no part in it would wait for the others.
        if datum.bytes > self.most_bytes {
            return Err(ClusterError::TooLong { data: datum.index, bytes: datum.bytes, most: self.most_bytes });
        }
        if from != self.rank && to != self.rank {
            return Ok(());
        }
        traffic.make_room(&self.runtime);
        let (courier, desk) = (Arc::clone(&datum.courier), self.office.desk());
        let peer = if from == self.rank { to } else { from };
        let urgency = if from == self.rank { urgency() } else { 0 };
        let route = Route { peer, tag: datum.tag(), urgency, flight: traffic.flights.begin() };
        if from == self.rank {
            traffic.sent.values += 1;
            traffic.sent.bytes += datum.bytes;
            courier.send(&self.runtime, desk, route)?;
            traffic.note(|| InFlight::Sent(Arc::clone(&datum.courier)));
        } else {
            match arrival {
                Arrival::Replaces => courier.receive(&self.runtime, desk, route)?,
                Arrival::Adds => courier.add(&self.runtime, desk, route)?,
            }
            traffic.note(|| InFlight::Received(Arc::clone(&datum.courier)));
        }
        Ok(())
    }
}

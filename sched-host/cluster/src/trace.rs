//! One trace of all ranks.

use crate::Cluster;
use crate::agree::Among;
use crate::error::ClusterError;
use crate::transport::Tag;
use sched_core::TaskId;
use sched_graph::DataId;
use sched_runtime::TraceWriter;
use sched_trace::{Event, RankMessage, RankTrace, Trace};

/// Number of times that two ranks tell each other the time; the shortest counts.
const ROUNDS: usize = 30;

/// Notes messages in the trace of a rank.
pub(crate) struct MessageLog {
    pub(crate) rank: u32,
    pub(crate) writer: TraceWriter,
}

impl MessageLog {
    /// A value begins to be sent.
    pub(crate) fn sent(&self, to: usize, tag: Tag, bytes: usize) {
        if let Some(data) = tag.datum() {
            self.writer.note(Event::Sent(self.message(data, self.rank, to as u32, bytes)));
        }
    }

    /// A value has arrived, and was copied.
    pub(crate) fn received(&self, from: usize, tag: Tag, bytes: usize) {
        if let Some(data) = tag.datum() {
            self.writer.note(Event::Received(self.message(data, from as u32, self.rank, bytes)));
        }
    }

    fn message(&self, data: u32, from: u32, to: u32, bytes: usize) -> RankMessage {
        RankMessage { data: Some(DataId(data)), from, to, bytes: bytes as u64 }
    }
}

impl Cluster {
    /// Takes what all ranks have recorded since their start, or since the last call, as one trace, in which ranks are
    /// processes and messages are arrows between them; rank 0 gets it. Tasks have their place in the order in which all
    /// ranks submit them, from 1, as those of a [simulation](sched_graph::TaskGraph) do. `None` if no rank records
    /// events ([`Builder::trace`](sched_runtime::Builder::trace)). All ranks call it, after
    /// [`wait_all`](Self::wait_all).
    ///
    /// Each rank has a clock of its own. How they differ is measured by messages, up to half of the time that one of
    /// them takes there and back.
    ///
    /// ```
    /// # use sched_cluster::{Cluster, ClusterError};
    /// # use sched_runtime::{Read, ReadWrite, Runtime};
    /// # use std::sync::Arc;
    /// # fn start() -> Result<Runtime, sched_runtime::StartError> {
    /// #     let builder = Runtime::builder().registry(Arc::new(sched_tree::plugin::Registry::compiled_in()));
    /// #     builder.workers(1).bind(false).trace(1000).build()
    /// # }
    /// let traces = Cluster::local(2, |_| start(), |cluster| {
    ///     let add = cluster.runtime().codelet::<(Read<f64>, ReadWrite<f64>), ()>("add").cpu("add", |_, (x, y)| *y += x);
    ///     let add = add.build();
    ///     let x = cluster.register_on(0, || 1.0, || 0.0)?;
    ///     let y = cluster.register_on(1, || 2.0, || 0.0)?;
    ///     cluster.submit(cluster.runtime().task(&add, (&x, &y)))?;
    ///     cluster.wait_all()?;
    ///     cluster.take_trace()
    /// })?;
    /// let [Ok(Some(trace)), Ok(None)] = &traces[..] else { unreachable!("rank 0 has it") };
    /// assert_eq!(trace.ranks, ["rank 0", "rank 1"]);
    /// # Ok::<(), ClusterError>(())
    /// ```
    ///
    /// # Errors
    /// [`ClusterError::Failed`] if a rank is gone.
    pub fn take_trace(&self) -> Result<Option<Trace>, ClusterError> {
        let among = self.among();
        let writer = self.runtime.trace_writer();
        let behind = among.clock(|| writer.as_ref().map_or(0, TraceWriter::now))?;
        let trace = self.runtime.take_trace().map(|trace| {
            let numbers = std::mem::take(&mut self.state.lock().numbers);
            let tasks = numbers.into_iter().map(|(here, of_all)| (TaskId::new(here), TaskId::new(of_all))).collect();
            RankTrace { trace, behind, tasks }
        });
        let Some(all) = among.collect(&trace.map_or_else(Vec::new, |trace| trace.to_bytes()))? else { return Ok(None) };
        let traces: Vec<RankTrace> = all.iter().map(|bytes| RankTrace::from_bytes(bytes).unwrap_or_default()).collect();
        Ok(all.iter().any(|bytes| !bytes.is_empty()).then(|| Trace::of_ranks(traces)))
    }
}

impl Among<'_> {
    /// Nanoseconds to be added to the clock of this rank for that of rank 0 (Cristian 1989). All ranks call it.
    fn clock(&self, now: impl Fn() -> u64) -> Result<i64, ClusterError> {
        if self.rank == 0 {
            for _ in 0..ROUNDS {
                for rank in 1..self.ranks {
                    self.receive(rank)?;
                    self.desk.send(rank, Tag::OWN, Box::new(now().to_le_bytes().to_vec()));
                }
            }
            return Ok(0);
        }
        let mut best = (u64::MAX, 0);
        for _ in 0..ROUNDS {
            let asked = now();
            self.desk.send(0, Tag::OWN, Box::new(Vec::new()));
            let there = self.receive(0)?;
            let (took, there) =
                (now().saturating_sub(asked), there.first_chunk().map_or(0, |time| u64::from_le_bytes(*time)));
            best = best.min((took, there.wrapping_sub(asked + took / 2).cast_signed()));
        }
        Ok(best.1)
    }
}

//! One program on several ranks, each with its own runtime and its own tree of components.
//!
//! All ranks run the same program and submit the same tasks in the same order. Each datum has an owner. A task runs on
//! the rank that owns what it writes (or [where the program says](Cluster::submit_on)); what it reads from elsewhere is
//! sent to it once, and kept until it is written again: by the owner, or where many need it by one of those that have
//! it already, along a [tree](sched_graph::ranks::Holders). That is the scheme of StarPU-MPI (Agullo et al.,
//! *Achieving High Performance on Supercomputers with a Sequential Task-based Programming Model*, IEEE TPDS 2017).
//! There is no central scheduler: the policy decides on each rank among the tasks there.
//!
//! ```
//! use sched_cluster::{Cluster, ClusterError};
//! use sched_runtime::{Read, ReadWrite, Runtime};
//! # use std::sync::Arc;
//! # fn builder() -> sched_runtime::Builder {
//! #     Runtime::builder().registry(Arc::new(sched_tree::plugin::Registry::compiled_in())).workers(1).bind(false)
//! # }
//! // Three ranks in this process; `Cluster::mpi` makes each process of `mpirun` a rank.
//! let sums = Cluster::local(3, |_| builder().build(), |cluster| {
//!     let add = cluster.runtime().codelet::<(Read<f64>, ReadWrite<f64>), ()>("add").cpu("add", |_, (x, y)| *y += x);
//!     let add = add.build();
//!     let numbers: Vec<_> = (0..3).map(|rank| cluster.register_on(rank, || rank as f64, || 0.0)).collect::<Result<_, _>>()?;
//!     // Around the ranks: 0 + 1, then that + 2.
//!     for (x, y) in [(0, 1), (1, 2)] {
//!         cluster.submit(cluster.runtime().task(&add, (&numbers[x], &numbers[y])))?;
//!     }
//!     cluster.bring(&numbers[2], 0)?;
//!     cluster.wait_all()?;
//!     Ok::<f64, ClusterError>(*cluster.runtime().read(&numbers[2])?)
//! })?;
//! assert_eq!(*sums[0].as_ref().expect("all is well"), 3.0);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # What it does not do
//! Recorded graphs do not cross ranks: use them for the data of one rank. A value that is sent is that of a whole
//! [`Handle`](sched_runtime::Handle), or of a part of a [`RankArray`]. Messages of MPI are smaller than 2 GiB.

mod agree;
mod array;
mod data;
mod directory;
mod error;
mod last_words;
mod memory;
mod message;
mod office;
mod parts;
mod pool;
#[cfg(feature = "mpi")]
mod program;
mod quiet;
mod shared;
mod submission;
#[cfg(test)]
mod tests;
mod trace;
mod traffic;
mod transport;

pub use array::RankArray;
pub use error::ClusterError;
pub use message::Message;
pub use parts::Parts;
pub use traffic::Sent;

use agree::{Among, Log};
use directory::Directory;
use office::{Doing, Office};
use parking_lot::Mutex;
use pool::Pools;
use sched_graph::ranks::Grid;
use sched_runtime::{RunError, Runtime, StartError};
use sched_text::hash::digest;
use std::fmt;
use std::sync::{Arc, Weak};
use std::thread;
use trace::MessageLog;
use traffic::Traffic;
use transport::local::Local;
use transport::{Tag, Transport};

/// One rank, with its runtime, among all of them.
pub struct Cluster {
    rank: usize,
    ranks: usize,
    grid: Grid,
    most_tag: u32,
    most_bytes: u64,
    /// Whether the runtime records events.
    is_recorded: bool,
    state: Mutex<State>,
    // Dropped in this order: the runtime ends its tasks, then nobody asks for messages, then MPI ends.
    runtime: Runtime,
    office: Office,
    #[cfg(feature = "mpi")]
    _universe: Option<mpi::environment::Universe>,
}

#[derive(Default)]
struct State {
    data: Directory,
    submitted: u64,
    traffic: Traffic,
    log: Log,
    pools: Pools,
    /// For each task here its number in this runtime and among those of all ranks, if events are recorded.
    numbers: Vec<(u64, u64)>,
}

impl fmt::Debug for Cluster {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Cluster").field("rank", &self.rank).field("ranks", &self.ranks).finish_non_exhaustive()
    }
}

impl Cluster {
    /// Runs `body` on each of several ranks in this process, with the runtimes that `start` makes for them, and returns
    /// what it gives, by rank. The error of one [ends the others](Self::end_others).
    ///
    /// # Errors
    /// The first error of `start`; [`ClusterError::Unequal`] if the ranks have different policies; [`ClusterError::Hooked`]
    /// if a runtime has a quiet or progression hook of its own.
    ///
    /// # Panics
    /// If `body` panics on some rank. What others wait for fails then.
    pub fn local<T: Send, E: fmt::Display + Send>(
        ranks: usize,
        start: impl Fn(usize) -> Result<Runtime, StartError>,
        body: impl Fn(&Cluster) -> Result<T, E> + Sync,
    ) -> Result<Vec<Result<T, E>>, ClusterError> {
        let (inboxes, transports) = Local::all(ranks);
        let clusters = transports.into_iter().zip(&*inboxes).map(|(transport, inbox)| {
            let cluster = Cluster::new(start(transport.rank())?, Box::new(transport))?;
            inbox.noticed_by(cluster.office.desk());
            Ok(cluster)
        });
        let clusters = clusters.collect::<Result<Vec<Cluster>, ClusterError>>()?;
        let body = &body;
        let results = thread::scope(|scope| {
            let run = |cluster: Cluster| {
                cluster.meet().map(|()| body(&cluster).inspect_err(|error| cluster.end_others(&error.to_string())))
            };
            let threads = clusters.into_iter().map(|cluster| scope.spawn(move || run(cluster))).collect::<Vec<_>>();
            threads.into_iter().map(|thread| thread.join()).collect::<Vec<_>>()
        });
        results.into_iter().map(|result| result.unwrap_or_else(|panic| std::panic::resume_unwind(panic))).collect()
    }

    /// This process as a rank among those that `mpirun` has started; a program that is started without it is the only
    /// rank.
    ///
    /// # Errors
    /// If MPI does not start, or was started before; [`ClusterError::Unequal`] on every rank if not all of them run the
    /// same program with the same policy.
    #[cfg(feature = "mpi")]
    pub fn mpi(runtime: Runtime) -> Result<Cluster, ClusterError> {
        use mpi::Threading;
        use sched_tree::exit_guard::keep_naming_crashes;
        let started = keep_naming_crashes(|| mpi::initialize_with_threading(Threading::Serialized));
        let (universe, threading) = started.ok_or(ClusterError::Mpi("it was started before"))?;
        if threading < Threading::Serialized {
            return Err(ClusterError::Mpi("the library does not let several threads of a process call it in turn"));
        }
        let transport = transport::mpi::Mpi::new(&universe.world());
        let mut cluster = Cluster::new(runtime, Box::new(transport))?;
        cluster._universe = Some(universe);
        cluster.compare("the program", &program::this())?;
        cluster.meet()?;
        Ok(cluster)
    }

    /// Checks what all ranks must have in common.
    fn meet(&self) -> Result<(), ClusterError> {
        let context = self.runtime.default_context();
        let text = digest(context.policy_text().as_bytes());
        self.compare("the policy", &format!("`{}` ({:016x})", context.policy(), text as u64))
    }

    /// Checks that what each rank gives is the same on all of them: what a program reads from its command line and
    /// files, for instance. All ranks call it.
    ///
    /// ```
    /// # use sched_cluster::Cluster;
    /// # use sched_runtime::{Runtime, StartError};
    /// # use std::sync::Arc;
    /// # fn start() -> Result<Runtime, StartError> {
    /// #     Runtime::builder().registry(Arc::new(sched_tree::plugin::Registry::compiled_in())).workers(1).bind(false).build()
    /// # }
    /// let words = Cluster::local(3, |_| start(), |cluster| {
    ///     let order = if cluster.rank() == 1 { 200 } else { 100 };
    ///     cluster.compare("the order", &order.to_string())
    /// })?;
    /// for word in words {
    ///     let word = word.expect_err("they differ").to_string();
    ///     assert_eq!(word, "the ranks differ in the order: ranks 0, 2: 100; rank 1: 200");
    /// }
    /// # Ok::<(), sched_cluster::ClusterError>(())
    /// ```
    ///
    /// # Errors
    /// [`ClusterError::Unequal`], with the same text on all ranks; [`ClusterError::Failed`] if a rank is gone.
    pub fn compare(&self, what: &str, mine: &str) -> Result<(), ClusterError> {
        self.among().compare(what, mine)
    }

    fn new(runtime: Runtime, transport: Box<dyn Transport>) -> Result<Cluster, ClusterError> {
        let (rank, ranks) = (transport.rank(), transport.ranks());
        let (most_tag, most_bytes) = (transport.most_tag(), transport.most_bytes());
        last_words::heed();
        let writer = runtime.trace_writer();
        let is_recorded = writer.is_some();
        let office = Office::open(transport, writer.map(|writer| MessageLog { rank: rank as u32, writer }))?;
        let desk = Arc::downgrade(office.desk());
        let told = Weak::clone(&desk);
        if !runtime.quiet_hook(move |tasks| told.upgrade().is_none_or(|desk| desk.tell(Doing::Stays(tasks)))) {
            return Err(ClusterError::Hooked("quiet hook"));
        }
        if !runtime.progression_hook(move || desk.upgrade().is_some_and(|desk| desk.serves_keenly())) {
            return Err(ClusterError::Hooked("progression hook"));
        }
        Ok(Cluster {
            rank,
            ranks,
            grid: Grid::new(ranks),
            most_tag,
            most_bytes,
            is_recorded,
            state: Mutex::default(),
            runtime,
            office,
            #[cfg(feature = "mpi")]
            _universe: None,
        })
    }

    /// Number of this rank, from 0.
    #[must_use]
    pub fn rank(&self) -> usize {
        self.rank
    }

    /// Number of ranks.
    #[must_use]
    pub fn ranks(&self) -> usize {
        self.ranks
    }

    /// The runtime of this rank. Tasks that are submitted to it directly are this rank's own affair; they may use data
    /// of the cluster only to read what is here.
    #[must_use]
    pub fn runtime(&self) -> &Runtime {
        &self.runtime
    }

    /// The owner of block (`row`, `column`) where blocks are dealt to a grid of ranks in turn, which is as square as
    /// their number allows (the distribution of ScaLAPACK, Choi et al. 1992).
    #[must_use]
    pub fn block_cyclic(&self, row: usize, column: usize) -> usize {
        self.grid.owner(row, column)
    }

    /// Waits until all tasks have ended on every rank. All ranks call it, and get the same word.
    ///
    /// # Errors
    /// [`ClusterError::Differ`] if the ranks have not submitted the same tasks: the cluster is of no use any more.
    /// [`ClusterError::Failed`] with the failures of each rank; it may be used on, unless tasks of a rank have
    /// [stalled](RunError::Stalled).
    pub fn wait_all(&self) -> Result<(), ClusterError> {
        let among = self.among();
        let (log, flights) = {
            let mut state = self.state.lock();
            (state.log.take(), state.traffic.flights.clone())
        };
        // Reports of this wait are compared with each other only: before and after it, ranks may be at work that are in
        // no wait.
        let met = || _ = self.office.desk().tell(Doing::Begins);
        // Before anything is waited for: what only some ranks have submitted would be waited for in vain.
        if let Err(error) = among.check(&log, &met, &|| self.tell_stall()) {
            self.office.give_up(&error.to_string());
            // What has not begun is of no use to anybody.
            self.runtime.cancel_all();
            let _ = self.runtime.wait_all();
            return Err(error);
        }
        let problem = self.runtime.wait_all().err();
        let lack = || self.office.desk().memory().take_lack();
        match &problem {
            Some(RunError::Stalled(_)) => self.tell_stall(),
            // This rank may end next, and others wait for what it passes on.
            _ => {
                self.office.desk().tell(Doing::Ends(self.runtime.stats().iter().map(|worker| worker.tasks).sum()));
                flights.wait();
            }
        }
        // What was not received for lack of memory is why tasks were cancelled.
        among.agree(lack().or_else(|| problem.map(|error| error.to_string())).as_deref(), &met)
    }

    /// Tells the others that this rank ends, and why: it does not do its part any more. What they await from it fails,
    /// and so do all values that are on their way to them; their next [`wait_all`](Self::wait_all) fails with the
    /// number of this rank and these words. A program whose rank returns an error calls it before;
    /// [`local`](Self::local) does so itself.
    ///
    /// ```
    /// # use sched_cluster::Cluster;
    /// # use sched_runtime::{Runtime, StartError};
    /// # use std::sync::Arc;
    /// # fn start() -> Result<Runtime, StartError> {
    /// #     Runtime::builder().registry(Arc::new(sched_tree::plugin::Registry::compiled_in())).workers(1).bind(false).build()
    /// # }
    /// let words = Cluster::local(2, |_| start(), |cluster| {
    ///     if cluster.rank() == 1 {
    ///         return Err("the file is missing".to_owned());
    ///     }
    ///     cluster.wait_all().map_err(|error| error.to_string())
    /// })?;
    /// assert_eq!(words[0], Err("rank 1 has ended: the file is missing".to_owned()));
    /// # Ok::<(), sched_cluster::ClusterError>(())
    /// ```
    pub fn end_others(&self, why: &str) {
        let why = format!("rank {} has ended: {why}", self.rank);
        // What has not begun is of no use to anybody.
        self.runtime.cancel_all();
        for rank in (0..self.ranks).filter(|rank| *rank != self.rank) {
            self.office.desk().send(rank, Tag::ENDED, Box::new(why.clone().into_bytes()));
        }
    }

    /// Ends all ranks, for this reason.
    pub(crate) fn end_all(&self, why: String) -> ClusterError {
        for rank in (0..self.ranks).filter(|rank| *rank != self.rank) {
            self.office.desk().send(rank, Tag::OWN.of_failure(), Box::new(why.clone().into_bytes()));
        }
        self.office.give_up(&why);
        ClusterError::Failed(vec![why])
    }

    /// What others wait for, and what they would send for it, is not going to come.
    fn tell_stall(&self) {
        let why = format!("rank {} has stalled", self.rank);
        for rank in (0..self.ranks).filter(|rank| *rank != self.rank) {
            self.office.desk().send(rank, Tag::STUCK, Box::new(why.clone().into_bytes()));
        }
        self.office.give_up_values(&why);
    }

    /// Bounds what this rank has in flight: a submission waits until fewer than `most` of its tasks, and of the values
    /// that it sends or receives, have not ended, the oldest first. So the memory of a program grows with the bound,
    /// and not with the number of its tasks. Ranks may have different bounds, and 0 counts as 1. Without a bound,
    /// [`Builder::bound_tasks`](sched_runtime::Builder::bound_tasks) bounds the tasks alone.
    pub fn bound_in_flight(&self, most: usize) {
        self.state.lock().traffic.bound(most);
    }

    /// What this rank has sent to others, or will send for the tasks that are submitted so far.
    #[must_use]
    pub fn sent(&self) -> Sent {
        self.state.lock().traffic.sent
    }

    /// What each rank gives, by rank. All ranks call it.
    ///
    /// # Errors
    /// [`ClusterError::Failed`] if a rank is gone.
    pub fn exchange(&self, mine: &[u8]) -> Result<Vec<Vec<u8>>, ClusterError> {
        self.among().exchange(mine)
    }

    /// What each rank gives, by rank, on rank 0 alone. All ranks call it.
    ///
    /// # Errors
    /// [`ClusterError::Failed`] if a rank is gone.
    pub fn collect(&self, mine: &[u8]) -> Result<Option<Vec<Vec<u8>>>, ClusterError> {
        self.among().collect(mine)
    }

    fn among(&self) -> Among<'_> {
        Among { rank: self.rank, ranks: self.ranks, desk: self.office.desk(), runtime: &self.runtime }
    }

    fn check_rank(&self, rank: usize) -> Result<(), ClusterError> {
        if rank < self.ranks { Ok(()) } else { Err(ClusterError::NoRank { rank, ranks: self.ranks }) }
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        if thread::panicking() {
            let said = last_words::of_this_thread().map_or_else(String::new, |said| format!(": {said}"));
            let last_words = format!("rank {} has panicked{said}", self.rank);
            self.runtime.cancel_all();
            let others = (0..self.ranks).filter(|rank| *rank != self.rank);
            others.for_each(|rank| {
                self.office.desk().send(rank, Tag::OWN.of_failure(), Box::new(last_words.clone().into_bytes()));
            });
        }
        self.office.give_up("the rank ends");
    }
}

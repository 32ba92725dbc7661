//! A graph, divided among ranks.
//!
//! Each rank gets a graph of its own: the tasks that it runs, and one more for each message that it sends or receives.
//! A message that is sent reads the value there, one that is received writes it, so their order among the tasks of the
//! rank follows from accesses, as that of the leases by which `sched-cluster` sends and receives. Explicit dependencies
//! on tasks of other ranks are messages without data.
//!
//! Tasks that add to a sum run where their other data is, each rank adds to a part of its own, and before the sum is
//! read the parts go along a binomial tree to its owner.

use super::{Grid, Holders, rank_of};
use crate::{Access, AccessMode, ContextId, DataId, Datum, KindId, Task, TaskGraph, TaskId, WontUse};
use std::collections::HashMap;

/// A message: its place in [`Shares::messages`].
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct MessageId(pub u32);

impl MessageId {
    /// Its place in [`Shares::messages`].
    #[must_use]
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// A message from one rank to another.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Message {
    /// The sender.
    pub from: u32,
    /// The receiver.
    pub to: u32,
    /// What is sent; `None` if it only tells that a task has ended.
    pub data: Option<DataId>,
    /// Number of bytes.
    pub bytes: u64,
    /// The priority of the task that it is sent for.
    pub priority: i32,
    /// The task of the sender's graph that sends it.
    pub sends: TaskId,
    /// The task of the receiver's graph that receives it.
    pub receives: TaskId,
}

/// What a task in the graph of a rank stands for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Role {
    /// The task of the divided graph.
    Task(TaskId),
    /// Sends a message.
    Send(MessageId),
    /// Receives a message.
    Receive(MessageId),
}

/// The part of a rank.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Share {
    /// Its tasks and messages, with the data that they access, in the order of submission. Messages are of the last
    /// kind, which does not run. Tasks have no names; those of the divided graph do.
    pub graph: TaskGraph,
    /// What each task of the graph stands for.
    pub roles: Vec<Role>,
    /// For each datum of the graph, that of the divided graph.
    pub data: Vec<DataId>,
    /// For each task of the graph, the number of tasks of other ranks that are submitted between it and the one before.
    pub passed_over: Vec<u32>,
    /// Number of tasks of the divided graph, seen so far.
    seen: u32,
}

/// A graph, divided among ranks.
///
/// ```
/// use sched_graph::generate::cholesky;
/// use sched_graph::ranks::{Grid, Shares};
/// let graph = cholesky(4, 100);
/// let shares = Shares::new(&graph, &Grid::new(4).owners(&graph.data), 4);
/// let tasks = shares.ranks.iter().map(|rank| rank.graph.tasks.len()).sum::<usize>();
/// assert_eq!(tasks, graph.tasks.len() + 2 * shares.messages.len());
/// ```
#[derive(Clone, PartialEq, Debug)]
pub struct Shares {
    /// The part of each rank.
    pub ranks: Vec<Share>,
    /// All messages, in the order of submission.
    pub messages: Vec<Message>,
}

impl Shares {
    /// Divides a graph among `ranks` ranks, at least one, where each datum has the given owner.
    ///
    /// # Panics
    /// If there are not as many owners as data, or an owner is no rank.
    #[must_use]
    pub fn new(graph: &TaskGraph, owners: &[usize], ranks: usize) -> Shares {
        assert_eq!(owners.len(), graph.data.len(), "each datum has an owner");
        assert!(owners.iter().all(|owner| *owner < ranks), "owners are ranks");
        let mut dealer = Dealer::new(graph, owners, ranks.max(1));
        let mut hints = graph.wont_use.iter().peekable();
        for (id, task) in graph.ids().zip(&graph.tasks) {
            while let Some(hint) = hints.next_if(|hint| hint.submitted <= id.0) {
                dealer.hint(hint);
            }
            dealer.deal(id, task);
        }
        hints.for_each(|hint| dealer.hint(hint));
        Shares { ranks: dealer.ranks, messages: dealer.messages }
    }

    /// Divides a graph among ranks to which its data is dealt by a [`Grid`].
    #[must_use]
    pub fn block_cyclic(graph: &TaskGraph, ranks: usize) -> Shares {
        let grid = Grid::new(ranks);
        Shares::new(graph, &grid.owners(&graph.data), grid.ranks())
    }
}

/// Deals the tasks of a graph.
struct Dealer<'g> {
    graph: &'g TaskGraph,
    ranks: Vec<Share>,
    messages: Vec<Message>,
    holders: Vec<Holders>,
    /// For each datum, the ranks that have added to parts of it which its owner has not got yet, in the order in which
    /// they began.
    pending: Vec<Vec<usize>>,
    /// The datum of a rank's graph, by rank and datum of the whole graph.
    local: HashMap<(u32, DataId), DataId>,
    /// The rank of each task so far, and its place there.
    dealt: Vec<(u32, TaskId)>,
    /// What tells a rank that a task of another has ended.
    told: HashMap<(TaskId, u32), TaskId>,
    /// The kind of messages.
    message: KindId,
    /// Priority of the task that is dealt now.
    priority: i32,
}

impl<'g> Dealer<'g> {
    fn new(graph: &'g TaskGraph, owners: &[usize], ranks: usize) -> Dealer<'g> {
        let mut share = Share::default();
        share.graph.name.clone_from(&graph.name);
        share.graph.kinds.clone_from(&graph.kinds);
        let message = share.graph.add_kind("message");
        share.graph.kinds[message.index()].runs = false;
        Dealer {
            graph,
            ranks: vec![share; ranks],
            messages: Vec::new(),
            holders: owners.iter().map(|owner| Holders::owned_by(*owner)).collect(),
            pending: vec![Vec::new(); owners.len()],
            local: HashMap::new(),
            dealt: Vec::with_capacity(graph.tasks.len()),
            told: HashMap::new(),
            message,
            priority: 0,
        }
    }

    fn deal(&mut self, id: TaskId, task: &Task) {
        self.priority = task.priority;
        let counted = task.accesses.iter().filter(|access| access.mode != AccessMode::Redux);
        let owned = counted.map(|access| (access.mode, self.holders[access.data.index()].owner()));
        let rank = rank_of(owned, id.index() % self.ranks.len());
        for access in &task.accesses {
            self.prepare(access, rank);
        }
        let here =
            |dealer: &mut Dealer<'_>, access: &Access| Access { data: dealer.local(rank, access.data), ..*access };
        let accesses = task.accesses.iter().map(|access| here(self, access)).collect();
        let after = task.after.iter().map(|before| self.before(*before, rank)).collect();
        let own = Task { name: None, accesses, after, ..task.clone() };
        let place = self.add(rank, own, Role::Task(id));
        self.ranks[rank].seen = id.0 + 1;
        self.dealt.push((rank as u32, place));
        for access in task.accesses.iter().filter(|access| access.mode.writes() && access.mode != AccessMode::Redux) {
            if let Some(owner) = self.holders[access.data.index()].write(rank) {
                self.send(rank, owner, access.data, AccessMode::Write);
            }
        }
    }

    /// Sees to it that a task on `rank` finds what it accesses there.
    fn prepare(&mut self, access: &Access, rank: usize) {
        let data = access.data.index();
        if access.mode == AccessMode::Redux {
            if self.pending[data].is_empty() {
                self.holders[data].flush();
            }
            if !self.pending[data].contains(&rank) {
                self.pending[data].push(rank);
            }
            return;
        }
        // What was added so far is added up, or overwritten.
        let parts = std::mem::take(&mut self.pending[data]);
        if access.mode.reads() {
            self.settle(access.data, &parts);
            if let Some(from) = self.holders[data].bring(rank) {
                self.send(from, rank, access.data, AccessMode::Write);
            }
        }
    }

    /// Adds parts of a sum to the value of its owner, along a binomial tree of the ranks that have any.
    fn settle(&mut self, data: DataId, parts: &[usize]) {
        let owner = self.holders[data.index()].owner();
        let parts = parts.iter().copied().filter(|rank| *rank != owner);
        let ranks: Vec<usize> = std::iter::once(owner).chain(parts).collect();
        let mut step = 1;
        while step < ranks.len() {
            for to in (0..ranks.len() - step).step_by(2 * step) {
                self.send(ranks[to + step], ranks[to], data, AccessMode::ReadWrite);
            }
            step *= 2;
        }
    }

    /// Adds a task to the graph of a rank.
    fn add(&mut self, rank: usize, task: Task, role: Role) -> TaskId {
        let submitted = self.dealt.len() as u32;
        let share = &mut self.ranks[rank];
        share.passed_over.push(submitted.saturating_sub(share.seen));
        share.seen = share.seen.max(submitted);
        share.roles.push(role);
        share.graph.add_task(task)
    }

    /// The datum in the graph of a rank.
    fn local(&mut self, rank: usize, data: DataId) -> DataId {
        let Dealer { graph, ranks, holders, local, .. } = self;
        *local.entry((rank as u32, data)).or_insert_with(|| {
            let (share, whole) = (&mut ranks[rank], &graph.data[data.index()]);
            share.data.push(data);
            let mut here = Datum::new(whole.bytes);
            if holders[data.index()].owner() == rank {
                here.home = whole.home;
            }
            share.graph.add_data(here)
        })
    }

    /// Sends a value, which replaces that of the receiver, or is added to it.
    fn send(&mut self, from: usize, to: usize, data: DataId, arrives: AccessMode) {
        let task = |dealer: &mut Dealer<'_>, rank, mode| {
            Task::new(dealer.message).access(dealer.local(rank, data), mode).in_context(ContextId::DEFAULT)
        };
        let (sends, receives) = (task(self, from, AccessMode::Read), task(self, to, arrives));
        self.message((from, sends), (to, receives), Some(data));
    }

    /// Adds a message, with the tasks that send and receive it. Returns the latter.
    fn message(&mut self, from: (usize, Task), to: (usize, Task), data: Option<DataId>) -> TaskId {
        let id = MessageId(self.messages.len() as u32);
        let sends = self.add(from.0, from.1, Role::Send(id));
        let receives = self.add(to.0, to.1, Role::Receive(id));
        let bytes = data.map_or(0, |data| self.graph.data[data.index()].bytes);
        let (from, to, priority) = (from.0 as u32, to.0 as u32, self.priority);
        self.messages.push(Message { from, to, data, bytes, priority, sends, receives });
        receives
    }

    /// The task in the graph of a rank after whose end an earlier task of the whole graph has ended.
    fn before(&mut self, task: TaskId, rank: usize) -> TaskId {
        let (there, place) = self.dealt[task.index()];
        if there as usize == rank {
            return place;
        }
        if let Some(told) = self.told.get(&(task, rank as u32)) {
            return *told;
        }
        let (sends, receives) = (Task::new(self.message).after(place), Task::new(self.message));
        let told = self.message((there as usize, sends), (rank, receives), None);
        self.told.insert((task, rank as u32), told);
        told
    }

    /// Passes a hint on to the ranks that know the data.
    fn hint(&mut self, hint: &WontUse) {
        for rank in 0..self.ranks.len() {
            if let Some(data) = self.local.get(&(rank as u32, hint.data)) {
                let graph = &mut self.ranks[rank].graph;
                graph.wont_use.push(WontUse { submitted: graph.tasks.len() as u32, data: *data });
            }
        }
    }
}

//! The input of a plan: a snapshot of the submitted tasks and the workers.

mod residents;
mod squads;

use super::super::block_cyclic::{MOST_HALVINGS, Owners};
use super::super::completion::Weights;
use super::experience::Experience;
use super::flows::{Flows, NOWHERE};
use super::kinds::Kinds;
use super::network::{Network, Traffic};
use super::replicas::Replicas;
use super::schedule::Owned;
use super::under_way::UnderWay;
use crate::queue::nanos;
use sched_core::{Child, DataAccess, Estimate, MemoryNode, Node, Stage, Submitted, SubmittedTask, Task, WorkerId};
use squads::Squads;
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

/// "Cannot run there" or "is not there".
pub(super) const NEVER: u64 = u64::MAX;

/// The greatest length of a task or a transfer, five hours in ns: models that are far from what they were measured with
/// say far more, and sums of lengths must not overflow.
const LONGEST: u64 = 1 << 44;

/// A worker that tasks are planned for.
#[derive(Clone, Copy, Debug)]
pub(super) struct Lane {
    pub(super) worker: WorkerId,
    pub(super) child: Child,
    pub(super) memory: usize,
    /// Number of its architecture, counted from 0 in order of appearance.
    pub(super) class: usize,
    /// When it finishes all that it was sent.
    pub(super) free: u64,
}

/// A task that was sent.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sent {
    pub(super) sequence: u64,
    pub(super) lane: usize,
    pub(super) end: u64,
    /// When it was planned to begin.
    pub(super) start: u64,
    /// When it began, if it has.
    pub(super) began: Option<u64>,
    /// When the memory for its data is allocated.
    pub(super) memory: u64,
    /// Expected length, without what was learnt.
    pub(super) expected: f64,
    pub(super) kind: usize,
}

/// A task's access to a piece of data, by the number of the data here.
#[derive(Clone, Copy, Debug)]
pub(super) struct Use {
    pub(super) data: usize,
    pub(super) reads: bool,
    pub(super) writes: bool,
}

/// See the [module](self). Times are nanoseconds of the run; tasks are numbered in the order of submission.
#[derive(Clone, Default, Debug)]
pub(super) struct Outlook {
    pub(super) now: u64,
    pub(super) lanes: Vec<Lane>,
    pub(super) classes: usize,
    pub(super) memories: usize,
    pub(super) sequences: Vec<u64>,
    /// One past the last task of the window.
    pub(super) end: u64,
    /// By task: its row in `lengths`. Few rows for many tasks stay in the processor's cache.
    pub(super) rows: Vec<u32>,
    /// By row: the length on each lane.
    pub(super) lengths: Vec<u64>,
    /// The kind of each task: tasks of one kind have equal lengths on every lane.
    pub(super) kinds: Vec<usize>,
    /// By task: the number of those that share its preferences; and how many groups of these there are.
    pub(super) groups: Vec<usize>,
    pub(super) count_groups: usize,
    /// Whether each task takes a lane's time. Others take no time, and end by themselves or are sent elsewhere.
    pub(super) works: Vec<bool>,
    /// The memory that owns what each task writes, and how many times as long the task takes on the best lane elsewhere
    /// that belongs to no owner; by how many times the number of owners is halved.
    pub(super) owners: [Vec<Option<(usize, f64)>>; 1 + MOST_HALVINGS],
    /// Whether the memory of each lane owns data.
    pub(super) of_owner: Vec<bool>,
    /// Tasks that were sent: number, lane, and expected end.
    pub(super) sent: Vec<(usize, usize, u64)>,
    is_sent: Vec<bool>,
    /// Number of tasks in here that each waits for.
    pub(super) waits: Vec<u32>,
    successors: Vec<usize>,
    successors_of: Vec<Range<usize>>,
    /// By task: what those that wait for it take at least, one after the other, each where it takes least.
    pub(super) tails: Vec<u64>,
    uses: Vec<Use>,
    uses_of: Vec<Range<usize>>,
    /// When a copy of each piece of data is in each memory.
    pub(super) copies: Vec<u64>,
    /// Whether each piece of data has memory in each memory, valid or not.
    pub(super) allocated: Vec<bool>,
    /// The replicas in memories that not all data fits into, in the order in which they were used.
    pub(super) replicas: Replicas,
    /// Transfers that wait for memory: when it is there, the place by data and memory, and the source.
    pub(super) requests: Vec<(u64, usize, usize)>,
    size_of: Vec<usize>,
    /// By size, source and destination.
    transfers: Vec<u64>,
    /// By size and destination: the sources, in the order of what the host expects transfers from them to take. It
    /// fetches data from the first that has it.
    nearest: Vec<usize>,
    /// Whether plans are compared by what becomes of them where transfers share links at each moment.
    pub(super) is_close: bool,
    /// The links that transfers pass, and until when those that are under way keep them busy.
    pub(super) network: Arc<Network>,
    pub(super) traffic: Traffic,
    /// The transfers that are under way, by data and memory.
    pub(super) flows: Flows,
    /// Bytes of each piece of data.
    pub(super) bytes: Vec<u64>,
    /// Nanoseconds before its planned start at which the data of a task is fetched.
    pub(super) lead: u64,
    pub(super) squads: Squads,
}

/// What an outlook is a snapshot of.
pub(super) struct View<'a> {
    pub(super) submitted: Submitted<'a>,
    pub(super) weights: &'a Weights,
    /// The workers that are there, with classes below `classes`.
    pub(super) lanes: &'a [Lane],
    pub(super) classes: usize,
    /// The tasks that were sent and have not ended.
    pub(super) sent: &'a [Sent],
    /// The ready tasks that were not sent.
    pub(super) held: &'a BTreeMap<u64, Task>,
    /// Who owns which data.
    pub(super) owners: &'a Owners,
    /// Maximum number of tasks, and of held tasks beyond them.
    pub(super) window: usize,
    /// Where only tasks that are planned already are planned again: one past the last of them in the order of
    /// submission, and all of them.
    pub(super) planned: Option<(u64, &'a BTreeMap<u64, Option<usize>>)>,
    /// The transfers that are under way.
    pub(super) under_way: &'a UnderWay,
    /// What was learnt of lengths.
    pub(super) experience: &'a Experience,
    /// Nanoseconds before its planned start at which the data of a task is fetched.
    pub(super) lead: u64,
}

/// An outlook under construction.
struct Builder<'a> {
    view: &'a View<'a>,
    kinds: &'a mut Kinds,
    /// The row of each kind: its lengths with what was learnt.
    rows: BTreeMap<usize, u32>,
    outlook: Outlook,
    sent: BTreeMap<u64, &'a Sent>,
    tasks: Vec<SubmittedTask>,
    /// Numbers of the tasks, by sequence number.
    numbers: BTreeMap<u64, usize>,
    /// Numbers of the data, by the host's number.
    data: BTreeMap<u64, usize>,
    /// Numbers of the sizes of data.
    sizes: BTreeMap<u64, usize>,
}

impl Outlook {
    /// Takes the first `window` tasks that have not ended, and the first held ones beyond, since earlier tasks may wait
    /// for something that only those bring about.
    pub(super) fn new(node: Node<'_>, view: &View<'_>, kinds: &mut Kinds) -> Outlook {
        let is_new = |sequence: u64| view.planned.is_some_and(|(end, _)| sequence >= end);
        let mut builder = Builder::new(node, view, kinds);
        for (sequence, task) in view.submitted.tasks() {
            if builder.tasks.len() == view.window || is_new(sequence) {
                break;
            }
            builder.add(sequence, task);
        }
        let end = builder.outlook.sequences.last().map_or(0, |last| last + 1);
        builder.outlook.end = end;
        let held = view.held.range(end..).map(|(sequence, _)| *sequence);
        let held = held.filter(|held| view.planned.is_none_or(|(_, planned)| planned.contains_key(held)));
        for sequence in held.take(view.window) {
            if let Some(task) = view.submitted.task(sequence).filter(|task| task.stage != Stage::Ended) {
                builder.add(sequence, task);
            }
        }
        builder.finish()
    }

    /// Number of tasks.
    pub(super) fn len(&self) -> usize {
        self.sequences.len()
    }

    /// Number of accesses and dependencies of all tasks.
    pub(super) fn links(&self) -> usize {
        self.uses.len() + self.successors.len()
    }

    pub(super) fn length(&self, task: usize, lane: usize) -> u64 {
        self.lengths[self.rows[task] as usize * self.lanes.len() + lane]
    }

    /// Length of a task on each lane.
    pub(super) fn lengths(&self, task: usize) -> &[u64] {
        &self.lengths[self.rows[task] as usize * self.lanes.len()..][..self.lanes.len()]
    }

    /// Whether a task is still to be sent.
    pub(super) fn is_open(&self, task: usize) -> bool {
        !self.is_sent[task]
    }

    pub(super) fn successors(&self, task: usize) -> &[usize] {
        &self.successors[self.successors_of[task].clone()]
    }

    pub(super) fn uses(&self, task: usize) -> &[Use] {
        &self.uses[self.uses_of[task].clone()]
    }

    pub(super) fn transfer(&self, data: usize, from: usize, to: usize) -> u64 {
        self.transfers[(self.size_of[data] * self.memories + from) * self.memories + to]
    }

    /// The memories that the host fetches data from, the first that has it.
    pub(super) fn nearest(&self, data: usize, to: usize) -> &[usize] {
        &self.nearest[(self.size_of[data] * self.memories + to) * self.memories..][..self.memories]
    }

    /// Whether a lane may execute a task if the owner of the data computes, except for tasks that take less than
    /// [`Owned::most`] times as long on a lane of no owner.
    pub(super) fn is_with_owner(&self, task: usize, lane: usize, owned: Owned) -> bool {
        self.owners[owned.halvings][task].is_none_or(|(owner, ratio)| {
            self.lanes[lane].memory == owner || (!self.of_owner[lane] && ratio < owned.most)
        })
    }

    /// Whether plans are compared with transfers that share links at each moment.
    pub(super) fn has_links(&self) -> bool {
        self.is_close && self.memories > 1 && self.network.is_known()
    }

    /// Whether memory takes time to be allocated anywhere.
    pub(super) fn allocates(&self) -> bool {
        (0..self.memories).any(|memory| self.network.allocation(memory) > 0)
    }

    /// Whether data is owned by different memories, where the number of owners is halved that many times.
    pub(super) fn has_owners(&self, halvings: usize) -> bool {
        let mut owners = self.owners[halvings].iter().flatten().map(|(owner, _)| owner);
        owners.next().is_some_and(|first| owners.any(|owner| owner != first))
    }

    /// The upward rank of each task: the longest path from its start to the end of all tasks. `cost` maps a task's
    /// lengths to one figure.
    pub(super) fn ranks(&self, cost: impl Fn(&[u64]) -> f64) -> Vec<f64> {
        let costs: Vec<f64> = self.lengths.chunks(self.lanes.len().max(1)).map(cost).collect();
        let mut ranks = vec![0.0_f64; self.len()];
        for task in (0..self.len()).rev() {
            let own = if self.works[task] { costs[self.rows[task] as usize] } else { 0.0 };
            ranks[task] = own + self.successors(task).iter().map(|next| ranks[*next]).fold(0.0, f64::max);
        }
        ranks
    }

    /// See [`tails`](field@Self::tails).
    fn tails(&self) -> Vec<u64> {
        let shortest = |lengths: &[u64]| lengths.iter().min().copied().unwrap_or(NEVER);
        let shortest: Vec<u64> = self.lengths.chunks(self.lanes.len().max(1)).map(shortest).collect();
        let mut tails = vec![0; self.len()];
        for task in (0..self.len()).rev() {
            let from = |next: &usize| {
                let own = if self.works[*next] { shortest[self.rows[*next] as usize] } else { 0 };
                if self.is_open(*next) { own.saturating_add(tails[*next]) } else { 0 }
            };
            tails[task] = self.successors(task).iter().map(from).max().unwrap_or(0);
        }
        tails
    }
}

impl<'a> Builder<'a> {
    fn new(node: Node<'_>, view: &'a View<'_>, kinds: &'a mut Kinds) -> Builder<'a> {
        let memories = view.under_way.memories;
        let lanes = view.lanes.to_vec();
        let of_owner = lanes.iter().map(|lane| view.owners.is_owner(MemoryNode(lane.memory as u32))).collect();
        Builder {
            view,
            kinds,
            rows: BTreeMap::new(),
            outlook: Outlook {
                now: node.now().as_nanos(),
                lanes,
                of_owner,
                classes: view.classes,
                memories,
                network: Arc::clone(&view.under_way.network),
                traffic: view.under_way.traffic.clone(),
                flows: view.under_way.flows.clone(),
                lead: view.lead,
                ..Outlook::default()
            },
            sent: view.sent.iter().map(|sent| (sent.sequence, sent)).collect(),
            tasks: Vec::new(),
            numbers: BTreeMap::new(),
            data: BTreeMap::new(),
            sizes: BTreeMap::new(),
        }
    }

    /// Adds a task with its lengths and accesses, unless a worker got it in another way.
    fn add(&mut self, sequence: u64, task: SubmittedTask) {
        let under_way = self.sent.get(&sequence).copied();
        if task.stage == Stage::Taken && under_way.is_none() {
            return;
        }
        let submitted = self.view.submitted;
        let number = self.tasks.len();
        self.numbers.insert(sequence, number);
        self.tasks.push(task);
        let length = |lane: &Lane| match submitted.expected_length(sequence, lane.worker) {
            Estimate::Known(length) if nanos(length) != NEVER => nanos(length).min(LONGEST),
            _ => NEVER,
        };
        let expected: Vec<u64> = self.view.lanes.iter().map(length).collect();
        let kind = self.kinds.number(&expected);
        let next = self.rows.len() as u32;
        let row = *self.rows.entry(kind).or_insert(next);
        if row == next {
            let corrected = |(lane, length)| match length {
                NEVER => NEVER,
                _ => ((length as f64 * self.view.experience.factor(kind, lane, self.view.lanes)) as u64).min(LONGEST),
            };
            self.outlook.lengths.extend(expected.into_iter().enumerate().map(corrected));
        }
        self.outlook.rows.push(row);
        let lengths = self.outlook.lengths(number);
        let owners: [_; 1 + MOST_HALVINGS] = std::array::from_fn(|halvings| self.owner(sequence, lengths, halvings));
        let works = !task.passes && lengths.iter().any(|length| *length != NEVER);
        let outlook = &mut self.outlook;
        outlook.owners.iter_mut().zip(owners).for_each(|(of, owner)| of.push(owner));
        outlook.sequences.push(sequence);
        outlook.works.push(works);
        outlook.kinds.push(kind);
        outlook.is_sent.push(under_way.is_some());
        if let Some(sent) = under_way {
            outlook.sent.push((number, sent.lane, sent.end.max(outlook.now)));
        }
        let from = outlook.uses.len();
        for access in submitted.accesses(sequence, task).filter(|access| access.reads || access.writes) {
            let data = self.number_of(access);
            self.outlook.uses.push(Use { data, reads: access.reads, writes: access.writes });
        }
        let to = self.outlook.uses.len();
        self.outlook.uses_of.push(from..to);
    }

    /// The memory that owns what a task writes, if a lane there can execute it, and the ratio of the shortest length on
    /// lanes of no owner to that on the owner's.
    fn owner(&self, sequence: u64, lengths: &[u64], halvings: usize) -> Option<(usize, f64)> {
        let owner = self.view.owners.of_task(self.view.submitted, sequence, halvings)?.0 as usize;
        let lanes = || self.view.lanes.iter().zip(&self.outlook.of_owner).zip(lengths);
        let at_owner = lanes().filter(|((lane, _), _)| lane.memory == owner).map(|(_, length)| *length).min()?;
        let elsewhere = lanes().filter(|((_, owns), _)| !**owns).map(|(_, length)| *length).min().unwrap_or(NEVER);
        let ratio = if elsewhere == NEVER { f64::INFINITY } else { elsewhere as f64 / at_owner.max(1) as f64 };
        (at_owner != NEVER).then_some((owner, ratio))
    }

    /// The number of the data that is accessed, which is added if it is new: its size, transfer times and copies.
    fn number_of(&mut self, access: DataAccess) -> usize {
        let next = self.data.len();
        let number = *self.data.entry(access.data).or_insert(next);
        if number < next {
            return number;
        }
        let (submitted, outlook) = (self.view.submitted, &mut self.outlook);
        let memories = outlook.memories as u32;
        let next = self.sizes.len();
        let size = *self.sizes.entry(access.bytes).or_insert(next);
        if size == next {
            let expected = |from: u32, to: u32| {
                let length = submitted.expected_transfer(MemoryNode(from), MemoryNode(to), access.bytes);
                if from == to { 0 } else { nanos(length) }
            };
            for to in 0..memories {
                let first = outlook.nearest.len();
                outlook.nearest.extend(0..memories as usize);
                outlook.nearest[first..].sort_by_key(|from| expected(*from as u32, to));
            }
            for (from, to) in (0..memories).flat_map(|from| (0..memories).map(move |to| (from, to))) {
                let known = outlook.network.alone(from as usize, to as usize, access.bytes);
                let alone = || known.unwrap_or_else(|| self.view.weights.charged(expected(from, to)));
                outlook.transfers.push(if from == to { 0 } else { alone().min(LONGEST) });
            }
        }
        outlook.size_of.push(size);
        outlook.bytes.push(access.bytes);
        let first = outlook.copies.len();
        let there = |memory| submitted.has_copy(access.data, MemoryNode(memory));
        let arrival = |memory| self.view.under_way.arrival(access.data, memory as usize, outlook.now);
        let copy = |memory| if there(memory) { outlook.now } else { arrival(memory).unwrap_or(NEVER) };
        outlook.copies.extend((0..memories).map(copy));
        let has_memory = |memory: u32| self.view.under_way.is_allocated(access.data, memory as usize);
        outlook.allocated.extend((0..memories).map(has_memory));
        if outlook.copies[first..].iter().all(|copy| *copy == NEVER) {
            outlook.copies[first] = outlook.now;
        }
        number
    }

    /// Adds the dependencies among the tasks.
    fn finish(mut self) -> Outlook {
        self.add_residents();
        let Builder { view, kinds, mut outlook, tasks, numbers, data, .. } = self;
        let (places, memories) = (&view.under_way.places, outlook.memories);
        outlook.flows.rename(|place| match places.get(place as usize) {
            Some((datum, memory)) => data.get(datum).map_or(NOWHERE, |datum| (datum * memories + memory) as u32),
            None => NOWHERE,
        });
        for (place, allocated) in outlook.allocated.iter_mut().enumerate() {
            *allocated |= outlook.copies[place] != NEVER;
        }
        outlook.find_replicas(view.under_way, &data);
        for request in &view.under_way.requests {
            let (datum, memory) = places[request.place as usize];
            if let Some(datum) = data.get(&datum) {
                outlook.requests.push((request.at, datum * memories + memory, request.from));
            }
        }
        outlook.groups = outlook.kinds.iter().map(|kind| kinds.group(*kind)).collect();
        outlook.count_groups = kinds.count_groups();
        outlook.waits = vec![0; tasks.len()];
        for (number, task) in tasks.into_iter().enumerate() {
            let from = outlook.successors.len();
            for successor in view.submitted.successors(outlook.sequences[number], task) {
                if let Some(successor) = numbers.get(&successor) {
                    outlook.successors.push(*successor);
                    outlook.waits[*successor] += 1;
                }
            }
            outlook.successors_of.push(from..outlook.successors.len());
        }
        outlook.tails = outlook.tails();
        outlook.squads = Squads::new(&outlook);
        outlook
    }
}

#[cfg(test)]
pub(super) mod tests;

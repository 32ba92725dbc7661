//! What a plan is made of: the submitted tasks and the workers, as they are now.

use super::super::completion::Weights;
use crate::queue::nanos;
use sched_core::{Child, Estimate, MemoryNode, Node, Stage, Submitted, SubmittedTask, Task, WorkerId};
use std::collections::BTreeMap;
use std::ops::Range;

/// Cannot run there; is not there.
pub(super) const NEVER: u64 = u64::MAX;

/// A worker that tasks are planned for.
#[derive(Clone, Copy, Debug)]
pub(super) struct Lane {
    pub(super) worker: WorkerId,
    pub(super) child: Child,
    pub(super) memory: usize,
    /// Workers of one architecture.
    pub(super) class: usize,
    /// When it has done all that it was sent.
    pub(super) free: u64,
}

/// A task that was sent already.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sent {
    pub(super) sequence: u64,
    pub(super) lane: usize,
    pub(super) end: u64,
}

/// What a task does with a piece of data, by its number here.
#[derive(Clone, Copy, Debug)]
pub(super) struct Use {
    pub(super) data: usize,
    pub(super) reads: bool,
    pub(super) writes: bool,
}

/// See the [module](self). Times are nanoseconds of the run; tasks are numbered in the order of submission.
#[derive(Default, Debug)]
pub(super) struct Outlook {
    pub(super) now: u64,
    pub(super) lanes: Vec<Lane>,
    pub(super) classes: usize,
    pub(super) memories: usize,
    pub(super) sequences: Vec<u64>,
    /// Behind the last task of the window.
    pub(super) end: u64,
    /// By task, then lane.
    pub(super) lengths: Vec<u64>,
    /// Tasks of one kind take alike long everywhere.
    pub(super) kinds: Vec<usize>,
    /// How many kinds are known.
    pub(super) count_kinds: usize,
    /// The task takes the time of a lane. Others take no time, and end by themselves or are sent elsewhere.
    pub(super) works: Vec<bool>,
    /// Tasks that were sent: which lane, and when they should end.
    pub(super) sent: Vec<(usize, usize, u64)>,
    is_sent: Vec<bool>,
    /// How many of these tasks each waits for.
    pub(super) waits: Vec<u32>,
    successors: Vec<usize>,
    successors_of: Vec<Range<usize>>,
    uses: Vec<Use>,
    uses_of: Vec<Range<usize>>,
    /// By data, then memory: when a copy is there.
    pub(super) copies: Vec<u64>,
    size_of: Vec<usize>,
    /// By size, source, destination.
    transfers: Vec<u64>,
}

impl Outlook {
    /// The first `window` tasks that have not ended; and the first of those that are `held` beyond, since what comes before
    /// may wait for something that only they bring about. `lanes` and `sent` say who is there and what is under way;
    /// `kinds` numbers the kinds of tasks, by their lengths on each lane.
    #[expect(clippy::too_many_arguments, reason = "the parts of an outlook, once")]
    pub(super) fn new(
        node: Node<'_>,
        submitted: Submitted<'_>,
        weights: &Weights,
        lanes: &[Lane],
        classes: usize,
        sent: &[Sent],
        held: &BTreeMap<u64, Task>,
        kinds: &mut BTreeMap<Vec<u64>, usize>,
        window: usize,
    ) -> Outlook {
        let memories = lanes.iter().map(|lane| lane.memory + 1).max().unwrap_or(1);
        let mut outlook =
            Outlook { now: node.now().as_nanos(), lanes: lanes.to_vec(), classes, memories, ..Outlook::default() };
        let mut known: BTreeMap<u64, usize> = BTreeMap::new();
        let (mut data, mut sizes) = (BTreeMap::new(), BTreeMap::new());
        let mut found = Vec::new();
        let sent: BTreeMap<u64, &Sent> = sent.iter().map(|sent| (sent.sequence, sent)).collect();
        let mut add = |outlook: &mut Outlook, sequence: u64, task: SubmittedTask| {
            let under_way = sent.get(&sequence);
            if task.stage == Stage::Taken && under_way.is_none() {
                return;
            }
            let number = outlook.sequences.len();
            known.insert(sequence, number);
            found.push(task);
            outlook.sequences.push(sequence);
            let length = |lane: &Lane| match submitted.expected_length(sequence, lane.worker) {
                Estimate::Known(length) => nanos(length),
                _ => NEVER,
            };
            let lengths: Vec<u64> = lanes.iter().map(length).collect();
            outlook.works.push(!task.passes && lengths.iter().any(|length| *length != NEVER));
            outlook.lengths.extend(&lengths);
            let next = kinds.len();
            outlook.kinds.push(*kinds.entry(lengths).or_insert(next));
            outlook.is_sent.push(under_way.is_some());
            if let Some(sent) = under_way {
                outlook.sent.push((number, sent.lane, sent.end.max(outlook.now)));
            }
            let from = outlook.uses.len();
            for access in submitted.accesses(sequence, task).filter(|access| access.reads || access.writes) {
                let next = data.len();
                let at = *data.entry(access.data).or_insert(next);
                if at == next {
                    outlook.add_data(submitted, weights, access.data, access.bytes, &mut sizes);
                }
                outlook.uses.push(Use { data: at, reads: access.reads, writes: access.writes });
            }
            outlook.uses_of.push(from..outlook.uses.len());
        };
        for (sequence, task) in submitted.tasks() {
            if outlook.sequences.len() == window {
                break;
            }
            add(&mut outlook, sequence, task);
        }
        outlook.end = outlook.sequences.last().map_or(0, |last| last + 1);
        for sequence in held.range(outlook.end..).map(|(sequence, _)| *sequence).take(window) {
            if let Some(task) = submitted.task(sequence).filter(|task| task.stage != Stage::Ended) {
                add(&mut outlook, sequence, task);
            }
        }
        outlook.count_kinds = kinds.len();
        outlook.waits = vec![0; outlook.sequences.len()];
        for (number, task) in found.into_iter().enumerate() {
            let from = outlook.successors.len();
            for successor in submitted.successors(outlook.sequences[number], task) {
                if let Some(successor) = known.get(&successor) {
                    outlook.successors.push(*successor);
                    outlook.waits[*successor] += 1;
                }
            }
            outlook.successors_of.push(from..outlook.successors.len());
        }
        outlook
    }

    fn add_data(
        &mut self,
        submitted: Submitted<'_>,
        weights: &Weights,
        data: u64,
        bytes: u64,
        sizes: &mut BTreeMap<u64, usize>,
    ) {
        let memories = self.memories as u32;
        let next = sizes.len();
        let size = *sizes.entry(bytes).or_insert(next);
        if size == next {
            for (from, to) in (0..memories).flat_map(|from| (0..memories).map(move |to| (from, to))) {
                let length = submitted.expected_transfer(MemoryNode(from), MemoryNode(to), bytes);
                self.transfers.push(if from == to { 0 } else { weights.reckoned(nanos(length)) });
            }
        }
        self.size_of.push(size);
        let first = self.copies.len();
        let there = |memory| submitted.has_copy(data, MemoryNode(memory));
        self.copies.extend((0..memories).map(|memory| if there(memory) { self.now } else { NEVER }));
        if self.copies[first..].iter().all(|copy| *copy == NEVER) {
            self.copies[first] = self.now;
        }
    }

    /// Number of tasks.
    pub(super) fn len(&self) -> usize {
        self.sequences.len()
    }

    pub(super) fn length(&self, task: usize, lane: usize) -> u64 {
        self.lengths[task * self.lanes.len() + lane]
    }

    /// Whether it is still to be sent.
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

    /// The longest way from the beginning of each task to the end of all, by what `cost` says of a task's length.
    pub(super) fn ranks(&self, cost: impl Fn(&[u64]) -> f64) -> Vec<f64> {
        let lanes = self.lanes.len();
        let mut ranks = vec![0.0_f64; self.len()];
        for task in (0..self.len()).rev() {
            let own = if self.works[task] { cost(&self.lengths[task * lanes..][..lanes]) } else { 0.0 };
            ranks[task] = own + self.successors(task).iter().map(|next| ranks[*next]).fold(0.0, f64::max);
        }
        ranks
    }
}

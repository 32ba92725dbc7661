//! A recording while its tasks are captured.

use super::homes::Homes;
use super::job::{JobOfRecord, RecordedJob};
use super::planned::{Planned, Replayed, Successor};
use super::recorded::{Recorded, RecordedGraph};
use crate::core::Core;
use crate::data::DataHeader;
use crate::data::whole::Whole;
use crate::task::job::Job;
use crate::task::private_order::PrivateOrder;
use crate::task::submit::Restriction;
use parking_lot::Mutex;
use sched_graph::{AccessMode, Where};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::AtomicU32;

/// See the [module](self).
pub(crate) struct Draft {
    /// Distinguishes the recording from runtimes and from other recordings.
    pub(crate) id: u64,
    state: Mutex<DraftState>,
}

#[derive(Default)]
struct DraftState {
    tasks: Vec<DraftTask>,
    order: PrivateOrder<u32>,
    /// What the recording as a whole accesses.
    accesses: BTreeMap<u64, (Arc<DataHeader>, AccessMode)>,
}

/// A captured task.
pub(crate) struct DraftTask {
    pub(crate) job: Box<dyn RecordedJob>,
    pub(crate) name: Option<Arc<str>>,
    pub(crate) only: Option<Where>,
    pub(crate) turns: Vec<Arc<DataHeader>>,
    pub(crate) priority: Option<i32>,
    pub(crate) sched_data: u64,
    pub(crate) footprint: u64,
    pub(crate) restriction: Option<Restriction>,
    /// Indices of the tasks that it waits for explicitly.
    pub(crate) after: Vec<u32>,
}

impl Default for Draft {
    fn default() -> Draft {
        Draft { id: super::new_number(), state: Mutex::default() }
    }
}

/// A task and whether the wait for it is explicit.
type Before = BTreeMap<u32, bool>;

impl DraftState {
    /// Notes an access of task `index`, and what it waits for.
    fn access(&mut self, index: u32, header: &Arc<DataHeader>, mode: AccessMode, before: &mut Before) {
        self.order.access(index, header, mode, |other| {
            if other != index {
                before.entry(other).or_insert(false);
            }
        });
        let (id, named) = match header.part() {
            None => (header.id, Arc::clone(header)),
            Some(part) => match self.accesses.get(&part.whole.id) {
                Some((whole, _)) => (part.whole.id, Arc::clone(whole)),
                None => (part.whole.id, Whole::header(Arc::clone(&part.whole))),
            },
        };
        let (_, so_far) = self.accesses.entry(id).or_insert((named, mode));
        let writes = so_far.writes() || mode.writes();
        *so_far = if writes { AccessMode::ReadWrite } else { AccessMode::Read };
    }
}

impl Draft {
    /// Number of tasks so far.
    pub(crate) fn len(&self) -> usize {
        self.state.lock().tasks.len()
    }

    /// Adds a task, and returns its place, from 1.
    pub(crate) fn add(&self, task: DraftTask) -> u64 {
        let mut state = self.state.lock();
        state.tasks.push(task);
        state.tasks.len() as u64
    }

    /// Works out what waits for what, and takes a slot for each task.
    pub(super) fn finish(&self, core: &Arc<Core>) -> Arc<Recorded> {
        let mut state = std::mem::take(&mut *self.state.lock());
        let tasks = std::mem::take(&mut state.tasks);
        let mut successors: Vec<Vec<Successor>> = tasks.iter().map(|_| Vec::new()).collect();
        let mut waits = Vec::with_capacity(tasks.len());
        for (index, task) in (0..).zip(&tasks) {
            let mut accesses: Vec<(&Arc<DataHeader>, AccessMode)> = Vec::new();
            task.job.visit(&mut |header, mode| accesses.push((header, mode)));
            let mut before: Before = task.after.iter().map(|other| (*other, true)).collect();
            accesses.into_iter().for_each(|(header, mode)| state.access(index, header, mode, &mut before));
            waits.push(before.len() as u32);
            before.iter().for_each(|(other, explicit)| {
                successors[*other as usize].push(Successor::new(index, *explicit));
            });
        }
        let homes = Homes::new(&successors);
        let mut end = 0;
        let ranges: Vec<[u32; 2]> = successors
            .iter()
            .map(|list| {
                let first = end;
                end += list.len() as u32;
                [first, end]
            })
            .collect();
        let least = tasks.iter().filter_map(|task| task.priority).min();
        let greatest = tasks.iter().filter_map(|task| task.priority).max();
        let (mut planned, mut rares, mut rarely) = (Vec::new(), Vec::new(), BTreeMap::new());
        for (((index, task), range), waits) in (0..).zip(tasks).zip(ranges).zip(waits) {
            let place = core.take_fresh();
            let (plan, rare, more) = Planned::new(task, place, range, waits);
            planned.push(plan);
            rares.push((place, rare));
            more.and_then(|more| rarely.insert(index, more));
        }
        let graph = RecordedGraph {
            tasks: planned.into(),
            rarely,
            successors: successors.concat().into(),
            accesses: state.accesses.into_values().collect(),
            homes,
            priorities: least.zip(greatest).map(|(least, greatest)| least..=greatest),
        };
        let recorded = Recorded::new(core, self.id, graph);
        for (index, (place, mut rare)) in (0..).zip(rares) {
            rare.replayed = Some(Replayed { recorded: Arc::clone(&recorded), index });
            let job: Box<dyn Job> = Box::new(JobOfRecord { recorded: Arc::clone(&recorded), index: index as usize });
            let mut body = place.record.body.lock();
            (body.job, body.rare) = (Some(job), Some(Box::new(rare)));
        }
        recorded
    }
}

/// Counts the tasks without successors that have not ended.
pub(super) type SinksLeft = AtomicU32;

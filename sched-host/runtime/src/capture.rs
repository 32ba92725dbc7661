//! The graph of what a program submits, with measured lengths: for simulations, and for other policies and machines.
//!
//! Nothing is kept unless the runtime was [built](crate::Builder::capture_graph) to. Submissions are noted where traces
//! and components that look ahead hear of them, ends where components hear of them.

use crate::Runtime;
use crate::core::Core;
use crate::data::access::Visitor;
use crate::data::{DataHeader, Places};
use crate::task::codelet::CodeletFacts;
use crossbeam::utils::CachePadded;
use parking_lot::Mutex;
use rustix::time::{ClockId, clock_gettime};
use sched_core::abi::TaskHead;
use sched_core::{Arch, MemoryNode, WorkerId};
use sched_graph::{AccessMode, ContextId, DataId, Datum, DividedData, Kind, KindId, Region, Task, TaskGraph, Where};
use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::*;
use std::time::Duration;

/// See the [module](self).
pub(crate) struct Capture {
    submitted: Mutex<Submitted>,
    /// By worker: sequences of tasks that have ended, and how long their kernels took on which architecture.
    lengths: Box<[CachePadded<Mutex<Vec<Length>>>]>,
    /// Whether these are times of the processor.
    of_processor: AtomicBool,
}

struct Length {
    task: u64,
    arch: Arch,
    length: Duration,
}

#[derive(Default)]
struct Submitted {
    tasks: Vec<Captured>,
    kinds: HashMap<String, KindId>,
    data: BTreeMap<u64, CapturedData>,
    /// Data that was declared unused, or a part of it, with the sequence of the last task before.
    unused: Vec<(u64, u64, Option<Region>)>,
}

/// A submitted task.
struct Captured {
    sequence: u64,
    task: Task,
    accesses: Vec<(u64, Option<Region>, AccessMode)>,
    /// Sequences of the tasks that it waits for explicitly.
    after: Vec<u64>,
}

/// Data that tasks named.
struct CapturedData {
    bytes: u64,
    home: MemoryNode,
    /// Of data with parts: the region of the whole, the size of an element, and the parts that were named.
    divided: Option<(Region, u64, Vec<Region>)>,
}

/// A task as its submission knows it.
pub(crate) struct Submission<'a> {
    pub(crate) sequence: u64,
    pub(crate) context: ContextId,
    pub(crate) head: &'a TaskHead,
    pub(crate) facts: &'a CodeletFacts,
    pub(crate) name: Option<&'a str>,
    pub(crate) only: Option<&'a Where>,
    pub(crate) after: &'a mut dyn Iterator<Item = u64>,
}

impl Capture {
    pub(crate) fn new(workers: usize) -> Capture {
        let lengths = (0..workers).map(|_| CachePadded::default()).collect();
        Capture { submitted: Mutex::default(), lengths, of_processor: AtomicBool::new(false) }
    }

    /// The time that the processor has worked for this thread, if lengths are measured by that.
    pub(crate) fn processor_time(&self) -> Option<Duration> {
        self.of_processor.load(Relaxed).then(|| {
            let time = clock_gettime(ClockId::ThreadCPUTime);
            Duration::new(time.tv_sec.unsigned_abs(), time.tv_nsec as u32)
        })
    }

    /// Notes a submitted task; `visit` visits its accesses.
    pub(crate) fn note_submitted<'h>(&self, submission: Submission<'_>, visit: &mut dyn FnMut(&mut Visitor<'_, 'h>)) {
        let Submission { sequence, context, head, facts, name, only, after } = submission;
        let submitted = &mut *self.submitted.lock();
        let next = KindId(submitted.kinds.len() as u32);
        let kind = match submitted.kinds.get(&facts.name) {
            Some(kind) => *kind,
            None => *submitted.kinds.entry(facts.name.clone()).or_insert(next),
        };
        let mut task = Task::new(kind).in_context(context).with_sched_data(head.sched_data.load(Relaxed));
        task.priority = head.priority.load(Relaxed);
        task.footprint = facts.model.as_ref().map(|_| head.footprint.load(Relaxed) as u32);
        task.name = name.map(Into::into);
        task.only = only.cloned().map(Box::new);
        let mut accesses = Vec::new();
        visit(&mut |header, mode| accesses.push(submitted.access(header, mode)));
        let captured = Captured { sequence, task, accesses, after: after.collect() };
        submitted.tasks.push(captured);
    }

    /// Notes that data was declared unused after the task of this sequence.
    pub(crate) fn note_unused(&self, header: &DataHeader, after: u64) {
        let submitted = &mut *self.submitted.lock();
        let (data, region, _) = submitted.access(header, AccessMode::ReadWrite);
        submitted.unused.push((after, data, region));
    }

    /// Notes how long the kernel of a task took on a worker.
    pub(crate) fn note_length(&self, worker: WorkerId, arch: Arch, task: u64, length: Duration) {
        self.lengths[worker.index()].lock().push(Length { task, arch, length });
    }

    /// Takes what was noted so far.
    fn take(&self) -> TaskGraph {
        let mut submitted = std::mem::take(&mut *self.submitted.lock());
        let mut lengths: HashMap<u64, (Arch, Duration)> = HashMap::new();
        for of_worker in &self.lengths {
            let ended = std::mem::take(&mut *of_worker.lock());
            lengths.extend(ended.into_iter().map(|of| (of.task, (of.arch, of.length))));
        }
        submitted.tasks.sort_unstable_by_key(|task| task.sequence);
        let mut graph = TaskGraph::new("program");
        let mut kinds: Vec<(KindId, String)> = submitted.kinds.into_iter().map(|(name, kind)| (kind, name)).collect();
        kinds.sort_unstable();
        graph.kinds = kinds.into_iter().map(|(_, name)| Kind { name, runs: true }).collect();
        let data: BTreeMap<u64, GraphData> =
            submitted.data.into_iter().map(|(id, data)| (id, data.into_graph(&mut graph))).collect();
        let places: HashMap<u64, u32> =
            (0..).zip(&submitted.tasks).map(|(place, task)| (task.sequence, place)).collect();
        let sequences: Vec<u64> = submitted.tasks.iter().map(|task| task.sequence).collect();
        for Captured { sequence, mut task, accesses, after } in submitted.tasks {
            for (id, region, mode) in accesses {
                task = match (&data[&id], region) {
                    (GraphData::Divided(divided), Some(region)) => divided.access(task, &region, mode),
                    (GraphData::Plain(id), _) => task.access(*id, mode),
                    (GraphData::Divided(_), None) => task,
                };
            }
            // Those taken before have ended.
            let after = after.iter().filter_map(|before| places.get(before));
            task.after.extend(after.map(|place| sched_graph::TaskId(*place)));
            if let Some((arch, length)) = lengths.get(&sequence) {
                task.lengths = std::mem::take(&mut task.lengths).with(*arch, *length);
            }
            graph.add_task(task);
        }
        for (after, id, region) in submitted.unused {
            let submitted = sequences.partition_point(|sequence| *sequence <= after) as u32;
            let pieces: Vec<DataId> = match (&data[&id], region) {
                (GraphData::Divided(divided), Some(region)) => divided.pieces(&region).collect(),
                (GraphData::Plain(data), _) => vec![*data],
                (GraphData::Divided(_), None) => Vec::new(),
            };
            graph.wont_use.extend(pieces.into_iter().map(|data| sched_graph::WontUse { submitted, data }));
        }
        graph
    }
}

impl Submitted {
    /// Notes an access, and the data if it is new.
    fn access(&mut self, header: &DataHeader, mode: AccessMode) -> (u64, Option<Region>, AccessMode) {
        let home = |places: &Places| match places.valid() {
            0 => MemoryNode(0),
            valid => MemoryNode(valid.trailing_zeros()),
        };
        let new = || CapturedData { bytes: header.bytes, home: home(&header.places), divided: None };
        let Some(part) = header.part() else {
            self.data.entry(header.id).or_insert_with(new);
            return (header.id, None, mode);
        };
        let data = self.data.entry(part.whole.id).or_insert_with(new);
        let (_, _, parts) = data.divided.get_or_insert_with(|| {
            let (region, element) = part.whole.shape();
            (region, element, Vec::new())
        });
        if !parts.contains(&part.region) {
            parts.push(part.region.clone());
        }
        (part.whole.id, Some(part.region.clone()), mode)
    }
}

/// Captured data in a graph.
enum GraphData {
    Plain(DataId),
    Divided(DividedData),
}

impl CapturedData {
    fn into_graph(self, graph: &mut TaskGraph) -> GraphData {
        let first = graph.data.len();
        let added = match self.divided {
            Some((whole, element, parts)) => GraphData::Divided(DividedData::add(graph, whole, element, &parts)),
            None => GraphData::Plain(graph.add_data(Datum::new(self.bytes))),
        };
        graph.data[first..].iter_mut().for_each(|datum| datum.home = self.home);
        added
    }
}

impl Runtime {
    /// Takes the graph of all tasks submitted since the start of the runtime, or since the last call, with the measured
    /// length of each task that has ended; `None` unless the runtime was [built](crate::Builder::capture_graph) for it.
    ///
    /// The graph has kinds, priorities, data with sizes, accesses and explicit order as the program submitted them. The
    /// file that `sched_graph::to_json` writes of it is read by `sched simulate`, `compare` and `graph`: so the program
    /// meets other policies and machines without running there.
    ///
    /// ```
    /// use sched_runtime::{ReadWrite, Runtime};
    /// # use std::sync::Arc;
    /// # let components = Arc::new(sched_tree::plugin::Registry::compiled_in());
    /// # let builder = Runtime::builder().registry(components);
    /// let runtime = builder.workers(2).capture_graph().build()?;
    /// let count = runtime.codelet::<(ReadWrite<u64>,), ()>("count").cpu("count", |_, (x,)| *x += 1).build();
    /// let x = runtime.register(0);
    /// for _ in 0..3 {
    ///     runtime.task(&count, (&x,)).submit()?;
    /// }
    /// runtime.wait_all()?;
    /// let graph = runtime.take_graph().expect("it was built to capture one");
    /// assert_eq!(graph.tasks.len(), 3);
    /// assert!(graph.tasks.iter().all(|task| !task.lengths.is_empty()));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn take_graph(&self) -> Option<TaskGraph> {
        self.core.backend.capture.as_ref().map(Capture::take)
    }

    /// From now on, captured lengths of kernels on cores are the time that the processor works for the thread of their
    /// worker, without its waits for the processor: where workers have more threads than there are cores, or other
    /// programs run, that is how long kernels take alone. Of a parallel task it is the time of the worker that leads
    /// it.
    pub fn capture_processor_time(&self) {
        if let Some(capture) = &self.core.backend.capture {
            capture.of_processor.store(true, Relaxed);
        }
    }
}

impl Core {
    /// Whether the graph of the program is captured.
    pub(crate) fn capture(&self) -> Option<&Capture> {
        self.backend.capture.as_ref()
    }
}

//! The ready tasks where workers are equal and time passes: any worker takes the next one.

mod ahead;
mod lengths;
mod line;
mod urgency;

use super::Limits;
use crate::queue::Padded;
use ahead::{Ahead, Done};
use line::Line;
use sched_core::*;
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::*};
use urgency::Urgency;

/// Number of looks at the clock after which it is known that time does not pass: a real clock may have coarse steps.
const LOOKS: usize = 1000;

/// See the [module](self).
///
/// A worker takes the task that it made ready last, whose data is likeliest to be in its caches, or else the first of
/// those that no worker made ready, or that others did; higher priorities first. Only urgent tasks precede these, those
/// whose path to the end is long beside all that is left: the longest path first.
///
/// What is urgent changes slowly. While nothing is, a worker touches its own line and nothing else; after some work it
/// looks at what has become urgent, and nobody waits meanwhile.
#[derive(Debug)]
pub(super) struct Pool {
    workers: Vec<WorkerId>,
    arch: Arch,
    is_closed: AtomicBool,
    /// The tasks that each worker has made ready, and those that none has.
    lines: Box<[Padded<Line>]>,
    /// By the path to the end, the longest last; of equal ones, the first that was submitted last.
    urgent: Mutex<BTreeMap<(u64, Reverse<u64>), Task>>,
    /// Number of these; while some are being moved there, it may be one more.
    count_urgent: AtomicUsize,
    /// The path to the end from which on a task is urgent; the end of time if none is so long.
    threshold: AtomicU64,
    ahead: Mutex<Ahead>,
    /// Whether there are so many tasks that workers need not ask each time whether there are others.
    is_large: AtomicBool,
    /// Whether somebody finds out how urgent tasks are.
    is_looking: AtomicBool,
}

impl Pool {
    /// A pool for the workers below, if they are equal and time passes while a component works.
    pub(super) fn new(node: Node<'_>) -> Option<Pool> {
        let began = node.now();
        let workers: Vec<WorkerId> = node.workers().iter().collect();
        let arch = node.arch(*workers.first()?)?;
        let are_simple = workers.iter().all(|worker| node.members(*worker).count() == 1);
        let are_equal = are_simple && node.is_homogeneous() && node.single_memory_node().is_some();
        let passes = || (0..LOOKS).any(|_| node.now() > began);
        (are_equal && passes()).then(|| Pool {
            lines: (0..=workers.len()).map(|_| Padded(Line::new())).collect(),
            workers,
            arch,
            is_closed: AtomicBool::new(false),
            urgent: Mutex::default(),
            count_urgent: AtomicUsize::new(0),
            threshold: AtomicU64::new(u64::MAX),
            ahead: Mutex::default(),
            is_large: AtomicBool::new(false),
            is_looking: AtomicBool::new(false),
        })
    }

    /// The line of the requesting worker; the last if there is none.
    fn line(&self, node: Node<'_>) -> usize {
        let requester = node.requester();
        self.workers.iter().position(|worker| Some(*worker) == requester).unwrap_or(self.workers.len())
    }

    /// Adds a task that the requesting worker has made ready, if there is one, unless the pool is closed or not every
    /// worker can execute the task.
    pub(super) fn push(&self, node: Node<'_>, task: Task) -> Result<(), Task> {
        self.add(self.line(node), task)
    }

    /// [`push`](Self::push) of a task that came back: whoever comes first gets it.
    pub(super) fn put_back(&self, task: Task) -> Result<(), Task> {
        self.add(self.workers.len(), task)
    }

    fn add(&self, line: usize, task: Task) -> Result<(), Task> {
        if !task.open_archs().contains(self.arch) {
            return Err(task);
        }
        let threshold = self.threshold.load(Relaxed);
        let sequence = task.id().sequence();
        if threshold != u64::MAX
            && let Some(path) = self.ahead.lock().path(sequence).filter(|path| *path >= threshold)
        {
            let mut urgent = self.urgent.lock();
            if self.is_closed() {
                return Err(task);
            }
            urgent.insert((path, Reverse(sequence)), task);
            self.count_urgent.store(urgent.len(), Release);
            return Ok(());
        }
        self.lines[line].0.push(task, || self.is_closed())
    }

    /// The next task for the requesting worker.
    pub(super) fn next(&self, node: Node<'_>, limits: Limits) -> Option<Task> {
        let own = self.line(node);
        let looks = !self.is_large.load(Relaxed) && self.len() > 0;
        if let Some(done) = self.lines[own].0.report(looks) {
            self.look_ahead(node, limits, done);
        }
        // A task that becomes urgent meanwhile is in no line, but announced before it leaves that.
        let mut task = self.first_urgent().or_else(|| self.first(own)).or_else(|| self.first_urgent())?;
        if let Some(worker) = self.workers.get(own) {
            let ask = || node.expected_length(*worker, &task).known();
            let length = self.lines[own].0.expected_length(&task, ask);
            task.set_predicted(length);
        }
        Some(task)
    }

    fn first_urgent(&self) -> Option<Task> {
        if self.count_urgent.load(Acquire) == 0 {
            return None;
        }
        let mut urgent = self.urgent.lock();
        let task = urgent.pop_last().map(|(_, task)| task);
        self.count_urgent.store(urgent.len(), Release);
        task
    }

    /// The last task of a worker's line, or else the first of any other.
    fn first(&self, own: usize) -> Option<Task> {
        let no_one = self.workers.len();
        let newest = (own < no_one).then(|| self.lines[own].0.pop(true)).flatten();
        let others = std::iter::once(no_one).chain((1..=no_one).map(|by| (own + by) % no_one));
        newest.or_else(|| others.map(|line| &self.lines[line].0).find_map(|line| line.pop(false)))
    }

    /// Takes account of what a worker has done. Finds out how urgent tasks are, if that is due and nobody else does.
    fn look_ahead(&self, node: Node<'_>, limits: Limits, done: Done) {
        let mut ahead = self.ahead.lock();
        ahead.note(done);
        if ahead.may_be_due(limits)
            && let Some(submitted) = node.submitted()
            && ahead.is_due(submitted.range(), node.now().as_nanos(), limits)
            && !self.is_looking.swap(true, AcqRel)
        {
            ahead.count_anew();
            drop(ahead);
            let urgency = Urgency::of(submitted, self.workers[0], limits.window);
            ahead = self.ahead.lock();
            ahead.learn(urgency);
            self.is_looking.store(false, Release);
        }
        self.is_large.store(ahead.is_large(), Relaxed);
        self.promote(&mut ahead);
    }

    /// Finds the urgent tasks among the others, if there may be more of them than last time.
    fn promote(&self, ahead: &mut Ahead) {
        let threshold = ahead.threshold(self.workers.len());
        self.threshold.store(threshold, Relaxed);
        if !ahead.is_lower(threshold) {
            return;
        }
        let key = |task: &Task| {
            let sequence = task.id().sequence();
            ahead.path(sequence).filter(|path| *path >= threshold).map(|path| (path, Reverse(sequence)))
        };
        let mut urgent = self.urgent.lock();
        self.count_urgent.store(urgent.len() + 1, Release);
        for Padded(line) in &self.lines {
            urgent.extend(line.take(key));
        }
        self.count_urgent.store(urgent.len(), Release);
    }

    /// Takes note that the requesting worker has executed a task, in so many nanoseconds.
    pub(super) fn note_ended(&self, node: Node<'_>, took: u64) {
        self.lines[self.line(node)].0.note_ended(took);
    }

    /// Takes all tasks, in the order of submission. No other is added if the pool `closes`.
    pub(super) fn drain(&self, closes: bool) -> Vec<Task> {
        // Nobody moves tasks meanwhile.
        let _ahead = self.ahead.lock();
        self.is_closed.fetch_or(closes, SeqCst);
        let mut tasks: Vec<Task> = std::mem::take(&mut *self.urgent.lock()).into_values().collect();
        self.count_urgent.store(0, Release);
        for Padded(line) in &self.lines {
            tasks.extend(line.take(|_| Some(())).into_iter().map(|((), task)| task));
        }
        tasks.sort_by_key(Task::id);
        tasks
    }

    pub(super) fn is_closed(&self) -> bool {
        self.is_closed.load(SeqCst)
    }

    /// Number of tasks held.
    pub(super) fn len(&self) -> usize {
        let waiting = self.lines.iter().map(|line| line.0.len()).sum::<usize>();
        waiting + self.count_urgent.load(Relaxed)
    }
}

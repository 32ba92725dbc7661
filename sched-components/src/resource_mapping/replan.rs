//! `replan`: decides as late as possible. Whenever something changes, it plans all waiting tasks again, and sends only
//! those whose turn has come.
//!
//! [`Mct`](super::Mct) decides when a task becomes ready, and assumes that it runs after the whole queue of a worker.
//! Both cost performance on heterogeneous machines:
//!
//! - An urgent task overtakes others in the queue below, so it ends far earlier than `mct` assumes. On a machine with 9
//!   cores and 3 GPUs, a Cholesky panel takes 44 ms on a GPU and 76 ms on a core: as soon as 12 updates of 2.8 ms wait
//!   for each GPU, `mct` gives the panel, on which everything depends, to a core.
//! - A queued task cannot move to another worker when urgent tasks arrive, or when another queue runs dry.
//!
//! Here the waiting tasks are in one queue, by priority. A plan visits them in this order and gives each to the child
//! that completes it first, behind the tasks planned before it: HEFT's rule, for the ready tasks. Only urgent tasks
//! thus precede urgent ones. Of the plan, the tasks that would start within `lead` are sent, and so is the first task
//! for a worker that asks for work; the rest is discarded, and planned again with the next task or the next request.
//!
//! A plan does not see tasks that are yet to come, so it leaves slow workers idle while the accelerators can execute
//! all ready tasks alone. If many tasks are to come, this wastes the slow workers: in a Cholesky factorisation of 16 ×
//! 16 tiles the cores were busy for 15 % of the time, and the GPUs for 98 %. With `spare`, a worker that asks for work
//! and has none planned may take a task from another worker's plan: the one that it slows down least in proportion (the
//! one with the least acceleration, as in HeteroPrio), provided that it completes the task within `spare` times the
//! length of the whole plan. This condition replaces HeteroPrio's spoliation, since a started task cannot be taken back
//! here: near the end, when the plan is short, a slow worker takes nothing. It gains where accelerators are the
//! bottleneck, and loses where the critical path is.
//!
//! Sources: Topcuoglu, Hariri and Wu, *Performance-effective and low-complexity task scheduling for heterogeneous
//! computing* (2002), for the rule; Beaumont, Eyraud-Dubois and Kumar, *Approximation proofs of a fast and efficient
//! list scheduling algorithm for task-based runtime systems on multicores and GPUs* (2017), for acceleration and
//! spoliation.

use super::completion::{Basis, Candidate, Weights, least_loaded, with_candidates};
use super::turn::Turn;
use crate::LARGEST;
use crate::queue::{ALL, ByArchs, Counted, Place, archs_of_requester, load_here, nanos};
use sched_core::*;

/// Stores tasks by priority, plans all of them whenever something changes, and sends those whose turn has come.
///
/// It stores tasks and never refuses one. It should stand above a queue for each worker: a child that is itself a
/// worker is woken, and takes the first task that it can execute.
///
/// One thread plans at a time, and each task is delivered before the next is sent. Other threads that arrive meanwhile
/// do not wait: the planning thread checks again before it ends. A plan takes time proportional to `window` and to the
/// number of workers.
#[derive(Debug)]
pub struct Replan {
    weights: Weights,
    window: usize,
    /// Nanoseconds before its planned start at which a task is sent.
    lead: u64,
    spare: f64,
    queue: Counted<ByArchs>,
    /// The right to plan.
    turn: Turn,
    /// The tasks sent to each child.
    books: Mutex<Vec<Book>>,
    /// Storage for a plan, kept for reuse.
    scratch: Mutex<Scratch>,
}

const SPARE_HELP: &str = "a worker that asks for work, and has none planned, takes a task that it completes within this many times the \
     length of the plan; 0 means none";

pub(super) const SPARE: Param = Param::float("spare", 0.0, SPARE_HELP).at_least(0).at_most(LARGEST);

/// Accelerations whose ratio is smaller than this count as equal.
const TOLERANCE: f64 = 1.01;

/// The tasks sent to a child. Its own estimate does not suffice: a worker that fetches the data of one task while it
/// executes another counts only the last one that it took.
#[derive(Clone, Copy, Default, Debug)]
struct Book {
    /// Expected end of all of them, in nanoseconds.
    end: u64,
    /// Nanoseconds that the last task added.
    last: u64,
    /// Number of workers that asked for a task and have not got one.
    asking: u32,
}

/// Storage for one plan.
#[derive(Default, Debug)]
struct Scratch {
    /// Tasks that were visited, with the shortest length of each.
    seen: Vec<(Task, Place, u64)>,
    /// When each child becomes free, according to the plan so far.
    avail: Vec<u64>,
    /// Whether the next task may be sent to each child.
    open: Vec<bool>,
    /// Whether each child refused a task since the last request.
    full: Vec<bool>,
}

/// A task to send now: its index among those visited, and its child.
enum Turned {
    Planned(usize, Candidate),
    /// It has no estimate.
    Unpredicted(usize, Child),
}

impl Build for Replan {
    const INFO: Info = Info::new(
        "replan",
        Family::ResourceMapping,
        "Keeps tasks by priority, plans them anew whenever something changes, and sends those whose turn has come.",
    )
    .package(env!("CARGO_PKG_NAME"))
    .storage(Storage::Unbounded)
    .params(
        const {
            &[
                Weights::ALPHA,
                Weights::BETA,
                Weights::GAMMA,
                Weights::IDLE_POWER,
                Weights::TRANSFERS,
                Param::int("window", 256, "maximum number of tasks planned, the most urgent first")
                    .at_least(1)
                    .unit("tasks"),
                Param::float("lead", 0.0, "how long before its planned start a task is sent")
                    .at_least(0)
                    .at_most(LARGEST)
                    .unit("µs"),
                SPARE,
            ]
        },
    )
    .lookahead(30)
    .may_refuse(false)
    .needs_models();

    fn build(params: &Params) -> Result<Self, BuildError> {
        Ok(Replan {
            weights: Weights::read(params)?,
            window: usize::try_from(params.int("window")?).unwrap_or(usize::MAX),
            lead: params.micros("lead")?.map_or(0, nanos),
            spare: params.float("spare")?,
            queue: Counted::new(ByArchs::default()),
            turn: Turn::default(),
            books: Mutex::default(),
            scratch: Mutex::default(),
        })
    }
}

impl Replan {
    /// The next task to plan: the first. If the window is full of tasks that no open child can execute, the first that
    /// one can.
    fn pop_next(&self, node: Node<'_>, scratch: &Scratch) -> Option<(Task, Place)> {
        let able = |task: &Task| node.can_execute(task);
        let Some(window) = scratch.seen.get(..self.window) else {
            return self.queue.change(|queue| queue.pop(ALL, able));
        };
        if scratch.seen.len() >= self.window.saturating_mul(2) {
            return None;
        }
        let open = node.children().filter(|child| scratch.open[child.0 as usize]);
        let workers = open.flat_map(|child| node.each_child_worker_in_context(child));
        let archs: ArchSet = workers.filter_map(|worker| node.arch(worker)).collect();
        let is_for_others = window.iter().all(|(task, ..)| !task.archs().intersects(archs));
        if is_for_others { self.queue.change(|queue| queue.pop(archs, able)) } else { None }
    }

    fn give_back(&self, tasks: impl IntoIterator<Item = (Task, Place)>) {
        self.queue.change(|queue| tasks.into_iter().for_each(|(task, place)| queue.unpop(task, place)));
    }

    /// Asks each child when it becomes free. *Hop.*
    fn survey(&self, node: Node<'_>, now: u64, scratch: &mut Scratch) {
        scratch.avail.clear();
        scratch.open.clear();
        node.ends_below(|_, end| scratch.avail.push(end.as_nanos().max(now)));
        let mut books = self.books.lock();
        if books.len() < scratch.avail.len() {
            books.resize(scratch.avail.len(), Book::default());
        }
        scratch.full.resize(scratch.avail.len(), false);
        for ((avail, book), full) in scratch.avail.iter_mut().zip(&*books).zip(&scratch.full) {
            *avail = (*avail).max(book.end);
            scratch.open.push(!full && (book.asking > 0 || *avail <= now.saturating_add(self.lead)));
        }
    }

    /// Whether any open child can execute any task. A device without work is open for as long as all tasks are for cores.
    fn has_for_open(&self, node: Node<'_>, scratch: &Scratch) -> bool {
        let is_open = |child: &Child| scratch.open[child.0 as usize];
        scratch.open.contains(&true)
            && self.queue.look(|queue| {
                let for_open =
                    |task: &Task| node.children().filter(is_open).any(|child| node.child_can_execute(child, task));
                queue.has_kind(for_open)
            })
    }

    /// Plans tasks in order until one's turn has come.
    fn plan(&self, node: Node<'_>, scratch: &mut Scratch) -> Option<Turned> {
        let now = node.now();
        self.survey(node, now.as_nanos(), scratch);
        if !self.has_for_open(node, scratch) {
            return None;
        }
        let mut last_end = 0;
        while scratch.open.contains(&true) {
            let Some((task, place)) = self.pop_next(node, scratch) else { break };
            let found = with_candidates(|candidates| {
                if self.weights.estimate(node, &task, candidates) != Basis::Known {
                    return None;
                }
                for candidate in &mut *candidates {
                    candidate.avail = scratch.avail[candidate.child.0 as usize];
                }
                let shortest = candidates.iter().map(|candidate| candidate.length).min().unwrap_or(0);
                Some((self.weights.choose(now, candidates).0, shortest))
            });
            let Some((chosen, shortest)) = found else {
                let child = least_loaded(node, &task);
                scratch.seen.push((task, place, 0));
                match child.filter(|child| scratch.open[child.0 as usize]) {
                    Some(child) => return Some(Turned::Unpredicted(scratch.seen.len() - 1, child)),
                    None => continue,
                }
            };
            scratch.seen.push((task, place, shortest));
            let at = chosen.child.0 as usize;
            scratch.avail[at] = chosen.avail + share(&chosen);
            if scratch.open[at] {
                return Some(Turned::Planned(scratch.seen.len() - 1, chosen));
            }
            last_end = last_end.max(chosen.end);
        }
        self.find_spare(node, last_end.saturating_sub(now.as_nanos()), scratch)
    }

    /// A task for an open child without planned work: of the visited tasks, the one with the least acceleration that
    /// the child would complete soon enough; on ties the last in the plan. `length` is the length of the whole plan.
    fn find_spare(&self, node: Node<'_>, length: u64, scratch: &Scratch) -> Option<Turned> {
        let limit = length as f64 * self.spare;
        if limit <= 0.0 || !scratch.open.contains(&true) {
            return None;
        }
        let mut best: Option<(f64, usize, Candidate)> = None;
        for (index, (task, _, shortest)) in scratch.seen.iter().enumerate() {
            with_candidates(|candidates| {
                if self.weights.estimate(node, task, candidates) != Basis::Known {
                    return;
                }
                for candidate in candidates.iter_mut().filter(|candidate| scratch.open[candidate.child.0 as usize]) {
                    let time = candidate.transfer.saturating_add(candidate.length);
                    let slower = candidate.length as f64 / (*shortest).max(1) as f64;
                    if time as f64 <= limit && best.is_none_or(|(least, ..)| slower <= TOLERANCE * least) {
                        candidate.avail = scratch.avail[candidate.child.0 as usize];
                        candidate.end = candidate.avail.saturating_add(time);
                        best = Some((slower, index, *candidate));
                    }
                }
            });
        }
        best.map(|(_, index, candidate)| Turned::Planned(index, candidate))
    }

    /// Plans, and sends one task. Returns whether to continue, and whether the task was accepted.
    fn step(&self, node: Node<'_>, scratch: &mut Scratch) -> (bool, bool) {
        let turned = self.plan(node, scratch);
        let mut seen = std::mem::take(&mut scratch.seen);
        let picked = turned.map(|turned| {
            let (index, chosen) = match turned {
                Turned::Planned(index, candidate) => (index, Ok(candidate)),
                Turned::Unpredicted(index, child) => (index, Err(child)),
            };
            (seen.swap_remove(index), chosen)
        });
        if !seen.is_empty() {
            self.give_back(seen.drain(..).map(|(task, place, _)| (task, place)));
        }
        scratch.seen = seen;
        let Some(((mut task, place, _), chosen)) = picked else { return (false, false) };
        let (child, end, last) = match chosen {
            Ok(candidate) => {
                candidate.predict(&mut task);
                (candidate.child, candidate.avail + share(&candidate), share(&candidate))
            }
            Err(child) => {
                task.set_predicted(None);
                (child, 0, 0)
            }
        };
        let at = child.0 as usize;
        if node.child_worker(child).is_some() {
            // Put it back first: the worker that is woken looks for it here.
            self.give_back([(task, place)]);
            scratch.full[at] = true;
            node.child_can_pull(child);
            return (true, false);
        }
        match node.push_to(child, task) {
            Ok(()) => {
                let mut books = self.books.lock();
                let book = &mut books[at];
                *book = Book { end: book.end.max(end), last, asking: book.asking.saturating_sub(1) };
                (true, true)
            }
            Err(refused) => {
                scratch.full[at] = true;
                self.give_back([(refused.task, place)]);
                (true, false)
            }
        }
    }

    /// Sends tasks while one's turn has come. Returns whether any was accepted.
    fn send(&self, node: Node<'_>) -> bool {
        if self.queue.is_empty() {
            return false;
        }
        let mut scratch = std::mem::take(&mut *self.scratch.lock());
        scratch.full.clear();
        let mut moved = false;
        loop {
            let (go_on, taken) = self.step(node, &mut scratch);
            moved |= taken;
            if !go_on || self.queue.is_empty() {
                break;
            }
        }
        *self.scratch.lock() = scratch;
        moved
    }

    fn progress(&self, node: Node<'_>) -> bool {
        self.turn.take(|| self.send(node))
    }

    fn take(&self, node: Node<'_>) -> Option<Task> {
        let archs = archs_of_requester(node);
        let first = || self.queue.change(|queue| queue.pop(archs, |task| node.requester_can_execute(task)));
        self.turn.pull(|| first().map(|(task, _)| task), || self.send(node))
    }

    /// Records that a worker below `child` has room: at most the task that it took last precedes the next one.
    fn note_room(&self, node: Node<'_>, child: Child) {
        let workers = node.each_child_worker_in_context(child).count();
        let now = node.now().as_nanos();
        let mut books = self.books.lock();
        let at = child.0 as usize;
        if books.len() <= at {
            books.resize(at + 1, Book::default());
        }
        let book = &mut books[at];
        book.end = book.end.min(now.saturating_add(book.last));
        book.asking = (book.asking + 1).min(u32::try_from(workers).unwrap_or(u32::MAX));
    }
}

/// How much longer a task keeps a child busy: several workers share the work of a child.
fn share(chosen: &Candidate) -> u64 {
    (chosen.end - chosen.avail) / u64::from(chosen.workers.max(1))
}

impl Component for Replan {
    fn push_task(&self, node: Node<'_>, task: Task) -> Push {
        let priority = task.priority();
        self.queue.change(|queue| queue.push(task, priority, 0));
        self.progress(node);
        Ok(())
    }

    fn pull_task(&self, node: Node<'_>, to: Child) -> Option<Task> {
        self.note_room(node, to);
        let taken = self.take(node).or_else(|| if node.parents_can_push() { self.take(node) } else { None });
        if taken.is_some() {
            let book = &mut self.books.lock()[to.0 as usize];
            book.asking = book.asking.saturating_sub(1);
        }
        taken
    }

    fn can_push(&self, node: Node<'_>, to: Child) -> bool {
        self.note_room(node, to);
        let moved = self.progress(node);
        // The tasks here are not urgent. The parents may have others to send now.
        node.parents_can_push() || moved
    }

    fn estimated_load(&self, node: Node<'_>) -> f64 {
        node.load_below() + load_here(node, self.queue.len())
    }

    fn drain(&self) -> Vec<Task> {
        self.queue.change(ByArchs::drain)
    }

    fn describe(&self, report: &mut Report) {
        report.fact("tasks", self.queue.len());
    }
}

#[cfg(test)]
mod tests;

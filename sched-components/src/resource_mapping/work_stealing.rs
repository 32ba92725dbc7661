//! `work-stealing`: each child has its own queue, and steals from the others when that is empty.

mod lane;
mod victims;

use crate::facts::Facts;
use crate::queue::{Held, Looks, arch_to_find, load_here};
use lane::{Lane, Lanes};
use sched_core::*;
use std::cell::Cell;
use std::cmp::Reverse;
use std::sync::OnceLock;
use std::time::Duration;

/// One queue for each child. A task that has a [home](Task::home) goes to the queue of that worker. Of the others, one
/// that a worker makes ready goes to that worker's queue; tasks submitted by the application go to the queues in turn. In
/// all cases only queues of children that can execute the task count.
///
/// From its own queue a child gets the *last* task to arrive, among those of the highest priority, because its data is
/// likeliest to be in the child's caches. If its queue is empty it steals, from the nearest queue first, the *first*
/// task to arrive of the highest priority, which the owner would touch last. (The StarPU handbook says that a thief
/// takes the last one as well; StarPU itself takes the first, like every other work stealer.) Only tasks that the thief
/// can execute count.
///
/// Tasks that others push into a queue arrive in a separate list, which the owner takes over when the queue is empty,
/// or at once if there are priorities: tasks that a worker made ready itself come first, and submitters do not slow it
/// down.
///
/// Workers share nothing while each has work: every queue has its own lock and counters, on its own cache lines. (Where
/// children are queues, sending to them is counted for all together.) A thief uses a list of the queues that may hold
/// tasks, one bit each, and so passes over any number of empty ones; it locks only nonempty ones.
///
/// It stores every task until a child pulls. A child that is itself a queue and has room is sent a few tasks of its
/// own, or a stolen one: the fewer tasks precede a task, the later it is decided which worker executes it.
#[derive(Debug)]
pub struct WorkStealing {
    /// Created in the first call, when the children are known.
    lanes: OnceLock<Lanes>,
    facts: Facts,
    /// Looks of workers, so that none is woken for a task that came back unless one has missed it.
    looks: Looks,
}

/// Number of tasks sent to a child that has room: one to execute, and one that waits for it.
const SENT: usize = 2;

/// What became of the tasks for a child that has room.
enum Sent {
    /// The child took some.
    Taken,
    /// The child took none.
    Refused,
    /// There was none that the requesting worker can execute.
    Nothing,
}

impl Build for WorkStealing {
    const INFO: Info = Info::new(
        "work-stealing",
        Family::ResourceMapping,
        "Keeps a queue for each child, which steals from the others when its own is empty.",
    )
    .package(env!("CARGO_PKG_NAME"))
    .storage(Storage::Unbounded)
    .newest_comes_back()
    .waits_at_home();

    fn build(_params: &Params) -> Result<Self, BuildError> {
        Ok(WorkStealing { lanes: OnceLock::new(), facts: Facts::default(), looks: Looks::new() })
    }
}

impl WorkStealing {
    fn lanes(&self, node: Node<'_>) -> &Lanes {
        self.lanes.get_or_init(|| Lanes::new(node))
    }

    /// The queue for `task`: that of its home, or of the worker that makes it ready, or else the next in turn. The flag
    /// says whether it is that of the worker.
    fn place(&self, node: Node<'_>, lanes: &Lanes, task: &Task) -> Option<(Child, bool)> {
        let archs = self.facts.of(node).archs();
        let able = |child: &Child| match archs.is_empty() {
            false => task.open_archs().intersects(archs) || node.child_can_execute(*child, task),
            true => node.child_can_execute(*child, task),
        };
        let own = node.requester().and_then(|worker| lanes.home(worker)).filter(able);
        let home = task.home().and_then(|worker| lanes.home(worker));
        if let Some(home) = home.filter(|home| own != Some(*home) && able(home)) {
            return Some((home, false));
        }
        own.map(|own| (own, true)).or_else(|| Some((lanes.turn().find(able)?, false)))
    }

    /// [`take`](Self::take) of a task that will not be put back.
    #[inline(always)]
    fn take_for_good(&self, node: Node<'_>, lanes: &Lanes, to: Child) -> Option<Task> {
        let archs = self.facts.of(node).archs();
        // Where the host has to be asked about each task, one may have to be put back.
        if !archs.is_empty()
            && let Some(task) = lanes.lane(to)?.pop_for_good(|held| held.is_for(node, archs))
        {
            return Some(task);
        }
        self.take(node, lanes, to).map(|(task, _)| task)
    }

    /// A task for the requesting worker: from the queue of `to`, or stolen.
    fn take(&self, node: Node<'_>, lanes: &Lanes, to: Child) -> Option<(Task, lane::From)> {
        let archs = self.facts.of(node).archs();
        if !archs.is_empty() {
            return self.first(node, lanes, to, &|held| held.is_for(node, archs));
        }
        let arch = arch_to_find(node);
        let suits = |held: &Held| held.suits(node, arch);
        let (task, from) = self.first(node, lanes, to, &suits)?;
        if node.requester_can_execute(&task) {
            return Some((task, from));
        }
        // A worker that wants the first task may have found none while the host was asked about each.
        lanes.unpop(task, from);
        let found = self.first(node, lanes, to, &|held| node.requester_can_execute(&held.task));
        node.children_can_pull();
        found
    }

    /// The first task that `suits`, in the queue of `to` or in those that it steals from.
    fn first(
        &self,
        node: Node<'_>,
        lanes: &Lanes,
        to: Child,
        suits: &impl Fn(&Held) -> bool,
    ) -> Option<(Task, lane::From)> {
        if let Some((task, place)) = lanes.lane(to)?.pop(suits) {
            return Some((task, (to, place)));
        }
        lanes.steal(node, to, suits)
    }

    /// [`take`](Self::take), after the parents have been asked: one may push instead of giving. Counted where a task
    /// that is sent to a child by somebody else may be out at the moment.
    #[inline(never)]
    fn last_look(&self, node: Node<'_>, lanes: &Lanes, to: Child) -> Option<Task> {
        let take = || self.take_for_good(node, lanes, to);
        if !self.looks.are_counted() {
            return if node.parents().len() > 0 { take() } else { None };
        }
        let look = self.looks.begin();
        let task = take();
        self.looks.end(look);
        task
    }

    /// Sends tasks of its own to a child that has room, or a stolen one.
    fn send(&self, node: Node<'_>, to: Child) -> Sent {
        let lanes = self.lanes(node);
        let look = self.looks.begin_to_send();
        let (from, put_back) = (Cell::new(None), Cell::new(false));
        let unpop = |task: Task| {
            put_back.set(true);
            if let Some(from) = from.take() {
                lanes.unpop(task, from);
            }
        };
        let mut sent = 0;
        let pop = || {
            let (task, place) = match sent {
                0 => self.take(node, lanes, to)?,
                1..SENT => {
                    let (task, place) = lanes.lane(to)?.pop(|held| node.requester_can_execute(&held.task))?;
                    (task, (to, place))
                }
                _ => return None,
            };
            sent += 1;
            from.set(Some(place));
            Some(task)
        };
        let moved = node.pump(to, pop, unpop);
        if put_back.get() && !self.looks.is_alone(&look) {
            // Another worker may have found nothing meanwhile.
            node.children_can_pull();
        }
        self.looks.end(look);
        match moved {
            true => Sent::Taken,
            false if sent == 0 => Sent::Nothing,
            false => Sent::Refused,
        }
    }

    fn sum(&self, of: impl Fn(&Lane) -> u64) -> u64 {
        self.lanes.get().map_or(0, |lanes| lanes.iter().map(of).fold(0, u64::saturating_add))
    }
}

impl Component for WorkStealing {
    fn push_task(&self, node: Node<'_>, task: Task) -> Push {
        let lanes = self.lanes(node);
        let Some((child, by_owner)) = self.place(node, lanes, &task) else {
            return Err(Refused::new(task, Refusal::NoWorker));
        };
        lanes.push(child, task, by_owner);
        // The worker that pushes is awake. If it is alone in its child, only others can be asleep.
        let awake = by_owner && lanes.lane(child).is_some_and(|lane| lane.worker().is_some());
        if awake || !node.child_can_pull(child) {
            node.children_can_pull();
        }
        Ok(())
    }

    fn pull_task(&self, node: Node<'_>, to: Child) -> Option<Task> {
        let lanes = self.lanes(node);
        let task = self.take_for_good(node, lanes, to);
        task.or_else(|| node.pull_from_parents()).or_else(|| self.last_look(node, lanes, to))
    }

    fn can_push(&self, node: Node<'_>, to: Child) -> bool {
        match self.send(node, to) {
            Sent::Taken => true,
            // The tasks here were refused; more of them would be too.
            Sent::Refused => false,
            // What the parents push stays here until it is sent on.
            Sent::Nothing => {
                node.parents_can_push() && {
                    self.send(node, to);
                    true
                }
            }
        }
    }

    fn notify_change_workers(&self, _node: Node<'_>) {
        self.facts.forget();
    }

    fn estimated_end(&self, node: Node<'_>) -> Time {
        let queued = Duration::from_nanos(self.sum(Lane::expected));
        node.average_end_below() + queued / node.count_in_context().max(1)
    }

    fn estimated_load(&self, node: Node<'_>) -> f64 {
        node.load_below() + load_here(node, self.sum(|lane| lane.len() as u64) as usize)
    }

    /// By priority, and within a priority by submission, as a single thief would take them.
    fn drain(&self) -> Vec<Task> {
        let mut tasks: Vec<Task> = self.lanes.get().into_iter().flat_map(Lanes::iter).flat_map(Lane::drain).collect();
        tasks.sort_by_key(|task| (Reverse(task.priority()), task.id()));
        tasks
    }

    fn describe(&self, report: &mut Report) {
        let lens: Vec<usize> = self.lanes.get().into_iter().flat_map(Lanes::iter).map(|lane| lane.len()).collect();
        report.fact("tasks", lens.iter().sum::<usize>());
        report.fact("tasks by child", format_args!("{lens:?}"));
        let expected = self.sum(Lane::expected);
        report.fact("expected length", format_args!("{:?}", Duration::from_nanos(expected)));
    }
}

#[cfg(test)]
mod tests;

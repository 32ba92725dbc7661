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

/// One queue for each child, and a common one. A task that has a [home](Task::home) goes to the queue of that worker. Of
/// the others, one that a worker makes ready goes to that worker's queue, if the worker can execute it; tasks submitted
/// by the application go to the common queue. (StarPU deals them out to the queues in turn.)
///
/// From its own queue a child gets the *last* task to arrive, among those of the highest priority, because its data is
/// likeliest to be in the child's caches. If its queue is empty it gets the *first* task of the highest priority in the
/// common one, and comes to that first if its priority is higher than all in its own. If both are empty it steals, from
/// the nearest queue first, the *first* task to arrive of the highest priority, which the owner would touch last. (The
/// StarPU handbook says that a thief takes the last one as well; StarPU itself takes the first, like every other work
/// stealer.) Only tasks that the child can execute count.
///
/// Tasks that others push into a queue arrive in a separate list, which the owner takes over when the queue is empty,
/// or at once if there are priorities: tasks that a worker made ready itself come first, and submitters do not slow it
/// down. Where all workers are of one kind, a worker that goes to the common queue takes a share of it into its own, in
/// order of arrival, up to sixteen tasks of no priority.
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

/// Where a task waits.
enum Queue {
    /// In the queue of the worker that makes it ready.
    Own(Child),
    /// In the queue of its home.
    Home(Child),
    Common,
}

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

    /// Where `task` waits: in the queue of its home, or of the worker that makes it ready, or else in the common one.
    /// `None` if nobody can execute it.
    fn place(&self, node: Node<'_>, lanes: &Lanes, task: &Task) -> Option<Queue> {
        let archs = self.facts.of(node).archs();
        let is_open = task.open_archs().intersects(archs);
        let able = |child: &Child| is_open || node.child_can_execute(*child, task);
        let own = node.requester().and_then(|worker| lanes.home(worker)).filter(able);
        let home = task.home().and_then(|worker| lanes.home(worker));
        if let Some(home) = home.filter(|home| own != Some(*home) && able(home)) {
            return Some(Queue::Home(home));
        }
        let common = || (is_open || node.children().any(|child| able(&child))).then_some(Queue::Common);
        own.map(Queue::Own).or_else(common)
    }

    /// Whether priorities decide between the queue of a child and the common one.
    #[inline]
    fn is_ranked(lanes: &Lanes, own: &Lane) -> bool {
        own.is_ranked() || lanes.common().is_ranked()
    }

    /// [`take`](Self::take) of a task that will not be put back.
    #[inline(always)]
    fn take_for_good(&self, node: Node<'_>, lanes: &Lanes, to: Child) -> Option<Task> {
        let archs = self.facts.of(node).archs();
        // Where the host has to be asked about each task, one may have to be put back.
        if let Some(own) = lanes.lane(to).filter(|own| !archs.is_empty() && !Self::is_ranked(lanes, own)) {
            if let Some(task) = own.pop_last_for_good(|held| held.is_for(node, archs)) {
                return Some(task);
            }
            if let Some((task, moved)) = lanes.take_share(to, |held| held.is_open_to(archs)) {
                if moved {
                    node.children_can_pull();
                }
                return Some(task);
            }
        }
        self.take(node, lanes, to).map(|(task, _)| task)
    }

    /// A task for the requesting worker: from the queue of `to`, the common one, or stolen.
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

    /// The first task that `suits`, in the queue of `to`, in the common one, or in those that it steals from.
    fn first(
        &self,
        node: Node<'_>,
        lanes: &Lanes,
        to: Child,
        suits: &impl Fn(&Held) -> bool,
    ) -> Option<(Task, lane::From)> {
        Self::not_stolen(lanes, to, suits).or_else(|| lanes.steal(node, to, suits))
    }

    /// The first task that `suits`, in the queue of `to`, or in the common one.
    fn not_stolen(lanes: &Lanes, to: Child, suits: &impl Fn(&Held) -> bool) -> Option<(Task, lane::From)> {
        let (own, common) = (lanes.lane(to)?, lanes.common());
        let urgent = if Self::is_ranked(lanes, own) { common.pop_urgent(own, suits) } else { None };
        let of = |child: Option<Child>| move |(task, place)| (task, (child, place));
        let own = || own.pop_last(suits).map(of(Some(to)));
        urgent.map(of(None)).or_else(own).or_else(|| common.pop_first(suits).map(of(None)))
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
                1..SENT => Self::not_stolen(lanes, to, &|held| node.requester_can_execute(&held.task))?,
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

    /// The queues of the children, and the common one.
    fn all(&self) -> impl Iterator<Item = &Lane> {
        self.lanes.get().into_iter().flat_map(|lanes| lanes.iter().chain([lanes.common()]))
    }

    fn sum(&self, of: impl Fn(&Lane) -> u64) -> u64 {
        self.all().map(of).fold(0, u64::saturating_add)
    }
}

impl Component for WorkStealing {
    fn push_task(&self, node: Node<'_>, task: Task) -> Push {
        let lanes = self.lanes(node);
        let (child, by_owner) = match self.place(node, lanes, &task) {
            Some(Queue::Own(child)) => (child, true),
            Some(Queue::Home(child)) => (child, false),
            Some(Queue::Common) => {
                lanes.push_common(task);
                node.children_can_pull();
                return Ok(());
            }
            None => return Err(Refused::new(task, Refusal::NoWorker)),
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
        let mut tasks: Vec<Task> = self.all().flat_map(Lane::drain).collect();
        tasks.sort_by_key(|task| (Reverse(task.priority()), task.id()));
        tasks
    }

    fn describe(&self, report: &mut Report) {
        let lens: Vec<usize> = self.lanes.get().into_iter().flat_map(Lanes::iter).map(Lane::len).collect();
        report.fact("tasks", self.sum(|lane| lane.len() as u64));
        report.fact("tasks by child", format_args!("{lens:?}"));
        report.fact("common tasks", self.lanes.get().map_or(0, |lanes| lanes.common().len()));
        let expected = self.sum(Lane::expected);
        report.fact("expected length", format_args!("{:?}", Duration::from_nanos(expected)));
    }
}

#[cfg(test)]
mod tests;

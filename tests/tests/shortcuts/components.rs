//! Components that ask for all there is to know, and that note what the host may add up.

use sched_core::*;
use std::time::Duration;

/// Logs what it heard of its children before it handed a task to one of them, and what is not the same asked one by
/// one. A push that all children refuse leaves no trace: the host may spare the call.
pub(super) struct Probe;

impl Build for Probe {
    const INFO: Info = Info::new("probe", Family::ResourceMapping, "Asks for all there is to know.").forwards_push();

    fn build(_params: &Params) -> Result<Self, BuildError> {
        Ok(Probe)
    }
}

/// What [`Node::prospects`] says, asked worker by worker.
fn one_by_one(node: Node<'_>, child: Child, task: &Task) -> Prospect {
    let able: Vec<WorkerId> =
        node.each_child_worker_in_context(child).filter(|worker| node.worker_can_execute(*worker, task)).collect();
    let known = able.iter().filter_map(|worker| Some((node.expected_length(*worker, task).known()?, *worker)));
    let best = known.min_by_key(|(length, _)| *length);
    let transfers = able.iter().filter_map(|worker| node.memory_node(*worker));
    let transfers: Duration = transfers.map(|memory_node| node.expected_transfer(memory_node, task)).sum();
    Prospect {
        able: able.len() as u32,
        length: best.map(|(length, _)| length.as_nanos() as u64),
        transfer: transfers.as_nanos() as u64 / (able.len() as u64).max(1),
        energy: best.and_then(|(_, worker)| node.expected_energy(worker, task)),
    }
}

impl Component for Probe {
    fn push_task(&self, node: Node<'_>, mut task: Task) -> Push {
        let (mut ends, mut heard) = (Vec::new(), Vec::new());
        let (predicted, transfer) = (task.predicted(), task.predicted_transfer());
        node.ends_below(|child, end| ends.push((child, end)));
        node.prospects(&task, true, |child, prospect| {
            assert_eq!(prospect, one_by_one(node, child, &task), "{} child {}", node.path(), child.0);
            let (end, load) = (node.child_estimated_end(child), node.child_load(child));
            assert_eq!(ends[child.0 as usize], (child, end));
            let (path, child, end) = (node.path(), child.0, end.as_nanos());
            heard.push(format!("{path} child {child}: {end} {load:?} {prospect:?}"));
        });
        let mut able = Vec::new();
        node.prospects(&task, false, |child, prospect| {
            assert_eq!(Prospect { energy: None, ..one_by_one(node, child, &task) }, prospect);
            able.extend((prospect.able > 0).then_some((child, prospect)));
        });
        for (child, prospect) in able {
            task.set_predicted(prospect.length.map(Duration::from_nanos));
            match node.push_to(child, task) {
                Ok(()) => {
                    heard.iter().for_each(|line| node.log(LogLevel::Info, line));
                    return Ok(());
                }
                Err(refused) => task = refused.task,
            }
            task.set_predicted_transfer(transfer);
        }
        task.set_predicted(predicted);
        Err(Refused::new(task, Refusal::Full))
    }
}

/// Keeps tasks above many children until they are pulled, and notes how long they should take.
pub(super) struct Keep(Mutex<Vec<Task>>);

impl Keep {
    fn change<T>(&self, node: Node<'_>, change: impl FnOnce(&mut Vec<Task>) -> T) -> T {
        let mut tasks = self.0.lock();
        let answer = change(&mut tasks);
        node.note_queued(tasks.iter().filter_map(Task::predicted).sum());
        answer
    }
}

impl Build for Keep {
    const INFO: Info = Info::new("keep", Family::ResourceMapping, "Keeps tasks until they are pulled.")
        .storage(Storage::Unbounded)
        .end_is_noted();

    fn build(_params: &Params) -> Result<Self, BuildError> {
        Ok(Keep(Mutex::default()))
    }
}

impl Component for Keep {
    fn push_task(&self, node: Node<'_>, task: Task) -> Push {
        self.change(node, |tasks| tasks.push(task));
        node.children_can_pull();
        Ok(())
    }

    fn pull_task(&self, node: Node<'_>, _to: Child) -> Option<Task> {
        let able = |tasks: &mut Vec<Task>| {
            let first = tasks.iter().position(|task| node.requester_can_execute(task))?;
            Some(tasks.remove(first))
        };
        self.change(node, able).or_else(|| node.pull_from_parents())
    }

    fn estimated_end(&self, node: Node<'_>) -> Time {
        let queued = self.0.lock().iter().filter_map(Task::predicted).sum();
        node.end_below_with_queued(queued)
    }

    fn drain(&self) -> Vec<Task> {
        std::mem::take(&mut *self.0.lock())
    }
}

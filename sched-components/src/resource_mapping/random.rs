//! `random`: draws a child for each task, the faster the likelier, and keeps none.

use sched_core::*;

/// Each task goes to a child drawn among those that can execute it, with probability proportional to the relative speeds
/// of the workers that each has in the context.
///
/// The draw binds a task where the child takes it: where it is a queue, or a component above a worker's list such as
/// `best-implementation`. A child that is itself a worker is not pushed to: it is woken, and the task stays with the flow
/// control above, for that worker or whoever comes first.
///
/// A child that refuses does not block the task: the others that can execute it are tried, each once, in an order that is
/// drawn as well, and only when all refuse is the task handed back. So with short queues below, most of them full, a task
/// goes where there is room.
#[derive(Debug, Default)]
pub struct Random;

impl Build for Random {
    const INFO: Info =
        Info::new("random", Family::ResourceMapping, "Draws a child for each task; faster ones are likelier.")
            .package(env!("CARGO_PKG_NAME"))
            .forwards_push()
            .end_is_noted()
            .wakes_workers();

    fn build(_params: &Params) -> Result<Self, BuildError> {
        Ok(Random)
    }
}

/// A child drawn by its speed, among those that can execute `task`.
fn draw(node: Node<'_>, task: &Task) -> Option<Child> {
    let able = || node.children().filter(|child| node.child_can_execute(*child, task));
    let mut rest = node.random_unit() * able().map(|child| node.child_relative_speedup(child)).sum::<f64>();
    let mut last = None;
    for child in able() {
        rest -= node.child_relative_speedup(child);
        last = Some(child);
        if rest < 0.0 {
            break;
        }
    }
    // Rounding may leave a little: it belongs to the last.
    last
}

/// All children but `first`, in an order that is drawn: every so many-th, around the ring, from somewhere. It needs no
/// memory.
fn others(node: Node<'_>, first: Child) -> impl Iterator<Item = Child> + use<> {
    let count = node.children().len() as u64;
    let start = if count > 1 { node.random() % count } else { 0 };
    let coprime = |stride: &u64| gcd(*stride, count) == 1;
    let drawn = if count > 2 { 1 + node.random() % (count - 1) } else { 1 };
    let stride = (drawn..count).chain(1..=drawn).find(coprime).unwrap_or(1);
    (0..count).map(move |turn| Child(((start + turn * stride) % count) as u32)).filter(move |child| *child != first)
}

fn gcd(mut a: u64, mut b: u64) -> u64 {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}

/// Gives `task` to a child, or wakes it if it is a worker.
fn offer(node: Node<'_>, child: Child, task: Task) -> Push {
    if node.child_worker(child).is_none() {
        return node.push_to(child, task);
    }
    // One that is awake comes by itself.
    let why = if node.child_can_pull(child) { Refusal::PullInstead } else { Refusal::Full };
    Err(Refused::new(task, why))
}

impl Component for Random {
    fn push_task(&self, node: Node<'_>, task: Task) -> Push {
        let Some(first) = draw(node, &task) else { return Err(Refused::new(task, Refusal::NoWorker)) };
        let Err(mut refused) = offer(node, first, task) else { return Ok(()) };
        if refused.why == Refusal::PullInstead {
            return Err(refused);
        }
        for child in others(node, first) {
            if !node.child_can_execute(child, &refused.task) {
                continue;
            }
            match offer(node, child, refused.task) {
                Ok(()) => return Ok(()),
                Err(again) if again.why == Refusal::PullInstead => return Err(again),
                Err(again) => refused = again,
            }
        }
        Err(Refused::new(refused.task, Refusal::Full))
    }

    /// Has the flow control above push, so that each task is drawn for. A worker directly below, or one whose task nobody
    /// else took, gets it from there.
    fn pull_task(&self, node: Node<'_>, to: Child) -> Option<Task> {
        if node.child_worker(to).is_none() && node.parents_can_push() {
            // What was drawn for `to` is below by now.
            return None;
        }
        node.pull_from_parents()
    }
}

#[cfg(test)]
mod tests;

//! `random`: draws a random child for each task, weighted by speed, and stores none.

use sched_core::*;

/// Sends each task to a random child among those that can execute it, with probability proportional to the relative
/// speeds of the workers that each has in the context.
///
/// The draw is binding where the child accepts the task: where it is a queue, or a component above a worker's list such
/// as `best-implementation`. A child that is itself a worker is woken instead of pushed to, and the task stays in the
/// flow control above, for that worker or any that comes first.
///
/// A child that refuses does not block the task: the others that can execute it are tried once each, in random order,
/// and the task is handed back only when all refuse. With short, mostly full queues below, a task thus goes where there
/// is room.
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

/// A random child, weighted by speed, among those that can execute `task`.
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
    // Rounding may leave a remainder: it belongs to the last child.
    last
}

/// All children but `first`, in random order: every *n*-th around a ring, from a random start. Needs no memory.
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

/// Pushes `task` to a child, or wakes it if it is a worker.
fn offer(node: Node<'_>, child: Child, task: Task) -> Push {
    if node.child_worker(child).is_none() {
        return node.push_to(child, task);
    }
    // A worker that is awake pulls anyway.
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

    /// Asks the flow control above to push, so that a child is drawn for each task. A worker directly below, or one
    /// whose task no other took, gets it from there.
    fn pull_task(&self, node: Node<'_>, to: Child) -> Option<Task> {
        if node.child_worker(to).is_none() && node.parents_can_push() {
            // Tasks drawn for `to` are below by now.
            return None;
        }
        node.pull_from_parents()
    }
}

#[cfg(test)]
mod tests;

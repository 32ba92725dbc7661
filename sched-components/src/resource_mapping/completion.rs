//! When each child would complete a task, and which of them should get it: what `mct`, `heft` and `heteroprio` share.
//!
//! For child *i*, *now* being the time of the decision:
//!
//! ```text
//! avail_i   = max(now, estimated end of the child)
//! end_i     = avail_i + max(0, transfer_i − (avail_i − now)) + length_i
//! fitness_i = alpha·(end_i − min end) + beta·transfer_i + gamma·energy_i
//!           + gamma·idle-power·(end_i − max avail)/10⁶            where end_i > max avail
//! ```
//!
//! A transfer hides behind the tasks that the child has to do first, and is still paid for in full by `beta`. The last
//! term is the energy that the other children idle away when this one ends later than all of them are busy. Fitness is in
//! µs: `alpha` and `beta` are numbers, `gamma` is in µs/J (how much longer one joule saved may take), energy in J,
//! `idle-power` in W, and W·µs/10⁶ are J. The smallest fitness wins, the first child on ties.
//!
//! `transfer_i` is the expected transfer times `transfers`, a number. Expectations may be for a bus that all devices use at
//! once (StarPU's charge each byte twice for each GPU, so six times with three); a smaller number trusts overlap and an idle
//! bus more, and 0 leaves data out altogether.

use crate::queue::nanos;
use sched_core::*;
use std::cell::Cell;

/// What a child promises for one task. Times and lengths are in nanoseconds.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct Candidate {
    pub(super) child: Child,
    /// Workers below that can execute the task.
    pub(super) workers: u32,
    /// Expected length on the best of them.
    pub(super) length: u64,
    /// Expected length of the transfers to the memory node of these workers; where they have several, the average.
    pub(super) transfer: u64,
    /// Joules on the best worker; 0 when no model knows.
    pub(super) energy: f64,
    /// When the child can begin.
    pub(super) avail: u64,
    /// When it would be done.
    pub(super) end: u64,
    /// Whether the child has answered when it can begin.
    pub(super) asked: bool,
}

impl Candidate {
    fn complete(&mut self, now: u64) {
        let rest = self.transfer.saturating_sub(self.avail.saturating_sub(now));
        self.end = self.avail.saturating_add(rest).saturating_add(self.length);
    }

    /// Notes on `task` what is expected of it at this child, for the queues below.
    pub(super) fn predict(&self, task: &mut Task) {
        task.set_predicted(Some(std::time::Duration::from_nanos(self.length)));
        // Setting it touches a cache line that few tasks need.
        if self.transfer != 0 || task.predicted_transfer().is_some() {
            task.set_predicted_transfer(Some(std::time::Duration::from_nanos(self.transfer)));
        }
    }
}

/// What the models know of a task below a component.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Basis {
    /// Some child has an expected length. Children without one are not considered: a decision by length cannot compare
    /// them.
    Known,
    /// Some worker can execute it, and none has one: its model needs measurements, or there is none.
    Unknown,
    /// Nobody can execute it.
    NoWorker,
}

/// How much each part of the fitness counts.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct Weights {
    alpha: f64,
    beta: f64,
    /// µs/J
    gamma: f64,
    /// W
    idle_power: f64,
    /// What an expected transfer is multiplied with.
    transfers: f64,
}

impl Weights {
    pub(super) const ALPHA: Param = Param::float("alpha", 1.0, "weight of the completion time").at_least(0);
    pub(super) const BETA: Param = Param::float("beta", 1.0, "weight of the data transfers").at_least(0);
    pub(super) const GAMMA: Param =
        Param::float("gamma", 1000.0, "weight of the energy: how much longer a task may take to save a joule")
            .at_least(0)
            .unit("µs/J");
    pub(super) const IDLE_POWER: Param =
        Param::float("idle-power", 0.0, "power that a machine draws while it waits for the last task")
            .at_least(0)
            .unit("W");

    pub(super) const TRANSFERS: Param =
        Param::float("transfers", 1.0, "share of the expected transfers that is reckoned with").at_least(0);

    pub(super) fn read(params: &Params) -> Result<Weights, BuildError> {
        Ok(Weights {
            alpha: params.float("alpha")?,
            beta: params.float("beta")?,
            gamma: params.float("gamma")?,
            idle_power: params.float("idle-power")?,
            transfers: match params.get("transfers") {
                Some(Value::Float(share)) => *share,
                _ => 1.0,
            },
        })
    }

    /// Puts what each child promises for `task` into `candidates`, in order of the children. When each can begin is left
    /// open. Asks services only, so it may be called under a lock.
    pub(super) fn estimate(&self, node: Node<'_>, task: &Task, candidates: &mut Vec<Candidate>) -> Basis {
        candidates.clear();
        candidates.reserve(node.children().len());
        let mut someone = false;
        node.prospects(task, self.gamma != 0.0, |child, prospect| {
            someone |= prospect.able > 0;
            if let Some(length) = prospect.length {
                candidates.push(Candidate {
                    child,
                    workers: prospect.able,
                    length,
                    transfer: self.reckoned(prospect.transfer),
                    energy: prospect.energy.unwrap_or(0.0),
                    avail: 0,
                    end: 0,
                    asked: false,
                });
            }
        });
        match (candidates.is_empty(), someone) {
            (false, _) => Basis::Known,
            (true, true) => Basis::Unknown,
            (true, false) => Basis::NoWorker,
        }
    }

    pub(super) fn reckoned(&self, transfer: u64) -> u64 {
        if self.transfers == 1.0 { transfer } else { (transfer as f64 * self.transfers) as u64 }
    }

    /// The best of the candidates, for which `avail` is known, and the earliest end of all.
    ///
    /// # Panics
    /// When there are none.
    pub(super) fn choose(&self, now: Time, candidates: &mut [Candidate]) -> (Candidate, u64) {
        let now = now.as_nanos();
        let (mut min_end, mut max_avail) = (u64::MAX, 0);
        for candidate in &mut *candidates {
            candidate.avail = candidate.avail.max(now);
            candidate.complete(now);
            min_end = min_end.min(candidate.end);
            max_avail = max_avail.max(candidate.avail);
        }
        let mut best: Option<(f64, &Candidate)> = None;
        for candidate in &*candidates {
            let fitness = self.fitness(candidate, min_end, max_avail);
            if best.is_none_or(|(least, _)| fitness < least) {
                best = Some((fitness, candidate));
            }
        }
        let (_, best) = best.expect("whoever chooses has a candidate");
        (*best, min_end)
    }

    fn fitness(&self, candidate: &Candidate, min_end: u64, max_avail: u64) -> f64 {
        // Differences are taken before they become floats, so that long runs lose no precision.
        let mut fitness = self.alpha * micros(candidate.end - min_end) + self.gamma * candidate.energy;
        // Most of the time these are none.
        if candidate.transfer != 0 {
            fitness += self.beta * micros(candidate.transfer);
        }
        if self.idle_power != 0.0 {
            fitness += self.gamma * self.idle_power * micros(candidate.end.saturating_sub(max_avail)) / 1e6;
        }
        fitness
    }
}

/// Asks when each candidate can begin. They are in order of the children. *Hop.*
pub(super) fn ask_ends(node: Node<'_>, candidates: &mut [Candidate]) {
    let mut candidates = candidates.iter_mut().peekable();
    node.ends_below(|child, end| {
        if let Some(candidate) = candidates.next_if(|candidate| candidate.child == child) {
            candidate.avail = end.as_nanos();
            candidate.asked = true;
        }
    });
}

fn micros(nanos: u64) -> f64 {
    nanos as f64 / 1e3
}

/// What `task` adds to the expected length of the tasks that are kept above several workers, in nanoseconds: what a
/// component above said, or else the shortest of its lengths on the workers below. Nobody asks a root for that.
pub(super) fn expected_here(node: Node<'_>, task: &Task) -> u64 {
    if let Some(length) = task.predicted() {
        return nanos(length);
    }
    if node.parents().len() == 0 {
        return 0;
    }
    let able = node.each_worker_in_context().filter(|worker| node.worker_can_execute(*worker, task));
    able.filter_map(|worker| node.expected_length(worker, task).known()).min().map_or(0, nanos)
}

/// Of the children that can execute `task`, the one with the least load: for tasks without a model. *Hop.*
pub(super) fn least_loaded(node: Node<'_>, task: &Task) -> Option<Child> {
    let mut best: Option<(f64, Child)> = None;
    for child in node.children().filter(|child| node.child_can_execute(*child, task)) {
        let load = node.child_load(child);
        if best.is_none_or(|(least, _)| load < least) {
            best = Some((load, child));
        }
    }
    best.map(|(_, child)| child)
}

/// Hands `task` to `child`. One that is a worker is not pushed to: it is woken, and comes for the task. *Hop.*
pub(super) fn deliver(node: Node<'_>, child: Child, task: Task) -> Push {
    if node.child_worker(child).is_none() {
        return node.push_to(child, task);
    }
    let why = if node.child_can_pull(child) { Refusal::PullInstead } else { Refusal::Full };
    Err(Refused::new(task, why))
}

/// Runs `body` with an empty list of candidates that does not allocate in the long run. It may be called again inside.
pub(super) fn with_candidates<T>(body: impl FnOnce(&mut Vec<Candidate>) -> T) -> T {
    thread_local! {
        static SPARE: Cell<Vec<Candidate>> = const { Cell::new(Vec::new()) };
    }
    let mut candidates = SPARE.take();
    candidates.clear();
    let answer = body(&mut candidates);
    SPARE.set(candidates);
    answer
}

#[cfg(test)]
mod tests;

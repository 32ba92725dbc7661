//! Completion times: when each child would complete a task, and which of them should get it. `mct`, `heft` and
//! `heteroprio` share this.
//!
//! For child *i*, with *now* the time of the decision:
//!
//! ```text
//! avail_i   = max(now, estimated end of the child)
//! end_i     = avail_i + max(0, transfer_i − (avail_i − now)) + length_i
//! fitness_i = alpha·(end_i − min end) + beta·transfer_i + gamma·energy_i
//!           + gamma·idle-power·(end_i − max avail)/10⁶            where end_i > max avail
//! ```
//!
//! A transfer is hidden behind the tasks ahead of it, but `beta` still charges it in full. The last term is the energy
//! that the other children consume idling if this one ends after all of them are free. Fitness is in µs: `alpha` and
//! `beta` are dimensionless, `gamma` is in µs/J (how much longer one saved joule may take), energy in J, `idle-power`
//! in W, and W·µs/10⁶ are J. The smallest fitness wins; ties go to the first child.
//!
//! `transfer_i` is the expected transfer time multiplied by the number `transfers`. Expectations may assume a bus that
//! all devices use at once (StarPU's charge each byte twice per GPU, so six times with three GPUs); a smaller number
//! assumes more overlap and an idle bus, and 0 ignores data altogether.

use crate::LARGEST;
use crate::queue::nanos;
use sched_core::*;
use std::cell::Cell;

/// A child's expected cost for one task. Times and lengths are in nanoseconds.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct Candidate {
    pub(super) child: Child,
    /// Number of workers below that can execute the task.
    pub(super) workers: u32,
    /// Expected length on the best of them.
    pub(super) length: u64,
    /// Expected length of the transfers to these workers' memory node; the average over several nodes.
    pub(super) transfer: u64,
    /// Energy in joules on the best worker; 0 if no model knows.
    pub(super) energy: f64,
    /// When the child can start.
    pub(super) avail: u64,
    /// When it would finish.
    pub(super) end: u64,
    /// Whether the child was asked when it can start.
    pub(super) asked: bool,
}

impl Candidate {
    fn complete(&mut self, now: u64) {
        let rest = self.transfer.saturating_sub(self.avail.saturating_sub(now));
        self.end = self.avail.saturating_add(rest).saturating_add(self.length);
    }

    /// Sets the expected lengths of `task` at this child, for the queues below.
    pub(super) fn predict(&self, task: &mut Task) {
        task.set_predicted(Some(std::time::Duration::from_nanos(self.length)));
        // Setting it writes to a cache line that few tasks need.
        if self.transfer != 0 || task.predicted_transfer().is_some() {
            task.set_predicted_transfer(Some(std::time::Duration::from_nanos(self.transfer)));
        }
    }
}

/// What the models know about a task below a component.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Basis {
    /// At least one child has an expected length. Children without one are not considered: a decision by length cannot
    /// compare them.
    Known,
    /// Workers can execute it, but there is no length: its model needs measurements, or there is no model.
    Unknown,
    /// No worker can execute it.
    NoWorker,
}

/// Weights of the parts of the fitness.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct Weights {
    alpha: f64,
    beta: f64,
    /// µs/J
    gamma: f64,
    /// W
    idle_power: f64,
    /// Factor of the expected transfer time.
    transfers: f64,
}

impl Weights {
    pub(super) const ALPHA: Param =
        Param::float("alpha", 1.0, "weight of the completion time").at_least(0).at_most(LARGEST);
    pub(super) const BETA: Param =
        Param::float("beta", 1.0, "weight of the data transfers").at_least(0).at_most(LARGEST);
    pub(super) const GAMMA: Param =
        Param::float("gamma", 1000.0, "weight of the energy: how much longer a task may take to save a joule")
            .at_least(0)
            .at_most(LARGEST)
            .unit("µs/J");
    pub(super) const IDLE_POWER: Param =
        Param::float("idle-power", 0.0, "power that a machine draws while it waits for the last task")
            .at_least(0)
            .at_most(LARGEST)
            .unit("W");

    pub(super) const TRANSFERS: Param =
        Param::float("transfers", 1.0, "share of the expected transfer time that counts").at_least(0).at_most(LARGEST);

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

    /// Fills `candidates` with each child's expected cost for `task`, in order of the children. When each can start
    /// remains open. Calls only services, so it may be called under a lock.
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
                    transfer: self.charged(prospect.transfer),
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

    /// The transfer time that counts: the expected one times `transfers`.
    #[inline]
    pub(super) fn charged(&self, transfer: u64) -> u64 {
        if self.transfers == 1.0 { transfer } else { self.share_of(transfer) }
    }

    /// Out of line, since the conversions take longer than all else that a child costs.
    #[inline(never)]
    fn share_of(&self, transfer: u64) -> u64 {
        (transfer as f64 * self.transfers) as u64
    }

    /// The best candidate and the earliest end of all; `avail` of all candidates must be known.
    ///
    /// # Panics
    /// If there are no candidates.
    pub(super) fn choose(&self, now: Time, candidates: &mut [Candidate]) -> (Candidate, u64) {
        let now = now.as_nanos();
        let (mut min_end, mut max_avail, mut first) = (u64::MAX, 0, 0);
        let mut by_end_alone = self.alpha > 0.0 && self.idle_power == 0.0;
        for (at, candidate) in candidates.iter_mut().enumerate() {
            candidate.avail = candidate.avail.max(now);
            candidate.complete(now);
            if candidate.end < min_end {
                (min_end, first) = (candidate.end, at);
            }
            max_avail = max_avail.max(candidate.avail);
            by_end_alone &= candidate.transfer == 0 && candidate.energy == 0.0;
        }
        // The fitness is zero for the first to end, and for nobody who ends later.
        if let Some(best) = candidates.get(first).filter(|_| by_end_alone) {
            return (*best, min_end);
        }
        let mut best: Option<(f64, &Candidate)> = None;
        for candidate in &*candidates {
            let Candidate { end, transfer, energy, .. } = *candidate;
            let fitness = self.fitness(end, transfer, energy, min_end, max_avail);
            if best.is_none_or(|(least, _)| fitness < least) {
                best = Some((fitness, candidate));
            }
        }
        let (_, best) = best.expect("whoever chooses has a candidate");
        (*best, min_end)
    }

    /// Fitness of a child that would end at `end`.
    #[inline]
    fn fitness(&self, end: u64, transfer: u64, energy: f64, min_end: u64, max_avail: u64) -> f64 {
        // Subtracting before the conversion to floats keeps the precision of long runs.
        let mut fitness = self.alpha * micros(end - min_end) + self.gamma * energy;
        // Usually there are no transfers.
        if transfer != 0 {
            fitness += self.beta * micros(transfer);
        }
        if self.idle_power != 0.0 {
            fitness += self.gamma * self.idle_power * micros(end.saturating_sub(max_avail)) / 1e6;
        }
        fitness
    }
}

/// Neighbouring children with equal costs for a task, and the one of them that would end first.
#[derive(Clone, Copy, Debug)]
struct Run {
    /// Number of children.
    count: u32,
    length: u64,
    transfer: u64,
    energy: f64,
    workers: u32,
    /// The first of the children that end first, and its `avail`.
    first: (u32, u64),
    /// Time at which the data is there and that child is free.
    start: u64,
}

/// Storage of a decision by runs.
#[derive(Default, Debug)]
pub(super) struct Runs {
    runs: Vec<Run>,
    /// Whether any worker can execute the task.
    someone: bool,
    max_avail: u64,
}

impl Weights {
    /// Whether, of children with equal costs, the first to end is the best. Otherwise ends do not count.
    pub(super) fn prefer_ends(&self) -> bool {
        self.alpha > 0.0
    }

    /// [`estimate`](Self::estimate) by runs of children with equal costs.
    pub(super) fn estimate_runs(&self, node: Node<'_>, task: &Task, runs: &mut Runs) -> Basis {
        let mut known = false;
        node.prospect_runs(task, self.gamma != 0.0, |count, prospect| {
            runs.someone |= prospect.able > 0;
            known |= prospect.length.is_some();
            runs.runs.push(Run {
                count,
                length: prospect.length.unwrap_or(u64::MAX),
                transfer: self.charged(prospect.transfer),
                energy: prospect.energy.unwrap_or(0.0),
                workers: prospect.able,
                first: (0, 0),
                start: u64::MAX,
            });
        });
        match (known, runs.someone) {
            (true, _) => Basis::Known,
            (false, true) => Basis::Unknown,
            (false, false) => Basis::NoWorker,
        }
    }

    /// [`choose`](Self::choose) among runs whose ends are known, where [ends are preferred](Self::prefer_ends).
    pub(super) fn choose_run(&self, runs: &Runs) -> Option<Candidate> {
        let known = || runs.runs.iter().filter(|run| run.length != u64::MAX);
        let end_of = |run: &Run| run.start.saturating_add(run.length);
        let min_end = known().map(end_of).min()?;
        let mut best: Option<(f64, &Run)> = None;
        for run in known() {
            let fitness = self.fitness(end_of(run), run.transfer, run.energy, min_end, runs.max_avail);
            if best.is_none_or(|(least, _)| fitness < least) {
                best = Some((fitness, run));
            }
        }
        best.map(|(_, run)| {
            let Run { length, transfer, energy, workers, first: (child, avail), .. } = *run;
            let end = end_of(run);
            Candidate { child: Child(child), workers, length, transfer, energy, avail, end, asked: true }
        })
    }
}

impl Runs {
    /// Asks when children can start, and finds the one of each run that ends first. *Hop.*
    pub(super) fn ask(&mut self, node: Node<'_>, now: Time, weights: &Weights) {
        node.some_ends_below(self.taker(now.as_nanos(), weights.idle_power != 0.0));
    }

    /// Takes children and their ends, in order, and returns how many to pass over: those of a run behind one that can
    /// start as soon as the data is there, unless `all_count`, and those that cannot execute the task.
    fn taker(&mut self, now: u64, all_count: bool) -> impl FnMut(Child, Time) -> u32 {
        let Runs { runs, max_avail, .. } = self;
        let mut runs = runs.iter_mut();
        let (mut run, mut left, mut arrival) = (None, 0, 0);
        move |child, end| {
            if left == 0 {
                run = runs.next();
                (left, arrival) =
                    run.as_ref().map_or((u32::MAX, 0), |run: &&mut Run| (run.count, now.saturating_add(run.transfer)));
            }
            left -= 1;
            let Some(run) = run.as_mut().filter(|run| run.length != u64::MAX) else {
                return std::mem::take(&mut left);
            };
            let avail = end.as_nanos().max(now);
            *max_avail = (*max_avail).max(avail);
            let start = avail.max(arrival);
            if start < run.start {
                run.start = start;
                run.first = (child.0, avail);
            }
            if start == arrival && !all_count { std::mem::take(&mut left) } else { 0 }
        }
    }
}

/// Asks when each candidate can start. Candidates are in order of the children. *Hop.*
pub(super) fn ask_ends(node: Node<'_>, candidates: &mut [Candidate]) {
    if candidates.len() == node.children().len() {
        let mut candidates = candidates.iter_mut();
        return node.ends_below(|_, end| {
            if let Some(candidate) = candidates.next() {
                candidate.avail = end.as_nanos();
                candidate.asked = true;
            }
        });
    }
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

/// Nanoseconds that `task` adds to the expected length of a queue above several workers: the length predicted by a
/// component above, or else its shortest length on the workers below. At the root nobody reads it.
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

/// The child with the least load among those that can execute `task`, that of the requesting worker if there are
/// several: for tasks without a model. *Hop.*
pub(super) fn least_loaded(node: Node<'_>, task: &Task) -> Option<Child> {
    let able = |child: &Child| node.child_can_execute(*child, task);
    let own = node.requester().and_then(|worker| node.children().find(|child| node.child_has_worker(*child, worker)));
    let own = own.filter(able);
    let mut best: Option<(f64, Child)> = None;
    for child in own.into_iter().chain(node.children().filter(|child| Some(*child) != own && able(child))) {
        let load = node.child_load(child);
        if best.is_none_or(|(least, _)| load < least) {
            best = Some((load, child));
        }
        if load <= 0.0 {
            break;
        }
    }
    best.map(|(_, child)| child)
}

/// Pushes `task` to `child`. A child that is a worker is woken instead, and pulls the task. *Hop.*
pub(super) fn deliver(node: Node<'_>, child: Child, task: Task) -> Push {
    if node.child_worker(child).is_none() {
        return node.push_to(child, task);
    }
    let why = if node.child_can_pull(child) { Refusal::PullInstead } else { Refusal::Full };
    Err(Refused::new(task, why))
}

/// Runs `body` with an empty list of candidates whose storage is reused. Reentrant.
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

/// [`with_candidates`] for runs.
pub(super) fn with_runs<T>(body: impl FnOnce(&mut Runs) -> T) -> T {
    thread_local! {
        static SPARE: Cell<Runs> = const { Cell::new(Runs { runs: Vec::new(), someone: false, max_avail: 0 }) };
    }
    let mut runs = SPARE.take();
    runs.runs.clear();
    (runs.someone, runs.max_avail) = (false, 0);
    let answer = body(&mut runs);
    SPARE.set(runs);
    answer
}

#[cfg(test)]
mod tests;

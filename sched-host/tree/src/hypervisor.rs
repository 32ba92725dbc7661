//! The hypervisor: moves workers between scheduling contexts, so that each attains its goal.
//!
//! One piece of code serves runtime and simulation. A back end implements [`Governed`] and calls [`Hypervisor::step`]
//! once in each [period](Goals::period) of its clock, or more seldom while nothing happens; a step looks at all
//! governed contexts, and moves workers by the ways that the application has, [`Governed::change`]. Without a
//! hypervisor nothing of this exists.
//!
//! # How a step decides
//!
//! All is measured in shares of the *pool*: the workers of all governed contexts when the hypervisor begins, each
//! weighted by its relative speed. A worker of several contexts that have tasks counts for each of them in equal parts,
//! as it serves them in turn.
//!
//! 1. A context that has tasks and lacks a worker which one of them needs, or has fewer than its minimum, gets one. The
//!    worker stays where it is, too.
//! 2. Each context that has tasks gets a *target*. A goal demands a share: the stated one, or what the expected lengths
//!    of the remaining tasks, or the rate so far, say that a deadline or throughput takes. Contexts without a goal
//!    divide what is left; without any of those, all targets grow in proportion. Demands of more than the pool shrink
//!    in proportion.
//! 3. Workers move, one after the other, as long as each move reduces the sum of squared distances from the targets by
//!    enough. A context without tasks keeps its workers and lends them: they serve the other context as well. One that
//!    has tasks, and more workers than its maximum, gives workers to others, whatever that gains.
//!
//! # What holds
//!
//! - No context with tasks loses a worker without which a task of it has none that can execute it, nor its last one.
//! - A move is an addition followed by a removal. If either fails, the worker serves both contexts or the old one.
//! - Moves are bounded. A move must gain more than a quarter of what it shifts, so that moving back never does; a
//!   worker that was moved stays for [some periods](Goals::patience); and a context that could not be changed is left
//!   alone for a time that doubles.
//! - A step depends on its arguments only: equal simulations make equal moves.

mod goal;
mod layout;
mod rate;
mod report;
#[cfg(test)]
mod tests;
mod text;

pub use goal::{Goal, Goals, GovernedContext};
pub use report::{Attained, Governance, Move, Refusal};

use crate::context::ContextError;
use layout::{Layout, Shift};
use rate::Rate;
use report::Account;
use sched_core::{WorkerId, WorkerSet};
use std::time::Duration;

/// Contexts as their back end shows them. Contexts are numbered as in [`Goals::contexts`].
pub trait Governed {
    /// Workers of a context now.
    fn workers(&self, context: usize) -> WorkerSet;

    /// What became of the tasks of a context so far.
    fn progress(&mut self, context: usize) -> Progress;

    /// For each kind of unfinished tasks of a context, the workers of the machine that can execute them.
    fn able(&mut self, context: usize) -> Vec<WorkerSet>;

    /// Expected seconds that the workers of `pool` together would take for all unfinished tasks of a context, each task
    /// divided among those that can execute it; `None` if no length is known.
    fn remaining(&mut self, context: usize, pool: &WorkerSet) -> Option<f64>;

    /// Adds and removes workers of a context.
    ///
    /// # Errors
    /// See [`ContextError`]; the context is then unchanged.
    fn change(&mut self, context: usize, added: &WorkerSet, removed: &WorkerSet) -> Result<(), ContextError>;

    /// Reports that a worker was moved to a context, from another one or in addition, for traces.
    fn moved(&mut self, worker: WorkerId, from: Option<usize>, to: usize) {
        let _ = (worker, from, to);
    }
}

/// Progress of a context.
#[derive(Clone, Copy, Default, PartialEq, Debug)]
pub struct Progress {
    /// Number of submitted tasks that have not ended.
    pub unfinished: u64,
    /// Number of tasks that have ended.
    pub ended: u64,
    /// Floating-point operations of those; 0 where they are not known.
    pub flops: f64,
    /// Time of the end of the last one, where the back end knows it.
    pub last_end: Option<Duration>,
}

/// See the [module](self).
#[derive(Debug)]
pub struct Hypervisor {
    goals: Goals,
    /// Relative speed of each worker of the machine.
    speeds: Vec<f64>,
    layout: Layout,
    contexts: Vec<Watched>,
    /// For each worker, the number of the step from which on it may be moved.
    movable: Vec<u64>,
    steps: u64,
    last: Option<Duration>,
    governance: Governance,
}

/// What a hypervisor knows of a context.
#[derive(Default, Debug)]
struct Watched {
    now: Progress,
    /// Number of looks since a task of it ended.
    quiet: u32,
    rate: Rate,
    account: Account,
    /// Number of refused changes.
    refusals: u32,
    /// Number of the step from which on it may be changed.
    changeable: u64,
}

impl Watched {
    fn is_active(&self) -> bool {
        self.now.unfinished > 0
    }
}

/// Minimum gain of a move, in units of the square of what it shifts.
const MARGIN: f64 = 0.5;

/// Part by which less time than there is must suffice for a deadline.
const RESERVE: f64 = 0.1;

impl Hypervisor {
    /// A hypervisor of contexts on a machine whose workers have these relative speeds. The goals are
    /// [checked](Goals::check).
    #[must_use]
    pub fn new(goals: Goals, speeds: Vec<f64>) -> Hypervisor {
        let contexts = goals.contexts.iter().map(|_| Watched::default()).collect();
        let movable = vec![0; speeds.len()];
        let (layout, governance) = (Layout::default(), Governance::default());
        Hypervisor { goals, speeds, layout, contexts, movable, steps: 0, last: None, governance }
    }

    /// Time between two steps.
    #[must_use]
    pub fn period(&self) -> Duration {
        self.goals.period
    }

    /// Looks at the contexts at the time `now` of the back end's clock, and moves workers. Returns whether any was
    /// moved.
    pub fn step(&mut self, now: Duration, machine: &mut dyn Governed) -> bool {
        self.steps += self.missed_until(now);
        self.look(now, machine);
        let mut shifts = self.rescues(machine, false);
        if let Some(targets) = self.targets(now, machine) {
            self.approach(&targets, machine, &mut shifts);
        }
        self.steps += 1;
        self.apply(now, &shifts, machine)
    }

    /// Adds workers to contexts that lack one which their tasks need, at once: a back end calls it where nothing else
    /// would happen any more. Returns whether any was added.
    pub fn rescue(&mut self, now: Duration, machine: &mut dyn Governed) -> bool {
        self.look(now, machine);
        let shifts = self.rescues(machine, true);
        self.apply(now, &shifts, machine)
    }

    /// What the contexts attained until `now`, the end.
    pub fn finish(mut self, now: Duration, machine: &mut dyn Governed) -> Governance {
        self.look(now, machine);
        for (context, watched) in self.goals.contexts.iter().zip(&self.contexts) {
            let largest = self.layout.largest_weight(1);
            self.governance.attained.push(watched.account.attained(context, &watched.now, largest));
        }
        self.governance
    }

    /// Number of periods without a look until `now`: a back end may put looks off.
    fn missed_until(&self, now: Duration) -> u64 {
        let passed = self.last.map_or(Duration::ZERO, |last| now.saturating_sub(last));
        let periods = passed.as_nanos() / self.goals.period.as_nanos().max(1);
        u64::try_from(periods).unwrap_or(u64::MAX).saturating_sub(1)
    }

    /// Accounts for the time since the last look.
    fn look(&mut self, now: Duration, machine: &mut dyn Governed) {
        let passed = self.last.map_or(Duration::ZERO, |last| now.saturating_sub(last)).as_secs_f64();
        self.last = Some(now);
        let progress: Vec<Progress> = (0..self.contexts.len()).map(|number| machine.progress(number)).collect();
        // Tasks may have come and ended since then.
        let had_tasks = |(watched, now): (&Watched, &Progress)| watched.is_active() || now.ended != watched.now.ended;
        let active: Vec<bool> = self.contexts.iter().zip(&progress).map(had_tasks).collect();
        let shares = self.layout.shares_among(&active);
        for ((number, watched), mut progress) in self.contexts.iter_mut().enumerate().zip(progress) {
            let (before, context) = (watched.now, &self.goals.contexts[number]);
            if let Some(flops) = context.task_flops {
                progress.flops = progress.ended as f64 * flops;
            }
            watched.quiet = if progress.ended == before.ended { watched.quiet.saturating_add(1) } else { 0 };
            let share = shares.get(number).copied().unwrap_or(0.0);
            if active[number] {
                watched.rate.note(&before, &progress, passed, share);
                watched.account.note(&progress, now, passed, share);
            }
            watched.now = progress;
        }
        let sets: Vec<WorkerSet> = (0..self.contexts.len()).map(|number| machine.workers(number)).collect();
        let active = self.contexts.iter().map(Watched::is_active).collect();
        self.layout.renew(sets, active, &self.speeds);
    }

    /// Workers for contexts that lack one, added to the layout; where nothing else would happen any more (`is_last`),
    /// also for those that have refused a change a short time ago.
    fn rescues(&mut self, machine: &mut dyn Governed, is_last: bool) -> Vec<Shift> {
        let mut shifts = Vec::new();
        for number in 0..self.contexts.len() {
            let watched = &self.contexts[number];
            if !watched.is_active() || !is_last && watched.changeable > self.steps {
                continue;
            }
            let is_empty = self.layout.workers(number).is_empty();
            // The needs of tasks are looked for more and more seldom while a long one runs.
            if is_empty || is_last || watched.quiet.is_power_of_two() {
                for able in machine.able(number) {
                    shifts.extend(self.layout.rescue(number, Some(&able)));
                }
            }
            while self.layout.workers(number).len() < self.goals.contexts[number].min {
                let Some(shift) = self.layout.rescue(number, None) else { break };
                shifts.push(shift);
            }
        }
        shifts
    }

    /// The share that each context is to have; `None` if none has tasks.
    fn targets(&self, now: Duration, machine: &mut dyn Governed) -> Option<Vec<f64>> {
        let active: Vec<usize> = (0..self.contexts.len()).filter(|number| self.contexts[*number].is_active()).collect();
        if active.is_empty() || self.layout.pool().is_empty() {
            return None;
        }
        let demands: Vec<Option<f64>> = active.iter().map(|number| self.demand(*number, now, machine)).collect();
        // A few fast workers can be most of the pool.
        let most = |number: &usize| self.layout.largest_weight(self.goals.contexts[*number].max);
        let caps: Vec<f64> = active.iter().map(most).collect();
        let mut targets = vec![0.0; self.contexts.len()];
        for (number, target) in active.iter().zip(rate::divide(&demands, &caps)) {
            targets[*number] = target;
        }
        Some(targets)
    }

    /// The share of the pool that the goal of a context demands; `None` without a goal, or where nothing is known yet.
    fn demand(&self, number: usize, now: Duration, machine: &mut dyn Governed) -> Option<f64> {
        let watched = &self.contexts[number];
        let mut expected = || machine.remaining(number, self.layout.pool()).filter(|seconds| *seconds > 0.0);
        let tasks = watched.now.unfinished as f64;
        let demand = match self.goals.contexts[number].goal? {
            Goal::Share(share) => share,
            Goal::Deadline(deadline) => {
                let left = deadline.saturating_sub(now).as_secs_f64() * (1.0 - RESERVE);
                let needed = expected().or_else(|| Some(tasks / watched.rate.tasks()?))?;
                if left > 0.0 { needed / left } else { 1.0 }
            }
            Goal::TasksPerSecond(goal) => {
                goal / watched.rate.tasks().or_else(|| expected().map(|seconds| tasks / seconds))?
            }
            Goal::Gflops(goal) => goal * 1e9 / watched.rate.flops()?,
        };
        Some(demand.clamp(0.0, 1.0))
    }

    /// Moves workers in the layout towards the targets.
    fn approach(&mut self, targets: &[f64], machine: &mut dyn Governed, shifts: &mut Vec<Shift>) {
        let mut needs: Vec<Option<Vec<WorkerSet>>> = vec![None; self.contexts.len()];
        let mut fixed: WorkerSet = shifts.iter().map(|shift| shift.worker).collect();
        for worker in self.layout.pool().iter() {
            if self.movable[worker.index()] > self.steps {
                fixed.insert(worker);
            }
        }
        let open = |number: usize| self.contexts[number].changeable <= self.steps;
        loop {
            let bounds = &self.goals.contexts;
            // A maximum holds whatever the targets are: contexts that begin with all workers are often above theirs.
            let surplus = self.layout.surplus(targets, |number| bounds[number].max, open, &fixed);
            let best = || self.layout.best(targets, |number| (bounds[number].min, bounds[number].max), open, &fixed);
            let gains = |shift: &Shift| shift.gain > MARGIN * shift.size * shift.size;
            let Some(shift) = surplus.or_else(|| best().filter(gains)) else { return };
            fixed.insert(shift.worker);
            if let Some(from) = shift.from {
                let needs = needs[from].get_or_insert_with(|| machine.able(from));
                if !self.layout.can_spare(from, shift.worker, needs) {
                    continue;
                }
            }
            self.layout.apply(&shift);
            shifts.push(shift);
        }
    }

    /// Makes these moves: all additions, then all removals.
    fn apply(&mut self, now: Duration, shifts: &[Shift], machine: &mut dyn Governed) -> bool {
        let was_there = |shift: &Shift| machine.workers(shift.to).contains(shift.worker);
        let was_there: Vec<bool> = shifts.iter().map(was_there).collect();
        let (mut arrived, mut left) = (vec![true; shifts.len()], vec![true; shifts.len()]);
        for number in 0..self.contexts.len() {
            let added: WorkerSet = shifts.iter().filter(|shift| shift.to == number).map(|shift| shift.worker).collect();
            if !added.is_empty() && !self.change(now, number, &added, &WorkerSet::new(), machine) {
                let here = shifts.iter().zip(&mut arrived).filter(|(shift, _)| shift.to == number);
                here.for_each(|(_, arrived)| *arrived = false);
            }
        }
        for number in 0..self.contexts.len() {
            let leaves = |(shift, arrived): &(&Shift, &bool)| **arrived && shift.from == Some(number);
            let removed: WorkerSet =
                shifts.iter().zip(&arrived).filter(leaves).map(|(shift, _)| shift.worker).collect();
            if !removed.is_empty() && !self.change(now, number, &WorkerSet::new(), &removed, machine) {
                let here = shifts.iter().zip(&mut left).filter(|(shift, _)| shift.from == Some(number));
                here.for_each(|(_, left)| *left = false);
            }
        }
        let moves = self.governance.moves.len();
        for (number, shift) in shifts.iter().enumerate() {
            self.movable[shift.worker.index()] = self.steps + u64::from(self.goals.patience);
            let from = shift.from.filter(|_| left[number]);
            if arrived[number] && (from.is_some() || !was_there[number]) {
                machine.moved(shift.worker, from, shift.to);
                let name = |number: usize| self.goals.contexts[number].name.clone();
                let (from, to) = (from.map(name), name(shift.to));
                self.governance.moves.push(Move { at: now, worker: shift.worker, from, to });
            }
        }
        self.governance.moves.len() > moves
    }

    /// Changes a context. If that is refused, the next attempt is later, each time twice as late.
    fn change(
        &mut self,
        now: Duration,
        number: usize,
        added: &WorkerSet,
        removed: &WorkerSet,
        machine: &mut dyn Governed,
    ) -> bool {
        let Err(error) = machine.change(number, added, removed) else { return true };
        let watched = &mut self.contexts[number];
        watched.refusals += 1;
        watched.changeable = self.steps + ((1 + u64::from(self.goals.patience)) << watched.refusals.min(10));
        let context = self.goals.contexts[number].name.clone();
        let workers: Vec<WorkerId> = added.iter().chain(removed.iter()).collect();
        self.governance.refusals.push(Refusal { at: now, context, workers, why: error.to_string() });
        false
    }
}

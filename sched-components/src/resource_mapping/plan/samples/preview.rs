//! What becomes of a plan when single tasks move, by rehearsals alone.
//!
//! To find out what a plan is worth, it is executed [event by event](crate::resource_mapping::plan::execution), with
//! all transfers and the links that they share. A rehearsal takes a hundredth of that time, and tells nearly as much
//! about a plan in which only a few tasks have moved: their data, and that of the tasks that share it, takes as much
//! longer or less to arrive as its transfers take by themselves.
//!
//! Most moves cannot make a plan better, and that takes less time still to find out, as in local search for job shops
//! (Taillard, *Parallel taboo search techniques for the job shop scheduling problem*, 1994): the longest path through a
//! moved task is estimated from what is before its new place, and behind it.

mod bound;
mod users;

use super::course::Course;
use super::moves::Move;
use super::rehearsal::{Rehearsal, advance, with_executed};
use super::{DRAWS, Samples, Times};
use crate::resource_mapping::plan::outlook::Outlook;
use crate::resource_mapping::plan::schedule::{Schedule, Scratch, refill};
use users::Users;

/// See the [module](self).
#[derive(Default, Debug)]
pub(in crate::resource_mapping::plan) struct Preview {
    /// The number of the plan that is shown, and its course and starts.
    number: Option<u64>,
    shown: (Course, Vec<u64>),
    /// The course with the moves that were made, and when tasks start, in that order.
    course: Course,
    starts: Vec<u64>,
    has_changed: bool,
    /// What becomes of the plan with these moves, and of the one with the next ones.
    rehearsed: Rehearsal,
    trial: Rehearsal,
    /// When all tasks are done then, in each draw, and the sum of that.
    last: Times,
    worth: f64,
    /// By task, the longest path from its start to the end.
    onwards: Vec<Times>,
    /// By task, the draws in which it is on the longest path: one bit each.
    critical: Vec<u16>,
    /// By task, its place in the order.
    places: Vec<usize>,
    /// The tasks of each lane, in order.
    of_lane: Vec<Vec<usize>>,
    users: Users,
    /// What moves changed: the lanes of their tasks; by task, when its data is fetched, and what it takes to arrive;
    /// and the order, if that changed.
    undo_lanes: Vec<(usize, usize)>,
    undo: Vec<(usize, f32, f32)>,
    other_order: Vec<usize>,
    is_reordered: bool,
}

/// What is at least as long as this share of the longest path is the longest path.
const ALL_BUT_ROUNDED: f32 = 1.0 - 1e-5;

const _: () = assert!(DRAWS <= u16::BITS as usize, "a bit for each draw");

impl Preview {
    /// Shows a plan without moves. Plans of the same number are the same. Returns whether it does: what becomes of a
    /// plan where that is [stopped](Scratch::stop) may be anything, such as tasks before those that they wait for.
    pub(in crate::resource_mapping::plan) fn show(
        &mut self,
        number: u64,
        samples: &Samples,
        outlook: &Outlook,
        plan: &Schedule,
        scratch: &mut Scratch,
    ) -> bool {
        if self.number != Some(number) {
            with_executed(outlook, plan, scratch, |executed, _| self.lay(samples, outlook, executed));
            self.number = (!scratch.stop.is_set()).then_some(number);
            if self.number.is_none() {
                return false;
            }
        } else if !self.has_changed {
            return true;
        }
        self.has_changed = false;
        self.course.clone_from(&self.shown.0);
        self.starts.clone_from(&self.shown.1);
        self.last = samples.follow(outlook, &self.course, &mut self.rehearsed);
        self.look(samples, outlook);
        true
    }

    fn lay(&mut self, samples: &Samples, outlook: &Outlook, executed: &Schedule) {
        let (course, starts) = &mut self.shown;
        course.lay(samples, outlook, executed);
        starts.clone_from(&executed.starts);
        self.users.list(outlook, &course.order);
    }

    /// The lane of each task, with the moves that were made.
    pub(in crate::resource_mapping::plan) fn lanes(&self) -> &[usize] {
        &self.course.lanes
    }

    /// Makes moves, if the plan becomes better by them, in the mean of the draws. Returns whether it does.
    pub(in crate::resource_mapping::plan) fn make(
        &mut self,
        samples: &Samples,
        outlook: &Outlook,
        moves: &[Move],
    ) -> bool {
        if !self.may_help(samples, outlook, moves) {
            return false;
        }
        self.change(samples, outlook, moves);
        let last = samples.follow(outlook, &self.course, &mut self.trial);
        if sum(&last) >= self.worth {
            self.restore();
            return false;
        }
        self.last = last;
        self.has_changed = true;
        std::mem::swap(&mut self.rehearsed, &mut self.trial);
        for moved in moves {
            let place = self.course.order.iter().position(|task| *task == moved.task);
            let behind = place.and_then(|place| self.course.order.get(place + 1));
            if let (true, Some(behind)) = (moved.earlier != 0.0, behind) {
                self.starts[moved.task] = self.starts[*behind];
            }
        }
        self.look(samples, outlook);
        true
    }

    /// Takes note of what a rehearsal says.
    fn look(&mut self, samples: &Samples, outlook: &Outlook) {
        let Preview { course, onwards, critical, last, .. } = self;
        refill(&mut self.places, outlook.len(), 0);
        self.of_lane.resize(outlook.lanes.len(), Vec::new());
        self.of_lane.iter_mut().for_each(Vec::clear);
        for (place, task) in course.order.iter().copied().enumerate() {
            self.places[task] = place;
            if outlook.works[task] {
                self.of_lane[course.lanes[task]].push(task);
            }
        }
        self.worth = sum(last);
        onwards.resize(outlook.len(), [0.0; DRAWS]);
        refill(critical, outlook.len(), 0);
        let mut behind = vec![[0.0; DRAWS]; outlook.lanes.len()];
        for task in course.order.iter().rev().copied() {
            let mut from = [0.0; DRAWS];
            for next in outlook.successors(task) {
                let comes = course.comes[*next];
                advance(&mut from, &onwards[*next].map(|onwards| comes + onwards));
            }
            let mut start = self.rehearsed.ends[task];
            if outlook.works[task] {
                let lane = course.lanes[task];
                advance(&mut from, &behind[lane]);
                let lengths = samples.lengths(outlook, task, lane);
                for ((from, start), length) in from.iter_mut().zip(&mut start).zip(lengths) {
                    *from += length;
                    *start -= length;
                }
                behind[lane] = from;
            }
            onwards[task] = from;
            for draw in 0..DRAWS {
                let is_critical = start[draw] + from[draw] >= last[draw] * ALL_BUT_ROUNDED;
                critical[task] |= u16::from(is_critical) << draw;
            }
        }
    }

    /// The place in the order to which a task moves, as it is now: as far as the tasks that it waits for, and those
    /// that wait for it, let it go. Where one of these moves too, it keeps its place.
    fn place(&self, samples: &Samples, outlook: &Outlook, moved: &Move, moves: &[Move]) -> usize {
        let Preview { course, starts, places, .. } = self;
        let task = moved.task;
        let before = || samples.before(task).filter(|before| outlook.is_open(*before));
        let behind = || outlook.successors(task).iter().copied();
        if moved.earlier == 0.0 || before().chain(behind()).any(|other| is_moved(moves, other)) {
            return places[task];
        }
        let first = before().map(|before| places[before] + 1).max().unwrap_or(0);
        let last = behind().map(|behind| places[behind]).min().unwrap_or(course.order.len());
        let start = starts[task] as f64 - moved.earlier;
        course.order.partition_point(|other| (starts[*other] as f64) < start).min(last).max(first)
    }

    /// Changes the course by moves.
    fn change(&mut self, samples: &Samples, outlook: &Outlook, moves: &[Move]) {
        self.undo.clear();
        self.users.redirect(outlook, &mut self.course, &self.places, moves, &mut self.undo);
        self.is_reordered = moves.iter().any(|moved| moved.earlier != 0.0);
        if self.is_reordered {
            self.reorder(samples, outlook, moves);
        }
        let lanes = &mut self.course.lanes;
        self.undo_lanes.clear();
        self.undo_lanes
            .extend(moves.iter().map(|moved| (moved.task, std::mem::replace(&mut lanes[moved.task], moved.lane))));
    }

    fn reorder(&mut self, samples: &Samples, outlook: &Outlook, moves: &[Move]) {
        let mut order = std::mem::take(&mut self.other_order);
        order.clone_from(&self.course.order);
        for moved in moves {
            let place = self.place(samples, outlook, moved, moves);
            if place == self.places[moved.task] {
                continue;
            }
            order.retain(|task| *task != moved.task);
            let behind = self.course.order[place..].iter().find(|task| !is_moved(moves, **task));
            let at = behind.and_then(|behind| order.iter().position(|task| task == behind)).unwrap_or(order.len());
            order.insert(at, moved.task);
            let fetched = &mut self.course.fetched[moved.task];
            self.undo.push((moved.task, *fetched, self.course.comes[moved.task]));
            *fetched = (*fetched - moved.earlier as f32).max(0.0);
        }
        self.other_order = std::mem::replace(&mut self.course.order, order);
    }

    /// Takes the last change back.
    fn restore(&mut self) {
        for (task, lane) in self.undo_lanes.drain(..).rev() {
            self.course.lanes[task] = lane;
        }
        for (task, fetched, comes) in self.undo.drain(..).rev() {
            (self.course.fetched[task], self.course.comes[task]) = (fetched, comes);
        }
        if self.is_reordered {
            std::mem::swap(&mut self.course.order, &mut self.other_order);
        }
    }
}

/// Whether a task is among those that move.
fn is_moved(moves: &[Move], task: usize) -> bool {
    moves.iter().any(|moved| moved.task == task)
}

fn sum(times: &Times) -> f64 {
    times.iter().map(|time| f64::from(*time)).sum()
}

#[cfg(test)]
mod tests;

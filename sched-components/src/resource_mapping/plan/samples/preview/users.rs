//! Which tasks use which data, and how much longer it takes to arrive where some of them move.

use super::Move;
use crate::resource_mapping::plan::outlook::{NEVER, Outlook};
use crate::resource_mapping::plan::samples::course::Course;
use std::ops::Range;

/// Maximum number of memories, each of which has a bit. With more, data takes as long as before, wherever tasks move.
const MOST_MEMORIES: usize = 64;

/// A task that uses some data.
#[derive(Clone, Copy, Default, Debug)]
struct User {
    task: usize,
    reads: bool,
    writes: bool,
}

/// See the [module](self).
#[derive(Default, Debug)]
pub(super) struct Users {
    /// By data, in the order of a plan.
    users: Vec<User>,
    of: Vec<Range<usize>>,
    /// The data of tasks that move to other memories.
    data: Vec<usize>,
}

impl Users {
    /// Lists the users of all data.
    pub(super) fn list(&mut self, outlook: &Outlook, order: &[usize]) {
        self.of.clear();
        self.users.clear();
        if outlook.memories < 2 || outlook.memories > MOST_MEMORIES {
            return;
        }
        let mut counts = vec![0; outlook.copies.len() / outlook.memories];
        let sent = outlook.sent.iter().map(|(task, ..)| *task);
        let tasks = || sent.clone().chain(order.iter().copied().filter(|task| outlook.works[*task]));
        tasks().flat_map(|task| outlook.uses(task)).for_each(|used| counts[used.data] += 1);
        let mut end = 0;
        for count in counts {
            self.of.push(end..end);
            end += count;
        }
        self.users.resize(end, User::default());
        for task in tasks() {
            for used in outlook.uses(task) {
                let of = &mut self.of[used.data];
                self.users[of.end] = User { task, reads: used.reads, writes: used.writes };
                of.end += 1;
            }
        }
    }

    /// Changes what the data of tasks takes to arrive, if these move. For each task that changes, `undo` gets when its
    /// data is fetched, and what it took to arrive.
    pub(super) fn redirect(
        &mut self,
        outlook: &Outlook,
        course: &mut Course,
        places: &[usize],
        moves: &[Move],
        undo: &mut Vec<(usize, f32, f32)>,
    ) {
        let memory = |lane: usize| outlook.lanes[lane].memory;
        let leaves = |moved: &&Move| memory(moved.lane) != memory(course.lanes[moved.task]);
        self.data.clear();
        if self.of.is_empty() {
            return;
        }
        self.data.extend(moves.iter().filter(leaves).flat_map(|moved| outlook.uses(moved.task)).map(|used| used.data));
        self.data.sort_unstable();
        self.data.dedup();
        let last = moves.iter().map(|moved| places[moved.task]).max().unwrap_or(0);
        for data in &self.data {
            let copies = &outlook.copies[data * outlook.memories..][..outlook.memories];
            let mut old = Copies::new(copies);
            let mut new = old;
            for User { task, reads, writes } in self.users[self.of[*data].clone()].iter().copied() {
                let lane = course.lanes[task];
                let moved = moves.iter().find(|moved| moved.task == task).map_or(lane, |moved| moved.lane);
                let before = old.used(outlook, *data, reads, writes, memory(lane));
                let now = new.used(outlook, *data, reads, writes, memory(moved));
                if before != now {
                    undo.push((task, course.fetched[task], course.comes[task]));
                    course.comes[task] = (course.comes[task] + now - before).max(0.0);
                }
                // What comes after is as before.
                if old == new && places[task] > last {
                    break;
                }
            }
        }
    }
}

/// The memories that have a copy of some data, one bit each.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Copies(u64);

impl Copies {
    /// Those that it will have sooner or later.
    fn new(copies: &[u64]) -> Copies {
        Copies(copies.iter().enumerate().fold(0, |there, (memory, at)| there | u64::from(*at != NEVER) << memory))
    }

    /// A task uses the data in a memory. Returns nanoseconds that the transfer there takes, if one is necessary.
    fn used(&mut self, outlook: &Outlook, data: usize, reads: bool, writes: bool, memory: usize) -> f32 {
        let has = |memory: usize| self.0 >> memory & 1 == 1;
        let from = (0..outlook.memories).filter(|from| reads && !has(memory) && has(*from));
        let takes = from.map(|from| outlook.transfer(data, from, memory)).min().unwrap_or(0);
        self.0 = if writes { 1 << memory } else { self.0 | 1 << memory };
        takes as f32
    }
}

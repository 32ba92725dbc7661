//! A plan by list scheduling, for equal lanes: a lane that is free takes the most urgent of the tasks that are ready.
//!
//! A task that chooses its lane when it becomes ready may wait there for another one, while a lane that becomes free
//! takes what is less urgent. Where lanes are equal nothing is gained by choosing early. (Graham, *Bounds on
//! multiprocessing timing anomalies*, 1969.)

use super::outlook::Outlook;
use super::schedule::{Schedule, Scratch, Taste, comparable};
use std::cmp::Reverse;

impl Outlook {
    /// Whether each task is the same on every lane, and no data moves.
    pub(super) fn is_uniform(&self) -> bool {
        let is_same = |lengths: &[u64]| lengths.iter().all(|length| *length == lengths[0]);
        self.memories == 1 && self.lengths.chunks_exact(self.lanes.len().max(1)).all(is_same)
    }
}

impl Schedule {
    /// Makes a plan in which a free lane takes the ready task with the largest key, where the outlook is
    /// [uniform](Outlook::is_uniform).
    pub(super) fn list(&mut self, outlook: &Outlook, taste: &Taste, scratch: &mut Scratch) {
        self.clear(outlook);
        scratch.copies.clone_from(&outlook.copies);
        scratch.waits.clone_from(&outlook.waits);
        self.place_sent(outlook, &mut scratch.copies);
        let Scratch { waits, heap: ready, ending, idle, stop, .. } = scratch;
        ready.clear();
        ending.clear();
        idle.clear();
        idle.extend(outlook.lanes.iter().enumerate().map(|(lane, of)| Reverse((of.free.max(outlook.now), lane))));
        let entry = |task: usize| (comparable(taste.keys[task]), Reverse(task as u32));
        for task in (0..outlook.len()).filter(|task| outlook.waits[*task] == 0) {
            match outlook.is_open(task) && outlook.works[task] {
                true => ready.push(entry(task)),
                false => ending.push(Reverse((self.ends[task], task))),
            }
        }
        let mut now = outlook.now;
        while !stop.is_set() {
            // All that ends by now, before lanes choose.
            while let Some(Reverse((_, task))) = ending.peek().copied().filter(|Reverse((end, _))| *end <= now) {
                ending.pop();
                self.end = self.end.max(self.ends[task]);
                for next in outlook.successors(task).iter().copied() {
                    waits[next] -= 1;
                    if waits[next] > 0 || !outlook.is_open(next) {
                        continue;
                    }
                    if outlook.works[next] {
                        ready.push(entry(next));
                    } else {
                        (self.starts[next], self.ends[next]) = (now, now);
                        ending.push(Reverse((now, next)));
                    }
                }
            }
            while let Some(Reverse((_, lane))) = idle.peek().copied().filter(|Reverse((free, _))| *free <= now) {
                let Some((_, Reverse(task))) = ready.pop() else { break };
                let task = task as usize;
                let end = now + outlook.length(task, lane);
                (self.lanes[task], self.starts[task], self.ends[task]) = (lane, now, end);
                ending.push(Reverse((end, task)));
                idle.pop();
                idle.push(Reverse((end, lane)));
            }
            let ends = ending.peek().map(|Reverse((end, _))| *end);
            let frees = idle.peek().filter(|_| !ready.is_empty()).map(|Reverse((free, _))| *free);
            match ends.into_iter().chain(frees).min() {
                Some(next) => now = next,
                None => break,
            }
        }
    }
}

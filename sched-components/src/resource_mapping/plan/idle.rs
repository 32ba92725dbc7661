//! When lanes are idle, in a plan whose tasks choose one after the other.

use super::outlook::{NEVER, Outlook};
use super::schedule::refill;
use std::ops::Range;

/// See the [module](self).
#[derive(Default, Debug)]
pub(super) struct Idle {
    /// The idle intervals of each lane, in order: the last one has no end.
    gaps: Vec<Vec<(u64, u64)>>,
    /// By lane, when the first interval begins, and when the last one does.
    first: Vec<u64>,
    last: Vec<u64>,
    /// By lane, the length of the longest of the others. Nearly all tasks are longer, and need no look at them.
    widest: Vec<u64>,
}

impl Idle {
    /// Begins a plan.
    pub(super) fn begin(&mut self, outlook: &Outlook) {
        let free = || outlook.lanes.iter().map(|lane| lane.free.max(outlook.now));
        self.gaps.resize(outlook.lanes.len(), Vec::new());
        for (gaps, free) in self.gaps.iter_mut().zip(free()) {
            gaps.clear();
            gaps.push((free, NEVER));
        }
        for list in [&mut self.first, &mut self.last] {
            list.clear();
            list.extend(free());
        }
        refill(&mut self.widest, outlook.lanes.len(), 0);
    }

    /// By lane, when it is idle first.
    #[inline]
    pub(super) fn first(&self) -> &[u64] {
        &self.first
    }

    /// When the first of some lanes is idle for so long, from this time on, if that is sooner than `sooner`.
    #[inline]
    pub(super) fn soonest(&self, lanes: Range<usize>, from: u64, length: u64, sooner: (u64, usize)) -> (u64, usize) {
        let mut soonest = sooner;
        for (lane, first) in lanes.clone().zip(&self.first[lanes]) {
            if (*first).max(from) < soonest.0 {
                soonest = soonest.min((self.start(lane, from, length), lane));
            }
        }
        soonest
    }

    /// When a lane is idle for so long, from this time on.
    #[inline]
    pub(super) fn start(&self, lane: usize, from: u64, length: u64) -> u64 {
        let last = self.last[lane].max(from);
        if length > self.widest[lane] {
            return last;
        }
        let gaps = &self.gaps[lane];
        let next = gaps.partition_point(|(_, to)| *to <= from);
        let start = |(begin, _): &(u64, u64)| (*begin).max(from);
        let fits = |gap: &&(u64, u64)| start(gap).saturating_add(length) <= gap.1;
        gaps[next..].iter().find(fits).map_or(last, start)
    }

    /// A lane executes something from `start`, when it is idle for that long, to `end`.
    pub(super) fn occupy(&mut self, lane: usize, start: u64, end: u64) {
        let gaps = &mut self.gaps[lane];
        let gap = gaps.partition_point(|(_, to)| *to <= start);
        let ((from, to), is_last) = (gaps[gap], gap + 1 == gaps.len());
        match (start > from, end < to) {
            (true, true) => {
                gaps[gap] = (from, start);
                gaps.insert(gap + 1, (end, to));
            }
            (true, false) => gaps[gap] = (from, start),
            (false, true) => gaps[gap] = (end, to),
            (false, false) => _ = gaps.remove(gap),
        }
        self.first[lane] = gaps.first().map_or(NEVER, |(from, _)| *from);
        if is_last {
            self.last[lane] = end;
            self.widest[lane] = self.widest[lane].max(start - from);
        } else if to - from == self.widest[lane] {
            let others = &gaps[..gaps.len() - 1];
            self.widest[lane] = others.iter().map(|(from, to)| to - from).max().unwrap_or(0);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::outlook::Lane;
    use super::*;
    use proptest::prelude::*;
    use sched_core::{Child, WorkerId};

    proptest! {
        /// What is placed one after the other never meets, and begins as early as it can.
        #[test]
        fn a_lane_is_idle_where_nothing_was_placed(
            free in 0..20_u64,
            placed in prop::collection::vec((0..60_u64, 0..9_u64), 0..40),
        ) {
            let lane = Lane { worker: WorkerId(0), child: Child(0), memory: 0, class: 0, free };
            let mut outlook = Outlook::default();
            (outlook.now, outlook.lanes) = (5, vec![lane]);
            let mut idle = Idle::default();
            idle.begin(&outlook);
            let mut busy: Vec<(u64, u64)> = Vec::new();
            for (from, length) in placed {
                let is_free = |start: u64| {
                    // What takes no time divides an interval, too, and fits into none that is over.
                    let until = (start + length).max(start + 1);
                    !busy.iter().any(|(from, to)| start < *to && *from < until)
                };
                let earliest = (from.max(free.max(5))..).find(|start| is_free(*start)).expect("time does not end");
                let start = idle.start(0, from, length);
                prop_assert_eq!(start, earliest, "{} from {} beside {:?}", length, from, &busy);
                prop_assert!(idle.first()[0] <= start);
                idle.occupy(0, start, start + length);
                busy.push((start, start + length));
            }
        }
    }
}

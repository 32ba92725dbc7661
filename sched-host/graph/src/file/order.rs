//! An order in which each task comes after those that it waits for.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// A task of a file: its place among the tasks of the file.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(super) struct FileTask(pub(super) u32);

impl FileTask {
    pub(super) const fn index(self) -> usize {
        self.0 as usize
    }
}

/// For each task, the tasks that it waits for.
pub(super) type WaitsFor = [Vec<FileTask>];

/// A cycle: each of its tasks waits for the next, and the last for the first.
pub(super) type Cycle = Vec<FileTask>;

/// An order in which each task comes after those that it waits for, as close to the order of the file as possible.
///
/// # Errors
/// A cycle, if there is one.
pub(super) fn topological(waits_for: &WaitsFor) -> Result<Vec<FileTask>, Cycle> {
    let mut successors = vec![Vec::new(); waits_for.len()];
    let mut left: Vec<usize> = waits_for.iter().map(Vec::len).collect();
    for (task, before) in (0..).map(FileTask).zip(waits_for) {
        for predecessor in before {
            successors[predecessor.index()].push(task);
        }
    }
    let free = (0..).map(FileTask).zip(&left).filter(|(_, left)| **left == 0);
    let mut ready: BinaryHeap<Reverse<FileTask>> = free.map(|(task, _)| Reverse(task)).collect();
    let mut order = Vec::with_capacity(waits_for.len());
    while let Some(Reverse(task)) = ready.pop() {
        order.push(task);
        for successor in &successors[task.index()] {
            left[successor.index()] -= 1;
            if left[successor.index()] == 0 {
                ready.push(Reverse(*successor));
            }
        }
    }
    if order.len() == waits_for.len() { Ok(order) } else { Err(cycle(waits_for, &left)) }
}

/// Describes a cycle by the names of its tasks; of a long one, of the first tasks and the last.
pub(super) fn describe(cycle: &[FileTask], name: impl Fn(FileTask) -> String) -> String {
    const SHOWN: usize = 10;
    let first = name(cycle[0]);
    let mut names: Vec<String> = cycle.iter().take(SHOWN).map(|task| name(*task)).collect();
    if let [.., last] = &cycle[names.len()..] {
        match cycle.len() - names.len() - 1 {
            0 => {}
            1 => names.push("another one, which".to_owned()),
            others => names.push(format!("{others} others one after the other, the last of which")),
        }
        names.push(name(*last));
    }
    format!("{first} waits for itself: {} waits for {first}", names.join(" waits for "))
}

/// A cycle among the tasks with a number of tasks `left` to wait for.
fn cycle(waits_for: &WaitsFor, left: &[usize]) -> Cycle {
    let start = left.iter().position(|left| *left > 0).expect("some task waits for ever");
    let mut path = vec![FileTask(start as u32)];
    let mut seen_at = vec![usize::MAX; left.len()];
    seen_at[start] = 0;
    loop {
        let last = path[path.len() - 1];
        let mut before = waits_for[last.index()].iter();
        let next = *before.find(|task| left[task.index()] > 0).expect("it waits for one that waits for ever too");
        if seen_at[next.index()] != usize::MAX {
            return path.split_off(seen_at[next.index()]);
        }
        seen_at[next.index()] = path.len();
        path.push(next);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn tasks(numbers: &[u32]) -> Vec<FileTask> {
        numbers.iter().copied().map(FileTask).collect()
    }

    fn lists(numbers: &[&[u32]]) -> Vec<Vec<FileTask>> {
        numbers.iter().map(|numbers| tasks(numbers)).collect()
    }

    #[test]
    fn what_is_in_order_stays_so_and_the_rest_moves_as_little_as_it_can() {
        assert_eq!(topological(&lists(&[&[], &[0], &[0, 1]])), Ok(tasks(&[0, 1, 2])));
        assert_eq!(topological(&lists(&[&[2], &[], &[]])), Ok(tasks(&[1, 2, 0])));
        assert_eq!(topological(&lists(&[&[], &[2], &[3], &[1, 0]])), Err(tasks(&[1, 2, 3])));
        assert_eq!(topological(&lists(&[&[0]])), Err(tasks(&[0])));
    }

    #[test]
    fn of_a_long_cycle_the_ends_are_named() {
        let of = |length: u32| describe(&(0..length).map(FileTask).collect::<Vec<_>>(), |task| task.0.to_string());
        assert_eq!(of(1), "0 waits for itself: 0 waits for 0");
        assert!(of(11).ends_with("8 waits for 9 waits for 10 waits for 0"), "{}", of(11));
        let long = "9 waits for 89 others one after the other, the last of which waits for 99 waits for 0";
        assert!(of(100).ends_with(long), "{}", of(100));
    }

    proptest! {
        #[test]
        fn it_is_an_order_or_a_true_cycle(waits_for in prop::collection::vec(prop::collection::vec((0u32..12).prop_map(FileTask), 0..3), 12)) {
            match topological(&waits_for) {
                Ok(order) => {
                    let mut place = [usize::MAX; 12];
                    for (at, task) in order.iter().enumerate() {
                        place[task.index()] = at;
                    }
                    for (task, before) in waits_for.iter().enumerate() {
                        prop_assert!(before.iter().all(|before| place[before.index()] < place[task]));
                    }
                }
                Err(cycle) => {
                    for (at, task) in cycle.iter().enumerate() {
                        prop_assert!(waits_for[task.index()].contains(&cycle[(at + 1) % cycle.len()]));
                    }
                }
            }
        }
    }
}

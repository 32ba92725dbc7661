//! An order in which each task comes after those that it waits for.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// The places of tasks in an order in which each comes after those that it waits for, and which is otherwise the order
/// that they have already.
///
/// # Errors
/// A cycle: each of its tasks waits for the next, and the last for the first.
pub(super) fn topological(waits_for: &[Vec<u32>]) -> Result<Vec<u32>, Vec<u32>> {
    let mut successors = vec![Vec::new(); waits_for.len()];
    let mut left: Vec<usize> = waits_for.iter().map(Vec::len).collect();
    for (task, before) in (0..).zip(waits_for) {
        for predecessor in before {
            successors[*predecessor as usize].push(task);
        }
    }
    let mut ready: BinaryHeap<Reverse<u32>> =
        (0..).zip(&left).filter(|(_, left)| **left == 0).map(|(task, _)| Reverse(task)).collect();
    let mut order = Vec::with_capacity(waits_for.len());
    while let Some(Reverse(task)) = ready.pop() {
        order.push(task);
        for successor in &successors[task as usize] {
            left[*successor as usize] -= 1;
            if left[*successor as usize] == 0 {
                ready.push(Reverse(*successor));
            }
        }
    }
    if order.len() == waits_for.len() { Ok(order) } else { Err(cycle(waits_for, &left)) }
}

/// Why no order is possible: who waits for itself, and through whom. Of a long cycle the first tasks are named, and the last.
pub(super) fn told(cycle: &[u32], name: impl Fn(u32) -> String) -> String {
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

/// A cycle among the tasks that still wait for something.
fn cycle(waits_for: &[Vec<u32>], left: &[usize]) -> Vec<u32> {
    let start = left.iter().position(|left| *left > 0).expect("some task waits for ever");
    let mut path = vec![start as u32];
    let mut seen_at = vec![usize::MAX; left.len()];
    seen_at[start] = 0;
    loop {
        let last = path[path.len() - 1];
        let mut before = waits_for[last as usize].iter();
        let next = *before.find(|task| left[**task as usize] > 0).expect("it waits for one that waits for ever too");
        if seen_at[next as usize] != usize::MAX {
            return path.split_off(seen_at[next as usize]);
        }
        seen_at[next as usize] = path.len();
        path.push(next);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn what_is_in_order_stays_so_and_the_rest_moves_as_little_as_it_can() {
        assert_eq!(topological(&[vec![], vec![0], vec![0, 1]]), Ok(vec![0, 1, 2]));
        assert_eq!(topological(&[vec![2], vec![], vec![]]), Ok(vec![1, 2, 0]));
        assert_eq!(topological(&[vec![], vec![2], vec![3], vec![1, 0]]), Err(vec![1, 2, 3]));
        assert_eq!(topological(&[vec![0]]), Err(vec![0]));
    }

    #[test]
    fn of_a_long_cycle_the_ends_are_named() {
        let of = |length: u32| told(&(0..length).collect::<Vec<_>>(), |task| task.to_string());
        assert_eq!(of(1), "0 waits for itself: 0 waits for 0");
        assert!(of(11).ends_with("8 waits for 9 waits for 10 waits for 0"), "{}", of(11));
        let long = "9 waits for 89 others one after the other, the last of which waits for 99 waits for 0";
        assert!(of(100).ends_with(long), "{}", of(100));
    }

    proptest! {
        #[test]
        fn it_is_an_order_or_a_true_cycle(waits_for in prop::collection::vec(prop::collection::vec(0u32..12, 0..3), 12)) {
            match topological(&waits_for) {
                Ok(order) => {
                    let mut place = [usize::MAX; 12];
                    for (at, task) in order.iter().enumerate() {
                        place[*task as usize] = at;
                    }
                    for (task, before) in waits_for.iter().enumerate() {
                        prop_assert!(before.iter().all(|before| place[*before as usize] < place[task]));
                    }
                }
                Err(cycle) => {
                    for (at, task) in cycle.iter().enumerate() {
                        prop_assert!(waits_for[*task as usize].contains(&cycle[(at + 1) % cycle.len()]));
                    }
                }
            }
        }
    }
}

//! Ranges of ascending numbers: `0-3, 7`.

use sched_core::WorkerSet;

/// Ascending numbers, with runs of consecutive ones as ranges: `0-3, 7`.
#[must_use]
pub fn ranges<N: TryInto<u64>>(numbers: impl IntoIterator<Item = N>) -> String {
    let mut runs: Vec<(u64, u64)> = Vec::new();
    for number in numbers.into_iter().filter_map(|number| number.try_into().ok()) {
        match runs.last_mut() {
            Some((_, last)) if *last + 1 == number => *last = number,
            _ => runs.push((number, number)),
        }
    }
    let runs = runs.into_iter().map(|(first, last)| match first == last {
        true => first.to_string(),
        false => format!("{first}-{last}"),
    });
    runs.collect::<Vec<_>>().join(", ")
}

/// `worker 3` or `workers 0-3, 7`.
#[must_use]
pub fn workers(set: &WorkerSet) -> String {
    let plural = if set.len() == 1 { "" } else { "s" };
    format!("worker{plural} {}", ranges(set.iter().map(|worker| worker.0)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn consecutive_numbers_are_drawn_together() {
        assert_eq!(ranges([0_u32, 1, 2, 3, 7, 9, 10]), "0-3, 7, 9-10");
        assert_eq!(ranges([5_usize]), "5");
        assert_eq!(ranges(Vec::<u32>::new()), "");
    }
}

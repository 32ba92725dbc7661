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

/// Maximum number in a text that [`parse_ranges`] reads: far more than there are workers.
const MOST: u32 = 1 << 20;

/// The numbers of `0-3, 7`, in the order of the text; `None` if it is something else. Also `+` separates.
#[must_use]
pub fn parse_ranges(text: &str) -> Option<Vec<u32>> {
    let mut numbers = Vec::new();
    for part in text.split([',', '+']).map(str::trim) {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last): (u32, u32) = (first.trim().parse().ok()?, last.trim().parse().ok()?);
        if first > last || last > MOST || numbers.len() > MOST as usize {
            return None;
        }
        numbers.extend(first..=last);
    }
    Some(numbers)
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

    #[test]
    fn ranges_are_read_back() {
        assert_eq!(parse_ranges("0-3, 7, 9-10"), Some(vec![0, 1, 2, 3, 7, 9, 10]));
        assert_eq!(parse_ranges("2+0-1"), Some(vec![2, 0, 1]));
        for wrong in ["", "x", "3-1", "1,", "-1", "0-4000000000", "1.5"] {
            assert_eq!(parse_ranges(wrong), None, "{wrong}");
        }
    }
}

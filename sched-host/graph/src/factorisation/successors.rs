//! What the accesses of steps imply about their order, for tests of the steps' priorities.

use std::collections::HashMap;
use std::hash::Hash;

/// For each step, by what it reads and what it writes, the later steps that must wait for it, by number.
pub(super) fn successors<D: Copy + Eq + Hash>(steps: impl Iterator<Item = (Vec<D>, Vec<D>)>) -> Vec<Vec<usize>> {
    let mut after: Vec<Vec<usize>> = Vec::new();
    let mut writer: HashMap<D, usize> = HashMap::new();
    let mut readers: HashMap<D, Vec<usize>> = HashMap::new();
    for (number, (reads, writes)) in steps.enumerate() {
        after.push(Vec::new());
        for data in reads.iter().chain(&writes) {
            if let Some(&before) = writer.get(data) {
                after[before].push(number);
            }
        }
        for data in &writes {
            for before in readers.remove(data).unwrap_or_default() {
                after[before].push(number);
            }
            writer.insert(*data, number);
        }
        for data in reads {
            readers.entry(data).or_default().push(number);
        }
    }
    after
}

/// For each step the number of steps on the longest chain of dependent steps that begins with it.
pub(super) fn bottom_levels(after: &[Vec<usize>]) -> Vec<usize> {
    let mut levels = vec![0; after.len()];
    for number in (0..after.len()).rev() {
        levels[number] = 1 + after[number].iter().map(|&next| levels[next]).max().unwrap_or(0);
    }
    levels
}

//! Counted nouns.

use std::fmt::Display;

/// `1 task`, `2 tasks`: a number with its noun in singular or plural.
#[must_use]
pub fn count<N: Display + PartialEq + From<u8>>(number: N, noun: &str) -> String {
    let plural = if number == N::from(1) { "" } else { "s" };
    format!("{number} {noun}{plural}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_one_is_singular() {
        assert_eq!(
            [count(0_u64, "task"), count(1_usize, "task"), count(2_u32, "task")],
            ["0 tasks", "1 task", "2 tasks"]
        );
    }
}

//! The median.

/// The value in the middle of `values`, or the mean of the two in the middle; 0 if there are none. Sorts the values.
#[must_use]
pub fn median(values: &mut [f64]) -> f64 {
    let Some(last) = values.len().checked_sub(1) else { return 0.0 };
    values.sort_unstable_by(f64::total_cmp);
    f64::midpoint(values[last / 2], values[values.len() / 2])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_is_in_the_middle() {
        assert_eq!(median(&mut [5.0, 1.0, 3.0]), 3.0);
        assert_eq!(median(&mut [4.0, 1.0, 2.0, 9.0]), 3.0);
        assert_eq!(median(&mut []), 0.0);
    }
}

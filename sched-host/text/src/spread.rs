//! Positions without overlap.

/// Positions as near as possible to `wanted` (ascending), and at least 1 apart: the least-squares solution, by isotonic
/// regression, which merges neighbours that collide into blocks.
#[must_use]
pub fn spread(wanted: &[f64]) -> Vec<f64> {
    /// Block of touching neighbours: the sum of their wanted positions, each minus its index, and their number.
    struct Block {
        sum: f64,
        len: usize,
    }
    impl Block {
        fn mean(&self) -> f64 {
            self.sum / self.len as f64
        }
    }
    let mut blocks: Vec<Block> = Vec::new();
    for (index, place) in wanted.iter().enumerate() {
        let mut block = Block { sum: place - index as f64, len: 1 };
        while let Some(last) = blocks.pop_if(|last| last.mean() >= block.mean()) {
            block = Block { sum: last.sum + block.sum, len: last.len + block.len };
        }
        blocks.push(block);
    }
    let starts = blocks.iter().flat_map(|block| std::iter::repeat_n(block.mean(), block.len));
    starts.enumerate().map(|(index, start)| start + index as f64).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn places_with_room_stay_where_they_are_wanted() {
        assert_eq!(spread(&[0.0, 2.0, 5.5]), [0.0, 2.0, 5.5]);
        assert_eq!(spread(&[1.0, 1.0, 1.0]), [0.0, 1.0, 2.0]);
    }

    proptest! {
        #[test]
        fn places_never_overlap(mut wanted in prop::collection::vec(0.0f64..10.0, 0..30)) {
            wanted.sort_by(f64::total_cmp);
            prop_assert!(spread(&wanted).windows(2).all(|pair| pair[1] - pair[0] >= 1.0 - 1e-9));
        }
    }
}

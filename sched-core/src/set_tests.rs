//! Tests of [`SharedSet`], beside its file because that file is also compiled for the model checker.

use crate::SharedSet;
use std::collections::BTreeSet;

/// A set of any size reports exactly its members, in any range of its words.
#[test]
fn a_set_of_any_size_has_the_members_that_were_put_in() {
    for bound in [1_u32, 63, 64, 65, 1000, 4096, 4097, 10_000] {
        let (set, mut plain) = (SharedSet::new(bound as usize), BTreeSet::new());
        let mut number = 1;
        for step in 0..500 {
            number = (number * 7919 + 13) % bound;
            if step % 3 == 2 {
                assert_eq!(set.remove(number), plain.remove(&number));
            } else {
                set.insert(number);
                plain.insert(number);
            }
        }
        assert!(set.iter().eq(plain.iter().copied()), "{bound}");
        assert_eq!(set.contains(number), plain.contains(&number));
        for range in [0..bound.div_ceil(64) as usize, 1..3, 2..2, 60..usize::MAX] {
            let wanted = |number: &&u32| range.contains(&(**number as usize / 64));
            let found = set.words(range.clone()).map(|(_, bits)| bits.count_ones() as usize).sum::<usize>();
            assert_eq!(found, plain.iter().filter(wanted).count(), "{bound} {range:?}");
        }
        plain.iter().for_each(|number| assert!(set.remove(*number)));
        assert!(set.is_empty() && !set.contains(bound) && !set.remove(bound));
    }
}

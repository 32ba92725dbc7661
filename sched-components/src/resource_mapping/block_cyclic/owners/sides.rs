//! On which side of the diagonal tiles are, as far as it is known.

/// A tile, which is on the same side as another one, or opposite to it.
#[derive(Clone, Copy, Debug)]
struct Link {
    /// The other tile, or itself if the tile is the root of those whose sides are known beside each other.
    to: usize,
    is_opposite: bool,
    /// Of a root: the number of these tiles, the first of them, and whether it is opposite to the root.
    size: usize,
    first: (usize, bool),
}

/// The sides of tiles, by numbers that these are given: a disjoint-set forest with parities.
#[derive(Default, Debug)]
pub(super) struct Sides {
    links: Vec<Link>,
    /// Whether what was noted is contradictory, as in a symmetric matrix.
    is_symmetric: bool,
}

impl Sides {
    /// The number of a new tile.
    pub(super) fn add(&mut self) -> usize {
        let number = self.links.len();
        self.links.push(Link { to: number, is_opposite: false, size: 1, first: (number, false) });
        number
    }

    /// Takes note that two tiles are on opposite sides, or on the same.
    pub(super) fn note(&mut self, one: usize, other: usize, are_opposite: bool) {
        if self.is_symmetric {
            return;
        }
        let ((one, turned), (other, other_turned)) = (self.root(one), self.root(other));
        let is_opposite = are_opposite ^ turned ^ other_turned;
        if one == other {
            self.is_symmetric = is_opposite;
            return;
        }
        // The ways to a root stay short.
        let (small, large) = if self.links[one].size < self.links[other].size { (one, other) } else { (other, one) };
        let Link { size, first: (first, is_turned), .. } = self.links[small];
        (self.links[small].to, self.links[small].is_opposite) = (large, is_opposite);
        let root = &mut self.links[large];
        (root.size, root.first) = (root.size + size, root.first.min((first, is_turned ^ is_opposite)));
    }

    /// Whether a tile is opposite to the first one of those beside which its side is known.
    pub(super) fn is_opposite(&self, tile: usize) -> bool {
        let (root, is_opposite) = self.root(tile);
        !self.is_symmetric && is_opposite ^ self.links[root].first.1
    }

    /// The root of a tile, and whether the tile is opposite to it.
    fn root(&self, mut tile: usize) -> (usize, bool) {
        let mut is_opposite = false;
        while self.links[tile].to != tile {
            is_opposite ^= self.links[tile].is_opposite;
            tile = self.links[tile].to;
        }
        (tile, is_opposite)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn what_is_noted_holds(
            above in prop::collection::vec(any::<bool>(), 2..12),
            pairs in prop::collection::vec((any::<prop::sample::Index>(), any::<prop::sample::Index>()), 0..30),
        ) {
            let mut sides = Sides::default();
            above.iter().for_each(|_| _ = sides.add());
            let pairs: Vec<(usize, usize)> =
                pairs.iter().map(|(one, other)| (one.index(above.len()), other.index(above.len()))).collect();
            for (one, other) in pairs.iter().copied() {
                sides.note(one, other, above[one] != above[other]);
            }
            for (one, other) in pairs {
                let are_opposite = sides.is_opposite(one) != sides.is_opposite(other);
                prop_assert_eq!(are_opposite, above[one] != above[other]);
            }
        }
    }

    #[test]
    fn where_three_are_opposite_to_each_other_there_are_no_sides() {
        let mut sides = Sides::default();
        let [one, two, three] = [sides.add(), sides.add(), sides.add()];
        sides.note(one, two, true);
        sides.note(two, three, true);
        assert_eq!([one, two, three].map(|tile| sides.is_opposite(tile)), [false, true, false]);
        sides.note(three, one, true);
        assert_eq!([one, two, three].map(|tile| sides.is_opposite(tile)), [false; 3]);
    }
}

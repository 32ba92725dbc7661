//! The first problems of a text.

/// Problems with their places, of which the first [`MOST`](Earliest::MOST) are kept and the others counted. A damaged
/// file may have a problem in each of its lines.
#[derive(Clone, Debug)]
pub struct Earliest<T> {
    /// In the order of reports, or of places after [`sort`](Self::sort).
    kept: Vec<(usize, T)>,
    reported: usize,
}

impl<T> Earliest<T> {
    /// Maximum number of problems that are kept.
    pub const MOST: usize = 100;

    /// No problems.
    #[must_use]
    pub const fn new() -> Earliest<T> {
        Earliest { kept: Vec::new(), reported: 0 }
    }

    /// Adds the problem at byte `offset` of the text.
    pub fn report(&mut self, offset: usize, problem: T) {
        self.reported += 1;
        self.kept.push((offset, problem));
        if self.kept.len() > 2 * Earliest::<T>::MOST {
            self.sort();
        }
    }

    /// Whether nothing was reported.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.reported == 0
    }

    /// Number of problems reported, kept or not.
    #[must_use]
    pub fn reported(&self) -> usize {
        self.reported
    }

    /// The first problems in the order of their places, those of one place in the order of their reports; and the
    /// number of all others.
    #[must_use]
    pub fn take(mut self) -> (Vec<T>, usize) {
        self.sort();
        let more = self.reported - self.kept.len();
        (self.kept.into_iter().map(|(_, problem)| problem).collect(), more)
    }

    fn sort(&mut self) {
        self.kept.sort_by_key(|(offset, _)| *offset);
        self.kept.truncate(Earliest::<T>::MOST);
    }
}

impl<T> Default for Earliest<T> {
    fn default() -> Earliest<T> {
        Earliest::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_are_kept_whatever_the_order_of_reports() {
        let mut found = Earliest::new();
        (0..50_000).rev().for_each(|offset| found.report(offset, offset));
        assert!(found.kept.capacity() <= 4 * Earliest::<usize>::MOST, "the others take no memory");
        assert_eq!((found.reported(), found.is_empty()), (50_000, false));
        let (kept, more) = found.take();
        assert_eq!((kept, more), ((0..100).collect(), 49_900));
    }

    #[test]
    fn problems_of_one_place_keep_their_order() {
        let mut found = Earliest::default();
        [(3, "c"), (1, "a"), (1, "b")].into_iter().for_each(|(offset, problem)| found.report(offset, problem));
        assert_eq!(found.take(), (vec!["a", "b", "c"], 0));
    }
}

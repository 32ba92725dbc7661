//! A set of numbers that many threads read and few change.
//!
//! # Protocol
//!
//! Each number has a bit in a word of 64, and above the words is a *summary*: one bit for each word (for sets of more
//! than 4096 numbers, for each group of words) that may be nonzero. A reader looks at the summary first, so that an
//! empty set costs one load, and a set with few members costs little more, whatever its bound.
//!
//! *A member is always visible.* A summary bit that is set over an empty word costs a wasted read; one that is missing
//! over a member hides it, and a sleeping worker that nobody sees may sleep forever. Therefore a bit and its summary
//! bit are set under the lock of their group, and a summary bit is cleared under that lock, by a thread that found all
//! words below it empty. Removing a number takes no lock unless it was the last of its word.
//!
//! The module `models` beside this file explores every interleaving.

#[cfg(all(test, loom))]
mod models;

use crate::sync::{AtomicU64, Mutex, Ordering::*, lock};
use std::ops::Range;

/// A set of numbers below a bound, for instance of workers or children, that many threads read and few change: the
/// workers that sleep, or the children whose queues hold tasks.
///
/// Reading takes no lock, and takes time proportional to the number of members rather than to the bound.
///
/// ```
/// let sleeping = sched_core::SharedSet::new(1000);
/// assert!(sleeping.is_empty());
/// sleeping.insert(3);
/// sleeping.insert(900);
/// assert!(sleeping.contains(900));
/// assert_eq!(sleeping.iter().collect::<Vec<_>>(), [3, 900]);
/// assert_eq!(sleeping.words(1..16).collect::<Vec<_>>(), [(14, 1 << (900 - 14 * 64))]);
/// assert!(sleeping.remove(3));
/// assert!(!sleeping.remove(3), "only one caller removes a number");
/// ```
#[derive(Debug)]
pub struct SharedSet {
    /// Bit *g* is set if a word of group *g* has members; it may stay set after the last one is removed.
    summary: AtomicU64,
    /// Binary logarithm of the number of words in a group.
    shift: u32,
    words: Box<[Word]>,
}

/// Bits of 64 numbers, on a cache line of their own, so that changes in one word do not slow down readers of another.
#[derive(Debug)]
#[repr(align(64))]
struct Word {
    bits: AtomicU64,
    /// Lock for the group that begins at this word.
    changes: Mutex<()>,
}

impl SharedSet {
    /// Creates an empty set for numbers below `bound`.
    #[must_use]
    pub fn new(bound: usize) -> SharedSet {
        let count = bound.div_ceil(64);
        let word = || Word { bits: AtomicU64::new(0), changes: Mutex::new(()) };
        SharedSet {
            summary: AtomicU64::new(0),
            shift: count.div_ceil(64).next_power_of_two().trailing_zeros(),
            words: (0..count).map(|_| word()).collect(),
        }
    }

    /// Whether there are no members. One relaxed load: it orders nothing.
    #[inline]
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.summary.load(Relaxed) == 0
    }

    /// Whether `number` is a member.
    #[inline]
    #[must_use]
    pub fn contains(&self, number: u32) -> bool {
        let (word, bit) = place(number);
        self.words.get(word).is_some_and(|word| word.bits.load(SeqCst) & bit != 0)
    }

    /// Adds `number`.
    ///
    /// # Panics
    /// If it is not below the bound.
    pub fn insert(&self, number: u32) {
        let (word, bit) = place(number);
        let group = word >> self.shift;
        let _changes = lock(&self.words[group << self.shift].changes);
        self.words[word].bits.fetch_or(bit, SeqCst);
        self.summary.fetch_or(1 << group, SeqCst);
    }

    /// Removes `number`. Returns whether it was a member.
    pub fn remove(&self, number: u32) -> bool {
        let (word, bit) = place(number);
        let Some(of) = self.words.get(word) else { return false };
        let before = of.bits.fetch_and(!bit, SeqCst);
        if before == bit {
            self.settle(word >> self.shift);
        }
        before & bit != 0
    }

    /// Clears the summary bit of `group` if all its words are empty. Called when one of them became empty.
    fn settle(&self, group: usize) {
        let first = group << self.shift;
        let _changes = lock(&self.words[first].changes);
        let mut words = self.words[first..].iter().take(1 << self.shift);
        if words.all(|word| word.bits.load(SeqCst) == 0) {
            self.summary.fetch_and(!(1 << group), SeqCst);
        }
    }

    /// The words in `range` that have members: the index of each, and its bits. Bit *n* of word *m* stands for 64·*m* +
    /// *n*. Each word is read when the iterator reaches it.
    #[inline]
    pub fn words(&self, range: Range<usize>) -> impl Iterator<Item = (usize, u64)> {
        let range = range.start..range.end.min(self.words.len());
        let mut groups = match range.is_empty() {
            true => 0,
            false => {
                let (first, last) = (range.start >> self.shift, (range.end - 1) >> self.shift);
                self.summary.load(SeqCst) & (u64::MAX << first) & (u64::MAX >> (63 - last))
            }
        };
        let mut left = 0..0;
        std::iter::from_fn(move || {
            loop {
                for word in left.by_ref() {
                    let bits = self.words[word].bits.load(SeqCst);
                    if bits != 0 {
                        return Some((word, bits));
                    }
                }
                if groups == 0 {
                    return None;
                }
                let first = (groups.trailing_zeros() as usize) << self.shift;
                groups &= groups - 1;
                left = first.max(range.start)..(first + (1 << self.shift)).min(range.end);
            }
        })
    }

    /// Whether the set shares a member with the set given as `words`, whose words outside `range` are zero.
    #[inline]
    #[must_use]
    pub fn meets(&self, words: &[u64], range: Range<usize>) -> bool {
        self.words(range).any(|(word, bits)| words.get(word).is_some_and(|wanted| wanted & bits != 0))
    }

    /// The members, in order.
    pub fn iter(&self) -> impl Iterator<Item = u32> {
        self.words(0..self.words.len()).flat_map(|(word, mut left)| {
            std::iter::from_fn(move || {
                let bit = (left != 0).then(|| left.trailing_zeros())?;
                left &= left - 1;
                Some(word as u32 * 64 + bit)
            })
        })
    }
}

/// The word index of a number, and its bit there.
#[inline]
fn place(number: u32) -> (usize, u64) {
    ((number / 64) as usize, 1 << (number % 64))
}

//! Looks into a queue, and whether two of them were at the same time.

#[cfg(all(test, loom))]
mod models;

use crate::sync::{AtomicBool, AtomicU64, Ordering::*, fence};

/// Counts looks into a queue out of which tasks are sent on, and come back if they are refused.
///
/// Whoever looks while such a task is out does not find it, and must be told when it is back. Whoever looked before has
/// found it, and was refused as well; whoever looks later finds it: to tell them would wake workers in vain, with each
/// task that is refused. So a look is counted when it begins and when it ends, and who puts a task back asks whether
/// another look was under way since his own began.
///
/// The fences are a pair: one between the count and the look, the other between what is put back and the question. The
/// look finds what was put back, or the question finds the count.
#[derive(Debug)]
pub(crate) struct Looks {
    begun: AtomicU64,
    ended: AtomicU64,
    /// Whether a task was ever sent on.
    are_counted: AtomicBool,
}

/// A look that has begun.
#[derive(Debug)]
pub(crate) struct Look {
    /// Number of looks that had begun, this one included.
    number: u64,
    /// Whether all others had ended.
    was_alone: bool,
}

impl Looks {
    pub(crate) fn new() -> Looks {
        Looks { begun: AtomicU64::new(0), ended: AtomicU64::new(0), are_counted: AtomicBool::new(false) }
    }

    /// Whether looks must be counted. False only where what was not found is not out: who sends a task on has said so
    /// before he took it out.
    #[inline]
    pub(crate) fn are_counted(&self) -> bool {
        self.are_counted.load(Relaxed)
    }

    /// Begins a look after which tasks may be sent on.
    pub(crate) fn begin_to_send(&self) -> Look {
        if !self.are_counted() {
            self.are_counted.store(true, Relaxed);
        }
        self.begin()
    }

    /// Begins a look.
    pub(crate) fn begin(&self) -> Look {
        let ended = self.ended.load(Acquire);
        let begun = self.begun.fetch_add(1, AcqRel);
        fence(SeqCst);
        Look { number: begun + 1, was_alone: begun == ended }
    }

    /// Whether nobody else has looked since this look began. What was taken out is back before.
    pub(crate) fn is_alone(&self, look: &Look) -> bool {
        fence(SeqCst);
        look.was_alone && self.begun.load(Acquire) == look.number
    }

    /// Ends a look.
    pub(crate) fn end(&self, look: Look) {
        let Look { .. } = look;
        self.ended.fetch_add(1, Release);
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn a_look_is_alone_unless_another_one_is_under_way() {
        let looks = Looks::new();
        assert!(!looks.are_counted());
        let first = looks.begin_to_send();
        assert!(looks.are_counted() && looks.is_alone(&first));
        looks.end(first);
        let second = looks.begin();
        assert!(looks.is_alone(&second), "the first has ended");
        let third = looks.begin();
        assert!(!looks.is_alone(&second) && !looks.is_alone(&third), "they are at the same time");
        looks.end(third);
        assert!(!looks.is_alone(&second), "the other look may have been in vain");
    }
}

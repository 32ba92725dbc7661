//! What all ranks of a cluster know of tasks and data, since all of them see the same tasks in the same order: where a
//! task runs, who has a value, and who sends it to whom.
//!
//! The rules are those that `sched-cluster` goes by with real ranks. [`Shares`] applies them to a graph, for
//! simulations.

mod grid;
mod holders;
mod outbox;
mod shares;
#[cfg(test)]
mod tests;

pub use grid::Grid;
pub use holders::Holders;
pub use outbox::Outbox;
pub use shares::{Message, MessageId, Role, Share, Shares};

use crate::AccessMode;

/// The rank that runs a task with these accesses: the owner of the first datum that it writes, or else of the first
/// that it accesses, or else `by_turns`. Each access comes with the owner of the data.
///
/// ```
/// use sched_graph::AccessMode::{Read, ReadWrite};
/// use sched_graph::ranks::rank_of;
/// assert_eq!(rank_of([(Read, 0), (ReadWrite, 2), (ReadWrite, 1)], 7), 2);
/// assert_eq!((rank_of([(Read, 3)], 7), rank_of([], 7)), (3, 7));
/// ```
pub fn rank_of(accesses: impl IntoIterator<Item = (AccessMode, usize)>, by_turns: usize) -> usize {
    let mut first = None;
    for (mode, owner) in accesses {
        if mode.writes() {
            return owner;
        }
        first.get_or_insert(owner);
    }
    first.unwrap_or(by_turns)
}

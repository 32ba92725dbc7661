//! How messages get from one rank to another.

pub(crate) mod local;
#[cfg(feature = "mpi")]
pub(crate) mod mpi;

use std::time::Duration;

/// What a message belongs to, between two ranks: messages of one tag arrive in the order in which they were sent.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub(crate) struct Tag(pub(crate) u32);

impl Tag {
    /// Messages of the ranks themselves.
    pub(crate) const OWN: Tag = Tag(0);

    /// The reason why a rank sends no values any more.
    pub(crate) const STUCK: Tag = Tag(2);

    /// What ranks on which nothing moves tell each other.
    pub(crate) const QUIET: Tag = Tag(3);

    /// Why a rank has ended before the others.
    pub(crate) const ENDED: Tag = Tag(4);

    /// A rank sends nothing any more: its program has let go of the cluster. The last message of each rank.
    pub(crate) const LEFT: Tag = Tag(5);

    /// The tag of the datum with this index.
    pub(crate) fn of_datum(index: u32) -> Tag {
        Tag(2 * index + 6)
    }

    /// The tag under which the reason is sent why there is no value.
    pub(crate) fn of_failure(self) -> Tag {
        Tag(self.0 | 1)
    }

    /// The index of the datum whose value it stands for; `None` for other messages.
    pub(crate) fn datum(self) -> Option<u32> {
        (self.0 & 1 == 0).then(|| (self.0 / 2).checked_sub(3)).flatten()
    }

    /// Whether it is the tag of a value, or of the reason why there is none.
    pub(crate) fn is_of_value(self) -> bool {
        self.0 >= Tag::of_datum(0).0
    }

    /// Whether the message is a reason; and the tag of the datum.
    pub(crate) fn split(self) -> (bool, Tag) {
        (self.0 & 1 == 1, Tag(self.0 & !1))
    }
}

/// What is sent. It is dropped when its bytes are no longer needed.
pub(crate) trait Parcel: Send {
    /// Number of bytes.
    fn len(&self) -> usize {
        let mut len = 0;
        self.with(&mut |bytes| len = bytes.len());
        len
    }

    /// Calls `with` with the bytes. They stay where they are, unchanged, until the parcel is dropped.
    fn with(&self, with: &mut dyn FnMut(&[u8]));
}

impl Parcel for Vec<u8> {
    fn with(&self, with: &mut dyn FnMut(&[u8])) {
        with(self);
    }
}

/// A message that has arrived, and is still to be copied.
pub(crate) trait Arrived {
    /// Number of bytes.
    fn len(&self) -> usize;

    /// Copies the message to a place of this length.
    fn copy_to(&mut self, place: &mut [u8]);

    /// Takes the message, which nobody wants.
    fn discard(&mut self);

    /// A copy of the message.
    fn to_vec(&mut self) -> Vec<u8> {
        let mut bytes = vec![0; self.len()];
        self.copy_to(&mut bytes);
        bytes
    }
}

impl Arrived for Vec<u8> {
    fn len(&self) -> usize {
        self.len()
    }

    fn copy_to(&mut self, place: &mut [u8]) {
        place.copy_from_slice(self);
    }

    fn discard(&mut self) {
        self.clear();
    }
}

/// The connection of one rank to the others. One thread at a time uses it.
pub(crate) trait Transport: Send {
    /// Number of this rank.
    fn rank(&self) -> usize;

    /// Number of ranks.
    fn ranks(&self) -> usize;

    /// The largest tag.
    fn most_tag(&self) -> u32;

    /// Maximum number of bytes of a message.
    fn most_bytes(&self) -> u64;

    /// Begins to send.
    fn send(&mut self, to: usize, tag: Tag, parcel: Box<dyn Parcel>);

    /// Messages of this length may come: there is to be a place for those that nobody wants.
    fn expect(&mut self, bytes: usize);

    /// Looks once whether messages have been sent, and whether one has arrived. Returns whether anything happened.
    fn look(&mut self, deliver: &mut dyn FnMut(usize, Tag, &mut dyn Arrived)) -> bool;

    /// Number of messages that are being sent.
    fn sending(&self) -> usize;

    /// Number of those for one rank.
    fn sending_to(&self, rank: usize) -> usize;

    /// The longest time between two looks while messages are awaited; `None` if the one that sends a message sees to it
    /// that it is taken.
    fn patience(&self) -> Option<Duration>;
}

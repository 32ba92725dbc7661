//! A component's position in the tree during one call.

mod ends;
mod estimates;
mod hops;
mod neighbours;
mod prospect;
mod room;
mod routes;
mod submitted;
mod workers;

pub use prospect::Prospect;
pub use routes::{Passage, Route};
pub use submitted::{DataAccess, Stage, Submitted, SubmittedTask};

use crate::abi::extension::{HostLog, offered};
use crate::abi::wire::{NO_ID, RawNode, RawPlace};
use crate::estimate::Time;
use crate::workers::WorkerId;

/// A child of a component, numbered from 0.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Child(pub u32);

/// A parent of a component, numbered from 0.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Parent(pub u32);

/// Severity of a line in the host's log.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[repr(u32)]
pub enum LogLevel {
    /// Something is wrong.
    Error = 1,
    /// Something may be wrong.
    Warn = 2,
    /// Worth knowing.
    Info = 3,
    /// Details for debugging.
    Debug = 4,
}

/// A component's position in the tree during one call: its neighbours and the host's services.
///
/// Methods marked *hop* reach other components, which may call back: hold no lock then. All other methods are services
/// of the host and may be called while a lock is held.
#[derive(Clone, Copy)]
pub struct Node<'a> {
    raw: &'a RawNode,
}

impl<'a> Node<'a> {
    #[inline]
    pub(crate) fn new(raw: &'a RawNode) -> Node<'a> {
        Node { raw }
    }

    #[inline]
    fn place(&self) -> &RawPlace<'_> {
        self.raw.host().place()
    }

    /// Number of this node in its tree.
    #[inline]
    #[must_use]
    pub fn id(&self) -> u32 {
        self.place().id
    }

    /// Name of this node, unique in its tree: `fifo/eager/worker 3/fifo`.
    #[inline]
    #[must_use]
    pub fn path(&self) -> &str {
        self.place().path.as_str()
    }

    /// The topology object that this node stands for: `numa 1`, `worker 3`; empty when it stands for none.
    #[inline]
    #[must_use]
    pub fn topology_object(&self) -> &str {
        self.place().object.as_str()
    }

    /// The children, in order.
    #[inline]
    pub fn children(&self) -> impl DoubleEndedIterator<Item = Child> + ExactSizeIterator + use<> {
        (0..self.place().children).map(Child)
    }

    /// The parents, in order; none at the root.
    #[inline]
    pub fn parents(&self) -> impl DoubleEndedIterator<Item = Parent> + ExactSizeIterator + use<> {
        (0..self.place().parents).map(Parent)
    }

    /// The child in the slot of this name, where the component's [`Info`](crate::Info) declares slots.
    #[inline]
    #[must_use]
    pub fn slot(&self, name: &str) -> Option<Child> {
        self.children().find(|child| self.child_place(*child).is_some_and(|place| place.slot.as_str() == name))
    }

    #[inline]
    fn child_place(&self, child: Child) -> Option<&RawPlace<'_>> {
        self.raw.host().child_place(child.0).into_option()
    }

    /// The worker on whose behalf the call happens: the one that pulls, or the one whose finished task made this task
    /// ready. `None` when the application submits.
    #[inline]
    #[must_use]
    pub fn requester(&self) -> Option<WorkerId> {
        some_id(self.raw.host().requester(self.raw.call())).map(WorkerId)
    }

    /// The current time of the run.
    #[inline]
    #[must_use]
    pub fn now(&self) -> Time {
        Time::from_nanos(self.raw.host().now(self.raw.call()))
    }

    /// A 64-bit random number. The seed is derived from the run's seed and this node, so that a run can be repeated.
    #[inline]
    #[must_use]
    pub fn random(&self) -> u64 {
        self.raw.host().random(self.raw.call())
    }

    /// A random number in the half-open interval [0, 1).
    #[inline]
    #[must_use]
    pub fn random_unit(&self) -> f64 {
        (self.random() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// Writes a line to the host's log. (Since 1.1; an older host ignores it.)
    ///
    /// `sched` shows warnings and errors, and others on request (`--log LEVEL`): the same line of a node once, with a
    /// count at the end. So leave numbers that change out of warnings. In other programs the line is an event of the
    /// crate `tracing`.
    #[inline]
    pub fn log(&self, level: LogLevel, line: &str) {
        if let Some(table) = offered::<HostLog>(self.raw.host()) {
            (table.log)(self.raw.call(), self.id(), level as u32, line.into());
        }
    }
}

impl std::fmt::Debug for Node<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Node").field("id", &self.id()).field("path", &self.path()).finish_non_exhaustive()
    }
}

/// Number of children per query to the host.
const AT_ONCE: usize = 16;

/// Number of children queried at once where there are more.
const MANY_AT_ONCE: usize = 128;

/// Number of children queried at once where some may be passed over; it doubles as long as none are.
const SOME_AT_ONCE: usize = 32;

/// Queries the children in chunks: `ask` fills in the answers from a given child on, and `each` receives them in order.
#[inline]
fn in_chunks<T: Copy>(children: u32, unasked: T, ask: impl Fn(u32, &mut [T]), mut each: impl FnMut(Child, T)) {
    let each = |child, answer| {
        each(child, answer);
        0
    };
    // The storage is initialised in each call, so that of few children is small.
    if children as usize <= AT_ONCE {
        in_chunks_of::<T, AT_ONCE>(children, unasked, AT_ONCE, ask, each);
    } else {
        in_chunks_of::<T, MANY_AT_ONCE>(children, unasked, MANY_AT_ONCE, ask, each);
    }
}

/// [`in_chunks`] without some of the children: `each` returns how many it passes over.
#[inline]
fn some_in_chunks<T: Copy>(children: u32, unasked: T, ask: impl Fn(u32, &mut [T]), each: impl FnMut(Child, T) -> u32) {
    if children as usize <= AT_ONCE {
        in_chunks_of::<T, AT_ONCE>(children, unasked, AT_ONCE, ask, each);
    } else {
        in_chunks_of::<T, MANY_AT_ONCE>(children, unasked, SOME_AT_ONCE, ask, each);
    }
}

/// The first chunk after some were passed over is of `at_first` children.
#[inline]
fn in_chunks_of<T: Copy, const AT_ONCE: usize>(
    children: u32,
    unasked: T,
    at_first: usize,
    ask: impl Fn(u32, &mut [T]),
    mut each: impl FnMut(Child, T) -> u32,
) {
    let mut answers = [unasked; AT_ONCE];
    let (mut first, mut size) = (0_u32, at_first);
    while first < children {
        let count = ((children - first) as usize).min(size);
        let answers = &mut answers[..count];
        ask(first, answers);
        let mut at = 0;
        while let Some(answer) = answers.get(at) {
            let passed = each(Child(first + at as u32), *answer);
            at = at.saturating_add(1).saturating_add(passed as usize);
        }
        size = if at > count { at_first } else { (size * 2).min(AT_ONCE) };
        first = first.saturating_add(u32::try_from(at).unwrap_or(u32::MAX));
    }
}

fn some_id(id: u32) -> Option<u32> {
    (id != NO_ID).then_some(id)
}

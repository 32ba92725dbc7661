//! Which components have room, so that tasks are not pushed where they would be refused.

use super::{Child, Node};
use crate::abi::extension::{HostRoom, offered};

impl Node<'_> {
    /// Reports whether this component has room for a task, replacing the previous report: at first it has. Without room
    /// it would refuse *every* push as [`Full`](crate::Refusal::Full), so the host refuses for it, and for components
    /// above that [store nothing](crate::Info::forwards_push) and whose children all have no room. When there is room
    /// again, report that first, and then [tell the parents](Self::parents_can_push), whoever was refused.
    ///
    /// Call it under the lock that guards what is stored, so that reports come in the order of what they report; and
    /// only when the answer changes, since it costs as much as a few other services. No effect with an older host.
    /// (Since 1.1.)
    #[inline]
    pub fn note_room(&self, has_room: bool) {
        if let Some(table) = offered::<HostRoom>(self.raw.host()) {
            (table.note)(self.raw.call(), self.id(), has_room);
        }
    }

    /// Whether `child` may have room. False if it, or everything below it that could take a task, has
    /// [reported](Self::note_room) that there is none: then a push would be refused, and need not be tried. (Since 1.1;
    /// always true with an older host.)
    #[inline]
    #[must_use]
    pub fn child_has_room(&self, child: Child) -> bool {
        offered::<HostRoom>(self.raw.host()).is_none_or(|table| (table.of_child)(self.raw.call(), self.id(), child.0))
    }

    /// Whether [any child may have room](Self::child_has_room).
    #[inline]
    #[must_use]
    pub fn has_room_below(&self) -> bool {
        offered::<HostRoom>(self.raw.host()).is_none_or(|table| (table.below)(self.raw.call(), self.id()))
    }
}

//! What stands around a node, and the context that its tree serves.

use super::{Child, Node, Parent};
use crate::abi::extension::{HostNeighbours, offered};
use crate::abi::manifest::family_of;
use crate::info::Family;

impl Node<'_> {
    /// Name of the component of a child. `None` with a host older than 1.1.
    #[must_use]
    pub fn child_component(&self, child: Child) -> Option<&str> {
        let table = offered::<HostNeighbours>(self.raw.host())?;
        some_name((table.child)(self.raw.call(), self.id(), child.0).as_str())
    }

    /// Name of the component of a parent. `None` with a host older than 1.1.
    #[must_use]
    pub fn parent_component(&self, parent: Parent) -> Option<&str> {
        let table = offered::<HostNeighbours>(self.raw.host())?;
        some_name((table.parent)(self.raw.call(), self.id(), parent.0).as_str())
    }

    /// Family of the component of a child. `None` with a host older than 1.1.
    #[must_use]
    pub fn child_family(&self, child: Child) -> Option<Family> {
        let table = offered::<HostNeighbours>(self.raw.host())?;
        family_of((table.child_family)(self.raw.call(), self.id(), child.0))
    }

    /// Family of the component of a parent. `None` with a host older than 1.1.
    #[must_use]
    pub fn parent_family(&self, parent: Parent) -> Option<Family> {
        let table = offered::<HostNeighbours>(self.raw.host())?;
        family_of((table.parent_family)(self.raw.call(), self.id(), parent.0))
    }

    /// Name of the context whose tasks the tree schedules: `default`, or as the application calls it. `None` with a
    /// host older than 1.1.
    #[must_use]
    pub fn context(&self) -> Option<&str> {
        let table = offered::<HostNeighbours>(self.raw.host())?;
        some_name((table.context)(self.raw.call()).as_str())
    }

    /// What the application attached to the context for its components; empty if nothing. (With a host older than 1.1
    /// it is always empty.)
    #[must_use]
    pub fn context_data(&self) -> &[u8] {
        let table = offered::<HostNeighbours>(self.raw.host());
        table.map_or(&[], |table| (table.user_data)(self.raw.call()).as_slice())
    }
}

fn some_name(name: &str) -> Option<&str> {
    (!name.is_empty()).then_some(name)
}

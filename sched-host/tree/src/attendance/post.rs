//! What a noted call goes to.

use serde::Serialize;
use std::fmt;

/// What a noted call goes to: as the report of the call names it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
#[serde(untagged)]
#[non_exhaustive]
pub enum Post {
    /// A component.
    Component {
        /// The node, by its path in the tree; empty while the component is built.
        node: String,
        /// The component in it.
        component: String,
        /// The plugin it came from.
        plugin: String,
    },
    /// A driver of devices.
    Driver {
        /// Its name.
        driver: String,
        /// The plugin it came from.
        plugin: String,
    },
}

impl Post {
    /// A component of a plugin, at a node.
    pub(crate) fn component(node: impl Into<String>, component: impl Into<String>, plugin: impl Into<String>) -> Post {
        Post::Component { node: node.into(), component: component.into(), plugin: plugin.into() }
    }

    /// Whether it is a driver.
    #[must_use]
    pub fn is_driver(&self) -> bool {
        matches!(self, Post::Driver { .. })
    }

    /// What it is, in a word.
    #[must_use]
    pub fn noun(&self) -> &'static str {
        if self.is_driver() { "driver" } else { "component" }
    }

    /// What it is called, in parts: a report of a crash must not allocate.
    pub(super) fn parts(&self) -> [&str; 8] {
        let (noun, name, plugin, node) = match self {
            Post::Component { node, component, plugin } => (self.noun(), component, plugin, &**node),
            Post::Driver { driver, plugin } => (self.noun(), driver, plugin, ""),
        };
        // While a component is built, there is no node.
        let [at, end] = if node.is_empty() { ["", ""] } else { [", node `", "`"] };
        [noun, " `", name, "` of ", plugin, at, node, end]
    }
}

impl fmt::Display for Post {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.parts().into_iter().try_for_each(|part| f.write_str(part))
    }
}

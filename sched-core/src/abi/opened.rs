//! A plugin in whichever language, once its library is loaded.

use super::ComponentObject;
use super::c::CPlugin;
use super::root::{BuildFailure, Root};
use crate::info::ComponentInfo;
use crate::params::Params;

/// What a plugin exports.
#[derive(Clone, Copy)]
pub enum Opened {
    /// In Rust.
    Rust(&'static Root),
    /// In C.
    C(&'static CPlugin),
}

impl Opened {
    /// The descriptions of the components in the plugin.
    ///
    /// # Errors
    /// A line that says what panicked or was not understood.
    pub fn components(self) -> Result<Vec<ComponentInfo>, String> {
        match self {
            Opened::Rust(root) => root.components(),
            Opened::C(plugin) => Ok(plugin.components()),
        }
    }

    /// Builds the component of this name.
    ///
    /// # Errors
    /// The error of the constructor, or the message of its panic.
    pub fn build(self, name: &str, params: &Params) -> Result<ComponentObject, BuildFailure> {
        match self {
            Opened::Rust(root) => root.build(name, params),
            Opened::C(plugin) => plugin
                .build(name, params)
                .map_err(|error| BuildFailure { panicked: false, message: error.to_string().into() }),
        }
    }
}

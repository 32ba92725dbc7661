//! Components in C: what a library that is compiled with `msched.h` exports, and how the host calls it.
//!
//! A C plugin exports two constants: the [stamp](super::Stamp), and a [`RawPlugin`] that points to a table for each
//! component. No code of the plugin runs before a component is built. The host puts each component behind the same
//! stable object as one in Rust ([`WireComponent`](super::WireComponent)), and lends it a table of services in each
//! call. So trees, quarantine, the rig and the examination see no difference.
//!
//! # How the tables grow
//!
//! Both tables begin with their size, and later versions append to them. The host reads what both sides know of a
//! component's table; a function beyond its end is absent, as if it were null. A plugin looks at the size of the
//! services before it calls one of a later version. The layout of what is frozen is part of the stamp, as a hash that
//! the C compiler computes ([`layout_number`]).
//!
//! # What is checked
//!
//! C has no ownership, so the host keeps the set of tasks that each component holds (`held`). A task that a component
//! gives away, reads or changes must be among them; if it is not, the component is at fault and is taken out of the
//! tree. A pointer inside a handle is therefore never followed before it is known to be one that the host made. What
//! cannot be checked is memory: a component that writes where it should not, or that keeps a node beyond its call, can
//! damage the process.

mod bridge;
mod described;
mod held;
mod services;
mod tables;

pub use tables::{RawPlugin, layout_number};

use super::ComponentObject;
use crate::info::ComponentInfo;
use crate::params::{BuildError, Params};
use bridge::Bridge;
use described::Described;

/// Text of `msched.h`, which a component in C includes.
pub const HEADER: &str = include_str!("../../include/msched.h");

/// Name of the constant that a C plugin exports beside its stamp: a [`RawPlugin`].
pub const SYMBOL: &str = "SCHED_C_PLUGIN";

/// What the stamp of a C plugin names in the place of the [layout checker](super::stamp::LAYOUT_CHECKER).
pub const LAYOUTS: &str = "msched.h 1";

/// A C plugin whose tables were read.
#[derive(Debug)]
pub struct CPlugin {
    components: Vec<Described>,
}

impl CPlugin {
    /// Reads the tables of a plugin of this package.
    ///
    /// # Safety
    /// `raw` is the constant [`SYMBOL`] of a library whose stamp was [checked](super::Stamp::check) and that is never
    /// unloaded.
    ///
    /// # Errors
    /// All that keeps it from being used, in one line.
    pub unsafe fn open(raw: *const RawPlugin, package: &str) -> Result<&'static CPlugin, String> {
        // SAFETY: the caller guarantees what the symbol is, and the stamp that it is laid out as here.
        let components = unsafe { described::read(raw, package) }?;
        Ok(Box::leak(Box::new(CPlugin { components })))
    }

    /// The descriptions of its components.
    #[must_use]
    pub fn components(&self) -> Vec<ComponentInfo> {
        self.components.iter().map(|component| component.info.clone()).collect()
    }

    /// Builds the component of this name.
    ///
    /// # Errors
    /// The error of its `build`.
    pub fn build(&'static self, name: &str, params: &Params) -> Result<ComponentObject, BuildError> {
        let found = self.components.iter().find(|component| component.info.name == name);
        let described = found.ok_or_else(|| BuildError::new(format!("this plugin has no component `{name}`")))?;
        Bridge::build(described, params).map(super::object_of)
    }
}

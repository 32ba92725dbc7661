//! Everything that crosses the boundary between a plugin and the host, and nothing else.
//!
//! A component author never uses this module directly: [`Component`](crate::Component), [`Node`](crate::Node) and
//! [`export_components!`](crate::export_components) wrap it. A host uses it to load a plugin and to call the objects in
//! it.
//!
//! # How the interface grows
//!
//! Plugins outlive hosts and hosts outlive plugins, so the interface is **frozen for each ABI major**: [`Root`],
//! [`WireComponent`], [`WireHost`] and [`TaskHead`] never change while [`ABI_MAJOR`] stays the same, and the layouts of
//! all four are compared field by field when a plugin is loaded. (`abi_stable` lets a trait grow at its end, but then
//! accepts only a plugin that is *newer* than the host. A frozen interface is accepted in both directions.)
//!
//! Later minor versions add *extensions*, which are discovered: each side offers [extensions](extension) by name, asks
//! for those it knows, and works without those it does not get. A new plugin in an old host gets `None` where it asks
//! for a missing host service; a new host does not ask an old plugin for what it cannot do. An extension is itself
//! frozen under its name: a change requires a new name. Where both sides know a name, their layouts are compared when
//! the plugin is loaded.
//!
//! Components in C have tables of their own, which begin with their size; see [`c`].

pub mod c;
pub mod component;
pub mod driver;
pub mod extension;
#[cfg(feature = "rig")]
pub(crate) mod fake;
pub(crate) mod fetch;
pub mod host;
pub mod manifest;
mod opened;
pub mod root;
pub mod stamp;
pub mod task;
pub mod wire;

pub use component::{WireComponent, WireComponent_TO, object_of};
pub use host::{WireHost, WireHost_TO};
pub use opened::Opened;
pub use root::Root;
pub use stamp::Stamp;
pub use task::{RawTask, TaskHead};

/// The stable strings, slices and options used in calls, re-exported so that a host needs no dependency on
/// `abi_stable`.
pub use abi_stable::std_types;

/// The owned stable object of one component.
pub type ComponentObject = WireComponent_TO<abi_stable::std_types::RBox<()>>;

/// The borrowed stable object of the host, as one node of a tree sees it.
pub type HostObject<'a> = WireHost_TO<'a, abi_stable::RRef<'a, ()>>;

/// Plugins and hosts of different majors do not work together.
pub const ABI_MAJOR: u32 = 1;

/// Later minors add [extensions](extension), which both sides can work without.
pub const ABI_MINOR: u32 = 1;

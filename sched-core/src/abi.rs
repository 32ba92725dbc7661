//! Everything that crosses the edge between a plugin and the host, and nothing else.
//!
//! A component author never names this module: [`Component`](crate::Component), [`Node`](crate::Node) and
//! [`export_components!`](crate::export_components) stand in front of it. A host names it to load a plugin and to drive
//! the objects in it.
//!
//! # How the boundary grows
//!
//! Plugins outlive hosts and hosts outlive plugins, so an interface is **frozen for each ABI major**: [`Root`],
//! [`WireComponent`], [`WireHost`] and [`TaskHead`] never change while [`ABI_MAJOR`] stays the same, and the layout of
//! all four is compared field by field when a plugin is loaded. (`abi_stable` lets a trait grow at its end, but only
//! accepts a plugin that is *newer* than the host. A frozen interface is accepted in both directions.)
//!
//! What a later minor version adds is *discovered*: each side offers [extensions](extension) by name, asks for those it
//! knows, and does without those it is not given. A new plugin in an old host gets `None` where it asks for a host
//! service that the host does not have; an old plugin in a new host is not asked for what it cannot do. An extension is
//! itself frozen under its name: a change is a new name. Where both sides know a name, their layouts are compared when
//! the plugin is loaded.

pub mod component;
pub mod extension;
#[cfg(feature = "rig")]
pub(crate) mod fake;
pub(crate) mod fetch;
pub mod host;
pub mod manifest;
pub mod root;
pub mod stamp;
pub mod task;
pub mod wire;

pub use component::{WireComponent, WireComponent_TO};
pub use host::{WireHost, WireHost_TO};
pub use root::Root;
pub use stamp::Stamp;
pub use task::{RawTask, TaskHead};

/// The stable strings, slices and options of the calls, so that a host needs no other name for them.
pub use abi_stable::std_types;

/// The owned stable object of one component.
pub type ComponentObject = WireComponent_TO<abi_stable::std_types::RBox<()>>;

/// The borrowed stable object of the host, as one node of a tree sees it.
pub type HostObject<'a> = WireHost_TO<'a, abi_stable::RRef<'a, ()>>;

/// Plugins and hosts of different majors do not work together.
pub const ABI_MAJOR: u32 = 1;

/// Later minors add [extensions](extension), which both sides can do without.
pub const ABI_MINOR: u32 = 1;

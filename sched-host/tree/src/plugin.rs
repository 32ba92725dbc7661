//! Plugins: where they are looked for, how one is loaded, and what all of them offer.
//!
//! A plugin is a shared library made with [`sched_core::export_components!`]. [`Registry::load`] looks through the
//! folders of a [`SearchPath`] in order, and takes each file through the same steps, of which each can fail with an error
//! of its own: its segments lie inside the file → it has a stamp → the stamp fits this host → the loader maps it → the
//! layouts of its types agree → its manifest is understood. A file that fails never keeps another from loading, and all
//! of them, good and bad, are listed in [`Registry::files`].
//!
//! The stamp is read from the file, so a library that was built for another interface, or with `panic = "abort"`, never
//! runs an instruction. This guards against accidents, not against malice: a plugin runs with all rights of the process.
//!
//! Libraries are never unloaded. A new build of a plugin must lie under a new path to be seen by a process that has
//! loaded the old one.
//!
//! ```
//! use sched_tree::plugin::{Registry, SearchPath};
//!
//! let registry = Registry::load(&SearchPath::default_for_executable());
//! for file in registry.files() {
//!     println!("{}", file.path.display());
//! }
//! assert!(registry.component("no-such-component").is_none());
//! ```

mod elf;
mod error;
mod load;
mod manifest;
mod registry;
mod search;

pub use error::{ComponentError, ConstructError, LoadError, LoadErrorKind};
pub use registry::{
    ComponentState, FileReport, FileState, FolderReport, FolderState, ListedComponent, LoadedPlugin, PluginId,
    Registered, Registry,
};
pub use search::{Origin, PLUGIN_PATH_VARIABLE, SearchFolder, SearchPath};

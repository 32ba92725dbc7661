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
//! # Which component has a name
//!
//! Beside plugins there are the components that are compiled into the program: the stock components, where the feature `stock`
//! is on (by default), and what the program [adds](Registry::add_builtin). Several may offer a component of one name:
//!
//! 1. Components of one name that state the same [package](sched_core::Info::package) are one component. The first in the
//!    search path is used; it *hides* the others, and the one that is compiled in. So a stock plugin beside the program is used
//!    in the place of what is compiled in. A plugin of somebody else does not state the package of the stock components,
//!    not even if its author copied their source: `env!("CARGO_PKG_NAME")` is the name of the package that is built.
//! 2. The name of a stock component belongs to the stock components. If a plugin offers another component of that name, a
//!    policy that names it is not used, and the error names both, until the user chooses one: with
//!    [`override`](sched_policy::Override) in the policy, or for all policies with [`RegistryBuilder::overriding`] (`--override`).
//! 3. Any other name belongs to the plugin that comes first in the search path. That component of a later plugin is rejected, while
//!    the rest of that plugin can be used. An override chooses another one.
//! 4. [`RegistryBuilder::without_builtin`] (`--no-builtin`) refuses the stock components that are compiled in. Their names still
//!    belong to them: plugin files of the stock components are used, those of others have to be chosen.
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

mod builder;
mod copy;
mod elf;
mod error;
mod listing;
mod load;
mod manifest;
mod registered;
mod registry;
mod search;
mod smoke;
mod trial;

pub use builder::{RegistryBuilder, RegistryError};
pub use copy::IN_PLACE_VARIABLE;
pub use error::{ComponentError, ConstructError, LoadError, LoadErrorKind};
pub use listing::{
    CompiledIn, ComponentState, FileReport, FileState, FolderReport, FolderState, ListedComponent, LoadedPlugin,
    PluginId,
};
pub use registered::Registered;
pub use registry::Registry;
pub use search::{Origin, PLUGIN_PATH_VARIABLE, SearchFolder, SearchPath};

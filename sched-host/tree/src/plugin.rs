//! Plugins: their search path, how one is loaded, and what they offer.
//!
//! A plugin is a shared library made with [`sched_core::export_components!`] or [`sched_core::export_driver!`].
//! [`Registry::load`] searches the folders of a [`SearchPath`] in order, and takes each file through the same steps, each of which can fail with its own error:
//! its segments are inside the file → it has a stamp → the stamp fits this host → a child process survives loading it
//! and using its components a little → the loader maps it → the layouts of its types agree → its manifest is
//! understood. A file that fails never keeps another from loading, and all files, good and bad, are listed in
//! [`Registry::files`].
//!
//! The stamp is read from the file, so a library built for another interface, or with `panic = "abort"`, never runs an
//! instruction. This guards against accidents, not against malice: a plugin has all rights of the process.
//!
//! # Component names
//!
//! Besides plugins there are components compiled into the program: the stock components, with the feature `stock` (on
//! by default), and components that the program [adds](Registry::add_builtin). Several may offer a component of one
//! name:
//!
//! 1. Components of one name that state the same [package](sched_core::Info::package) are one component. The first in
//!    the search path is used; it *hides* the others, including the compiled-in one. So a stock plugin beside the
//!    program replaces the compiled-in component. A third-party plugin does not state the package of the stock
//!    components, even if its author copied their source: `env!("CARGO_PKG_NAME")` is the name of the package that is
//!    built.
//! 2. The name of a stock component belongs to the stock components. If a plugin offers another component of that name,
//!    a policy that names it is rejected with an error that names both, until the user chooses one: with
//!    [`override`](sched_policy::Override) in the policy, or for all policies with [`RegistryBuilder::overriding`]
//!    (`--override`).
//! 3. Any other name belongs to the first plugin in the search path. A component of that name in a later plugin is
//!    rejected; the rest of that plugin can be used. An override chooses another one.
//! 4. [`RegistryBuilder::without_builtin`] (`--no-builtin`) excludes the compiled-in stock components. Their names
//!    still belong to them: plugin files of the stock components are used, others have to be chosen.
//!
//! # Builds
//!
//! The loader maps a private copy in memory (unless [`IN_PLACE_VARIABLE`] is set, or the library needs its own folder),
//! so a file may be overwritten while its components are in use. [`Registry::rescan`] loads what is new beside what is
//! there; libraries are never unloaded. A child process tries each new content once: that it passed is noted in the
//! user's cache directory (`$XDG_CACHE_HOME/sched/trials`, by the content's hash).
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
mod change;
mod copy;
mod driver;
mod elf;
mod endings;
mod error;
mod listing;
mod load;
mod manifest;
mod reach;
mod registered;
mod registry;
mod search;
mod smoke;
mod trial;
mod verdict;

pub use builder::{RegistryBuilder, RegistryError};
pub use change::PluginChange;
pub use copy::IN_PLACE_VARIABLE;
pub use driver::{DriverProblem, OpenDriver, RegisteredDriver};
pub use error::{ComponentError, ConstructError, LoadError, LoadErrorKind};
pub use listing::{
    CompiledIn, ComponentState, FileReport, FileState, FolderReport, FolderState, ListedComponent, LoadedPlugin,
    PluginId,
};
pub use registered::Registered;
pub use registry::Registry;
pub use search::{Origin, PLUGIN_PATH_VARIABLE, SearchFolder, SearchPath};
pub use trial::set_trial_patience;

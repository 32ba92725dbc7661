//! Listing of searched folders, files and packages.

use super::error::{ComponentError, LoadError, LoadErrorKind};
use super::search::SearchFolder;
use sched_core::ComponentInfo;
use sched_core::abi::driver::DriverSummary;
use std::fmt;
use std::path::PathBuf;

/// Identity of a plugin.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PluginId {
    /// Name of the package that it was built from.
    pub package: String,
    /// Version of that package; empty for compiled-in components.
    pub version: String,
    /// The file; `None` for compiled-in components.
    pub path: Option<PathBuf>,
}

impl fmt::Display for PluginId {
    /// The file, or the package if there is no file.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.path {
            Some(path) => path.display().fmt(f),
            None => f.write_str(&self.package),
        }
    }
}

/// A folder of the search path, with the result of its search.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FolderReport {
    /// The folder, with the reason of the search.
    pub folder: SearchFolder,
    /// Result of the search.
    pub state: FolderState,
}

/// Result of the search of a folder.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum FolderState {
    /// It was searched.
    Searched,
    /// The search has already visited it, under this or another name.
    AlreadySearched,
    /// There is no such folder. Reported if `Origin::is_asked_for`.
    Missing,
    /// The system does not allow reading it.
    Unreadable(String),
}

/// A file that the search found, with the result.
#[derive(Clone, Debug)]
pub struct FileReport {
    /// The file, in the folder as it was named.
    pub path: PathBuf,
    /// Index of its folder in [`Registry::folders`](super::Registry::folders).
    pub folder: usize,
    /// Result for the file.
    pub state: FileState,
}

/// Result for a file.
#[derive(Clone, Debug)]
pub enum FileState {
    /// It is a plugin, and loaded.
    Loaded(LoadedPlugin),
    /// It is not loaded.
    Rejected(LoadError),
    /// It is in the executable's own folder, where other libraries are expected, and is no plugin.
    NotAPlugin(LoadErrorKind),
    /// The same file as this earlier one.
    AlreadySeen(PathBuf),
}

/// A loaded plugin.
#[derive(Clone, Debug)]
pub struct LoadedPlugin {
    /// Its identity.
    pub id: PluginId,
    /// Hash of the file's content, which tells builds apart.
    pub content: u128,
    /// Version of the interface that it was built against.
    pub abi: (u32, u32),
    /// Components that it offers.
    pub components: Vec<ListedComponent>,
    /// The device driver that it offers.
    pub driver: Option<DriverSummary>,
    /// Omissions of its manifest that operators should know, one line each.
    pub warnings: Vec<String>,
}

/// One component in a plugin's manifest.
#[derive(Clone, Debug)]
pub struct ListedComponent {
    /// Its description.
    pub info: ComponentInfo,
    /// Whether it can be used.
    pub state: ComponentState,
    /// Other providers of a component of its name, which it hides: plugins, or compiled-in packages.
    pub hides: Vec<String>,
}

/// Status of a component.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ComponentState {
    /// It is used: [`Registry::component`](super::Registry::component) returns it.
    Usable,
    /// Another component of its name replaces it, by the rules of [`plugin`](crate::plugin) or by choice of the user:
    /// that of this plugin or compiled-in package.
    Hidden(String),
    /// It cannot be used, for each of these reasons.
    Rejected(Vec<ComponentError>),
}

/// Components that are compiled into the program.
#[derive(Clone, Debug)]
pub struct CompiledIn {
    /// The package that they come from.
    pub id: PluginId,
    /// Whether the user excludes them.
    pub refused: bool,
    /// Components that it offers.
    pub components: Vec<ListedComponent>,
}

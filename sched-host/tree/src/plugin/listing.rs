//! What was looked at, and what each file and package offers.

use super::error::{ComponentError, LoadError, LoadErrorKind};
use super::search::SearchFolder;
use sched_core::ComponentInfo;
use std::fmt;
use std::path::PathBuf;

/// Which plugin is meant.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PluginId {
    /// Name of the package that it was built from.
    pub package: String,
    /// Version of that package; empty for components that are compiled in.
    pub version: String,
    /// The file; `None` for components that are compiled in.
    pub path: Option<PathBuf>,
}

impl fmt::Display for PluginId {
    /// The file, or the package where there is none.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.path {
            Some(path) => path.display().fmt(f),
            None => f.write_str(&self.package),
        }
    }
}

/// A folder of the search path and what came of it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FolderReport {
    /// The folder, and why it was searched.
    pub folder: SearchFolder,
    /// What came of it.
    pub state: FolderState,
}

/// What came of the search in a folder.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum FolderState {
    /// It was searched.
    Searched,
    /// The search came by here before, under this or another name.
    AlreadySearched,
    /// There is no such folder. Worth a word where `Origin::is_asked_for`.
    Missing,
    /// The system does not let it be read.
    Unreadable(String),
}

/// A file that the search came to, and what came of it.
#[derive(Clone, Debug)]
pub struct FileReport {
    /// The file, in the folder as it was named.
    pub path: PathBuf,
    /// Index into [`Registry::folders`](super::Registry::folders) of the folder that it lies in.
    pub folder: usize,
    /// What came of it.
    pub state: FileState,
}

/// What came of a file.
#[derive(Clone, Debug)]
pub enum FileState {
    /// It is a plugin, and it is loaded.
    Loaded(LoadedPlugin),
    /// It is not loaded.
    Rejected(LoadError),
    /// It lies in the executable's own folder, where other files of this ending may well lie, and it is none of ours.
    NotAPlugin(LoadErrorKind),
    /// The same file as this earlier one.
    AlreadySeen(PathBuf),
}

/// A plugin that is loaded.
#[derive(Clone, Debug)]
pub struct LoadedPlugin {
    /// Which plugin it is.
    pub id: PluginId,
    /// Version of the interface that it was built against.
    pub abi: (u32, u32),
    /// What it offers.
    pub components: Vec<ListedComponent>,
    /// What an operator would miss in its manifest, a line each.
    pub warnings: Vec<String>,
}

/// One component in a plugin's manifest.
#[derive(Clone, Debug)]
pub struct ListedComponent {
    /// What the plugin says of it.
    pub info: ComponentInfo,
    /// Whether it can be used.
    pub state: ComponentState,
    /// What else offers a component of its name and is hidden by it: plugins, or packages that are compiled in.
    pub hides: Vec<String>,
}

/// Whether a component can be used.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ComponentState {
    /// [`Registry::component`](super::Registry::component) gives it.
    Usable,
    /// Another one of its name is used in its place, as the rules of [`plugin`](crate::plugin) or the user say: the one of
    /// this plugin, or of this package that is compiled in.
    Hidden(String),
    /// It cannot be used, for each of these reasons.
    Rejected(Vec<ComponentError>),
}

/// Components that are compiled into the program.
#[derive(Clone, Debug)]
pub struct CompiledIn {
    /// The package that they come from.
    pub id: PluginId,
    /// Whether the user refuses them.
    pub refused: bool,
    /// What it offers.
    pub components: Vec<ListedComponent>,
}

//! What was found, and the components by name.

use super::error::{ComponentError, ConstructError, LoadError, LoadErrorKind};
use super::search::{Origin, SearchFolder, SearchPath, libraries_in};
use super::{load, manifest};
use sched_core::abi::ComponentObject;
use sched_core::abi::root::Root;
use sched_core::{ComponentInfo, Offer, Params};
use sched_policy::Catalogue;
use std::any::Any;
use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::Arc;

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
    /// There is no such folder. Worth a word where [`Origin::is_asked_for`].
    Missing,
    /// The system does not let it be read.
    Unreadable(String),
}

/// A file that the search came to, and what came of it.
#[derive(Clone, Debug)]
pub struct FileReport {
    /// The file, in the folder as it was named.
    pub path: PathBuf,
    /// Index into [`Registry::folders`] of the folder that it lies in.
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
}

/// Whether a component can be used.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ComponentState {
    /// [`Registry::component`] gives it.
    Usable,
    /// It cannot be used, for each of these reasons.
    Rejected(Vec<ComponentError>),
}

/// A component that a policy can name.
#[derive(Debug)]
pub struct Registered {
    info: ComponentInfo,
    plugin: Arc<PluginId>,
    maker: Maker,
}

/// Whoever builds a component.
enum Maker {
    Plugin(&'static Root),
    BuiltIn(Offer),
}

impl fmt::Debug for Maker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Maker::Plugin(_) => "Plugin",
            Maker::BuiltIn(_) => "BuiltIn",
        })
    }
}

impl Registered {
    /// What it is.
    #[must_use]
    pub fn info(&self) -> &ComponentInfo {
        &self.info
    }

    /// The plugin that offers it.
    #[must_use]
    pub fn plugin(&self) -> &PluginId {
        &self.plugin
    }

    /// Makes one. Parameters that `params` does not set have their defaults.
    ///
    /// # Errors
    /// A value that does not fit its parameter, a parameter that the component does not have, and what the component's
    /// constructor says, be it in a panic.
    pub fn build(&self, params: &Params) -> Result<ComponentObject, ConstructError> {
        let params = self.complete(params)?;
        let component = || self.info.name.clone();
        let plugin = || self.plugin.to_string();
        let refused = |message| ConstructError::Refused { component: component(), plugin: plugin(), message };
        let panicked = |message| ConstructError::Panicked { component: component(), plugin: plugin(), message };
        match &self.maker {
            Maker::Plugin(root) => root.build(&self.info.name, &params).map_err(|failure| {
                let message = failure.message.to_string();
                if failure.panicked { panicked(message) } else { refused(message) }
            }),
            Maker::BuiltIn(offer) => match catch_unwind(AssertUnwindSafe(|| offer.build(&params))) {
                Ok(built) => built.map_err(|error| refused(error.to_string())),
                Err(payload) => Err(panicked(panic_text(&*payload))),
            },
        }
    }

    /// Every parameter, set or default, as its declaration wants it.
    fn complete(&self, given: &Params) -> Result<Params, ConstructError> {
        let mut complete =
            Params::from_values(self.info.params.iter().map(|param| (param.name.clone(), param.default.clone())));
        for (name, value) in given.iter() {
            let component = || self.info.name.clone();
            let param = self
                .info
                .param(name)
                .ok_or_else(|| ConstructError::UnknownParam { component: component(), param: name.to_owned() })?;
            let fitting = value.clone().coerce(&param.kind).ok_or_else(|| ConstructError::Value {
                component: component(),
                param: name.to_owned(),
                found: value.to_string(),
                expected: param.kind.to_string(),
            })?;
            complete.set(name, fitting);
        }
        Ok(complete)
    }
}

fn panic_text(payload: &(dyn Any + Send)) -> String {
    let text = payload.downcast_ref::<&str>().map(ToString::to_string);
    text.or_else(|| payload.downcast_ref::<String>().cloned()).unwrap_or_else(|| "a panic without a message".to_owned())
}

/// The plugins that were found, and the components that they offer.
///
/// A name belongs to the plugin that comes first in the search path; that component of a later plugin is rejected, while
/// the rest of that plugin can be used. So a folder that is named first can replace a stock component.
#[derive(Debug, Default)]
pub struct Registry {
    folders: Vec<FolderReport>,
    files: Vec<FileReport>,
    components: BTreeMap<String, Registered>,
}

/// A file's device and number on it: the same for each name of the file.
type FileId = (u64, u64);

impl Registry {
    /// No plugins.
    #[must_use]
    pub fn empty() -> Registry {
        Registry::default()
    }

    /// Looks through the folders in order and loads what is there. Whatever goes wrong is in [`files`](Self::files) and
    /// [`folders`](Self::folders).
    #[must_use]
    pub fn load(path: &SearchPath) -> Registry {
        let mut registry = Registry::empty();
        let mut seen_folders = Vec::new();
        let mut seen_files = HashMap::new();
        for folder in path.folders() {
            let listed = match identity(&folder.path) {
                Ok(id) if seen_folders.contains(&id) => Err(FolderState::AlreadySearched),
                Ok(id) => {
                    seen_folders.push(id);
                    libraries_in(&folder.path).map_err(|error| FolderState::Unreadable(error.to_string()))
                }
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => Err(FolderState::Missing),
                Err(error) => Err(FolderState::Unreadable(error.to_string())),
            };
            let (files, state) = match listed {
                Ok(files) => (files, FolderState::Searched),
                Err(state) => (Vec::new(), state),
            };
            let index = registry.folders.len();
            registry.folders.push(FolderReport { folder: folder.clone(), state });
            for file in files {
                let state = registry.load_file(&file, folder.origin, &mut seen_files);
                registry.files.push(FileReport { path: file, folder: index, state });
            }
        }
        registry
    }

    fn load_file(&mut self, path: &Path, origin: Origin, seen: &mut HashMap<FileId, PathBuf>) -> FileState {
        let reject = |kind: LoadErrorKind| {
            if origin == Origin::ExecutableFolder && kind.is_no_plugin() {
                FileState::NotAPlugin(kind)
            } else {
                FileState::Rejected(LoadError { path: path.to_owned(), kind })
            }
        };
        let unreadable = |error: std::io::Error| LoadErrorKind::Unreadable(error.to_string());
        let id = match identity(path) {
            Ok(id) => id,
            Err(error) => return reject(unreadable(error)),
        };
        if let Some(first) = seen.get(&id) {
            return FileState::AlreadySeen(first.clone());
        }
        seen.insert(id, path.to_owned());
        match fs::canonicalize(path).map_err(unreadable).and_then(|real| load::load(&real)) {
            Ok(loaded) => FileState::Loaded(self.register(path, loaded)),
            Err(kind) => reject(kind),
        }
    }

    fn register(&mut self, path: &Path, loaded: load::Loaded) -> LoadedPlugin {
        let (package, version) = loaded.stamp.package();
        let id = PluginId { package, version, path: Some(path.to_owned()) };
        let shared = Arc::new(id.clone());
        let warnings = loaded.components.iter().flat_map(manifest::warnings).collect();
        let components = loaded.components.into_iter().map(|info| {
            let state = match self.add(info.clone(), &shared, Maker::Plugin(loaded.root)) {
                Ok(()) => ComponentState::Usable,
                Err(errors) => ComponentState::Rejected(errors),
            };
            ListedComponent { info, state }
        });
        let components = components.collect();
        LoadedPlugin { id, abi: (loaded.stamp.abi_major, loaded.stamp.abi_minor), components, warnings }
    }

    /// Adds components that are compiled into this program, after those that are there.
    ///
    /// # Errors
    /// Those that cannot be used, and why; the others are added.
    pub fn add_builtin(&mut self, package: &str, offers: Vec<Offer>) -> Result<(), Vec<ComponentError>> {
        let id = Arc::new(PluginId { package: package.to_owned(), version: String::new(), path: None });
        let mut errors = Vec::new();
        for offer in offers {
            if let Err(found) = self.add(offer.info().describe(), &id, Maker::BuiltIn(offer)) {
                errors.extend(found);
            }
        }
        if errors.is_empty() { Ok(()) } else { Err(errors) }
    }

    fn add(&mut self, info: ComponentInfo, plugin: &Arc<PluginId>, maker: Maker) -> Result<(), Vec<ComponentError>> {
        let described =
            |fault| ComponentError::Described { component: info.name.clone(), plugin: plugin.to_string(), fault };
        let mut errors: Vec<ComponentError> = manifest::faults(&info).into_iter().map(described).collect();
        match self.components.get(&info.name) {
            Some(first) if first.plugin == *plugin => {
                errors.push(described("the plugin has an earlier component of this name".to_owned()));
            }
            Some(first) => errors.push(ComponentError::NameTaken {
                component: info.name.clone(),
                plugin: plugin.to_string(),
                first: first.plugin.to_string(),
            }),
            None => {}
        }
        if !errors.is_empty() {
            return Err(errors);
        }
        self.components.insert(info.name.clone(), Registered { info, plugin: Arc::clone(plugin), maker });
        Ok(())
    }

    /// The folders that were searched, in order.
    #[must_use]
    pub fn folders(&self) -> &[FolderReport] {
        &self.folders
    }

    /// Every file that was looked at, in search order, with what came of it.
    #[must_use]
    pub fn files(&self) -> &[FileReport] {
        &self.files
    }

    /// The files that are not loaded and should be.
    pub fn rejected(&self) -> impl Iterator<Item = &LoadError> {
        self.files.iter().filter_map(|file| match &file.state {
            FileState::Rejected(error) => Some(error),
            _ => None,
        })
    }

    /// The component of this name.
    #[must_use]
    pub fn component(&self, name: &str) -> Option<&Registered> {
        self.components.get(name)
    }

    /// All components that can be used, by name.
    pub fn components(&self) -> impl Iterator<Item = &Registered> {
        self.components.values()
    }

    /// What policies can be made of.
    #[must_use]
    pub fn catalogue(&self) -> Catalogue {
        let components = self.components().map(|component| (component.info.clone(), component.plugin.package.clone()));
        let places = self.folders.iter().map(|FolderReport { folder, state }| {
            let path = folder.path.display();
            match state {
                FolderState::Missing if folder.origin.is_asked_for() => format!("{path} (there is no such folder)"),
                FolderState::Unreadable(why) => format!("{path} (cannot be read: {why})"),
                _ => path.to_string(),
            }
        });
        let rejected = self.files.iter().flat_map(|file| match &file.state {
            FileState::Rejected(error) => vec![error.to_string()],
            FileState::Loaded(plugin) => self.missed_of(plugin),
            _ => Vec::new(),
        });
        Catalogue::new(components).looked_at(places).not_loaded(rejected)
    }

    /// Why components of a plugin cannot be used, where no other plugin has them.
    fn missed_of(&self, plugin: &LoadedPlugin) -> Vec<String> {
        let missed = plugin.components.iter().filter(|listed| !self.components.contains_key(&listed.info.name));
        let reasons = missed.flat_map(|listed| match &listed.state {
            ComponentState::Rejected(errors) => errors.as_slice(),
            ComponentState::Usable => &[],
        });
        reasons.map(ToString::to_string).collect()
    }
}

fn identity(path: &Path) -> std::io::Result<FileId> {
    fs::metadata(path).map(|metadata| (metadata.dev(), metadata.ino()))
}

//! Available components by name.

use super::driver::{FoundDriver, RegisteredDriver};
use super::error::{ComponentError, LoadError, LoadErrorKind};
use super::listing::{
    CompiledIn, ComponentState, FileReport, FileState, FolderReport, FolderState, ListedComponent, LoadedPlugin,
    PluginId,
};
use super::registered::{Maker, Registered};
use super::search::{Origin, SearchFolder, SearchPath, libraries_in};
use super::{load, manifest};
use sched_core::abi::driver::DriverHandle;
use sched_core::driver::Driver;
use sched_core::{ComponentInfo, Offer};
use sched_policy::{Audience, Catalogue, Offers, Override, Stock};
use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The available components: those of plugins, and those that are compiled in.
///
/// [`plugin`](crate::plugin) describes which of several components has a name.
#[derive(Debug, Default)]
pub struct Registry {
    folders: Vec<FolderReport>,
    files: Vec<FileReport>,
    compiled_in: Vec<CompiledIn>,
    components: BTreeMap<String, Named>,
    drivers: Vec<RegisteredDriver>,
    pub(super) overrides: Vec<Override>,
    pub(super) audience: Audience,
    recipe: Recipe,
}

/// What a registry is made from.
#[derive(Clone, Debug, Default)]
struct Recipe {
    path: SearchPath,
    /// The one file, in the place of a path.
    file: Option<PathBuf>,
    /// Whether the stock components are refused, if they are asked for at all.
    stock: Option<bool>,
    /// Components of the program, by package.
    own: Vec<(String, Vec<Offer>)>,
    /// Drivers of the program, by package.
    drivers: Vec<(String, FoundDriver)>,
}

/// All components of one name.
#[derive(Debug, Default)]
struct Named {
    /// In order of the search path; compiled-in ones are last.
    offers: Vec<Registered>,
    /// Package of the stock component of this name, even if excluded.
    owner: Option<String>,
    /// The one that is used unless a policy chooses another.
    meant: Option<usize>,
}

impl Named {
    fn offers(&self) -> Offers {
        let entries = self.offers.iter().map(Registered::entry).collect();
        Offers { entries, owner: self.owner.clone(), meant: self.meant }
    }
}

/// Device and inode of a file: equal for all of its names.
type FileId = (u64, u64);

impl Registry {
    /// No components.
    #[must_use]
    pub fn empty() -> Registry {
        Registry::default()
    }

    /// Only the compiled-in components: the stock components, with the feature `stock`.
    #[must_use]
    pub fn compiled_in() -> Registry {
        let mut registry = Registry::empty();
        registry.add_stock(false);
        registry
    }

    /// The default of a program: plugins of [`SearchPath::from_environment`], and compiled-in components.
    #[must_use]
    pub fn available() -> Registry {
        let mut registry = Registry::load(&SearchPath::from_environment());
        registry.add_stock(false);
        registry
    }

    /// Searches the folders in order and loads the plugins there, without compiled-in components. Problems are listed
    /// in [`files`](Self::files) and [`folders`](Self::folders).
    #[must_use]
    pub fn load(path: &SearchPath) -> Registry {
        let mut registry = Registry::empty();
        registry.recipe.path = path.clone();
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
        registry.settle();
        registry
    }

    /// The components of one file alone, wherever it is.
    ///
    /// # Errors
    /// Why it was not loaded.
    pub fn of_file(path: &Path) -> Result<Registry, LoadError> {
        let registry = Registry::with_file(path);
        let error = registry.rejected().next().cloned();
        error.map_or(Ok(registry), Err)
    }

    /// The components of one file alone, if it can be loaded.
    fn with_file(path: &Path) -> Registry {
        let mut registry = Registry::empty();
        registry.recipe.file = Some(path.to_owned());
        let state = registry.load_file(path, Origin::Named, &mut HashMap::new());
        let folder = path.parent().unwrap_or(Path::new("")).to_owned();
        let folder = SearchFolder { path: folder, origin: Origin::Named };
        registry.folders.push(FolderReport { folder, state: FolderState::Searched });
        registry.files.push(FileReport { path: path.to_owned(), folder: 0, state });
        registry.settle();
        registry
    }

    /// Searches the folders, or looks at the [one file](Self::of_file), again, as they are now. A file whose content is
    /// known is not loaded again; a new content is a new library, which is loaded beside the old one.
    ///
    /// [`PluginChange::between`](super::PluginChange::between) lists the differences.
    #[must_use]
    pub fn rescan(&self) -> Registry {
        let mut registry = match &self.recipe.file {
            Some(file) => Registry::with_file(file),
            None => Registry::load(&self.recipe.path),
        };
        registry.overrides.clone_from(&self.overrides);
        registry.audience = self.audience;
        if let Some(refused) = self.recipe.stock {
            registry.add_stock(refused);
        }
        for (package, offers) in &self.recipe.own {
            // What cannot be used now could not be used before, or is replaced by a plugin; both are in the listing.
            let _ = registry.add_builtin(package, offers.clone());
        }
        for (package, found) in &self.recipe.drivers {
            registry.add_found(package, found.clone());
        }
        registry.settle();
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
        let mut warnings: Vec<String> = loaded.components.iter().flat_map(manifest::warnings).collect();
        let components =
            loaded.components.into_iter().map(|info| self.add(info, &shared, Maker::Plugin(loaded.plugin)));
        let components = components.collect();
        let (content, abi) = (loaded.content, (loaded.stamp.abi_major, loaded.stamp.abi_minor));
        let driver = loaded.driver.as_ref().map(|driver| driver.summary.clone());
        if let Some(found) = loaded.driver {
            match self.driver(&found.summary.name) {
                Some(first) => warnings.push(format!(
                    "its driver `{}` is not used: {} offers one of this name first",
                    found.summary.name,
                    first.plugin()
                )),
                None => self.drivers.push(RegisteredDriver::new(found, shared)),
            }
        }
        LoadedPlugin { id, content, abi, components, driver, warnings }
    }

    /// Adds a component to those of its name, if its description is valid. The owner of the name is determined later.
    fn add(&mut self, info: ComponentInfo, plugin: &Arc<PluginId>, maker: Maker) -> ListedComponent {
        let mut faults = manifest::faults(&info);
        let there = self.components.get(&info.name).map_or(&[][..], |named| &named.offers);
        if there.iter().any(|first| first.plugin() == &**plugin) {
            faults.push("the plugin has an earlier component of this name".to_owned());
        }
        let described =
            |fault| ComponentError::Described { component: info.name.clone(), plugin: plugin.to_string(), fault };
        let errors: Vec<ComponentError> = faults.into_iter().map(described).collect();
        if !errors.is_empty() {
            return ListedComponent { info, state: ComponentState::Rejected(errors), hides: Vec::new() };
        }
        let named = self.components.entry(info.name.clone()).or_default();
        named.offers.push(Registered::new(info.clone(), Arc::clone(plugin), maker));
        ListedComponent { info, state: ComponentState::Usable, hides: Vec::new() }
    }

    /// Adds the compiled-in stock components. If they are excluded, they keep their names.
    pub(super) fn add_stock(&mut self, refused: bool) {
        self.recipe.stock = Some(refused);
        #[cfg(feature = "stock")]
        {
            let (package, version) = (sched_components::PACKAGE.to_owned(), sched_components::VERSION.to_owned());
            let id = PluginId { package: package.clone(), version, path: None };
            let shared = Arc::new(id.clone());
            let mut components = Vec::new();
            for offer in sched_components::stock() {
                let info = offer.info().describe();
                self.components.entry(info.name.clone()).or_default().owner = Some(package.clone());
                components.push(match refused {
                    true => ListedComponent { info, state: ComponentState::Usable, hides: Vec::new() },
                    false => self.add(info, &shared, Maker::BuiltIn(offer)),
                });
            }
            self.compiled_in.push(CompiledIn { id, refused, components });
            self.settle();
        }
        #[cfg(not(feature = "stock"))]
        let _ = refused;
    }

    /// Adds components that are compiled into this program, after the present ones.
    ///
    /// # Errors
    /// All components that cannot be used; the others are added. A name that is already taken is an error, unless both
    /// components are of one [package](sched_core::Info::package) or an override chooses this one.
    pub fn add_builtin(&mut self, package: &str, offers: Vec<Offer>) -> Result<(), Vec<ComponentError>> {
        self.recipe.own.push((package.to_owned(), offers.clone()));
        let id = PluginId { package: package.to_owned(), version: String::new(), path: None };
        let shared = Arc::new(id.clone());
        let mut errors = Vec::new();
        let mut components = Vec::new();
        for offer in offers {
            let listed = self.add(offer.info().describe(), &shared, Maker::BuiltIn(offer));
            if let ComponentState::Rejected(found) = listed.state {
                errors.extend(found);
                continue;
            }
            self.settle();
            if let ComponentState::Rejected(found) = self.state(&shared, &listed.info).0 {
                errors.extend(found);
                let named = self.components.get_mut(&listed.info.name);
                named.and_then(|named| named.offers.pop());
                continue;
            }
            components.push(listed);
        }
        self.compiled_in.push(CompiledIn { id, refused: false, components });
        self.settle();
        if errors.is_empty() { Ok(()) } else { Err(errors) }
    }

    /// Determines the owner of each name, after components were added.
    pub(super) fn settle(&mut self) {
        for (name, named) in &mut self.components {
            let offers = named.offers();
            named.meant = match self.overrides.iter().find(|chosen| chosen.component == *name) {
                Some(chosen) => offers.chosen(chosen),
                None => offers.by_rule(),
            };
        }
        let (mut files, mut compiled_in) = (std::mem::take(&mut self.files), std::mem::take(&mut self.compiled_in));
        let of_files = files.iter_mut().filter_map(|file| match &mut file.state {
            FileState::Loaded(plugin) => Some((&plugin.id, &mut plugin.components)),
            _ => None,
        });
        let compiled = compiled_in.iter_mut().filter(|package| !package.refused);
        for (id, components) in of_files.chain(compiled.map(|package| (&package.id, &mut package.components))) {
            for listed in components {
                let described = matches!(&listed.state, ComponentState::Rejected(errors)
                    if errors.iter().any(|error| matches!(error, ComponentError::Described { .. })));
                if !described {
                    (listed.state, listed.hides) = self.state(id, &listed.info);
                }
            }
        }
        (self.files, self.compiled_in) = (files, compiled_in);
    }

    /// Status of a valid component, and the components that it hides.
    fn state(&self, id: &PluginId, info: &ComponentInfo) -> (ComponentState, Vec<String>) {
        let Some(named) = self.components.get(&info.name) else { return (ComponentState::Usable, Vec::new()) };
        let others = || named.offers.iter().filter(|other| other.plugin() != id);
        let (component, plugin) = (info.name.clone(), id.to_string());
        let Some(meant) = named.meant.map(|meant| &named.offers[meant]) else {
            let others: Vec<String> = others().map(|other| other.plugin().to_string()).collect();
            let others = if others.is_empty() { named.owner.clone().into_iter().collect() } else { others };
            let error = ComponentError::Contested { component, plugin, others: others.join(" and ") };
            return (ComponentState::Rejected(vec![error]), Vec::new());
        };
        if meant.plugin() == id {
            return (ComponentState::Usable, others().map(|other| other.plugin().to_string()).collect());
        }
        let first = meant.plugin().to_string();
        let same = !info.package.is_empty() && meant.info().package == info.package;
        let chosen = self.overrides.iter().any(|chosen| chosen.component == info.name);
        match same || chosen {
            true => (ComponentState::Hidden(first), Vec::new()),
            false => {
                (ComponentState::Rejected(vec![ComponentError::NameTaken { component, plugin, first }]), Vec::new())
            }
        }
    }

    /// The device drivers, in order of the search.
    #[must_use]
    pub fn drivers(&self) -> &[RegisteredDriver] {
        &self.drivers
    }

    /// The device driver of this name.
    #[must_use]
    pub fn driver(&self, name: &str) -> Option<&RegisteredDriver> {
        self.drivers.iter().find(|driver| driver.summary().name == name)
    }

    /// Adds a driver that is compiled into this program. One of a plugin that has its name is used in its place.
    pub fn add_driver<D: Driver>(&mut self, package: &str) {
        let handle = DriverHandle::of::<D>();
        if let Ok(summary) = handle.summary() {
            self.add_found(package, FoundDriver { handle, summary });
        }
    }

    fn add_found(&mut self, package: &str, found: FoundDriver) {
        self.recipe.drivers.push((package.to_owned(), found.clone()));
        if self.driver(&found.summary.name).is_none() {
            let id = PluginId { package: package.to_owned(), version: String::new(), path: None };
            self.drivers.push(RegisteredDriver::new(found, Arc::new(id)));
        }
    }

    /// The folders that were searched, in order.
    #[must_use]
    pub fn folders(&self) -> &[FolderReport] {
        &self.folders
    }

    /// Every file found, in search order, with the result.
    #[must_use]
    pub fn files(&self) -> &[FileReport] {
        &self.files
    }

    /// The packages that are compiled in.
    #[must_use]
    pub fn packages(&self) -> &[CompiledIn] {
        &self.compiled_in
    }

    /// Files that should have been loaded but were not.
    pub fn rejected(&self) -> impl Iterator<Item = &LoadError> {
        self.files.iter().filter_map(|file| match &file.state {
            FileState::Rejected(error) => Some(error),
            _ => None,
        })
    }

    /// The component of this name.
    #[must_use]
    pub fn component(&self, name: &str) -> Option<&Registered> {
        let named = self.components.get(name)?;
        named.meant.map(|meant| &named.offers[meant])
    }

    /// The component of this name offered by a plugin, given by package and file as in a
    /// [`PlanNode`](sched_policy::PlanNode).
    #[must_use]
    pub fn component_of(&self, name: &str, package: &str, file: Option<&Path>) -> Option<&Registered> {
        let is_meant = |plugin: &PluginId| plugin.package == package && plugin.path.as_deref() == file;
        self.components.get(name)?.offers.iter().find(|offer| is_meant(offer.plugin()))
    }

    /// All usable components, by name.
    pub fn components(&self) -> impl Iterator<Item = &Registered> {
        self.components.values().filter_map(|named| named.meant.map(|meant| &named.offers[meant]))
    }

    /// Components that policies can use.
    #[must_use]
    pub fn catalogue(&self) -> Catalogue {
        let offers = self.components.values().map(Named::offers).filter(|offers| !offers.entries.is_empty());
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
        let stock = match self.compiled_in.iter().map(|package| package.refused).reduce(|all, refused| all && refused) {
            None => Stock::Absent,
            Some(true) => Stock::Refused,
            Some(false) => Stock::CompiledIn,
        };
        let catalogue = Catalogue::of_offers(offers.collect()).looked_at(places).not_loaded(rejected);
        catalogue.stock(stock).audience(self.audience)
    }

    /// Why components of a plugin cannot be used, if there is no other component of their name.
    fn missed_of(&self, plugin: &LoadedPlugin) -> Vec<String> {
        let missed = plugin.components.iter().filter(|listed| !self.components.contains_key(&listed.info.name));
        let reasons = missed.flat_map(|listed| match &listed.state {
            ComponentState::Rejected(errors) => errors.as_slice(),
            _ => &[],
        });
        reasons.map(ToString::to_string).collect()
    }

    /// Requests of the user that failed, one line each: missing folders, files that were not loaded. A compiled-in
    /// component may replace a component of theirs.
    #[must_use]
    pub fn warnings(&self) -> Vec<String> {
        let folders = self.folders.iter().filter(|report| report.folder.origin.is_asked_for());
        let folders = folders.filter_map(|FolderReport { folder, state }| match state {
            FolderState::Missing => Some(format!("no plugins from {}: there is no such folder", folder.path.display())),
            FolderState::Unreadable(why) => Some(format!("no plugins from {}: {why}", folder.path.display())),
            _ => None,
        });
        folders.chain(self.rejected().map(|error| format!("a plugin is not loaded: {error}"))).collect()
    }

    /// Names of all components, even if their owner is undetermined.
    pub(super) fn names(&self) -> impl Iterator<Item = &str> + Clone {
        let offered = self.components.iter().filter(|(_, named)| !named.offers.is_empty());
        offered.map(|(name, _)| name.as_str())
    }

    /// All components of a name, with their plugins.
    pub(super) fn offers_of(&self, name: &str) -> Option<Offers> {
        self.components.get(name).map(Named::offers)
    }
}

fn identity(path: &Path) -> std::io::Result<FileId> {
    fs::metadata(path).map(|metadata| (metadata.dev(), metadata.ino()))
}

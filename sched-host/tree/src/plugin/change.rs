//! Differences between two searches for plugins.

use super::error::LoadError;
use super::listing::FileState;
use super::registry::Registry;
use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};

/// A plugin file that is not what it was at an earlier search.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum PluginChange {
    /// It is new, or could not be loaded before.
    Added(PathBuf),
    /// It has another content, which is loaded.
    Rebuilt(PathBuf),
    /// It is gone. Its components remain where they are in use.
    Removed(PathBuf),
    /// It cannot be loaded any more, or for another reason than before. Components of its last build remain where they
    /// are in use.
    Rejected(LoadError),
}

/// A file that is, or should be, a plugin: hash of its content, or the reason why it is not loaded.
type Loaded<'a> = Result<u128, &'a LoadError>;

fn files(registry: &Registry) -> BTreeMap<&Path, Loaded<'_>> {
    let state = registry.files().iter().filter_map(|file| match &file.state {
        FileState::Loaded(plugin) => Some((&*file.path, Ok(plugin.content))),
        FileState::Rejected(error) => Some((&*file.path, Err(error))),
        FileState::NotAPlugin(_) | FileState::AlreadySeen(_) => None,
    });
    state.collect()
}

impl PluginChange {
    /// The changes from one search to a later one, in order of paths.
    #[must_use]
    pub fn between(earlier: &Registry, later: &Registry) -> Vec<PluginChange> {
        let (before, after) = (files(earlier), files(later));
        let gone = before.keys().filter(|path| !after.contains_key(*path));
        let mut changes: Vec<PluginChange> = gone.map(|path| PluginChange::Removed(path.to_path_buf())).collect();
        for (path, now) in after {
            changes.extend(match (before.get(path), now) {
                (Some(Ok(before)), Ok(now)) if *before == now => None,
                (Some(Ok(_)), Ok(_)) => Some(PluginChange::Rebuilt(path.to_owned())),
                (_, Ok(_)) => Some(PluginChange::Added(path.to_owned())),
                (Some(Err(before)), Err(now)) if *before == now => None,
                (_, Err(now)) => Some(PluginChange::Rejected(now.clone())),
            });
        }
        changes.sort_by(|one, other| one.path().cmp(other.path()));
        changes
    }

    /// The file.
    #[must_use]
    pub fn path(&self) -> &Path {
        match self {
            PluginChange::Added(path) | PluginChange::Rebuilt(path) | PluginChange::Removed(path) => path,
            PluginChange::Rejected(error) => &error.path,
        }
    }
}

impl fmt::Display for PluginChange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PluginChange::Added(path) => write!(f, "{}: new", path.display()),
            PluginChange::Rebuilt(path) => write!(f, "{}: rebuilt", path.display()),
            PluginChange::Removed(path) => write!(f, "{}: gone", path.display()),
            PluginChange::Rejected(error) => write!(f, "{error}"),
        }
    }
}

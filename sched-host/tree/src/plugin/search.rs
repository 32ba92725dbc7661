//! Search path of plugins.

use std::env;
use std::ffi::{OsStr, OsString};
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

/// The environment variable with folders of plugins, separated by colons.
pub const PLUGIN_PATH_VARIABLE: &str = "SCHED_PLUGIN_PATH";

/// Why a folder is searched.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Origin {
    /// Named by the caller: `--plugin-dir`.
    Named,
    /// Named by [`PLUGIN_PATH_VARIABLE`].
    Variable,
    /// `plugins` beside the executable.
    BesideExecutable,
    /// Folder of the executable itself, where a build puts plugins and other libraries.
    ExecutableFolder,
    /// `../lib/sched/plugins` from the executable, where a package manager puts them.
    Installed,
}

impl Origin {
    /// Whether the folder was requested, so that its absence is reported.
    #[must_use]
    pub fn is_asked_for(self) -> bool {
        matches!(self, Origin::Named | Origin::Variable)
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Origin::Named => "--plugin-dir",
            Origin::Variable => PLUGIN_PATH_VARIABLE,
            Origin::BesideExecutable => "beside the executable",
            Origin::ExecutableFolder => "the executable's folder",
            Origin::Installed => "installed",
        })
    }
}

/// A folder to search.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SearchFolder {
    /// The folder, as it was named.
    pub path: PathBuf,
    /// Why it is searched.
    pub origin: Origin,
}

/// Folders to search, in order. If two plugins offer a component of one name, the first in this order is used.
///
/// ```
/// use sched_tree::plugin::SearchPath;
/// use std::ffi::OsStr;
///
/// let path = SearchPath::empty()
///     .with_folder("/home/me/plugins")
///     .with_list(OsStr::new("/opt/a:/opt/b"))
///     .with_defaults_of("/usr/bin/sched");
/// let folders: Vec<_> = path.folders().iter().map(|folder| folder.path.to_str().unwrap()).collect();
/// assert_eq!(folders, [
///     "/home/me/plugins", "/opt/a", "/opt/b",
///     "/usr/bin/plugins", "/usr/bin", "/usr/lib/sched/plugins",
/// ]);
/// ```
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct SearchPath {
    folders: Vec<SearchFolder>,
}

impl SearchPath {
    /// Whether a file is named like a library, so that a search looks at it.
    #[must_use]
    pub fn is_library(file: &Path) -> bool {
        file.extension().is_some_and(|extension| extension == env::consts::DLL_EXTENSION)
    }

    /// No folder.
    #[must_use]
    pub fn empty() -> SearchPath {
        SearchPath::default()
    }

    /// The [places](Self::with_defaults_of) of the running executable; none if the system does not tell which that is.
    #[must_use]
    pub fn default_for_executable() -> SearchPath {
        SearchPath::empty().with_own_defaults()
    }

    /// The folders of [`PLUGIN_PATH_VARIABLE`], then the [default places](Self::with_own_defaults): the default of
    /// programs.
    #[must_use]
    pub fn from_environment() -> SearchPath {
        let listed = env::var_os(PLUGIN_PATH_VARIABLE).map(|list| SearchPath::empty().with_list(&list));
        listed.unwrap_or_default().with_own_defaults()
    }

    /// Adds a folder at the end, as `--plugin-dir` does.
    #[must_use]
    pub fn with_folder(self, path: impl Into<PathBuf>) -> SearchPath {
        self.with(path.into(), Origin::Named)
    }

    /// Adds the folders of a list in the format of [`PLUGIN_PATH_VARIABLE`]. Empty entries are ignored.
    #[must_use]
    pub fn with_list(self, list: &OsStr) -> SearchPath {
        env::split_paths(list)
            .filter(|path| !path.as_os_str().is_empty())
            .fold(self, |search, path| search.with(path, Origin::Variable))
    }

    /// Adds the places of plugins relative to an executable: `plugins` beside it, its own folder, and
    /// `../lib/sched/plugins`.
    #[must_use]
    pub fn with_defaults_of(self, executable: impl AsRef<Path>) -> SearchPath {
        let Some(folder) = executable.as_ref().parent() else { return self };
        let search =
            self.with(folder.join("plugins"), Origin::BesideExecutable).with(folder.into(), Origin::ExecutableFolder);
        match folder.parent() {
            Some(prefix) => search.with(prefix.join("lib/sched/plugins"), Origin::Installed),
            None => search,
        }
    }

    /// Adds the default places of the running executable.
    #[must_use]
    pub fn with_own_defaults(self) -> SearchPath {
        match env::current_exe() {
            Ok(executable) => self.with_defaults_of(executable),
            Err(_) => self,
        }
    }

    /// The folders, in order.
    #[must_use]
    pub fn folders(&self) -> &[SearchFolder] {
        &self.folders
    }

    fn with(mut self, path: PathBuf, origin: Origin) -> SearchPath {
        self.folders.push(SearchFolder { path, origin });
        self
    }
}

/// Files of a folder that are named like libraries, by name.
pub(super) fn libraries_in(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let mut names: Vec<OsString> = Vec::new();
    for entry in folder.read_dir()? {
        let name = entry?.file_name();
        if SearchPath::is_library(Path::new(&name)) {
            names.push(name);
        }
    }
    names.sort();
    Ok(names.iter().map(|name| folder.join(name)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn libraries_are_found_by_their_ending_and_sorted() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["b.so", "a.so", "a.so.1", "readme.txt", "so", "c.so"] {
            std::fs::write(folder.path().join(name), "").unwrap();
        }
        let found = libraries_in(folder.path()).unwrap();
        let names: Vec<_> = found.iter().map(|path| path.file_name().unwrap().to_str().unwrap()).collect();
        assert_eq!(names, ["a.so", "b.so", "c.so"]);
    }

    #[test]
    fn empty_entries_of_a_list_are_not_the_current_folder() {
        let path = SearchPath::empty().with_list(OsStr::new(":/opt/a::"));
        assert_eq!(path.folders(), [SearchFolder { path: "/opt/a".into(), origin: Origin::Variable }]);
        assert_eq!(SearchPath::empty().with_list(OsStr::new("")).folders(), []);
    }
}

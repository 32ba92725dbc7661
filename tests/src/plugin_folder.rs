//! Folders of plugins, and what is told of them.

use crate::fixtures;
use sched_cli::plugins::{Args, run};
use sched_host::plugin::{Registry, SearchPath};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// The package of a plugin that works.
pub const LIFO: &str = "sched-plugin-example-lifo";

/// How `sched plugins` is asked for its plain list.
pub const PLAIN: Args = Args::new(false, false);

/// A folder with these files under these names.
///
/// # Panics
/// When the system does not let it be made.
#[must_use]
pub fn folder_of(files: impl IntoIterator<Item = (impl AsRef<str>, PathBuf)>) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (name, file) in files {
        symlink(file, folder.path().join(name.as_ref())).unwrap();
    }
    folder
}

/// A folder with the plugins of these packages among the fixtures.
///
/// # Panics
/// When they are not there.
#[must_use]
pub fn fixture_folder(packages: &[&str]) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    for package in packages {
        symlink(fixtures::plugin(package), folder.path().join(format!("{package}.so"))).unwrap();
    }
    folder
}

/// What a search of this folder alone finds.
#[must_use]
pub fn load(folder: &Path) -> Registry {
    Registry::load(&SearchPath::empty().with_folder(folder))
}

/// What `sched plugins` writes, with the folder's name replaced.
///
/// # Panics
/// When it cannot be written.
#[must_use]
pub fn listing(args: &Args, registry: &Registry, folder: &Path) -> String {
    let mut out = Vec::new();
    run(args, registry, &mut out).unwrap();
    String::from_utf8(out).unwrap().replace(folder.to_str().unwrap(), "DIR")
}

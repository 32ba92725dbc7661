//! Folders of plugins, and their listings.

use crate::fixtures;
use sched_cli::plugins::{Args, run};
use sched_host::plugin::{Registry, SearchPath};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// The package of a plugin that works.
pub const LIFO: &str = "sched-plugin-example-lifo";

/// Arguments for the plain list of `sched plugins`.
pub const PLAIN: Args = Args::new(false, false);

/// A folder with these files under these names.
///
/// # Panics
/// If it cannot be created.
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
/// If they do not exist.
#[must_use]
pub fn fixture_folder(packages: &[&str]) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    for package in packages {
        symlink(fixtures::plugin(package), folder.path().join(format!("{package}.so"))).unwrap();
    }
    folder
}

/// The registry of this folder alone.
#[must_use]
pub fn load(folder: &Path) -> Registry {
    Registry::load(&SearchPath::empty().with_folder(folder))
}

/// Output of `sched plugins`, with the folder's name replaced.
///
/// # Panics
/// If it cannot be written.
#[must_use]
pub fn listing(args: &Args, registry: &Registry, folder: &Path) -> String {
    let mut out = Vec::new();
    run(args, registry, &mut out).unwrap();
    String::from_utf8(out).unwrap().replace(folder.to_str().unwrap(), "DIR")
}

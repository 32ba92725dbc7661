//! Plugins in C, built with the compiler of the system.

use crate::fixtures::repository;
use crate::program::Ran;
use sched_host::plugin::{Registry, RegistryBuilder, SearchPath};
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use tempfile::TempDir;

/// A folder with libraries of these names, each compiled from a source of this repository with more options for the
/// compiler. There must be no warning.
///
/// # Panics
/// If one does not compile.
#[must_use]
pub fn folder_of(libraries: &[(&str, &str, &[&str])]) -> TempDir {
    let folder = tempfile::tempdir().expect("there is room for a folder");
    for (name, source, options) in libraries {
        let mut command = Command::new("cc");
        command.args(["-std=c11", "-Wall", "-Wextra", "-Werror", "-pedantic", "-O1", "-fPIC", "-shared", "-pthread"]);
        command.arg("-I").arg(repository().join("sched-core/include")).args(*options);
        command.arg("-o").arg(folder.path().join(format!("{name}.so"))).arg(repository().join(source));
        let compiled = Ran::of(&mut command);
        assert_eq!((compiled.code, &*compiled.err), (0, ""), "{command:?}");
    }
    folder
}

/// The components of the plugins in a folder, and the stock ones.
///
/// # Panics
/// If a component cannot be used.
#[must_use]
pub fn with_stock(folder: &Path) -> Arc<Registry> {
    let builder = RegistryBuilder::default().search_path(SearchPath::empty().with_folder(folder));
    Arc::new(builder.load().expect("the components are sound"))
}

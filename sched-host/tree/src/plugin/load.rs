//! Loading one file.

use super::elf;
use super::error::LoadErrorKind;
use libloading::os::unix::{Library, RTLD_LOCAL, RTLD_NOW};
use sched_core::ComponentInfo;
use sched_core::abi::root::{self, EntryFn, Root};
use sched_core::abi::stamp::Stamp;
use std::error::Error;
use std::fs::{self, FileType};
use std::os::unix::fs::FileTypeExt;
use std::path::Path;

/// A loaded plugin, which stays in memory.
pub(super) struct Loaded {
    pub(super) stamp: Stamp,
    pub(super) root: &'static Root,
    pub(super) components: Vec<ComponentInfo>,
}

/// Takes a file through all steps. `path` is absolute, so that the loader does not search for it.
pub(super) fn load(path: &Path) -> Result<Loaded, LoadErrorKind> {
    let stamp = read_stamp(path)?;
    let root = open(path)?;
    let components = root.components().map_err(LoadErrorKind::Manifest)?;
    Ok(Loaded { stamp, root, components })
}

/// The stamp of a file, if it fits this host. No code of the file has run by then.
fn read_stamp(path: &Path) -> Result<Stamp, LoadErrorKind> {
    let unreadable = |error: std::io::Error| LoadErrorKind::Unreadable(error.to_string());
    // Checked before opening: opening a pipe waits for a writer.
    let metadata = fs::metadata(path).map_err(unreadable)?;
    if !metadata.is_file() {
        return Err(LoadErrorKind::NotAFile(kind_of(metadata.file_type())));
    }
    let bytes = elf::stamp_bytes(fs::File::open(path).map_err(unreadable)?, metadata.len())?;
    let stamp = Stamp::read(&bytes).map_err(LoadErrorKind::Stamp)?;
    stamp.check().map_err(LoadErrorKind::Stamp)?;
    Ok(stamp)
}

/// The root of a library whose stamp fits.
fn open(path: &Path) -> Result<&'static Root, LoadErrorKind> {
    // SAFETY: this runs the constructors of the library. It was made by sched-core's macro, as its stamp shows, and a
    // Rust library has no constructors but those that its author wrote on purpose; whoever puts a plugin into a folder
    // of the search path vouches for what it does. There are no destructors to vouch for: it is never unloaded.
    let library = unsafe { Library::open(Some(path), RTLD_NOW | RTLD_LOCAL) }
        .map_err(|error| LoadErrorKind::Open(loader_message(&error, path)))?;
    // The host refers to statics, thread-locals and code of the plugin everywhere.
    let library: &'static Library = Box::leak(Box::new(library));
    // SAFETY: a symbol of this name has this type in every library whose stamp is of this major version.
    let entry = unsafe { library.get::<EntryFn>(root::SYMBOL) }.map_err(|_| LoadErrorKind::NoEntry)?;
    // SAFETY: the stamp was checked, and the library was leaked.
    unsafe { entry().open() }.map_err(LoadErrorKind::Layout)
}

/// Message of the loader without the path, which the report names anyway.
fn loader_message(error: &libloading::Error, path: &Path) -> String {
    let words = error.source().map_or_else(|| error.to_string(), ToString::to_string);
    let shown = path.display().to_string();
    words.strip_prefix(&shown).map_or(words.as_str(), |rest| rest.trim_start_matches([':', ' '])).to_owned()
}

fn kind_of(kind: FileType) -> &'static str {
    if kind.is_dir() {
        "a directory"
    } else if kind.is_fifo() {
        "a pipe"
    } else if kind.is_socket() {
        "a socket"
    } else {
        "a device"
    }
}

//! Loading one file.

use super::copy::Content;
use super::driver::FoundDriver;
use super::error::LoadErrorKind;
use super::{elf, trial};
use libloading::os::unix::{Library, RTLD_LOCAL, RTLD_NOW};
use parking_lot::Mutex;
use sched_core::ComponentInfo;
use sched_core::abi::Opened;
use sched_core::abi::c::{self, CPlugin, RawPlugin};
use sched_core::abi::driver::{self, DriverEntryFn, DriverHandle};
use sched_core::abi::root::{self, EntryFn};
use sched_core::abi::stamp::Stamp;
use std::collections::{BTreeMap, BTreeSet};
use std::error::Error;
use std::fs::{self, File, FileType};
use std::os::unix::fs::FileTypeExt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};

/// A loaded plugin, which stays in memory.
#[derive(Clone)]
pub(super) struct Loaded {
    /// Hash of the content.
    pub(super) content: u128,
    pub(super) stamp: Stamp,
    pub(super) plugin: Opened,
    pub(super) components: Vec<ComponentInfo>,
    pub(super) driver: Option<FoundDriver>,
}

/// What a library exports.
pub(super) struct Exports {
    pub(super) plugin: Opened,
    pub(super) components: Vec<ComponentInfo>,
    driver: Option<FoundDriver>,
}

/// What this process has loaded, by content: a library is loaded once, under however many names it is found, and is
/// there for every registry. The lock makes loads come one at a time.
static LOADED: Mutex<BTreeMap<u128, Result<Loaded, LoadErrorKind>>> = Mutex::new(BTreeMap::new());

/// Files that were loaded themselves, and not as copies: the loader does not load another library of the same path.
static IN_PLACE: Mutex<BTreeSet<PathBuf>> = Mutex::new(BTreeSet::new());

/// Takes a file through all steps. `path` is absolute, so that the loader does not search for it.
pub(super) fn load(path: &Path) -> Result<Loaded, LoadErrorKind> {
    // From the file, so that what is no plugin is not read whole.
    read_stamp(open_file(path)?)?;
    let content = Content::of(path)?;
    let mut loaded = LOADED.lock();
    if let Some(known) = loaded.get(&content.hash) {
        return known.clone();
    }
    if content.in_place().is_some_and(|path| IN_PLACE.lock().contains(path)) {
        return Err(LoadErrorKind::Replaced);
    }
    // From the copy: the file may be another one by now.
    let stamp = read_stamp(content.open().map_err(unreadable)?)?;
    let layouts = trial::result(&content, &stamp)?;
    let loaded_as = |Exports { plugin, components, driver }: Exports| {
        let content = content.hash;
        Loaded { content, stamp, plugin, components, driver }
    };
    // The trial has caught what panics, if there was one.
    let opened = catch_unwind(AssertUnwindSafe(|| exports_of(open(&content)?, &stamp, layouts)));
    let result = opened.unwrap_or_else(|_| Err(LoadErrorKind::Fatal(trial::DAMAGED.to_owned()))).map(loaded_as);
    if !matches!(result, Err(LoadErrorKind::Open(_))) {
        // The library is in memory, understood or not.
        loaded.insert(content.hash, result.clone());
        IN_PLACE.lock().extend(content.in_place().map(Path::to_owned));
        content.keep();
    }
    result
}

pub(super) fn unreadable(error: std::io::Error) -> LoadErrorKind {
    LoadErrorKind::Unreadable(error.to_string())
}

fn open_file(path: &Path) -> Result<File, LoadErrorKind> {
    // Checked before opening: opening a pipe waits for a writer.
    let metadata = fs::metadata(path).map_err(unreadable)?;
    if !metadata.is_file() {
        return Err(LoadErrorKind::NotAFile(kind_of(metadata.file_type())));
    }
    File::open(path).map_err(unreadable)
}

/// The stamp of a file that fits this host. Nothing in the file has run when this returns.
fn read_stamp(file: File) -> Result<Stamp, LoadErrorKind> {
    let length = file.metadata().map_err(unreadable)?.len();
    let bytes = elf::stamp_bytes(file, length)?;
    let stamp = Stamp::read(&bytes).map_err(LoadErrorKind::Stamp)?;
    stamp.check().map_err(LoadErrorKind::Stamp)?;
    Ok(stamp)
}

/// Loads a content whose stamp fits. The library stays, whether it is understood or not.
pub(super) fn open(content: &Content) -> Result<&'static Library, LoadErrorKind> {
    let path = content.loader_path();
    // SAFETY: this runs the constructors of the library. It was made by sched-core's macro or that of `msched.h`, as
    // its stamp shows, and has no constructors but those that its author wrote on purpose; whoever puts a plugin into a
    // folder of the search path vouches for what it does. There are no destructors to vouch for: it is never unloaded.
    let library = unsafe { Library::open(Some(&path), RTLD_NOW | RTLD_LOCAL) }
        .map_err(|error| LoadErrorKind::Open(loader_message(&error, &path)))?;
    // Statics, thread-locals and code of the plugin are referred to from all over the host.
    Ok(Box::leak(Box::new(library)))
}

/// What is known of the layouts of a library's types.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Layouts {
    /// They are those of this host: a child of this process has compared them just now.
    Agree,
    /// Nothing yet.
    Unknown,
}

/// What a library exports that has this stamp, which fits.
pub(super) fn exports_of(library: &'static Library, stamp: &Stamp, layouts: Layouts) -> Result<Exports, LoadErrorKind> {
    let plugin = if stamp.is_c() {
        // SAFETY: a symbol of this name has this type in every library with such a stamp.
        let raw = unsafe { library.get::<*const RawPlugin>(c::SYMBOL) }.map_err(|_| LoadErrorKind::NoTables)?;
        // SAFETY: the stamp was checked, and the library was leaked.
        Opened::C(unsafe { CPlugin::open(*raw, &stamp.package().0) }.map_err(LoadErrorKind::Manifest)?)
    } else {
        // SAFETY: a symbol of this name has this type in every library whose stamp is of this major version.
        let entry = unsafe { library.get::<EntryFn>(root::SYMBOL) }.map_err(|_| LoadErrorKind::NoEntry)?;
        Opened::Rust(match layouts {
            // SAFETY: a child has compared them, and the library was leaked.
            Layouts::Agree => unsafe { entry().open_unchecked() },
            // SAFETY: the stamp was checked, and the library was leaked.
            Layouts::Unknown => unsafe { entry().open() }.map_err(LoadErrorKind::Layout)?,
        })
    };
    let components = plugin.components().map_err(LoadErrorKind::Manifest)?;
    Ok(Exports { plugin, components, driver: driver_of(library, layouts)? })
}

/// The device driver that a library exports, if it does.
fn driver_of(library: &'static Library, layouts: Layouts) -> Result<Option<FoundDriver>, LoadErrorKind> {
    // SAFETY: a symbol of this name has this type in every library whose stamp is of this major version.
    let Ok(entry) = (unsafe { library.get::<DriverEntryFn>(driver::SYMBOL) }) else { return Ok(None) };
    let root = match layouts {
        // SAFETY: a child has compared them, and the library was leaked.
        Layouts::Agree => unsafe { entry().open_unchecked() },
        // SAFETY: the stamp was checked, and the library was leaked.
        Layouts::Unknown => unsafe { entry().open() }.map_err(LoadErrorKind::Layout)?,
    };
    let handle = DriverHandle::new(root);
    let summary = handle.summary().map_err(LoadErrorKind::Manifest)?;
    Ok(Some(FoundDriver { handle, summary }))
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

//! A private copy of a plugin's file, in memory.
//!
//! The system's loader maps a library from its file. If the file is overwritten in place afterwards, as compilers and
//! `cp` do, the mapped code changes under the running program, or is gone: the next call ends the process (SIGBUS). So
//! the host maps a copy that nobody else can write to, and a rebuild does no harm. A rebuilt file is a new library: it
//! is loaded beside the old one, whose components work on.
//!
//! A library that names its own folder to find others (`$ORIGIN` in its run path) is loaded in place, since a copy in
//! memory is in no folder. So is every library where [`IN_PLACE_VARIABLE`] is set, for debuggers and profilers, which
//! look for symbols in the file that was mapped.

use super::elf;
use super::error::LoadErrorKind;
use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, memfd_create};
use sched_text::hash;
use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::path::{Path, PathBuf};

/// Environment variable: if set and not empty, plugins are loaded from their own files.
pub const IN_PLACE_VARIABLE: &str = "SCHED_PLUGINS_IN_PLACE";

/// What is loaded: a file's content, and where the loader finds it.
pub(super) struct Content {
    /// Hash of the content.
    pub(super) hash: u128,
    /// The copy, unless the file itself is loaded.
    copy: Option<OwnedFd>,
    path: PathBuf,
}

impl Content {
    /// Reads a file. `path` is absolute, so that the loader does not search for it.
    pub(super) fn of(path: &Path) -> Result<Content, LoadErrorKind> {
        let unreadable = |error: std::io::Error| LoadErrorKind::Unreadable(error.to_string());
        let mut bytes = Vec::new();
        File::open(path).and_then(|mut file| file.read_to_end(&mut bytes)).map_err(unreadable)?;
        let in_place = std::env::var_os(IN_PLACE_VARIABLE).is_some_and(|value| !value.is_empty());
        let copy = if in_place || elf::needs_its_folder(&bytes) { None } else { copy_of(path, &bytes) };
        Ok(Content { hash: hash::digest(&bytes), copy, path: path.to_owned() })
    }

    /// The path for the loader.
    pub(super) fn loader_path(&self) -> PathBuf {
        match &self.copy {
            Some(copy) => format!("/proc/self/fd/{}", copy.as_raw_fd()).into(),
            None => self.path.clone(),
        }
    }

    /// The file itself, if that is loaded and no copy.
    pub(super) fn in_place(&self) -> Option<&Path> {
        if self.copy.is_none() { Some(&self.path) } else { None }
    }

    /// The descriptor of the copy, by which the loader finds it.
    pub(super) fn descriptor(&self) -> Option<RawFd> {
        self.copy.as_ref().map(AsRawFd::as_raw_fd)
    }

    /// The copy as a file to read, or the file itself.
    pub(super) fn open(&self) -> std::io::Result<File> {
        File::open(self.loader_path())
    }

    /// Keeps the copy's descriptor open for as long as the process lives. The loader takes two libraries of one path
    /// for the same, so the number in the path must not be given to another copy.
    pub(super) fn keep(self) {
        std::mem::forget(self.copy);
    }
}

/// A sealed copy in memory, or nothing where the system has no such thing or no room for it: then the file itself is
/// loaded.
fn copy_of(path: &Path, bytes: &[u8]) -> Option<OwnedFd> {
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or("plugin");
    // Names are limited to 249 bytes.
    let name: String = name.chars().filter(|character| *character != '\0').take(60).collect();
    let mut copy = File::from(memfd_create(name, MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING).ok()?);
    copy.write_all(bytes).ok()?;
    fcntl_add_seals(&copy, SealFlags::WRITE | SealFlags::SHRINK | SealFlags::GROW | SealFlags::SEAL).ok()?;
    // Without /proc the loader has no path to it.
    Path::new(&format!("/proc/self/fd/{}", copy.as_raw_fd())).exists().then(|| OwnedFd::from(copy))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_copy_stays_as_it_was_when_the_file_changes() {
        let file = tempfile::NamedTempFile::new().expect("a file");
        std::fs::write(file.path(), b"before").expect("written");
        let content = Content::of(file.path()).expect("read");
        std::fs::write(file.path(), b"after, and longer").expect("written");
        let mut copied = Vec::new();
        content.open().expect("open").read_to_end(&mut copied).expect("read");
        assert_eq!(copied, b"before");
        assert!(std::fs::OpenOptions::new().write(true).open(content.loader_path()).is_ok_and(|mut copy| {
            copy.write_all(b"x").is_err_and(|error| error.kind() == std::io::ErrorKind::PermissionDenied)
        }));
        assert_ne!(content.hash, Content::of(file.path()).expect("read").hash);
    }
}

//! Models on disk: one text file for each codelet, in a directory for each machine.
//!
//! A file is never modified in place: the stored samples are read, new ones are added, and the result is written to a
//! temporary file and renamed over the old one, all under a lock of the directory that other processes wait for. A
//! reader therefore sees a complete file, and of two processes that end at the same time neither loses its
//! measurements. A file that cannot be understood is moved aside when its name is needed, and never overwritten.

mod bus;
mod lines;
mod text;

use super::flaw::ModelError;
use super::{Fingerprint, Kind, Measurements};
use rustix::fs::OFlags;
use std::fs::{self, File};
use std::io::{ErrorKind, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// The contents of one file.
#[derive(Clone, PartialEq, Debug)]
pub struct Stored {
    /// Name of the model.
    pub symbol: String,
    /// How its estimates are computed.
    pub kind: Kind,
    /// The samples.
    pub measurements: Measurements,
}

/// The models of one machine.
#[derive(Clone, Debug)]
pub struct Store {
    directory: PathBuf,
    machine: Fingerprint,
}

const EXTENSION: &str = "model";

/// Extension of files that are being written.
const DRAFT: &str = "new";

/// The directory of models, given the environment: `SCHED_MODEL_DIR`, or `sched/models` in the user's data directory,
/// which is `XDG_DATA_HOME` or `~/.local/share`.
///
/// # Errors
/// If none of `SCHED_MODEL_DIR`, `XDG_DATA_HOME` and `HOME` is set.
pub fn default_directory(env: impl Fn(&str) -> Option<String>) -> Result<PathBuf, ModelError> {
    let env = |name: &str| env(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let data = || env("XDG_DATA_HOME").or_else(|| env("HOME").map(|home| home.join(".local/share")));
    env("SCHED_MODEL_DIR").or_else(|| data().map(|data| data.join("sched/models"))).ok_or(ModelError::NoDirectory)
}

impl Store {
    /// The models of `machine` below `directory`. Reads and creates nothing yet.
    pub fn new(directory: impl AsRef<Path>, machine: Fingerprint) -> Store {
        Store { directory: directory.as_ref().join(machine.as_str()), machine }
    }

    /// The directory of the machine.
    #[must_use]
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// The machine.
    #[must_use]
    pub fn machine(&self) -> &Fingerprint {
        &self.machine
    }

    /// Other machines with models in the same directory, in order.
    #[must_use]
    pub fn other_machines(&self) -> Vec<String> {
        let beside = self.directory.parent().map(fs::read_dir).and_then(Result::ok);
        let folders = beside.into_iter().flatten().flatten().map(|entry| entry.path()).filter(|path| path.is_dir());
        let name = |path: PathBuf| Some(path.file_name()?.to_str()?.to_owned());
        let mut names: Vec<String> = folders.filter_map(name).filter(|name| name != self.machine.as_str()).collect();
        names.sort();
        names
    }

    /// The file of a model.
    ///
    /// # Errors
    /// If the name cannot be that of a file.
    pub fn path(&self, symbol: &str) -> Result<PathBuf, ModelError> {
        let allowed = |c: char| c.is_ascii_alphanumeric() || "_-+.".contains(c);
        if symbol.is_empty() || symbol.starts_with('.') || symbol.len() > 200 || !symbol.chars().all(allowed) {
            return Err(ModelError::Name(symbol.to_owned()));
        }
        Ok(self.directory.join(format!("{symbol}.{EXTENSION}")))
    }

    /// Creates the directory of the machine, unless it is there, and checks that models can be stored in it.
    ///
    /// # Errors
    /// If the directory cannot be written.
    pub fn prepare(&self) -> Result<(), ModelError> {
        let _lock = self.lock()?;
        let path = self.directory.join(format!("writable.{DRAFT}"));
        File::create(&path)
            .and_then(|_| fs::remove_file(&path))
            .map_err(|error| ModelError::io(&path, "written", error))
    }

    /// Names of the models, in order; empty if there is no directory.
    ///
    /// # Errors
    /// If the directory cannot be read.
    pub fn list(&self) -> Result<Vec<String>, ModelError> {
        let entries = match fs::read_dir(&self.directory) {
            Ok(entries) => entries,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(ModelError::io(&self.directory, "read", error)),
        };
        let mut symbols = Vec::new();
        for entry in entries {
            let path = entry.map_err(|error| ModelError::io(&self.directory, "read", error))?.path();
            if path.extension().is_some_and(|extension| extension == EXTENSION) {
                symbols.extend(path.file_stem().and_then(|stem| stem.to_str()).map(str::to_owned));
            }
        }
        symbols.sort();
        Ok(symbols)
    }

    /// Reads a model; `None` if nothing is stored under its name.
    ///
    /// # Errors
    /// If the file cannot be read, is damaged, or was written by a newer program. It is left unchanged.
    pub fn read(&self, symbol: &str) -> Result<Option<Stored>, ModelError> {
        let path = self.path(symbol)?;
        match fs::read(&path) {
            Ok(bytes) => text::parse(&bytes, &path, symbol).map(Some),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(ModelError::io(&path, "read", error)),
        }
    }

    /// Adds samples to the stored ones. Returns the result, and the error in the previous file if it had to be moved
    /// aside.
    ///
    /// # Errors
    /// If the directory or the file cannot be written. The stored samples are unchanged then.
    pub fn add(
        &self,
        symbol: &str,
        kind: &Kind,
        fresh: &Measurements,
    ) -> Result<(Stored, Option<MovedAside>), ModelError> {
        let path = self.path(symbol)?;
        let _lock = self.lock()?;
        let (mut measurements, moved) = match self.read(symbol) {
            Ok(stored) => (stored.map(|stored| stored.measurements).unwrap_or_default(), None),
            Err(problem @ (ModelError::Damaged(_) | ModelError::Newer { .. })) => {
                (Measurements::default(), Some(move_aside(&path, problem)?))
            }
            Err(error) => return Err(error),
        };
        measurements.merge(fresh);
        let stored = Stored { symbol: symbol.to_owned(), kind: kind.clone(), measurements };
        write_whole(&path, text::print(&stored, &self.machine).as_bytes())?;
        Ok((stored, moved))
    }

    /// Deletes a model. Returns whether there was one. A file that cannot be understood is deleted too.
    ///
    /// # Errors
    /// If it cannot be deleted.
    pub fn remove(&self, symbol: &str) -> Result<bool, ModelError> {
        let path = self.path(symbol)?;
        if !path.exists() {
            return Ok(false);
        }
        let _lock = self.lock()?;
        match fs::remove_file(&path) {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
            Err(error) => Err(ModelError::io(&path, "removed", error)),
        }
    }

    /// Locks the directory against changes by other processes; closing the returned file unlocks it.
    fn lock(&self) -> Result<File, ModelError> {
        fs::create_dir_all(&self.directory).map_err(|error| ModelError::io(&self.directory, "made", error))?;
        let path = self.directory.join("lock");
        // Whoever may write to the directory must not have a file elsewhere created or opened through a link.
        let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits().cast_signed();
        let file = File::options().write(true).create(true).truncate(false).custom_flags(flags).open(&path);
        let file = file.map_err(|error| ModelError::io(&path, "written", error))?;
        file.lock().map_err(|error| ModelError::io(&path, "locked", error))?;
        self.sweep();
        Ok(file)
    }

    /// Removes drafts that killed processes left: with the lock held, nobody writes one.
    fn sweep(&self) {
        let entries = fs::read_dir(&self.directory).into_iter().flatten().flatten().map(|entry| entry.path());
        for left in entries.filter(|path| path.extension().is_some_and(|extension| extension == DRAFT)) {
            let _ = fs::remove_file(left);
        }
    }
}

/// A file that could not be understood, and was moved aside.
#[derive(Debug, thiserror::Error)]
#[error("{problem}\nit was kept as {}, and new measurements start a new file", kept.display())]
pub struct MovedAside {
    /// The error in it.
    #[source]
    pub problem: ModelError,
    /// Its new path.
    pub kept: PathBuf,
}

/// Renames a file to an unused name.
fn move_aside(path: &Path, problem: ModelError) -> Result<MovedAside, ModelError> {
    let why = if matches!(problem, ModelError::Newer { .. }) { "newer" } else { "damaged" };
    for number in 1u32.. {
        let mut name = path.as_os_str().to_owned();
        name.push(format!(".{why}-{number}"));
        let kept = PathBuf::from(name);
        // Unlike a rename, this fails if the target exists.
        match fs::hard_link(path, &kept) {
            Ok(()) => {
                fs::remove_file(path).map_err(|error| ModelError::io(path, "moved aside", error))?;
                return Ok(MovedAside { problem, kept });
            }
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
            // The file system has no links: every process that changes the directory holds its lock.
            Err(_) if !kept.exists() => {
                fs::rename(path, &kept).map_err(|error| ModelError::io(path, "moved aside", error))?;
                return Ok(MovedAside { problem, kept });
            }
            Err(_) => {}
        }
    }
    unreachable!("some number is free")
}

/// Replaces a file atomically: at every moment either the old or the new one exists, whatever happens.
pub fn write_whole(path: &Path, bytes: &[u8]) -> Result<(), ModelError> {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let mut name = path.as_os_str().to_owned();
    name.push(format!(".{}-{}.{DRAFT}", std::process::id(), NEXT.fetch_add(1, Relaxed)));
    let beside = PathBuf::from(name);
    let written = File::create_new(&beside).and_then(|mut file| {
        file.write_all(bytes)?;
        file.sync_all()?;
        fs::rename(&beside, path)
    });
    if let Err(error) = written {
        let _ = fs::remove_file(&beside);
        return Err(ModelError::io(path, "written", error));
    }
    // Syncing the directory makes the new name survive a power failure. Where that is impossible, the system writes it
    // later.
    if let Some(directory) = path.parent() {
        let _ = File::open(directory).and_then(|directory| directory.sync_all());
    }
    Ok(())
}

#[cfg(test)]
mod tests;

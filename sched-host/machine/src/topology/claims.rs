//! Claims: how runtimes of one user learn which PUs the others use.
//!
//! Each runtime whose workers are bound keeps a file with its process and its PUs in a directory of the user, and locks
//! it while it lives. The lock is released when the process ends, however it ends: an unlocked file is a leftover,
//! removed by whichever runtime finds it. Claims are only advice. If the directory or a file is unavailable, nothing is
//! announced, and every runtime starts all the same.

use rustix::fs::OFlags;
use std::fs::{self, DirBuilder, File};
use std::io::{Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

/// Extension of complete files.
const COMPLETE: &str = "claim";

/// Maximum size of a file in bytes.
const MOST_BYTES: u64 = 1 << 20;

/// The PUs of a runtime, announced to others until this is dropped.
#[derive(Debug)]
pub struct Claim {
    path: PathBuf,
    /// Holds the lock.
    _file: File,
}

impl Claim {
    /// Announces that workers of this process are bound to `pus`; `None` if announcing is impossible.
    #[must_use]
    pub fn new(pus: impl IntoIterator<Item = u32>) -> Option<Self> {
        Self::within(&folder()?, pus)
    }

    fn within(folder: &Path, pus: impl IntoIterator<Item = u32>) -> Option<Self> {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let name = format!("{}-{}", std::process::id(), NEXT.fetch_add(1, Relaxed));
        // Others consider a file only under its final name: by then it is locked and written.
        let (draft, path) = (folder.join(format!("{name}.draft")), folder.join(format!("{name}.{COMPLETE}")));
        // A process that ended early may have left a draft under the same number. A link is never followed.
        let _ = fs::remove_file(&draft);
        let written = File::create_new(&draft).and_then(|mut file| {
            file.try_lock()?;
            write!(file, "{}", std::process::id())?;
            pus.into_iter().try_for_each(|pu| write!(file, " {pu}"))?;
            fs::rename(&draft, &path)?;
            Ok(file)
        });
        match written {
            Ok(file) => Some(Self { path, _file: file }),
            Err(_) => {
                let _ = fs::remove_file(&draft);
                None
            }
        }
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        // A leftover is removed by the next runtime that finds it.
        let _ = fs::remove_file(&self.path);
    }
}

/// Another runtime.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Neighbour {
    /// Its process, which may be this one.
    pub process: u32,
    /// The PUs that its workers are bound to, ascending.
    pub pus: Vec<u32>,
}

/// The runtimes announced in `folder`, in order of their processes, without the owner of `own`.
pub(super) fn neighbours(folder: &Path, own: Option<&Claim>) -> Vec<Neighbour> {
    let Ok(entries) = fs::read_dir(folder) else { return Vec::new() };
    let paths = entries.filter_map(|entry| Some(entry.ok()?.path()));
    let others = paths
        .filter(|path| path.extension().is_some_and(|end| end == COMPLETE) && own.is_none_or(|own| own.path != *path));
    let mut found: Vec<Neighbour> = others.filter_map(|path| read(&path)).collect();
    found.sort_by(|one, other| (one.process, &one.pus).cmp(&(other.process, &other.pus)));
    found
}

/// The content of a claim file whose owner lives; otherwise removes the file.
fn read(path: &Path) -> Option<Neighbour> {
    // Miri does not know the second flag.
    let flags = if cfg!(miri) { OFlags::NOFOLLOW } else { OFlags::NOFOLLOW | OFlags::NONBLOCK }.bits();
    let file = File::options().read(true).custom_flags(flags.cast_signed()).open(path).ok()?;
    if !file.metadata().ok()?.is_file() {
        return None;
    }
    // A shared lock, so that two concurrent readers do not mistake each other for the owner.
    if file.try_lock_shared().is_ok() {
        let _ = fs::remove_file(path);
        return None;
    }
    let mut text = String::new();
    (&file).take(MOST_BYTES).read_to_string(&mut text).ok()?;
    let mut numbers = text.split_whitespace().map(str::parse);
    let process = numbers.next()?.ok()?;
    let mut pus: Vec<u32> = numbers.collect::<Result<_, _>>().ok()?;
    pus.sort_unstable();
    pus.dedup();
    Some(Neighbour { process, pus })
}

/// The directory of this user, created if necessary. It must be a directory owned by the user: in a shared place for
/// temporary files, another user may have created it first.
pub(super) fn folder() -> Option<PathBuf> {
    let user = fs::metadata("/proc/self").ok()?.uid();
    let folder = match std::env::var_os("XDG_RUNTIME_DIR") {
        Some(runtime) => PathBuf::from(runtime).join("sched"),
        None => std::env::temp_dir().join(format!("sched-{user}")),
    };
    let _ = DirBuilder::new().mode(0o700).create(&folder);
    let found = fs::symlink_metadata(&folder).ok()?;
    (found.is_dir() && found.uid() == user).then_some(folder)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn empty() -> tempfile::TempDir {
        tempfile::tempdir().expect("a temporary folder can be made")
    }

    #[test]
    fn two_runtimes_see_each_other_while_both_live() {
        let folder = empty();
        let one = Claim::within(folder.path(), [3, 0, 1]).expect("the folder can be written");
        assert_eq!(neighbours(folder.path(), Some(&one)), []);
        let two = Claim::within(folder.path(), [7]).expect("the folder can be written");
        let process = std::process::id();
        assert_eq!(neighbours(folder.path(), Some(&one)), [Neighbour { process, pus: vec![7] }]);
        assert_eq!(neighbours(folder.path(), Some(&two)), [Neighbour { process, pus: vec![0, 1, 3] }]);
        assert_eq!(neighbours(folder.path(), None).len(), 2);
        drop(one);
        assert_eq!(neighbours(folder.path(), Some(&two)), []);
        drop(two);
        assert_eq!(fs::read_dir(folder.path()).expect("it is there").count(), 0, "nothing is left behind");
    }

    #[test]
    fn what_a_dead_process_left_is_removed() {
        let folder = empty();
        let (left, other) = (folder.path().join("1-0.claim"), folder.path().join("notes.txt"));
        fs::write(&left, "1 0 1 2").expect("it can be written");
        fs::write(&other, "").expect("it can be written");
        assert_eq!(neighbours(folder.path(), None), []);
        assert!(!left.exists() && other.exists());
    }

    #[test]
    fn a_link_is_neither_followed_nor_removed() {
        let (folder, other) = (empty(), empty());
        let (kept, link) = (other.path().join("kept"), folder.path().join("1-0.claim"));
        fs::write(&kept, "1 0 1 2").expect("it can be written");
        std::os::unix::fs::symlink(&kept, &link).expect("a link");
        assert_eq!(neighbours(folder.path(), None), []);
        assert!(link.is_symlink() && kept.exists());
    }

    #[test]
    fn without_a_folder_nothing_is_told_and_nobody_fails() {
        let folder = empty();
        let gone = folder.path().join("gone");
        assert!(Claim::within(&gone, [0]).is_none());
        assert_eq!(neighbours(&gone, None), []);
    }
}

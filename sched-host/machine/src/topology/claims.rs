//! Which runtimes of this user are bound to which PUs, as they tell each other.
//!
//! Each runtime whose workers are bound keeps a file in a folder of the user, in which its process and its PUs stand, and
//! holds a lock on it while it lives. The lock goes with the process, however that ends: a file that nobody locks is
//! left over, and is removed by whoever finds it. All of it is advice. Where the folder or a file cannot be had, nothing is
//! told, and every runtime starts all the same.

use std::fs::{self, DirBuilder, File};
use std::io::Write;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

/// How the names of files end that are complete.
const COMPLETE: &str = "claim";

/// The PUs of a runtime, told to others until this is dropped.
#[derive(Debug)]
pub struct Claim {
    path: PathBuf,
    /// Holds the lock.
    _file: File,
}

impl Claim {
    /// Tells others that workers of this process are bound to `pus`; `None` where there is no way to tell.
    #[must_use]
    pub fn new(pus: impl IntoIterator<Item = u32>) -> Option<Self> {
        Self::within(&folder()?, pus)
    }

    fn within(folder: &Path, pus: impl IntoIterator<Item = u32>) -> Option<Self> {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let name = format!("{}-{}", std::process::id(), NEXT.fetch_add(1, Relaxed));
        // Others heed the file once it has its lasting name: it is locked and written by then.
        let (draft, path) = (folder.join(format!("{name}.draft")), folder.join(format!("{name}.{COMPLETE}")));
        let told = File::create(&draft).and_then(|mut file| {
            file.try_lock()?;
            write!(file, "{}", std::process::id())?;
            pus.into_iter().try_for_each(|pu| write!(file, " {pu}"))?;
            fs::rename(&draft, &path)?;
            Ok(file)
        });
        match told {
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
        // What stays behind is removed by who finds it.
        let _ = fs::remove_file(&self.path);
    }
}

/// Another runtime.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Neighbour {
    /// Its process: perhaps this one.
    pub process: u32,
    /// The PUs that its workers are bound to, ascending.
    pub pus: Vec<u32>,
}

/// The runtimes that tell of themselves in `folder`, in order of their processes; without the one that made `own`.
pub(super) fn neighbours(folder: &Path, own: Option<&Claim>) -> Vec<Neighbour> {
    let Ok(entries) = fs::read_dir(folder) else { return Vec::new() };
    let paths = entries.filter_map(|entry| Some(entry.ok()?.path()));
    let others = paths
        .filter(|path| path.extension().is_some_and(|end| end == COMPLETE) && own.is_none_or(|own| own.path != *path));
    let mut found: Vec<Neighbour> = others.filter_map(|path| read(&path)).collect();
    found.sort_by(|one, other| (one.process, &one.pus).cmp(&(other.process, &other.pus)));
    found
}

/// What a file tells, if who wrote it lives; else it is removed.
fn read(path: &Path) -> Option<Neighbour> {
    let file = File::open(path).ok()?;
    // Shared, so that two who look at once do not take each other for the owner.
    if file.try_lock_shared().is_ok() {
        let _ = fs::remove_file(path);
        return None;
    }
    let text = fs::read_to_string(path).ok()?;
    let mut numbers = text.split_whitespace().map(str::parse);
    let process = numbers.next()?.ok()?;
    let mut pus: Vec<u32> = numbers.collect::<Result<_, _>>().ok()?;
    pus.sort_unstable();
    pus.dedup();
    Some(Neighbour { process, pus })
}

/// The folder of this user, made if need be. It is refused unless it is a folder and the user's own: in a place for
/// everybody's temporary files, others may have been there first.
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
    fn without_a_folder_nothing_is_told_and_nobody_fails() {
        let folder = empty();
        let gone = folder.path().join("gone");
        assert!(Claim::within(&gone, [0]).is_none());
        assert_eq!(neighbours(&gone, None), []);
    }
}

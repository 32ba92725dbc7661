//! Drafts: files that are being written, beside the old ones, which stay until they are complete.
//!
//! A draft is locked while it is written. The lock is released when its process ends, however it ends: an unlocked
//! draft is a leftover, which the next draft of the same file removes. Where files cannot be locked, leftovers stay.

use std::ffi::OsStr;
use std::fs::{self, File, TryLockError};
use std::io::{Error, ErrorKind, Result, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

/// A file that is being written.
#[derive(Debug)]
pub(super) struct Draft {
    file: File,
    /// Its path so far and at the end; `None` for a pipe or a device.
    paths: Option<(PathBuf, PathBuf)>,
}

impl Draft {
    pub(super) fn new(path: &Path) -> Result<Draft> {
        // What a link leads to is replaced, or made, not the link.
        let path = &fs::canonicalize(path).unwrap_or_else(|_| behind_links(path));
        match fs::metadata(path) {
            // The file must be writable itself, whatever its folder allows.
            Ok(there) if there.is_file() => drop(File::options().append(true).open(path)?),
            Ok(_) => return Ok(Draft { file: File::options().write(true).open(path)?, paths: None }),
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
        remove_leftovers(path);
        let (file, draft) = locked(path)?;
        let whole = Draft { file, paths: Some((draft, path.clone())) };
        if let Ok(there) = fs::metadata(path) {
            whole.file.set_permissions(there.permissions())?;
        }
        Ok(whole)
    }

    /// Makes it the file.
    pub(super) fn complete(&mut self) -> Result<()> {
        match self.paths.take() {
            Some((draft, path)) => fs::rename(&draft, path).inspect_err(|_| _ = fs::remove_file(&draft)),
            None => Ok(()),
        }
    }
}

impl Write for Draft {
    fn write(&mut self, bytes: &[u8]) -> Result<usize> {
        self.file.write(bytes)
    }

    fn flush(&mut self) -> Result<()> {
        self.file.flush()
    }
}

impl Drop for Draft {
    fn drop(&mut self) {
        if let Some((draft, _)) = &self.paths {
            let _ = fs::remove_file(draft);
        }
    }
}

/// The path that links lead to, which may be of no file so far.
fn behind_links(path: &Path) -> PathBuf {
    /// As many as Linux follows: links that lead to each other have no end.
    const MOST: usize = 40;
    let mut path = path.to_owned();
    for _ in 0..MOST {
        match fs::read_link(&path) {
            // A relative target is beside the link; an absolute one replaces the path.
            Ok(target) => path = path.parent().unwrap_or(Path::new("")).join(target),
            Err(_) => break,
        }
    }
    path
}

/// A new file beside `path`, locked if the file system can, with its path.
fn locked(path: &Path) -> Result<(File, PathBuf)> {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let (first, process) = (NEXT.fetch_add(1, Relaxed), std::process::id());
    // In a container, other processes with this number may have written drafts, or be about to.
    for number in first.. {
        let mut name = path.as_os_str().to_owned();
        name.push(format!(".sched-{process}-{number}.draft"));
        let draft = PathBuf::from(name);
        let file = match File::create_new(&draft) {
            Err(error) if error.kind() == ErrorKind::AlreadyExists => continue,
            made => made?,
        };
        // Before the lock, another process may have taken it for a leftover.
        let is_taken = matches!(file.try_lock(), Err(TryLockError::WouldBlock));
        if !is_taken && is_at(&file, &draft) {
            return Ok((file, draft));
        }
    }
    Err(Error::new(ErrorKind::AlreadyExists, "there is no free name for its draft: remove the files *.draft beside it"))
}

/// Removes the drafts of `path` whose processes are gone.
fn remove_leftovers(path: &Path) {
    let Some(name) = path.file_name() else { return };
    let folder = path.parent().filter(|folder| *folder != Path::new("")).unwrap_or(Path::new("."));
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    for entry in entries.filter(|entry| is_draft_of(name, &entry.file_name())) {
        let is_file = entry.file_type().is_ok_and(|kind| kind.is_file());
        let Some(file) = is_file.then(|| File::open(entry.path()).ok()).flatten() else { continue };
        if file.try_lock().is_ok() && is_at(&file, &entry.path()) {
            let _ = fs::remove_file(entry.path());
        }
    }
}

fn is_draft_of(name: &OsStr, entry: &OsStr) -> bool {
    let rest = entry.as_encoded_bytes().strip_prefix(name.as_encoded_bytes());
    let numbers = rest.and_then(|rest| rest.strip_prefix(b".sched-")?.strip_suffix(b".draft"));
    numbers.is_some_and(|numbers| numbers.iter().all(|byte| byte.is_ascii_digit() || *byte == b'-'))
}

/// Whether `path` still leads to `file`.
fn is_at(file: &File, path: &Path) -> bool {
    let (open, there) = (file.metadata(), fs::symlink_metadata(path));
    open.is_ok_and(|open| there.is_ok_and(|there| (open.dev(), open.ino()) == (there.dev(), there.ino())))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(folder: &Path) -> Vec<String> {
        let entries = fs::read_dir(folder).expect("a folder").flatten();
        let mut names: Vec<String> = entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
        names.sort();
        names
    }

    #[test]
    fn drafts_of_killed_processes_are_removed_and_those_of_living_ones_stay() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("out.json");
        let process = std::process::id();
        // In a container, all processes may have the same number.
        for name in [format!("out.json.sched-{process}-0.draft"), "out.json.sched-1-0.draft".to_owned()] {
            fs::write(folder.path().join(name), "half").expect("it can be written");
        }
        let others = ["out.json.sched-notes.draft", "other.json.sched-1-0.draft"];
        others.iter().for_each(|name| fs::write(folder.path().join(name), "kept").expect("it can be written"));
        let mut living = Draft::new(&path).expect("a draft");
        assert_eq!(names(folder.path()).len(), 3, "{:?}", names(folder.path()));
        let mut second = Draft::new(&path).expect("a draft");
        living.write_all(b"first").and_then(|()| living.complete()).expect("it is still there");
        assert_eq!(fs::read(&path).expect("it is there"), b"first");
        second.write_all(b"second").and_then(|()| second.complete()).expect("it is still there");
        assert_eq!(fs::read(&path).expect("it is there"), b"second");
        assert_eq!(names(folder.path()), [others[1], "out.json", others[0]]);
    }

    #[test]
    fn a_link_to_no_file_stays_and_the_file_is_made() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = |name: &str| folder.path().join(name);
        fs::create_dir(path("below")).expect("a folder");
        for (link, to) in [("first", "below/second"), ("below/second", "../out.json")] {
            std::os::unix::fs::symlink(to, path(link)).expect("a link");
        }
        let mut draft = Draft::new(&path("first")).expect("a draft");
        draft.write_all(b"new").and_then(|()| draft.complete()).expect("it is still there");
        assert_eq!(names(folder.path()), ["below", "first", "out.json"]);
        assert!(path("first").is_symlink() && path("below/second").is_symlink());
        assert_eq!(fs::read(path("first")).expect("the link leads there"), b"new");
        // Without its folder it cannot be made; links in a circle lead nowhere.
        for (link, to) in [("lost", "nowhere/out.json"), ("circle", "circle")] {
            std::os::unix::fs::symlink(to, path(link)).expect("a link");
            let made = Draft::new(&path(link)).map(drop).expect_err("there is no such file");
            assert!(path(link).is_symlink(), "{made}");
        }
    }

    #[test]
    fn a_name_that_is_taken_is_passed_over() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("out.json");
        // A folder is no leftover, and cannot be replaced.
        for number in 0..4 {
            let name = format!("out.json.sched-{}-{number}.draft", std::process::id());
            fs::create_dir(folder.path().join(name)).expect("a folder");
        }
        Draft::new(&path).and_then(|mut draft| draft.complete()).expect("there are other names");
        assert!(path.is_file());
    }
}

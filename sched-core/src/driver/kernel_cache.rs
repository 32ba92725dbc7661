//! Compiled kernels on disk, so that the next process does not compile them again.
//!
//! A file has all that its content depends on, and a hash over everything: one that is damaged, cut off, or of
//! something else whose name has the same hash is as good as none, and is replaced. Files are written beside and
//! renamed, so a reader sees a complete one, and the last of several writers stays.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// First bytes of every file; another format has others.
const MAGIC: [u8; 16] = *b"sched-kernel 1\n\0";

/// Extension of the files.
const EXTENSION: &str = "kernel";

/// Extension of files that are being written.
const DRAFT: &str = "new";

/// Number of files that are kept.
const MOST: usize = 512;

/// Kernels that were compiled before, in a folder of the user. Drivers keep there what the vendor's library does not.
///
/// Nothing here fails: without a folder that can be written, kernels are compiled in each process.
///
/// ```
/// use sched_core::driver::KernelCache;
///
/// let cache = KernelCache::none(); // KernelCache::of_user() in a driver
/// let key = ["source of the kernel", "-O2", "board", "driver 1.0", "compiler 2"];
/// let load = |binary: &[u8]| Ok::<usize, String>(binary.len());
/// let module = cache.obtain(&key, load, || Ok((6, b"binary".to_vec())));
/// assert_eq!(module, Ok(6));
/// ```
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct KernelCache {
    folder: Option<PathBuf>,
}

impl KernelCache {
    /// The user's: in `$SCHED_KERNEL_CACHE`, which is a folder, or `none` for none; by default `sched/kernels` in
    /// `$XDG_CACHE_HOME`, or in `~/.cache`.
    #[must_use]
    pub fn of_user() -> KernelCache {
        KernelCache::of(|name| std::env::var_os(name))
    }

    /// No cache: everything is compiled.
    #[must_use]
    pub const fn none() -> KernelCache {
        KernelCache { folder: None }
    }

    /// As [`of_user`](Self::of_user), given the environment.
    fn of(env: impl Fn(&str) -> Option<OsString>) -> KernelCache {
        let env = |name| env(name).filter(|value| !value.is_empty()).map(PathBuf::from);
        let cache = || env("XDG_CACHE_HOME").or_else(|| env("HOME").map(|home| home.join(".cache")));
        match env("SCHED_KERNEL_CACHE") {
            Some(chosen) if chosen == Path::new("none") => KernelCache::none(),
            chosen => KernelCache { folder: chosen.or_else(|| cache().map(|cache| cache.join("sched/kernels"))) },
        }
    }

    /// A module by `load` of the stored binary; where there is none, or `load` refuses it, by `compile`, whose binary
    /// is stored unless it is empty. `key` is all that the binary depends on: source, options, device, and versions of
    /// driver and compiler. Where source or options include other files, nothing is stored.
    ///
    /// # Errors
    /// Those of `compile`.
    pub fn obtain<M, E>(
        &self,
        key: &[&str],
        load: impl FnOnce(&[u8]) -> Result<M, E>,
        compile: impl FnOnce() -> Result<(M, Vec<u8>), E>,
    ) -> Result<M, E> {
        let folder = self.folder.as_deref().filter(|_| !key.iter().any(|part| includes(part)));
        let Some(folder) = folder else { return Ok(compile()?.0) };
        let head = head(key);
        let path = folder.join(format!("{:016x}.{EXTENSION}", hash(&head)));
        if let Some(module) = read(&path, &head).and_then(|binary| load(&binary).ok()) {
            return Ok(module);
        }
        let (module, binary) = compile()?;
        if !binary.is_empty() {
            // The next process compiles then.
            let _ = write(&path, head, &binary);
        }
        Ok(module)
    }
}

/// Whether this source includes files, or these options do; in doubt, it does.
fn includes(text: &str) -> bool {
    text.lines().any(|line| line.contains("include") && line.contains(['#', '%', '-']))
}

/// The 64-bit FNV-1a hash.
fn hash(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3))
}

/// What comes before the binary in the file of a key.
fn head(key: &[&str]) -> Vec<u8> {
    let mut head = MAGIC.to_vec();
    head.extend((key.len() as u64).to_le_bytes());
    for part in key {
        head.extend((part.len() as u64).to_le_bytes());
        head.extend(part.as_bytes());
    }
    head
}

/// The binary in a file, if it is whole and has this head.
fn read(path: &Path, head: &[u8]) -> Option<Vec<u8>> {
    let mut bytes = fs::read(path).ok()?;
    let (rest, guard) = bytes.split_last_chunk()?;
    let is_sound = rest.starts_with(head) && hash(rest) == u64::from_le_bytes(*guard);
    let end = rest.len();
    is_sound.then(|| {
        bytes.truncate(end);
        bytes.split_off(head.len())
    })
}

/// Replaces a file at once.
fn write(path: &Path, head: Vec<u8>, binary: &[u8]) -> io::Result<()> {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let mut bytes = head;
    bytes.extend(binary);
    bytes.extend(hash(&bytes).to_le_bytes());
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder)?;
        sweep(folder);
    }
    let draft = path.with_extension(format!("{}-{}.{DRAFT}", std::process::id(), NEXT.fetch_add(1, Relaxed)));
    let written =
        File::create_new(&draft).and_then(|mut file| file.write_all(&bytes)).and_then(|()| fs::rename(&draft, path));
    if written.is_err() {
        let _ = fs::remove_file(&draft);
    }
    written
}

/// Forgets everything where there are too many files: what is in use is compiled once more.
fn sweep(folder: &Path) {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    let is_ours = |path: &PathBuf| path.extension().is_some_and(|end| end == EXTENSION || end == DRAFT);
    let files: Vec<PathBuf> = entries.filter(is_ours).collect();
    if files.len() >= MOST {
        for file in files {
            let _ = fs::remove_file(file);
        }
    }
}

#[cfg(test)]
mod tests;

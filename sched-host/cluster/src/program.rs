//! The program that this process runs.

use sched_text::hash::{digest, fold};
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

/// Bytes of the file that are looked at together.
const CHUNK: u64 = 1 << 16;

/// Its name, and a hash of its file.
pub(crate) fn this() -> String {
    let file = std::env::current_exe().unwrap_or_default();
    let name = file.file_name().unwrap_or_default().to_string_lossy().into_owned();
    match hash(&file) {
        Ok(hash) => format!("`{name}` ({hash:016x})"),
        Err(error) => format!("`{name}`, whose file cannot be read ({error})"),
    }
}

fn hash(path: &Path) -> io::Result<u64> {
    let mut file = File::open(path)?;
    let (mut chunk, mut hash) = (Vec::with_capacity(CHUNK as usize), 0);
    // Each chunk but the last is full, however much a read gives: one file has one hash.
    while (&mut file).take(CHUNK).read_to_end(&mut chunk)? > 0 {
        hash = fold(hash, digest(&chunk) as u64);
        chunk.clear();
    }
    Ok(hash)
}

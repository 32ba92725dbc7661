//! The reference data that some tests compare with. Most of it is not part of the repository.

use std::path::{Path, PathBuf};

/// The folder of all reference data, which lies beside the repository. Where it is absent, `None`, and the running test
/// is reported as [skipped](super::skipped).
#[must_use]
pub fn reference_folder() -> Option<PathBuf> {
    reference_data("")
}

/// The file or folder of this path in the reference data, or else its copy in this repository, if it has one. Without
/// either, `None`, and the running test is reported as [skipped](super::skipped).
#[must_use]
pub fn reference_data(path: &str) -> Option<PathBuf> {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let beside = here.join("../../../shared/data").join(path);
    let copied = here.join("data").join(path);
    let found = [Some(beside), (!path.is_empty()).then_some(copied)].into_iter().flatten().find(|file| file.exists());
    if found.is_none() {
        let what = if path.is_empty() { "the folder" } else { path };
        super::skipped(&format!("{what} is not in the reference data"));
    }
    found
}

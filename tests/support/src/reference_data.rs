//! The reference data that some tests compare with. It is not part of the repository.

use std::path::{Path, PathBuf};

/// The folder of the reference data, which lies beside the repository. `None`, with a line that says that the test is
/// skipped, where it is absent.
#[must_use]
pub fn reference_folder() -> Option<PathBuf> {
    reference_data("")
}

/// The file or folder of this path in the reference data. `None`, with a line that says that the test is skipped, where it
/// is absent.
#[must_use]
#[expect(clippy::print_stderr, reason = "whoever runs the tests sees which were skipped")]
pub fn reference_data(path: &str) -> Option<PathBuf> {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data").join(path);
    if !file.exists() {
        eprintln!("skipped: {} is not in the reference data", if path.is_empty() { "the folder" } else { path });
        return None;
    }
    Some(file)
}

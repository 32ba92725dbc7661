//! The reference data that some tests compare with. It is not part of the repository.

use std::path::{Path, PathBuf};

/// The folder of the reference data, which lies beside the repository; `None`, with a word that the test is skipped, where it
/// is not there.
#[must_use]
#[expect(clippy::print_stderr, reason = "whoever runs the tests is to know")]
pub fn reference_data() -> Option<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared/data");
    if !folder.is_dir() {
        eprintln!("skipped: there is no reference data in {}", folder.display());
        return None;
    }
    Some(folder)
}

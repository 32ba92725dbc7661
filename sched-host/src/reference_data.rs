//! The reference data that some tests compare with. It is not part of the repository.

use std::path::{Path, PathBuf};

/// The file or folder of this path in the reference data, which lies beside the repository; `None`, with a word that the test
/// is skipped, where it is not there.
#[allow(clippy::print_stderr, reason = "whoever runs the tests is to know")]
pub(crate) fn reference_data(path: &str) -> Option<PathBuf> {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared/data").join(path);
    if !file.exists() {
        eprintln!("skipped: {path} of the reference data is not there");
        return None;
    }
    Some(file)
}

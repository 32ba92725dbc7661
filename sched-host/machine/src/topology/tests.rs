//! Properties that users of a topology rely on.

mod combined;
mod pictures;
mod plans;
mod sources;

use std::path::PathBuf;

use super::Topology;

/// Two packages, each with ordinary memory, high-bandwidth memory, an L3 and two cores of two PUs.
fn two_memories() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("src/topology/testdata/two-memories.xml")
}

/// `two_memories`, restricted to PUs 0 to 3, the first package.
fn restricted() -> Topology {
    let all = std::fs::read_to_string(two_memories()).expect("the fixture is in the repository");
    let part = all.replace("allowed_cpuset=\"0x000000ff\"", "allowed_cpuset=\"0x0000000f\"");
    let file = tempfile::NamedTempFile::new().expect("a temporary file can be made");
    std::fs::write(file.path(), part).expect("a temporary file can be written");
    Topology::from_xml_file(file.path()).expect("the fixture is a topology")
}

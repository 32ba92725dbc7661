//! Energy counters as the kernel shows them.

use std::fs;
use std::path::{Path, PathBuf};

/// A folder as the kernel's, whose counters stand still until they are written.
pub struct Powercap {
    folder: tempfile::TempDir,
}

impl Powercap {
    /// With these zones: the folder, what is in its `name`, and how many microjoules the counter shows.
    #[must_use]
    pub fn new(zones: &[(&str, &str, u64)]) -> Powercap {
        let powercap = Powercap { folder: tempfile::tempdir().expect("a folder") };
        // The kernel has one for the driver, beside the zones.
        fs::create_dir(powercap.path().join("intel-rapl")).expect("a folder");
        for (zone, name, microjoules) in zones {
            fs::create_dir(powercap.path().join(zone)).expect("a folder");
            powercap.write(zone, "name", &format!("{name}\n"));
            powercap.write(zone, "max_energy_range_uj", "262143328850\n");
            powercap.write(zone, "energy_uj", &format!("{microjoules}\n"));
        }
        powercap
    }

    /// The folder.
    #[must_use]
    pub fn path(&self) -> &Path {
        self.folder.path()
    }

    /// The file that shows the energy of a zone.
    #[must_use]
    pub fn energy(&self, zone: &str) -> PathBuf {
        self.path().join(zone).join("energy_uj")
    }

    /// Replaces the text of a zone's file.
    pub fn write(&self, zone: &str, file: &str, text: &str) {
        fs::write(self.path().join(zone).join(file), text).expect("it can be written");
    }
}

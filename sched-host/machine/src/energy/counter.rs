//! The counter of one package.

use super::EnergyError;
use serde::Serialize;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// The energy counter of one package: a directory of the kernel's.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Counter {
    /// The kernel's name of the package, such as `package-0`.
    pub name: String,
    /// Its directory.
    pub path: PathBuf,
    /// The value in microjoules at which it wraps around to 0.
    pub range_uj: u64,
}

impl Counter {
    /// The counters of all packages below `root`, in order of their numbers: at least one, all of them readable.
    pub(super) fn find(root: &Path) -> Result<Vec<Counter>, EnergyError> {
        let entries = match fs::read_dir(root) {
            Ok(entries) => entries,
            Err(error) if error.kind() == ErrorKind::NotFound => {
                return Err(EnergyError::NoPowercap { root: root.to_owned() });
            }
            Err(error) => return Err(EnergyError::unreadable(root, error)),
        };
        let (mut zones, mut found) = (Vec::new(), Vec::new());
        for entry in entries {
            let name = entry.map_err(|error| EnergyError::unreadable(root, error))?.file_name();
            let name = name.to_string_lossy();
            // `intel-rapl:0:1` is a part of a package: the package's counter includes its energy.
            let number: Option<u32> = name.strip_prefix("intel-rapl:").and_then(|number| number.parse().ok());
            zones.extend(number.map(|number| (number, root.join(&*name))));
        }
        zones.sort();
        let mut counters = Vec::new();
        for (_, path) in zones {
            let Some(name) = name_in(&path)? else { return Err(EnergyError::Hidden { path }) };
            // `psys`, a sibling of the packages, covers the whole board including them.
            if name.starts_with("package-") {
                let range_uj = microjoules(&path.join("max_energy_range_uj"))?;
                let counter = Counter { name, path, range_uj };
                counter.read()?;
                counters.push(counter);
            } else {
                found.push(name);
            }
        }
        match counters.is_empty() {
            true => Err(EnergyError::NoPackage { root: root.to_owned(), found }),
            false => Ok(counters),
        }
    }

    /// The current reading in microjoules.
    pub(super) fn read(&self) -> Result<u64, EnergyError> {
        microjoules(&self.path.join("energy_uj"))
    }

    /// Microjoules between two readings, if the counter wrapped around at most once between them.
    pub(super) const fn between(&self, before: u64, after: u64) -> u64 {
        match after.checked_sub(before) {
            Some(moved) => moved,
            None => after.saturating_add(self.range_uj.saturating_sub(before)),
        }
    }
}

/// The kernel's name of a zone; `None` if its directory is empty, or a dangling link.
fn name_in(zone: &Path) -> Result<Option<String>, EnergyError> {
    let path = zone.join("name");
    match fs::read_to_string(&path) {
        Ok(name) => Ok(Some(name.trim().to_owned())),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(EnergyError::unreadable(&path, error)),
    }
}

fn text(path: &Path) -> Result<String, EnergyError> {
    let text = fs::read_to_string(path).map_err(|error| EnergyError::unreadable(path, error))?;
    Ok(text.trim().to_owned())
}

fn microjoules(path: &Path) -> Result<u64, EnergyError> {
    let found = text(path)?;
    found.parse().map_err(|_| EnergyError::NoNumber { path: path.to_owned(), found })
}

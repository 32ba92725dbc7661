//! Reasons why energy cannot be read.

use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

/// The fix for containers: they cover the directory with an empty one, so it must be mounted under another name.
const CONTAINER: &str = "into a container, mount its host's /sys/devices/virtual/powercap/intel-rapl under another name, and say \
                         so (`--powercap`, SCHED_POWERCAP or `EnergyMeter::open_at`)";

/// A reason why energy cannot be read.
#[derive(thiserror::Error, miette::Diagnostic)]
#[non_exhaustive]
pub enum EnergyError {
    /// The kernel provides no counters at all.
    #[error("{}: there is no such folder, expected the kernel's energy counters in it", root.display())]
    #[diagnostic(
        code(sched::energy::no_powercap),
        help(
            "on the machine itself, `modprobe intel_rapl_msr` as root makes them (for AMD's processors too); {}; most \
             virtual machines have none",
            CONTAINER
        )
    )]
    NoPowercap {
        /// The directory that was searched.
        root: PathBuf,
    },
    /// There is a counter without values.
    #[error("{}: found nothing in it, expected `name`, `energy_uj` and `max_energy_range_uj`", path.display())]
    #[diagnostic(code(sched::energy::hidden), help("containers hide energy counters: {}", CONTAINER))]
    Hidden {
        /// Its directory.
        path: PathBuf,
    },
    /// There are no counters of a package.
    #[error(
        "{}: found {}, expected at least one folder `intel-rapl:N` with a `name` such as `package-0`",
        root.display(),
        listed(found)
    )]
    #[diagnostic(
        code(sched::energy::no_package),
        help("`modprobe intel_rapl_msr` as root makes the counters, where the processor has them")
    )]
    NoPackage {
        /// The directory that was searched.
        root: PathBuf,
        /// Names of the zones found.
        found: Vec<String>,
    },
    /// This user may not read a counter.
    #[error("{}: this user may not read it", path.display())]
    #[diagnostic(
        code(sched::energy::permission),
        help(
            "kernels since 5.10 let only root read energy counters; root can let everybody read them until the next \
             boot: `chmod a+r {}/*/energy_uj`",
            above(path)
        )
    )]
    Permission {
        /// The file.
        path: PathBuf,
    },
    /// A file of a counter cannot be read.
    #[error("{}: it cannot be read: {source}", path.display())]
    #[diagnostic(
        code(sched::energy::unreadable),
        help("check whether `cat` can read it; if the kernel refuses that too, its log says why")
    )]
    Unreadable {
        /// The file or folder.
        path: PathBuf,
        /// The system's error.
        #[source]
        source: io::Error,
    },
    /// A file contains something other than a number.
    #[error("{}: found `{found}`, expected a whole number of microjoules", path.display())]
    #[diagnostic(code(sched::energy::no_number), help("the kernel writes nothing else there: is it the right folder?"))]
    NoNumber {
        /// The file.
        path: PathBuf,
        /// Its content.
        found: String,
    },
}

impl EnergyError {
    pub(super) fn unreadable(path: &Path, source: io::Error) -> EnergyError {
        let path = path.to_owned();
        match source.kind() {
            ErrorKind::PermissionDenied => EnergyError::Permission { path },
            _ => EnergyError::Unreadable { path, source },
        }
    }
}

fn listed(found: &[String]) -> String {
    if found.is_empty() { "none".to_owned() } else { format!("`{}`", found.join("`, `")) }
}

/// The parent of a counter's directory.
fn above(path: &Path) -> String {
    path.parent().and_then(Path::parent).unwrap_or(path).display().to_string()
}

sched_text::debug_as_text!(EnergyError);

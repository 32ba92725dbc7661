//! A codelet's performance model, in version 45 of StarPU's format.

use super::history::HistoryEntry;
use super::scan::Scan;
use crate::flaw::FoundFlaws;
use crate::{Flaw, ModelError, bus};
use sched_core::Arch;
use std::collections::HashSet;
use std::path::Path;

/// The supported version of the format.
pub(super) const VERSION: u64 = 45;

/// StarPU's measurements of one codelet on one machine.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct CodeletFile {
    /// Measurements for each combination of devices that executed a task.
    pub combs: Vec<Comb>,
}

/// A combination of devices that execute a task together; most often one worker.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Comb {
    /// The devices.
    pub devices: Vec<Device>,
    /// Measurements of each implementation, in the order of the codelet's implementations.
    pub implementations: Vec<Implementation>,
}

/// A device of a combination.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Device {
    /// StarPU's number of the architecture; see [`arch`](Self::arch).
    pub kind: u32,
    /// Number of the device among those of its architecture; 0 for all CPU cores.
    pub id: u32,
    /// Number of cores together: more than 1 for a combined worker.
    pub cores: u32,
}

/// StarPU's numbers of architectures.
const KINDS: [(u32, Arch); 7] = [
    (0, Arch::CPU),
    (1, Arch::CUDA),
    (2, Arch::OPENCL),
    (4, Arch::FPGA),
    (5, Arch::MPI),
    (7, Arch::HIP),
    (8, Arch::SYCL),
];

impl Device {
    /// The device with this number; `None` for an architecture unknown to StarPU.
    #[must_use]
    pub fn new(arch: Arch, id: u32, cores: u32) -> Option<Device> {
        let (kind, _) = KINDS.iter().find(|(_, known)| *known == arch)?;
        Some(Device { kind: *kind, id, cores })
    }

    /// Its architecture, if this crate has a corresponding one.
    #[must_use]
    pub fn arch(self) -> Option<Arch> {
        KINDS.iter().find(|(kind, _)| *kind == self.kind).map(|(_, arch)| *arch)
    }
}

/// Measurements of one implementation.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Implementation {
    /// Time as a power of the size.
    pub linear: LinearRegression,
    /// Time as `a · sizeᵇ + c`: the three coefficients, each NaN when unknown.
    pub nonlinear: [f64; 3],
    /// Multiple linear regression: the intercept, then a coefficient for each monomial. Empty if there is none.
    pub multiple: Vec<f64>,
    /// Means by footprint.
    pub history: Vec<HistoryEntry>,
}

/// `time = alpha · size^beta`, and the sums it was computed from.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct LinearRegression {
    /// Sum of the logarithms of the sizes.
    pub sumlnx: f64,
    /// Sum of their squares.
    pub sumlnx2: f64,
    /// Sum of the logarithms of the times.
    pub sumlny: f64,
    /// Sum of the products of the logarithms.
    pub sumlnxlny: f64,
    /// Factor; NaN when unknown.
    pub alpha: f64,
    /// Exponent; NaN when unknown.
    pub beta: f64,
    /// Number of samples.
    pub samples: u64,
    /// Smallest size.
    pub min: u64,
    /// Largest size.
    pub max: u64,
}

impl Default for LinearRegression {
    /// No samples.
    fn default() -> LinearRegression {
        let (alpha, beta) = (f64::NAN, f64::NAN);
        LinearRegression {
            sumlnx: 0.0,
            sumlnx2: 0.0,
            sumlny: 0.0,
            sumlnxlny: 0.0,
            alpha,
            beta,
            samples: 0,
            min: 0,
            max: 0,
        }
    }
}

impl CodeletFile {
    /// Reads a file.
    ///
    /// # Errors
    /// If it cannot be read, has another version, or is not such a file; all errors in history lines are reported
    /// together.
    pub fn read(path: &Path) -> Result<CodeletFile, ModelError> {
        bus::read(path, CodeletFile::parse)
    }

    /// Parses a text.
    ///
    /// # Errors
    /// All errors in history lines, or the first other error, after which the rest cannot be interpreted; each with its
    /// position.
    pub fn parse(text: &str) -> Result<CodeletFile, Vec<Flaw>> {
        let mut scan = Scan::new(text);
        let mut flaws = FoundFlaws::default();
        match file(&mut scan, &mut flaws) {
            Ok(file) if flaws.is_empty() => Ok(file),
            Ok(_) => Err(flaws.into_flaws()),
            Err(flaw) => {
                flaws.push(flaw);
                Err(flaws.into_flaws())
            }
        }
    }

    /// Measurements on one device, or on `cores` CPU cores together; `device` is 0 for cores.
    #[must_use]
    pub fn comb(&self, arch: Arch, device: u32, cores: u32) -> Option<&Comb> {
        self.combs.iter().find(|comb| match comb.devices[..] {
            // Old files have 0 cores for one worker.
            [only] => only.arch() == Some(arch) && only.id == device && only.cores.max(1) == cores.max(1),
            _ => false,
        })
    }

    /// Mean time in microseconds (or energy in joules) of the tasks with this footprint on one device; `None` if there
    /// were none. [`HistoryEntry::samples`] tells how reliable it is.
    #[must_use]
    pub fn history_mean(
        &self,
        arch: Arch,
        device: u32,
        cores: u32,
        implementation: usize,
        footprint: u32,
    ) -> Option<f64> {
        let measured = self.comb(arch, device, cores)?.implementations.get(implementation)?;
        measured.entry(footprint)?.estimate()
    }
}

impl Implementation {
    /// The measurements of tasks with this footprint.
    #[must_use]
    pub fn entry(&self, footprint: u32) -> Option<&HistoryEntry> {
        self.history.iter().find(|entry| entry.footprint == footprint && entry.samples > 0)
    }
}

fn file(scan: &mut Scan<'_>, flaws: &mut FoundFlaws) -> Result<CodeletFile, Flaw> {
    if scan.is_at_end() {
        return Err(scan.flaw("the file is empty, expected a performance model".to_owned()));
    }
    let before = scan.flaw(String::new());
    let version: u64 = scan.value("the version of the format, 45")?;
    if version != VERSION {
        let message = format!("found version {version} of the format, expected {VERSION}");
        return Err(Flaw { message, ..before });
    }
    let count: u64 = scan.value("the number of combinations of devices")?;
    let mut combs = Vec::new();
    let mut known = HashSet::new();
    for _ in 0..count {
        scan.skip();
        let twice =
            scan.flaw("found a combination of devices a second time, expected each once: merge them".to_owned());
        let comb = comb(scan, flaws)?;
        if !known.insert(comb.devices.clone()) {
            flaws.push(twice);
        }
        combs.push(comb);
    }
    Ok(CodeletFile { combs })
}

fn comb(scan: &mut Scan<'_>, flaws: &mut FoundFlaws) -> Result<Comb, Flaw> {
    let mut comb = Comb::default();
    let devices: u64 = scan.value("the number of devices of the combination")?;
    for _ in 0..devices {
        comb.devices.push(Device {
            kind: scan.value("the number of an architecture")?,
            id: scan.value("the number of a device")?,
            cores: scan.value("a number of cores")?,
        });
    }
    let implementations: u64 = scan.value("the number of implementations")?;
    for _ in 0..implementations {
        comb.implementations.push(implementation(scan, flaws)?);
    }
    Ok(comb)
}

fn implementation(scan: &mut Scan<'_>, flaws: &mut FoundFlaws) -> Result<Implementation, Flaw> {
    let entries: u64 = scan.value("the number of history lines")?;
    let linear = LinearRegression {
        sumlnx: scan.value("sumlnx, a number")?,
        sumlnx2: scan.value("sumlnx2, a number")?,
        sumlny: scan.value("sumlny, a number")?,
        sumlnxlny: scan.value("sumlnxlny, a number")?,
        alpha: scan.value("alpha, a number")?,
        beta: scan.value("beta, a number")?,
        samples: scan.value("n, a number of samples")?,
        min: scan.value("minx, a size in bytes")?,
        max: scan.value("maxx, a size in bytes")?,
    };
    let nonlinear = [scan.value("a, a number")?, scan.value("b, a number")?, scan.value("c, a number")?];
    let coefficients: u64 = scan.value("the number of coefficients of the multiple regression")?;
    let mut multiple = Vec::new();
    for _ in 0..coefficients {
        multiple.push(scan.value("a coefficient")?);
    }
    let mut history = Vec::new();
    let mut footprints = HashSet::new();
    for _ in 0..entries {
        let Some(line) = scan.line() else {
            return Err(scan.flaw("the file ends, expected a history line".to_owned()));
        };
        match HistoryEntry::read(&line) {
            Ok(entry) if footprints.insert(entry.footprint) => history.push(entry),
            Ok(entry) => flaws.push(line.flaw(format!(
                "found footprint {:08x} a second time, expected one line for each footprint: remove one of them",
                entry.footprint
            ))),
            Err(found) => flaws.extend(found),
        }
    }
    Ok(Implementation { linear, nonlinear, multiple, history })
}

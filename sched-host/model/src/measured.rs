//! Samples of one codelet, by variant, quantity and footprint.

use super::fit::{Linear, Point, Power};
use super::{Distribution, Kind};
use sched_core::Arch;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;

/// What executes a task: the worker's architecture, the number of workers together, and the implementation.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Variant {
    /// The architecture.
    pub arch: Arch,
    /// Number of workers that execute the task together: 1 for a simple worker, more for a combined one.
    pub cores: u32,
    /// Number of the implementation among those for the architecture, from 0.
    pub implementation: u32,
}

impl Variant {
    /// One worker of an architecture, with its first implementation.
    #[must_use]
    pub const fn of(arch: Arch) -> Variant {
        Variant { arch, cores: 1, implementation: 0 }
    }
}

impl fmt::Display for Variant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.arch)?;
        if self.cores != 1 {
            write!(f, " ×{}", self.cores)?;
        }
        write!(f, " implementation {}", self.implementation)
    }
}

/// What a model predicts.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Quantity {
    /// Time in microseconds.
    Time,
    /// Energy in joules.
    Energy,
}

impl Quantity {
    /// Its name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Quantity::Time => "time",
            Quantity::Energy => "energy",
        }
    }

    /// Its unit.
    #[must_use]
    pub const fn unit(self) -> &'static str {
        match self {
            Quantity::Time => "µs",
            Quantity::Energy => "J",
        }
    }
}

/// The size of a task, as models use it.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct SizeInfo<'a> {
    /// The key of its history: tasks with one footprint have the same duration. See
    /// [`task_footprint`](super::task_footprint).
    pub footprint: u32,
    /// Bytes of all its data, the variable of regressions.
    pub bytes: u64,
    /// Number of floating-point operations, if known: displayed, and exported to StarPU.
    pub flops: Option<f64>,
    /// The parameters of a multiple regression.
    pub params: &'a [f64],
}

/// Samples of the tasks with one footprint.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Entry {
    /// Bytes of their data.
    pub bytes: u64,
    /// Floating-point operations, if known.
    pub flops: Option<f64>,
    /// Parameters of a multiple regression.
    pub params: Vec<f64>,
    /// The samples, in microseconds or joules.
    pub samples: Distribution,
}

/// Regressions without their samples: imported from StarPU, which keeps only sums.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Prior {
    /// `a · sizeᵇ`.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub linear: Option<Power>,
    /// `sumlnx`, `sumlnx2`, `sumlny` and `sumlnxlny` of the linear regression.
    #[serde(default)]
    pub sums: [f64; 4],
    /// `a · sizeᵇ + c`.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub nonlinear: Option<Power>,
    /// A multiple regression.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub multiple: Option<Linear>,
}

impl Prior {
    /// Whether it contains no regression.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.linear.is_none() && self.nonlinear.is_none() && self.multiple.is_none()
    }
}

/// The samples of one variant.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Measured {
    /// Samples by footprint.
    pub entries: BTreeMap<u32, Entry>,
    /// Imported regressions without samples.
    pub prior: Prior,
}

/// Maximum number of footprints; samples of further ones are discarded. (A task of a different size each time needs a
/// regression, which this many points determine.)
pub(super) const ENTRIES: usize = 1 << 14;

impl Measured {
    /// Adds a sample. Returns whether it was kept.
    pub fn add(&mut self, size: &SizeInfo<'_>, sample: f64) -> bool {
        self.entry(size).is_some_and(|entry| entry.samples.add(sample))
    }

    /// Adds `count` equal samples. Returns whether they were kept.
    pub fn add_equal(&mut self, size: &SizeInfo<'_>, sample: f64, count: u64) -> bool {
        self.entry(size).is_some_and(|entry| entry.samples.add_equal(sample, count))
    }

    /// The entry for a footprint, created if there is room.
    pub(crate) fn entry(&mut self, size: &SizeInfo<'_>) -> Option<&mut Entry> {
        if self.entries.len() >= ENTRIES && !self.entries.contains_key(&size.footprint) {
            return None;
        }
        let entry = self.entries.entry(size.footprint).or_insert_with(|| Entry {
            bytes: size.bytes,
            flops: size.flops,
            params: size.params.to_vec(),
            samples: Distribution::default(),
        });
        entry.flops = entry.flops.or(size.flops);
        Some(entry)
    }

    /// Adds the samples of `other`.
    pub fn merge(&mut self, other: &Measured) {
        for (footprint, entry) in &other.entries {
            let size =
                SizeInfo { footprint: *footprint, bytes: entry.bytes, flops: entry.flops, params: &entry.params };
            if let Some(mine) = self.entry(&size) {
                mine.samples.merge(&entry.samples);
            }
        }
        if !other.prior.is_empty() {
            self.prior = other.prior.clone();
        }
    }

    /// Number of samples.
    #[must_use]
    pub fn samples(&self) -> u64 {
        self.entries.values().fold(0, |sum, entry| sum.saturating_add(entry.samples.count()))
    }

    /// Whether there are no samples and no regressions.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty() && self.prior.is_empty()
    }

    /// The data points of regressions.
    #[must_use]
    pub fn points(&self) -> Vec<Point> {
        let points = self.entries.values().filter_map(|entry| {
            let value = entry.samples.midmean()?;
            Some(Point {
                size: entry.bytes as f64,
                params: entry.params.clone(),
                value,
                samples: entry.samples.count(),
            })
        });
        points.collect()
    }

    /// The regression of the samples; `None` for a history model, and if the samples do not determine one.
    #[must_use]
    pub fn fit(&self, kind: &Kind) -> Option<Fit> {
        match kind {
            Kind::History => None,
            Kind::Regression => Power::linear(&self.points()).map(Fit::Power),
            Kind::NonLinear => Power::nonlinear(&self.points()).map(Fit::Power),
            Kind::Multiple(monomials) => Linear::fit(monomials, &self.points()).map(Fit::Linear),
        }
    }

    /// The imported regression.
    #[must_use]
    pub fn prior_fit(&self, kind: &Kind) -> Option<Fit> {
        match kind {
            Kind::History => None,
            Kind::Regression => self.prior.linear.map(Fit::Power),
            Kind::NonLinear => self.prior.nonlinear.map(Fit::Power),
            Kind::Multiple(_) => self.prior.multiple.clone().map(Fit::Linear),
        }
    }
}

/// A regression.
#[derive(Clone, PartialEq, Debug)]
pub enum Fit {
    /// A function of the size.
    Power(Power),
    /// A function of parameters.
    Linear(Linear),
}

impl Fit {
    /// The prediction for a task, if there are `minimum` samples and the task is similar to the measured ones.
    #[must_use]
    pub fn predict(&self, kind: &Kind, size: &SizeInfo<'_>, minimum: u64) -> Option<f64> {
        match (self, kind) {
            (Fit::Power(power), _) if power.is_calibrated(minimum) => power.predict(size.bytes as f64),
            (Fit::Linear(linear), Kind::Multiple(monomials)) if linear.samples >= minimum => {
                linear.predict(monomials, size.params)
            }
            _ => None,
        }
    }
}

/// All samples of one codelet.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Measurements {
    /// Samples by variant and quantity.
    pub variants: BTreeMap<(Variant, Quantity), Measured>,
}

impl Measurements {
    /// Adds the samples of `other`.
    pub fn merge(&mut self, other: &Measurements) {
        for (key, measured) in &other.variants {
            self.variants.entry(*key).or_default().merge(measured);
        }
    }

    /// Whether there are no samples.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.variants.values().all(Measured::is_empty)
    }

    /// Number of samples.
    #[must_use]
    pub fn samples(&self) -> u64 {
        self.variants.values().fold(0, |sum, measured| sum.saturating_add(measured.samples()))
    }
}

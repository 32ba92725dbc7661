//! What was measured of one codelet: samples by variant, quantity and footprint.

use super::fit::{Linear, Point, Power};
use super::{Distribution, Kind};
use sched_core::Arch;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;

/// What runs a task: the worker's architecture, how many of its kind work together, and which implementation.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Variant {
    /// The architecture.
    pub arch: Arch,
    /// Workers that run the task together: 1 for an ordinary worker, more for a combined one.
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

/// What a model is about.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Quantity {
    /// Microseconds.
    Time,
    /// Joules.
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

/// How large a task is, in the terms of models.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct SizeInfo<'a> {
    /// Under which number its history is kept: tasks with one footprint take alike long. See
    /// [`task_footprint`](super::task_footprint).
    pub footprint: u32,
    /// Bytes of all its data, which regressions go by.
    pub bytes: u64,
    /// Floating-point operations, if they are known: shown, and handed on to StarPU.
    pub flops: Option<f64>,
    /// The parameters of a multiple regression.
    pub params: &'a [f64],
}

/// What was measured of the tasks with one footprint.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Entry {
    /// Bytes of their data.
    pub bytes: u64,
    /// Floating-point operations, if known.
    pub flops: Option<f64>,
    /// Parameters of a multiple regression.
    pub params: Vec<f64>,
    /// The samples, microseconds or joules.
    pub samples: Distribution,
}

/// Regressions whose samples are not there: they came from StarPU, which keeps sums only.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Prior {
    /// `a · sizeᵇ`.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub linear: Option<Power>,
    /// `sumlnx`, `sumlnx2`, `sumlny` and `sumlnxlny` of the linear one.
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
    /// Whether there is nothing.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.linear.is_none() && self.nonlinear.is_none() && self.multiple.is_none()
    }
}

/// What was measured of one variant.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Measured {
    /// By footprint.
    pub entries: BTreeMap<u32, Entry>,
    /// What came along without samples.
    pub prior: Prior,
}

/// So many footprints are told apart; samples of further ones are not kept. (A task that has another size each time
/// needs a regression, which so many determine.)
pub(super) const ENTRIES: usize = 1 << 14;

impl Measured {
    /// Adds a sample. Whether it was kept.
    pub fn add(&mut self, size: &SizeInfo<'_>, sample: f64) -> bool {
        self.entry(size).is_some_and(|entry| entry.samples.add(sample))
    }

    /// Adds as many samples that are all alike. Whether they were kept.
    pub fn add_alike(&mut self, size: &SizeInfo<'_>, sample: f64, count: u64) -> bool {
        let many = count as f64;
        self.entry(size).is_some_and(|entry| entry.samples.add_many(count, many * sample, many * sample * sample))
    }

    /// The entry for a footprint, made if there is room.
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

    /// Adds what was measured elsewhere.
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

    /// Whether nothing was measured.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty() && self.prior.is_empty()
    }

    /// What regressions are made from.
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

    /// The regression of the samples; `None` for a history, and where the samples do not determine one.
    #[must_use]
    pub fn fit(&self, kind: &Kind) -> Option<Fit> {
        match kind {
            Kind::History => None,
            Kind::Regression => Power::linear(&self.points()).map(Fit::Power),
            Kind::NonLinear => Power::nonlinear(&self.points()).map(Fit::Power),
            Kind::Multiple(monomials) => Linear::fit(monomials, &self.points()).map(Fit::Linear),
        }
    }

    /// The regression that came along without its samples.
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
    /// By size.
    Power(Power),
    /// By parameters.
    Linear(Linear),
}

impl Fit {
    /// What it says of a task, if there are `minimum` samples and the task is like those that were measured.
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

/// All that was measured of one codelet.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Measurements {
    /// By what ran the tasks, and what was measured.
    pub variants: BTreeMap<(Variant, Quantity), Measured>,
}

impl Measurements {
    /// Adds what was measured elsewhere.
    pub fn merge(&mut self, other: &Measurements) {
        for (key, measured) in &other.variants {
            self.variants.entry(*key).or_default().merge(measured);
        }
    }

    /// Whether nothing was measured.
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

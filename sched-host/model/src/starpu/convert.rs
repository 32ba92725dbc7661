//! Converts StarPU's models to this crate's, and back.

use super::codelet::{CodeletFile, Comb, Device, Implementation, LinearRegression};
use super::history::HistoryEntry;
use crate::{Fit, Kind, Linear, Measured, Measurements, Power, Prior, Quantity, SizeInfo, Variant};
use sched_core::Arch;
use std::collections::{BTreeMap, HashSet};

/// Bound of the numbers of implementations that are exported: StarPU has 4 unless it is built for more, and a file
/// lists all up to the last one.
const IMPLEMENTATIONS: u32 = 64;

/// A StarPU model in this crate's terms.
#[derive(Clone, PartialEq, Debug)]
pub struct Imported {
    /// The kind of model. StarPU does not store the monomials of a multiple regression: a codelet declares them.
    pub kind: Kind,
    /// The measurements. Devices of one architecture are merged.
    pub measurements: Measurements,
    /// Number of combinations of devices without a counterpart here, which were skipped.
    pub skipped: usize,
}

impl CodeletFile {
    /// Converts the file, as a model of times or of energies.
    ///
    /// StarPU stores means, not samples, so imported data is only as robust as its means; samples measured from now on
    /// are added to them. Samples that an [export](Self::export) has written for several devices count once.
    #[must_use]
    pub fn import(&self, quantity: Quantity) -> Imported {
        let mut measurements = Measurements::default();
        let mut skipped = 0;
        let (mut linear, mut nonlinear) = (false, false);
        let mut counted: HashSet<(Arch, u32, String)> = HashSet::new();
        for comb in &self.combs {
            let Some((arch, cores)) = worker(comb) else {
                skipped += 1;
                continue;
            };
            // An export has the same samples for each device. Two devices that were measured agree in no sum.
            if !counted.insert((arch, cores, comb.measured_text())) {
                continue;
            }
            for (number, implementation) in comb.implementations.iter().enumerate() {
                let variant = Variant { arch, cores, implementation: number as u32 };
                let mut measured = Measured { prior: prior(implementation), ..Measured::default() };
                linear |= measured.prior.linear.is_some();
                nonlinear |= measured.prior.nonlinear.is_some();
                for entry in &implementation.history {
                    let flops = Some(entry.flops).filter(|flops| flops.is_finite() && *flops > 0.0);
                    let size = SizeInfo { footprint: entry.footprint, bytes: entry.size, flops, params: &[] };
                    // Edited files may have a mean but no sum.
                    let sum = if entry.sum > 0.0 { entry.sum } else { entry.mean * entry.samples as f64 };
                    if entry.estimate().is_some()
                        && let Some(mine) = measured.entry(&size)
                    {
                        mine.samples.add_many(entry.samples, sum, entry.sum2);
                    }
                }
                measured.entries.retain(|_, entry| !entry.samples.is_empty());
                if !measured.is_empty() {
                    measurements.variants.entry((variant, quantity)).or_default().merge(&measured);
                }
            }
        }
        let kind = match (linear, nonlinear) {
            (_, true) => Kind::NonLinear,
            (true, false) => Kind::Regression,
            (false, false) => Kind::History,
        };
        Imported { kind, measurements, skipped }
    }

    /// Converts measurements of times or energies to a file for StarPU. Architectures that StarPU does not know are
    /// omitted, and implementations beyond the first 64.
    ///
    /// StarPU has one combination for every device of an architecture, so the measurements of an architecture are
    /// written for each of its first `devices` devices (CUDA devices and the like); all CPU cores are one device.
    #[must_use]
    pub fn export(kind: &Kind, measurements: &Measurements, quantity: Quantity, devices: u32) -> CodeletFile {
        let mut workers: BTreeMap<(Arch, u32), Vec<Implementation>> = BTreeMap::new();
        for ((variant, of), measured) in &measurements.variants {
            if *of == quantity && variant.implementation < IMPLEMENTATIONS {
                let implementations = workers.entry((variant.arch, variant.cores)).or_default();
                let place = variant.implementation as usize;
                implementations.resize_with(implementations.len().max(place + 1), || Implementation {
                    nonlinear: [f64::NAN; 3],
                    ..Implementation::default()
                });
                implementations[place] = implementation(kind, measured);
            }
        }
        let mut combs = Vec::new();
        for ((arch, cores), implementations) in workers {
            let ids = if arch == Arch::CPU { 1 } else { devices };
            let devices = (0..ids).filter_map(|id| Device::new(arch, id, cores));
            combs
                .extend(devices.map(|device| Comb { devices: vec![device], implementations: implementations.clone() }));
        }
        CodeletFile { combs }
    }
}

/// The architecture and number of cores of a combination that is one worker.
fn worker(comb: &Comb) -> Option<(Arch, u32)> {
    match comb.devices[..] {
        [only] => Some((only.arch()?, only.cores.max(1))),
        _ => None,
    }
}

fn prior(from: &Implementation) -> Prior {
    let known = |numbers: &[f64]| numbers.iter().all(|number| number.is_finite());
    let LinearRegression { sumlnx, sumlnx2, sumlny, sumlnxlny, alpha, beta, samples, min, max } = from.linear;
    let power = |a: f64, b: f64, c: f64| {
        (known(&[a, b, c]) && samples > 0).then_some(Power { a, b, c, min: min as f64, max: max as f64, samples })
    };
    let linear = power(alpha, beta, 0.0);
    let [a, b, c] = from.nonlinear;
    let multiple = Some(&from.multiple).filter(|coefficients| !coefficients.is_empty() && known(coefficients));
    let counted = from.history.iter().fold(0u64, |sum, entry| sum.saturating_add(entry.samples));
    let sums = [sumlnx, sumlnx2, sumlny, sumlnxlny];
    Prior {
        sums: if linear.is_some() && known(&sums) { sums } else { [0.0; 4] },
        linear,
        nonlinear: power(a, b, c),
        multiple: multiple
            .map(|coefficients| Linear { coefficients: coefficients.clone(), samples: samples.max(counted) }),
    }
}

fn implementation(kind: &Kind, measured: &Measured) -> Implementation {
    let fitted = measured.fit(kind).or_else(|| measured.prior_fit(kind));
    let mut out = Implementation { nonlinear: [f64::NAN; 3], ..Implementation::default() };
    if *kind != Kind::History {
        let linear = Power::linear(&measured.points()).or(measured.prior.linear);
        out.linear = regression(measured, linear);
    }
    match fitted {
        Some(Fit::Power(power)) if *kind == Kind::NonLinear => out.nonlinear = [power.a, power.b, power.c],
        Some(Fit::Linear(linear)) => out.multiple = linear.coefficients,
        _ => {}
    }
    // Nobody may have declared its monomials here since it was imported.
    if let Some(prior) = measured.prior.multiple.as_ref().filter(|_| out.multiple.is_empty()) {
        out.multiple.clone_from(&prior.coefficients);
    }
    out.history = measured.entries.iter().map(|(footprint, entry)| history(*footprint, entry)).collect();
    out
}

fn history(footprint: u32, entry: &crate::Entry) -> HistoryEntry {
    let samples = &entry.samples;
    // StarPU estimates by the mean: it gets the robust one, and consistent sums.
    let (count, mean) = (samples.count(), samples.midmean().unwrap_or_default());
    let spread = |part: f64| samples.quantile(part).unwrap_or_default();
    // In a normal distribution, the middle half is 1.349 standard deviations wide.
    let robust = (spread(0.75) - spread(0.25)).max(0.0) / 1.349;
    let deviation = if robust > 0.0 { robust } else { samples.deviation().min(mean) };
    HistoryEntry {
        footprint,
        size: entry.bytes,
        flops: entry.flops.unwrap_or(0.0),
        mean,
        deviation,
        sum: mean * count as f64,
        sum2: (mean * mean + deviation * deviation) * count as f64,
        samples: count,
    }
}

/// The linear regression with its sums: that of the samples, unless the imported one has more.
fn regression(measured: &Measured, fit: Option<Power>) -> LinearRegression {
    let mut out = LinearRegression::default();
    if let Some(power) = fit {
        (out.alpha, out.beta) = (power.a, power.b);
    }
    let prior = measured.prior.linear.filter(|prior| prior.samples > measured.samples());
    if let Some(prior) = prior {
        [out.sumlnx, out.sumlnx2, out.sumlny, out.sumlnxlny] = measured.prior.sums;
        (out.samples, out.min, out.max) = (prior.samples, prior.min as u64, prior.max as u64);
        (out.alpha, out.beta) = (prior.a, prior.b);
        // It is of the samples below, too.
        return out;
    }
    for entry in measured.entries.values().filter(|entry| entry.bytes > 0) {
        let (x, count) = ((entry.bytes as f64).ln(), entry.samples.count());
        let Some(y) = entry.samples.midmean().map(f64::ln) else { continue };
        let weight = count as f64;
        out.sumlnx += weight * x;
        out.sumlnx2 += weight * x * x;
        out.sumlny += weight * y;
        out.sumlnxlny += weight * x * y;
        out.min = if out.samples == 0 { entry.bytes } else { out.min.min(entry.bytes) };
        out.max = out.max.max(entry.bytes);
        out.samples = out.samples.saturating_add(count);
    }
    out
}

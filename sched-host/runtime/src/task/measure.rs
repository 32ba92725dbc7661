//! Queries and records of performance models, by task.
//!
//! A task's [footprint](sched_core::Task::footprint) holds all that a model needs, so schedulers ask without reading
//! the data: StarPU's hash of the sizes in the lower half, and the number of bytes as a single-precision number in the
//! upper half.

use super::codelet::CodeletFacts;
use super::job::Job;
use crate::data::DataHeader;
use sched_core::{Arch, Estimate};
use sched_graph::AccessMode;
use sched_model::CodeletModel;
use sched_model::SizeInfo;
use sched_model::Variant;
use sched_model::{DataShape, crc32, fold_footprint, size_footprint};
use std::sync::Arc;
use std::time::Duration;

/// Footprint of data whose shape is unknown.
pub(crate) fn footprint_of_bytes(bytes: u64) -> u32 {
    match u32::try_from(bytes) {
        Ok(elemsize) => DataShape::Variable { elemsize }.footprint(),
        Err(_) => size_footprint(bytes),
    }
}

/// Footprint of a task with these data, in the order of its codelet, and these parameters.
fn footprint<'h>(data: impl Iterator<Item = &'h DataHeader>, params: &[f64]) -> u64 {
    let (mut hash, mut bytes) = (0, 0u64);
    for header in data {
        hash = fold_footprint(header.footprint, hash);
        bytes = bytes.saturating_add(header.bytes);
    }
    let hash = params.iter().fold(hash, |hash, param| crc32(&param.to_bits().to_le_bytes(), hash));
    u64::from((bytes as f32).to_bits()) << 32 | u64::from(hash)
}

/// Footprint of a task with these accesses, in the order of its codelet, for a model; with the parameters of a multiple
/// regression, which the model gets to know.
pub(crate) fn modelled(
    model: &CodeletModel,
    parameters: Option<&[f64]>,
    accesses: &[(&Arc<DataHeader>, AccessMode)],
) -> u64 {
    let data = accesses.iter().map(|(header, _)| &***header);
    let Some(parameters) = parameters else { return footprint(data, &[]) };
    let footprint = footprint(data, parameters);
    model.know_params(footprint as u32, parameters);
    footprint
}

/// The size that a footprint encodes.
fn size(footprint: u64) -> SizeInfo<'static> {
    let bytes = f32::from_bits((footprint >> 32) as u32) as u64;
    SizeInfo { footprint: footprint as u32, bytes, ..SizeInfo::default() }
}

impl CodeletFacts {
    /// Number of implementations for an architecture.
    pub(crate) fn count(&self, arch: Arch) -> u32 {
        self.implementations.iter().filter(|of| of.arch == arch).count() as u32
    }

    /// Numbers of the implementations for an architecture that `size` workers can execute together.
    fn fitting(&self, arch: Arch, size: u16) -> impl Iterator<Item = u32> {
        let of_arch = self.implementations.iter().filter(move |of| of.arch == arch);
        of_arch.zip(0..).filter(move |(of, _)| of.most >= size).map(|(_, number)| number)
    }

    /// Expected duration of a task on `workers` workers of an architecture: the application's estimate, or else the
    /// model's.
    pub(crate) fn expected_length(
        &self,
        arch: Arch,
        workers: u16,
        implementation: Option<u32>,
        footprint: u64,
    ) -> Estimate {
        let said = self.estimates.iter().rev().find(|(of, count, _)| (*of, *count) == (arch, workers));
        if let Some((_, _, length)) = said {
            return Estimate::Known(*length);
        }
        let Some(model) = &self.model else { return Estimate::NoModel };
        let estimate = |implementation| {
            model.estimate(Variant { arch, cores: u32::from(workers), implementation }, &size(footprint))
        };
        match implementation {
            Some(number) if self.fitting(arch, workers).any(|fits| fits == number) => estimate(number),
            Some(_) => Estimate::NoModel,
            None if workers == 1 => model.estimate_best(arch, 1, self.count(arch), &size(footprint)),
            None => {
                self.fitting(arch, workers).map(estimate).fold(Estimate::NoModel, |best, next| match (best, next) {
                    (Estimate::Uncalibrated, _) | (_, Estimate::Uncalibrated) => Estimate::Uncalibrated,
                    (Estimate::Known(a), Estimate::Known(b)) => Estimate::Known(a.min(b)),
                    (Estimate::NoModel, other) | (other, Estimate::NoModel) => other,
                })
            }
        }
    }

    /// Expected energy in joules of a task on `workers` workers of an architecture, if known: the application's
    /// estimate, or else the model's, for the most frugal implementation if none is named.
    pub(crate) fn expected_energy(
        &self,
        arch: Arch,
        workers: u16,
        implementation: Option<u32>,
        footprint: u64,
    ) -> Option<f64> {
        let said = self.energies.iter().rev().find(|(of, count, _)| (*of, *count) == (arch, workers));
        if let Some((_, _, joules)) = said {
            return Some(*joules);
        }
        let model = self.model.as_ref().filter(|model| model.has_energies())?;
        let energy = |implementation| {
            model.energy(Variant { arch, cores: u32::from(workers), implementation }, &size(footprint))
        };
        match implementation {
            Some(implementation) => energy(implementation),
            None => self.fitting(arch, workers).filter_map(energy).min_by(f64::total_cmp),
        }
    }

    /// Records the duration of a task on a number of workers with an implementation, which is numbered among all.
    #[cold]
    pub(crate) fn record(
        &self,
        (arch, workers): (Arch, u16),
        implementation: usize,
        footprint: u64,
        job: &dyn Job,
        took: Duration,
    ) {
        let Some(model) = &self.model else { return };
        let before = self.implementations[..implementation].iter().filter(|of| of.arch == arch).count();
        let mut bytes = 0u64;
        job.visit(&mut |header, _| bytes = bytes.saturating_add(header.bytes));
        let variant = Variant { arch, cores: u32::from(workers), implementation: before as u32 };
        let size = SizeInfo { bytes, ..size(footprint) };
        self.variant_counts.note(variant, &size);
        model.record_time(variant, &size, took);
    }
}

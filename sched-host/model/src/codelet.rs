//! One codelet's model in use: queried by schedulers and updated by workers, concurrently.

use super::measured::{ENTRIES, Fit, Measured, Measurements};
use super::table::Table;
use super::{Distribution, Kind, Model, Quantity, SizeInfo, Variant};
use crossbeam::utils::CachePadded;
use parking_lot::{Mutex, RwLock};
use sched_core::{Arch, Estimate};
use std::collections::HashMap;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering::*};
use std::time::Duration;

/// One codelet's model: its samples, and the estimates that follow from them.
///
/// Queries allocate no memory, and take no lock that blocks other queries; a regression's coefficients are behind a
/// lock that is held only to copy a few numbers.
pub struct CodeletModel {
    model: Model,
    minimum: u64,
    first: OnceLock<Box<Line>>,
    /// Whether there is anything about energies: they are asked for at the end of each task, and seldom known.
    has_energies: AtomicBool,
    /// Held while a new variant is added.
    growing: Mutex<()>,
    /// The parameters of tasks by footprint, for a multiple regression.
    params: RwLock<HashMap<u32, Box<[f64]>>>,
}

/// The data of one variant.
struct Line {
    key: (Variant, Quantity),
    /// Midmeans by footprint; NaN while there are too few samples.
    means: Table,
    /// The regression of the samples, then the imported one.
    fits: RwLock<[Option<Fit>; 2]>,
    has_fit: AtomicBool,
    next: OnceLock<Box<Line>>,
    /// Written for each task, so not beside what schedulers read.
    state: CachePadded<Mutex<State>>,
}

/// Factor by which this run's own samples must differ from all samples to be used alone.
const CONTRADICTION: f64 = 1.5;

/// An estimate is renewed when the samples of this run have grown by one part in this number. One more sample of a
/// thousand moves it by a thousandth of their spread, and costs a worker half a microsecond to account for.
const NEWS: u64 = 32;

#[derive(Default)]
struct State {
    /// All samples but the latest.
    all: Measured,
    /// The part of `all` that is not stored yet.
    fresh: Measured,
    /// The samples by footprint that no estimate accounts for yet.
    latest: HashMap<u32, Latest>,
    /// Number of samples in `all`.
    samples: u64,
    /// Number of samples at which the regression is recomputed.
    next_fit: u64,
}

/// See [`State::latest`].
#[derive(Default)]
struct Latest {
    samples: Distribution,
    /// Number of samples that may still be added before the estimate is renewed.
    room: u64,
}

impl std::fmt::Debug for CodeletModel {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CodeletModel").field("model", &self.model).finish_non_exhaustive()
    }
}

impl CodeletModel {
    /// Creates a model that estimates from `minimum` samples on, starting from the `stored` ones.
    #[must_use]
    pub fn new(model: Model, minimum: u64, stored: Measurements) -> CodeletModel {
        let codelet = CodeletModel {
            model,
            minimum,
            first: OnceLock::new(),
            has_energies: AtomicBool::new(false),
            growing: Mutex::default(),
            params: RwLock::default(),
        };
        for (key, measured) in stored.variants {
            let line = codelet.line_or_new(key);
            line.replace(measured, codelet.model.kind(), minimum);
        }
        codelet
    }

    /// The declaration of the model.
    #[must_use]
    pub fn model(&self) -> &Model {
        &self.model
    }

    /// Records the parameters of tasks with this footprint, so that later queries and samples can omit them.
    pub fn know_params(&self, footprint: u32, params: &[f64]) {
        if !self.params.read().contains_key(&footprint) {
            let mut known = self.params.write();
            if known.len() < ENTRIES {
                known.insert(footprint, params.into());
            }
        }
    }

    /// Calls `of` with `size` completed by the recorded parameters.
    fn with_params<T>(&self, size: &SizeInfo<'_>, of: impl FnOnce(&SizeInfo<'_>) -> T) -> T {
        if !size.params.is_empty() || !matches!(self.model.kind(), Kind::Multiple(_)) {
            return of(size);
        }
        let known = self.params.read();
        of(&SizeInfo { params: known.get(&size.footprint).map_or(&[], |params| params), ..*size })
    }

    fn line(&self, key: (Variant, Quantity)) -> Option<&Line> {
        let mut line = self.first.get();
        while let Some(here) = line {
            if here.key == key {
                return Some(here);
            }
            line = here.next.get();
        }
        None
    }

    fn line_or_new(&self, key: (Variant, Quantity)) -> &Line {
        if let Some(line) = self.line(key) {
            return line;
        }
        let _growing = self.growing.lock();
        self.has_energies.fetch_or(key.1 == Quantity::Energy, Release);
        let mut place = &self.first;
        while let Some(here) = place.get() {
            if here.key == key {
                return here;
            }
            place = &here.next;
        }
        place.get_or_init(|| Box::new(Line::new(key)))
    }

    /// Expected duration of a task; [`Estimate::Uncalibrated`] while there are too few samples of similar tasks.
    ///
    /// If enough samples of this run differ from the stored ones, by half or more, this run's samples are used alone.
    #[must_use]
    pub fn estimate(&self, variant: Variant, size: &SizeInfo<'_>) -> Estimate {
        let micros = self.expected(variant, Quantity::Time, size);
        micros.map_or(Estimate::Uncalibrated, |micros| Estimate::Known(duration(micros)))
    }

    /// Expected duration on `cores` workers of an architecture, with the best of the first `implementations`;
    /// uncalibrated while any of them is.
    #[must_use]
    pub fn estimate_best(&self, arch: Arch, cores: u32, implementations: u32, size: &SizeInfo<'_>) -> Estimate {
        let mut best: Option<f64> = None;
        for implementation in 0..implementations {
            match self.expected(Variant { arch, cores, implementation }, Quantity::Time, size) {
                Some(micros) => best = Some(best.map_or(micros, |best| best.min(micros))),
                None => return Estimate::Uncalibrated,
            }
        }
        best.map_or(Estimate::NoModel, |micros| Estimate::Known(duration(micros)))
    }

    /// Whether anything is known about the energy of any task.
    #[must_use]
    pub fn has_energies(&self) -> bool {
        self.has_energies.load(Acquire)
    }

    /// Expected energy of a task in joules, if known.
    #[must_use]
    pub fn energy(&self, variant: Variant, size: &SizeInfo<'_>) -> Option<f64> {
        self.expected(variant, Quantity::Energy, size)
    }

    /// Expected microseconds or joules, if known.
    #[must_use]
    pub fn expected(&self, variant: Variant, quantity: Quantity, size: &SizeInfo<'_>) -> Option<f64> {
        let line = self.line((variant, quantity))?;
        if line.has_fit.load(Acquire) {
            let fits = line.fits.read();
            let predicted = self.with_params(size, |size| {
                let predict = |fit: &Option<Fit>| fit.as_ref()?.predict(self.model.kind(), size, self.minimum);
                fits.iter().find_map(predict)
            });
            if let Some(predicted) = predicted {
                return Some(predicted);
            }
        }
        line.means.get(size.footprint).filter(|mean| !mean.is_nan())
    }

    /// Adds a sample of an execution, in microseconds or joules. Returns whether it was kept: a sample must be
    /// positive, and the number of footprints is limited.
    pub fn record(&self, variant: Variant, quantity: Quantity, size: &SizeInfo<'_>, value: f64) -> bool {
        self.record_equal(variant, quantity, size, value, 1)
    }

    /// Adds `count` samples of which only the mean is known.
    pub fn record_equal(
        &self,
        variant: Variant,
        quantity: Quantity,
        size: &SizeInfo<'_>,
        mean: f64,
        count: u64,
    ) -> bool {
        self.with_params(size, |size| self.record_whole(variant, quantity, size, mean, count))
    }

    fn record_whole(&self, variant: Variant, quantity: Quantity, size: &SizeInfo<'_>, value: f64, count: u64) -> bool {
        let line = self.line_or_new((variant, quantity));
        let mut state = line.state.lock();
        if let Some(latest) = state.latest.get_mut(&size.footprint).filter(|latest| latest.room >= count) {
            latest.room -= count;
            return latest.samples.add_equal(value, count);
        }
        state.settle(size.footprint);
        let kept = state.all.add_equal(size, value, count) && state.fresh.add_equal(size, value, count);
        if kept {
            state.samples = state.samples.saturating_add(count);
            state.make_room(size.footprint);
            line.publish(&state, size.footprint, self.minimum);
            if state.samples >= state.next_fit {
                line.fit(&mut state, self.model.kind(), self.minimum);
            }
        }
        kept
    }

    /// Adds a sample of an execution's duration.
    pub fn record_time(&self, variant: Variant, size: &SizeInfo<'_>, time: Duration) -> bool {
        // The clock may not have advanced at all.
        let micros = (time.as_nanos() as f64 / 1e3).max(1e-3);
        self.record(variant, Quantity::Time, size, micros)
    }

    /// A copy of all samples.
    #[must_use]
    pub fn measurements(&self) -> Measurements {
        self.collect(|state| state.all.clone())
    }

    /// Takes the samples that are not stored yet.
    pub(crate) fn take_fresh(&self) -> Measurements {
        let mut fresh = self.collect(|state| std::mem::take(&mut state.fresh));
        fresh.variants.retain(|_, measured| !measured.is_empty());
        fresh
    }

    /// Returns samples that could not be stored.
    pub(crate) fn give_back(&self, fresh: &Measurements) {
        for (key, measured) in &fresh.variants {
            self.line_or_new(*key).state.lock().fresh.merge(measured);
        }
    }

    /// Continues from what is stored now, including samples of other processes.
    pub(crate) fn stored(&self, stored: &Measurements) {
        for (key, measured) in &stored.variants {
            self.line_or_new(*key).replace(measured.clone(), self.model.kind(), self.minimum);
        }
    }

    fn collect(&self, mut of: impl FnMut(&mut State) -> Measured) -> Measurements {
        let mut all = Measurements::default();
        let mut line = self.first.get();
        while let Some(here) = line {
            let mut state = here.state.lock();
            state.settle_all();
            all.variants.insert(here.key, of(&mut state));
            line = here.next.get();
        }
        all
    }
}

impl State {
    /// Accounts for the latest samples of a footprint.
    fn settle(&mut self, footprint: u32) {
        let Some(Latest { samples, .. }) = self.latest.get_mut(&footprint) else { return };
        self.samples = self.samples.saturating_add(samples.count());
        for measured in [&mut self.all, &mut self.fresh] {
            if let Some(entry) = measured.entries.get_mut(&footprint) {
                entry.samples.merge(samples);
            }
        }
        samples.clear();
    }

    /// Accounts for all samples. The next of each footprint renews its estimate.
    fn settle_all(&mut self) {
        let footprints: Vec<u32> = self.latest.keys().copied().collect();
        footprints.into_iter().for_each(|footprint| self.settle(footprint));
        self.latest.clear();
    }

    /// Determines the number of samples for which the estimate for a footprint stays as it is.
    fn make_room(&mut self, footprint: u32) {
        let fresh = self.fresh.entries.get(&footprint).map_or(0, |entry| entry.samples.count());
        if let room @ 1.. = fresh / NEWS {
            self.latest.entry(footprint).or_default().room = room;
        }
    }
}

impl Line {
    fn new(key: (Variant, Quantity)) -> Line {
        Line {
            key,
            means: Table::default(),
            fits: RwLock::default(),
            has_fit: AtomicBool::new(false),
            next: OnceLock::new(),
            state: CachePadded::default(),
        }
    }

    /// Replaces the samples by `stored` and those added since.
    fn replace(&self, stored: Measured, kind: &Kind, minimum: u64) {
        let mut state = self.state.lock();
        state.settle_all();
        state.all = stored;
        let State { all, fresh, .. } = &mut *state;
        all.merge(fresh);
        state.samples = state.all.samples();
        state.all.entries.keys().for_each(|footprint| self.publish(&state, *footprint, minimum));
        self.fit(&mut state, kind, minimum);
    }

    fn publish(&self, state: &State, footprint: u32, minimum: u64) {
        let Some(entry) = state.all.entries.get(&footprint) else { return };
        let of = |samples: &Distribution| samples.midmean().filter(|_| samples.count() >= minimum);
        let (all, fresh) = (of(&entry.samples), state.fresh.entries.get(&footprint).and_then(|new| of(&new.samples)));
        // After a change of library or clock rate, old samples may no longer hold.
        let mean = match (all, fresh) {
            (Some(all), Some(fresh)) if fresh > CONTRADICTION * all || all > CONTRADICTION * fresh => Some(fresh),
            _ => all,
        };
        self.means.set(footprint, mean.unwrap_or(f64::NAN));
    }

    fn fit(&self, state: &mut State, kind: &Kind, minimum: u64) {
        // At each quarter more samples, so that the total work of all fits is linear in the samples.
        state.next_fit =
            if *kind == Kind::History { u64::MAX } else { state.samples.saturating_add(state.samples / 4 + 1) };
        let fits = if state.samples < minimum { None } else { state.all.fit(kind) };
        let fits = [fits, state.all.prior_fit(kind)];
        let any = fits.iter().any(Option::is_some);
        *self.fits.write() = fits;
        self.has_fit.store(any, Release);
    }
}

fn duration(micros: f64) -> Duration {
    Duration::try_from_secs_f64(micros / 1e6).unwrap_or(Duration::MAX)
}

#[cfg(test)]
mod tests;

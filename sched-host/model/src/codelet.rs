//! One codelet's model at work: asked by schedulers, told by workers, at once.

use super::measured::{ENTRIES, Fit, Measured, Measurements};
use super::table::Table;
use super::{Distribution, Kind, Model, Quantity, SizeInfo, Variant};
use parking_lot::{Mutex, RwLock};
use sched_core::{Arch, Estimate};
use std::collections::HashMap;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering::*};
use std::time::Duration;

/// One codelet's model: what was measured, and what follows from it.
///
/// Asking takes no memory, and no lock that anybody else's question waits for; a regression's coefficients stand behind a
/// lock of their own, that is held to copy a few numbers.
pub struct CodeletModel {
    model: Model,
    minimum: u64,
    first: OnceLock<Box<Line>>,
    /// Held while a variant is seen for the first time.
    growing: Mutex<()>,
    /// The parameters of tasks, by footprint, where it is a multiple regression.
    params: RwLock<HashMap<u32, Box<[f64]>>>,
}

/// What is known of one variant.
struct Line {
    key: (Variant, Quantity),
    /// Midmeans by footprint, NaN while there are too few samples.
    means: Table,
    /// The regression of the samples, then that which came along.
    fits: RwLock<[Option<Fit>; 2]>,
    has_fit: AtomicBool,
    state: Mutex<State>,
    next: OnceLock<Box<Line>>,
}

/// By what factor this run's own samples must differ from all there are to count alone.
const CONTRADICTION: f64 = 1.5;

#[derive(Default)]
struct State {
    all: Measured,
    /// What of `all` is not stored yet.
    fresh: Measured,
    samples: u64,
    /// With how many samples the regression is computed again.
    next_fit: u64,
}

impl std::fmt::Debug for CodeletModel {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CodeletModel").field("model", &self.model).finish_non_exhaustive()
    }
}

impl CodeletModel {
    /// A model that estimates from `minimum` samples on, and knows what was `stored`.
    #[must_use]
    pub fn new(model: Model, minimum: u64, stored: Measurements) -> CodeletModel {
        let codelet = CodeletModel {
            model,
            minimum,
            first: OnceLock::new(),
            growing: Mutex::default(),
            params: RwLock::default(),
        };
        for (key, measured) in stored.variants {
            let line = codelet.line_or_new(key);
            line.replace(measured, codelet.model.kind(), minimum);
        }
        codelet
    }

    /// What it was declared as.
    #[must_use]
    pub fn model(&self) -> &Model {
        &self.model
    }

    /// Notes which parameters tasks with this footprint have, so that they can be left out when it is asked or told about
    /// them.
    pub fn know_params(&self, footprint: u32, params: &[f64]) {
        if !self.params.read().contains_key(&footprint) {
            let mut known = self.params.write();
            if known.len() < ENTRIES {
                known.insert(footprint, params.into());
            }
        }
    }

    /// Does something with `size` and the parameters that belong to it.
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
        let mut place = &self.first;
        while let Some(here) = place.get() {
            if here.key == key {
                return here;
            }
            place = &here.next;
        }
        place.get_or_init(|| Box::new(Line::new(key)))
    }

    /// Expected duration of a task: [`Estimate::Uncalibrated`] while there are too few samples of tasks like it.
    ///
    /// Where enough samples of this run say something else than all that were stored, by half and more, they count alone.
    #[must_use]
    pub fn estimate(&self, variant: Variant, size: &SizeInfo<'_>) -> Estimate {
        let micros = self.expected(variant, Quantity::Time, size);
        micros.map_or(Estimate::Uncalibrated, |micros| Estimate::Known(duration(micros)))
    }

    /// Expected duration on `cores` workers of an architecture, with the best of the first `implementations`. While one
    /// of them is not calibrated, none is the best.
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

    /// Expected energy of a task in joules, if it is known.
    #[must_use]
    pub fn energy(&self, variant: Variant, size: &SizeInfo<'_>) -> Option<f64> {
        self.expected(variant, Quantity::Energy, size)
    }

    /// Expected microseconds or joules, if they are known.
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

    /// Notes what an execution took, in microseconds, or joules. Whether it was kept: it is no sample if it is not above
    /// 0, and there is a limit to the number of footprints.
    pub fn record(&self, variant: Variant, quantity: Quantity, size: &SizeInfo<'_>, value: f64) -> bool {
        self.record_alike(variant, quantity, size, value, 1)
    }

    /// Notes what each of `count` executions took, of which only the mean is known. They count as so many samples.
    pub fn record_alike(
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
        let add = |to: &mut Measured| match count {
            1 => to.add(size, value),
            _ => to.add_alike(size, value, count),
        };
        let kept = add(&mut state.all) && add(&mut state.fresh);
        if kept {
            state.samples = state.samples.saturating_add(count);
            line.publish(&state, size.footprint, self.minimum);
            if state.samples >= state.next_fit {
                line.fit(&mut state, self.model.kind(), self.minimum);
            }
        }
        kept
    }

    /// Notes how long an execution took.
    pub fn record_time(&self, variant: Variant, size: &SizeInfo<'_>, time: Duration) -> bool {
        // The clock may not have moved at all.
        let micros = (time.as_nanos() as f64 / 1e3).max(1e-3);
        self.record(variant, Quantity::Time, size, micros)
    }

    /// Everything that was measured.
    #[must_use]
    pub fn measurements(&self) -> Measurements {
        self.collect(|state| state.all.clone())
    }

    /// Takes what is not stored yet.
    pub(crate) fn take_fresh(&self) -> Measurements {
        let mut fresh = self.collect(|state| std::mem::take(&mut state.fresh));
        fresh.variants.retain(|_, measured| !measured.is_empty());
        fresh
    }

    /// Gives back what could not be stored.
    pub(crate) fn give_back(&self, fresh: &Measurements) {
        for (key, measured) in &fresh.variants {
            self.line_or_new(*key).state.lock().fresh.merge(measured);
        }
    }

    /// Goes on from what is stored now: with what other processes measured.
    pub(crate) fn stored(&self, stored: &Measurements) {
        for (key, measured) in &stored.variants {
            self.line_or_new(*key).replace(measured.clone(), self.model.kind(), self.minimum);
        }
    }

    fn collect(&self, mut of: impl FnMut(&mut State) -> Measured) -> Measurements {
        let mut all = Measurements::default();
        let mut line = self.first.get();
        while let Some(here) = line {
            all.variants.insert(here.key, of(&mut here.state.lock()));
            line = here.next.get();
        }
        all
    }
}

impl Line {
    fn new(key: (Variant, Quantity)) -> Line {
        Line {
            key,
            means: Table::default(),
            fits: RwLock::default(),
            has_fit: AtomicBool::new(false),
            state: Mutex::default(),
            next: OnceLock::new(),
        }
    }

    /// Goes on from what is stored, and what was measured since.
    fn replace(&self, stored: Measured, kind: &Kind, minimum: u64) {
        let mut state = self.state.lock();
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
        // Another library, another clock rate: what was true for years may be so no more.
        let mean = match (all, fresh) {
            (Some(all), Some(fresh)) if fresh > CONTRADICTION * all || all > CONTRADICTION * fresh => Some(fresh),
            _ => all,
        };
        self.means.set(footprint, mean.unwrap_or(f64::NAN));
    }

    fn fit(&self, state: &mut State, kind: &Kind, minimum: u64) {
        // A quarter more samples each time: the work for all fits together grows with the samples.
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

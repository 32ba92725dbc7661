//! The models of all codelets.

use super::flaw::ModelError;
use super::store::{MovedAside, Store, Stored};
use super::{CodeletModel, Measurements, Model, Quantity, SizeInfo, Variant};
use parking_lot::{Mutex, RwLock};
use sched_core::{Arch, Estimate};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

/// Default number of samples that an estimate needs; see [`Models::minimum_samples`].
pub const MINIMUM_SAMPLES: u64 = 10;

/// The models of all codelets, in memory only or backed by a [`Store`].
///
/// ```
/// use sched_core::{Arch, Estimate};
/// use sched_model::{Model, Models, Quantity, SizeInfo, Variant};
/// use std::time::Duration;
///
/// let models = Models::in_memory();
/// let gemm = models.codelet(&Model::history("gemm"));
/// let size = SizeInfo { footprint: 0x24c8_4a50, bytes: 11_059_200, ..SizeInfo::default() };
/// for _ in 0..10 {
///     gemm.record_time(Variant::of(Arch::CPU), &size, Duration::from_millis(88));
/// }
/// assert_eq!(models.estimate("gemm", Arch::CPU, 1, 0, &size), Estimate::Known(Duration::from_millis(88)));
/// assert_eq!(models.estimate("gemm", Arch::CUDA, 1, 0, &size), Estimate::Uncalibrated);
/// assert_eq!(models.estimate("potrf", Arch::CPU, 1, 0, &size), Estimate::NoModel);
/// ```
#[derive(Debug)]
pub struct Models {
    store: Option<Store>,
    read_only: bool,
    minimum: u64,
    codelets: RwLock<BTreeMap<String, Arc<CodeletModel>>>,
    problems: Mutex<Vec<ModelError>>,
    failure_is_told: AtomicBool,
}

impl Models {
    /// Models that are discarded at the end.
    #[must_use]
    pub fn in_memory() -> Models {
        Models {
            store: None,
            read_only: false,
            minimum: MINIMUM_SAMPLES,
            codelets: RwLock::default(),
            problems: Mutex::default(),
            failure_is_told: AtomicBool::new(false),
        }
    }

    /// Models that continue from stored samples, each read when it is first used. Only [`save`](Self::save) stores
    /// them.
    #[must_use]
    pub fn with_store(store: Store) -> Models {
        Models { store: Some(store), ..Models::in_memory() }
    }

    /// Leaves the store unchanged: [`save`](Self::save) does nothing, and what is learned is discarded at the end.
    #[must_use]
    pub fn read_only(mut self) -> Models {
        self.read_only = true;
        self
    }

    /// Sets the number of samples of similar tasks that an estimate needs: [`MINIMUM_SAMPLES`] by default, and at least
    /// 1. Applies to models that are first used afterwards.
    #[must_use]
    pub fn minimum_samples(mut self, samples: u64) -> Models {
        self.minimum = samples.max(1);
        self
    }

    /// Whether [`save`](Self::save) does nothing.
    pub fn is_read_only(&self) -> bool {
        self.read_only
    }

    /// The store behind the models.
    #[must_use]
    pub fn store(&self) -> Option<&Store> {
        self.store.as_ref()
    }

    /// The model that a codelet declares. The first declaration of a name determines its kind.
    ///
    /// Stored data that cannot be read is reported as a [problem](Self::take_problems), and the model starts empty.
    pub fn codelet(&self, model: &Model) -> Arc<CodeletModel> {
        if let Some(known) = self.codelets.read().get(model.symbol()) {
            return Arc::clone(known);
        }
        let stored = self.read(model.symbol()).map(|stored| stored.measurements).unwrap_or_default();
        self.insert(model.clone(), stored)
    }

    /// The model of this name, if declared or stored.
    pub fn find(&self, symbol: &str) -> Option<Arc<CodeletModel>> {
        if let Some(known) = self.codelets.read().get(symbol) {
            return Some(Arc::clone(known));
        }
        let Stored { symbol, kind, measurements } = self.read(symbol)?;
        Some(self.insert(Model::of_kind(symbol, kind), measurements))
    }

    fn read(&self, symbol: &str) -> Option<Stored> {
        let read = self.store.as_ref()?.read(symbol);
        read.unwrap_or_else(|problem| {
            self.problems.lock().push(problem);
            None
        })
    }

    fn insert(&self, model: Model, stored: Measurements) -> Arc<CodeletModel> {
        let mut codelets = self.codelets.write();
        let symbol = model.symbol().to_owned();
        let new = || Arc::new(CodeletModel::new(model, self.minimum, stored));
        Arc::clone(codelets.entry(symbol).or_insert_with(new))
    }

    /// Expected duration of a task on `cores` workers of an architecture together (1 for a simple worker), with one
    /// implementation. [`Estimate::NoModel`] if the codelet's model was not used before, through
    /// [`codelet`](Self::codelet) or [`find`](Self::find).
    ///
    /// Frequent callers should keep the [`CodeletModel`] instead of its name.
    #[must_use]
    pub fn estimate(
        &self,
        codelet: &str,
        arch: Arch,
        cores: u32,
        implementation: u32,
        size: &SizeInfo<'_>,
    ) -> Estimate {
        let codelets = self.codelets.read();
        let variant = Variant { arch, cores, implementation };
        codelets.get(codelet).map_or(Estimate::NoModel, |codelet| codelet.estimate(variant, size))
    }

    /// Expected energy in joules, if known; see [`estimate`](Self::estimate).
    #[must_use]
    pub fn energy(
        &self,
        codelet: &str,
        arch: Arch,
        cores: u32,
        implementation: u32,
        size: &SizeInfo<'_>,
    ) -> Option<f64> {
        self.codelets.read().get(codelet)?.energy(Variant { arch, cores, implementation }, size)
    }

    /// Adds a sample of an execution, in microseconds or joules. Returns whether the codelet has a model and the sample
    /// was kept.
    pub fn record(&self, codelet: &str, variant: Variant, quantity: Quantity, size: &SizeInfo<'_>, value: f64) -> bool {
        let codelet = self.codelets.read().get(codelet).map(Arc::clone);
        codelet.is_some_and(|codelet| codelet.record(variant, quantity, size, value))
    }

    /// Stores the samples added since the last call, merged with what other processes stored. Returns the files that
    /// had to be moved aside.
    ///
    /// # Errors
    /// What could not be stored, each with its reason; everything else was. It is kept, and stored by a later call if
    /// possible.
    pub fn save(&self) -> Result<Vec<MovedAside>, Vec<ModelError>> {
        let Some(store) = self.store.as_ref().filter(|_| !self.read_only) else { return Ok(Vec::new()) };
        let (mut moved, mut failed) = (Vec::new(), Vec::new());
        let codelets: Vec<Arc<CodeletModel>> = self.codelets.read().values().map(Arc::clone).collect();
        for codelet in codelets {
            let fresh = codelet.take_fresh();
            if fresh.is_empty() {
                continue;
            }
            match store.add(codelet.model().symbol(), codelet.model().kind(), &fresh) {
                Ok((stored, aside)) => {
                    codelet.stored(&stored.measurements);
                    moved.extend(aside);
                }
                Err(error) => {
                    codelet.give_back(&fresh);
                    failed.push(error);
                }
            }
        }
        self.failure_is_told.store(!failed.is_empty(), Relaxed);
        if failed.is_empty() { Ok(moved) } else { Err(failed) }
    }

    /// Whether the last [`save`](Self::save) failed, so that its caller has the reasons.
    #[must_use]
    pub fn failure_is_told(&self) -> bool {
        self.failure_is_told.load(Relaxed)
    }

    /// Takes the problems of reading since the last call.
    #[must_use]
    pub fn take_problems(&self) -> Vec<ModelError> {
        std::mem::take(&mut *self.problems.lock())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Fingerprint;
    use std::time::Duration;

    const SIZE: SizeInfo<'_> = SizeInfo { footprint: 7, bytes: 64, flops: None, params: &[] };
    const CPU: Variant = Variant::of(Arch::CPU);

    fn models(directory: &std::path::Path) -> Models {
        Models::with_store(Store::new(directory, Fingerprint::named("here")))
    }

    #[test]
    fn what_one_run_measures_the_next_one_knows() {
        let directory = tempfile::tempdir().expect("a directory");
        for run in 0..3 {
            let models = models(directory.path());
            let gemm = models.codelet(&Model::history("gemm"));
            let expected = match run {
                2 => Estimate::Known(Duration::from_micros(20)),
                _ => Estimate::Uncalibrated,
            };
            assert_eq!(gemm.estimate(CPU, &SIZE), expected, "run {run}");
            (0..5).for_each(|_| assert!(models.record("gemm", CPU, Quantity::Time, &SIZE, 20.0)));
            assert!(models.save().is_ok_and(|moved| moved.is_empty()));
            assert!(models.save().is_ok(), "nothing new is nothing to do");
            assert_eq!(gemm.measurements().samples(), 5 * (run + 1));
        }
    }

    #[test]
    fn a_look_changes_nothing() {
        let directory = tempfile::tempdir().expect("a directory");
        let look = models(directory.path()).read_only();
        let gemm = look.codelet(&Model::history("gemm"));
        assert!(gemm.record(CPU, Quantity::Time, &SIZE, 20.0) && look.save().is_ok());
        assert_eq!(std::fs::read_dir(directory.path()).expect("it is there").count(), 0);
    }

    #[test]
    fn what_cannot_be_stored_is_kept_for_the_next_time() {
        let directory = tempfile::tempdir().expect("a directory");
        let in_the_way = directory.path().join("here");
        std::fs::write(&in_the_way, "no directory").expect("it can be written");
        let models = models(directory.path());
        let gemm = models.codelet(&Model::history("gemm"));
        // The failure to read it is reported too.
        assert_eq!(models.take_problems().len(), 1);
        assert!(gemm.record(CPU, Quantity::Time, &SIZE, 20.0));
        assert_eq!(models.save().expect_err("nothing can be written").len(), 1);
        std::fs::remove_file(&in_the_way).expect("it is there");
        assert!(models.save().is_ok());
        let again = super::tests::models(directory.path()).find("gemm").expect("it is stored");
        assert_eq!(again.measurements().samples(), 1);
    }

    #[test]
    fn a_damaged_file_is_a_problem_and_the_model_begins_anew() {
        let directory = tempfile::tempdir().expect("a directory");
        let models = models(directory.path());
        let path = models.store().expect("there is one").path("gemm").expect("a good name");
        std::fs::create_dir_all(path.parent().expect("it has one")).expect("a directory");
        std::fs::write(&path, "rubbish").expect("it can be written");
        let gemm = models.codelet(&Model::history("gemm"));
        assert!(matches!(models.take_problems()[..], [ModelError::Damaged(_)]));
        assert!(gemm.record(CPU, Quantity::Time, &SIZE, 20.0));
        let moved = models.save().expect("the directory can be written");
        assert_eq!(std::fs::read_to_string(&moved[0].kept).expect("it was kept"), "rubbish");
    }
}

//! All contexts of a runtime.

use crate::task::ahead::Ahead;
use parking_lot::Mutex;
use sched_core::WorkerSet;
use sched_policy::Policy;
use sched_sync::in_flight::InFlight;
use sched_tree::context::ContextConfig;
use sched_tree::{Fault, Tree};
use std::ops::RangeInclusive;
use std::sync::atomic::{AtomicI32, AtomicU64, AtomicUsize, Ordering::*};
use std::sync::{Arc, OnceLock};

/// The most contexts that there can be at once, the default one included.
pub(crate) const MOST: usize = 256;

/// One context. Its place is used again by a later one when it is deleted.
pub(crate) struct ContextCore {
    /// What records of tasks know it by; 0 is the default context.
    pub(crate) number: u16,
    pub(crate) tree: Tree,
    /// Its tasks, for components that look ahead.
    pub(crate) ahead: Arc<Ahead>,
    /// Unused for the default context, whose tasks the workers count.
    pub(crate) in_flight: InFlight,
    /// Priorities that tasks may have; none at all when the runtime has ended.
    pub(crate) least: AtomicI32,
    pub(crate) greatest: AtomicI32,
    /// Whoever changes the policy or the workers holds this, so that it is done one after the other.
    pub(super) changing: Mutex<()>,
    pub(super) config: Mutex<ContextConfig>,
    /// Tasks of earlier contexts at the same place.
    pub(super) before: AtomicU64,
}

impl ContextCore {
    pub(crate) fn new(
        number: u16,
        tree: Tree,
        ahead: Arc<Ahead>,
        name: String,
        policy: Policy,
        workers: WorkerSet,
    ) -> ContextCore {
        ContextCore {
            number,
            tree,
            ahead,
            in_flight: InFlight::default(),
            least: AtomicI32::new(i32::MIN),
            greatest: AtomicI32::new(i32::MAX),
            changing: Mutex::new(()),
            config: Mutex::new(ContextConfig::new(name, policy, workers)),
            before: AtomicU64::new(0),
        }
    }

    /// Tasks may have these priorities from now on.
    pub(crate) fn set_priorities(&self, range: &RangeInclusive<i32>) {
        self.least.store(*range.start(), Relaxed);
        self.greatest.store(*range.end(), Relaxed);
    }

    /// Takes no tasks any more: no priority is one that they may have, which whoever submits looks at anyway.
    pub(crate) fn end(&self) {
        self.least.store(i32::MAX, Relaxed);
        self.greatest.store(i32::MIN, Relaxed);
    }

    pub(crate) fn name(&self) -> String {
        self.config.lock().name.clone()
    }

    pub(crate) fn config(&self) -> ContextConfig {
        self.config.lock().clone()
    }

    /// Whether there is a context at this place.
    pub(crate) fn is_there(&self) -> bool {
        self.in_flight.serial().is_some()
    }
}

/// See the module's text.
pub(crate) struct Roster {
    /// The default context, which is also the first of `all`.
    pub(crate) default: Arc<ContextCore>,
    all: Box<[OnceLock<Arc<ContextCore>>]>,
    len: AtomicUsize,
    /// Changes whenever a worker may have to serve other contexts.
    version: AtomicU64,
    /// Whoever makes a context holds this.
    pub(super) opening: Mutex<()>,
    /// What components did wrong in contexts that are gone.
    pub(super) past: Mutex<Vec<Fault>>,
}

impl Roster {
    pub(crate) fn new(default: ContextCore) -> Roster {
        default.in_flight.open();
        let default = Arc::new(default);
        let all: Box<[_]> = (0..MOST).map(|_| OnceLock::new()).collect();
        let _ = all[0].set(Arc::clone(&default));
        Roster {
            default,
            all,
            len: AtomicUsize::new(1),
            version: AtomicU64::new(1),
            opening: Mutex::new(()),
            past: Mutex::default(),
        }
    }

    /// The place of this number.
    #[inline]
    pub(crate) fn get(&self, number: u16) -> &Arc<ContextCore> {
        if number == 0 { &self.default } else { self.further(number) }
    }

    fn further(&self, number: u16) -> &Arc<ContextCore> {
        self.all[number as usize].get().expect("tasks know contexts that there were")
    }

    /// Every place, be there a context or not.
    pub(crate) fn places(&self) -> impl Iterator<Item = &Arc<ContextCore>> {
        (0..self.len.load(Acquire)).map(|number| self.get(number as u16))
    }

    /// Every context.
    pub(crate) fn contexts(&self) -> impl Iterator<Item = &Arc<ContextCore>> {
        self.places().filter(|context| context.is_there())
    }

    /// Whether there never was another context than the default one.
    pub(crate) fn is_single(&self) -> bool {
        self.len.load(Acquire) == 1
    }

    /// A place without a context, made with `make` if need be. The caller holds `opening`.
    pub(super) fn free_place(&self, make: impl FnOnce(u16) -> ContextCore) -> Option<&Arc<ContextCore>> {
        if let Some(free) = self.places().find(|place| !place.is_there()) {
            return Some(free);
        }
        let number = self.len.load(Acquire);
        let place = self.all.get(number)?;
        let _ = place.set(Arc::new(make(number as u16)));
        self.len.store(number + 1, Release);
        place.get()
    }

    /// What components did wrong in contexts that are gone.
    pub(crate) fn past(&self) -> Vec<Fault> {
        self.past.lock().clone()
    }

    /// Workers have to look which contexts they serve.
    pub(crate) fn renew(&self) {
        self.version.fetch_add(1, SeqCst);
    }

    /// Which change was the last.
    #[inline]
    pub(crate) fn version(&self) -> u64 {
        self.version.load(Acquire)
    }
}

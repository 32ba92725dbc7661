//! All contexts of a runtime.

use crate::task::ahead::Ahead;
use parking_lot::Mutex;
use sched_core::WorkerSet;
use sched_graph::ContextId;
use sched_policy::Policy;
use sched_sync::in_flight::InFlight;
use sched_tree::context::ContextConfig;
use sched_tree::{Fault, Tree};
use std::ops::RangeInclusive;
use std::sync::atomic::{AtomicI32, AtomicU64, AtomicUsize, Ordering::*};
use std::sync::{Arc, OnceLock};

/// Maximum number of contexts at once, including the default one.
pub(crate) const MOST: usize = 256;

/// One context. Its place is reused by a later context after deletion.
pub(crate) struct ContextCore {
    /// Number by which records of tasks refer to it; 0 is the default context.
    pub(crate) number: ContextId,
    pub(crate) tree: Tree,
    /// Its submitted tasks, for components that look ahead.
    pub(crate) ahead: Arc<Ahead>,
    /// Unused for the default context, whose tasks are counted by the workers.
    pub(crate) in_flight: InFlight,
    /// Allowed priorities of tasks; an empty range if submissions need a [closer look](crate::core::Core::look_closer).
    pub(crate) least: AtomicI32,
    pub(crate) greatest: AtomicI32,
    /// Allowed priorities of tasks; `None` once the runtime has ended.
    priorities: Mutex<Option<RangeInclusive<i32>>>,
    /// Held by a thread that changes the policy or the workers, so changes are serialized. Of two, the default
    /// context's is taken last: a context that is deleted hands its workers over.
    pub(crate) changing: Mutex<()>,
    pub(super) config: Mutex<ContextConfig>,
    /// Number of tasks of earlier contexts at this place.
    pub(super) before: AtomicU64,
}

impl ContextCore {
    pub(crate) fn new(
        number: ContextId,
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
            priorities: Mutex::default(),
            changing: Mutex::new(()),
            config: Mutex::new(ContextConfig::new(name, policy, workers)),
            before: AtomicU64::new(0),
        }
    }

    /// Sets the allowed priorities of tasks, and whether each submission needs a closer look.
    pub(crate) fn set_priorities(&self, range: &RangeInclusive<i32>, closer: bool) {
        *self.priorities.lock() = Some(range.clone());
        if closer {
            self.show_none();
        } else {
            self.least.store(*range.start(), Relaxed);
            self.greatest.store(*range.end(), Relaxed);
        }
    }

    /// Allowed priorities of tasks; `None` once the runtime has ended.
    pub(crate) fn priorities(&self) -> Option<RangeInclusive<i32>> {
        self.priorities.lock().clone()
    }

    /// Accepts no more tasks.
    pub(crate) fn end(&self) {
        *self.priorities.lock() = None;
        self.show_none();
    }

    /// Shows that no priority is allowed, which each submission checks anyway: it takes a closer look.
    pub(crate) fn show_none(&self) {
        self.least.store(i32::MAX, Relaxed);
        self.greatest.store(i32::MIN, Relaxed);
    }

    pub(crate) fn name(&self) -> String {
        self.config.lock().name.clone()
    }

    pub(crate) fn config(&self) -> ContextConfig {
        self.config.lock().clone()
    }

    /// Passes its workers now to `body`.
    pub(crate) fn with_workers<R>(&self, body: impl FnOnce(&WorkerSet) -> R) -> R {
        body(&self.config.lock().workers)
    }

    /// Whether there is a context at this place.
    pub(crate) fn is_there(&self) -> bool {
        self.in_flight.serial().is_some()
    }
}

/// See the [module](self).
pub(crate) struct Roster {
    /// The default context, which is also the first of `all`.
    pub(crate) default: Arc<ContextCore>,
    all: Box<[OnceLock<Arc<ContextCore>>]>,
    len: AtomicUsize,
    /// Changes whenever the contexts of a worker may have changed.
    version: AtomicU64,
    /// Held by a thread that creates a context.
    pub(super) opening: Mutex<()>,
    /// Faults of components in deleted contexts.
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

    /// The place with this number.
    #[inline]
    pub(crate) fn get(&self, number: ContextId) -> &Arc<ContextCore> {
        if number == ContextId::DEFAULT { &self.default } else { self.further(number) }
    }

    fn further(&self, number: ContextId) -> &Arc<ContextCore> {
        self.all[number.index()].get().expect("tasks know contexts that there were")
    }

    /// Every place, with or without a context.
    pub(crate) fn places(&self) -> impl Iterator<Item = &Arc<ContextCore>> {
        (0..self.len.load(Acquire)).map(|number| self.get(ContextId(number as u16)))
    }

    /// Every context.
    pub(crate) fn contexts(&self) -> impl Iterator<Item = &Arc<ContextCore>> {
        self.places().filter(|context| context.is_there())
    }

    /// Whether there never was a context beside the default one.
    pub(crate) fn is_single(&self) -> bool {
        self.len.load(Acquire) == 1
    }

    /// A place without a context; `make` creates a new one if necessary. The caller holds `opening`.
    pub(super) fn free_place(&self, make: impl FnOnce(ContextId) -> ContextCore) -> Option<&Arc<ContextCore>> {
        if let Some(free) = self.places().find(|place| !place.is_there()) {
            return Some(free);
        }
        let number = self.len.load(Acquire);
        let place = self.all.get(number)?;
        let _ = place.set(Arc::new(make(ContextId(number as u16))));
        self.len.store(number + 1, Release);
        place.get()
    }

    /// Faults of components in deleted contexts.
    pub(crate) fn past(&self) -> Vec<Fault> {
        self.past.lock().clone()
    }

    /// Makes workers look up again which contexts they serve.
    pub(crate) fn renew(&self) {
        self.version.fetch_add(1, SeqCst);
    }

    /// Version of the contexts that workers serve.
    #[inline]
    pub(crate) fn version(&self) -> u64 {
        self.version.load(Acquire)
    }
}

//! What workers without a task do for the program: progress of communication.

use crate::Runtime;
use crate::core::Core;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

/// A hook of the program, set once.
#[derive(Default)]
pub(crate) struct Progression {
    hook: OnceLock<Box<dyn Fn() + Send + Sync>>,
    has_panicked: AtomicBool,
}

impl Runtime {
    /// Has workers that find no task call `hook` each time they look for one, before they sleep: to look for messages,
    /// say, whose receipt releases tasks. It must be short, and wait for nothing; a worker that sleeps does not call it.
    /// (StarPU's progression hooks.) A hook that panics is not called again.
    ///
    /// Returns whether the hook is set: a runtime has at most one.
    ///
    /// ```
    /// use sched_runtime::Runtime;
    /// use std::sync::Arc;
    /// use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
    /// # let components = Arc::new(sched_tree::plugin::Registry::compiled_in());
    /// # let runtime = Runtime::builder().registry(components).workers(1).build()?;
    /// let looks = Arc::new(AtomicU64::new(0));
    /// let counted = Arc::clone(&looks);
    /// assert!(runtime.progression_hook(move || _ = counted.fetch_add(1, Relaxed)));
    /// let task = runtime.codelet::<(), ()>("task").cpu("task", |_, ()| {}).build();
    /// while looks.load(Relaxed) == 0 {
    ///     runtime.task(&task, ()).submit()?;
    ///     runtime.wait_all()?;
    /// }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn progression_hook(&self, hook: impl Fn() + Send + Sync + 'static) -> bool {
        self.core.progression.hook.set(Box::new(hook)).is_ok()
    }
}

impl Core {
    /// Calls the hook of the program.
    #[inline]
    pub(super) fn progress(&self) {
        if let Some(hook) = self.progression.hook.get() {
            self.progression.call(&**hook);
        }
    }
}

impl Progression {
    fn call(&self, hook: &(dyn Fn() + Send + Sync)) {
        if self.has_panicked.load(Relaxed) {
            return;
        }
        if let Err(payload) = catch_unwind(AssertUnwindSafe(hook)) {
            // The drop of a payload may panic in turn.
            std::mem::forget(payload);
            if !self.has_panicked.swap(true, Relaxed) {
                tracing::error!("the progression hook of the program panicked: it is not called again");
            }
        }
    }
}

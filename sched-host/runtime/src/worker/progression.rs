//! What workers without a task do for the program: progress of communication.

use crate::Runtime;
use crate::core::Core;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

/// A hook of the program, set once.
#[derive(Default)]
pub(crate) struct Progression {
    hook: OnceLock<Box<dyn Fn() -> bool + Send + Sync>>,
    has_panicked: AtomicBool,
}

impl Runtime {
    /// Has workers that find no task call `hook` each time they look for one, before they sleep: to look for messages,
    /// say, whose receipt releases tasks. It must be short, and wait for nothing; a worker that sleeps does not call
    /// it. While it returns true, since a message is expected any moment, the worker that called it does not go to
    /// sleep: it keeps its processor busy, so that should not last. (StarPU's progression hooks.) A hook that panics is
    /// not called again. Tasks that it submits are of the default context, if they name none.
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
    /// // A worker looks a hundred times, however many it would otherwise.
    /// assert!(runtime.progression_hook(move || counted.fetch_add(1, Relaxed) < 100));
    /// let task = runtime.codelet::<(), ()>("task").cpu("task", |_, ()| {}).build();
    /// while looks.load(Relaxed) < 100 {
    ///     runtime.task(&task, ()).submit()?;
    ///     runtime.wait_all()?;
    /// }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn progression_hook(&self, hook: impl Fn() -> bool + Send + Sync + 'static) -> bool {
        self.core.progression.hook.set(Box::new(hook)).is_ok()
    }
}

impl Core {
    /// Calls the hook of the program. Returns whether the worker is to stay awake.
    #[inline]
    pub(super) fn progress(&self) -> bool {
        self.progression.hook.get().is_some_and(|hook| self.progression.call(&**hook))
    }
}

impl Progression {
    fn call(&self, hook: &(dyn Fn() -> bool + Send + Sync)) -> bool {
        if self.has_panicked.load(Relaxed) {
            return false;
        }
        catch_unwind(AssertUnwindSafe(hook)).unwrap_or_else(|payload| {
            // The drop of a payload may panic in turn.
            std::mem::forget(payload);
            if !self.has_panicked.swap(true, Relaxed) {
                tracing::error!("the progression hook of the program panicked: it is not called again");
            }
            false
        })
    }
}

#[cfg(test)]
mod tests {
    use crate::Runtime;
    use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
    use std::sync::mpsc::{TryRecvError, channel};
    use std::sync::{Arc, Mutex};
    use std::time::Duration;

    #[test]
    fn a_worker_does_not_sleep_while_the_hook_expects_something() {
        let components = Arc::new(sched_tree::plugin::Registry::compiled_in());
        let runtime = Runtime::builder().registry(components).workers(1).bind(false).build().expect("it starts");
        let (looks, (expected, is_expected)) = (AtomicU64::new(0), channel());
        let hook = move || {
            let look = looks.fetch_add(1, Relaxed);
            if look == 10_000 {
                let _ = expected.send(());
            }
            look < 10_000
        };
        assert!(runtime.progression_hook(hook));
        // It begins to look after this task, of which there is one.
        let task = runtime.codelet::<(), ()>("task").cpu("task", |_, ()| {}).build();
        runtime.task(&task, ()).submit().expect("it is sound");
        is_expected.recv_timeout(Duration::from_secs(60)).expect("it looks on");
    }

    /// The worker that calls the hook has executed a task of another context, which is gone.
    #[test]
    fn what_the_hook_submits_is_of_the_default_context() {
        let components = Arc::new(sched_tree::plugin::Registry::compiled_in());
        let runtime = Runtime::builder().registry(components).workers(1).bind(false).build().expect("it starts");
        let other = runtime.context("other").build().expect("it fits");
        let task = runtime.codelet::<(), ()>("task").cpu("task", |_, ()| {}).build();
        let (submitter, again) = ((*runtime).clone(), task.clone());
        let ((ask, asked), (submitted, is_submitted)) = (channel(), channel());
        let asked = Mutex::new(asked);
        assert!(runtime.progression_hook(move || match asked.lock().expect("nobody panics").try_recv() {
            Ok(()) => submitted.send(submitter.task(&again, ()).submit()).is_err(),
            Err(error) => error == TryRecvError::Empty,
        }));
        runtime.task(&task, ()).context(&other).submit().expect("it is sound");
        other.wait_all().expect("it ends");
        other.delete().expect("nobody uses it");
        ask.send(()).expect("the hook listens");
        let task = is_submitted.recv_timeout(Duration::from_secs(60)).expect("the hook is called");
        drop(ask);
        runtime.wait(task.expect("it is sound")).expect("it runs");
        assert_eq!(runtime.default_context().stats().finished, 1);
    }
}

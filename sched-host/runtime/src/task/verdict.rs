//! What a kernel returns: nothing, or a `Result` whose error fails its task.

use std::fmt;

/// Return type of a kernel: `()`, or `Result<(), E>` for any error that can be printed.
///
/// A task whose kernel returns an error has [failed](crate::Outcome::Failed), as if the kernel had panicked: tasks that
/// depend on it are cancelled, and what it should have written is not read by later tasks. Nothing is printed by the
/// panic hook.
///
/// ```
/// use sched_runtime::{Outcome, ReadWrite, Runtime};
/// # use std::sync::Arc;
/// # let components = Arc::new(sched_tree::plugin::Registry::compiled_in());
/// # let runtime = Runtime::builder().registry(components).workers(2).build()?;
/// let halve = runtime
///     .codelet::<(ReadWrite<u32>,), ()>("halve")
///     .cpu("halve", |_, (number,)| match *number % 2 {
///         0 => Ok(*number /= 2),
///         _ => Err(format!("{number} is odd")),
///     })
///     .build();
/// let three = runtime.register(3);
/// let task = runtime.task(&halve, (&three,)).submit()?;
/// let Outcome::Failed(failure) = runtime.wait(task)? else { panic!("3 is odd") };
/// assert_eq!((failure.panicked, failure.message.as_str()), (false, "3 is odd"));
/// # assert!(runtime.wait_all().is_err());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[diagnostic::on_unimplemented(
    message = "a kernel returns `()` or `Result<(), E>` where `E` can be printed, not `{Self}`",
    note = "end the closure with a semicolon if its last value is not needed"
)]
pub trait Verdict: sealed::Verdict {}

impl<V: sealed::Verdict> Verdict for V {}

pub(crate) mod sealed {
    pub trait Verdict {
        /// Unwinds with a [`KernelError`](super::KernelError) if the kernel failed.
        fn conclude(self);
    }

    /// Names `!`, the type of a kernel that always panics, which stable Rust has no word for.
    pub trait Returned {
        type Type;
    }

    impl<T> Returned for fn() -> T {
        type Type = T;
    }
}

impl sealed::Verdict for () {
    #[inline]
    fn conclude(self) {}
}

impl<E: fmt::Display> sealed::Verdict for Result<(), E> {
    #[inline]
    fn conclude(self) {
        if let Err(error) = self {
            let text = error.to_string();
            // Not while it unwinds: a panic of its drop would abort the process.
            drop(error);
            // The way of a panic, so that guards are dropped and teams break up, without the hook that prints.
            std::panic::resume_unwind(Box::new(KernelError(text)));
        }
    }
}

impl sealed::Verdict for <fn() -> ! as sealed::Returned>::Type {
    fn conclude(self) {
        self
    }
}

/// What a kernel that returns an error unwinds with: the text of the error.
pub(crate) struct KernelError(pub(crate) String);

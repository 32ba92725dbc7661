//! Pairs of fences, one side of which costs next to nothing.

pub use chosen::{heavy_fence, light_fence, prepare_fences};

#[cfg(not(loom))]
mod chosen {
    use rustix::thread::{MembarrierCommand, membarrier};
    use std::hint::cold_path;
    use std::sync::atomic::Ordering::{Relaxed, SeqCst};
    use std::sync::atomic::{AtomicBool, compiler_fence, fence};

    /// The cheap side of a pair of fences: see [`heavy_fence`].
    #[inline]
    pub fn light_fence() {
        if MEMBARRIER.load(Relaxed) {
            compiler_fence(SeqCst);
        } else {
            cold_path();
            fence(SeqCst);
        }
    }

    /// The expensive side of a pair of fences: together with a [`light_fence`] in another thread it orders as two
    /// sequentially consistent fences do. Linux' `membarrier` makes every running thread of the process execute a
    /// fence; a thread that does not run executes one when it is switched in.
    pub fn heavy_fence() {
        fence(SeqCst);
        if MEMBARRIER.load(Relaxed) {
            // Registered, so that it cannot fail; on an error the light side is a full fence from now on.
            if membarrier(MembarrierCommand::PrivateExpedited).is_err() {
                MEMBARRIER.store(false, SeqCst);
            }
        }
    }

    /// Makes light fences light, where the system can. To be called before the first of them, as all that use them do.
    ///
    /// A program that calls it before it has a second thread saves some 10 ms: with several, the system waits until
    /// every processor has seen it.
    pub fn prepare_fences() {
        // Miri does not know the system call.
        if !cfg!(miri) && membarrier(MembarrierCommand::RegisterPrivateExpedited).is_ok() {
            MEMBARRIER.store(true, SeqCst);
        }
    }

    /// Light fences count on heavy ones to reach them.
    static MEMBARRIER: AtomicBool = AtomicBool::new(false);
}

/// The pair orders as two full fences, so they are two full fences here.
#[cfg(loom)]
mod chosen {
    use loom::sync::atomic::{Ordering::SeqCst, fence};

    /// See [`heavy_fence`].
    pub fn light_fence() {
        fence(SeqCst);
    }

    /// A full fence, as the other side is.
    pub fn heavy_fence() {
        fence(SeqCst);
    }

    /// Nothing to prepare.
    pub fn prepare_fences() {}
}

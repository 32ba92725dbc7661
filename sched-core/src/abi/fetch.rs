//! Prefetching, a hint to the processor.

/// Prefetches the first cache line of `place`, without waiting, because it will be read soon.
///
/// Worthwhile where memory is read in an order that the processor cannot predict: at the end of a queue that is one of
/// a thousand, for instance. Measure before using it. No effect where the processor has no such instruction.
///
/// ```
/// let mut queue = std::collections::VecDeque::from([1, 2, 3]);
/// let newest = queue.pop_back();
/// queue.back().inspect(|next| sched_core::fetch_ahead(*next));
/// # assert_eq!(newest, Some(3));
/// ```
#[inline(always)]
pub fn fetch_ahead<T: ?Sized>(place: &T) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: a prefetch reads nothing, whatever the address.
    unsafe {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        _mm_prefetch::<_MM_HINT_T0>(std::ptr::from_ref(place).cast());
    }
    #[cfg(target_arch = "aarch64")]
    // SAFETY: a prefetch reads nothing, whatever the address.
    unsafe {
        std::arch::asm!("prfm pldl1keep, [{0}]", in(reg) place, options(nostack, preserves_flags, readonly));
    }
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    let _ = place;
}

/// Begins to bring the first cache line of `place` near, without waiting, because it will be written soon: another core
/// wrote it last, and a look at it before would only share the line, which the write asks for once more. `place` is not
/// followed. No effect where the processor has no such instruction.
///
/// ```
/// use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
///
/// let left = AtomicUsize::new(1);
/// sched_core::fetch_to_write(&left);
/// if left.load(Relaxed) > 0 {
///     left.fetch_sub(1, Relaxed);
/// }
/// # assert_eq!(left.into_inner(), 0);
/// ```
#[inline(always)]
pub fn fetch_to_write<T>(place: *const T) {
    // Miri interprets no assembly. (`_mm_prefetch` with the hint to write becomes one to read, unless the whole program
    // is compiled for newer processors.)
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    // SAFETY: a prefetch reads nothing, whatever the address.
    unsafe {
        std::arch::asm!("prefetchw [{0}]", in(reg) place, options(nostack, preserves_flags, readonly));
    }
    #[cfg(all(target_arch = "aarch64", not(miri)))]
    // SAFETY: a prefetch reads nothing, whatever the address.
    unsafe {
        std::arch::asm!("prfm pstl1keep, [{0}]", in(reg) place, options(nostack, preserves_flags, readonly));
    }
    #[cfg(any(miri, not(any(target_arch = "x86_64", target_arch = "aarch64"))))]
    let _ = place;
}

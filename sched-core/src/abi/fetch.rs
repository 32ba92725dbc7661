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
pub fn fetch_ahead<T>(place: &T) {
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

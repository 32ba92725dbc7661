//! Looks of a thread before it sleeps: what it waits for often happens sooner than a wake takes.

/// Number of looks in quick succession. Each contends with the threads that make happen what is waited for, so the
/// pauses between them grow.
const QUICK: u32 = 8;

/// Number of times the pause between quick looks is doubled.
const LONGEST_PAUSE: u32 = 4;

/// Number of looks between which other threads on the processing unit go on.
const POLITE: u32 = 40;

/// Number of looks in all. Together they take 10 to 20 µs, twice the cost of a wake. (A model has nothing to gain.)
pub const LOOKS: u32 = if cfg!(loom) { 0 } else { QUICK + POLITE };

/// Pauses before the look of this number, from 0.
pub fn pause_before(look: u32) {
    if look < QUICK {
        (0..2 << look.min(LONGEST_PAUSE)).for_each(|_| std::hint::spin_loop());
    } else {
        std::thread::yield_now();
    }
}

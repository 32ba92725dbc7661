//! Memory for values, asked for before it is used: without any, a program would abort.

use crate::transport::Tag;
use parking_lot::Mutex;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::Relaxed;

/// Smaller values are taken to find their place.
const LEAST: usize = 4096;

/// What a rank knows of its memory.
pub(crate) struct Memory {
    rank: usize,
    /// Maximum number of bytes of a value, for tests of what follows.
    most: AtomicUsize,
    /// What was lacking first, and how often since.
    lack: Mutex<Option<(String, u64)>>,
}

impl Memory {
    pub(crate) fn new(rank: usize) -> Memory {
        Memory { rank, most: AtomicUsize::new(usize::MAX), lack: Mutex::default() }
    }

    /// Refuses larger values from now on.
    #[cfg(test)]
    pub(crate) fn bound(&self, most: usize) {
        self.most.store(most, Relaxed);
    }

    /// Whether the system gives this number of bytes.
    pub(crate) fn has(&self, bytes: usize) -> bool {
        bytes <= LEAST || bytes <= self.most.load(Relaxed) && Vec::<u8>::new().try_reserve_exact(bytes).is_ok()
    }

    /// Notes that there is none for a value, and returns that in words.
    pub(crate) fn lacks(&self, bytes: usize, tag: Tag) -> String {
        let what = tag.datum().map_or_else(|| "a message".to_owned(), |data| format!("data {data}"));
        let text = format!(
            "rank {} has no memory for {bytes} bytes of {what}: use more ranks or less data, or allow it more (`ulimit \
             -v`, control groups)",
            self.rank
        );
        let mut lack = self.lack.lock();
        lack.get_or_insert_with(|| (text.clone(), 0)).1 += 1;
        text
    }

    /// What was lacking since the last call, in words.
    pub(crate) fn take_lack(&self) -> Option<String> {
        let (text, times) = self.lack.lock().take()?;
        Some(if times == 1 { text } else { format!("{text}; and for {} more", times - 1) })
    }
}

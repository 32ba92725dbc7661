//! Ranks in one process.

use super::{Arrived, Parcel, Tag, Transport};
use crate::office::Wake;
use parking_lot::Mutex;
use std::collections::VecDeque;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

/// The messages for one rank, and how to wake it.
#[derive(Default)]
pub(crate) struct Inbox {
    messages: Mutex<VecDeque<(usize, Tag, Vec<u8>)>>,
    wake: OnceLock<Wake>,
}

impl Inbox {
    /// Notes how to wake the rank.
    pub(crate) fn woken_by(&self, wake: Wake) {
        let _ = self.wake.set(wake);
    }
}

/// One of several ranks of this process.
pub(crate) struct Local {
    rank: usize,
    inboxes: Arc<[Inbox]>,
}

impl Local {
    /// The connection of each of this number of ranks.
    pub(crate) fn all(ranks: usize) -> (Arc<[Inbox]>, Vec<Local>) {
        let inboxes: Arc<[Inbox]> = (0..ranks).map(|_| Inbox::default()).collect();
        let all = (0..ranks).map(|rank| Local { rank, inboxes: Arc::clone(&inboxes) }).collect();
        (inboxes, all)
    }
}

impl Transport for Local {
    fn rank(&self) -> usize {
        self.rank
    }

    fn ranks(&self) -> usize {
        self.inboxes.len()
    }

    fn most_tag(&self) -> u32 {
        u32::MAX
    }

    fn send(&mut self, to: usize, tag: Tag, parcel: Box<dyn Parcel>) {
        let inbox = &self.inboxes[to];
        parcel.with(&mut |bytes| inbox.messages.lock().push_back((self.rank, tag, bytes.to_vec())));
        if let Some(wake) = inbox.wake.get() {
            wake();
        }
    }

    fn look(&mut self, deliver: &mut dyn FnMut(usize, Tag, &mut dyn Arrived)) -> bool {
        let message = self.inboxes[self.rank].messages.lock().pop_front();
        let Some((from, tag, mut bytes)) = message else { return false };
        deliver(from, tag, &mut bytes);
        true
    }

    fn sending(&self) -> usize {
        0
    }

    fn patience(&self) -> Option<Duration> {
        None
    }
}

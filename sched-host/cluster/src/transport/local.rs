//! Ranks in one process.

use super::{Arrived, Parcel, Tag, Transport};
use crate::office::Desk;
use parking_lot::Mutex;
use std::collections::VecDeque;
use std::sync::{Arc, OnceLock, Weak};
use std::time::Duration;

/// The messages for one rank, and who takes notice of them.
#[derive(Default)]
pub(crate) struct Inbox {
    messages: Mutex<VecDeque<(usize, Tag, Vec<u8>)>>,
    desk: OnceLock<Weak<Desk>>,
}

impl Inbox {
    /// Notes who takes notice of messages.
    pub(crate) fn noticed_by(&self, desk: &Arc<Desk>) {
        let _ = self.desk.set(Arc::downgrade(desk));
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

    fn most_bytes(&self) -> u64 {
        u64::MAX
    }

    fn send(&mut self, to: usize, tag: Tag, parcel: Box<dyn Parcel>) {
        let inbox = &self.inboxes[to];
        parcel.with(&mut |bytes| inbox.messages.lock().push_back((self.rank, tag, bytes.to_vec())));
        if let Some(desk) = inbox.desk.get().and_then(Weak::upgrade) {
            desk.look();
        }
    }

    fn expect(&mut self, _bytes: usize) {}

    fn look(&mut self, deliver: &mut dyn FnMut(usize, Tag, &mut dyn Arrived)) -> bool {
        let message = self.inboxes[self.rank].messages.lock().pop_front();
        let Some((from, tag, mut bytes)) = message else { return false };
        deliver(from, tag, &mut bytes);
        true
    }

    fn sending(&self) -> usize {
        0
    }

    fn sending_to(&self, _rank: usize) -> usize {
        0
    }

    fn patience(&self) -> Option<Duration> {
        None
    }
}

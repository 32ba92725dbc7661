//! Ranks are processes of MPI.
//!
//! # Safety
//!
//! A message is sent from the memory of the datum. A [`Parcel`] promises that its bytes stay where they are until it is
//! dropped, which happens after the request has ended: it is tested until then, also when the connection ends.
//!
//! MPI is called by the thread that started it, and by those that use the connection, which hold the lock of the
//! office: never by two at once. The first calls it again only after the office has closed, and the connection with it,
//! even if somebody still holds the desk. `Serialized` is what that needs.

use super::{Arrived, Parcel, Tag, Transport};
use mpi::attribute::AttributeKey;
use mpi::point_to_point::Message as Matched;
use mpi::request::{Request, StaticScope};
use mpi::topology::SimpleCommunicator;
use mpi::traits::{AnyCommunicator, CommAttribute, Communicator, CommunicatorCollectives, Destination, Source};
use std::ffi::c_int;
use std::thread;
use std::time::Duration;

/// Longest time between two looks for messages: a look with its wake takes some ten microseconds, less than a
/// hundredth.
const PATIENCE: Duration = Duration::from_millis(2);

/// The largest tag that every implementation of MPI has.
const LEAST_MOST_TAG: u32 = 32_767;

/// The largest tag of the network that is used: 2³¹ − 1 between processes of one machine, 2²³ − 1 with UCX.
#[repr(transparent)]
#[derive(Clone)]
struct MostTag(c_int);

impl CommAttribute for MostTag {
    fn get_key() -> AttributeKey {
        // SAFETY: it is a key of MPI itself, whose value is a number of this type.
        unsafe { AttributeKey::new_unchecked(mpi::ffi::MPI_TAG_UB as i32) }
    }
}

/// The first sleep between two looks for the end of all ranks.
const LEAST_PAUSE: Duration = Duration::from_micros(10);

/// The connection of this process to the others.
pub(crate) struct Mpi {
    world: SimpleCommunicator,
    most_tag: u32,
    sending: Vec<Sending>,
    /// For messages that nobody wants, or has memory for: they have to be received all the same.
    unwanted: Vec<u8>,
}

// SAFETY: a communicator is a name that any thread may use, one at a time; see the module.
unsafe impl Send for Mpi {}

/// A message that is being sent.
struct Sending {
    to: usize,
    /// `None` once it has ended. Dropped before the parcel.
    request: Option<Request<'static, [u8], StaticScope>>,
    _parcel: Box<dyn Parcel>,
}

impl Sending {
    /// Whether the message is still being sent.
    fn goes_on(&mut self) -> bool {
        self.request = self.request.take().and_then(|request| request.test().err());
        self.request.is_some()
    }
}

impl Drop for Sending {
    fn drop(&mut self) {
        if let Some(request) = self.request.take() {
            request.wait_without_status();
        }
    }
}

impl Mpi {
    /// The connection over all processes, by a communicator of its own.
    pub(crate) fn new(world: &SimpleCommunicator) -> Mpi {
        let most_tag =
            world.get_attr::<MostTag>().and_then(|most| u32::try_from(most.0).ok()).unwrap_or(LEAST_MOST_TAG);
        Mpi { world: world.duplicate(), most_tag, sending: Vec::new(), unwanted: Vec::new() }
    }
}

impl Drop for Mpi {
    /// Ends together with the other ranks, when no message is being sent any more. Until then it receives what this
    /// rank has no use for: a large message is not sent before it is received, so its sender would wait for ever, and
    /// this rank for its sender. A rank joins the barrier when its own messages are sent (Hoefler, Siebert and
    /// Lumsdaine, *Scalable communication protocols for dynamic sparse data exchange*, 2010).
    fn drop(&mut self) {
        let (mut barrier, mut pause) = (None, LEAST_PAUSE);
        loop {
            if self.look(&mut |_, _, arrived| arrived.discard()) {
                pause = LEAST_PAUSE;
                continue;
            }
            if self.sending.is_empty() {
                let joined = barrier.take().unwrap_or_else(|| self.world.immediate_barrier());
                match joined.test() {
                    Ok(_) => return,
                    Err(goes_on) => barrier = Some(goes_on),
                }
            }
            // Others may compute for long.
            thread::sleep(pause);
            pause = (2 * pause).min(PATIENCE);
        }
    }
}

struct Message<'a> {
    matched: Option<Matched>,
    len: usize,
    unwanted: &'a mut Vec<u8>,
}

impl Arrived for Message<'_> {
    fn len(&self) -> usize {
        self.len
    }

    fn copy_to(&mut self, place: &mut [u8]) {
        if let Some(matched) = self.matched.take() {
            matched.matched_receive_into(place);
        }
    }

    fn discard(&mut self) {
        if let Some(matched) = self.matched.take() {
            let len = self.len.max(self.unwanted.len());
            self.unwanted.resize(len, 0);
            matched.matched_receive_into(&mut self.unwanted[..self.len]);
        }
    }
}

impl Transport for Mpi {
    fn rank(&self) -> usize {
        usize::try_from(self.world.rank()).unwrap_or(0)
    }

    fn ranks(&self) -> usize {
        usize::try_from(self.world.size()).unwrap_or(1)
    }

    fn most_tag(&self) -> u32 {
        self.most_tag
    }

    fn most_bytes(&self) -> u64 {
        // It is counted by an `int`.
        c_int::MAX as u64
    }

    fn send(&mut self, to: usize, tag: Tag, parcel: Box<dyn Parcel>) {
        let tag = tag.0 as i32;
        let mut request = None;
        parcel.with(&mut |bytes| {
            // SAFETY: the parcel is kept until the request has ended; see the module.
            let bytes: &'static [u8] = unsafe { std::slice::from_raw_parts(bytes.as_ptr(), bytes.len()) };
            request = Some(self.world.process_at_rank(to as i32).immediate_send_with_tag(StaticScope, bytes, tag));
        });
        self.sending.push(Sending { to, request, _parcel: parcel });
    }

    fn expect(&mut self, bytes: usize) {
        let more = bytes.saturating_sub(self.unwanted.len());
        if self.unwanted.try_reserve_exact(more).is_ok() {
            self.unwanted.resize(bytes, 0);
        }
    }

    fn look(&mut self, deliver: &mut dyn FnMut(usize, Tag, &mut dyn Arrived)) -> bool {
        let before = self.sending.len();
        self.sending.retain_mut(Sending::goes_on);
        let has_sent = self.sending.len() < before;
        let Some((matched, status)) = self.world.any_process().immediate_matched_probe() else { return has_sent };
        let len = usize::try_from(status.count(<u8 as mpi::traits::Equivalence>::equivalent_datatype())).unwrap_or(0);
        let from = usize::try_from(status.source_rank()).unwrap_or(0);
        let mut message = Message { matched: Some(matched), len, unwanted: &mut self.unwanted };
        deliver(from, Tag(status.tag() as u32), &mut message);
        true
    }

    fn sending(&self) -> usize {
        self.sending.len()
    }

    fn sending_to(&self, rank: usize) -> usize {
        self.sending.iter().filter(|sending| sending.to == rank).count()
    }

    fn patience(&self) -> Option<Duration> {
        Some(PATIENCE)
    }
}

//! Sending and receiving for a rank.
//!
//! # Who does it
//!
//! Whoever asks for a message to be sent or received does at once what can be done, and so does a worker that has no
//! task: a message needs no wake of another thread. One of them [serves](Desk::serve) at a time. Others leave their
//! errand in the queue, which the one that serves looks at again after it has left: nothing stays there unseen.
//!
//! Where messages arrive without a thread of this process that would know, workers without a task look for them a while
//! longer than for tasks, unless others need their processor, and a thread looks for them too, since all workers may be
//! busy or asleep: while messages are awaited or being sent, the more seldom the longer nothing has moved; and when
//! nothing is, it sleeps until there is something. So the one that waits learns of a message late by a share of the
//! time for which it has waited: ranks that wait for each other become faster with each message, and not slower.

mod clerk;

use crate::memory::Memory;
use crate::trace::MessageLog;
use crate::transport::{Arrived, Parcel, Tag, Transport};
use clerk::Clerk;
use crossbeam::queue::SegQueue;
use crossbeam::sync::{Parker, Unparker};
use parking_lot::Mutex;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst, fence};
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// Time without a movement for which a worker without a task looks for messages that are awaited.
const KEEN: Duration = Duration::from_millis(1);

/// Time between two looks of such a worker from which on others need its processor.
const CROWDED: Duration = Duration::from_micros(50);

/// The shortest sleep between two looks of the thread: each takes time from a kernel, and workers without a task look
/// themselves.
const LEAST_SLEEP: Duration = Duration::from_micros(200);

/// The part of the time without a movement for which the thread sleeps.
const SLEEPS: u32 = 8;

/// Where a message goes.
pub(crate) trait Room: Send {
    /// Takes the message.
    fn fill(self: Box<Self>, arrived: &mut dyn Arrived);

    /// Learns why there is none.
    fn fail(self: Box<Self>, why: &str);
}

/// What a rank asks for.
enum Errand {
    Send {
        to: usize,
        tag: Tag,
        parcel: Box<dyn Parcel>,
    },
    /// A value for a task of this urgency.
    SendValue {
        to: usize,
        tag: Tag,
        urgency: i32,
        parcel: Box<dyn Parcel>,
    },
    Receive {
        from: usize,
        tag: Tag,
        room: Box<dyn Room>,
    },
    /// Something may have arrived.
    Look,
    /// What this rank does while all wait.
    Quiet(Doing),
    /// Messages of this length may come.
    Expect(usize),
    /// No message will come: everything awaited fails.
    GiveUp(Arc<str>),
    /// No value will come: all that are awaited fail.
    GiveUpValues(Arc<str>),
}

/// What a rank does while all wait for each other.
#[derive(Clone, Copy)]
pub(crate) enum Doing {
    /// It begins to wait, or has waited, as all others.
    Begins,
    /// It has tasks, and nothing has moved for a while; the number of those that it has done.
    Stays(u64),
    /// It has none left; the number of those that it has done.
    Ends(u64),
}

/// Where errands are brought, and done.
pub(crate) struct Desk {
    errands: SegQueue<Errand>,
    /// `None` after the office has closed: the connection ends with it, whoever still holds the desk.
    clerk: Mutex<Option<Clerk>>,
    /// Whether the thread is about to sleep until it is woken.
    is_asleep: AtomicBool,
    /// Whether a thread looks for messages, so that it matters when one came.
    is_timed: bool,
    thread: Unparker,
    closes: AtomicBool,
    /// Whether nothing moves on any rank any more.
    is_stuck: AtomicBool,
    memory: Arc<Memory>,
    /// The largest message that may come, so far.
    expected: AtomicUsize,
}

impl Desk {
    pub(crate) fn send(&self, to: usize, tag: Tag, parcel: Box<dyn Parcel>) {
        self.ask(Errand::Send { to, tag, parcel });
    }

    /// Sends a value for a task of this urgency: values for tasks that are more urgent overtake it while it waits.
    pub(crate) fn send_value(&self, (to, tag): (usize, Tag), urgency: i32, parcel: Box<dyn Parcel>) {
        self.ask(Errand::SendValue { to, tag, urgency, parcel });
    }

    pub(crate) fn receive(&self, from: usize, tag: Tag, room: Box<dyn Room>) {
        self.ask(Errand::Receive { from, tag, room });
    }

    /// The memory of this rank.
    pub(crate) fn memory(&self) -> &Memory {
        &self.memory
    }

    /// Notes that messages of this length may come.
    pub(crate) fn expect(&self, bytes: usize) {
        if self.expected.fetch_max(bytes, SeqCst) < bytes {
            self.ask(Errand::Expect(bytes));
        }
    }

    /// Tells what this rank does while all wait for each other. Returns whether nothing moves on any of them, and never
    /// will.
    pub(crate) fn tell(&self, doing: Doing) -> bool {
        self.ask(Errand::Quiet(doing));
        self.is_stuck.load(SeqCst)
    }

    /// Takes notice of a message that may have arrived.
    pub(crate) fn look(&self) {
        self.ask(Errand::Look);
    }

    fn ask(&self, errand: Errand) {
        self.errands.push(errand);
        self.serve();
    }

    /// Does what is to be done, unless another thread does. Returns what is left to wait for, if this thread was the
    /// one.
    pub(crate) fn serve(&self) -> Option<Left> {
        let left = loop {
            // With the fence below: either this thread serves, or the one that does sees the errand afterwards.
            fence(SeqCst);
            let mut place = self.clerk.try_lock()?;
            let clerk = place.as_mut()?;
            let has_moved = clerk.work(&self.errands);
            self.is_stuck.store(clerk.is_stuck(), SeqCst);
            let left = if self.is_timed { clerk.note(has_moved) } else { Left::default() };
            drop(place);
            fence(SeqCst);
            if self.errands.is_empty() {
                break left;
            }
        };
        if left.is_awaiting && self.is_asleep.swap(false, SeqCst) {
            self.thread.unpark();
        }
        Some(left)
    }

    /// [Serves](Self::serve) for a worker without a task. Returns whether it is worth while to look again soon.
    pub(crate) fn serves_keenly(&self) -> bool {
        self.serve().is_some_and(|left| left.is_awaiting && left.silence < KEEN && left.gap < CROWDED)
    }

    /// Looks for messages until the office closes, at least once in a time of `patience` while some are awaited.
    fn look_on(&self, parker: &Parker, patience: Duration) {
        while !self.closes.load(SeqCst) {
            match self.serve() {
                Some(Left { is_awaiting: true, silence, .. }) => {
                    parker.park_timeout((silence / SLEEPS).clamp(LEAST_SLEEP, patience));
                }
                // Whoever serves after the second look, and leaves something to wait for, sees the flag.
                Some(_) if self.is_asleep.swap(true, SeqCst) => parker.park(),
                Some(_) => {}
                None => parker.park_timeout(LEAST_SLEEP),
            }
        }
    }
}

/// What one who has served leaves.
#[derive(Default)]
pub(crate) struct Left {
    /// Whether messages are awaited or being sent.
    is_awaiting: bool,
    /// Time since an errand or a message was there.
    silence: Duration,
    /// Time since somebody looked before.
    gap: Duration,
}

/// Sends and receives for a rank.
pub(crate) struct Office {
    desk: Arc<Desk>,
    thread: Option<JoinHandle<()>>,
}

impl Office {
    pub(crate) fn open(transport: Box<dyn Transport>, log: Option<MessageLog>) -> Result<Office, std::io::Error> {
        let (name, patience) = (format!("messages-{}", transport.rank()), transport.patience());
        let memory = Arc::new(Memory::new(transport.rank()));
        let clerk = Clerk::new(transport, Arc::clone(&memory), log);
        let parker = Parker::new();
        let desk = Desk {
            errands: SegQueue::new(),
            clerk: Mutex::new(Some(clerk)),
            is_asleep: AtomicBool::new(false),
            is_timed: patience.is_some(),
            thread: parker.unparker().clone(),
            closes: AtomicBool::new(false),
            is_stuck: AtomicBool::new(false),
            memory,
            expected: AtomicUsize::new(0),
        };
        let desk = Arc::new(desk);
        let Some(patience) = patience else { return Ok(Office { desk, thread: None }) };
        let served = Arc::clone(&desk);
        let thread = thread::Builder::new().name(name).spawn(move || served.look_on(&parker, patience))?;
        Ok(Office { desk, thread: Some(thread) })
    }

    pub(crate) fn desk(&self) -> &Arc<Desk> {
        &self.desk
    }

    /// Fails everything that is awaited now or later.
    pub(crate) fn give_up(&self, why: &str) {
        self.desk.ask(Errand::GiveUp(why.into()));
    }

    /// Fails all values that are awaited now or later; ranks still talk to each other.
    pub(crate) fn give_up_values(&self, why: &str) {
        self.desk.ask(Errand::GiveUpValues(why.into()));
    }
}

impl Drop for Office {
    fn drop(&mut self) {
        self.desk.closes.store(true, SeqCst);
        self.desk.thread.unpark();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
        // Not dropped under the lock: leases end with it, and what they release may have errands.
        let clerk = self.desk.clerk.lock().take();
        // Others wait for what is left; the transport ends when it has been sent.
        clerk.into_iter().for_each(Clerk::close);
    }
}

//! The thread that sends and receives for a rank.
//!
//! While messages are awaited or being sent it looks for them: at once for a while, then more and more seldom, so that no
//! core is burnt where nothing moves. When nothing is awaited it sleeps until there is something to do.

use crate::transport::{Arrived, Parcel, Tag, Transport};
use crossbeam::channel::{Receiver, RecvTimeoutError, Sender, TryRecvError, unbounded};
use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// Looks without anything to do before the thread begins to sleep between them.
const LOOKS: u32 = 200;
/// The first sleep between two looks; each one is twice as long.
const FIRST_SLEEP: Duration = Duration::from_micros(20);

/// Wakes the thread.
pub(crate) type Wake = Box<dyn Fn() + Send + Sync>;

/// Where a message goes.
pub(crate) trait Room: Send {
    /// Takes the message.
    fn fill(self: Box<Self>, arrived: &mut dyn Arrived);

    /// Learns why there is none.
    fn fail(self: Box<Self>, why: &str);
}

/// What the thread is asked for.
enum Errand {
    Send {
        to: usize,
        tag: Tag,
        parcel: Box<dyn Parcel>,
    },
    Receive {
        from: usize,
        tag: Tag,
        room: Box<dyn Room>,
    },
    /// Something may have arrived.
    Look,
    /// No message will come: everything awaited fails.
    GiveUp(Arc<str>),
    End,
}

/// Sends and receives for a rank.
pub(crate) struct Office {
    errands: Sender<Errand>,
    thread: Option<JoinHandle<()>>,
}

/// Sends and receives on behalf of callbacks.
#[derive(Clone)]
pub(crate) struct Counter(Sender<Errand>);

impl Counter {
    pub(crate) fn send(&self, to: usize, tag: Tag, parcel: Box<dyn Parcel>) {
        // The office ends after everything that could ask it.
        let _ = self.0.send(Errand::Send { to, tag, parcel });
    }

    pub(crate) fn receive(&self, from: usize, tag: Tag, room: Box<dyn Room>) {
        let _ = self.0.send(Errand::Receive { from, tag, room });
    }
}

impl Office {
    /// Starts the thread.
    pub(crate) fn open(transport: Box<dyn Transport>) -> Result<Office, std::io::Error> {
        let (errands, asked) = unbounded();
        let name = format!("messages-{}", transport.rank());
        let clerk = Clerk { transport, asked, awaited: HashMap::new(), early: HashMap::new(), waiting: 0, lost: None };
        let thread = thread::Builder::new().name(name).spawn(move || clerk.serve())?;
        Ok(Office { errands, thread: Some(thread) })
    }

    pub(crate) fn counter(&self) -> Counter {
        Counter(self.errands.clone())
    }

    /// What wakes the thread.
    pub(crate) fn wake(&self) -> Wake {
        let errands = self.errands.clone();
        Box::new(move || _ = errands.send(Errand::Look))
    }

    /// Fails everything that is awaited now.
    pub(crate) fn give_up(&self, why: &str) {
        let _ = self.errands.send(Errand::GiveUp(why.into()));
    }
}

impl Drop for Office {
    fn drop(&mut self) {
        let _ = self.errands.send(Errand::End);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

type Key = (usize, Tag);

struct Clerk {
    transport: Box<dyn Transport>,
    asked: Receiver<Errand>,
    awaited: HashMap<Key, VecDeque<Box<dyn Room>>>,
    /// Messages that came before their room: with the reason, if there is no value.
    early: HashMap<Key, VecDeque<Result<Vec<u8>, String>>>,
    /// Number of awaited messages.
    waiting: usize,
    /// Why no message will come any more.
    lost: Option<Arc<str>>,
}

impl Clerk {
    fn serve(mut self) {
        let mut looks = 0;
        loop {
            let mut is_busy = false;
            loop {
                match self.asked.try_recv() {
                    Ok(errand) => {
                        is_busy = true;
                        if self.run(errand) {
                            return;
                        }
                    }
                    Err(TryRecvError::Empty) => break,
                    Err(TryRecvError::Disconnected) => return,
                }
            }
            is_busy |= self.look();
            looks = if is_busy { 0 } else { looks + 1 };
            if looks == 0 || looks < LOOKS && self.is_awaiting() {
                if looks > 0 {
                    thread::yield_now();
                }
                continue;
            }
            if self.sleep(looks) {
                return;
            }
        }
    }

    fn is_awaiting(&self) -> bool {
        self.waiting > 0 || self.transport.sending() > 0
    }

    /// Sleeps until there is something to do, or it is time for a look. Returns whether the office closes.
    fn sleep(&mut self, looks: u32) -> bool {
        let patience = self.transport.patience().filter(|_| self.is_awaiting());
        let errand = match patience {
            None => self.asked.recv().map_err(|_| RecvTimeoutError::Disconnected),
            Some(most) => {
                let doubled = FIRST_SLEEP.saturating_mul(1 << looks.saturating_sub(LOOKS).min(16));
                self.asked.recv_timeout(doubled.min(most))
            }
        };
        match errand {
            Ok(errand) => self.run(errand),
            Err(RecvTimeoutError::Timeout) => false,
            Err(RecvTimeoutError::Disconnected) => true,
        }
    }

    /// Returns whether the office closes.
    fn run(&mut self, errand: Errand) -> bool {
        match errand {
            Errand::Send { to, tag, parcel } => self.transport.send(to, tag, parcel),
            Errand::Receive { from, tag, room } => match (self.take_early((from, tag)), &self.lost) {
                (Some(Ok(mut bytes)), _) => room.fill(&mut bytes),
                (Some(Err(why)), _) => room.fail(&why),
                (None, Some(why)) => room.fail(why),
                (None, None) => {
                    self.awaited.entry((from, tag)).or_default().push_back(room);
                    self.waiting += 1;
                }
            },
            Errand::Look => {}
            Errand::GiveUp(why) => self.lose(&why),
            Errand::End => return true,
        }
        false
    }

    /// Fails what is awaited, now and later.
    fn lose(&mut self, why: &Arc<str>) {
        let all = std::mem::take(&mut self.awaited);
        all.into_values().flatten().for_each(|room| room.fail(why));
        self.waiting = 0;
        self.lost.get_or_insert_with(|| Arc::clone(why));
    }

    fn take_early(&mut self, key: Key) -> Option<Result<Vec<u8>, String>> {
        let kept = self.early.get_mut(&key)?;
        let message = kept.pop_front();
        if kept.is_empty() {
            self.early.remove(&key);
        }
        message
    }

    fn look(&mut self) -> bool {
        let Clerk { transport, awaited, early, waiting, .. } = self;
        let mut lost = None;
        let has_looked = transport.look(&mut |from, tag, arrived| {
            let (is_reason, tag) = tag.split();
            if is_reason && tag == Tag::OWN {
                lost = Some(Arc::from(text(arrived)));
                return;
            }
            let room = awaited.get_mut(&(from, tag)).and_then(VecDeque::pop_front);
            *waiting -= usize::from(room.is_some());
            match (room, is_reason) {
                (Some(room), false) => room.fill(arrived),
                (Some(room), true) => room.fail(&text(arrived)),
                (None, is_reason) => {
                    let message = if is_reason { Err(text(arrived)) } else { Ok(arrived.to_vec()) };
                    early.entry((from, tag)).or_default().push_back(message);
                }
            }
        });
        if let Some(why) = lost {
            self.lose(&why);
        }
        has_looked
    }
}

fn text(arrived: &mut dyn Arrived) -> String {
    String::from_utf8_lossy(&arrived.to_vec()).into_owned()
}

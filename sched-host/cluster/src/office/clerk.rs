//! What is sent and received for a rank, and what of it is awaited.

use super::{Doing, Errand, Left, Room};
use crate::memory::Memory;
use crate::quiet::{Notice, Quiet};
use crate::trace::MessageLog;
use crate::transport::{Arrived, Parcel, Tag, Transport};
use crossbeam::queue::SegQueue;
use sched_graph::ranks::Outbox;
use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::Instant;

/// A message by the rank at its other end, and its tag.
type Key = (usize, Tag);

/// Sends and receives for a rank.
pub(super) struct Clerk {
    transport: Box<dyn Transport>,
    memory: Arc<Memory>,
    /// Present if events are recorded.
    log: Option<MessageLog>,
    outbox: Outbox<(Tag, Box<dyn Parcel>)>,
    quiet: Quiet,
    awaited: HashMap<Key, VecDeque<Box<dyn Room>>>,
    /// Messages that came before their room: with the reason, if there is no value.
    early: HashMap<Key, VecDeque<Result<Vec<u8>, String>>>,
    /// Number of awaited messages.
    waiting: usize,
    /// Why no message will come any more.
    lost: Option<Arc<str>>,
    /// Why no value will come any more.
    lost_values: Option<Arc<str>>,
    /// Why nothing will come from a rank any more, by the rank.
    ended: HashMap<usize, Arc<str>>,
    /// When somebody looked last.
    looked: Instant,
    /// When an errand or a message was there last.
    moved: Instant,
}

impl Clerk {
    pub(super) fn new(transport: Box<dyn Transport>, memory: Arc<Memory>, log: Option<MessageLog>) -> Clerk {
        let quiet = Quiet::new(transport.rank(), transport.ranks());
        let now = Instant::now();
        Clerk {
            transport,
            memory,
            log,
            outbox: Outbox::default(),
            quiet,
            awaited: HashMap::new(),
            early: HashMap::new(),
            waiting: 0,
            lost: None,
            lost_values: None,
            ended: HashMap::new(),
            looked: now,
            moved: now,
        }
    }

    /// Whether nothing moves on any rank any more.
    pub(super) fn is_stuck(&self) -> bool {
        self.quiet.is_decided()
    }

    /// Does the errands, and takes the messages that are there. Returns whether there was anything.
    pub(super) fn work(&mut self, errands: &SegQueue<Errand>) -> bool {
        let mut has_moved = false;
        loop {
            let mut moves = false;
            while let Some(errand) = errands.pop() {
                self.run(errand);
                moves = true;
            }
            self.post();
            if !self.look() && !moves {
                return has_moved;
            }
            has_moved = true;
        }
    }

    /// Notes that somebody has looked, and whether there was anything.
    pub(super) fn note(&mut self, has_moved: bool) -> Left {
        let (now, before) = (Instant::now(), self.looked);
        self.looked = now;
        if has_moved {
            self.moved = now;
        }
        Left { is_awaiting: self.is_awaiting(), silence: now - self.moved, gap: now - before }
    }

    fn is_awaiting(&self) -> bool {
        self.waiting > 0 || self.transport.sending() > 0
    }

    fn run(&mut self, errand: Errand) {
        match errand {
            Errand::Send { to, tag, parcel } => {
                if tag.is_of_value() {
                    self.quiet.note_sent();
                }
                self.transport.send(to, tag, parcel);
            }
            Errand::SendValue { to, tag, urgency, parcel } => {
                self.quiet.note_sent();
                self.outbox.add(to, urgency, parcel.len() as u64, (tag, parcel));
            }
            Errand::Receive { from, tag, room } => match (self.take_early((from, tag)), self.lost_for(from, tag)) {
                (Some(Ok(mut bytes)), _) => room.fill(&mut bytes),
                (Some(Err(why)), _) => room.fail(&why),
                (None, Some(why)) => room.fail(why),
                (None, None) => {
                    self.awaited.entry((from, tag)).or_default().push_back(room);
                    self.waiting += 1;
                }
            },
            Errand::Look => {}
            Errand::Expect(bytes) => self.transport.expect(bytes),
            Errand::Quiet(doing) => {
                let notices = match doing {
                    Doing::Begins => {
                        self.quiet.begin();
                        Vec::new()
                    }
                    Doing::Stays(tasks) => self.quiet.report(tasks),
                    Doing::Ends(tasks) => self.quiet.end(tasks),
                };
                self.notify(notices);
            }
            Errand::GiveUp(why) => self.lose(&why),
            Errand::GiveUpValues(why) => self.lose_values(&why),
        }
    }

    /// Tells other ranks what this one knows of them all.
    fn notify(&mut self, notices: Vec<Notice>) {
        notices.into_iter().for_each(|(to, notice)| self.transport.send(to, Tag::QUIET, Box::new(notice)));
    }

    /// Begins to send what need not wait any more.
    fn post(&mut self) {
        let Clerk { transport, log, outbox, .. } = self;
        while let Some((to, (tag, parcel))) = outbox.next(|to| transport.sending_to(to)) {
            if let Some(log) = log {
                log.sent(to, tag, parcel.len());
            }
            transport.send(to, tag, parcel);
        }
    }

    /// Begins to send everything, and last of all that nothing more will come: ranks that still wait for this one would
    /// wait for ever.
    pub(super) fn close(mut self) {
        while let Some((to, (tag, parcel))) = self.outbox.next(|_| 0) {
            self.transport.send(to, tag, parcel);
        }
        let own = self.transport.rank();
        for rank in (0..self.transport.ranks()).filter(|rank| *rank != own) {
            self.transport.send(rank, Tag::LEFT, Box::new(Vec::new()));
        }
    }

    /// Fails what is awaited, now and later.
    fn lose(&mut self, why: &Arc<str>) {
        let all = std::mem::take(&mut self.awaited);
        all.into_values().flatten().for_each(|room| room.fail(why));
        self.waiting = 0;
        self.lost.get_or_insert_with(|| Arc::clone(why));
    }

    /// Fails values that are awaited, now and later.
    fn lose_values(&mut self, why: &Arc<str>) {
        let values: Vec<Key> = self.awaited.keys().filter(|(_, tag)| *tag != Tag::OWN).copied().collect();
        for room in values.iter().filter_map(|key| self.awaited.remove(key)).flatten() {
            self.waiting -= 1;
            room.fail(why);
        }
        self.lost_values.get_or_insert_with(|| Arc::clone(why));
    }

    /// Fails what is awaited from a rank that has ended, now and later, and all values: those of others may need its
    /// own.
    fn lose_rank(&mut self, rank: usize, why: &Arc<str>) {
        self.lose_from(rank, why);
        self.lose_values(why);
    }

    /// Fails what is awaited from a rank, now and later.
    fn lose_from(&mut self, rank: usize, why: &Arc<str>) {
        let awaited: Vec<Key> = self.awaited.keys().filter(|(from, _)| *from == rank).copied().collect();
        for room in awaited.iter().filter_map(|key| self.awaited.remove(key)).flatten() {
            self.waiting -= 1;
            room.fail(why);
        }
        self.ended.entry(rank).or_insert_with(|| Arc::clone(why));
    }

    /// Why no message of this tag will come from a rank any more.
    fn lost_for(&self, from: usize, tag: Tag) -> Option<&Arc<str>> {
        let values = || self.lost_values.as_ref().filter(|_| tag != Tag::OWN);
        self.lost.as_ref().or_else(|| self.ended.get(&from)).or_else(values)
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
        let Clerk { transport, memory, log, awaited, early, waiting, quiet, .. } = self;
        let (mut lost, mut ended, mut left, mut stuck, mut notices) = (None, None, None, None, Vec::new());
        let has_looked = transport.look(&mut |from, tag, arrived| {
            let (whole_tag, len) = (tag, arrived.len());
            let (is_reason, tag) = tag.split();
            if is_reason && tag == Tag::OWN {
                lost = Some(Arc::from(text(arrived)));
                return;
            }
            if whole_tag == Tag::QUIET {
                notices = quiet.take(from, &arrived.to_vec());
                return;
            }
            if whole_tag == Tag::LEFT {
                arrived.discard();
                left = Some(from);
                return;
            }
            if tag == Tag::ENDED {
                ended = Some((from, Arc::from(text(arrived))));
                return;
            }
            if tag == Tag::STUCK {
                stuck = Some(Arc::from(text(arrived)));
                return;
            }
            if whole_tag.is_of_value() {
                quiet.note_received();
            }
            let room = awaited.get_mut(&(from, tag)).and_then(VecDeque::pop_front);
            *waiting -= usize::from(room.is_some());
            match (room, is_reason) {
                (Some(room), false) => room.fill(arrived),
                (Some(room), true) => room.fail(&text(arrived)),
                (None, is_reason) => {
                    let message = match is_reason {
                        true => Err(text(arrived)),
                        false if memory.has(len) => Ok(arrived.to_vec()),
                        false => {
                            arrived.discard();
                            Err(memory.lacks(len, tag))
                        }
                    };
                    early.entry((from, tag)).or_default().push_back(message);
                }
            }
            if let Some(log) = log {
                log.received(from, whole_tag, len);
            }
        });
        if let Some(why) = lost {
            self.lose(&why);
        }
        self.notify(notices);
        if let Some((rank, why)) = ended {
            self.lose_rank(rank, &why);
        }
        if let Some(rank) = left {
            self.lose_from(rank, &Arc::from(format!("rank {rank} has ended before the others")));
        }
        if let Some(why) = stuck {
            self.lose_values(&why);
        }
        has_looked
    }
}

fn text(arrived: &mut dyn Arrived) -> String {
    String::from_utf8_lossy(&arrived.to_vec()).into_owned()
}

//! Messages under way.

use super::network::{Links, Network};
use sched_graph::ranks::{Message, MessageId, Outbox};
use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap, VecDeque};

/// What happens to a message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Happening {
    /// It begins to be sent.
    Begins(MessageId),
    /// The interface of the sender has sent all of it.
    Sent(MessageId),
    /// All of it has arrived.
    Arrived(MessageId),
}

/// A planned step of a message.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Step {
    /// Its first byte comes to a link, and the last one will come there at this time.
    Head {
        message: MessageId,
        hop: u8,
        tail: u64,
    },
    Sent(MessageId),
    Arrived(MessageId),
}

/// The messages between the nodes of a cluster; see [`Network`].
pub(super) struct Messages<'m> {
    all: &'m [Message],
    links: Links,
    is_free: bool,
    /// The messages that each node is asked to send.
    outboxes: Vec<Outbox<MessageId>>,
    /// Those of them that its interface has taken, in order; it sends the first.
    queues: Vec<VecDeque<MessageId>>,
    /// Number of these by sender and receiver.
    under_way: HashMap<(u32, u32), usize>,
    /// Time from which each link is free.
    free: Vec<u64>,
    /// Bytes that each link has carried.
    carried: Vec<u64>,
    /// By time, then by order of planning.
    agenda: BinaryHeap<Reverse<(u64, u64, Step)>>,
    sequence: u64,
}

impl<'m> Messages<'m> {
    pub(super) fn new(network: &Network, nodes: usize, all: &'m [Message]) -> Messages<'m> {
        let links = Links::new(network, nodes);
        let count = links.bandwidth.len();
        Messages {
            all,
            links,
            is_free: network.is_free,
            outboxes: (0..nodes).map(|_| Outbox::default()).collect(),
            queues: vec![VecDeque::new(); nodes],
            under_way: HashMap::new(),
            free: vec![0; count],
            carried: vec![0; count],
            agenda: BinaryHeap::new(),
            sequence: 0,
        }
    }

    /// A message is ready to be sent, after those that its sender's interface has taken, and those that are more
    /// urgent.
    pub(super) fn post(&mut self, now: u64, message: MessageId) {
        let Message { from, to, bytes, priority, .. } = self.all[message.index()];
        self.outboxes[from as usize].add(to as usize, priority, bytes, message);
        if self.fill(from) {
            self.begin(now, from);
        }
    }

    /// An interface takes what need not wait any more. Returns whether it had nothing to send before, and has now.
    fn fill(&mut self, from: u32) -> bool {
        let Messages { outboxes, queues, under_way, .. } = self;
        let queue = &mut queues[from as usize];
        let was_empty = queue.is_empty();
        let count = |under_way: &HashMap<_, usize>, to: usize| under_way.get(&(from, to as u32)).copied().unwrap_or(0);
        while let Some((to, message)) = outboxes[from as usize].next(|to| count(under_way, to)) {
            *under_way.entry((from, to as u32)).or_default() += 1;
            queue.push_back(message);
        }
        was_empty && !queue.is_empty()
    }

    /// An interface begins to send the first of its messages.
    fn begin(&mut self, now: u64, from: u32) {
        if let Some(message) = self.queues[from as usize].front().copied() {
            self.plan(now, Step::Head { message, hop: 0, tail: now });
        }
    }

    /// An interface has sent a message, and begins with the next.
    fn sent(&mut self, now: u64, message: MessageId) {
        let Message { from, to, .. } = self.all[message.index()];
        self.queues[from as usize].pop_front();
        if let Some(count) = self.under_way.get_mut(&(from, to)) {
            *count -= 1;
        }
        self.fill(from);
        self.begin(now, from);
    }

    fn plan(&mut self, time: u64, step: Step) {
        self.sequence += 1;
        self.agenda.push(Reverse((time, self.sequence, step)));
    }

    /// Time of the next step.
    pub(super) fn next_time(&self) -> Option<u64> {
        self.agenda.peek().map(|Reverse((time, ..))| *time)
    }

    /// Performs the next step. Returns what others notice of it, and when.
    pub(super) fn step(&mut self) -> Option<(u64, Happening)> {
        let Reverse((now, _, step)) = self.agenda.pop()?;
        match step {
            Step::Head { message, hop, tail } => self.pass(now, message, hop, tail),
            Step::Sent(message) => {
                self.sent(now, message);
                Some((now, Happening::Sent(message)))
            }
            Step::Arrived(message) => Some((now, Happening::Arrived(message))),
        }
    }

    /// Passes a message over a link, where its first byte is now.
    fn pass(&mut self, now: u64, message: MessageId, hop: u8, tail: u64) -> Option<(u64, Happening)> {
        let Message { from, to, bytes, .. } = self.all[message.index()];
        let (from, to) = (from as usize, to as usize);
        let found = self.links.hop(from, to, usize::from(hop))?;
        let (length, latency) = match self.is_free {
            true => (0, 0),
            false => ((bytes as f64 / self.links.bandwidth[found.link]).round() as u64, found.latency),
        };
        let begin = now.max(self.free[found.link]);
        self.free[found.link] = begin + length;
        self.carried[found.link] += bytes;
        let end = (begin + length).max(tail) + latency;
        match self.links.hop(from, to, usize::from(hop) + 1) {
            Some(_) => self.plan(begin + latency, Step::Head { message, hop: hop + 1, tail: end }),
            None => self.plan(end, Step::Arrived(message)),
        }
        if hop > 0 {
            return None;
        }
        self.plan(begin + length, Step::Sent(message));
        Some((now, Happening::Begins(message)))
    }

    /// Name of each link, and the bytes that it has carried.
    pub(super) fn links(&self) -> impl Iterator<Item = (String, u64)> {
        self.carried.iter().enumerate().map(|(link, bytes)| (self.links.name(link), *bytes))
    }
}

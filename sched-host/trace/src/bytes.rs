//! Traces as bytes: ranks send theirs to one that merges them.
//!
//! Everything is 64-bit numbers, least byte first; a text is its length and its bytes. Each event is seven of them: its
//! time, its kind, and up to five more.

use super::event::{CodeletId, Event, Note, NoteId, RankMessage, Stamped, Transfer};
use super::ranks::RankTrace;
use super::track::{Trace, WorkerTrack};
use sched_core::{LogLevel, MemoryNode, Refusal, TaskId, WorkerId};
use sched_graph::{ContextId, DataId};
use sched_memory::Reason;
use sched_tree::{NoteKind, ObservedNode};

/// Number of words of an event.
const WORDS: usize = 7;

const REFUSALS: [Refusal; 4] = [Refusal::Full, Refusal::NoWorker, Refusal::PullInstead, Refusal::Uncalibrated];

const LEVELS: [LogLevel; 4] = [LogLevel::Error, LogLevel::Warn, LogLevel::Info, LogLevel::Debug];

impl RankTrace {
    /// The trace as bytes, for [`from_bytes`](Self::from_bytes) in the same version of this crate.
    ///
    /// ```
    /// use sched_trace::{Event, RankTrace, Stamped, Trace};
    /// # use sched_core::WorkerId;
    /// let events = vec![Stamped { nanos: 5, event: Event::Woken { worker: WorkerId(3) } }];
    /// let rank = RankTrace { trace: Trace::default().with_events(events), behind: -7, ..RankTrace::default() };
    /// assert_eq!(RankTrace::from_bytes(&rank.to_bytes()), Some(rank));
    /// ```
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let RankTrace { trace, behind, tasks } = self;
        let mut out = Out(Vec::with_capacity(8 * WORDS * (trace.events.len() + 16)));
        out.word(behind.cast_unsigned());
        out.all(tasks.iter(), |out, (here, of_all)| [here, of_all].iter().for_each(|task| out.word(task.sequence())));
        out.text(&trace.title);
        for texts in [&trace.memories, &trace.contexts, &trace.nodes, &trace.codelets] {
            out.all(texts.iter(), |out, text| out.text(text));
        }
        out.all(trace.workers.iter(), |out, WorkerTrack { name, group, rank }| {
            out.text(name);
            out.text(group);
            out.word(u64::from(*rank));
        });
        out.all(trace.names.iter(), |out, (task, name)| {
            out.word(task.sequence());
            out.text(name);
        });
        out.all(trace.notes.iter(), |out, (id, Note { node, kind, text })| {
            [id.0, node.0, kind_code(*kind)].iter().for_each(|word| out.word(u64::from(*word)));
            out.text(text);
        });
        [trace.origin, trace.end, trace.dropped].iter().for_each(|word| out.word(*word));
        out.all(trace.events.iter(), |out, event| words(event).iter().for_each(|word| out.word(*word)));
        out.0
    }

    /// The trace of what [`to_bytes`](Self::to_bytes) returned; `None` if the bytes are of something else.
    #[must_use]
    pub fn from_bytes(bytes: &[u8]) -> Option<RankTrace> {
        let mut from = Source(bytes);
        let behind = from.word()?.cast_signed();
        let tasks = from.all(|from| Some((TaskId::new(from.word()?), TaskId::new(from.word()?))))?;
        let mut trace = Trace { title: from.text()?, ..Trace::default() };
        for texts in [&mut trace.memories, &mut trace.contexts, &mut trace.nodes, &mut trace.codelets] {
            *texts = from.all(Source::text)?;
        }
        trace.workers = from.all(|from| {
            let (name, group) = (from.text()?, from.text()?);
            Some(WorkerTrack { name, group, rank: from.small()? })
        })?;
        trace.names = from.all(|from| Some((TaskId::new(from.word()?), from.text()?.into())))?;
        trace.notes = from.all(|from| {
            let (id, node) = (NoteId(from.small()?), ObservedNode(from.small()?));
            let kind = kind_of(from.small()?);
            Some((id, Note { node, kind, text: from.text()? }))
        })?;
        (trace.origin, trace.end, trace.dropped) = (from.word()?, from.word()?, from.word()?);
        trace.events = from.all(|from| {
            let mut words = [0; WORDS];
            for word in &mut words {
                *word = from.word()?;
            }
            event(words)
        })?;
        from.0.is_empty().then_some(RankTrace { trace, behind, tasks })
    }
}

/// What is being written.
struct Out(Vec<u8>);

impl Out {
    fn word(&mut self, word: u64) {
        self.0.extend_from_slice(&word.to_le_bytes());
    }

    fn text(&mut self, text: &str) {
        self.word(text.len() as u64);
        self.0.extend_from_slice(text.as_bytes());
    }

    fn all<I: ExactSizeIterator>(&mut self, items: I, mut each: impl FnMut(&mut Out, I::Item)) {
        self.word(items.len() as u64);
        items.for_each(|item| each(self, item));
    }
}

/// What is left to be read.
struct Source<'a>(&'a [u8]);

impl Source<'_> {
    fn word(&mut self) -> Option<u64> {
        let (word, rest) = self.0.split_first_chunk::<8>()?;
        self.0 = rest;
        Some(u64::from_le_bytes(*word))
    }

    fn small(&mut self) -> Option<u32> {
        u32::try_from(self.word()?).ok()
    }

    fn text(&mut self) -> Option<String> {
        let len = usize::try_from(self.word()?).ok()?;
        let (text, rest) = self.0.split_at_checked(len)?;
        self.0 = rest;
        String::from_utf8(text.to_vec()).ok()
    }

    fn all<T, C: FromIterator<T>>(&mut self, mut each: impl FnMut(&mut Self) -> Option<T>) -> Option<C> {
        let count = self.word()?;
        (0..count).map(|_| each(self)).collect()
    }
}

fn kind_code(kind: NoteKind) -> u32 {
    match kind {
        NoteKind::Fault => 0,
        NoteKind::Log(level) => level as u32,
        _ => 0,
    }
}

fn kind_of(code: u32) -> NoteKind {
    let level = LEVELS.into_iter().find(|level| *level as u32 == code);
    level.map_or(NoteKind::Fault, NoteKind::Log)
}

/// One more than a number, and 0 for none.
fn option(number: Option<impl Into<u64>>) -> u64 {
    number.map_or(0, |number| number.into() + 1)
}

fn words(Stamped { nanos, event }: &Stamped) -> [u64; WORDS] {
    let worker = |worker: &WorkerId| u64::from(worker.0);
    let transfer = |Transfer { data, from, to, bytes, why }: &Transfer| {
        let why = Reason::ALL.iter().position(|reason| reason == why).unwrap_or(0) as u64;
        [data.0.into(), from.0.into(), to.0.into(), *bytes, why]
    };
    let message = |RankMessage { data, from, to, bytes }: &RankMessage| {
        [option(data.map(|data| data.0)), u64::from(*from), u64::from(*to), *bytes, 0]
    };
    let (kind, more) = match event {
        Event::Submitted { task } => (0, [task.sequence(), 0, 0, 0, 0]),
        Event::Ready { task, by } => (1, [task.sequence(), option(by.map(|by| by.0)), 0, 0, 0]),
        Event::Pulled { task, worker: by } => (2, [task.sequence(), worker(by), 0, 0, 0]),
        Event::Started { task, worker: by, codelet } => (3, [task.sequence(), worker(by), codelet.0.into(), 0, 0]),
        Event::Ended { task, worker: by } => (4, [task.sequence(), worker(by), 0, 0, 0]),
        Event::Passed { task } => (5, [task.sequence(), 0, 0, 0, 0]),
        Event::Idle { worker: by } => (6, [worker(by), 0, 0, 0, 0]),
        Event::Woken { worker: by } => (7, [worker(by), 0, 0, 0, 0]),
        Event::Moved { worker: by, from, to } => (8, [worker(by), option(from.map(|from| from.0)), to.0.into(), 0, 0]),
        Event::TransferStarted(of) => (9, transfer(of)),
        Event::TransferEnded(of) => (10, transfer(of)),
        Event::Sent(of) => (11, message(of)),
        Event::Received(of) => (12, message(of)),
        Event::Refused { task, node, why } => {
            let why = REFUSALS.iter().position(|known| known == why).unwrap_or(0) as u64;
            (13, [task.sequence(), node.0.into(), why, 0, 0])
        }
        Event::Held { task, node } => (14, [task.sequence(), node.0.into(), 0, 0, 0]),
        Event::Noted { note } => (15, [note.0.into(), 0, 0, 0, 0]),
        Event::QueueLength { node, length } => (16, [node.0.into(), u64::from(*length), 0, 0, 0]),
    };
    let [a, b, c, d, e] = more;
    [*nanos, kind, a, b, c, d, e]
}

fn event([nanos, kind, a, b, c, d, e]: [u64; WORDS]) -> Option<Stamped> {
    let small = |word: u64| u32::try_from(word).ok();
    let worker = |word| small(word).map(WorkerId);
    let node = |word| small(word).map(ObservedNode);
    let context = |word: u64| u16::try_from(word).ok().map(ContextId);
    let transfer = || {
        let why = *Reason::ALL.get(e as usize)?;
        let (data, from, to) = (DataId(small(a)?), MemoryNode(small(b)?), MemoryNode(small(c)?));
        Some(Transfer { data, from, to, bytes: d, why })
    };
    let message = || {
        let data = a.checked_sub(1).map(|data| small(data).map(DataId));
        Some(RankMessage {
            data: data.map_or(Some(None), |data| data.map(Some))?,
            from: small(b)?,
            to: small(c)?,
            bytes: d,
        })
    };
    let task = TaskId::new(a);
    let event = match kind {
        0 => Event::Submitted { task },
        1 => Event::Ready { task, by: b.checked_sub(1).map_or(Some(None), |by| worker(by).map(Some))? },
        2 => Event::Pulled { task, worker: worker(b)? },
        3 => Event::Started { task, worker: worker(b)?, codelet: CodeletId(small(c)?) },
        4 => Event::Ended { task, worker: worker(b)? },
        5 => Event::Passed { task },
        6 => Event::Idle { worker: worker(a)? },
        7 => Event::Woken { worker: worker(a)? },
        8 => {
            let from = b.checked_sub(1).map_or(Some(None), |from| context(from).map(Some))?;
            Event::Moved { worker: worker(a)?, from, to: context(c)? }
        }
        9 => Event::TransferStarted(transfer()?),
        10 => Event::TransferEnded(transfer()?),
        11 => Event::Sent(message()?),
        12 => Event::Received(message()?),
        13 => Event::Refused { task, node: node(b)?, why: *REFUSALS.get(c as usize)? },
        14 => Event::Held { task, node: node(b)? },
        15 => Event::Noted { note: NoteId(small(a)?) },
        16 => Event::QueueLength { node: node(a)?, length: small(b)? },
        _ => return None,
    };
    Some(Stamped { nanos, event })
}

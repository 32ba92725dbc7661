//! What all ranks learn of each other: whether they submit the same tasks, and whether all is well.

use crate::error::ClusterError;
use crate::office::{Desk, Room};
use crate::transport::{Arrived, Tag};
use sched_runtime::{DataError, Handle, Runtime, WriteLease};
use sched_text::hash::{fnv_1a, fold};
use std::sync::Arc;
use std::sync::mpsc::{SyncSender, sync_channel};

/// What all ranks do with a datum.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Deed {
    Register,
    Bring,
    Give,
    Flush,
    Unregister,
}

impl Deed {
    const ALL: [Deed; 5] = [Deed::Register, Deed::Bring, Deed::Give, Deed::Flush, Deed::Unregister];

    /// In words.
    fn said(self, rank: u64, data: u64) -> String {
        match self {
            Deed::Register => format!("registers data {data} with owner {rank}"),
            Deed::Bring => format!("brings data {data} to rank {rank}"),
            Deed::Give => format!("gives data {data} to rank {rank}"),
            Deed::Flush => format!("flushes data {data}"),
            Deed::Unregister => format!("unregisters data {data}"),
        }
    }
}

/// The tasks that a rank has submitted since all ranks met, and what it did with data between them.
#[derive(Default)]
pub(crate) struct Log {
    /// Of a deed: its number, the rank in 28 bits, and the datum in 32.
    hashes: Vec<u64>,
    /// For each of them, the place of its codelet in the list, or [`DEED`].
    codelets: Vec<u16>,
    /// Names of codelets, with their hashes. They stay: a rank has few codelets, and many tasks of each.
    names: Vec<(Box<str>, u64)>,
}

/// Place of a codelet whose name is not kept, since there are too many.
const UNNAMED: u16 = u16::MAX;

/// Place of the codelet of what is no task.
const DEED: u16 = u16::MAX - 1;

impl Log {
    /// Notes a task of a codelet, whose hash `of_task` makes of that of the codelet.
    #[inline]
    pub(crate) fn note(&mut self, codelet: &str, of_task: impl FnOnce(u64) -> u64) {
        let known = self.names.iter().position(|(name, _)| **name == *codelet);
        let place = known.or_else(|| self.add(codelet));
        let of_codelet = place.map_or_else(|| fnv_1a(codelet.as_bytes()), |place| self.names[place].1);
        self.hashes.push(of_task(of_codelet));
        self.codelets.push(place.map_or(UNNAMED, |place| place as u16));
    }

    /// Notes what is done with a datum.
    pub(crate) fn note_deed(&mut self, deed: Deed, rank: usize, data: u32) {
        self.hashes.push((deed as u64) << 60 | (rank as u64) << 32 | u64::from(data));
        self.codelets.push(DEED);
    }

    #[cold]
    fn add(&mut self, codelet: &str) -> Option<usize> {
        let place = self.names.len();
        (place < MOST_NAMES).then(|| {
            self.names.push((codelet.into(), fnv_1a(codelet.as_bytes())));
            place
        })
    }

    /// The tasks so far, of which none are left.
    pub(crate) fn take(&mut self) -> Log {
        let names = self.names.clone();
        Log { hashes: std::mem::take(&mut self.hashes), codelets: std::mem::take(&mut self.codelets), names }
    }

    /// What a rank did at a place, in words, and whether it is a task.
    fn said(&self, place: usize) -> (String, bool) {
        let Some((codelet, hash)) = self.codelets.get(place).zip(self.hashes.get(place)) else {
            return ("has no such task".to_owned(), true);
        };
        if *codelet == DEED {
            let deed = Deed::ALL.get((hash >> 60) as usize).copied().unwrap_or(Deed::Unregister);
            return (deed.said(hash >> 32 & 0x0fff_ffff, hash & 0xffff_ffff), false);
        }
        let name = self.names.get(usize::from(*codelet)).map_or("(one of many codelets)", |(name, _)| name);
        (format!("submits `{name}`"), true)
    }

    /// Number of tasks before a place.
    fn tasks_before(&self, place: usize) -> usize {
        self.codelets.iter().take(place).filter(|codelet| **codelet != DEED).count()
    }

    /// One number for all of them.
    fn digest(&self) -> u64 {
        self.hashes.iter().fold(0, |all, hash| fold(all, *hash))
    }
}

/// Maximum number of codelets whose names are kept: they are looked through for each task.
const MOST_NAMES: usize = 256;

/// A message between ranks themselves, for the thread that waits for it.
struct Waiting {
    sender: SyncSender<Result<Vec<u8>, String>>,
    /// Ends after the message was sent on.
    _lease: WriteLease<Handle<()>>,
}

impl Room for Waiting {
    fn fill(self: Box<Self>, arrived: &mut dyn Arrived) {
        let _ = self.sender.send(Ok(arrived.to_vec()));
    }

    fn fail(self: Box<Self>, why: &str) {
        let _ = self.sender.send(Err(why.to_owned()));
    }
}

/// This rank among the others.
pub(crate) struct Among<'a> {
    pub(crate) rank: usize,
    pub(crate) ranks: usize,
    pub(crate) desk: &'a Arc<Desk>,
    pub(crate) runtime: &'a Runtime,
}

impl Among<'_> {
    pub(crate) fn receive(&self, from: usize) -> Result<Vec<u8>, ClusterError> {
        self.receive_or(from, &|| ())
    }

    /// Calls `stalled` if nothing moves on this rank meanwhile, or on any.
    fn receive_or(&self, from: usize, stalled: &dyn Fn()) -> Result<Vec<u8>, ClusterError> {
        let (sender, receiver) = sync_channel(1);
        // The thread waits for a datum that is leased until the message is there. So it is a worker meanwhile, where
        // the runtime counts on that, and reports where nothing moves: others may wait for what this rank computes.
        let (here, desk) = (self.runtime.register(()), Arc::clone(self.desk));
        let then = move |lease| desk.receive(from, Tag::OWN, Box::new(Waiting { sender, _lease: lease }));
        self.runtime.lease_write(&here, then)?;
        if matches!(self.runtime.read(&here), Err(DataError::Stalled(_))) {
            // Ranks talk to each other nevertheless.
            stalled();
        }
        let lost = |why: &str| ClusterError::Failed(vec![why.to_owned()]);
        match receiver.recv() {
            Ok(Ok(bytes)) => Ok(bytes),
            Ok(Err(why)) => Err(lost(&why)),
            Err(_) => Err(lost("the thread for messages has ended")),
        }
    }

    /// What each rank gives, on all of them: rank 0 collects it, and passes it on.
    pub(crate) fn exchange(&self, mine: &[u8]) -> Result<Vec<Vec<u8>>, ClusterError> {
        self.exchange_and(mine, &|| (), &|| ())
    }

    /// Calls `met` when all ranks have given theirs: on rank 0 before any other. See [`receive_or`](Self::receive_or)
    /// for `stalled`.
    fn exchange_and(&self, mine: &[u8], met: &dyn Fn(), stalled: &dyn Fn()) -> Result<Vec<Vec<u8>>, ClusterError> {
        if self.rank > 0 {
            self.desk.send(0, Tag::OWN, Box::new(mine.to_vec()));
            let all = self.receive_or(0, stalled)?;
            met();
            return Ok(unpacked(&all));
        }
        let all = self.collect_or(mine, stalled).inspect_err(|why| {
            // They wait for this rank.
            (1..self.ranks).for_each(|rank| self.desk.send(rank, Tag::ENDED, Box::new(why.to_string().into_bytes())));
        });
        let all = all?.unwrap_or_default();
        met();
        let packed = packed(&all);
        (1..self.ranks).for_each(|rank| self.desk.send(rank, Tag::OWN, Box::new(packed.clone())));
        Ok(all)
    }

    /// What each rank gives, on rank 0.
    pub(crate) fn collect(&self, mine: &[u8]) -> Result<Option<Vec<Vec<u8>>>, ClusterError> {
        self.collect_or(mine, &|| ())
    }

    fn collect_or(&self, mine: &[u8], stalled: &dyn Fn()) -> Result<Option<Vec<Vec<u8>>>, ClusterError> {
        if self.rank > 0 {
            self.desk.send(0, Tag::OWN, Box::new(mine.to_vec()));
            return Ok(None);
        }
        let others = (1..self.ranks).map(|rank| self.receive_or(rank, stalled));
        std::iter::once(Ok(mine.to_vec())).chain(others).collect::<Result<_, _>>().map(Some)
    }

    /// Checks that all ranks have submitted the same tasks, and done the same with data, in the same order. Calls `met`
    /// when all of them have come to the wait, and `stalled` if nothing moves before that.
    pub(crate) fn check(&self, log: &Log, met: &dyn Fn(), stalled: &dyn Fn()) -> Result<(), ClusterError> {
        let digest = [log.hashes.len() as u64, log.digest()].map(u64::to_le_bytes).concat();
        let digests = self.exchange_and(&digest, met, stalled)?;
        if digests.iter().all(|other| *other == digest) && digests.len() == self.ranks {
            return Ok(());
        }
        let hashes: Vec<u8> = log.hashes.iter().flat_map(|hash| hash.to_le_bytes()).collect();
        let all = self.exchange(&hashes)?;
        let first = (0..).find(|task| {
            let hash = |of: &Vec<u8>| of.get(8 * task..8 * task + 8).map(<[u8]>::to_vec);
            all.iter().any(|other| hash(other) != hash(&all[0])) || hash(&all[0]).is_none()
        });
        let first = first.unwrap_or(0);
        let (said, is_task) = log.said(first);
        let all = self.exchange(&[&[u8::from(is_task)], said.as_bytes()].concat())?;
        let are_tasks = all.iter().all(|said| said.first() == Some(&1));
        let of = |(rank, said): (usize, &Vec<u8>)| {
            format!("rank {rank} {}", String::from_utf8_lossy(said.get(1..).unwrap_or_default()))
        };
        let each = all.iter().enumerate().map(of).collect::<Vec<_>>().join(", ");
        let task = log.tasks_before(first);
        Err(ClusterError::Differ(match are_tasks {
            true => format!("task {task} is the first that differs, or its data: {each}"),
            false => format!("they differ after {task} tasks: {each}"),
        }))
    }

    /// Checks that all ranks give the same.
    pub(crate) fn compare(&self, what: &str, mine: &str) -> Result<(), ClusterError> {
        let all = self.exchange(mine.as_bytes())?;
        let mut kinds: Vec<(&[u8], Vec<String>)> = Vec::new();
        for (rank, given) in all.iter().enumerate() {
            match kinds.iter_mut().find(|(known, _)| known == given) {
                Some((_, ranks)) => ranks.push(rank.to_string()),
                None => kinds.push((given, vec![rank.to_string()])),
            }
        }
        if kinds.len() <= 1 {
            return Ok(());
        }
        let of = |(given, ranks): &(&[u8], Vec<String>)| {
            let several = if ranks.len() > 1 { "s" } else { "" };
            format!("rank{several} {}: {}", ranks.join(", "), String::from_utf8_lossy(given))
        };
        let each = kinds.iter().map(of).collect::<Vec<_>>().join("; ");
        Err(ClusterError::Unequal { what: what.to_owned(), each })
    }

    /// Whether all is well on every rank; else the reasons. Calls `met` when all have come to the end of the wait.
    pub(crate) fn agree(&self, problem: Option<&str>, met: &dyn Fn()) -> Result<(), ClusterError> {
        let all = self.exchange_and(problem.unwrap_or("").as_bytes(), met, &|| ())?;
        let bad = all.iter().enumerate().filter(|(_, why)| !why.is_empty());
        let bad: Vec<String> =
            bad.map(|(rank, why)| format!("rank {rank}: {}", String::from_utf8_lossy(why))).collect();
        if bad.is_empty() { Ok(()) } else { Err(ClusterError::Failed(bad)) }
    }
}

/// Several messages in one: each behind its length.
fn packed(all: &[Vec<u8>]) -> Vec<u8> {
    all.iter().flat_map(|one| (one.len() as u64).to_le_bytes().into_iter().chain(one.iter().copied())).collect()
}

fn unpacked(mut bytes: &[u8]) -> Vec<Vec<u8>> {
    let mut all = Vec::new();
    while let Some((len, rest)) = bytes.split_first_chunk::<8>() {
        let len = usize::try_from(u64::from_le_bytes(*len)).unwrap_or(usize::MAX).min(rest.len());
        all.push(rest[..len].to_vec());
        bytes = &rest[len..];
    }
    all
}

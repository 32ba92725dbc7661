//! Queues of a fake device: a thread for each, which does one operation after the other.

use super::hold::{self, Kind};
use super::kernels::Call;
use super::{Device, DriverError, DriverErrorKind, QUEUES, invalid, locked, next_number, pins};
use sched_core::driver::{DeviceMemory, Finished, HostMemory, Rows, Token};
use std::collections::HashMap;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Condvar, Mutex, OnceLock, PoisonError, Weak};
use std::time::{Duration, Instant};

/// Rows of the host, which the thread of a queue uses.
#[derive(Debug)]
pub(crate) struct HostRows {
    memory: HostMemory,
    /// Bytes from the first to the last.
    extent: u64,
    /// Whether they are pinned when the operation begins.
    is_pinned: bool,
}

// SAFETY: who made it promised that the operation may use the memory, on whichever thread.
unsafe impl Send for HostRows {}

impl HostRows {
    pub(crate) fn of(memory: HostMemory, rows: Rows) -> Result<HostRows, DriverError> {
        let extent = rows.count.checked_sub(1).map_or(0, |before| memory.pitch() * before + rows.bytes);
        let is_pinned = pins::is_pinned(memory.first().addr(), extent)?;
        Ok(HostRows { memory, extent, is_pinned })
    }

    /// Refuses a copy from or to memory that was unpinned meanwhile.
    fn check(&self) -> Result<(), DriverError> {
        match self.is_pinned && !pins::is_pinned(self.memory.first().addr(), self.extent)? {
            true => Err(invalid("the memory of a copy was unpinned meanwhile")),
            false => Ok(()),
        }
    }
}

type Buffer = Arc<Mutex<Vec<u8>>>;

/// What an operation does.
#[derive(Debug)]
pub(crate) enum Work {
    In { from: HostRows, to: DeviceMemory, buffer: Buffer, rows: Rows },
    Out { from: DeviceMemory, to: HostRows, buffer: Buffer, rows: Rows },
    Across { from: DeviceMemory, source: Buffer, to: DeviceMemory, target: Buffer, rows: Rows },
    Kernel(Call),
    Nothing,
}

#[derive(Debug)]
pub(crate) struct Operation {
    pub(crate) after: Vec<Token>,
    pub(crate) work: Work,
}

/// The way to the thread of a queue.
type Lane = Mutex<Sender<(Token, Operation)>>;

type Ending = Option<Result<Finished, DriverError>>;

/// The queues of a device, and the operations that nobody has seen the end of.
#[derive(Debug, Default)]
pub(crate) struct Queues {
    senders: OnceLock<Vec<Lane>>,
    operations: Mutex<HashMap<Token, Ending>>,
    changed: Condvar,
}

impl Queues {
    /// Adds an operation to a queue.
    pub(crate) fn add(&self, device: &Arc<Device>, queue: u32, operation: Operation) -> Token {
        let senders = self.senders.get_or_init(|| (0..QUEUES).map(|_| Mutex::new(start(device))).collect());
        let token = Token(next_number());
        locked(&self.operations).insert(token, None);
        // The thread lives as long as the device.
        let _ = locked(&senders[queue as usize]).send((token, operation));
        token
    }

    /// The end of an operation, which is then forgotten.
    pub(crate) fn poll(&self, token: Token) -> Result<Option<Finished>, DriverError> {
        let mut operations = locked(&self.operations);
        match operations.get(&token) {
            Some(None) => Ok(None),
            Some(Some(_)) => operations.remove(&token).flatten().transpose(),
            None => Err(unknown(token)),
        }
    }

    pub(crate) fn wait(&self, token: Token) -> Result<Finished, DriverError> {
        let operations = locked(&self.operations);
        let under_way = |operations: &mut HashMap<Token, Ending>| matches!(operations.get(&token), Some(None));
        let mut operations = self.changed.wait_while(operations, under_way).unwrap_or_else(PoisonError::into_inner);
        operations.remove(&token).flatten().unwrap_or_else(|| Err(unknown(token)))
    }

    fn end(&self, token: Token, ending: Result<Finished, DriverError>) {
        locked(&self.operations).insert(token, Some(ending));
        self.changed.notify_all();
    }

    /// Waits for operations, of which nobody has seen the end.
    pub(crate) fn wait_for_all(&self, tokens: &[Token]) {
        let operations = locked(&self.operations);
        let under_way = |operations: &mut HashMap<Token, Ending>| {
            tokens.iter().any(|token| matches!(operations.get(token), Some(None)))
        };
        drop(self.changed.wait_while(operations, under_way));
    }
}

fn unknown(token: Token) -> DriverError {
    DriverError::new(DriverErrorKind::Invalid, format!("there is no operation {}", token.0))
}

/// Starts the thread of a queue, which ends with the device.
fn start(device: &Arc<Device>) -> Sender<(Token, Operation)> {
    let (sender, operations) = channel();
    let device = Arc::downgrade(device);
    std::thread::spawn(move || follow(&device, &operations));
    sender
}

fn follow(device: &Weak<Device>, operations: &Receiver<(Token, Operation)>) {
    while let Ok((token, Operation { after, work })) = operations.recv() {
        let Some(device) = device.upgrade() else { return };
        device.queues.wait_for_all(&after);
        let began = Instant::now();
        let done = device.check().and_then(|()| run(&device, work));
        let nanos = u64::try_from(began.elapsed().as_nanos()).unwrap_or(u64::MAX);
        device.queues.end(token, done.map(|()| Finished { nanos: Some(nanos) }));
    }
}

fn run(device: &Device, work: Work) -> Result<(), DriverError> {
    if !matches!(work, Work::Nothing) && !device.settings.latency.is_zero() {
        std::thread::sleep(device.settings.latency);
    }
    let kind = match work {
        Work::In { .. } | Work::Out { .. } | Work::Across { .. } => Kind::Copy,
        Work::Kernel(_) => Kind::Kernel,
        Work::Nothing => return Ok(()),
    };
    hold::pass(device.number, kind);
    let done = execute(device, work);
    hold::note_end(device.number, kind);
    done
}

fn execute(device: &Device, work: Work) -> Result<(), DriverError> {
    match work {
        Work::In { from, to, buffer, rows } => {
            take_time(device, rows);
            let mut buffer = locked(&buffer);
            for row in 0..rows.count {
                let target = row_of(&mut buffer, to, row, rows);
                // SAFETY: the host has these rows, and nobody writes them before this operation has ended.
                let source = unsafe {
                    std::slice::from_raw_parts(
                        from.memory.first().add((row * from.memory.pitch()) as usize),
                        target.len(),
                    )
                };
                target.copy_from_slice(source);
            }
            return from.check();
        }
        Work::Out { from, to, buffer, rows } => {
            take_time(device, rows);
            let mut buffer = locked(&buffer);
            for row in 0..rows.count {
                let source = row_of(&mut buffer, from, row, rows);
                // SAFETY: the host has these rows, and nobody uses them before this operation has ended.
                unsafe {
                    let target = to.memory.first().add((row * to.memory.pitch()) as usize);
                    std::ptr::copy_nonoverlapping(source.as_ptr(), target, source.len());
                }
            }
            return to.check();
        }
        Work::Across { from, source, to, target, rows } => {
            take_time(device, rows);
            for row in 0..rows.count {
                let copy = row_of(&mut locked(&source), from, row, rows).to_vec();
                row_of(&mut locked(&target), to, row, rows).copy_from_slice(&copy);
            }
        }
        Work::Kernel(call) => return call.run(device),
        Work::Nothing => {}
    }
    Ok(())
}

/// One row of a buffer, in which all rows fit.
fn row_of(buffer: &mut [u8], memory: DeviceMemory, row: u64, rows: Rows) -> &mut [u8] {
    &mut buffer[(memory.offset + row * memory.pitch) as usize..][..rows.bytes as usize]
}

/// The time of a copy at the bandwidth of the settings.
fn take_time(device: &Device, rows: Rows) {
    if let Some(micros) = (rows.bytes * rows.count).checked_div(device.settings.bytes_per_us) {
        std::thread::sleep(Duration::from_micros(micros));
    }
}

//! Data that ranks share: who owns it, who has a copy, and how it travels.

use crate::error::reason;
use crate::last_words;
use crate::message::Message;
use crate::office::{Desk, Room};
use crate::pool::Pool;
use crate::traffic::Flight;
use crate::transport::{Arrived, Parcel, Tag};
use sched_graph::ranks::Holders;
use sched_runtime::{DataError, Handle, Lease, Runtime, WriteLease};
use smallvec::SmallVec;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Weak};

/// What every rank knows of a datum. All of them see the same submissions, so all know the same.
pub(crate) struct Datum {
    /// Its number among the data of the cluster.
    pub(crate) index: u32,
    pub(crate) holders: Holders,
    /// The ranks that have a part of a reduction which the owner has not got yet, in the order in which they began.
    pub(crate) pending: SmallVec<[u32; 2]>,
    /// Size of its value.
    pub(crate) bytes: u64,
    pub(crate) courier: Arc<dyn Courier>,
}

impl Datum {
    pub(crate) fn tag(&self) -> Tag {
        Tag::of_datum(self.index)
    }
}

/// Where a value goes to, or comes from.
pub(crate) struct Route {
    /// The other rank.
    pub(crate) peer: usize,
    pub(crate) tag: Tag,
    /// Priority of the task that the value is sent for.
    pub(crate) urgency: i32,
    pub(crate) flight: Flight,
}

/// Sends and receives data of one type, in its turn.
pub(crate) trait Courier: Send + Sync {
    /// Sends the value that it has after the tasks submitted so far.
    fn send(self: Arc<Self>, runtime: &Runtime, desk: &Arc<Desk>, route: Route) -> Result<(), DataError>;

    /// Replaces the value, before the tasks submitted from now on.
    fn receive(self: Arc<Self>, runtime: &Runtime, desk: &Arc<Desk>, route: Route) -> Result<(), DataError>;

    /// Adds a part of a reduction to the value, before the tasks submitted from now on.
    fn add(self: Arc<Self>, runtime: &Runtime, desk: &Arc<Desk>, route: Route) -> Result<(), DataError>;

    /// Makes room for a value that a task will write; of a reduction, one to which nothing has been added.
    fn make_room(self: Arc<Self>, runtime: &Runtime, desk: &Arc<Desk>, tag: Tag) -> Result<(), DataError>;

    /// Gives the memory of a copy back.
    fn forget(self: Arc<Self>, runtime: &Runtime) -> Result<(), DataError>;

    /// Makes the value bad, after the tasks submitted so far: what should have written it does not.
    fn fail(self: Arc<Self>, runtime: &Runtime, why: String) -> Result<(), DataError>;

    /// Waits until the value has been sent as often as it was asked for so far.
    fn await_sent(&self, runtime: &Runtime) -> Result<(), DataError>;

    /// Waits until the last value that was asked for so far is there.
    fn await_received(&self, runtime: &Runtime) -> Result<(), DataError>;
}

/// Data of type `T`.
pub(crate) struct Of<T, F> {
    pub(crate) handle: Handle<T>,
    /// Makes a value of the right size, for a message to be copied to.
    pub(crate) room: F,
    /// The shape of that.
    pub(crate) shape: u64,
    /// The size of that.
    pub(crate) bytes: usize,
    /// Values that are no longer needed.
    pub(crate) pool: Arc<Pool<T>>,
    /// Adds a value to another, if the data is a reduction.
    pub(crate) combine: Option<Combine<T>>,
}

impl<T: Message, F: Fn() -> T> Of<T, F> {
    /// Makes a value, if there is memory; that there is none is noted.
    fn find_room(&self, desk: &Desk, tag: Tag) -> Result<T, String> {
        match self.has_memory(desk) {
            true => self.make(),
            false => Err(desk.memory().lacks(self.bytes, tag)),
        }
    }

    /// Whether there is memory for a value.
    fn has_memory(&self, desk: &Desk) -> bool {
        let has_memory = || desk.memory().has(self.bytes);
        if !has_memory() {
            // Others may have kept some.
            self.pool.clear();
        }
        has_memory()
    }

    fn make(&self) -> Result<T, String> {
        guarded("what makes room for a value", || (self.room)())
    }
}

/// What adds up the parts of a reduction that tasks of this rank have left.
const ADDS_UP: &str = "what adds up a reduction";

/// Calls what the program has given for its data. If that panics, there is no value, for this reason: the thread is one
/// that serves messages for all data, or ends the turn of another access.
fn guarded<R>(what: &str, body: impl FnOnce() -> R) -> Result<R, String> {
    catch_unwind(AssertUnwindSafe(body)).map_err(|payload| {
        // The drop of a payload may panic in turn.
        std::mem::forget(payload);
        format!("{what} has panicked: {}", last_words::of_this_thread().unwrap_or_default())
    })
}

/// Adds a value to another.
pub(crate) type Combine<T> = Arc<dyn Fn(&mut T, T) + Send + Sync>;

impl<T: Message + Default, F: Fn() -> T + Send + Sync + 'static> Courier for Of<T, F> {
    fn send(self: Arc<Self>, runtime: &Runtime, desk: &Arc<Desk>, route: Route) -> Result<(), DataError> {
        let desk = Arc::clone(desk);
        runtime.lease_read(&self.handle, move |lease| {
            let read = guarded(ADDS_UP, || lease.reading().map(drop).map_err(|error| reason(&error)));
            match read.flatten() {
                Ok(()) => desk.send_value((route.peer, route.tag), route.urgency, Box::new(Value(lease, route.flight))),
                Err(why) => desk.send(route.peer, route.tag.of_failure(), Box::new(why.into_bytes())),
            }
        })
    }

    fn receive(self: Arc<Self>, runtime: &Runtime, desk: &Arc<Desk>, route: Route) -> Result<(), DataError> {
        let (desk, of) = (Arc::clone(desk), Arc::clone(&self));
        let then = move |lease| {
            let place = Place { lease, of, desk: Arc::downgrade(&desk), tag: route.tag, _flight: route.flight };
            desk.receive(route.peer, route.tag, Box::new(place));
        };
        runtime.lease_write(&self.handle, then)
    }

    fn add(self: Arc<Self>, runtime: &Runtime, desk: &Arc<Desk>, route: Route) -> Result<(), DataError> {
        let (desk, of) = (Arc::clone(desk), Arc::clone(&self));
        let then = move |lease| {
            let sum = Sum { lease, of, desk: Arc::downgrade(&desk), tag: route.tag, _flight: route.flight };
            desk.receive(route.peer, route.tag, Box::new(sum));
        };
        runtime.lease_write(&self.handle, then)
    }

    fn make_room(self: Arc<Self>, runtime: &Runtime, desk: &Arc<Desk>, tag: Tag) -> Result<(), DataError> {
        let (of, desk) = (Arc::clone(&self), Arc::clone(desk));
        runtime.lease_write(&self.handle, move |mut lease| {
            let made = of.find_room(&desk, tag).and_then(|value| guarded(ADDS_UP, || *lease.writing() = value));
            made.unwrap_or_else(|why| lease.fail(&why));
        })
    }

    fn forget(self: Arc<Self>, runtime: &Runtime) -> Result<(), DataError> {
        let of = Arc::clone(&self);
        runtime.lease_write(&self.handle, move |mut lease| {
            match guarded(ADDS_UP, || std::mem::take(&mut *lease.writing())) {
                Ok(value) => of.pool.put(value),
                Err(why) => lease.fail(&why),
            }
        })
    }

    fn fail(self: Arc<Self>, runtime: &Runtime, why: String) -> Result<(), DataError> {
        runtime.lease_write(&self.handle, move |lease| lease.fail(&why))
    }

    fn await_sent(&self, runtime: &Runtime) -> Result<(), DataError> {
        // Nobody writes it while it is being sent.
        runtime.write(&self.handle).map(drop)
    }

    fn await_received(&self, runtime: &Runtime) -> Result<(), DataError> {
        runtime.read(&self.handle).map(drop)
    }
}

/// A value that is sent from where it is.
struct Value<T: Send + Sync + 'static>(Lease<Handle<T>>, #[allow(dead_code, reason = "its end matters")] Flight);

impl<T: Message> Parcel for Value<T> {
    fn with(&self, with: &mut dyn FnMut(&[u8])) {
        // It was good when the lease came, and nobody writes it while it lasts.
        if let Ok(value) = self.0.reading() {
            with(value.bytes());
        }
    }
}

/// A value that is received where it belongs.
struct Place<T: Send + Sync + 'static, F> {
    lease: WriteLease<Handle<T>>,
    of: Arc<Of<T, F>>,
    desk: Weak<Desk>,
    tag: Tag,
    // Ends after the lease.
    _flight: Flight,
}

impl<T: Message + Default, F: Fn() -> T + Send + Sync + 'static> Room for Place<T, F> {
    fn fill(self: Box<Self>, arrived: &mut dyn Arrived) {
        let Place { mut lease, of, desk, tag, _flight } = *self;
        let fits = guarded(ADDS_UP, || lease.writing().bytes_mut().len() == arrived.len());
        let room = fits.and_then(|fits| {
            let kept = if fits { None } else { of.pool.take(arrived.len(), of.shape) };
            match (fits || kept.is_some(), desk.upgrade()) {
                (true, _) => Ok(kept),
                (false, Some(desk)) => of.find_room(&desk, tag).map(Some),
                (false, None) => Err("the rank ends".to_owned()),
            }
        });
        let taken = room.inspect_err(|_| arrived.discard());
        let taken = taken.and_then(|room| {
            let mut value = lease.writing();
            if let Some(room) = room {
                *value = room;
            }
            take(arrived, &mut *value)
        });
        if let Err(why) = taken {
            lease.fail(&why);
        }
    }

    fn fail(self: Box<Self>, why: &str) {
        let Place { mut lease, of, desk, _flight, .. } = *self;
        // A task may write it here without reading it. Nothing came for which memory could lack.
        let has_room = guarded(ADDS_UP, || lease.writing().bytes().len() == of.bytes).unwrap_or(true);
        let has_memory = |desk: Arc<Desk>| of.has_memory(&desk);
        if !has_room
            && desk.upgrade().is_some_and(has_memory)
            && let Ok(room) = of.make()
        {
            *lease.writing() = room;
        }
        lease.fail(why);
    }
}

/// Copies a message to a value, which is of its size.
fn take<T: Message>(arrived: &mut dyn Arrived, value: &mut T) -> Result<(), String> {
    take_bytes(arrived, value.bytes_mut())
}

/// Copies a message to a place of its size.
pub(crate) fn take_bytes(arrived: &mut dyn Arrived, place: &mut [u8]) -> Result<(), String> {
    let came = arrived.len();
    if place.len() == came {
        arrived.copy_to(place);
        return Ok(());
    }
    // The message has to be taken, whatever becomes of it.
    arrived.discard();
    let here = place.len();
    Err(format!("a message of {came} bytes came for data of {here}: ranks make it of different sizes"))
}

/// A value to which what is received is added.
struct Sum<T: Send + Sync + 'static, F> {
    lease: WriteLease<Handle<T>>,
    of: Arc<Of<T, F>>,
    desk: Weak<Desk>,
    tag: Tag,
    // Ends after the lease.
    _flight: Flight,
}

impl<T: Message + Default, F: Fn() -> T + Send + Sync + 'static> Room for Sum<T, F> {
    fn fill(self: Box<Self>, arrived: &mut dyn Arrived) {
        let Sum { mut lease, of, desk, tag, _flight } = *self;
        let part = desk.upgrade().ok_or_else(|| "the rank ends".to_owned()).and_then(|desk| of.find_room(&desk, tag));
        let part = part.inspect_err(|_| arrived.discard());
        let taken = part.and_then(|mut part| take(arrived, &mut part).map(|()| part));
        let added = taken.and_then(|part| {
            guarded("what adds a part to a reduction", || match &of.combine {
                // Nothing is added to what was not computed.
                Some(combine) if lease.reading().is_ok() => combine(&mut *lease.writing(), part),
                _ => {}
            })
        });
        added.unwrap_or_else(|why| lease.fail(&why));
    }

    fn fail(self: Box<Self>, why: &str) {
        self.lease.fail(why);
    }
}

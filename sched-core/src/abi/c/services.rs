//! The services that a component in C asks for during a call.
//!
//! Every function answers every argument: a null node or text, a number of nothing, a task that the component does not
//! hold.

mod ahead;
mod around;
#[cfg(all(test, feature = "rig"))]
mod tests;

use super::bridge::{Inside, Sink};
use super::described::text;
use super::tables::{CNode, Services};
use crate::abi::task::{RawTask, TaskHead};
use crate::abi::wire::{NO_ID, RawPlace, place};
use crate::estimate::{Estimate, NO_MODEL};
use crate::node::{Child, LogLevel};
use crate::task::Task;
use crate::workers::{WorkerId, members};
use abi_stable::std_types::{RString, Tuple2};
use std::ffi::c_char;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

/// The table that every component gets.
pub(super) static SERVICES: Services = Services {
    size: size_of::<Services>() as u32,
    reserved: 0,
    push_to,
    pull_from,
    parents_can_push,
    child_can_pull,
    wake,
    child_estimated_end,
    child_estimated_load,
    end_below,
    node_number,
    node_text,
    relative_speedup,
    slot,
    next_worker,
    worker_number,
    now,
    random,
    task_get,
    task_set,
    can_execute,
    child_can_execute,
    implementations,
    expected_length,
    expected_below,
    expected_transfer,
    expected_energy,
    prefetch,
    note_queued,
    give,
    fact,
    log,
    fail,
    child_prospects: ahead::child_prospects,
    submitted_range: ahead::submitted_range,
    submitted_task: ahead::submitted_task,
    submitted_successor: ahead::submitted_successor,
    submitted_access: ahead::submitted_access,
    submitted_length: ahead::submitted_length,
    data_copies: ahead::data_copies,
    data_transfer: ahead::data_transfer,
    neighbour_name: around::neighbour_name,
    neighbour_family: around::neighbour_family,
    context_name: around::context_name,
    context_data: around::context_data,
    leave: around::leave,
    note_room: around::note_room,
    has_room: around::has_room,
};

/// The largest answer that is a time, where `u64::MAX` stands for none.
const NO_TIME: u64 = u64::MAX;

/// Room for tasks that a component reads, where the task is not one of its own: nothing is done.
type Own<'a> = Option<&'a TaskHead>;

/// The call that a node belongs to; `None` for a null node.
///
/// # Safety
/// The node is null, or one that the component was lent for the call that it is in.
unsafe fn inside<'a>(node: *const CNode) -> Option<&'a Inside<'a>> {
    // SAFETY: as the caller promises: both live on the stack of the call.
    unsafe { Some(&*node.as_ref()?.host.cast::<Inside<'a>>()) }
}

/// The head of a task that the component holds; if it does not hold it, the component is at fault.
fn own<'a>(inside: &Inside<'_>, task: RawTask, service: &str) -> Own<'a> {
    if !inside.bridge.held.contains(task) {
        inside.fault(&format!("`{service}` was called with a task that the component does not hold"));
        return None;
    }
    // SAFETY: the handle is one that the host made, as it is in the set; heads are never given back.
    unsafe { task.head.as_ref() }
}

/// A task that the component holds, for a service that reads it. The component still owns it.
fn lent<T>(inside: &Inside<'_>, task: RawTask, service: &str, read: impl FnOnce(&Task) -> T) -> Option<T> {
    own(inside, task, service)?;
    // SAFETY: the handle is one that the host made; it is not given up below.
    let task = std::mem::ManuallyDrop::new(unsafe { Task::from_raw(task) });
    Some(read(&task))
}

/// The place of a child, or of the node itself.
fn place_of<'a>(inside: &'a Inside<'_>, child: u32) -> Option<&'a RawPlace<'a>> {
    match child {
        NO_ID => Some(inside.raw.host().place()),
        child => inside.raw.host().child_place(child).into_option(),
    }
}

// SAFETY of the functions below: `msched.h` requires that a component passes the node of the call that it is in, and
// texts that end with a zero byte. Both may be null.

unsafe extern "C" fn push_to(node: *const CNode, child: u32, task: RawTask) -> u32 {
    // SAFETY: see above.
    let Some(inside) = (unsafe { inside(node) }) else { return 1 };
    if !inside.bridge.held.remove(task) {
        inside.fault("it pushed a task that it does not hold");
        return 0;
    }
    let answer = inside.raw.host().push_to(inside.raw.call(), child, task);
    if answer.refused.is_none() {
        return 0;
    }
    if answer.refused != task {
        // The child is at fault, and keeps the task; this one goes back to the host, which still runs it.
        drop(Task::received(answer.refused));
        return 0;
    }
    inside.bridge.held.insert(task);
    answer.why.max(1)
}

unsafe extern "C" fn pull_from(node: *const CNode, parent: u32) -> RawTask {
    // SAFETY: see above.
    let Some(inside) = (unsafe { inside(node) }) else { return RawTask::NONE };
    let task = inside.raw.host().pull_from(inside.raw.call(), parent);
    if !task.is_none() {
        inside.bridge.held.insert(task);
    }
    task
}

unsafe extern "C" fn parents_can_push(node: *const CNode) -> u32 {
    // SAFETY: see above.
    let inside = unsafe { inside(node) };
    inside.is_some_and(|inside| inside.raw.host().parents_can_push(inside.raw.call())).into()
}

unsafe extern "C" fn child_can_pull(node: *const CNode, child: u32) -> u32 {
    // SAFETY: see above.
    let inside = unsafe { inside(node) };
    inside.is_some_and(|inside| inside.raw.host().child_can_pull(inside.raw.call(), child)).into()
}

unsafe extern "C" fn wake(node: *const CNode, all: u32) -> u32 {
    // SAFETY: see above.
    let inside = unsafe { inside(node) };
    inside.is_some_and(|inside| inside.raw.host().wake(inside.raw.call(), all != 0)).into()
}

unsafe extern "C" fn child_estimated_end(node: *const CNode, child: u32) -> u64 {
    // SAFETY: see above.
    let inside = unsafe { inside(node) };
    inside.map_or(0, |inside| inside.raw.host().child_estimated_end(inside.raw.call(), child))
}

unsafe extern "C" fn child_estimated_load(node: *const CNode, child: u32) -> f64 {
    // SAFETY: see above.
    let inside = unsafe { inside(node) };
    inside.map_or(0.0, |inside| inside.raw.host().child_estimated_load(inside.raw.call(), child))
}

unsafe extern "C" fn end_below(node: *const CNode, queued: u64) -> u64 {
    // SAFETY: see above.
    let inside = unsafe { inside(node) };
    inside.map_or(0, |inside| inside.node().end_below_with_queued(Duration::from_nanos(queued)).as_nanos())
}

unsafe extern "C" fn node_number(node: *const CNode, what: u32, child: u32) -> u32 {
    // SAFETY: see above.
    let Some(inside) = (unsafe { inside(node) }) else { return NO_ID };
    let place = |read: &dyn Fn(&RawPlace<'_>) -> u32| place_of(inside, child).map_or(NO_ID, read);
    let flag = |flag: u32| place(&|place| u32::from(place.flags & flag != 0));
    match what {
        0 => place(&|place| place.id),
        1 => place(&|place| place.children),
        2 => place(&|place| place.parents),
        3 => place(&|place| place.worker),
        4 => place(&|place| place.memory_node),
        5 => place(&|place| place.workers_in_context.iter().map(|word| word.count_ones()).sum()),
        6 => flag(place::HOMOGENEOUS),
        7 => inside.raw.host().requester(inside.raw.call()),
        8 => inside.node().has_transfers().into(),
        _ => NO_ID,
    }
}

unsafe extern "C" fn node_text(node: *const CNode, what: u32, into: *mut c_char, room: usize) -> usize {
    // SAFETY: see above.
    let inside = unsafe { inside(node) };
    let words = inside.map_or("", |inside| {
        let place = inside.raw.host().place();
        match what {
            0 => place.path.as_str(),
            1 => place.object.as_str(),
            2 => place.slot.as_str(),
            _ => "",
        }
    });
    // SAFETY: the caller has this much room there.
    unsafe { write_text(words, into, room) }
}

/// Writes as much of a text as there is room for, and a zero byte. Returns the length of the whole text.
///
/// # Safety
/// `into` is null, or there is this much room.
unsafe fn write_text(words: &str, into: *mut c_char, room: usize) -> usize {
    if !into.is_null() && room > 0 {
        let copied = words.len().min(room - 1);
        // SAFETY: as the caller promises.
        unsafe {
            words.as_ptr().copy_to_nonoverlapping(into.cast(), copied);
            into.add(copied).write(0);
        }
    }
    words.len()
}

unsafe extern "C" fn relative_speedup(node: *const CNode, child: u32) -> f64 {
    // SAFETY: see above.
    let inside = unsafe { inside(node) };
    inside.and_then(|inside| place_of(inside, child)).map_or(0.0, |place| place.relative_speedup)
}

unsafe extern "C" fn slot(node: *const CNode, name: *const c_char) -> u32 {
    // SAFETY: see above.
    let (inside, name) = unsafe { (inside(node), text(name)) };
    let child = inside.zip(name).and_then(|(inside, name)| inside.node().slot(&name));
    child.map_or(NO_ID, |child| child.0)
}

unsafe extern "C" fn next_worker(node: *const CNode, child: u32, from: u32) -> u32 {
    // SAFETY: see above.
    let inside = unsafe { inside(node) };
    let Some(place) = inside.and_then(|inside| place_of(inside, child)) else { return NO_ID };
    let words = &place.workers_in_context[..];
    let first = (from / 64) as usize;
    let Some(word) = words.get(first) else { return NO_ID };
    let rest = word & u64::MAX << (from % 64);
    let later = || members(words.get(first + 1..)?).next().map(|worker| worker.0 + 64 * (first as u32 + 1));
    let here = (rest != 0).then(|| rest.trailing_zeros() + 64 * first as u32);
    here.or_else(later).unwrap_or(NO_ID)
}

unsafe extern "C" fn worker_number(node: *const CNode, worker: u32, what: u32, other: u32) -> u64 {
    const NONE: u64 = NO_ID as u64;
    // SAFETY: see above.
    let Some(inside) = (unsafe { inside(node) }) else { return NONE };
    let (node, worker) = (inside.node(), WorkerId(worker));
    let facts = || inside.raw.host().worker(worker.0).into_option();
    match what {
        0 => facts().map_or(NONE, |facts| u64::from(facts.arch)),
        1 => facts().map_or(NONE, |facts| u64::from(facts.memory_node)),
        2 => node.worker_distance(worker, WorkerId(other)).map_or(NONE, u64::from),
        3 => node.members(worker).nth(other as usize).map_or(NONE, |member| u64::from(member.0)),
        4 => node.worker_busy_until(worker).map_or(NO_TIME, |time| time.as_nanos()),
        5 => node.worker_free_at(worker).map_or(NO_TIME, |time| time.as_nanos()),
        _ => NONE,
    }
}

unsafe extern "C" fn now(node: *const CNode) -> u64 {
    // SAFETY: see above.
    let inside = unsafe { inside(node) };
    inside.map_or(0, |inside| inside.node().now().as_nanos())
}

unsafe extern "C" fn random(node: *const CNode) -> u64 {
    // SAFETY: see above.
    let inside = unsafe { inside(node) };
    inside.map_or(0, |inside| inside.node().random())
}

unsafe extern "C" fn task_get(node: *const CNode, task: RawTask, what: u32) -> u64 {
    // SAFETY: see above.
    let inside = unsafe { inside(node) };
    let Some(head) = inside.and_then(|inside| own(inside, task, "task_get")) else { return 0 };
    match what {
        0 => head.sequence.load(Relaxed),
        1 => u64::from(head.priority.load(Relaxed).cast_unsigned()),
        2 => head.codelet.load(Relaxed).into(),
        3 => head.all_archs().into(),
        4 => head.footprint.load(Relaxed),
        5 => head.sched_data.load(Relaxed),
        6 => head.width.load(Relaxed).into(),
        7 => head.predicted.load(Relaxed),
        8 => head.predicted_transfer.load(Relaxed),
        9 => match head.implementation.load(Relaxed) {
            u16::MAX => NO_ID.into(),
            chosen => chosen.into(),
        },
        10 => head.home().map_or(0, |worker| u64::from(worker) + 1),
        _ => 0,
    }
}

unsafe extern "C" fn task_set(node: *const CNode, task: RawTask, what: u32, value: u64) {
    // SAFETY: see above.
    let inside = unsafe { inside(node) };
    let Some(head) = inside.and_then(|inside| own(inside, task, "task_set")) else { return };
    match what {
        1 => head.set_priority((value as u32).cast_signed()),
        7 => head.predicted.store(value, Relaxed),
        8 => head.set_predicted_transfer(value),
        9 => head.implementation.store(u16::try_from(value).unwrap_or(u16::MAX), Relaxed),
        _ => {}
    }
}

unsafe extern "C" fn can_execute(node: *const CNode, worker: u32, task: RawTask) -> u32 {
    // SAFETY: see above.
    let Some(inside) = (unsafe { inside(node) }) else { return 0 };
    let able = own(inside, task, "can_execute")
        .is_some_and(|_| inside.raw.host().can_execute(inside.raw.call(), worker, task));
    able.into()
}

unsafe extern "C" fn child_can_execute(node: *const CNode, child: u32, task: RawTask) -> u32 {
    // SAFETY: see above.
    let Some(inside) = (unsafe { inside(node) }) else { return 0 };
    let able = lent(inside, task, "child_can_execute", |task| inside.node().child_can_execute(Child(child), task));
    able.unwrap_or(false).into()
}

unsafe extern "C" fn implementations(node: *const CNode, worker: u32, task: RawTask) -> u32 {
    // SAFETY: see above.
    let Some(inside) = (unsafe { inside(node) }) else { return 0 };
    lent(inside, task, "implementations", |task| inside.node().implementations(WorkerId(worker), task)).unwrap_or(0)
}

unsafe extern "C" fn expected_length(node: *const CNode, worker: u32, task: RawTask, implementation: u32) -> u64 {
    // SAFETY: see above.
    let Some(inside) = (unsafe { inside(node) }) else { return NO_MODEL };
    if own(inside, task, "expected_length").is_none() {
        return NO_MODEL;
    }
    inside.raw.host().expected_length(inside.raw.call(), worker, task, implementation)
}

unsafe extern "C" fn expected_below(node: *const CNode, task: RawTask) -> u64 {
    // SAFETY: see above.
    let Some(inside) = (unsafe { inside(node) }) else { return NO_MODEL };
    let known = lent(inside, task, "expected_below", |task| inside.node().expected_below(task));
    known.map_or(NO_MODEL, Estimate::to_wire)
}

unsafe extern "C" fn expected_transfer(node: *const CNode, memory_node: u32, task: RawTask) -> u64 {
    // SAFETY: see above.
    let Some(inside) = (unsafe { inside(node) }) else { return 0 };
    if own(inside, task, "expected_transfer").is_none() {
        return 0;
    }
    inside.raw.host().expected_transfer(inside.raw.call(), memory_node, task)
}

unsafe extern "C" fn expected_energy(node: *const CNode, worker: u32, task: RawTask, implementation: u32) -> f64 {
    // SAFETY: see above.
    let Some(inside) = (unsafe { inside(node) }) else { return f64::NAN };
    if own(inside, task, "expected_energy").is_none() {
        return f64::NAN;
    }
    inside.raw.host().expected_energy(inside.raw.call(), worker, task, implementation)
}

unsafe extern "C" fn prefetch(node: *const CNode, memory_node: u32, task: RawTask) {
    // SAFETY: see above.
    let Some(inside) = (unsafe { inside(node) }) else { return };
    if own(inside, task, "prefetch").is_some() && memory_node != NO_ID && inside.node().has_transfers() {
        inside.raw.host().prefetch(inside.raw.call(), memory_node, task);
    }
}

unsafe extern "C" fn note_queued(node: *const CNode, length: u64) {
    // SAFETY: see above.
    if let Some(inside) = unsafe { inside(node) } {
        inside.node().note_queued(Duration::from_nanos(length));
    }
}

unsafe extern "C" fn give(node: *const CNode, task: RawTask) {
    // SAFETY: see above.
    let Some(inside) = (unsafe { inside(node) }) else { return };
    if !matches!(*inside.sink.lock(), Sink::Tasks(_)) {
        return inside.fault("`give` was called outside of `drain`");
    }
    if !inside.bridge.held.remove(task) {
        return inside.fault("`drain` gave a task that the component does not hold");
    }
    if let Sink::Tasks(tasks) = &mut *inside.sink.lock() {
        tasks.push(task);
    }
}

unsafe extern "C" fn fact(node: *const CNode, name: *const c_char, value: *const c_char) {
    // SAFETY: see above.
    let (inside, name, value) = unsafe { (inside(node), text(name), text(value)) };
    let Some(inside) = inside else { return };
    if let Sink::Facts(facts) = &mut *inside.sink.lock() {
        let (name, value) = (name.unwrap_or_default(), value.unwrap_or_default());
        facts.push(Tuple2(RString::from(name), RString::from(value)));
        return;
    }
    inside.fault("`fact` was called outside of `describe`");
}

unsafe extern "C" fn log(node: *const CNode, level: u32, line: *const c_char) {
    // SAFETY: see above.
    let (inside, line) = unsafe { (inside(node), text(line)) };
    let level = match level {
        1 => LogLevel::Error,
        2 => LogLevel::Warn,
        3 => LogLevel::Info,
        _ => LogLevel::Debug,
    };
    if let Some((inside, line)) = inside.zip(line) {
        inside.node().log(level, &line);
    }
}

unsafe extern "C" fn fail(node: *const CNode, message: *const c_char) {
    // SAFETY: see above.
    let (inside, message) = unsafe { (inside(node), text(message)) };
    if let Some(inside) = inside {
        inside.fault(&message.unwrap_or_else(|| "it failed, and gave no reason".to_owned()));
    }
}

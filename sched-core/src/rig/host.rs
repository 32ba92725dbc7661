//! The fake host: what the component under test sees behind its node.

use super::hop::Hop;
use super::ledger::{Breach, Holder, Ledger};
use super::scene::{Changing, Scene};
use crate::abi::ComponentObject;
use crate::abi::extension::{NO_TIME, RawExtension};
use crate::abi::fake::{Books, Call, Distances, call_of, offer, with_node};
use crate::abi::host::WireHost;
use crate::abi::task::RawTask;
use crate::abi::wire::{CallRef, NO_ID, REQUESTER, RawPlace, RawPush, RawWorker};
use crate::component::Refusal;
use crate::estimate::{Estimate, Time, nanos};
use crate::node::{Child, Parent};
use crate::task::{Task, TaskId};
use crate::workers::{Arch, MemoryNode, WorkerId, WorkerSet};
use abi_stable::std_types::{ROption, RStr};
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

pub(super) struct FakeHost {
    /// `None` while the rig is being dropped.
    pub(super) component: Option<ComponentObject>,
    pub(super) ledger: Arc<Ledger>,
    pub(super) scene: Scene,
    pub(super) changing: Mutex<Changing>,
    pub(super) now: AtomicU64,
    /// Nanoseconds by which each look at the clock moves it.
    pub(super) tick: AtomicU64,
    pub(super) log: Mutex<Vec<String>>,
    pub(super) distances: Mutex<Option<Distances>>,
    pub(super) hops: Mutex<Vec<Hop>>,
    pub(super) services: Mutex<BTreeMap<&'static str, usize>>,
    pub(super) panics: Mutex<Vec<String>>,
    /// A neighbour has called back; see [`Scene::nosy`].
    pub(super) called_back: AtomicBool,
}

impl FakeHost {
    /// Whether there is such a child; if not, that is a fault.
    fn has_child(&self, child: u32, hop: &str) -> bool {
        let there = (child as usize) < self.scene.child_places.len();
        if !there {
            self.ledger.fault(Breach::NoNeighbour, format!("{hop}: there is no child {child}"));
        }
        there
    }

    /// A nosy child asks for more at once, on the thread of the hop: once for each call that the rig makes.
    fn call_back(&self, call: CallRef<'_>, child: u32) {
        if !self.scene.nosy || self.called_back.swap(true, Relaxed) {
            return;
        }
        let words = self.scene.child_places.get(child as usize).map(|place| &place.workers_in_context);
        let first = words.and_then(|words| crate::workers::members(words).next());
        if let (Some(component), Some(first)) = (&self.component, first) {
            let call = Call { requester: first.0, ..*call_of(call) };
            with_node(self, &call, |node| component.can_push(node, child));
        }
    }

    fn note(&self, hop: Hop) {
        self.hops.lock().push(hop);
    }

    fn served(&self, service: &'static str) {
        *self.services.lock().entry(service).or_default() += 1;
    }

    /// Wakes one sleeping worker of `set`, or all.
    fn rouse(&self, set: &[u64], all: bool) -> Vec<WorkerId> {
        let mut changing = self.changing.lock();
        let asleep = |worker: &WorkerId| !changing.awake.contains(*worker);
        let limit = if all { usize::MAX } else { 1 };
        let woke: Vec<WorkerId> = WorkerSet::from_words(set).iter().filter(asleep).take(limit).collect();
        for worker in &woke {
            changing.awake.insert(*worker);
            changing.woken.push(*worker);
        }
        woke
    }

    pub(super) fn executable(&self, worker: WorkerId, task: &Task) -> bool {
        let arch = self.scene.worker(worker.0).and_then(|worker| Arch::new(u8::try_from(worker.arch).ok()?));
        let size = self.scene.members(worker.0).len() as u32;
        let is_in_set = |set: u64| self.scene.members(worker.0).iter().all(|member| set >> (*member).min(63) & 1 == 1);
        arch.is_some_and(|arch| task.archs().contains(arch))
            && size <= task.width().max(1)
            && (task.restriction() == 0 || is_in_set(task.restriction()))
    }

    fn some_executable(&self, workers: &[u64], task: &Task) -> bool {
        WorkerSet::from_words(workers).iter().any(|worker| self.executable(worker, task))
    }

    /// Whether the requesting worker can execute a task; true if there is no requester.
    pub(super) fn requester_can(&self, requester: u32, task: TaskId) -> bool {
        requester == NO_ID || self.ledger.look(task, |task| self.executable(WorkerId(requester), task))
    }

    /// A parent pushes its tasks down, in order, until one is refused.
    fn pump(&self, call: &Call<'_>, parent: u32) -> bool {
        let from = Holder::Parent(Parent(parent));
        let mut sent = false;
        while let Some(component) = &self.component {
            let next = self.changing.lock().given.get_mut(&parent).and_then(std::collections::VecDeque::pop_front);
            let Some(task) = next else { break };
            let Ok(raw) = self.ledger.give(task, from, Holder::Component) else { continue };
            let answer = with_node(self, call, |node| component.push_task(node, raw));
            if answer.refused.is_none() {
                sent = true;
                continue;
            }
            match self.ledger.receive(answer.refused, from, "push_task") {
                Some(back) if back == task => {
                    self.changing.lock().given.entry(parent).or_default().push_front(task);
                }
                Some(other) => {
                    let fault = format!("push_task: the component refused {task} with {other} in its place");
                    self.ledger.fault(Breach::OtherRefused, fault);
                }
                None => {}
            }
            break;
        }
        sent
    }

    /// A parent gives the first task that the requester can execute.
    fn pull(&self, requester: u32, parent: u32) -> Option<TaskId> {
        let mut changing = self.changing.lock();
        let tasks = changing.given.get_mut(&parent)?;
        let found = tasks.iter().position(|task| self.requester_can(requester, *task))?;
        tasks.remove(found)
    }
}

impl WireHost for FakeHost {
    fn push_to(&self, call: CallRef<'_>, child: u32, task: RawTask) -> RawPush {
        let holder = Holder::Child(Child(child));
        let Some(fake) = self.scene.children().into_iter().nth(child as usize) else {
            self.has_child(child, "push_to");
            return RawPush { refused: task, why: Refusal::NoWorker.code() };
        };
        let Some(id) = self.ledger.receive(task, holder, "push_to") else { return RawPush::TAKEN };
        let (length, transfer) = self.ledger.look(id, |task| (task.predicted(), task.predicted_transfer()));
        let mut changing = self.changing.lock();
        let room = changing.rooms.entry(child).or_insert(fake.room);
        let full = *room == Some(0);
        let refused = full.then_some(fake.refusal);
        if full {
            drop(changing);
            let back = self.ledger.give(id, holder, Holder::Component);
            debug_assert_eq!(back, Ok(task), "a refused task goes back at once");
        } else {
            *room = room.map(|room| room - 1);
            changing.taken.entry(child).or_default().push(id);
            if let Some(length) = length {
                // A transfer is hidden behind the tasks ahead.
                let ahead = changing.queued_below.entry(child).or_default();
                *ahead = (*ahead).max(transfer.map_or(0, nanos)).saturating_add(nanos(length));
            }
            drop(changing);
        }
        self.note(Hop::PushTo { child: Child(child), task: id, refused });
        if !full {
            self.call_back(call, child);
        }
        refused.map_or(RawPush::TAKEN, |why| RawPush { refused: task, why: why.code() })
    }

    fn pull_from(&self, call: CallRef<'_>, parent: u32) -> RawTask {
        let requester = call_of(call).requester;
        let count = self.scene.parents.len() as u32;
        if parent != NO_ID && parent >= count {
            self.ledger.fault(Breach::NoNeighbour, format!("pull_from: there is no parent {parent}"));
            return RawTask::NONE;
        }
        let asked = if parent == NO_ID { 0..count } else { parent..parent + 1 };
        let mut found = None;
        let mut raw = RawTask::NONE;
        for parent in asked {
            if let Some(task) = self.pull(requester, parent)
                && let Ok(handle) = self.ledger.give(task, Holder::Parent(Parent(parent)), Holder::Component)
            {
                (found, raw) = (Some(task), handle);
                break;
            }
        }
        self.note(Hop::PullFrom { parent: (parent != NO_ID).then_some(Parent(parent)), task: found });
        raw
    }

    fn parents_can_push(&self, call: CallRef<'_>) -> bool {
        let call = call_of(call);
        let mut parents = self.scene.parents.iter().zip(0..);
        let sent = parents.any(|(parent, number)| !parent.silent && self.pump(call, number));
        self.note(Hop::ParentsCanPush { sent });
        sent
    }

    fn child_can_pull(&self, call: CallRef<'_>, child: u32) -> bool {
        if child != NO_ID && !self.has_child(child, "child_can_pull") {
            return false;
        }
        let places = &self.scene.child_places;
        let woke = match child {
            NO_ID => places.iter().find_map(|place| self.rouse(&place.workers_in_context, false).pop()),
            child => places.get(child as usize).and_then(|place| self.rouse(&place.workers_in_context, false).pop()),
        };
        self.note(Hop::ChildCanPull { child: (child != NO_ID).then_some(Child(child)), woke });
        self.call_back(call, if child == NO_ID { 0 } else { child });
        woke.is_some()
    }

    fn wake(&self, _call: CallRef<'_>, all: bool) -> bool {
        let woke = self.rouse(&self.scene.place.workers_in_context, all);
        let any = !woke.is_empty();
        self.note(Hop::Wake { woke });
        any
    }

    fn child_estimated_end(&self, _call: CallRef<'_>, child: u32) -> u64 {
        if !self.has_child(child, "child_estimated_end") {
            return self.now.load(Relaxed);
        }
        self.note(Hop::EstimatedEnd(Child(child)));
        let changing = self.changing.lock();
        let set = changing.ends.get(&child).copied();
        let end = set.or_else(|| Some(self.scene.children().get(child as usize)?.end)).unwrap_or(Time::ZERO);
        let queued = changing.queued_below.get(&child).copied().unwrap_or(0);
        let below = self.scene.child_places.get(child as usize);
        let workers = below.map_or(0, |place| WorkerSet::from_words(&place.workers_in_context).iter().count() as u64);
        end.as_nanos().max(self.now.load(Relaxed)).saturating_add(queued / workers.max(1))
    }

    fn child_estimated_load(&self, _call: CallRef<'_>, child: u32) -> f64 {
        if !self.has_child(child, "child_load") {
            return 0.0;
        }
        self.note(Hop::EstimatedLoad(Child(child)));
        let set = self.changing.lock().loads.get(&child).copied();
        set.or_else(|| Some(self.scene.children().get(child as usize)?.load)).unwrap_or(0.0)
    }

    fn place(&self) -> &RawPlace<'_> {
        &self.scene.place
    }

    fn child_place(&self, child: u32) -> ROption<&RawPlace<'_>> {
        self.scene.child_places.get(child as usize).into()
    }

    fn worker(&self, worker: u32) -> ROption<RawWorker> {
        self.scene.worker(worker).into()
    }

    fn requester(&self, call: CallRef<'_>) -> u32 {
        call_of(call).requester
    }

    fn now(&self, _call: CallRef<'_>) -> u64 {
        self.served("now");
        self.now.fetch_add(self.tick.load(Relaxed), Relaxed)
    }

    /// Random numbers by SplitMix64.
    fn random(&self, _call: CallRef<'_>) -> u64 {
        self.served("random");
        let mut changing = self.changing.lock();
        changing.random = changing.random.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut word = changing.random;
        word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        word ^ (word >> 31)
    }

    fn can_execute(&self, call: CallRef<'_>, worker: u32, task: RawTask) -> bool {
        self.served("can_execute");
        let worker = if worker == REQUESTER { call_of(call).requester } else { worker };
        let able = self.ledger.read(task, |task| match worker {
            NO_ID => self.some_executable(&self.scene.place.workers_in_context, task),
            worker => self.executable(WorkerId(worker), task),
        });
        able.unwrap_or(false)
    }

    fn child_can_execute(&self, _call: CallRef<'_>, child: u32, task: RawTask) -> bool {
        self.served("child_can_execute");
        let Some(place) = self.scene.child_places.get(child as usize) else { return false };
        self.ledger.read(task, |task| self.some_executable(&place.workers_in_context, task)).unwrap_or(false)
    }

    fn implementations(&self, _call: CallRef<'_>, worker: u32, task: RawTask) -> u32 {
        self.served("implementations");
        let able = |task: &Task| self.executable(WorkerId(worker), task).then(|| task.codelet());
        let codelet = self.ledger.read(task, able).flatten();
        codelet.map_or(0, |codelet| self.changing.lock().models.implementations(codelet))
    }

    fn expected_length(&self, _call: CallRef<'_>, worker: u32, task: RawTask, implementation: u32) -> u64 {
        self.served("expected_length");
        let codelet = self.ledger.read(task, Task::codelet);
        let length = codelet.map(|codelet| self.changing.lock().models.length(codelet, worker, implementation));
        length.unwrap_or(Estimate::NoModel).to_wire()
    }

    fn expected_transfer(&self, _call: CallRef<'_>, memory_node: u32, task: RawTask) -> u64 {
        self.served("expected_transfer");
        let codelet = self.ledger.read(task, Task::codelet);
        let changing = self.changing.lock();
        let length = codelet.and_then(|codelet| changing.models.transfers.get(&(codelet, memory_node)));
        length.map_or(0, |length| nanos(*length))
    }

    fn expected_energy(&self, _call: CallRef<'_>, worker: u32, task: RawTask, _implementation: u32) -> f64 {
        self.served("expected_energy");
        let codelet = self.ledger.read(task, Task::codelet);
        let changing = self.changing.lock();
        let joules = codelet.and_then(|codelet| changing.models.energies.get(&(codelet, worker)));
        joules.copied().unwrap_or(f64::NAN)
    }

    fn prefetch(&self, _call: CallRef<'_>, memory_node: u32, task: RawTask) {
        self.served("prefetch");
        if let Some(id) = self.ledger.read(task, Task::id) {
            self.note(Hop::Prefetch(id, MemoryNode(memory_node)));
        }
    }

    fn report_panic(&self, _call: CallRef<'_>, message: RStr<'_>) {
        self.panics.lock().push(message.to_string());
        self.ledger.fault(Breach::Panicked, format!("the component panicked: {message}"));
    }

    fn extension(&self, name: RStr<'_>) -> ROption<RawExtension> {
        if self.scene.bare {
            return ROption::RNone;
        }
        offer(name.as_str(), self.distances.lock().is_some(), self.scene.foresees).into()
    }
}

impl Books for FakeHost {
    fn busy_until(&self, worker: u32) -> u64 {
        let changing = self.changing.lock();
        let until = |worker| changing.busy.get(&worker).map_or(0, |until| until.as_nanos());
        self.members(worker).into_iter().map(until).max().unwrap_or(NO_TIME)
    }

    fn free_at(&self, worker: u32) -> u64 {
        let (changing, now) = (self.changing.lock(), self.now.load(Relaxed));
        let here = if self.scene.leaf.is_some() { changing.queued } else { 0 };
        let leaf = self.scene.leaf.map_or_else(Vec::new, |leaf| self.members(leaf.0));
        let free_at = |worker: u32| {
            let busy = changing.busy.get(&worker).map_or(0, |until| until.as_nanos()).max(now);
            let elsewhere = changing.elsewhere.get(&worker).map_or(0, |length| nanos(*length));
            let waiting = elsewhere.saturating_add(if leaf.contains(&worker) { here } else { 0 });
            busy.saturating_add(waiting)
        };
        self.members(worker).into_iter().map(free_at).max().unwrap_or(NO_TIME)
    }

    fn note_queued(&self, nanos: u64) {
        self.served("note_queued");
        self.changing.lock().queued = nanos;
    }

    fn note_room(&self, has_room: bool) {
        self.served("note_room");
        self.changing.lock().is_full = !has_room;
    }

    fn members(&self, worker: u32) -> Vec<u32> {
        self.scene.members(worker)
    }

    fn members_load(&self, worker: u32) -> f64 {
        let changing = self.changing.lock();
        let members = self.scene.members(worker).into_iter().filter(|member| *member != worker);
        members.filter_map(|member| changing.worker_loads.get(&member)).sum()
    }
}

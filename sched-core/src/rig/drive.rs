//! Calling the component under test.

use super::Rig;
use super::host::FakeHost;
use super::ledger::{Breach, Holder};
use crate::abi::ComponentObject;
use crate::abi::fake::{Call, with_node};
use crate::abi::wire::{NO_ID, RawNode};
use crate::component::Refusal;
use crate::estimate::Time;
use crate::node::Child;
use crate::task::TaskId;
use crate::workers::WorkerId;
use abi_stable::std_types::Tuple2;
use std::sync::atomic::Ordering::Relaxed;

/// Calling the component under test.
impl Rig {
    #[track_caller]
    pub(super) fn call<T>(&self, requester: u32, body: impl FnOnce(&ComponentObject, &RawNode) -> T) -> T {
        let component = self.host.component.as_ref().expect("the component is there until the rig is dropped");
        let FakeHost { log, distances, .. } = &self.host;
        let call = Call { requester, log, distances, books: &self.host, graph: &self.host };
        with_node(&self.host, &call, |node| body(component, node))
    }

    /// Fails the test if the component did something wrong.
    #[track_caller]
    fn settle(&self) {
        if !self.lenient {
            let faults = self.host.ledger.faults();
            assert!(faults.is_empty(), "{}", faults.join("\n"));
        }
    }

    /// Pushes a task that the test holds. If it is refused, the test holds it again.
    ///
    /// # Errors
    /// The reason of the refusal.
    #[track_caller]
    pub fn push(&self, task: TaskId) -> Result<(), Refusal> {
        self.push_for(self.requester.load(Relaxed), task)
    }

    #[track_caller]
    pub(super) fn push_for(&self, requester: u32, task: TaskId) -> Result<(), Refusal> {
        let raw = match self.host.ledger.give(task, Holder::Test, Holder::Component) {
            Ok(raw) => raw,
            Err(holder) => panic!("{task} is not the test's to push; its holder is {holder}"),
        };
        let answer = self.call(requester, |component, node| component.push_task(node, raw));
        let mut result = Ok(());
        if !answer.refused.is_none() {
            match self.host.ledger.receive(answer.refused, Holder::Test, "push_task") {
                Some(other) if other != task => {
                    let fault = format!("push_task: the component refused {task} with {other} in its place");
                    self.host.ledger.fault(Breach::OtherRefused, fault);
                }
                _ => {}
            }
            result = Err(Refusal::from_code(answer.why));
        }
        self.settle();
        result
    }

    /// Pulls for a child, on behalf of the [requester](Rig::set_requester) or else the child's first worker. The test
    /// then holds the task. A leaf has no children, so any number will do: its worker begins to execute the task, and
    /// is [busy](Rig::set_busy_until) for the task's expected length, if it has one.
    #[track_caller]
    pub fn pull(&self, to: Child) -> Option<TaskId> {
        self.pull_for(self.requester_for(to), to)
    }

    #[track_caller]
    pub(super) fn pull_for(&self, requester: u32, to: Child) -> Option<TaskId> {
        let raw = self.call(requester, |component, node| component.pull_task(node, to.0));
        let mut task = None;
        if !raw.is_none() {
            task = self.host.ledger.receive(raw, Holder::Test, "pull_task");
            if let Some(task) = task.filter(|task| !self.host.requester_can(requester, *task)) {
                let fault =
                    format!("pull_task: the component gave {task} to worker {requester}, which cannot execute it");
                self.host.ledger.fault(Breach::Unable, fault);
            }
        }
        if let (Some(leaf), Some(task)) = (self.host.scene.leaf, task)
            && let Some(length) = self.read(task, crate::Task::predicted)
        {
            let until = Time::from_nanos(self.host.now.load(Relaxed)) + length;
            for member in self.host.scene.members(leaf.0) {
                self.set_busy_until(WorkerId(member), until);
            }
        }
        self.settle();
        task
    }

    fn requester_for(&self, to: Child) -> u32 {
        let scene = &self.host.scene;
        match self.requester.load(Relaxed) {
            NO_ID => {
                let place = if scene.leaf.is_some() { None } else { scene.child_places.get(to.0 as usize) };
                let words = &place.unwrap_or(&scene.place).workers_in_context;
                crate::workers::members(words).next().map_or(NO_ID, |worker| worker.0)
            }
            set => set,
        }
    }

    /// Tells the component that a child has room, on behalf of the same worker as [`pull`](Rig::pull). Returns whether
    /// any task was sent.
    #[track_caller]
    pub fn can_push(&self, to: Child) -> bool {
        self.can_push_for(self.requester_for(to), to)
    }

    #[track_caller]
    pub(super) fn can_push_for(&self, requester: u32, to: Child) -> bool {
        let sent = self.call(requester, |component, node| component.can_push(node, to.0));
        self.settle();
        sent
    }

    /// Tells the component that there is work above. Returns whether a worker was woken.
    #[track_caller]
    pub fn can_pull(&self) -> bool {
        let woke = self.call(self.requester.load(Relaxed), |component, node| component.can_pull(node));
        self.settle();
        woke
    }

    /// The component's estimate of when the workers below run out of work.
    #[track_caller]
    pub fn estimated_end(&self) -> Time {
        let end = self.call(NO_ID, |component, node| component.estimated_end(node));
        self.settle();
        Time::from_nanos(end)
    }

    /// The component's estimate of its load.
    #[track_caller]
    pub fn estimated_load(&self) -> f64 {
        let load = self.call(NO_ID, |component, node| component.estimated_load(node));
        self.settle();
        load
    }

    /// Tells the component that the workers in the context changed.
    #[track_caller]
    pub fn notify_change_workers(&self) {
        self.call(NO_ID, |component, node| component.notify_change_workers(node));
        self.settle();
    }

    /// Drains the component: the test then holds its tasks. Fails if it keeps one.
    #[track_caller]
    pub fn drain(&self) -> Vec<TaskId> {
        let drained = self.call(NO_ID, |component, node| component.drain(node));
        // Who takes tasks back forgets what was reported of them.
        self.host.changing.lock().is_full = false;
        let tasks =
            drained.into_iter().filter_map(|raw| self.host.ledger.receive(raw, Holder::Test, "drain")).collect();
        for kept in self.host.ledger.held_by(Holder::Component) {
            let fault = format!("drain: the component did not give up {kept}, which it holds");
            self.host.ledger.fault(Breach::Kept, fault);
        }
        self.settle();
        tasks
    }

    /// The facts that the component adds to a report.
    #[track_caller]
    pub fn describe(&self) -> Vec<(String, String)> {
        let facts = self.call(NO_ID, |component, node| component.describe(node));
        self.settle();
        facts.into_iter().map(|Tuple2(name, value)| (name.into(), value.into())).collect()
    }
}

//! Calling the component under test.

use super::Rig;
use super::host::FakeHost;
use super::ledger::{Breach, Holder};
use crate::abi::ComponentObject;
use crate::abi::extension::{ComponentExecution, ComponentState, RawExecution};
use crate::abi::fake::{Call, offer_of, with_node};
use crate::abi::wire::{NO_ID, RawNode};
use crate::adapter::drop_panic;
use crate::component::Refusal;
use crate::estimate::{Time, nanos};
use crate::node::Child;
use crate::task::TaskId;
use crate::workers::WorkerId;
use abi_stable::std_types::Tuple2;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

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

    /// What the component [leaves](crate::Component::export) to its successor: for another rig, whose component
    /// [takes](Rig::import) it.
    ///
    /// ```
    /// use sched_core::rig::Rig;
    /// use sched_core::*;
    /// use std::sync::atomic::{AtomicU8, Ordering::Relaxed};
    ///
    /// /// Passes tasks on, and counts those that fail.
    /// #[derive(Default)]
    /// struct Counts(AtomicU8);
    ///
    /// impl Component for Counts {
    ///     fn push_task(&self, node: Node<'_>, task: Task) -> Push {
    ///         node.push_to(Child(0), task)
    ///     }
    ///
    ///     fn task_ended(&self, _: Node<'_>, _: &Execution, end: &ExecutionEnd) {
    ///         self.0.fetch_add(u8::from(end.failed), Relaxed);
    ///     }
    ///
    ///     fn export(&self, _: Node<'_>) -> Option<Vec<u8>> {
    ///         Some(vec![self.0.load(Relaxed)])
    ///     }
    ///
    ///     fn import(&self, _: Node<'_>, state: &[u8]) {
    ///         self.0.store(state.first().copied().unwrap_or(0), Relaxed);
    ///     }
    /// }
    ///
    /// let rig = Rig::new(Counts::default());
    /// let (task, length) = (rig.task().make(), std::time::Duration::from_micros(5));
    /// rig.task_started(task, WorkerId(0));
    /// rig.task_ended(task, WorkerId(0), length, true);
    /// let left = rig.export().expect("it leaves a number");
    ///
    /// let successor = Rig::new(Counts::default());
    /// successor.import(&left);
    /// assert_eq!(successor.export(), Some(vec![1]));
    /// ```
    #[track_caller]
    pub fn export(&self) -> Option<Vec<u8>> {
        let export = |component: &ComponentObject, node: &RawNode| {
            let (extension, table) = offer_of::<ComponentState>(component)?;
            (table.export)(extension.as_ptr(), node).into_option()
        };
        let state = self.call(NO_ID, export);
        self.settle();
        state.map(|state| state.as_slice().to_vec())
    }

    /// Gives the component what its predecessor left. A host does so after
    /// [`notify_change_workers`](Rig::notify_change_workers), before the first task.
    #[track_caller]
    pub fn import(&self, state: &[u8]) {
        self.call(NO_ID, |component, node| {
            if let Some((extension, table)) = offer_of::<ComponentState>(component) {
                (table.import)(extension.as_ptr(), node, state.into());
            }
        });
        self.settle();
    }

    /// Tells the component that a worker starts to execute a task. A host does so where a component declares that it
    /// [hears of tasks](crate::Info::hears_tasks). See [`export`](Rig::export) for an example.
    #[track_caller]
    pub fn task_started(&self, task: TaskId, worker: WorkerId) {
        self.executes(self.execution(task, worker), |table| table.started);
    }

    /// Tells the component that a worker has executed a task, which took this long. Its energy is
    /// [what was set](Rig::set_energy).
    #[track_caller]
    pub fn task_ended(&self, task: TaskId, worker: WorkerId, length: Duration, failed: bool) {
        let start = self.execution(task, worker);
        let energy = self.host.changing.lock().models.energies.get(&(start.codelet, worker.0)).copied();
        let energy = energy.unwrap_or(f64::NAN);
        let end = RawExecution { length: nanos(length), energy, failed: u32::from(failed), ..start };
        self.executes(end, |table| table.ended);
    }

    #[track_caller]
    fn executes(
        &self,
        execution: RawExecution,
        of: impl Fn(&ComponentExecution) -> extern "C" fn(*const (), &RawNode, &RawExecution),
    ) {
        self.call(execution.worker, |component, node| {
            if let Some((extension, table)) = offer_of::<ComponentExecution>(component) {
                of(table)(extension.as_ptr(), node, &execution);
            }
        });
        self.settle();
    }

    /// The start of an execution.
    fn execution(&self, id: TaskId, worker: WorkerId) -> RawExecution {
        self.read(id, |task| RawExecution {
            task: id.sequence(),
            footprint: task.footprint(),
            predicted: task.predicted().map_or(u64::MAX, nanos),
            length: 0,
            energy: f64::NAN,
            codelet: task.codelet(),
            worker: worker.0,
            priority: task.priority(),
            failed: 0,
        })
    }

    /// Drops a component that was under test. Its drop may panic: who is in another library alone knows of that.
    pub(super) fn dropped(&self, component: ComponentObject) {
        let _ = drop_panic();
        drop(component);
        if let Some(message) = drop_panic() {
            self.host.ledger.fault(Breach::Panicked, format!("the component panicked when it was dropped: {message}"));
        }
    }

    /// The facts that the component adds to a report.
    #[track_caller]
    pub fn describe(&self) -> Vec<(String, String)> {
        let facts = self.call(NO_ID, |component, node| component.describe(node));
        self.settle();
        facts.into_iter().map(|Tuple2(name, value)| (name.into(), value.into())).collect()
    }
}

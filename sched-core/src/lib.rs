//! Write components of a modular task scheduler.
//!
//! A scheduler is a **tree of components**. Ready tasks enter at the root, pass from component to component, and leave
//! at the leaves, which are workers. Each component has one job: hold tasks back (*flow control*: `fifo`, `prio`),
//! choose among its children (*resource mapping*: `eager`, `mct`, `heft`), or something special, such as selecting an
//! implementation. A policy is a text file that names components and arranges them in a tree. This crate is all that a
//! component depends on: write a type, compile it into a plugin, and put the file where the host looks for plugins.
//! Nothing else is recompiled.
//!
//! `sched plugin new my-queue --family flow-control` writes a crate that builds at once, with a component to be
//! changed, a test and a policy. The rest of this page explains what is in it.
//!
//! # The four verbs
//!
//! ```text
//!           parent
//!       │            ▲
//!       │ push       │ can_push      push: take this task, or hand it back
//!       │ can_pull   │ pull          pull: give me a task
//!       ▼            │               can_push: I have room, send something
//!         component                  can_pull: there is work, come and get it
//!       │            ▲
//!       ▼            │
//!           child
//! ```
//!
//! *push* moves a task down and *pull* moves one up. *can_push* goes up and *can_pull* goes down; each announces that
//! the opposite verb is worth trying. They are the methods of [`Component`] and the hops of [`Node`]. Only
//! [`push_task`](Component::push_task) is required: the default implementations forward the call.
//!
//! A component that stores tasks ends a flow. When a task is pushed to it, it stores the task and notifies its children
//! ([`Node::children_can_pull`]). When pulled from, it gives a task. When a child has room, it *pumps* tasks down to
//! that child ([`Node::pump`]). When it has room itself, it notifies its parents ([`Node::parents_can_push`]).
//!
//! # A component
//!
//! A bounded stack, and its test:
//!
//! ```
//! use sched_core::*;
//!
//! /// Gives the task that was pushed last.
//! struct Stack {
//!     tasks: Mutex<Vec<Task>>,
//!     room: usize,
//! }
//!
//! impl Build for Stack {
//!     const INFO: Info = Info::new("stack", Family::FlowControl, "Gives the task that was pushed last.")
//!         .storage(Storage::BoundedBy(&["room"]))
//!         .params(const { &[Param::int("room", 0, "maximum number of tasks held; 0 means no limit").at_least(0)] });
//!
//!     fn build(params: &Params) -> Result<Self, BuildError> {
//!         let room = usize::try_from(params.int("room")?).unwrap_or(0);
//!         Ok(Stack { tasks: Mutex::new(Vec::new()), room: if room == 0 { usize::MAX } else { room } })
//!     }
//! }
//!
//! impl Stack {
//!     /// The last task that the worker on whose behalf the call happens can execute.
//!     fn pop(&self, node: Node<'_>) -> Option<Task> {
//!         let mut tasks = self.tasks.lock();
//!         let found = tasks.iter().rposition(|task| node.requester_can_execute(task))?;
//!         Some(tasks.remove(found))
//!     }
//!
//!     fn pump(&self, node: Node<'_>, to: Child) -> bool {
//!         let mut put_back = false;
//!         let unpop = |task| {
//!             self.tasks.lock().push(task);
//!             put_back = true;
//!         };
//!         let moved = node.pump(to, || self.pop(node), unpop);
//!         if put_back {
//!             // A worker may have looked while the refused task was away.
//!             node.children_can_pull();
//!         }
//!         moved
//!     }
//! }
//!
//! impl Component for Stack {
//!     fn push_task(&self, node: Node<'_>, task: Task) -> Push {
//!         {
//!             let mut tasks = self.tasks.lock();
//!             if tasks.len() >= self.room {
//!                 return Err(Refused::new(task, Refusal::Full));
//!             }
//!             tasks.push(task);
//!         } // The lock ends here, before the hop.
//!         node.children_can_pull();
//!         Ok(())
//!     }
//!
//!     fn pull_task(&self, node: Node<'_>, _to: Child) -> Option<Task> {
//!         let task = self.pop(node);
//!         // There is room now; and if the stack was empty, a parent may have a task.
//!         let sent = node.parents_can_push();
//!         task.or_else(|| if sent { self.pop(node) } else { None })
//!     }
//!
//!     fn can_push(&self, node: Node<'_>, to: Child) -> bool {
//!         self.pump(node, to) || (node.parents_can_push() && { self.pump(node, to); true })
//!     }
//!
//!     fn drain(&self) -> Vec<Task> {
//!         self.tasks.lock().drain(..).rev().collect()
//!     }
//! }
//!
//! // In a test:
//! use sched_core::rig::{FakeChild, Rig};
//!
//! let rig = Rig::build::<Stack>(&[("room", Value::Int(2))]).child(FakeChild::new().room(1));
//! let tasks = rig.tasks(3);
//! assert_eq!(rig.push(tasks[0]), Ok(()));
//! assert_eq!(rig.push(tasks[1]), Ok(()));
//! assert_eq!(rig.push(tasks[2]), Err(Refusal::Full));
//!
//! assert!(rig.can_push(Child(0)));
//! assert_eq!(rig.child_tasks(Child(0)), [tasks[1]], "last in, first out; the child had room for one");
//! assert_eq!(rig.pull(Child(0)), Some(tasks[0]));
//! ```
//!
//! # Tasks are owned
//!
//! A [`Task`] can be moved, but neither copied nor lost: when a push returns `Ok`, the task belongs to the component
//! below; when it is refused, the task comes back inside the [`Refused`]. A component that drops a task is faulty: the
//! host reports the component by name and still runs the task. When the policy is swapped, and when workers are added
//! or removed, the host takes a component's stored tasks with [`drain`](Component::drain); at shutdown it takes them
//! back itself.
//!
//! # Refusals have reasons
//!
//! | [`Refusal`] | what the component above does |
//! |---|---|
//! | [`Full`](Refusal::Full) | keeps the task; a *can_push* follows when there is room |
//! | [`NoWorker`](Refusal::NoWorker) | tries another child: no worker below this one can execute the task |
//! | [`PullInstead`](Refusal::PullInstead) | keeps the task: a worker was woken and will pull |
//! | [`Uncalibrated`](Refusal::Uncalibrated) | sends the task where its execution can be measured |
//!
//! The root of a tree must accept every task. A policy without an unbounded queue at the top is rejected before it
//! runs.
//!
//! # Locks
//!
//! Many threads call a component concurrently, so mutable state belongs in a [`Mutex`] or in atomics. **Never hold a
//! lock across a hop**: the neighbour may call back on the same thread. The docs of [`Node`] mark hops as such; in a
//! debug build a hop panics when the thread holds a [`Mutex`]. The other methods, such as [`Node::expected_length`],
//! are services, which call no component.
//!
//! # No ambient state
//!
//! The clock is [`Node::now`], randomness is [`Node::random`], and settings are [`Params`]. The same plugin therefore
//! also runs in a simulator, under a virtual clock, and the same seed gives the same run. A component starts no
//! threads, never sleeps, and reads neither environment variables nor files.
//!
//! # Parameters
//!
//! [`Build::INFO`] declares each parameter with its type, default, range and a line of documentation. The host checks
//! what a policy sets, reports mistakes to its author, and shows the parameters in its help. [`Build::build`] receives
//! a value for every parameter.
//!
//! # Testing
//!
//! With the feature `rig`, the module `rig` drives one component with fake neighbours and a fake clock, as above. It
//! fails the test when a task is lost, given away twice or kept, when the component panics, and when a lock is held
//! across a hop. `rig::conforms` examines the component in one line: it makes random sequences of every call, in random
//! environments, checks what every component has to do and what this one declares, and reports the shortest sequence of
//! calls that goes wrong. `sched plugin test` does the same to a built plugin, and runs and simulates policies with it.
//!
//! ```toml
//! [dev-dependencies]
//! sched-core = { path = "…/sched-core", features = ["rig"] }   # or git = "…"
//! ```
//!
//! # A plugin, and a policy that uses it
//!
//! A plugin is a crate of type `cdylib` that names its components once, with [`export_components!`]:
//!
//! ```toml
//! [lib]
//! crate-type = ["cdylib"]
//!
//! [dependencies]
//! sched-core = { path = "…/sched-core" }   # or git = "…"
//! ```
//!
//! ```
//! # mod stack {
//! # use sched_core::*;
//! # struct Stack;
//! # impl Component for Stack { fn push_task(&self, node: Node<'_>, task: Task) -> Push { node.push_to(Child(0), task) } }
//! # impl Build for Stack {
//! #     const INFO: Info = Info::new("stack", Family::FlowControl, "");
//! #     fn build(_: &Params) -> Result<Self, BuildError> { Ok(Stack) }
//! # }
//! sched_core::export_components!(Stack);
//! # }
//! ```
//!
//! Copy the built library into the host's plugin directory; a policy then names the component like any other:
//!
//! ```text
//! policy "stacks" {
//!     fifo {
//!         eager {
//!             each "worker" {
//!                 stack room=2 { worker }
//!             }
//!         }
//!     }
//! }
//! ```
//!
//! A component can be written in C, too, with the header `msched.h` alone: see [`abi::c`].
//!
//! Plugins and hosts are compatible in both directions within a major version of this crate: last year's plugin loads
//! in this year's host, and this year's plugin in last year's host. [`abi`] explains how.
#![allow(non_local_definitions, non_camel_case_types, reason = "abi_stable's macros write them")]

pub mod abi;
mod adapter;
mod brief;
mod component;
pub mod driver;
mod estimate;
#[doc(hidden)]
pub mod export;
mod info;
mod mutex;
mod node;
mod params;
#[cfg(feature = "rig")]
pub mod rig;
mod set;
#[cfg(test)]
mod set_tests;
mod sync;
mod task;
mod workers;

pub use abi::fetch::{fetch_ahead, fetch_to_write};
pub use adapter::adapt;
pub use brief::{Brief, BriefGuard, RawBrief};
pub use component::{Build, Component, Execution, ExecutionEnd, Push, Refusal, Refused, Report};
pub use estimate::{Estimate, Time};
pub use export::Offer;
pub use info::{Arity, ComponentInfo, Family, Info, POLICY_WORDS, Slot, SlotInfo, Storage};
pub use mutex::{Mutex, MutexGuard};
pub use node::{Child, DataAccess, LogLevel, Node, Parent, Passage, Prospect, Route, Stage, Submitted, SubmittedTask};
pub use params::{BuildError, Param, ParamInfo, ParamKind, Params, Value};
pub use set::SharedSet;
pub use task::{Task, TaskId};
pub use workers::{Arch, ArchSet, MemoryNode, WorkerId, WorkerSet};

//! Drives one component in a test, with fake neighbours and a fake clock. (Feature `rig`.)
//!
//! A [`Rig`] holds the component behind the same stable object as a host does, so a test takes the same path as a
//! plugin. By default it has one CPU worker, and below the component one child that accepts every task. Tasks are
//! identified by [`TaskId`](crate::TaskId); the rig records who holds each, and **fails the test** when the component
//!
//! - drops a task, gives one away twice, or gives one to a worker that cannot execute it;
//! - panics, which includes a hop made while it holds a [`Mutex`](crate::Mutex);
//! - has not given up every task that it held in [`drain`](crate::Component::drain), when the rig is dropped, or panics
//!   when it is dropped itself.
//!
//! ```
//! use sched_core::rig::{FakeChild, Rig};
//! use sched_core::*;
//!
//! /// Passes tasks to its first child, and passes on a refusal.
//! struct First;
//!
//! impl Component for First {
//!     fn push_task(&self, node: Node<'_>, task: Task) -> Push {
//!         node.push_to(Child(0), task)
//!     }
//! }
//!
//! let rig = Rig::new(First).child(FakeChild::new().room(1));
//! let (a, b) = (rig.task().make(), rig.task().priority(7).make());
//! assert_eq!(rig.push(a), Ok(()));
//! assert_eq!(rig.push(b), Err(Refusal::Full));
//! assert_eq!(rig.child_tasks(Child(0)), [a]);
//!
//! rig.set_room(Child(0), Some(1));
//! assert_eq!(rig.push(b), Ok(()));
//! ```

pub mod conform;
mod drive;
mod graph;
mod hop;
mod host;
mod ledger;
mod look;
mod scene;
mod task;

pub use conform::{Examination, Finding, Property, conforms};
pub use hop::Hop;
pub use ledger::Holder;
pub use scene::{FakeChild, FakeParent};
pub use task::FakeTask;

use crate::abi::ComponentObject;
use crate::abi::wire::NO_ID;
use crate::adapter::adapt;
use crate::component::{Build, Component};
use crate::params::{BuildError, Params, Value};
use crate::workers::{Arch, MemoryNode, WorkerId};
use host::FakeHost;
use ledger::Ledger;
use parking_lot::Mutex;
use scene::{Changing, Scene, fake_worker};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64};

/// One component in a fake environment; see the [module](self).
///
/// Methods that take and return the rig set up the environment before the first call. Those that take `&self` may be
/// used between calls, and from several threads at once.
///
/// # Panics
/// Methods that call the component panic with a description of its fault, unless the rig is [lenient](Rig::lenient).
/// Methods that take a [`TaskId`](crate::TaskId) panic if another rig made it.
pub struct Rig {
    host: FakeHost,
    requester: AtomicU32,
    lenient: bool,
}

/// Setting up the environment.
impl Rig {
    /// A rig around a component.
    pub fn new(component: impl Component) -> Rig {
        Rig::from_object(adapt(component))
    }

    /// A rig around a component built with these parameters; the others have their defaults.
    ///
    /// # Panics
    /// When a parameter is undeclared, of another type or out of range, or when the constructor fails: see
    /// [`try_build`](Rig::try_build).
    #[track_caller]
    pub fn build<C: Build>(params: &[(&str, Value)]) -> Rig {
        match Rig::try_build::<C>(params) {
            Ok(rig) => rig,
            Err(error) => panic!("`{}` was not built: {error}", C::INFO.name()),
        }
    }

    /// A rig around a component built with these parameters, or the constructor's error; for tests of such errors.
    ///
    /// # Errors
    /// The constructor's error, or what a policy's author would see for a wrong parameter.
    pub fn try_build<C: Build>(params: &[(&str, Value)]) -> Result<Rig, BuildError> {
        let mut values = Params::defaults(C::INFO.declared_params());
        for (name, value) in params {
            let declared = C::INFO.describe();
            let param =
                declared.param(name).ok_or_else(|| BuildError::new(format!("INFO declares no parameter `{name}`")))?;
            let fits = value.clone().coerce(&param.kind);
            let wrong = || BuildError::new(format!("`{name}` is {value}, expected {}", param.kind));
            values.set(name, fits.ok_or_else(wrong)?);
        }
        let rig = C::build(&values).map(Rig::new)?;
        Ok(if C::INFO.describe().arity == crate::Arity::Leaf { rig.leaf(WorkerId(0)) } else { rig })
    }

    /// A rig around a component that is already behind its stable object, as a plugin provides it.
    pub fn from_object(component: ComponentObject) -> Rig {
        Rig {
            host: FakeHost {
                component: Some(component),
                ledger: Arc::new(Ledger::default()),
                scene: Scene::new(),
                changing: Mutex::new(Changing::default()),
                now: AtomicU64::new(0),
                tick: AtomicU64::new(0),
                log: Mutex::default(),
                distances: Mutex::default(),
                hops: Mutex::default(),
                services: Mutex::default(),
                panics: Mutex::default(),
                called_back: AtomicBool::new(false),
            },
            requester: AtomicU32::new(NO_ID),
            lenient: false,
        }
    }

    fn arranged(mut self, change: impl FnOnce(&mut Scene)) -> Rig {
        change(&mut self.host.scene);
        self.host.scene.arrange();
        self
    }

    /// Adds a worker, numbered from 0. Without any, there is one CPU worker on memory node 0.
    #[must_use]
    pub fn worker(self, arch: Arch, memory_node: MemoryNode) -> Rig {
        self.arranged(|scene| scene.workers.push(fake_worker(arch, memory_node)))
    }

    /// Adds CPU workers on memory node 0.
    #[must_use]
    pub fn workers(self, count: u32) -> Rig {
        (0..count).fold(self, |rig, _| rig.worker(Arch::CPU, MemoryNode(0)))
    }

    /// Adds a combined worker made of these simple ones. Its number follows those of all simple workers, so add those
    /// first.
    #[must_use]
    pub fn combined(self, members: impl IntoIterator<Item = u32>) -> Rig {
        self.arranged(|scene| scene.combined.push(members.into_iter().collect()))
    }

    /// Makes the host offer no [extensions](crate::abi::extension), like a host of version 1.0.
    #[must_use]
    pub fn without_extensions(self) -> Rig {
        self.arranged(|scene| scene.bare = true)
    }

    /// Makes the host provide the [submitted tasks](crate::Node::submitted): all that the test has made, of which those
    /// that the component holds are ready.
    #[must_use]
    pub fn foreseeing(self) -> Rig {
        self.arranged(|scene| scene.foresees = true)
    }

    /// Adds a child, numbered from 0. Without any, there is one child above all workers, unless the component is a
    /// leaf.
    #[must_use]
    pub fn child(self, child: FakeChild) -> Rig {
        self.arranged(|scene| scene.children.push(child))
    }

    /// Adds a parent, numbered from 0. Without any, the component is the root.
    #[must_use]
    pub fn parent(self, parent: FakeParent) -> Rig {
        self.arranged(|scene| scene.parents.push(parent))
    }

    /// Makes the component a leaf that stands for a worker.
    #[must_use]
    pub fn leaf(self, worker: WorkerId) -> Rig {
        self.arranged(|scene| scene.leaf = Some(worker))
    }

    /// Sets the workers in the context; by default all. After the first call, also call
    /// [`notify_change_workers`](Rig::notify_change_workers).
    #[must_use]
    pub fn context(self, workers: impl IntoIterator<Item = u32>) -> Rig {
        self.arranged(|scene| scene.in_context = Some(workers.into_iter().map(WorkerId).collect()))
    }

    /// Sets the seed of [`Node::random`](crate::Node::random).
    #[must_use]
    pub fn seed(self, seed: u64) -> Rig {
        self.host.changing.lock().random = seed;
        self
    }

    /// Records the component's faults instead of failing the test: for tests of a faulty component.
    #[must_use]
    pub fn lenient(mut self) -> Rig {
        self.lenient = true;
        self
    }
}

impl Drop for Rig {
    fn drop(&mut self) {
        if !self.lenient && !std::thread::panicking() {
            self.drain();
        }
        self.host.ledger.close();
        if let Some(component) = self.host.component.take() {
            self.dropped(component);
        }
        if !self.lenient && !std::thread::panicking() {
            let faults = self.faults();
            assert!(faults.is_empty(), "{}", faults.join("\n"));
        }
    }
}

impl std::fmt::Debug for Rig {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Rig").field("held", &self.held()).field("faults", &self.faults()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;

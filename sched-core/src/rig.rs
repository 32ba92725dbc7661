//! Drives one component in a test, with fake neighbours and a fake clock. (Feature `rig`.)
//!
//! A [`Rig`] holds the component behind the same stable object that a host would hold, so a test takes the path that a
//! plugin takes. It has one CPU worker, and below the component one child that takes every task, until told otherwise.
//! Tasks are named by [`TaskId`](crate::TaskId); the rig keeps the books of who holds each, and **fails the test** when the component
//!
//! - drops a task, gives one away twice, or gives one to a worker that cannot execute it;
//! - panics, which includes a hop made while it holds a [`Mutex`](crate::Mutex);
//! - has not given up every task that it held in [`drain`](crate::Component::drain), when the rig is dropped.
//!
//! ```
//! use sched_core::rig::{FakeChild, Rig};
//! use sched_core::*;
//!
//! /// Passes tasks to its first child, and says so when it is refused.
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

mod drive;
mod graph;
mod hop;
mod host;
mod ledger;
mod look;
mod scene;
mod task;

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
use std::sync::atomic::{AtomicU32, AtomicU64};

/// One component with fake surroundings; see the [module](self).
///
/// Methods that take and return the rig arrange the surroundings before the first call. Those that take `&self` may be
/// used between calls, and from several threads at once.
///
/// # Panics
/// Methods that call the component panic with what it did wrong, unless the rig is [lenient](Rig::lenient). Methods that
/// take a [`TaskId`](crate::TaskId) panic when another rig made it.
pub struct Rig {
    host: FakeHost,
    requester: AtomicU32,
    lenient: bool,
}

/// Arranging the surroundings.
impl Rig {
    /// A rig around a component.
    pub fn new(component: impl Component) -> Rig {
        Rig::from_object(adapt(component))
    }

    /// A rig around a component built with these parameters, the others having their defaults.
    ///
    /// # Panics
    /// When a parameter is not declared, of another type or out of range, or the constructor refuses: see
    /// [`try_build`](Rig::try_build).
    #[track_caller]
    pub fn build<C: Build>(params: &[(&str, Value)]) -> Rig {
        match Rig::try_build::<C>(params) {
            Ok(rig) => rig,
            Err(error) => panic!("`{}` was not built: {error}", C::INFO.name()),
        }
    }

    /// The same, for a test of the constructor's errors.
    ///
    /// # Errors
    /// What the constructor says, or what a policy's author would be told of a wrong parameter.
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

    /// A rig around a component that is already behind its stable object, as a plugin gives it.
    pub fn from_object(component: ComponentObject) -> Rig {
        Rig {
            host: FakeHost {
                component: Some(component),
                ledger: Arc::new(Ledger::default()),
                scene: Scene::new(),
                changing: Mutex::new(Changing::default()),
                now: AtomicU64::new(0),
                log: Mutex::default(),
                distances: Mutex::default(),
                hops: Mutex::default(),
                services: Mutex::default(),
                panics: Mutex::default(),
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

    /// Adds a worker, numbered from 0. Without any there is one CPU worker on memory node 0.
    #[must_use]
    pub fn worker(self, arch: Arch, memory_node: MemoryNode) -> Rig {
        self.arranged(|scene| scene.workers.push(fake_worker(arch, memory_node)))
    }

    /// Adds CPU workers on memory node 0.
    #[must_use]
    pub fn workers(self, count: u32) -> Rig {
        (0..count).fold(self, |rig, _| rig.worker(Arch::CPU, MemoryNode(0)))
    }

    /// Adds a combined worker made of these simple ones, numbered above all simple workers: add those before.
    #[must_use]
    pub fn combined(self, members: impl IntoIterator<Item = u32>) -> Rig {
        self.arranged(|scene| scene.combined.push(members.into_iter().collect()))
    }

    /// Makes the host one that offers no [extensions](crate::abi::extension), as one of version 1.0.
    #[must_use]
    pub fn without_extensions(self) -> Rig {
        self.arranged(|scene| scene.bare = true)
    }

    /// Makes the host one that tells of [submitted tasks](crate::Node::submitted): all that the test has made, the component
    /// under test holding those that are ready.
    #[must_use]
    pub fn foreseeing(self) -> Rig {
        self.arranged(|scene| scene.foresees = true)
    }

    /// Adds a child, numbered from 0. Without any there is one above all workers, unless the component is a leaf.
    #[must_use]
    pub fn child(self, child: FakeChild) -> Rig {
        self.arranged(|scene| scene.children.push(child))
    }

    /// Adds a parent, numbered from 0. Without any the component is the root.
    #[must_use]
    pub fn parent(self, parent: FakeParent) -> Rig {
        self.arranged(|scene| scene.parents.push(parent))
    }

    /// Makes the component a leaf that stands for a worker.
    #[must_use]
    pub fn leaf(self, worker: WorkerId) -> Rig {
        self.arranged(|scene| scene.leaf = Some(worker))
    }

    /// The workers that the context has; all unless set. Tell the component with
    /// [`notify_change_workers`](Rig::notify_change_workers) when it has been called before.
    #[must_use]
    pub fn context(self, workers: impl IntoIterator<Item = u32>) -> Rig {
        self.arranged(|scene| scene.in_context = Some(workers.into_iter().map(WorkerId).collect()))
    }

    /// The seed of [`Node::random`](crate::Node::random).
    #[must_use]
    pub fn seed(self, seed: u64) -> Rig {
        self.host.changing.lock().random = seed;
        self
    }

    /// Notes the component's faults instead of failing the test: for tests about a component that misbehaves.
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
        self.host.component = None;
    }
}

impl std::fmt::Debug for Rig {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Rig").field("held", &self.held()).field("faults", &self.faults()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;

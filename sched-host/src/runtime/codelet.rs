//! Codelets: a kernel by name, with an implementation for each architecture that can run it.

use super::access::AccessList;
use super::core::Core;
use super::data::{DataHeader, Mode};
use super::submit::Submitter;
use parking_lot::Mutex;
use sched_core::{Arch, ArchSet, Estimate, WorkerId};
use std::any::Any;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// What a kernel is told beside its data.
pub struct Context<'a, P = ()> {
    /// What the application passed along with the task.
    pub params: &'a P,
    /// The worker that runs the task.
    pub worker: WorkerId,
    pub(crate) submitter: &'a Submitter,
}

impl<P> Context<'_, P> {
    /// To submit further tasks.
    #[must_use]
    pub fn submitter(&self) -> &Submitter {
        self.submitter
    }
}

impl<P: fmt::Debug> fmt::Debug for Context<'_, P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Context").field("params", self.params).field("worker", &self.worker).finish_non_exhaustive()
    }
}

type Kernel<L, P> = Box<dyn for<'a> Fn(&Context<'_, P>, <L as AccessList>::Views<'a>) + Send + Sync>;

/// A kernel by name: what tasks run. `L` says how it uses its data; `P` is what each task passes along by value.
///
/// Made with [`Submitter::codelet`]; belongs to that runtime. Cheap to clone.
pub struct Codelet<L: AccessList, P = ()> {
    pub(crate) inner: Arc<CodeletInner<L, P>>,
}

impl<L: AccessList, P> Clone for Codelet<L, P> {
    fn clone(&self) -> Codelet<L, P> {
        Codelet { inner: Arc::clone(&self.inner) }
    }
}

impl<L: AccessList, P> fmt::Debug for Codelet<L, P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Codelet").field("name", &self.inner.facts.name).finish_non_exhaustive()
    }
}

/// What does not depend on the types.
pub(crate) struct CodeletFacts {
    pub(crate) name: String,
    pub(crate) number: u32,
    pub(crate) runtime: u64,
    pub(crate) archs: ArchSet,
    /// Architecture and name of each implementation.
    pub(crate) implementations: Vec<(Arch, String)>,
    /// How long its tasks are expected to take, by architecture: what the application said.
    pub(crate) estimates: Vec<(Arch, Duration)>,
    pub(crate) slots: FreeSlots,
}

/// Slots whose record holds a job of one codelet, so that the next task finds a box that fits.
///
/// Submitters take from one list, and those who end tasks put into another: the two meet only when the first is empty.
#[derive(Default)]
pub(crate) struct FreeSlots {
    to_take: Mutex<Vec<u32>>,
    put_back: Mutex<Vec<u32>>,
}

impl FreeSlots {
    pub(crate) fn take(&self) -> Option<u32> {
        let mut slots = self.to_take.lock();
        if slots.is_empty() {
            std::mem::swap(&mut *slots, &mut *self.put_back.lock());
        }
        slots.pop()
    }

    pub(crate) fn put_back(&self, slots: impl Iterator<Item = u32>) {
        self.put_back.lock().extend(slots);
    }
}

impl CodeletFacts {
    /// What is known of the duration of its tasks on one worker of an architecture.
    pub(crate) fn expected_length(&self, arch: Arch) -> Estimate {
        let known = self.estimates.iter().rev().find(|(of, _)| *of == arch);
        known.map_or(Estimate::NoModel, |(_, length)| Estimate::Known(*length))
    }

    /// The implementation to run on `arch`: number `chosen` of those for it, or the first. Its index among all.
    pub(crate) fn select(&self, arch: Arch, chosen: Option<u32>) -> Option<usize> {
        let mut fitting =
            self.implementations.iter().enumerate().filter(|(_, (of, _))| *of == arch).map(|(index, _)| index);
        let first = fitting.clone().next();
        fitting.nth(chosen.unwrap_or(0) as usize).or(first)
    }
}

pub(crate) struct CodeletInner<L: AccessList, P> {
    pub(crate) facts: Arc<CodeletFacts>,
    kernels: Vec<Kernel<L, P>>,
}

/// A codelet in the making. Every codelet needs an implementation at least.
#[must_use = "a codelet is made by `build`"]
pub struct CodeletBuilder<L: AccessList, P = ()> {
    core: Arc<Core>,
    name: String,
    implementations: Vec<(Arch, String)>,
    estimates: Vec<(Arch, Duration)>,
    kernels: Vec<Kernel<L, P>>,
}

impl<L: AccessList, P: Send + 'static> CodeletBuilder<L, P> {
    pub(crate) fn new(core: Arc<Core>, name: &str) -> CodeletBuilder<L, P> {
        CodeletBuilder {
            core,
            name: name.to_owned(),
            implementations: Vec::new(),
            estimates: Vec::new(),
            kernels: Vec::new(),
        }
    }

    /// Adds an implementation for CPU cores.
    pub fn cpu(
        self,
        name: &str,
        kernel: impl for<'a> Fn(&Context<'_, P>, L::Views<'a>) + Send + Sync + 'static,
    ) -> Self {
        self.implementation(Arch::CPU, name, kernel)
    }

    /// Adds an implementation for an architecture.
    pub fn implementation(
        mut self,
        arch: Arch,
        name: &str,
        kernel: impl for<'a> Fn(&Context<'_, P>, L::Views<'a>) + Send + Sync + 'static,
    ) -> Self {
        self.implementations.push((arch, name.to_owned()));
        self.kernels.push(Box::new(kernel));
        self
    }

    /// Says how long a task of this codelet takes on one worker of an architecture, whichever implementation runs, for
    /// schedulers that decide by expected lengths. What is said last counts; about an architecture of which nothing is
    /// said, nothing is known.
    ///
    /// ```
    /// # use sched_host::runtime::Submitter;
    /// # use std::time::Duration;
    /// # use sched_core::Arch;
    /// # fn make(submitter: &Submitter) {
    /// let codelet = submitter.codelet::<(), ()>("sleep").cpu("sleep", |_, ()| {});
    /// let codelet = codelet.estimate(Arch::CPU, Duration::from_millis(2)).build();
    /// # }
    /// ```
    pub fn estimate(mut self, arch: Arch, length: Duration) -> Self {
        self.estimates.push((arch, length));
        self
    }

    /// The codelet.
    ///
    /// A codelet without implementations can be made; its tasks cannot be submitted.
    pub fn build(self) -> Codelet<L, P> {
        let archs = self.implementations.iter().map(|(arch, _)| *arch).collect();
        let facts = self.core.register_codelet(|number, runtime| CodeletFacts {
            name: self.name,
            number,
            runtime,
            archs,
            implementations: self.implementations,
            estimates: self.estimates,
            slots: FreeSlots::default(),
        });
        Codelet { inner: Arc::new(CodeletInner { facts, kernels: self.kernels }) }
    }
}

/// A kernel with its arguments, of whatever types.
pub(crate) trait Job: Send {
    fn facts(&self) -> &Arc<CodeletFacts>;
    /// Runs an implementation. Unwinds when the kernel does.
    fn run(&self, implementation: usize, worker: WorkerId, submitter: &Submitter);
    /// Each data access.
    fn visit<'h>(&'h self, visitor: &mut dyn FnMut(&'h Arc<DataHeader>, Mode));
    /// Lets the arguments go.
    fn clear(&mut self);
    fn as_any(&mut self) -> &mut dyn Any;
}

struct TypedJob<L: AccessList, P> {
    codelet: Arc<CodeletInner<L, P>>,
    arguments: Option<(L::Handles, P)>,
}

impl<L: AccessList, P: Send + 'static> Job for TypedJob<L, P> {
    fn facts(&self) -> &Arc<CodeletFacts> {
        &self.codelet.facts
    }

    fn run(&self, implementation: usize, worker: WorkerId, submitter: &Submitter) {
        let Some((handles, params)) = &self.arguments else { return };
        let mut guards = L::guards(handles, worker.0 as usize);
        let context = Context { params, worker, submitter };
        (self.codelet.kernels[implementation])(&context, L::views(&mut guards));
    }

    fn visit<'h>(&'h self, visitor: &mut dyn FnMut(&'h Arc<DataHeader>, Mode)) {
        if let Some((handles, _)) = &self.arguments {
            L::visit(handles, visitor);
        }
    }

    fn clear(&mut self) {
        self.arguments = None;
    }

    fn as_any(&mut self) -> &mut dyn Any {
        self
    }
}

/// Puts a task's kernel and arguments into `place`, in the box that is there if it fits.
pub(crate) fn put_job<L: AccessList, P: Send + 'static>(
    place: &mut Option<Box<dyn Job>>,
    codelet: &Codelet<L, P>,
    handles: L::Handles,
    params: P,
) {
    if let Some(job) = place.as_mut().and_then(|job| job.as_any().downcast_mut::<TypedJob<L, P>>()) {
        if !Arc::ptr_eq(&job.codelet, &codelet.inner) {
            job.codelet = Arc::clone(&codelet.inner);
        }
        job.arguments = Some((handles, params));
    } else {
        *place = Some(Box::new(TypedJob { codelet: Arc::clone(&codelet.inner), arguments: Some((handles, params)) }));
    }
}

//! A kernel with its arguments, as the record of a task keeps it.

use super::codelet::{Codelet, CodeletFacts, CodeletInner, Context};
use super::submit::Accessed;
use crate::data::access::AccessList;
use crate::data::{Begun, DataHeader};
use crate::parallel::Code;
use crate::parallel::crew::{Crew, Team};
use crate::recording::{RecordedJob, TypedRecordedJob};
use sched_graph::AccessMode;
use std::any::Any;
use std::sync::Arc;

/// A kernel with its arguments, with types erased.
pub(crate) trait Job: Any + Send {
    fn facts(&self) -> &Arc<CodeletFacts>;
    /// Runs an implementation on a crew. Unwinds when the kernel does.
    fn run(&self, implementation: usize, crew: &Crew<'_>);
    /// Visits each data access.
    fn visit<'h>(&'h self, visitor: &mut dyn FnMut(&'h Arc<DataHeader>, AccessMode));
    /// Footprint for the codelet's model, if it has one; the accesses are in the codelet's order.
    fn footprint(&self, accesses: &[Accessed<'_>]) -> Option<u64>;
    /// Drops the arguments; those of recorded tasks stay.
    fn clear(&mut self) {}
    /// The job of a recorded task, which keeps the arguments of this one.
    fn recorded(self: Box<Self>) -> Option<Box<dyn RecordedJob>> {
        None
    }
}

pub(crate) struct TypedJob<L: AccessList, P> {
    pub(crate) codelet: Arc<CodeletInner<L, P>>,
    pub(crate) arguments: Option<(L::Handles, P)>,
}

impl<L: AccessList, P: Send + 'static> Job for TypedJob<L, P> {
    fn facts(&self) -> &Arc<CodeletFacts> {
        &self.codelet.facts
    }

    fn run(&self, implementation: usize, crew: &Crew<'_>) {
        let Some((handles, params)) = &self.arguments else { return };
        self.codelet.run(handles, params, implementation, crew);
    }

    fn visit<'h>(&'h self, visitor: &mut dyn FnMut(&'h Arc<DataHeader>, AccessMode)) {
        if let Some((handles, _)) = &self.arguments {
            L::visit(handles, visitor);
        }
    }

    fn footprint(&self, accesses: &[Accessed<'_>]) -> Option<u64> {
        let (_, params) = self.arguments.as_ref()?;
        self.codelet.footprint(params, accesses)
    }

    fn clear(&mut self) {
        self.arguments = None;
    }

    fn recorded(self: Box<Self>) -> Option<Box<dyn RecordedJob>> {
        let TypedJob { codelet, arguments } = *self;
        Some(Box::new(TypedRecordedJob::new(codelet, arguments?)))
    }
}

impl<L: AccessList, P: Send + 'static> CodeletInner<L, P> {
    /// Runs an implementation on a crew. Unwinds when the kernel does.
    #[inline(always)]
    pub(crate) fn run(&self, handles: &L::Handles, params: &P, implementation: usize, crew: &Crew<'_>) {
        match &self.kernels[implementation] {
            Code::Once(kernel) => {
                let mut guards = L::guards(handles, crew.first(), Begun(()));
                let context = Context { params, worker: crew.first(), team: Team::of(crew) };
                kernel(&context, L::views(&mut guards));
            }
            Code::Together(run) => run(handles, params, crew),
        }
    }
}

/// Stores the kernel and the `arguments` of a task in `place`, in the existing box if it fits.
// Arguments are made where they are stored: made before, they would go through memory.
#[inline(always)]
pub(crate) fn put_job<L: AccessList, P: Send + 'static>(
    place: &mut Option<Box<dyn Job>>,
    codelet: &Codelet<L, P>,
    arguments: impl FnOnce() -> (L::Handles, P),
) {
    let job = place.as_mut().map(|job| &mut **job as &mut dyn Any);
    if let Some(job) = job.and_then(|job| job.downcast_mut::<TypedJob<L, P>>()) {
        if !Arc::ptr_eq(&job.codelet, &codelet.inner) {
            job.codelet = Arc::clone(&codelet.inner);
        }
        job.arguments = Some(arguments());
    } else {
        *place = Some(Box::new(TypedJob { codelet: Arc::clone(&codelet.inner), arguments: Some(arguments()) }));
    }
}

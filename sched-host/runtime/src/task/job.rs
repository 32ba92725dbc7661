//! A kernel with its arguments, as the record of a task keeps it.

use super::codelet::{Codelet, CodeletFacts, CodeletInner, Context};
use super::submit::Accessed;
use crate::data::DataHeader;
use crate::data::access::AccessList;
use crate::parallel::Code;
use crate::parallel::crew::{Crew, Team};
use crate::recording::RecordedJob;
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
    /// Drops the arguments.
    fn clear(&mut self);
    /// The job of a recorded task, which keeps its arguments.
    fn recorded(self: Box<Self>) -> Box<dyn Job>;
    /// The arguments, if they may change: those of recorded tasks.
    fn arguments(&mut self) -> Option<&mut dyn Arguments> {
        None
    }
}

/// Arguments of a recorded task.
pub(crate) trait Arguments {
    /// The parameters.
    fn params(&mut self) -> &mut dyn Any;
    /// Visits each handle.
    fn each_handle(&mut self, visitor: &mut dyn FnMut(&mut dyn Any));
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
        match &self.codelet.kernels[implementation] {
            Code::Once(kernel) => {
                let mut guards = L::guards(handles, crew.first());
                let context = Context { params, worker: crew.first(), team: Team::of(crew) };
                kernel(&context, L::views(&mut guards));
            }
            Code::Together(run) => run(handles, params, crew),
        }
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

    fn recorded(self: Box<Self>) -> Box<dyn Job> {
        Box::new(RecordedJob(*self))
    }
}

/// Stores the kernel and the arguments of a task in `place`, in the existing box if it fits.
#[inline(always)]
pub(crate) fn put_job<L: AccessList, P: Send + 'static>(
    place: &mut Option<Box<dyn Job>>,
    codelet: &Codelet<L, P>,
    handles: L::Handles,
    params: P,
) {
    let job = place.as_mut().map(|job| &mut **job as &mut dyn Any);
    if let Some(job) = job.and_then(|job| job.downcast_mut::<TypedJob<L, P>>()) {
        if !Arc::ptr_eq(&job.codelet, &codelet.inner) {
            job.codelet = Arc::clone(&codelet.inner);
        }
        job.arguments = Some((handles, params));
    } else {
        *place = Some(Box::new(TypedJob { codelet: Arc::clone(&codelet.inner), arguments: Some((handles, params)) }));
    }
}

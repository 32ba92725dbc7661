//! The jobs of recorded tasks, which keep their arguments.

use super::Recorded;
use super::kept::{Changing, Kept};
use crate::data::DataHeader;
use crate::data::access::AccessList;
use crate::parallel::crew::Crew;
use crate::task::codelet::{CodeletFacts, CodeletInner};
use crate::task::job::Job;
use crate::task::submit::Accessed;
use sched_graph::AccessMode;
use std::any::Any;
use std::sync::Arc;

/// The job of a recorded task, with types erased.
pub(crate) trait RecordedJob: Job + Sync {
    /// Changes the parameters.
    fn change_params(&self, right: &mut Changing<'_>, change: &mut dyn FnMut(&mut dyn Any));
    /// Changes each handle.
    fn change_handles(&self, right: &mut Changing<'_>, change: &mut dyn FnMut(&mut dyn Any));
    /// Drops the arguments, code of the application.
    fn let_go(&self, right: &mut Changing<'_>);
}

/// See [`RecordedJob`].
pub(crate) struct TypedRecordedJob<L: AccessList, P> {
    pub(crate) codelet: Arc<CodeletInner<L, P>>,
    arguments: Kept<(L::Handles, P)>,
}

impl<L: AccessList, P: Send + 'static> TypedRecordedJob<L, P> {
    pub(crate) fn new(codelet: Arc<CodeletInner<L, P>>, arguments: (L::Handles, P)) -> TypedRecordedJob<L, P> {
        TypedRecordedJob { codelet, arguments: Kept::new(arguments) }
    }
}

impl<L: AccessList, P: Send + 'static> Job for TypedRecordedJob<L, P> {
    fn facts(&self) -> &Arc<CodeletFacts> {
        &self.codelet.facts
    }

    fn run(&self, implementation: usize, crew: &Crew<'_>) {
        let Some((handles, params)) = self.arguments.get() else { return };
        self.codelet.run(handles, params, implementation, crew);
    }

    fn visit<'h>(&'h self, visitor: &mut dyn FnMut(&'h Arc<DataHeader>, AccessMode)) {
        if let Some((handles, _)) = self.arguments.get() {
            L::visit(handles, visitor);
        }
    }

    fn footprint(&self, accesses: &[Accessed<'_>]) -> Option<u64> {
        let (_, params) = self.arguments.get()?;
        self.codelet.footprint(params, accesses)
    }
}

impl<L: AccessList, P: Send + 'static> RecordedJob for TypedRecordedJob<L, P> {
    fn change_params(&self, right: &mut Changing<'_>, change: &mut dyn FnMut(&mut dyn Any)) {
        self.arguments.change(right, |(_, params)| change(params));
    }

    fn change_handles(&self, right: &mut Changing<'_>, change: &mut dyn FnMut(&mut dyn Any)) {
        self.arguments.change(right, |(handles, _)| L::each(handles, change));
    }

    fn let_go(&self, right: &mut Changing<'_>) {
        drop(self.arguments.take(right));
    }
}

/// What stands for the job of a recorded task in its record: it is there, or taken, as that of any other task.
pub(super) struct JobOfRecord {
    pub(super) recorded: Arc<Recorded>,
    pub(super) index: usize,
}

impl Job for JobOfRecord {
    fn facts(&self) -> &Arc<CodeletFacts> {
        self.recorded.job(self.index).facts()
    }

    fn run(&self, implementation: usize, crew: &Crew<'_>) {
        self.recorded.job(self.index).run(implementation, crew);
    }

    fn visit<'h>(&'h self, visitor: &mut dyn FnMut(&'h Arc<DataHeader>, AccessMode)) {
        self.recorded.job(self.index).visit(visitor);
    }

    fn footprint(&self, accesses: &[Accessed<'_>]) -> Option<u64> {
        self.recorded.job(self.index).footprint(accesses)
    }
}

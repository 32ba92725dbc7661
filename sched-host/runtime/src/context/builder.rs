//! Building a context.

use super::{ContextCore, ContextError, SchedContext};
use crate::Submitter;
use crate::task::ahead::Ahead;
use sched_core::WorkerSet;
use sched_policy::Policy;
use sched_tree::context::{ContextConfig, WantedPolicy, worker_ids};
use sched_tree::{ContextFacts, Tree};
use std::ops::RangeInclusive;
use std::sync::Arc;
use std::sync::atomic::Ordering::SeqCst;

/// Settings of a context before it is built; see [`Submitter::context`].
#[must_use = "a context is made by `build`"]
pub struct ContextBuilder<'a> {
    submitter: &'a Submitter,
    name: String,
    policy: Option<WantedPolicy>,
    workers: Option<Vec<u32>>,
    priorities: RangeInclusive<i32>,
    user_data: Vec<u8>,
}

impl<'a> ContextBuilder<'a> {
    pub(super) fn new(submitter: &'a Submitter, name: String) -> ContextBuilder<'a> {
        ContextBuilder {
            submitter,
            name,
            policy: None,
            workers: None,
            priorities: i32::MIN..=i32::MAX,
            user_data: Vec::new(),
        }
    }

    /// Sets the policy: the name of a shipped one, or the path of a KDL file. The default is the policy of the default
    /// context.
    pub fn policy(mut self, name_or_path: impl Into<String>) -> Self {
        self.policy = Some(WantedPolicy::Named(name_or_path.into()));
        self
    }

    /// Sets a policy composed by the program.
    pub fn policy_value(mut self, policy: Policy) -> Self {
        self.policy = Some(WantedPolicy::Value(Box::new(policy)));
        self
    }

    /// Sets the workers, by number; may be empty. The default is all workers of the runtime. They also stay in their
    /// present contexts.
    pub fn workers(mut self, workers: impl IntoIterator<Item = u32>) -> Self {
        self.workers = Some(workers.into_iter().collect());
        self
    }

    /// Sets the allowed priorities of tasks of this context; any by default. A priority out of range is refused rather
    /// than clamped, since clamping would silently change the order of tasks. A task without a priority has 0, or the
    /// bound nearest to 0.
    pub fn priorities(mut self, range: RangeInclusive<i32>) -> Self {
        self.priorities = range;
        self
    }

    /// Attaches data to the context, for its components ([`Node::context_data`](sched_core::Node::context_data)).
    pub fn user_data(mut self, data: impl Into<Vec<u8>>) -> Self {
        self.user_data = data.into();
        self
    }

    /// Creates the context.
    ///
    /// # Errors
    /// See [`ContextError`]; no context is created in that case.
    pub fn build(self) -> Result<SchedContext, ContextError> {
        let core = &self.submitter.core;
        if core.stop.load(SeqCst) {
            return Err(ContextError::Ended { context: self.name });
        }
        let (min, max) = (*self.priorities.start(), *self.priorities.end());
        if min > max {
            return Err(ContextError::Priorities { context: self.name, min, max });
        }
        let count = core.facts.len();
        let workers = match self.workers {
            Some(workers) => worker_ids(workers, count)?,
            None => WorkerSet::first(count as u32),
        };
        let policy = match self.policy {
            Some(policy) => policy.find()?,
            None => (*core.roster.default.config().policy).clone(),
        };
        let _opening = core.roster.opening.lock();
        if core.roster.contexts().any(|context| context.name() == self.name) {
            return Err(ContextError::NameTaken { name: self.name });
        }
        let parts = core.policy_env.lay(&policy, &workers)?;
        core.note_parts(&parts);
        let place = core.roster.free_place(|number| {
            let (services, ledger) = (Arc::<_>::clone(&core.backend), Arc::clone(&core.ledger));
            let ahead = Arc::new(Ahead::new(number, Arc::clone(&core.backend), Arc::clone(&core.ledger)));
            ahead.serve(core);
            let lookahead = Some(Arc::<Ahead>::clone(&ahead) as _);
            let tree = Tree::assemble_in_context(
                Vec::new(),
                &core.facts,
                services,
                ledger,
                core.policy_env.seed,
                lookahead,
                ContextFacts::default(),
            )
            .expect("it has no nodes yet");
            ContextCore::new(number, tree, ahead, String::new(), policy.clone(), WorkerSet::new())
        });
        let context = place.ok_or(ContextError::TooMany { most: super::roster::MOST })?;
        let _changing = context.changing.lock();
        context.tree.set_context(ContextFacts { name: self.name.clone(), user_data: self.user_data });
        context.tree.swap(parts, &|| core.roster.renew()).map_err(|error| ContextError::of_swap(&self.name, error))?;
        context.tree.forget_past();
        context.set_priorities(&self.priorities, core.bound.is_some() || core.is_ending.load(SeqCst));
        {
            let mut config = context.config.lock();
            *config = ContextConfig::new(self.name, policy, workers);
            context.before.store(context.in_flight.counts().submitted, SeqCst);
        }
        context.in_flight.open();
        core.leave_no_more();
        core.roster.renew();
        Ok(SchedContext::of(self.submitter, context))
    }
}

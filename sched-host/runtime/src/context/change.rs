//! Changes of a running context: its workers, its policy, its end.

use super::{ContextCore, ContextError, SchedContext};
use crate::Core;
use sched_core::WorkerSet;
use sched_graph::ContextId;
use sched_policy::{Policy, PolicyEdit};
use sched_tree::context::{NewPolicy, WantedPolicy, exchange, faults_of, worker_ids};
use std::sync::atomic::Ordering::SeqCst;

impl SchedContext {
    /// Adds workers to the context. Present members are no error.
    ///
    /// # Errors
    /// See [`ContextError`]; the context is then unchanged.
    pub fn add_workers(&self, workers: impl IntoIterator<Item = u32>) -> Result<(), ContextError> {
        let added = worker_ids(workers, self.submitter.core.facts.len())?;
        self.exchange_workers(&added, &WorkerSet::new())
    }

    /// Removes workers from the context. Workers that are no members are no error; all may be removed. Running tasks
    /// are not disturbed.
    ///
    /// # Errors
    /// See [`ContextError`]; the context is then unchanged. A policy may need the removed workers.
    pub fn remove_workers(&self, workers: impl IntoIterator<Item = u32>) -> Result<(), ContextError> {
        let removed = worker_ids(workers, self.submitter.core.facts.len())?;
        self.exchange_workers(&WorkerSet::new(), &removed)
    }

    /// Adds and removes workers, which exist.
    pub(super) fn exchange_workers(&self, added: &WorkerSet, removed: &WorkerSet) -> Result<(), ContextError> {
        self.change(NewPolicy::Same, |workers| {
            workers.union_with(added);
            for worker in removed.iter() {
                workers.remove(worker);
            }
        })
    }

    /// Replaces the policy: the name of a shipped one, or the path of a KDL file.
    ///
    /// ```
    /// use sched_runtime::Runtime;
    /// # use std::sync::Arc;
    /// # let components = sched_tree::plugin::Registry::compiled_in();
    /// # let runtime = Runtime::builder().registry(Arc::new(components)).workers(2).build()?;
    /// let context = runtime.default_context();
    /// context.swap_policy("tree-prio")?;
    /// assert_eq!(context.policy(), "tree-prio");
    /// let wrong = context.swap_policy("tree-pro").unwrap_err().to_string();
    /// assert!(wrong.contains("tree-pro"), "{wrong}");
    /// assert_eq!(context.policy(), "tree-prio", "it goes on as it was");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// See [`ContextError`]; the present policy then stays, with all tasks.
    pub fn swap_policy(&self, name_or_path: impl Into<String>) -> Result<(), ContextError> {
        self.change(NewPolicy::Other(Box::new(WantedPolicy::Named(name_or_path.into()).find()?)), |_| {})
    }

    /// Replaces the policy by one composed by the program.
    ///
    /// # Errors
    /// As for [`swap_policy`](Self::swap_policy).
    pub fn swap_policy_value(&self, policy: Policy) -> Result<(), ContextError> {
        self.change(NewPolicy::Other(Box::new(policy)), |_| {})
    }

    /// Builds the tree of the context anew from its present policy, with the components that the last
    /// [rescan](crate::Submitter::rescan) found. Tasks move to the new tree; components of the old one are dropped. A
    /// part that other contexts share stays as it is, of its old build, until none of them has it.
    ///
    /// # Errors
    /// As for [`swap_policy`](Self::swap_policy).
    pub fn rebuild(&self) -> Result<(), ContextError> {
        let policy = Policy::clone(&self.context.config().policy);
        self.change(NewPolicy::Other(Box::new(policy)), |_| {})
    }

    /// Changes the shape of the policy: adds components, or removes them, while tasks run. Tasks of components that
    /// vanish, and of those that do not [keep their state](sched_core::Info::keeps_state), enter the tree anew; a
    /// component that keeps it lives on where its path stays.
    ///
    /// ```
    /// use sched_policy::PolicyEdit;
    /// use sched_runtime::Runtime;
    /// # use std::sync::Arc;
    /// # let components = sched_tree::plugin::Registry::compiled_in();
    /// # let runtime = Runtime::builder().registry(Arc::new(components)).policy("tree-eager").workers(2).build()?;
    /// let context = runtime.default_context();
    /// context.edit(&PolicyEdit::new().remove_parent("fifo")).unwrap_err(); // Nothing would keep tasks.
    /// context.edit(&PolicyEdit::new().add_parent("worker", "best-implementation"))?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// See [`ContextError`]; the present tree then stays, with all tasks.
    pub fn edit(&self, edit: &PolicyEdit) -> Result<(), ContextError> {
        let policy = edit.apply(Policy::clone(&self.context.config().policy))?;
        self.change(NewPolicy::Edited(Box::new(policy)), |_| {})
    }

    fn change(&self, policy: NewPolicy, workers: impl FnOnce(&mut WorkerSet)) -> Result<(), ContextError> {
        let _changing = self.context.changing.lock();
        if !self.context.in_flight.is_there(self.serial) {
            return Err(self.deleted());
        }
        reshape(&self.submitter.core, &self.context, policy, workers)
    }

    /// Deletes the context: it accepts no more tasks, and ends after those that it has. Workers in no other context
    /// move to the default one. Its failed tasks are reported by the runtime's next `wait_all`.
    ///
    /// # Errors
    /// See [`ContextError`]; the context then continues. One is that the policy of the default context does not fit the
    /// workers that would come to it.
    pub fn delete(&self) -> Result<(), ContextError> {
        let (core, context) = (&self.submitter.core, &self.context);
        if context.number == ContextId::DEFAULT {
            return Err(ContextError::Default);
        }
        if self.is_inside() {
            return Err(ContextError::Inside { context: self.name().to_owned() });
        }
        if !context.in_flight.close(self.serial) {
            return Err(self.deleted());
        }
        let reopened = |error| {
            context.in_flight.reopen(self.serial);
            error
        };
        core.wait_until_ended(self).map_err(|error| {
            reopened(ContextError::Stalled { context: self.name().to_owned(), error: error.into() })
        })?;
        let _changing = context.changing.lock();
        let others = || core.roster.contexts().filter(|other| other.number != context.number);
        let workers = context.config.lock().workers.clone();
        let idle: WorkerSet =
            workers.iter().filter(|worker| !others().any(|other| other.tree.serves(*worker))).collect();
        // They are in both for a moment: what cannot be done is found while nothing is lost.
        let default = &core.roster.default;
        let default_changing = default.changing.lock();
        if !idle.is_empty() {
            reshape(core, default, NewPolicy::Same, |workers| workers.union_with(&idle)).map_err(reopened)?;
        }
        if let Err(error) = context.tree.swap(Vec::new(), &|| core.roster.renew()) {
            // Where they cannot be taken back, they stay in both.
            let _ = reshape(core, default, NewPolicy::Same, |workers| {
                for worker in idle.iter() {
                    workers.remove(worker);
                }
            });
            return Err(reopened(ContextError::of_swap(self.name(), error)));
        }
        drop(default_changing);
        core.roster.past.lock().extend(faults_of([(self.name().to_owned(), &context.tree)]));
        core.outcomes.forget_context(context.number);
        context.config.lock().workers = WorkerSet::new();
        context.in_flight.free(self.serial);
        Ok(())
    }

    fn deleted(&self) -> ContextError {
        ContextError::Deleted { context: self.name().to_owned() }
    }
}

/// Lays the given policy, or the present one, over the changed set of workers, and exchanges the trees. The caller
/// holds `changing`.
fn reshape(
    core: &Core,
    context: &ContextCore,
    policy: NewPolicy,
    change: impl FnOnce(&mut WorkerSet),
) -> Result<(), ContextError> {
    if core.stop.load(SeqCst) {
        return Err(ContextError::Ended { context: context.name() });
    }
    let lay = |policy: &Policy, workers: &WorkerSet| {
        let parts = core.policy_env.lay(policy, workers)?;
        core.note_parts(&parts);
        Ok(parts)
    };
    let renew = || core.roster.renew();
    if let Some(config) = exchange(&context.tree, &context.config(), policy, change, lay, &renew)? {
        wake_for_what_is_in_no_tree(core, &config.workers);
        *context.config.lock() = config;
        if core.leave_no_more() {
            core.roster.renew();
        }
    }
    Ok(())
}

/// Wakes the workers of a context that was changed, if tasks of replays wait [at home](crate::recording), or others [at
/// hand](crate::worker::at_hand): the exchange of trees knows nothing of these, and those who looked for them may have
/// left.
fn wake_for_what_is_in_no_tree(core: &Core, workers: &WorkerSet) {
    if core.at_home.load(SeqCst) > 0 || !core.hands.iter().all(|hand| hand.is_empty()) {
        workers.iter().for_each(|worker| _ = core.backend.sleep.wake(worker.index()));
    }
}

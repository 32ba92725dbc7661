//! Scheduling contexts, each with a tree of its own. Policies and workers are exchanged while the simulation runs, by
//! the runtime's swap of trees.

use super::{Action, Engine};
use crate::Platform;
use crate::backend::SimBackend;
use crate::context::{Change, When};
use crate::error::SimError;
use crate::not_made;
use crate::outcome::{ContextStats, Swapped};
use sched_core::WorkerSet;
use sched_graph::TaskId;
use sched_policy::Policy;
use sched_text::Findings;
use sched_tree::context::{ContextConfig, ContextError, NewPolicy, exchange, faults_of, lay, survey_of};
use sched_tree::plugin::Registry;
use sched_tree::{ContextFacts, Fault, Ledger, NodeState, Part, Services, Tree};
use std::ops::RangeInclusive;
use std::sync::Arc;
use std::time::Duration;

/// A context while the simulation runs.
pub(super) struct LiveContext {
    pub(super) tree: Arc<Tree>,
    config: ContextConfig,
    priorities: RangeInclusive<i32>,
    /// Policy at the beginning.
    policy: String,
    swaps: Vec<Swapped>,
    /// Number of its tasks.
    tasks: u64,
    /// Number of its tasks that have ended.
    ended: u64,
    /// Time of the submission of its first task.
    begin: Option<u64>,
    /// Time of the end of its last task.
    end: u64,
}

/// Components and seed that policies are laid over the platform with.
pub(crate) struct PolicyEnv {
    pub(crate) registry: Arc<Registry>,
    /// Seed of the random choices of every component.
    pub(crate) seed: u64,
}

/// A context to open.
pub(crate) struct Opening {
    pub(crate) name: String,
    pub(crate) policy: Policy,
    pub(crate) workers: WorkerSet,
    pub(crate) priorities: RangeInclusive<i32>,
    pub(crate) parts: Vec<Part>,
    /// What components see of the application's.
    pub(crate) user_data: Vec<u8>,
}

/// A planned change: its place in the engine's list.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct ChangeId(u32);

/// A change of a context at a later time.
pub(crate) struct PlannedChange {
    pub(crate) context: usize,
    pub(crate) when: When,
    /// `None` once it is made.
    pub(crate) change: Option<Change>,
}

impl PolicyEnv {
    /// Builds the components of a policy laid over some workers of the platform.
    pub(crate) fn lay(&self, platform: &Platform, policy: &Policy, workers: &WorkerSet) -> Result<Vec<Part>, Findings> {
        lay(policy, platform, workers, &self.registry, false)
    }
}

impl LiveContext {
    pub(super) fn new(
        opening: Opening,
        backend: &Arc<SimBackend>,
        ledger: &Arc<Ledger>,
        seed: u64,
    ) -> Result<LiveContext, SimError> {
        let Opening { name, policy, workers, priorities, parts, user_data } = opening;
        let facts = ContextFacts { name: name.clone(), user_data };
        let services: Arc<dyn Services> = Arc::<SimBackend>::clone(backend);
        let lookahead = backend.foresees.then(|| Arc::<SimBackend>::clone(backend) as _);
        let (ledger, machine) = (Arc::clone(ledger), backend.platform.worker_facts());
        let tree = Tree::assemble_in_context(parts, &machine, services, ledger, seed, lookahead, facts);
        let tree = tree.map_err(|error| not_made(&name, ContextError::of_swap(&name, error)))?;
        Ok(LiveContext {
            tree: Arc::new(tree),
            policy: policy.name.clone(),
            config: ContextConfig::new(name, policy, workers),
            priorities,
            swaps: Vec::new(),
            tasks: 0,
            ended: 0,
            begin: None,
            end: 0,
        })
    }

    /// Its workers now.
    pub(super) fn workers(&self) -> &WorkerSet {
        &self.config.workers
    }

    /// Counts one more task of this context.
    pub(super) fn count_task(&mut self) {
        self.tasks += 1;
    }

    /// Priority of a task in this context, given the priority in the graph.
    pub(super) fn priority(&self, given: i32) -> i32 {
        if given == 0 { 0.clamp(*self.priorities.start(), *self.priorities.end()) } else { given }
    }

    fn stats(&self) -> ContextStats {
        ContextStats {
            name: self.config.name.clone(),
            policy: self.policy.clone(),
            swaps: self.swaps.clone(),
            workers: self.config.workers.iter().collect(),
            tasks: self.tasks,
            makespan: Duration::from_nanos(self.end.saturating_sub(self.begin.unwrap_or(0))),
        }
    }
}

impl Engine<'_> {
    /// The context of a task.
    pub(super) fn context_of(&self, task: TaskId) -> usize {
        self.backend.spec(task).context.index()
    }

    /// Records the submission of a task, which may be the first of its context.
    pub(super) fn note_submitted(&mut self, task: TaskId) {
        let context = self.context_of(task);
        self.contexts[context].begin.get_or_insert(self.now);
        self.tally_submitted(context, task);
    }

    /// Records the end of a task. Changes that are due after it are made once the current action is done.
    pub(super) fn note_ended(&mut self, task: TaskId) {
        let number = self.context_of(task);
        let context = &mut self.contexts[number];
        context.ended += 1;
        context.end = self.now;
        let ended = context.ended;
        self.tally_ended(number, task);
        let due = When::AfterTasks(ended);
        self.plan_changes(|planned| planned.context == number && planned.when == due);
    }

    /// Plans the changes that are due at the beginning, or at a given time.
    pub(super) fn plan_timed_changes(&mut self) {
        for change in 0..self.planned.len() {
            let id = ChangeId(change as u32);
            match self.planned[change].when {
                When::At(time) => {
                    let time = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
                    self.plan(time, Action::Change(id));
                }
                When::AfterTasks(0) => self.plan(0, Action::Change(id)),
                When::AfterTasks(_) => {}
            }
        }
    }

    fn plan_changes(&mut self, due: impl Fn(&PlannedChange) -> bool) {
        for change in 0..self.planned.len() {
            if due(&self.planned[change]) {
                self.plan(self.now, Action::Change(ChangeId(change as u32)));
            }
        }
    }

    /// Changes a context, unless all of its tasks have ended.
    pub(super) fn change(&mut self, change: ChangeId) {
        let planned = &mut self.planned[change.0 as usize];
        let at = planned.context;
        if self.contexts[at].ended == self.contexts[at].tasks {
            return;
        }
        let Some(change) = planned.change.take() else { return };
        if let Err(error) = self.exchange(at, change) {
            let context = self.contexts[at].config.name.clone();
            let done = format!("changed at {:?}", Duration::from_nanos(self.now));
            self.error = Some(SimError::Context { context, done, error });
        }
    }

    pub(super) fn exchange(&mut self, at: usize, change: Change) -> Result<(), ContextError> {
        let context = &mut self.contexts[at];
        let (mut added, mut removed) = (WorkerSet::new(), WorkerSet::new());
        let mut policy = NewPolicy::Same;
        match change {
            Change::Policy(new) => policy = NewPolicy::Other(new),
            Change::Edit(edit) => {
                let edited = edit.apply(Policy::clone(&context.config.policy))?;
                policy = NewPolicy::Edited(Box::new(edited));
            }
            Change::AddWorkers(workers) => added = workers,
            Change::RemoveWorkers(workers) => removed = workers,
            Change::Workers { added: new, removed: old } => (added, removed) = (new, old),
        }
        let swapped = match &policy {
            NewPolicy::Other(policy) => Some(Swapped {
                policy: policy.name.clone(),
                at: Duration::from_nanos(self.now),
                after_tasks: context.ended,
            }),
            NewPolicy::Same | NewPolicy::Edited(_) => None,
        };
        let platform = Arc::clone(&self.backend.platform);
        let lay = |policy: &Policy, workers: &WorkerSet| self.policy_env.lay(&platform, policy, workers);
        let change = |workers: &mut WorkerSet| {
            workers.union_with(&added);
            for worker in removed.iter() {
                workers.remove(worker);
            }
        };
        if let Some(config) = exchange(&context.tree, &context.config, policy, change, lay, &|| {})? {
            context.config = config;
            context.swaps.extend(swapped);
            self.changes += 1;
            self.roster_version += 1;
        }
        self.settle_notes();
        Ok(())
    }

    /// Every context by its name in reports (empty if there is only one), with its tree.
    fn named_trees(&self) -> impl Iterator<Item = (String, &Tree)> {
        let single = self.contexts.len() == 1;
        let name = move |context: &LiveContext| if single { String::new() } else { context.config.name.clone() };
        self.contexts.iter().map(move |context| (name(context), &*context.tree))
    }

    /// Where tasks are now.
    pub(super) fn survey(&self) -> Vec<NodeState> {
        survey_of(self.named_trees())
    }

    /// Faults of components so far.
    pub(super) fn faults(&self) -> Vec<Fault> {
        faults_of(self.named_trees())
    }

    /// Contexts that have unfinished tasks and no workers.
    pub(super) fn without_workers(&self) -> Vec<String> {
        let idle = |context: &&LiveContext| context.ended < context.tasks && context.config.workers.is_empty();
        self.contexts.iter().filter(idle).map(|context| context.config.name.clone()).collect()
    }

    /// Statistics of each context.
    pub(super) fn context_stats(&self) -> Vec<ContextStats> {
        self.contexts.iter().map(LiveContext::stats).collect()
    }
}

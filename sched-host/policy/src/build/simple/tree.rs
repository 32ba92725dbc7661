//! Translation of simple-scheduler flags to a policy.

use super::words::SOURCE;
use super::{Decide, Limit, Queue, QueuesBelow, Ready, SimpleFlags};
use crate::catalogue::Catalogue;
use crate::element::{Component, Each, Element, Policy, Shared, Use};
use crate::level::Level;
use miette::NamedSource;
use sched_core::{ComponentInfo, Value};
use sched_text::Span;
use sched_text::{Finding, Findings};
use std::sync::Arc;

/// Tasks in the queues for those without a calibrated model: one waits while another is executed.
const SHORT: i64 = 1;

/// Names of the shared definitions above each worker and each combined worker.
const LEAF: &str = "leaf";
const TEAM: &str = "team";

/// Name of combined workers, as a level and as a leaf.
const COMBINED: &str = "combined-worker";

/// The bottom of a tree: elements for workers.
struct Leaves {
    /// For each worker.
    worker: Element,
    /// For each combined worker, where they are wanted.
    team: Option<Each>,
}

impl Leaves {
    /// Puts `above` above each worker and each combined worker.
    fn each(&self, above: impl Fn(Element) -> Element) -> Vec<Element> {
        let workers = Each::new(Level::Worker).child(above(self.worker.clone()));
        let teams =
            self.team.clone().map(|teams| Each { children: teams.children.into_iter().map(above).collect(), ..teams });
        std::iter::once(workers).chain(teams).map(Element::from).collect()
    }
}

impl SimpleFlags {
    /// The policy for the components of `catalogue`, which defines the decision's lookahead.
    ///
    /// It is [valid](crate::check()) with the stock components; declarations of others may break a rule.
    ///
    /// # Errors
    /// If flags are missing without which tasks would not move, or would reach a decision that cannot take them.
    pub fn policy(&self, name: impl Into<String>, catalogue: &Catalogue) -> Result<Policy, Findings> {
        SimpleFlags::user_choice(name, std::slice::from_ref(self), catalogue)
    }

    /// A policy with several schedulers, among which the application chooses for each task by its
    /// [`sched_data`](sched_core::Task::sched_data), counted from 0. Each worker takes tasks from them in their order.
    /// With one scheduler, there is nothing to choose.
    ///
    /// # Errors
    /// As for [`policy`](Self::policy), for each scheduler; and when there is none.
    pub fn user_choice(
        name: impl Into<String>,
        schedulers: &[SimpleFlags],
        catalogue: &Catalogue,
    ) -> Result<Policy, Findings> {
        let mut findings: Vec<Finding> = schedulers.iter().flat_map(|flags| flags.findings(catalogue)).collect();
        if schedulers.is_empty() {
            let finding = Finding::error("a simple scheduler needs a component that decides");
            findings.push(
                finding.help("give one, such as `eager decide-workers fifo-above`").breaks("V7").code("policy::flags"),
            );
        }
        if !findings.is_empty() {
            return Err(Findings::new(SOURCE, findings));
        }
        let several = schedulers.len() > 1;
        let best = schedulers.iter().any(|flags| flags.best_implementation);
        // Leaves with several parents are shared.
        let share = several || schedulers.iter().any(|flags| flags.perfmodel);
        let mut shared = Vec::new();
        let mut leaf = |name: &str, worker: &str, level: Level| -> Element {
            let mut leaf = Component::new(worker);
            leaf = if best { Component::new("best-implementation").child(leaf) } else { leaf };
            leaf = if several { Component::new("stage").child(leaf) } else { leaf };
            if !share {
                return leaf.into();
            }
            shared.push(Shared::new(name, leaf).each(level));
            Use::new(name).into()
        };
        let worker = leaf(LEAF, "worker", Level::Worker);
        let combined = schedulers.iter().any(|flags| flags.combined_workers);
        let teams = Level::from_name(COMBINED).filter(|_| combined);
        let teams = teams.map(|level| Each::new(level).child(leaf(TEAM, COMBINED, level)));
        let trees = schedulers.iter().flat_map(|flags| {
            let team = teams.clone().filter(|_| flags.combined_workers);
            flags.tree(&Leaves { worker: worker.clone(), team }, catalogue)
        });
        let root = match several {
            true => vec![trees.fold(Component::new("user-choice"), Component::child).into()],
            false => trees.collect(),
        };
        Ok(Policy { shared, ..Policy::of_elements(name, root).doc(summary(schedulers)) })
    }

    /// Text of the comment above the policy.
    #[must_use]
    pub fn summary(&self) -> String {
        summary(std::slice::from_ref(self))
    }

    /// From the top to the leaves.
    fn tree(&self, leaves: &Leaves, catalogue: &Catalogue) -> Vec<Element> {
        let mut tree = self.before.over([self.decided(leaves, catalogue)]);
        if self.perfmodel {
            let slot = |name: &str, elements: Vec<Element>| Component { children: elements, ..Component::new(name) };
            let select = Component::new("perfmodel-select").child(slot("perfmodel", tree));
            let select = select.child(slot("calibrator", vec![self.unpredicted("eager-calibration", leaves)]));
            tree = vec![select.child(slot("no-perfmodel", vec![self.unpredicted("eager", leaves)])).into()];
        }
        match self.above {
            Some(queue) => vec![Component { children: tree, ..queue.component() }.into()],
            None => tree,
        }
    }

    fn decided(&self, leaves: &Leaves, catalogue: &Catalogue) -> Component {
        let workers = || Each::new(Level::Worker).child(leaves.worker.clone());
        let share_out = Component::new(if self.work_stealing_below { "work-stealing" } else { "eager" });
        let (level, branch): (Level, Element) = match self.decide {
            Decide::Workers => (Level::Worker, leaves.worker.clone()),
            Decide::MemoryNodes => (Level::MemoryNode, share_out.child(workers()).into()),
            Decide::Archs => (Level::Arch, share_out.child(workers()).into()),
        };
        let branch = match self.below {
            Some(queues) => queues.component(self.info(catalogue)).child(branch).into(),
            None => branch,
        };
        let decided = self.decision.clone().child(Each::new(level).child(branch));
        // Their members' queues are bounded already.
        leaves.team.iter().cloned().fold(decided, Component::child)
    }

    /// A branch for tasks without an expected length.
    fn unpredicted(&self, decision: &str, leaves: &Leaves) -> Element {
        let queue = self.below.map(|queues| queues.queue).or(self.above).unwrap_or(Queue::Fifo);
        let short = |leaf: Element| queue.component().set("ntasks-threshold", Value::Int(SHORT)).child(leaf).into();
        let branch = Component { children: leaves.each(short), ..Component::new(decision) };
        match self.above {
            Some(_) => branch.into(),
            None => queue.component().child(branch).into(),
        }
    }

    fn info<'a>(&self, catalogue: &'a Catalogue) -> Option<&'a ComponentInfo> {
        catalogue.get(&self.decision.name).map(|entry| &*entry.info)
    }

    /// Findings about missing flags.
    fn findings(&self, catalogue: &Catalogue) -> Vec<Finding> {
        let text = self.to_string();
        let name = &self.decision.name;
        // The decision stands first.
        let place = Span::new(0, name.len().min(text.len()));
        let mut findings = Vec::new();
        if self.combined_workers && Level::from_name(COMBINED).is_none() {
            findings.push(Finding::error("policies cannot name combined workers").help("leave out `combined-workers`"));
        }
        let Some(info) = self.info(catalogue) else {
            // The check of the policy reports the unknown component.
            return finish(findings, &text);
        };
        if info.needs_models && !self.perfmodel {
            findings.push(
                Finding::error(format!("`{name}` decides by performance models, and may get tasks without one"))
                    .at(place, "needs models")
                    .help("add `perfmodel`"),
            );
        }
        let bounded = matches!(self.below, Some(QueuesBelow { limit: Limit::Bounded { .. }, .. }));
        // The component that gives tasks only to workers that pull: the decision, or the one that distributes tasks
        // below it.
        let to_workers = self.below.is_none() && !self.best_implementation;
        let shares_out = self.decide != Decide::Workers && !self.work_stealing_below;
        let waits = to_workers && if self.decide == Decide::Workers { info.wakes_workers } else { shares_out };
        let keeps = self.above.is_some() || (info.stores && info.bounds.is_empty());
        if !keeps && (bounded || waits) {
            let (what, fix) = match bounded {
                true => {
                    ("queues below are full", "add `fifo-above`, or `no-limit` for queues below that are never full")
                }
                false => ("no worker asks for one", "add `fifo-above`, or `impl`"),
            };
            findings
                .push(Finding::error(format!("nothing keeps tasks while {what}")).at(place, "keeps no task").help(fix));
        }
        if self.perfmodel && waits && !info.stores {
            findings.push(
                Finding::error("below `perfmodel`, tasks are pushed, and here workers would have to pull them")
                    .at(place, "leaves tasks to be pulled by its workers")
                    .help("add `fifos-below` or `impl`"),
            );
        }
        finish(findings, &text)
    }
}

fn finish(findings: Vec<Finding>, text: &str) -> Vec<Finding> {
    let source = Arc::new(NamedSource::new(SOURCE, text.to_owned()).with_language("kdl"));
    findings.into_iter().map(|finding| finding.breaks("V7").code("policy::flags").in_source(Some(&source))).collect()
}

fn summary(schedulers: &[SimpleFlags]) -> String {
    let flags: Vec<String> = schedulers.iter().map(|flags| format!("`{flags}`")).collect();
    match flags.as_slice() {
        [one] => format!("The simple scheduler {one}."),
        several => format!("Simple schedulers among which the application chooses: {}.", several.join(", ")),
    }
}

impl Queue {
    fn component(self) -> Component {
        self.with(|queue| queue)
    }

    /// The queue with these settings, the one of its order last.
    fn with(self, set: impl FnOnce(Component) -> Component) -> Component {
        match self {
            Queue::Fifo => set(Component::new("fifo")).set("sorted", Value::Bool(false)),
            Queue::Prio => set(Component::new("prio")),
        }
    }
}

impl QueuesBelow {
    fn component(self, decision: Option<&ComponentInfo>) -> Component {
        self.queue.with(|queue| self.settings(queue, decision))
    }

    fn settings(self, mut queue: Component, decision: Option<&ComponentInfo>) -> Component {
        if let Limit::Bounded { ntasks, exp_len } = self.limit {
            // Components look two tasks ahead unless they say otherwise.
            let lookahead = decision.map_or(2, |info| info.lookahead);
            queue = queue.set("ntasks-threshold", Value::Int(i64::from(ntasks.unwrap_or(lookahead))));
            if let Some(length) = exp_len {
                queue = queue.set("exp-len-threshold", Value::Float(length));
            }
        }
        match self.ready {
            Ready::Off => queue,
            Ready::Equals => queue.set("ready", Value::Bool(true)),
            Ready::First => queue.set("ready-first", Value::Bool(true)),
        }
    }
}

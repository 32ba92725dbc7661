//! From a policy to the parts of a tree: lays the policy over workers, and builds its components.

use crate::attendance::Post;
use crate::plugin::Registry;
use crate::{Claims, NodeId, Part, Sharing, Unplaced};
use sched_core::WorkerSet;
use sched_policy::{
    Child, Machine, PlanNode, Policy, SharedNode, SomeWorkers, Source, TreePlan, expand, expand_unchecked,
};
use sched_text::{Finding, Findings};
use std::collections::HashSet;

/// A policy, by value or by name.
#[derive(Clone, Debug, Default)]
pub enum WantedPolicy {
    /// The default: the policy named by the environment, or else `tree-ws`.
    #[default]
    Default,
    /// Name of a shipped policy, or path of a file.
    Named(String),
    /// A policy composed by the program.
    Value(Box<Policy>),
}

impl WantedPolicy {
    /// Finds the policy.
    ///
    /// # Errors
    /// There is no policy of this name, or its text is wrong.
    pub fn find(self) -> Result<Policy, Findings> {
        match self {
            WantedPolicy::Default => Source::from_environment()?.policy(),
            WantedPolicy::Named(name) => Source::find(&name)?.policy(),
            WantedPolicy::Value(policy) => Ok(*policy),
        }
    }
}

/// Builds the components of a policy laid over some workers of a machine; none without workers. With `unchecked` the
/// policy may break the rules on progress.
///
/// # Errors
/// All problems of the policy, also without workers, and errors of constructors of components.
pub fn lay(
    policy: &Policy,
    machine: &dyn Machine,
    workers: &WorkerSet,
    registry: &Registry,
    unchecked: bool,
) -> Result<Vec<Part>, Findings> {
    let plan = |workers| -> Result<TreePlan, Findings> {
        let lay = if unchecked { expand_unchecked } else { expand };
        lay(policy, &registry.catalogue(), &SomeWorkers { machine, workers })
    };
    if workers.is_empty() {
        plan(&WorkerSet::first(machine.workers() as u32))?;
        return Ok(Vec::new());
    }
    build_parts(&plan(workers)?, registry)
}

/// The instance that a node stands for in all contexts.
fn sharing_of(plan: &TreePlan, node: &PlanNode) -> Option<Sharing> {
    let SharedNode { part, name, text } = node.between_contexts.clone()?;
    let mut definition = node.info.name.clone();
    for (param, value) in node.changed_params() {
        definition += &format!(" {param}={value}");
    }
    let file = node.file.as_ref().map_or(String::new(), |file| format!(" ({})", file.display()));
    definition += &format!(" from {}{file}", node.plugin);
    let child = |child: &Child| {
        let slot = child.slot.as_ref().map_or(String::new(), |slot| format!("{slot}: "));
        let below = &plan[child.node];
        let name = below.between_contexts.as_ref().map_or(&below.path, |below| &below.name);
        below.leaf_worker.map_or_else(|| format!("{slot}{name}"), |worker| format!("{slot}{name} for {worker}"))
    };
    let children: Vec<String> = node.children.iter().map(child).collect();
    if !children.is_empty() {
        definition += &format!(" over {}", children.join(", "));
    }
    Some(Sharing { part, text, name, definition })
}

/// Builds the component of each node of a plan.
///
/// # Errors
/// The errors of all components' constructors.
pub fn build_parts(plan: &TreePlan, registry: &Registry) -> Result<Vec<Part>, Findings> {
    let mut parts = Vec::with_capacity(plan.nodes.len());
    let mut findings = Vec::new();
    // One component of the policy may stand for a node of each worker.
    let mut reported = HashSet::new();
    for node in &plan.nodes {
        let name = &node.info.name;
        let Some(registered) = registry.component_of(name, &node.plugin, node.file.as_deref()) else {
            unreachable!("the plan names components of the catalogue, which is made from the registry");
        };
        let post = || Post::component(&*node.path, &**name, &*node.plugin);
        match registered.build(&node.params) {
            Ok(component) => parts.push(Part {
                component: Unplaced::new(component, registered.is_attended().then(post)),
                name: name.clone(),
                plugin: node.plugin.clone(),
                params: node.params.clone(),
                path: node.path.clone(),
                object: node.place.clone(),
                children: node
                    .children
                    .iter()
                    .map(|child| (NodeId::at(child.node.0), child.slot.clone().unwrap_or_default()))
                    .collect(),
                workers: node.workers.clone(),
                workers_in_context: node.workers_in_context.clone(),
                sharing: sharing_of(plan, node),
                worker: node.leaf_worker,
                claims: Claims::of(node),
                attended: registered.is_attended(),
            }),
            Err(error) if reported.insert((node.span.get(), error.to_string())) => findings.push(
                Finding::error(error.to_string())
                    .at(node.span, "this one")
                    .help(error.fix())
                    .code("policy::build")
                    .in_source(plan.source.as_ref()),
            ),
            Err(_) => {}
        }
    }
    if findings.is_empty() {
        Ok(parts)
    } else {
        Err(Findings::new(format!("policy `{}` cannot be built", plan.policy), findings))
    }
}

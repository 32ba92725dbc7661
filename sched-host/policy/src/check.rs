//! Validity of policies: a list of rules, each with the reason that its errors give.
//!
//! To add a rule, write a function from [`Subject`] to findings and name it in [`RULES`].

mod below;
mod models;
mod names;
mod overrides;
mod progress;
mod shape;
mod sharing;
mod site;

use super::catalogue::Catalogue;
use super::element::Policy;
pub use names::WORDS;
use sched_text::Finding;
pub(super) use site::{Subject, stands_for_slot};

/// A rule of the language.
struct Rule {
    /// Identifier; see [`check`].
    id: &'static str,
    /// Suffix of the error code: `policy::arity`.
    name: &'static str,
    /// Reason for the rule; last line of the help of its errors.
    reason: &'static str,
    /// Whether it needs the catalogue.
    catalogue: bool,
    /// Whether it concerns progress only: a policy that breaks it can be built, but might stall.
    progress: bool,
    find: fn(&Subject<'_>) -> Vec<Finding>,
}

const RULES: &[Rule] = &[
    Rule {
        id: "V2",
        name: "root",
        reason: "tasks enter a scheduler at one component, its root",
        catalogue: false,
        progress: false,
        find: shape::root,
    },
    Rule {
        id: "V7",
        name: "component",
        reason: "a policy is made of the components that plugins offer and that are compiled in",
        catalogue: true,
        progress: false,
        find: names::component,
    },
    Rule {
        id: "V7",
        name: "override",
        reason: "`override` chooses, once, among several components of one name",
        catalogue: false,
        progress: false,
        find: overrides::sound,
    },
    Rule {
        id: "V7",
        name: "override",
        reason: "`override` chooses among the components that plugins offer, and those that are compiled in",
        catalogue: true,
        progress: false,
        find: overrides::offered,
    },
    Rule {
        id: "V7",
        name: "parameter",
        reason: "a component declares its parameters with type, range and default",
        catalogue: true,
        progress: false,
        find: names::parameter,
    },
    Rule {
        id: "V7",
        name: "slots",
        reason: "a component with slots sorts tasks into them, and needs one child in each",
        catalogue: true,
        progress: false,
        find: names::slots,
    },
    Rule {
        id: "V2",
        name: "arity",
        reason: "a component declares whether it takes no child (a leaf), one, or several",
        catalogue: true,
        progress: false,
        find: shape::arity,
    },
    Rule {
        id: "V2",
        name: "each",
        reason: "`each` repeats its children, so it needs a parent that takes several",
        catalogue: true,
        progress: false,
        find: shape::each,
    },
    Rule {
        id: "V4",
        name: "leaf",
        reason: "a task that reaches a leaf must be given to a worker there",
        catalogue: true,
        progress: false,
        find: shape::leaf,
    },
    Rule {
        id: "V7",
        name: "shared",
        reason: "`use \"name\"` links to `shared \"name\"` of the same policy or file, which is one component",
        catalogue: false,
        progress: false,
        find: sharing::defined,
    },
    Rule {
        id: "V2",
        name: "use",
        reason: "outside an `each`, `use` links to every instance of what is shared",
        catalogue: true,
        progress: false,
        find: sharing::single,
    },
    Rule {
        id: "V2",
        name: "between-contexts",
        reason: "what contexts share is one part with one shape, whatever workers each of them has",
        catalogue: false,
        progress: false,
        find: sharing::between,
    },
    Rule {
        id: "V6",
        name: "cycle",
        reason: "tasks move down the tree; in a cycle they would move for ever",
        catalogue: false,
        progress: false,
        find: sharing::cycle,
    },
    Rule {
        id: "V4",
        name: "unused",
        reason: "what is shared exists only where a `use` links to it",
        catalogue: false,
        progress: false,
        find: sharing::unused,
    },
    Rule {
        id: "V2",
        name: "family",
        reason: "only a component that chooses, or that has slots, knows which of several children a task is for",
        catalogue: true,
        progress: false,
        find: shape::family,
    },
    Rule {
        id: "V1",
        name: "refusal",
        reason: "a task that the root refuses is lost: an unbounded queue must be above all that may refuse",
        catalogue: true,
        progress: true,
        find: progress::refuses,
    },
    Rule {
        id: "V3",
        name: "pump",
        reason: "between two queues tasks move only if the upper one pumps, and the lower one says when it has room",
        catalogue: true,
        progress: true,
        find: progress::pumps,
    },
    Rule {
        id: "V3",
        name: "push",
        reason: "a component that sorts tasks reacts to a pull by a push, so workers cannot pull tasks through it",
        catalogue: true,
        progress: true,
        find: progress::pushed,
    },
    Rule {
        id: "V3",
        name: "sort",
        reason: "a component that sorts tasks reacts to a pull by a push, so the queue above it must send them down",
        catalogue: true,
        progress: true,
        find: progress::sorted,
    },
    Rule {
        id: "V5",
        name: "models",
        reason: "a task whose model is missing or not calibrated has no expected length to decide by",
        catalogue: true,
        progress: true,
        find: models::models,
    },
];

/// All errors and warnings of `policy` with the components of `catalogue`; empty for a valid policy.
///
/// Each finding names the [rule](Finding::id) that it breaks:
///
/// | rule | what it says |
/// |---|---|
/// | V1 | the root never refuses: an unbounded queue stands above every bounded one, and above all that may refuse |
/// | V2 | only components that choose (resource mapping), or that have slots, have several children |
/// | V3 | every scheduling area, which lies between two queues, has a pump for each direction in which tasks flow |
/// | V4 | every leaf is a worker, every worker has a leaf, and nothing is unused |
/// | V5 | a component that needs performance models stands below a slot `perfmodel` |
/// | V6 | nothing is below itself, below more than 127 others, or reached from the root on more than 65 536 paths |
/// | V7 | components, parameters, slots and what is shared exist, and values have the right type and range |
///
/// V1 and V3 rely on declarations of components: see [`forwards_push`](sched_core::Info::forwards_push),
/// [`wakes_workers`](sched_core::Info::wakes_workers), [`pulled_only`](sched_core::Info::pulled_only) and
/// [`pushes_on_pull`](sched_core::Info::pushes_on_pull).
///
/// Findings in a policy built by a program point into its [text](Policy::to_kdl).
#[must_use]
pub fn check(policy: &Policy, catalogue: &Catalogue) -> Vec<Finding> {
    run(&policy.located(), catalogue, |_| true)
}

/// Problems that keep a tree from being built; rules on progress are left out.
pub(super) fn check_structure(policy: &Policy, catalogue: &Catalogue) -> Vec<Finding> {
    run(&policy.located(), catalogue, |rule| !rule.progress)
}

/// Problems of `policy` that do not depend on components.
pub(super) fn check_text(policy: &Policy) -> Vec<Finding> {
    run(policy, &Catalogue::default(), |rule| !rule.catalogue)
}

fn run(policy: &Policy, catalogue: &Catalogue, wanted: impl Fn(&Rule) -> bool) -> Vec<Finding> {
    let catalogue = &catalogue.overridden(&policy.overrides);
    let subject = Subject::new(policy, catalogue);
    let rules = RULES.iter().filter(|rule| wanted(rule));
    rules
        .flat_map(|rule| {
            (rule.find)(&subject).into_iter().map(|finding| {
                let finding = finding
                    .breaks(rule.id)
                    .code(format_args!("policy::{}", rule.name))
                    .help(format!("why: {}", rule.reason));
                finding.in_source(policy.source.as_ref())
            })
        })
        .collect()
}

//! What makes a policy valid: a list of rules, each with the reason that its errors give.
//!
//! To add a rule, write a function from [`Subject`] to problems and name it in [`RULES`].

mod names;
mod shape;
mod sharing;
mod site;

use super::catalogue::Catalogue;
use super::part::Policy;
use super::problem::Problem;
pub(super) use site::Subject;

/// A rule of the language.
struct Rule {
    /// Ends the code of its errors: `policy::arity`.
    name: &'static str,
    /// Why there is such a rule, or what it says; the last line of its errors' help.
    reason: &'static str,
    /// Whether it needs to know the components.
    catalogue: bool,
    find: fn(&Subject<'_>) -> Vec<Problem>,
}

const RULES: &[Rule] = &[
    Rule {
        name: "root",
        reason: "tasks enter a scheduler at one component, its root",
        catalogue: false,
        find: shape::root,
    },
    Rule {
        name: "component",
        reason: "a policy is made of the components that the loaded plugins provide",
        catalogue: true,
        find: names::component,
    },
    Rule {
        name: "parameter",
        reason: "a component declares its parameters with type, range and default",
        catalogue: true,
        find: names::parameter,
    },
    Rule {
        name: "slots",
        reason: "a component with slots sorts tasks into them, and needs one child in each",
        catalogue: true,
        find: names::slots,
    },
    Rule {
        name: "arity",
        reason: "a component says whether it takes no child (a leaf), one, or several",
        catalogue: true,
        find: shape::arity,
    },
    Rule {
        name: "each",
        reason: "`each` repeats its children, so it stands where several children may",
        catalogue: true,
        find: shape::each,
    },
    Rule {
        name: "leaf",
        reason: "a task that arrives at a leaf must be given to a worker there",
        catalogue: true,
        find: shape::leaf,
    },
    Rule {
        name: "shared",
        reason: "`use \"name\"` links to `shared \"name\"` of the same policy or file, which is one component",
        catalogue: false,
        find: sharing::defined,
    },
    Rule {
        name: "use",
        reason: "outside an `each`, `use` links to every instance of what is shared",
        catalogue: true,
        find: sharing::single,
    },
    Rule {
        name: "cycle",
        reason: "tasks go down the tree, and would go round for ever",
        catalogue: false,
        find: sharing::cycle,
    },
    Rule {
        name: "unused",
        reason: "what is shared exists only where a `use` links to it",
        catalogue: false,
        find: sharing::unused,
    },
];

/// Everything that is wrong with `policy` for components of `catalogue`, errors and warnings; empty when it is fine.
///
/// A policy that a program built is shown as its [text](Policy::to_kdl).
#[must_use]
pub fn check(policy: &Policy, catalogue: &Catalogue) -> Vec<Problem> {
    run(&policy.located(), catalogue, |_| true)
}

/// What is wrong with `policy` whatever the components are.
pub(super) fn check_text(policy: &Policy) -> Vec<Problem> {
    run(policy, &Catalogue::default(), |rule| !rule.catalogue)
}

fn run(policy: &Policy, catalogue: &Catalogue, wanted: impl Fn(&Rule) -> bool) -> Vec<Problem> {
    let subject = Subject::new(policy, catalogue);
    let rules = RULES.iter().filter(|rule| wanted(rule));
    rules
        .flat_map(|rule| {
            (rule.find)(&subject).into_iter().map(|problem| {
                problem.code(rule.name).help(format!("why: {}", rule.reason)).in_source(policy.source.as_ref())
            })
        })
        .collect()
}

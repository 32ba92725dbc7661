//! Policies: the text that describes a scheduler as a tree of components.
//!
//! A policy is read from KDL text ([`parse()`]) or built by a program (from its elements with [`Policy::new`], by hand
//! with [`Connect`], from [`Recipe`]s for the levels of the machine with [`TopologySpecs`], or from [`SimpleFlags`]),
//! checked against the components that plugins provide ([`check()`] with a [`Catalogue`]), laid over a machine
//! ([`expand()`], which returns a [`TreePlan`]), printed ([`Policy::to_kdl`]) and drawn ([`TreePlan::to_text`],
//! [`TreePlan::to_dot`]). [`Source::find`] finds one by name among the shipped policies ([`library()`]), or in a file.
//!
//! # The language
//!
//! ```kdl
//! // What the policy is for: the comment right above it is its documentation.
//! policy "my-heft" {
//!     prio {                                       // a component, by name
//!         perfmodel-select {                       // a component with slots: below it stand their names
//!             perfmodel    { mct alpha=1.0 { each "worker" { prio ntasks-threshold=30 { use "leaf" } } } }
//!             calibrator   { eager-calibration { use "leaf" } }
//!             no-perfmodel { eager { use "leaf" } }
//!         }
//!     }
//!     shared "leaf" each="worker" { best-implementation { worker } }
//! }
//! ```
//!
//! - `name param=value … { children }` is a component. Values are whole numbers, numbers, texts, `#true` and `#false`.
//! - `each "level" arch="cpu" { … }` repeats its children for each group of workers at a [`Level`] of the machine. A
//!   nested `each` covers the groups within the workers of the outer one. `arch` keeps only workers of that
//!   architecture.
//! - `each "combined-worker" { combined-worker }` has leaves for the combined workers of the machine, which execute
//!   parallel tasks. A nested one covers the combined workers whose members are all in the outer group.
//! - `shared "name" each="level" arch="cpu" { … }` defines a component that several places link to, with one instance
//!   for each group (one, without `each`). It belongs in a policy, or at the top of a file for all its policies.
//! - `override "name" from="file"` chooses among several components of one name, for its policy or for all policies of
//!   a file; see [`Override`].
//! - `use "name"` links to it: within an `each`, to the instances of those workers; elsewhere, to all instances.

mod adjustment;
mod areas;
mod build;
mod catalogue;
mod check;
mod distribute_shared;
mod draw;
mod edit;
mod element;
mod expand;
mod leaves;
mod level;
mod library;
mod machine;
mod overrides;
mod parse;
mod paths;
mod plan;
mod print;
#[cfg(test)]
mod tests;

pub use adjustment::Adjustment;
pub use areas::Area;
pub use build::{ComponentId, Connect, Decide, Limit, Queue, QueuesBelow, Ready, Recipe, SimpleFlags, TopologySpecs};
pub use catalogue::{Audience, Catalogue, Entry, Offers, Stock};
pub use check::{WORDS, check};
pub use draw::Fold;
pub use edit::PolicyEdit;
pub use element::{Component, Each, Element, Policy, Setting, Shared, Use};
pub use expand::{expand, expand_unchecked};
pub use level::Level;
pub use library::{DEFAULT_POLICY, POLICY_VARIABLE, Shipped, Source, library};
pub use machine::{BoundMachine, FlatMachine, Group, Machine, SomeWorkers, combined_groups};
pub use overrides::Override;
pub use parse::{Parsed, parse, read};
pub use plan::{Child, NodeIndex, PlanNode, SharedNode, TreePlan};

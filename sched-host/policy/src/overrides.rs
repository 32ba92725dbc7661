//! `override "fifo" from="libmine.so"`: which of several components of one name is meant.

use super::part::{Part, Policy};
use sched_text::Span;

/// Chooses among components of one name: `override "fifo" from="libmine.so"` in a policy, or the same for all policies
/// (`--override fifo=libmine.so` of the command line).
///
/// A name belongs to the component that is compiled into the program. A plugin's component of that name which comes from
/// another package is used only where it is chosen so.
///
/// ```
/// use sched_policy::{Override, parse};
/// let text = r#"policy "mine" { override "fifo" from="libmine.so"; fifo { worker } }"#;
/// assert_eq!(parse("mine.kdl", text)?[0].overrides, [Override::new("fifo").from("libmine.so")]);
/// # Ok::<(), sched_text::Findings>(())
/// ```
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Override {
    /// Name of the component.
    pub component: String,
    /// What offers it: the file name of a plugin, or the name of a package. Without it, the first plugin of the search
    /// path whose component is another than the one that is compiled in.
    pub from: Option<String>,
    /// Where the name of the component stands.
    pub span: Span,
    /// Where `from` stands.
    pub from_span: Span,
}

impl Override {
    /// The first plugin whose component of this name is another than the one that is compiled in.
    pub fn new(component: impl Into<String>) -> Override {
        Override { component: component.into(), from: None, span: Span::NONE, from_span: Span::NONE }
    }

    /// The component of this plugin: the name of its file, or of its package.
    #[must_use]
    pub fn from(mut self, plugin: impl Into<String>) -> Override {
        self.from = Some(plugin.into());
        self
    }
}

impl From<&str> for Override {
    /// As [`Override::new`].
    fn from(component: &str) -> Override {
        Override::new(component)
    }
}

/// Gives each policy the overrides at the top of its file that concern it. One that concerns none goes to the first policy,
/// so that the check reports it.
pub(super) fn distribute(policies: &mut [Policy], overrides: Vec<Override>) {
    for chosen in overrides {
        let mut concerned: Vec<&mut Policy> = Vec::new();
        let mut others = Vec::new();
        for policy in policies.iter_mut() {
            if policy.names(&chosen.component) { concerned.push(policy) } else { others.push(policy) }
        }
        if concerned.is_empty() {
            concerned.extend(others.into_iter().next());
        }
        concerned.into_iter().for_each(|policy| policy.overrides.push(chosen.clone()));
    }
}

impl Policy {
    /// Whether a component of this name stands somewhere in the policy.
    pub(super) fn names(&self, component: &str) -> bool {
        let shared = self.shared.iter().flat_map(|shared| &shared.children);
        self.root.iter().chain(shared).any(|part| part_names(part, component))
    }
}

fn part_names(part: &Part, component: &str) -> bool {
    let here = matches!(part, Part::Component(found) if found.name == component);
    here || part.children().iter().any(|child| part_names(child, component))
}

//! `override "fifo" from="libmine.so"`: choice among components of one name.

use super::element::{Element, Policy};
use sched_text::Span;

/// Choice among components of one name: `override "fifo" from="libmine.so"` in a policy, or `--override
/// fifo=libmine.so` on the command line for all policies.
///
/// A compiled-in component owns its name. A plugin's component of that name from another package is used only where an
/// override chooses it.
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
    /// Provider: the file name of a plugin, or the name of a package. `None` selects the first plugin of the search
    /// path whose component is not the compiled-in one.
    pub from: Option<String>,
    /// Place of the component's name in the text.
    pub span: Span,
    /// Place of `from` in the text.
    pub from_span: Span,
}

impl Override {
    /// Selects the first plugin whose component of this name is not the compiled-in one.
    pub fn new(component: impl Into<String>) -> Override {
        Override { component: component.into(), from: None, span: Span::NONE, from_span: Span::NONE }
    }

    /// Selects the component of a plugin, by file name or package.
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

/// Gives each policy the top-level overrides of its file that concern it. An override that concerns none goes to the
/// first policy, so that the check reports it.
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
    /// Whether the policy uses a component of this name.
    pub(super) fn names(&self, component: &str) -> bool {
        let shared = self.shared.iter().flat_map(|shared| &shared.children);
        self.root.iter().chain(shared).any(|part| part_names(part, component))
    }
}

fn part_names(part: &Element, component: &str) -> bool {
    let here = matches!(part, Element::Component(found) if found.name == component);
    here || part.children().iter().any(|child| part_names(child, component))
}

//! Recipes: components that are linked in a row wherever the recipe is used.

use crate::part::{Component, Part};

/// A recipe for a composed component: components one below the other, in whose place they behave as one.
///
/// Composition is data. A recipe becomes its components, linked, wherever it is used, so a composed component behaves as
/// its parts do, with any children, and however deep recipes are [composed](Self::compose) of recipes.
///
/// ```
/// use sched_policy::{Component, Part, Recipe};
/// let queue = Recipe::singleton(Component::new("fifo"));
/// let both = queue.add(Component::new("best-implementation"));
/// let parts = both.over([Component::new("worker")]);
/// let linked = Component::new("fifo").child(Component::new("best-implementation").child(Component::new("worker")));
/// assert_eq!(parts, [Part::from(linked)]);
/// ```
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Recipe {
    row: Vec<Component>,
}

impl Recipe {
    /// An empty recipe: what is below it hangs where it stands.
    #[must_use]
    pub fn new() -> Recipe {
        Recipe::default()
    }

    /// A recipe of one component, which is used as it is.
    #[must_use]
    pub fn singleton(component: Component) -> Recipe {
        Recipe { row: vec![component] }
    }

    /// The same, with `component` below all that it has.
    #[must_use]
    #[expect(clippy::should_implement_trait, reason = "the handbook's name; nothing is summed")]
    pub fn add(mut self, component: Component) -> Recipe {
        self.row.push(component);
        self
    }

    /// The same, with what `inner` composes below all that it has.
    #[must_use]
    pub fn compose(mut self, inner: Recipe) -> Recipe {
        self.row.extend(inner.row);
        self
    }

    /// Whether it has no component.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.row.is_empty()
    }

    /// Its components, from the top.
    #[must_use]
    pub fn components(&self) -> &[Component] {
        &self.row
    }

    /// The components, linked, with `children` below the last: one part, or the children where the recipe is empty.
    ///
    /// A component that has children of its own keeps them, before what the recipe puts below it.
    #[must_use]
    pub fn over<P: Into<Part>>(&self, children: impl IntoIterator<Item = P>) -> Vec<Part> {
        let children = children.into_iter().map(Into::into).collect();
        self.row.iter().rev().fold(children, |below, component| {
            let mut component = component.clone();
            component.children.extend(below);
            vec![component.into()]
        })
    }
}

impl From<Component> for Recipe {
    fn from(component: Component) -> Recipe {
        Recipe::singleton(component)
    }
}

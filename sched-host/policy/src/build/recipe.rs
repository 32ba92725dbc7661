//! Recipes: chains of components, instantiated wherever the recipe is used.

use crate::element::{Component, Element};

/// A recipe for a composed component: a chain of components that acts as one.
///
/// Composition is data. A recipe becomes its components, linked, wherever it is used, so a composed component behaves
/// as its parts do, with any children, and however deep recipes are [composed](Self::compose) of recipes.
///
/// ```
/// use sched_policy::{Component, Element, Recipe};
/// let queue = Recipe::singleton(Component::new("fifo"));
/// let both = queue.add(Component::new("best-implementation"));
/// let elements = both.over([Component::new("worker")]);
/// let linked = Component::new("fifo").child(Component::new("best-implementation").child(Component::new("worker")));
/// assert_eq!(elements, [Element::from(linked)]);
/// ```
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Recipe {
    row: Vec<Component>,
}

impl Recipe {
    /// An empty recipe, which adds no component.
    #[must_use]
    pub fn new() -> Recipe {
        Recipe::default()
    }

    /// A recipe of one component.
    #[must_use]
    pub fn singleton(component: Component) -> Recipe {
        Recipe { row: vec![component] }
    }

    /// Appends `component` at the bottom.
    #[must_use]
    #[expect(clippy::should_implement_trait, reason = "the handbook's name; nothing is summed")]
    pub fn add(mut self, component: Component) -> Recipe {
        self.row.push(component);
        self
    }

    /// Appends the components of `inner` at the bottom.
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

    /// Components from top to bottom.
    #[must_use]
    pub fn components(&self) -> &[Component] {
        &self.row
    }

    /// The chain with `children` below its last component: one element, or the children themselves for an empty recipe.
    ///
    /// A component that has children of its own keeps them, before what the recipe puts below it.
    #[must_use]
    pub fn over<P: Into<Element>>(&self, children: impl IntoIterator<Item = P>) -> Vec<Element> {
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

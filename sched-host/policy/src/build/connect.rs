//! A policy connected by hand: components and links.

use crate::element::{Component, Each, Element, Policy, Shared, Use};
use crate::level::Level;
use sched_core::Arch;

/// Components that a program connects, one link at a time.
///
/// A component has one instance for each instance of its parent, unless it is [repeated](Self::add_each). A component
/// with several parents becomes a `shared` definition with a `use` below each. If it is not repeated itself, it has the
/// instances of its finest parent: below a parent for each worker, it exists for each worker.
///
/// [`check`](super::super::check()) of the policy reports what is wrong with the tree: several components without a
/// parent are several roots; a component below itself is a cycle.
///
/// ```
/// use sched_policy::{Component, Connect, Level, parse};
/// let mut tree = Connect::new();
/// let fifo = tree.add(Component::new("fifo"));
/// let eager = tree.add(Component::new("eager"));
/// let worker = tree.add_each(Level::Worker, Component::new("worker"));
/// tree.connect(fifo, eager);
/// tree.connect(eager, worker);
/// let text = r#"policy "mine" { fifo { eager { each "worker" { worker } } } }"#;
/// assert_eq!(tree.policy("mine"), parse("mine.kdl", text)?[0]);
/// # Ok::<(), sched_text::Findings>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct Connect {
    nodes: Vec<Node>,
    links: Vec<Link>,
}

/// A component of a [`Connect`].
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct ComponentId(usize);

#[derive(Clone, Debug)]
struct Node {
    component: Component,
    repeated: Option<Scope>,
}

/// Instances of a component: one for each group of a level that has workers of an architecture.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Scope {
    level: Level,
    arch: Option<Arch>,
}

const ONCE: Scope = Scope { level: Level::Machine, arch: None };

#[derive(Clone, PartialEq, Eq, Debug)]
struct Link {
    parent: usize,
    slot: Option<String>,
    child: usize,
}

impl Connect {
    /// An empty tree.
    #[must_use]
    pub fn new() -> Connect {
        Connect::default()
    }

    /// A component that exists once wherever its parent does.
    pub fn add(&mut self, component: Component) -> ComponentId {
        self.put(component, None)
    }

    /// A component for each group of workers at a level of the machine.
    pub fn add_each(&mut self, level: Level, component: Component) -> ComponentId {
        self.put(component, Some(Scope { level, arch: None }))
    }

    /// A component for each group of workers of an architecture at a level of the machine.
    pub fn add_each_of(&mut self, level: Level, arch: Arch, component: Component) -> ComponentId {
        self.put(component, Some(Scope { level, arch: Some(arch) }))
    }

    fn put(&mut self, component: Component, repeated: Option<Scope>) -> ComponentId {
        self.nodes.push(Node { component, repeated });
        ComponentId(self.nodes.len() - 1)
    }

    /// Puts `child` below `parent`, after its other children. Repeating a link changes nothing.
    ///
    /// # Panics
    /// If one of them belongs to another tree.
    pub fn connect(&mut self, parent: ComponentId, child: ComponentId) {
        self.link(parent, None, child);
    }

    /// Puts `child` in a slot of `parent`, such as `perfmodel`.
    ///
    /// # Panics
    /// If one of them belongs to another tree.
    pub fn connect_slot(&mut self, parent: ComponentId, slot: impl Into<String>, child: ComponentId) {
        self.link(parent, Some(slot.into()), child);
    }

    fn link(&mut self, ComponentId(parent): ComponentId, slot: Option<String>, ComponentId(child): ComponentId) {
        assert!(parent.max(child) < self.nodes.len(), "a component is connected that was not added to this tree");
        let link = Link { parent, slot, child };
        if !self.links.contains(&link) {
            self.links.push(link);
        }
    }

    /// The policy.
    #[must_use]
    pub fn policy(&self, name: impl Into<String>) -> Policy {
        let layout = Layout::new(self);
        let roots = (0..self.nodes.len()).filter(|node| self.parents(*node).next().is_none());
        let root = roots.map(|root| layout.element(root, ONCE)).collect();
        let shared = (0..self.nodes.len()).filter_map(|node| layout.definition(node)).collect();
        Policy { shared, ..Policy::of_elements(name, root) }
    }

    fn parents(&self, child: usize) -> impl Iterator<Item = usize> {
        self.links.iter().filter(move |link| link.child == child).map(|link| link.parent)
    }
}

/// The elements that components become.
struct Layout<'a> {
    tree: &'a Connect,
    scopes: Vec<Scope>,
    /// Names of shared components.
    names: Vec<Option<String>>,
}

impl<'a> Layout<'a> {
    fn new(tree: &'a Connect) -> Layout<'a> {
        let count = tree.nodes.len();
        let scopes = (0..count).map(|node| scope(tree, node, &mut vec![false; count])).collect();
        let mut names: Vec<Option<String>> = Vec::with_capacity(count);
        for (node, Node { component, .. }) in tree.nodes.iter().enumerate() {
            // A component below itself has no root above it. As a shared definition, the check reports it.
            let shared = tree.links.iter().filter(|link| link.child == node).count() > 1 || below_itself(tree, node);
            let taken = |name: &String| names.iter().flatten().any(|other| other == name);
            let numbered = (2..).map(|number| format!("{} {number}", component.name));
            let name = std::iter::once(component.name.clone()).chain(numbered).find(|name| !taken(name));
            names.push(name.filter(|_| shared));
        }
        Layout { tree, scopes, names }
    }

    /// The element for a component below a parent of this scope.
    fn element(&self, node: usize, above: Scope) -> Element {
        if let Some(name) = &self.names[node] {
            return Use::new(name).into();
        }
        let scope = self.scopes[node];
        let component = self.component(node);
        if scope == above {
            return component.into();
        }
        Each { arch: scope.arch, ..Each::new(scope.level) }.child(component).into()
    }

    fn component(&self, node: usize) -> Component {
        let mut component = self.tree.nodes[node].component.clone();
        for link in self.tree.links.iter().filter(|link| link.parent == node) {
            let child = self.element(link.child, self.scopes[node]);
            component = match &link.slot {
                Some(slot) => component.child(Component::new(slot).child(child)),
                None => component.child(child),
            };
        }
        component
    }

    fn definition(&self, node: usize) -> Option<Shared> {
        let name = self.names[node].as_ref()?;
        let Scope { level, arch } = self.scopes[node];
        let each = (level != Level::Machine || arch.is_some()).then_some(level);
        Some(Shared { each, arch, ..Shared::new(name, self.component(node)) })
    }
}

/// The scope of a component. `above` marks the components on the way up, which may form a cycle.
fn scope(tree: &Connect, node: usize, above: &mut [bool]) -> Scope {
    if let Some(repeated) = tree.nodes[node].repeated {
        return repeated;
    }
    if std::mem::replace(&mut above[node], true) {
        return ONCE;
    }
    let scopes: Vec<Scope> = tree.parents(node).map(|parent| scope(tree, parent, above)).collect();
    above[node] = false;
    let finest = scopes.iter().map(|scope| scope.level).min_by_key(|level| fineness(*level));
    let Some(level) = finest else { return ONCE };
    let mut archs = scopes.iter().filter(|scope| scope.level == level).map(|scope| scope.arch);
    let first = archs.next().flatten();
    Scope { level, arch: first.filter(|_| archs.all(|arch| arch == first)) }
}

/// Finer levels first.
fn fineness(level: Level) -> usize {
    use Level::*;
    [Worker, CombinedWorker, Core, L2, L3, Package, Numa, MemoryNode, Arch, Machine]
        .iter()
        .position(|known| *known == level)
        .unwrap_or(usize::MAX)
}

fn below_itself(tree: &Connect, node: usize) -> bool {
    let mut seen = vec![false; tree.nodes.len()];
    let mut next: Vec<usize> = tree.parents(node).collect();
    while let Some(above) = next.pop() {
        if above == node {
            return true;
        }
        if !std::mem::replace(&mut seen[above], true) {
            next.extend(tree.parents(above));
        }
    }
    false
}

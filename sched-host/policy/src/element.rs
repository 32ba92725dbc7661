//! Abstract syntax of a policy: the values that policy text is read into.

use super::level::Level;
use super::overrides::Override;
use sched_core::{Arch, Value, WorkerId, WorkerSet};
use sched_text::{SourceText, Span};

/// A policy: a tree of components, with repetition over the machine and shared definitions.
///
/// Equality compares content: names, parameters and structure, not text layout or places.
///
/// ```
/// use sched_policy::{Component, Each, Level, Policy};
/// let policy = Policy::new(
///     "tree-eager",
///     Component::new("fifo").child(
///         Component::new("eager").child(Each::new(Level::Worker).child(Component::new("worker"))),
///     ),
/// );
/// assert_eq!(sched_policy::parse("built", &policy.to_kdl()).unwrap(), [policy]);
/// ```
#[derive(Clone, Debug)]
pub struct Policy {
    /// Its name.
    pub name: String,
    /// The comment lines right above it, without the slashes; empty when there are none.
    pub doc: String,
    /// Top-level elements. A valid policy has exactly one, a component.
    pub root: Vec<Element>,
    /// The definitions that [`Element::Use`] refers to.
    pub shared: Vec<Shared>,
    /// Choices among components of one name.
    pub overrides: Vec<Override>,
    /// Place of the name in the text.
    pub span: Span,
    /// Text that it was read from.
    pub source: Option<SourceText>,
}

impl Policy {
    /// A policy with this root and nothing shared.
    pub fn new(name: impl Into<String>, root: impl Into<Element>) -> Policy {
        Policy::of_elements(name, vec![root.into()])
    }

    /// A policy with these top-level elements. A valid policy has exactly one.
    pub(super) fn of_elements(name: impl Into<String>, root: Vec<Element>) -> Policy {
        let (name, doc, shared) = (name.into(), String::new(), Vec::new());
        Policy { name, doc, root, shared, overrides: Vec::new(), span: Span::NONE, source: None }
    }

    /// Sets the comment above it.
    #[must_use]
    pub fn doc(mut self, doc: impl Into<String>) -> Policy {
        self.doc = doc.into();
        self
    }

    /// Adds a shared definition.
    #[must_use]
    pub fn shared(mut self, shared: Shared) -> Policy {
        self.shared.push(shared);
        self
    }

    /// Adds a choice among several components of one name.
    #[must_use]
    pub fn overriding(mut self, chosen: impl Into<Override>) -> Policy {
        self.overrides.push(chosen.into());
        self
    }

    /// First sentence of the comment, for tables; empty without a comment.
    #[must_use]
    pub fn summary(&self) -> String {
        let paragraph: Vec<&str> = self.doc.lines().map(str::trim).take_while(|line| !line.is_empty()).collect();
        let paragraph = paragraph.join(" ");
        match paragraph.find(". ") {
            Some(end) => paragraph[..=end].to_owned(),
            None => paragraph,
        }
    }

    /// The shared definition of this name.
    #[must_use]
    pub fn find_shared(&self, name: &str) -> Option<&Shared> {
        self.shared.iter().find(|shared| shared.name == name)
    }

    /// The policy with places in a text: itself, or, for a policy built by a program, its [printed form](Self::to_kdl)
    /// read back.
    pub(super) fn located(&self) -> Policy {
        if self.source.is_some() {
            return self.clone();
        }
        let name = format!("policy {} (built by a program)", self.name);
        let read = super::parse::read(&name, &self.to_kdl());
        match read.policies.into_iter().next() {
            Some(policy) if policy == *self && read.findings.is_empty() => policy,
            // Not every value can be printed: a component may be called `each`. The rules report that without a place.
            _ => self.clone(),
        }
    }
}

impl PartialEq for Policy {
    fn eq(&self, other: &Policy) -> bool {
        (&self.name, &self.doc, &self.root, &self.shared, &self.overrides)
            == (&other.name, &other.doc, &other.root, &other.shared, &other.overrides)
    }
}

/// An element of a tree.
#[derive(Clone, PartialEq, Debug)]
pub enum Element {
    /// A component or, right below a component with [slots](sched_core::Arity::Slots), one of its slots. Both have the
    /// same syntax; the catalogue distinguishes them.
    Component(Component),
    /// Children repeated for each group of workers.
    Each(Each),
    /// A link to a shared definition.
    Use(Use),
}

impl Element {
    /// Place in the text.
    #[must_use]
    pub fn span(&self) -> Span {
        match self {
            Element::Component(component) => component.span,
            Element::Each(each) => each.span,
            Element::Use(link) => link.span,
        }
    }

    /// Its children.
    #[must_use]
    pub fn children(&self) -> &[Element] {
        match self {
            Element::Component(component) => &component.children,
            Element::Each(each) => &each.children,
            Element::Use(_) => &[],
        }
    }
}

impl From<Component> for Element {
    fn from(component: Component) -> Element {
        Element::Component(component)
    }
}

impl From<Each> for Element {
    fn from(each: Each) -> Element {
        Element::Each(each)
    }
}

impl From<Use> for Element {
    fn from(link: Use) -> Element {
        Element::Use(link)
    }
}

/// `fifo ntasks-threshold=2 { … }`: a component with parameters and children. A slot is written the same way, without
/// parameters.
#[derive(Clone, PartialEq, Debug)]
pub struct Component {
    /// Its name in the catalogue, or the name of the slot.
    pub name: String,
    /// The parameters that the policy sets, in the order of the text.
    pub params: Vec<Setting>,
    /// Children.
    pub children: Vec<Element>,
    /// Place of the name in the text.
    pub span: Span,
}

impl Component {
    /// A component (or slot) without parameters and children.
    pub fn new(name: impl Into<String>) -> Component {
        Component { name: name.into(), params: Vec::new(), children: Vec::new(), span: Span::NONE }
    }

    /// Sets a parameter.
    #[must_use]
    pub fn set(mut self, name: impl Into<String>, value: Value) -> Component {
        self.params.push(Setting { name: name.into(), value, span: Span::NONE, value_span: Span::NONE });
        self
    }

    /// Adds a child.
    #[must_use]
    pub fn child(mut self, child: impl Into<Element>) -> Component {
        self.children.push(child.into());
        self
    }
}

impl From<&str> for Component {
    /// The component of this name, without parameters and children.
    fn from(name: &str) -> Component {
        Component::new(name)
    }
}

/// `ntasks-threshold=2`: a parameter that a policy sets.
#[derive(Clone, PartialEq, Debug)]
pub struct Setting {
    /// Name of the parameter.
    pub name: String,
    /// Its value, of the type that the text gives it.
    pub value: Value,
    /// Place of `name=value` in the text.
    pub span: Span,
    /// Place of the value in the text.
    pub value_span: Span,
}

/// `each "worker" { … }`: repeats its children for each group of workers at a level of the machine.
#[derive(Clone, PartialEq, Debug)]
pub struct Each {
    /// Level of the groups.
    pub level: Level,
    /// Keeps only workers of this architecture; groups without any vanish.
    pub arch: Option<Arch>,
    /// Keeps only workers of these numbers; groups without any vanish.
    pub only: Option<WorkerSet>,
    /// Leaves out workers of these numbers.
    pub except: Option<WorkerSet>,
    /// Children of each group.
    pub children: Vec<Element>,
    /// Place in the text.
    pub span: Span,
}

impl Each {
    /// A repetition without children.
    #[must_use]
    pub fn new(level: Level) -> Each {
        Each { level, arch: None, only: None, except: None, children: Vec::new(), span: Span::NONE }
    }

    /// Keeps only workers of this architecture.
    #[must_use]
    pub fn arch(mut self, arch: Arch) -> Each {
        self.arch = Some(arch);
        self
    }

    /// Keeps only workers of these numbers, so that one worker may have other components than the rest.
    #[must_use]
    pub fn only(mut self, workers: impl IntoIterator<Item = u32>) -> Each {
        self.only = Some(workers.into_iter().map(WorkerId).collect());
        self
    }

    /// Leaves out workers of these numbers.
    #[must_use]
    pub fn except(mut self, workers: impl IntoIterator<Item = u32>) -> Each {
        self.except = Some(workers.into_iter().map(WorkerId).collect());
        self
    }

    /// Adds a child.
    #[must_use]
    pub fn child(mut self, child: impl Into<Element>) -> Each {
        self.children.push(child.into());
        self
    }
}

/// `use "leaf"`: a link to what [`Shared`] defines.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Use {
    /// Name of the shared definition.
    pub name: String,
    /// Place in the text.
    pub span: Span,
}

impl Use {
    /// A link to the shared definition of this name.
    pub fn new(name: impl Into<String>) -> Use {
        Use { name: name.into(), span: Span::NONE }
    }
}

/// `shared "leaf" each="worker" { … }`: a component that several places have as their child.
///
/// It has one instance for each group of its level; one instance without a level. A [`Use`] links to the instances
/// whose workers are a subset of those of the enclosing [`Each`]; if there are none, to the instances that contain
/// those workers.
#[derive(Clone, PartialEq, Debug)]
pub struct Shared {
    /// The name that `use` gives.
    pub name: String,
    /// Level that it is repeated over; once without a level.
    pub each: Option<Level>,
    /// Keeps only workers of this architecture.
    pub arch: Option<Arch>,
    /// Whether its instances are shared between contexts too: each exists once in all contexts whose policies define it
    /// equally, and is laid over the workers of the whole machine.
    pub between_contexts: bool,
    /// Definition. A valid one has one element, a component.
    pub children: Vec<Element>,
    /// Place of the name in the text.
    pub span: Span,
}

impl Shared {
    /// A definition that exists once in the machine.
    pub fn new(name: impl Into<String>, child: impl Into<Element>) -> Shared {
        Shared {
            name: name.into(),
            each: None,
            arch: None,
            between_contexts: false,
            children: vec![child.into()],
            span: Span::NONE,
        }
    }

    /// Shares its instances between contexts too.
    #[must_use]
    pub fn between_contexts(mut self) -> Shared {
        self.between_contexts = true;
        self
    }

    /// Repeats it for each group of this level.
    #[must_use]
    pub fn each(mut self, level: Level) -> Shared {
        self.each = Some(level);
        self
    }

    /// Keeps only workers of this architecture.
    #[must_use]
    pub fn arch(mut self, arch: Arch) -> Shared {
        self.arch = Some(arch);
        self
    }
}

//! What policy text says, as a value: a policy and its parts.

use super::level::Level;
use super::overrides::Override;
use sched_core::{Arch, Value};
use sched_text::{SourceText, Span};

/// A policy: a tree of components, with repetition over the machine and with parts that several places use.
///
/// Policies compare equal when they say the same, whatever their text looks like.
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
    /// The parts at its top. A valid policy has one, a component.
    pub root: Vec<Part>,
    /// The definitions that [`Part::Use`] refers to.
    pub shared: Vec<Shared>,
    /// Which of several components of one name it means.
    pub overrides: Vec<Override>,
    /// Where its name stands.
    pub span: Span,
    /// The text it came from.
    pub source: Option<SourceText>,
}

impl Policy {
    /// A policy with this root and nothing shared.
    pub fn new(name: impl Into<String>, root: impl Into<Part>) -> Policy {
        Policy::of_parts(name, vec![root.into()])
    }

    /// A policy with these parts at its top, of which a valid one has one.
    pub(super) fn of_parts(name: impl Into<String>, root: Vec<Part>) -> Policy {
        let (name, doc, shared) = (name.into(), String::new(), Vec::new());
        Policy { name, doc, root, shared, overrides: Vec::new(), span: Span::NONE, source: None }
    }

    /// The same, with this comment above it.
    #[must_use]
    pub fn doc(mut self, doc: impl Into<String>) -> Policy {
        self.doc = doc.into();
        self
    }

    /// The same, with one more shared definition.
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

    /// The first sentence of its comment, for tables; empty when it has none.
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

    /// The policy with a text to point into: itself, or when a program built it, its [printed form](Self::to_kdl) read
    /// back.
    pub(super) fn located(&self) -> Policy {
        if self.source.is_some() {
            return self.clone();
        }
        let name = format!("policy {} (built by a program)", self.name);
        let read = super::parse::read(&name, &self.to_kdl());
        match read.policies.into_iter().next() {
            Some(policy) if policy == *self && read.findings.is_empty() => policy,
            // Not every value has a text: a component may be called `each`. The rules will say so, without a place.
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

/// What may stand in a tree.
#[derive(Clone, PartialEq, Debug)]
pub enum Part {
    /// A component or, right below a component with [slots](sched_core::Arity::Slots), one of its slots. The two look
    /// alike in the text; the catalogue tells them apart.
    Component(Component),
    /// Its children once for each group of workers.
    Each(Each),
    /// A link to a shared definition.
    Use(Use),
}

impl Part {
    /// Where it stands.
    #[must_use]
    pub fn span(&self) -> Span {
        match self {
            Part::Component(component) => component.span,
            Part::Each(each) => each.span,
            Part::Use(link) => link.span,
        }
    }

    /// What stands in its braces.
    #[must_use]
    pub fn children(&self) -> &[Part] {
        match self {
            Part::Component(component) => &component.children,
            Part::Each(each) => &each.children,
            Part::Use(_) => &[],
        }
    }
}

impl From<Component> for Part {
    fn from(component: Component) -> Part {
        Part::Component(component)
    }
}

impl From<Each> for Part {
    fn from(each: Each) -> Part {
        Part::Each(each)
    }
}

impl From<Use> for Part {
    fn from(link: Use) -> Part {
        Part::Use(link)
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
    /// What is below it.
    pub children: Vec<Part>,
    /// Where its name stands.
    pub span: Span,
}

impl Component {
    /// A component (or slot) without parameters and children.
    pub fn new(name: impl Into<String>) -> Component {
        Component { name: name.into(), params: Vec::new(), children: Vec::new(), span: Span::NONE }
    }

    /// The same, with this parameter set.
    #[must_use]
    pub fn set(mut self, name: impl Into<String>, value: Value) -> Component {
        self.params.push(Setting { name: name.into(), value, span: Span::NONE, value_span: Span::NONE });
        self
    }

    /// The same, with one more child.
    #[must_use]
    pub fn child(mut self, child: impl Into<Part>) -> Component {
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
    /// Where name and value stand.
    pub span: Span,
    /// Where the value stands.
    pub value_span: Span,
}

/// `each "worker" { … }`: the children once for each group of workers at a level of the machine.
#[derive(Clone, PartialEq, Debug)]
pub struct Each {
    /// What the groups are.
    pub level: Level,
    /// Keeps only workers of this architecture; groups without any vanish.
    pub arch: Option<Arch>,
    /// What each group gets.
    pub children: Vec<Part>,
    /// Where it stands.
    pub span: Span,
}

impl Each {
    /// A repetition without children.
    #[must_use]
    pub fn new(level: Level) -> Each {
        Each { level, arch: None, children: Vec::new(), span: Span::NONE }
    }

    /// The same, over workers of this architecture only.
    #[must_use]
    pub fn arch(mut self, arch: Arch) -> Each {
        self.arch = Some(arch);
        self
    }

    /// The same, with one more child.
    #[must_use]
    pub fn child(mut self, child: impl Into<Part>) -> Each {
        self.children.push(child.into());
        self
    }
}

/// `use "leaf"`: a link to what [`Shared`] defines.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Use {
    /// Name of the shared definition.
    pub name: String,
    /// Where it stands.
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
/// It exists once for each group of its level, once at all without a level. A [`Use`] links to the instances whose
/// workers lie within the enclosing [`Each`]; when none does, to those that contain it.
#[derive(Clone, PartialEq, Debug)]
pub struct Shared {
    /// The name that `use` gives.
    pub name: String,
    /// Over what it is repeated.
    pub each: Option<Level>,
    /// Keeps only workers of this architecture.
    pub arch: Option<Arch>,
    /// What it is. A valid definition has one part, a component.
    pub children: Vec<Part>,
    /// Where its name stands.
    pub span: Span,
}

impl Shared {
    /// A definition that exists once in the machine.
    pub fn new(name: impl Into<String>, child: impl Into<Part>) -> Shared {
        Shared { name: name.into(), each: None, arch: None, children: vec![child.into()], span: Span::NONE }
    }

    /// The same, once for each group of this level.
    #[must_use]
    pub fn each(mut self, level: Level) -> Shared {
        self.each = Some(level);
        self
    }

    /// The same, over workers of this architecture only.
    #[must_use]
    pub fn arch(mut self, arch: Arch) -> Shared {
        self.arch = Some(arch);
        self
    }
}

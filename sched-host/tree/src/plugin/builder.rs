//! Selection of the components of a program.

use super::error::ComponentError;
use super::registry::Registry;
use super::search::SearchPath;
use sched_core::Offer;
use sched_policy::{Audience, Override};
use sched_text::did_you_mean;
use std::fmt;

/// Selects components: plugin files, compiled-in components, and which of several has a name.
///
/// ```
/// use sched_tree::plugin::{RegistryBuilder, SearchPath};
/// let registry = RegistryBuilder::default().search_path(SearchPath::empty()).load()?;
/// assert!(registry.component("fifo").is_some(), "it is compiled in");
/// let nothing = RegistryBuilder::default().search_path(SearchPath::empty()).without_builtin().load()?;
/// assert!(nothing.component("fifo").is_none());
/// # Ok::<(), sched_tree::plugin::RegistryError>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct RegistryBuilder {
    path: Option<SearchPath>,
    own: Vec<(String, Vec<Offer>)>,
    refused: bool,
    overrides: Vec<Override>,
    audience: Audience,
}

impl RegistryBuilder {
    /// Sets where to look for plugins; the default is [`SearchPath::from_environment`].
    #[must_use]
    pub fn search_path(mut self, path: SearchPath) -> RegistryBuilder {
        self.path = Some(path);
        self
    }

    /// Adds the program's own components, under the name of a package.
    #[must_use]
    pub fn components(mut self, package: impl Into<String>, offers: Vec<Offer>) -> RegistryBuilder {
        self.own.push((package.into(), offers));
        self
    }

    /// Excludes the compiled-in stock components: all stock components come from plugin files.
    #[must_use]
    pub fn without_builtin(mut self) -> RegistryBuilder {
        self.refused = true;
        self
    }

    /// Chooses among several components of one name, for every policy that does not choose itself.
    #[must_use]
    pub fn overriding(mut self, chosen: impl Into<Override>) -> RegistryBuilder {
        self.overrides.push(chosen.into());
        self
    }

    /// Sets the audience of error messages; [programs](Audience::Program) by default.
    #[must_use]
    pub fn audience(mut self, audience: Audience) -> RegistryBuilder {
        self.audience = audience;
        self
    }

    /// Searches for plugins and loads them.
    ///
    /// # Errors
    /// All overrides that choose nothing, and all of the program's own components that cannot be used. A plugin that
    /// cannot be loaded is no error: it is listed in [`Registry::files`].
    pub fn load(self) -> Result<Registry, RegistryError> {
        let mut registry = Registry::load(&self.path.unwrap_or_else(SearchPath::from_environment));
        registry.overrides = self.overrides;
        registry.audience = self.audience;
        registry.add_stock(self.refused);
        let mut error = RegistryError::default();
        for (package, offers) in self.own {
            if let Err(components) = registry.add_builtin(&package, offers) {
                error.components.extend(components);
            }
        }
        registry.settle();
        let wrong = registry.overrides.iter().enumerate().filter_map(|(index, chosen)| wrong(&registry, index, chosen));
        error.overrides = wrong.collect();
        if error.components.is_empty() && error.overrides.is_empty() { Ok(registry) } else { Err(error) }
    }
}

/// The problem of an override, if any.
fn wrong(registry: &Registry, index: usize, chosen: &Override) -> Option<String> {
    let name = &chosen.component;
    if registry.overrides[..index].iter().any(|other| other.component == *name && other.from != chosen.from) {
        return Some(format!("the component `{name}` is overridden twice, in different ways"));
    }
    let Some(offers) = registry.offers_of(name).filter(|offers| !offers.entries.is_empty()) else {
        let names = did_you_mean(name, registry.names(), "components");
        return Some(format!("nothing offers a component `{name}` to override: {names}"));
    };
    if offers.chosen(chosen).is_some() {
        return None;
    }
    let known: Vec<String> = offers.entries.iter().map(ToString::to_string).collect();
    Some(match &chosen.from {
        Some(from) => {
            format!("`{from}` offers no component `{name}` to override: it is offered by {}", known.join(" and by "))
        }
        None => format!(
            "no other component `{name}` is there to override: it is offered by {} only",
            known.join(" and by ")
        ),
    })
}

/// Why the requested components are not available: all problems.
#[derive(Clone, Default, miette::Diagnostic)]
#[diagnostic(code(sched::components), help("the list of plugins says what each offers"))]
pub struct RegistryError {
    /// Problems of the program's own components.
    pub components: Vec<ComponentError>,
    /// Problems of overrides, one line each.
    pub overrides: Vec<String>,
}

impl fmt::Display for RegistryError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let components = self.components.iter().map(|error| format!("{error}; {}", error.fix()));
        let lines: Vec<String> = components.chain(self.overrides.iter().cloned()).collect();
        f.write_str(&lines.join("\n"))
    }
}

impl std::error::Error for RegistryError {}

sched_text::debug_as_text!(RegistryError);

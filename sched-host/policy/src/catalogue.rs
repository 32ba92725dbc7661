//! Components that a policy may name.

use super::overrides::Override;
use sched_core::ComponentInfo;
use std::collections::BTreeSet;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

/// The components that a policy may name: those of plugins and those that are compiled in.
///
/// ```
/// use sched_core::{Family, Info};
/// use sched_policy::Catalogue;
/// let fifo = Info::new("fifo", Family::FlowControl, "Holds tasks in the order of their arrival.");
/// let catalogue = Catalogue::new([(fifo.describe(), "flow-control")]);
/// assert_eq!(catalogue.get("fifo").unwrap().plugin, "flow-control");
/// ```
#[derive(Clone, Debug, Default)]
pub struct Catalogue {
    offers: Vec<Offers>,
    looked_at: Vec<String>,
    not_loaded: Vec<String>,
    stock: Stock,
    audience: Audience,
}

/// Maximum number of rejected files listed in the error about an unknown component.
const LISTED: usize = 3;

/// Whether the stock components are compiled into the program.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Stock {
    /// Compiled in and available.
    CompiledIn,
    /// Compiled in, but refused by the user.
    Refused,
    /// Not compiled in.
    #[default]
    Absent,
}

/// Reader of error messages, on whom the proposed fix depends.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Audience {
    /// The author or the user of a program that uses this library.
    #[default]
    Program,
    /// The user of the `sched` command.
    CommandLine,
}

/// A component and what provides it.
#[derive(Clone, PartialEq, Debug)]
pub struct Entry {
    /// The component's description of itself.
    pub info: Arc<ComponentInfo>,
    /// Name of the plugin's package, or of the package that is compiled in.
    pub plugin: String,
    /// The plugin's file; `None` for a component that is compiled in.
    pub file: Option<PathBuf>,
}

impl Entry {
    /// Its name in `from` of an [`Override`]: the name of the file, or of the compiled-in package.
    #[must_use]
    pub fn short_name(&self) -> &str {
        let file = self.file.as_ref().and_then(|file| file.file_name()).and_then(|name| name.to_str());
        file.unwrap_or(&self.plugin)
    }

    /// Whether `from` of an [`Override`] names this component.
    fn is_from(&self, from: &str) -> bool {
        self.short_name() == from || self.plugin == from || (!self.info.package.is_empty() && self.info.package == from)
    }
}

impl fmt::Display for Entry {
    /// The file, or the package that is compiled in.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.file {
            Some(file) => write!(f, "{}", file.display()),
            None => write!(f, "{} (compiled in)", self.plugin),
        }
    }
}

/// All components of one name, and the selected one.
#[derive(Clone, Debug)]
pub struct Offers {
    /// Components in search order; the compiled-in one is last.
    pub entries: Vec<Entry>,
    /// Package of the compiled-in component, refused or not: it owns the name.
    pub owner: Option<String>,
    /// Index of the component that a policy without an override means; `None` where the user has to choose.
    pub meant: Option<usize>,
}

impl Offers {
    /// The component that a policy without an override means: the first, unless a compiled-in package owns the name and
    /// others offer it too.
    #[must_use]
    pub fn by_rule(&self) -> Option<usize> {
        let strangers = self.entries.iter().any(|entry| !self.is_owner(entry));
        (!self.entries.is_empty() && !strangers).then_some(0)
    }

    /// The component that an override means.
    #[must_use]
    pub fn chosen(&self, chosen: &Override) -> Option<usize> {
        match &chosen.from {
            Some(from) => self.entries.iter().position(|entry| entry.is_from(from)),
            None => self.entries.iter().position(|entry| self.owner.is_none() || !self.is_owner(entry)),
        }
    }

    fn is_owner(&self, entry: &Entry) -> bool {
        self.owner.as_ref().is_none_or(|owner| *owner == entry.info.package)
    }

    fn name(&self) -> &str {
        self.entries.first().map_or("", |entry| &entry.info.name)
    }
}

impl Catalogue {
    /// A catalogue of components with the names of their plugins. Of several components of one name, the first is used.
    pub fn new<P: Into<String>>(components: impl IntoIterator<Item = (ComponentInfo, P)>) -> Catalogue {
        let mut catalogue = Catalogue::default();
        for (info, plugin) in components {
            if catalogue.get(&info.name).is_none() {
                let entries = vec![Entry { info: Arc::new(info), plugin: plugin.into(), file: None }];
                catalogue.offers.push(Offers { entries, owner: None, meant: Some(0) });
            }
        }
        catalogue
    }

    /// A catalogue with these components for each name.
    #[must_use]
    pub fn of_offers(offers: Vec<Offers>) -> Catalogue {
        Catalogue { offers, ..Catalogue::default() }
    }

    /// Sets the files and directories where plugins were looked for, which errors about unknown components list.
    #[must_use]
    pub fn looked_at(mut self, places: impl IntoIterator<Item = impl Into<String>>) -> Catalogue {
        self.looked_at = places.into_iter().map(Into::into).collect();
        self
    }

    /// Sets the rejected files with reasons, which errors about unknown components list: the component may be in one of
    /// them.
    #[must_use]
    pub fn not_loaded(mut self, reasons: impl IntoIterator<Item = impl Into<String>>) -> Catalogue {
        self.not_loaded = reasons.into_iter().map(Into::into).collect();
        self
    }

    /// States whether the stock components are compiled in, for errors about missing components.
    #[must_use]
    pub fn stock(mut self, stock: Stock) -> Catalogue {
        self.stock = stock;
        self
    }

    /// Words errors for this audience.
    #[must_use]
    pub fn audience(mut self, audience: Audience) -> Catalogue {
        self.audience = audience;
        self
    }

    /// The component that this name means.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&Entry> {
        let offers = self.offers(name)?;
        offers.meant.map(|meant| &offers.entries[meant])
    }

    /// Every component that a name means, in the order given.
    pub fn iter(&self) -> impl Iterator<Item = &Entry> + Clone {
        self.offers.iter().filter_map(|offers| offers.meant.map(|meant| &offers.entries[meant]))
    }

    /// The catalogue as a policy with these overrides sees it.
    pub(super) fn overridden(&self, overrides: &[Override]) -> Catalogue {
        let mut catalogue = self.clone();
        for chosen in overrides {
            let offers = catalogue.offers.iter_mut().find(|offers| offers.name() == chosen.component);
            if let Some(offers) = offers {
                // The check reports an override that matches nothing.
                offers.meant = offers.chosen(chosen).or(offers.meant);
            }
        }
        catalogue
    }

    /// The component that an override means.
    ///
    /// # Errors
    /// All components of the name, if the override matches none.
    pub(super) fn chosen(&self, chosen: &Override) -> Result<&Entry, &[Entry]> {
        let offers = self.offers(&chosen.component).ok_or(&[][..])?;
        offers.chosen(chosen).map(|index| &offers.entries[index]).ok_or(&offers.entries)
    }

    /// Every component of a name among which the user has to choose, and the package that the name belongs to.
    pub(super) fn contest(&self, name: &str) -> Option<(&[Entry], &str)> {
        let offers = self.offers(name).filter(|offers| offers.meant.is_none())?;
        Some((&offers.entries, offers.owner.as_deref().unwrap_or_default()))
    }

    /// Help for a name with several components.
    pub(super) fn how_to_choose(&self, name: &str, from: &str) -> String {
        let everywhere = match self.audience {
            Audience::CommandLine => format!("`--override {name}={from}`"),
            Audience::Program => format!("`Builder::overriding(Override::new({name:?}).from({from:?}))`"),
        };
        format!(
            "choose one in the policy, with `override {name:?} from={from:?}`, or for all policies, with {everywhere}"
        )
    }

    /// Whether no component is known at all.
    pub(super) fn is_empty(&self) -> bool {
        self.offers.is_empty()
    }

    fn offers(&self, name: &str) -> Option<&Offers> {
        self.offers.iter().find(|offers| offers.name() == name)
    }

    /// Searched places: `: looked in …`; empty if unknown.
    pub(super) fn places(&self) -> String {
        match self.looked_at.as_slice() {
            [] => String::new(),
            places => format!(": looked in {}", places.join(", ")),
        }
    }

    /// Help for an empty catalogue, one line for each option.
    pub(super) fn how_to_find(&self) -> Vec<String> {
        let mut lines = vec![match self.audience {
            Audience::CommandLine => {
                "name the folder of the plugins with `--plugin-dir` or SCHED_PLUGIN_PATH".to_owned()
            }
            Audience::Program => {
                "name the folder of the plugins with SCHED_PLUGIN_PATH or `Builder::search_path`".to_owned()
            }
        }];
        lines.extend(
            match (self.stock, self.audience) {
                (Stock::CompiledIn, _) => None,
                (Stock::Refused, Audience::CommandLine) => {
                    Some("or leave out `--no-builtin`, which refuses the components that are compiled in")
                }
                (Stock::Refused, Audience::Program) => {
                    Some("or leave out `Builder::without_builtin`, which refuses the components that are compiled in")
                }
                (Stock::Absent, Audience::Program) => {
                    Some("or compile the components in, with the feature `stock` of sched-host")
                }
                (Stock::Absent, Audience::CommandLine) => None,
            }
            .map(str::to_owned),
        );
        lines.extend(self.missed());
        lines
    }

    /// Origin of components, for the error about an unknown one.
    pub(super) fn origin(&self) -> String {
        let plugins: BTreeSet<&str> = self.iter().map(|entry| entry.plugin.as_str()).collect();
        let plugins: Vec<&str> = plugins.into_iter().collect();
        let places = match self.looked_at.as_slice() {
            [] => String::new(),
            places => format!("; plugins were looked for in: {}", places.join(", ")),
        };
        let mut lines = vec![format!("components come from: {}{places}", plugins.join(", "))];
        lines.extend((self.stock == Stock::Refused).then(|| match self.audience {
            Audience::CommandLine => "`--no-builtin` refuses the components that are compiled in".to_owned(),
            Audience::Program => "`Builder::without_builtin` refuses the components that are compiled in".to_owned(),
        }));
        lines.extend(self.missed());
        lines.join("\n")
    }

    /// Rejected files, one line each.
    fn missed(&self) -> impl Iterator<Item = String> {
        let rest = self.not_loaded.len().saturating_sub(LISTED);
        let list = match self.audience {
            Audience::CommandLine => "`sched plugins` lists",
            Audience::Program => "`Registry::files` lists",
        };
        let rest = (rest > 0).then(|| format!("not loaded: {rest} more, which {list}"));
        self.not_loaded.iter().take(LISTED).map(|reason| format!("not loaded: {reason}")).chain(rest)
    }
}

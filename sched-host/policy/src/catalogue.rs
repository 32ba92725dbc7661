//! The components that a policy may name.

use sched_core::ComponentInfo;
use std::collections::BTreeSet;
use std::sync::Arc;

/// The components that loaded plugins provide, by name.
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
    entries: Vec<Entry>,
    looked_at: Vec<String>,
    not_loaded: Vec<String>,
}

/// So many of what was not loaded are told with a component that is not found.
const TOLD: usize = 3;

/// A component and the plugin that provides it.
#[derive(Clone, PartialEq, Debug)]
pub struct Entry {
    /// What the component says of itself.
    pub info: Arc<ComponentInfo>,
    /// Name of the plugin.
    pub plugin: String,
}

impl Catalogue {
    /// The components with the names of their plugins. When two have the same name, the first counts.
    pub fn new<P: Into<String>>(components: impl IntoIterator<Item = (ComponentInfo, P)>) -> Catalogue {
        let mut catalogue = Catalogue::default();
        for (info, plugin) in components {
            if catalogue.get(&info.name).is_none() {
                catalogue.entries.push(Entry { info: Arc::new(info), plugin: plugin.into() });
            }
        }
        catalogue
    }

    /// The same, with the places where plugins were looked for (files or directories), loaded or not: what to tell
    /// somebody whose component was not found.
    #[must_use]
    pub fn looked_at(mut self, places: impl IntoIterator<Item = impl Into<String>>) -> Catalogue {
        self.looked_at = places.into_iter().map(Into::into).collect();
        self
    }

    /// The same, with what was found there and is no use, each with the reason: a component that is missed may be in it.
    #[must_use]
    pub fn not_loaded(mut self, reasons: impl IntoIterator<Item = impl Into<String>>) -> Catalogue {
        self.not_loaded = reasons.into_iter().map(Into::into).collect();
        self
    }

    /// The component of this name.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&Entry> {
        self.entries.iter().find(|entry| entry.info.name == name)
    }

    /// Every component, in the order given.
    pub fn iter(&self) -> impl Iterator<Item = &Entry> + Clone {
        self.entries.iter()
    }

    /// Where components come from, for the help of "no such component".
    pub(super) fn origin(&self) -> String {
        let plugins: BTreeSet<&str> = self.entries.iter().map(|entry| entry.plugin.as_str()).collect();
        let plugins: Vec<&str> = plugins.into_iter().collect();
        let origin = match (plugins.is_empty(), self.looked_at.is_empty()) {
            (true, true) => "no plugin is loaded, so no component is known".to_owned(),
            (true, false) => format!(
                "no plugin is loaded; looked at: {}\nsay where plugins are with `--plugin-dir`, or in a program of your own \
                 with `Builder::search_path`",
                self.looked_at.join(", ")
            ),
            (false, true) => format!("looked in plugins: {}", plugins.join(", ")),
            (false, false) => {
                format!(
                    "looked in plugins: {}; plugins were looked for in: {}",
                    plugins.join(", "),
                    self.looked_at.join(", ")
                )
            }
        };
        let mut lines = vec![origin];
        lines.extend(self.not_loaded.iter().take(TOLD).map(|reason| format!("not loaded: {reason}")));
        let untold = self.not_loaded.len().saturating_sub(TOLD);
        lines.extend((untold > 0).then(|| format!("not loaded: {untold} more, which `sched plugins` lists")));
        lines.join("\n")
    }
}

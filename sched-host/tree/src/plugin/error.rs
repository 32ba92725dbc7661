//! What can be wrong with a plugin, a component of it, or the values a component is built from.

use crate::attended::PATIENCE;
use sched_core::abi::root;
use sched_core::abi::stamp::{self, StampError};
use std::path::PathBuf;
use thiserror::Error;

/// Why a file was not loaded. The message is one line: the file, what was found, what was expected.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
#[error("{}: {kind}", path.display())]
pub struct LoadError {
    /// The file, as the search came to it.
    pub path: PathBuf,
    /// What is wrong with it.
    pub kind: LoadErrorKind,
}

impl LoadError {
    /// What the owner of the file can do, in a line.
    #[must_use]
    pub fn mend(&self) -> &'static str {
        self.kind.mend()
    }
}

/// What is wrong with a file, in the order in which it is looked for.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
#[non_exhaustive]
pub enum LoadErrorKind {
    /// The system does not let it be read.
    #[error("it cannot be read: {0}")]
    Unreadable(String),
    /// A directory, pipe or device.
    #[error("it is {0}, expected a file")]
    NotAFile(&'static str),
    /// No shared library of this system.
    #[error("it is {0}, expected a shared library (ELF)")]
    NotALibrary(String),
    /// Built for another machine.
    #[error("it was built for {found}, this host runs on {expected}")]
    Machine {
        /// The file's machine.
        found: String,
        /// This process's machine.
        expected: String,
    },
    /// Its end is missing.
    #[error("it has {found} bytes, and its headers speak of {expected}")]
    Truncated {
        /// Bytes there.
        found: u64,
        /// Bytes that its headers name.
        expected: u64,
    },
    /// Its headers contradict each other.
    #[error("its headers make no sense: {0}")]
    Malformed(String),
    /// A library, and not a plugin.
    #[error("it is a library without the symbol `{}`, expected a plugin", stamp::SYMBOL)]
    NoStamp,
    /// It was built for another host.
    #[error("{0}")]
    Stamp(StampError),
    /// A child process that loaded it on trial did not survive.
    #[error("it is damaged, or fails on its own: {0}")]
    Fatal(String),
    /// The system's loader refuses it.
    #[error("the system's loader refuses it: {0}")]
    Open(String),
    /// It has a stamp and nothing else.
    #[error("it has a stamp and no function `{}`", root::SYMBOL)]
    NoEntry,
    /// The types that cross the edge lie otherwise in memory than here, although the stamp says they do not.
    #[error("its types are laid out otherwise than this host's: {0}")]
    Layout(String),
    /// It does not say what it offers, or not in words that this host knows.
    #[error("{0}")]
    Manifest(String),
}

impl LoadErrorKind {
    /// What the owner of the file can do, in a line.
    #[must_use]
    pub fn mend(&self) -> &'static str {
        match self {
            LoadErrorKind::Unreadable(_) => {
                "see that it is there and that this user may read it, or take it out of the folder"
            }
            LoadErrorKind::NotAFile(_) | LoadErrorKind::NotALibrary(_) => "take it out of the folder of plugins",
            LoadErrorKind::Machine { .. } => "build it for this host's target",
            LoadErrorKind::Truncated { .. } => "copy it again, whole",
            LoadErrorKind::Malformed(_) => "build it again, or copy it again",
            LoadErrorKind::NoStamp => {
                "build it with `sched_core::export_components!`, or take it out of the folder of plugins"
            }
            LoadErrorKind::Stamp(error) => error.fix(),
            LoadErrorKind::Fatal(_) => "build it again, or copy it again; if that does not help, ask its author",
            LoadErrorKind::Open(_) => "install what it needs, or link it into the plugin",
            LoadErrorKind::NoEntry => "build it with `sched_core::export_components!`",
            LoadErrorKind::Layout(_) => "build it again against the sched-core of this host",
            LoadErrorKind::Manifest(_) => "ask its author, or update this host if the plugin is newer",
        }
    }

    /// One word for machines to tell kinds apart by. It does not change.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            LoadErrorKind::Unreadable(_) => "unreadable",
            LoadErrorKind::NotAFile(_) => "not-a-file",
            LoadErrorKind::NotALibrary(_) => "not-a-library",
            LoadErrorKind::Machine { .. } => "machine",
            LoadErrorKind::Truncated { .. } => "truncated",
            LoadErrorKind::Malformed(_) => "malformed",
            LoadErrorKind::NoStamp => "no-stamp",
            LoadErrorKind::Stamp(_) => "stamp",
            LoadErrorKind::Fatal(_) => "fatal",
            LoadErrorKind::Open(_) => "open",
            LoadErrorKind::NoEntry => "no-entry",
            LoadErrorKind::Layout(_) => "layout",
            LoadErrorKind::Manifest(_) => "manifest",
        }
    }

    /// Whether the file is just no plugin, as many files are, rather than a plugin that went wrong.
    #[must_use]
    pub fn is_no_plugin(&self) -> bool {
        matches!(self, LoadErrorKind::NotAFile(_) | LoadErrorKind::NotALibrary(_) | LoadErrorKind::NoStamp)
    }
}

/// Why one component of a loaded plugin cannot be used. The others of that plugin can.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
#[non_exhaustive]
pub enum ComponentError {
    /// An earlier plugin of the search path has the name.
    #[error("{plugin} offers a component `{component}`, and {first} does so first")]
    NameTaken {
        /// The name.
        component: String,
        /// The plugin whose component this is: its file, or its package when it is compiled in.
        plugin: String,
        /// The plugin whose component keeps the name.
        first: String,
    },
    /// It has the name of a stock component, and nobody says which one is meant; or it is the stock component.
    #[error("{plugin} offers a component `{component}`, and so does {others}")]
    Contested {
        /// The name.
        component: String,
        /// The plugin whose component this is.
        plugin: String,
        /// What else offers a component of the name.
        others: String,
    },
    /// What the plugin says of it cannot be.
    #[error("{plugin} describes component `{component}` badly: {fault}")]
    Described {
        /// The name.
        component: String,
        /// The plugin whose component this is.
        plugin: String,
        /// What cannot be.
        fault: String,
    },
}

impl ComponentError {
    /// What the owner of the plugin can do, in a line.
    #[must_use]
    pub fn mend(&self) -> &'static str {
        match self {
            ComponentError::NameTaken { .. } => {
                "rename one of the two, or put the folder of the one that you want first in the search path"
            }
            ComponentError::Contested { .. } => {
                "choose one, with `override` in the policy or for all policies, or rename the one that is not a stock component"
            }
            ComponentError::Described { .. } => "ask its author to mend the `Info` of the component",
        }
    }

    /// One word for machines to tell kinds apart by. It does not change.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            ComponentError::NameTaken { .. } => "name-taken",
            ComponentError::Contested { .. } => "contested",
            ComponentError::Described { .. } => "described",
        }
    }
}

/// Why a component was not built from its parameters.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
#[non_exhaustive]
pub enum ConstructError {
    /// A value has another type than the parameter, or is out of its range.
    #[error("`{param}` of component `{component}` is {found}, expected {expected}")]
    Value {
        /// The component.
        component: String,
        /// The parameter.
        param: String,
        /// The value, as a policy writes it.
        found: String,
        /// Type and range.
        expected: String,
    },
    /// There is no such parameter.
    #[error("component `{component}` has no parameter `{param}`")]
    UnknownParam {
        /// The component.
        component: String,
        /// The parameter.
        param: String,
    },
    /// The constructor says that the values do not go together.
    #[error("component `{component}` of {plugin} does not accept its parameters: {message}")]
    Refused {
        /// The component.
        component: String,
        /// The plugin: its file, or its package when it is compiled in.
        plugin: String,
        /// What the constructor said.
        message: String,
    },
    /// The constructor panicked.
    #[error("component `{component}` of {plugin} panicked while it was built: {message}")]
    Panicked {
        /// The component.
        component: String,
        /// The plugin.
        plugin: String,
        /// What the panic said.
        message: String,
    },
    /// The constructor did not come back.
    #[error("component `{component}` of {plugin} was not built within {PATIENCE:?}: its `build` does not come back")]
    Late {
        /// The component.
        component: String,
        /// The plugin.
        plugin: String,
    },
}

impl ConstructError {
    /// What the author of the policy can do, in a line.
    #[must_use]
    pub fn mend(&self) -> &'static str {
        match self {
            ConstructError::Value { .. } | ConstructError::UnknownParam { .. } => {
                "`sched plugins` lists the parameters of every component"
            }
            ConstructError::Refused { .. } => "change the parameters in the policy",
            ConstructError::Panicked { .. } | ConstructError::Late { .. } => {
                "tell the author of the plugin, or use another component"
            }
        }
    }
}

//! Errors of plugins, of their components, and of values for components.

use crate::attended::PATIENCE;
use sched_core::abi::stamp::{self, StampError};
use sched_core::abi::{c, root};
use std::path::PathBuf;
use thiserror::Error;

/// Why a file was not loaded. The message is one line: the file, what was found, what was expected.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
#[error("{}: {kind}", path.display())]
pub struct LoadError {
    /// The file, as the search found it.
    pub path: PathBuf,
    /// The problem.
    pub kind: LoadErrorKind,
}

impl LoadError {
    /// The fix, for the owner of the file, in one line.
    #[must_use]
    pub fn fix(&self) -> &'static str {
        self.kind.fix()
    }
}

/// Problems of a file, in the order of the checks.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
#[non_exhaustive]
pub enum LoadErrorKind {
    /// The system does not allow reading it.
    #[error("it cannot be read: {0}")]
    Unreadable(String),
    /// It is a directory, pipe or device.
    #[error("it is {0}, expected a file")]
    NotAFile(&'static str),
    /// It is no shared library of this system.
    #[error("it is {0}, expected a shared library (ELF)")]
    NotALibrary(String),
    /// It was built for another machine.
    #[error("it was built for {found}, this host runs on {expected}")]
    Machine {
        /// Machine of the file.
        found: String,
        /// Machine of this process.
        expected: String,
    },
    /// It is truncated.
    #[error("it has {found} bytes, and its headers speak of {expected}")]
    Truncated {
        /// Its size in bytes.
        found: u64,
        /// Size in bytes according to its headers.
        expected: u64,
    },
    /// Its headers contradict each other.
    #[error("its headers make no sense: {0}")]
    Malformed(String),
    /// It is a library without a stamp, so no plugin.
    #[error("it is a library without the symbol `{}`, expected a plugin", stamp::SYMBOL)]
    NoStamp,
    /// It was built for another host.
    #[error("{0}")]
    Stamp(StampError),
    /// A child process that loaded it on trial did not survive.
    #[error("it is damaged, or fails on its own: {0}")]
    Fatal(String),
    /// This host failed when it used the components on trial.
    #[error("this host failed when it tried the components, and says nothing of the plugin")]
    NotTried,
    /// The loader of the system rejects it.
    #[error("the system's loader refuses it: {0}")]
    Open(String),
    /// It was loaded from its own file, which has another content now.
    #[error("what it was before is loaded from the same file, and the system's loader takes both for one library")]
    Replaced,
    /// It has a stamp and nothing else.
    #[error("it has a stamp and no function `{}`", root::SYMBOL)]
    NoEntry,
    /// It has the stamp of a plugin in C, and nothing else.
    #[error("it has a stamp of `msched.h` and no `{}`", c::SYMBOL)]
    NoTables,
    /// The layouts of the types of the interface differ, although the stamp claims otherwise.
    #[error("its types are laid out otherwise than this host's: {0}")]
    Layout(String),
    /// Its manifest is missing, or not understood by this host.
    #[error("{0}")]
    Manifest(String),
}

impl LoadErrorKind {
    /// The fix, for the owner of the file, in one line.
    #[must_use]
    pub fn fix(&self) -> &'static str {
        match self {
            LoadErrorKind::Unreadable(_) => {
                "see that it is there and that this user may read it, or take it out of the folder"
            }
            LoadErrorKind::NotAFile(_) | LoadErrorKind::NotALibrary(_) => "take it out of the folder of plugins",
            LoadErrorKind::Machine { .. } => "build it for this host's target",
            LoadErrorKind::Truncated { .. } => "copy it again, whole",
            LoadErrorKind::Malformed(_) => "build it again, or copy it again",
            LoadErrorKind::NoStamp => {
                "build it with `sched_core::export_components!` (in C with `MSCHED_PLUGIN`), or take it out of the folder of plugins"
            }
            LoadErrorKind::Stamp(error) => error.fix(),
            LoadErrorKind::Fatal(_) => "build it again, or copy it again; if that does not help, ask its author",
            LoadErrorKind::NotTried => "report it, with the plugin: this is a mistake in the host",
            LoadErrorKind::Open(_) => "install what it needs, or link it into the plugin",
            LoadErrorKind::Replaced => "start the program again to use the new one",
            LoadErrorKind::NoEntry => "build it with `sched_core::export_components!`",
            LoadErrorKind::NoTables => "build it with `MSCHED_PLUGIN` of `msched.h`",
            LoadErrorKind::Layout(_) => "build it again against the sched-core of this host",
            LoadErrorKind::Manifest(_) => "ask its author, or update this host if the plugin is newer",
        }
    }

    /// Stable identifier of the kind, for programs.
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
            LoadErrorKind::NotTried => "not-tried",
            LoadErrorKind::Open(_) => "open",
            LoadErrorKind::Replaced => "replaced",
            LoadErrorKind::NoEntry => "no-entry",
            LoadErrorKind::NoTables => "no-tables",
            LoadErrorKind::Layout(_) => "layout",
            LoadErrorKind::Manifest(_) => "manifest",
        }
    }

    /// Whether the file simply is no plugin, rather than a broken one.
    #[must_use]
    pub fn is_no_plugin(&self) -> bool {
        matches!(self, LoadErrorKind::NotAFile(_) | LoadErrorKind::NotALibrary(_) | LoadErrorKind::NoStamp)
    }
}

/// Why one component of a loaded plugin cannot be used. The other components can.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
#[non_exhaustive]
pub enum ComponentError {
    /// An earlier plugin of the search path has a component of this name.
    #[error("{plugin} offers a component `{component}`, and {first} does so first")]
    NameTaken {
        /// The name.
        component: String,
        /// Plugin of the component: its file, or its package if it is compiled in.
        plugin: String,
        /// Plugin whose component keeps the name.
        first: String,
    },
    /// It has the name of a stock component, or is that component, and the user has not chosen one.
    #[error("{plugin} offers a component `{component}`, and so does {others}")]
    Contested {
        /// The name.
        component: String,
        /// Plugin of the component.
        plugin: String,
        /// Other providers of a component of this name.
        others: String,
    },
    /// Its description is invalid.
    #[error("{plugin} describes component `{component}` badly: {fault}")]
    Described {
        /// The name.
        component: String,
        /// Plugin of the component.
        plugin: String,
        /// The invalid part.
        fault: String,
    },
}

impl ComponentError {
    /// The fix, for the owner of the plugin, in one line.
    #[must_use]
    pub fn fix(&self) -> &'static str {
        match self {
            ComponentError::NameTaken { .. } => {
                "rename one of the two, or put the folder of the one that you want first in the search path"
            }
            ComponentError::Contested { .. } => {
                "choose one, with `override` in the policy or for all policies, or rename the one that is not a stock component"
            }
            ComponentError::Described { .. } => "ask the author of the component to fix its `Info`",
        }
    }

    /// Stable identifier of the kind, for programs.
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
    /// A value has another type than the parameter, or is out of range.
    #[error("`{param}` of component `{component}` is {found}, expected {expected}")]
    Value {
        /// The component.
        component: String,
        /// The parameter.
        param: String,
        /// The value, as written in a policy.
        found: String,
        /// Expected type and range.
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
    /// The constructor rejects the combination of values.
    #[error("component `{component}` of {plugin} does not accept its parameters: {message}")]
    Refused {
        /// The component.
        component: String,
        /// Plugin: its file, or its package if it is compiled in.
        plugin: String,
        /// Message of the constructor.
        message: String,
    },
    /// The constructor panicked.
    #[error("component `{component}` of {plugin} panicked while it was built: {message}")]
    Panicked {
        /// The component.
        component: String,
        /// The plugin.
        plugin: String,
        /// Message of the panic.
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
    /// The fix, for the author of the policy, in one line.
    #[must_use]
    pub fn fix(&self) -> &'static str {
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

//! Completion of open-ended values: names of policies and platforms, or any path.

use clap::builder::{PossibleValue, StringValueParser, TypedValueParser};
use clap::error::Error;
use clap::{Arg, Command};
use std::ffi::OsStr;

/// Any text; some values are known by name.
#[derive(Clone, Copy)]
pub(super) struct Hinted {
    names: fn() -> Vec<&'static str>,
}

/// A policy: `all`, the name of a shipped one, or any path.
pub(super) const POLICY: Hinted = Hinted { names: policies };

/// A platform: the name of a shipped one, or any path.
pub(super) const PLATFORM: Hinted = Hinted { names: platforms };

/// A task graph: the name of a generator, or any path.
pub(super) const GRAPH: Hinted = Hinted { names: super::graph_source::names };

/// All of them.
pub(super) const ALL: [Hinted; 3] = [POLICY, PLATFORM, GRAPH];

impl Hinted {
    /// The known names; at least one.
    pub(super) fn names(self) -> Vec<&'static str> {
        (self.names)()
    }
}

fn policies() -> Vec<&'static str> {
    sched_policy::library().iter().map(|shipped| shipped.name).collect()
}

fn platforms() -> Vec<&'static str> {
    sched_sim::platform::library().iter().map(|shipped| shipped.name).collect()
}

impl TypedValueParser for Hinted {
    type Value = String;

    fn parse_ref(&self, command: &Command, arg: Option<&Arg>, value: &OsStr) -> Result<String, Error> {
        StringValueParser::new().parse_ref(command, arg, value)
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        Some(Box::new(self.names().into_iter().map(PossibleValue::new)))
    }
}

//! Environment variables: an empty one counts as unset, everywhere.

use clap::builder::{Resettable, StyledStr};
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Arg, Command};
use std::ffi::{OsStr, OsString};

/// The value of a variable that is set and not empty.
pub(super) fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}

/// The command without the variables that are empty.
pub(super) fn without_empty(command: Command) -> Command {
    let is_empty = |name: &OsStr| std::env::var_os(name).is_some_and(|value| value.is_empty());
    let without = |arg: Arg| match arg.get_env().is_some_and(is_empty) {
        true => arg.env(Resettable::<clap::builder::OsStr>::Reset),
        false => arg,
    };
    command.mut_args(without).mut_subcommands(without_empty)
}

/// Adds to an error about a value which variable it is from, if the command line, `words`, has it not.
pub(super) fn named_in(mut error: clap::Error, command: &Command, words: &[OsString]) -> clap::Error {
    if let (ErrorKind::InvalidValue | ErrorKind::ValueValidation, Some(name)) =
        (error.kind(), source(&error, command, words))
    {
        let tip = StyledStr::from(format!("the value is that of the environment variable {name}"));
        error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![tip]));
    }
    error
}

/// The variable from which the value is that an error is about.
fn source(error: &clap::Error, command: &Command, words: &[OsString]) -> Option<String> {
    let text = |kind| match error.get(kind) {
        Some(ContextValue::String(text)) => Some(text.as_str()),
        _ => None,
    };
    let (option, value) = (text(ContextKind::InvalidArg)?, text(ContextKind::InvalidValue)?);
    let long = option.split([' ', '=']).next()?;
    let is_given = words.iter().filter_map(|word| word.to_str()).any(|word| word.split('=').next() == Some(long));
    let arg = all_args(command).find(|arg| arg.get_long().is_some_and(|name| long.strip_prefix("--") == Some(name)))?;
    let name = arg.get_env().filter(|_| !is_given)?.to_str()?;
    (variable(name)? == value).then(|| name.to_owned())
}

/// The arguments of a command and of those below it that have variables.
fn all_args(command: &Command) -> Box<dyn Iterator<Item = &Arg> + '_> {
    let own = command.get_arguments().filter(|arg| arg.get_env().is_some());
    Box::new(own.chain(command.get_subcommands().flat_map(all_args)))
}

//! `sched plugins`: files that were searched, their components, and reasons for rejection.

mod json;
mod text;

use super::format::{FormatOptions, text_or_json};
use super::reports::warn;
use miette::IntoDiagnostic;
use sched_policy::{Audience, Override};
use sched_tree::plugin::{FolderReport, FolderState, Origin, Registry, RegistryBuilder, SearchPath};
use std::ffi::OsString;
use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

/// Options for the search of plugins, of every subcommand that loads them.
#[derive(clap::Args, Clone, Debug, Default)]
pub struct PluginOptions {
    /// Folder of plugins, searched before all others; may be repeated
    #[arg(long = "plugin-dir", value_name = "DIR", global = true, help_heading = "Plugins")]
    pub plugin_dirs: Vec<PathBuf>,

    /// Folders of plugins separated by colons, searched after those of --plugin-dir
    #[arg(long, value_name = "DIRS", env = sched_tree::plugin::PLUGIN_PATH_VARIABLE, global = true, help_heading = "Plugins")]
    pub plugin_path: Option<OsString>,

    /// Refuse compiled-in components, so that all come from files
    #[arg(long, global = true, help_heading = "Plugins")]
    pub no_builtin: bool,

    /// Use the component NAME of a plugin instead of the stock component, in all policies without an `override` of
    /// their own; FILE is the plugin's file name or package. May be repeated
    #[arg(long = "override", value_name = "NAME[=FILE]", global = true, help_heading = "Plugins")]
    #[arg(value_parser = overriding)]
    pub overrides: Vec<Override>,
}

fn overriding(text: &str) -> Result<Override, String> {
    match text.split_once('=') {
        Some((name, from)) if !name.is_empty() && !from.is_empty() => Ok(Override::new(name).from(from)),
        None if !text.is_empty() => Ok(Override::new(text)),
        _ => Err("expected NAME or NAME=FILE, as in `fifo=libmine.so`".to_owned()),
    }
}

impl PluginOptions {
    /// The named folders, then the default ones.
    #[must_use]
    pub fn search_path(&self) -> SearchPath {
        let named = self.plugin_dirs.iter().fold(SearchPath::empty(), SearchPath::with_folder);
        let listed = match &self.plugin_path {
            Some(list) => named.with_list(list),
            None => named,
        };
        listed.with_own_defaults()
    }

    /// The components selected by the options.
    ///
    /// # Errors
    /// Overrides that match nothing.
    pub fn registry(&self) -> miette::Result<Registry> {
        let builder = RegistryBuilder::default().search_path(self.search_path()).audience(Audience::CommandLine);
        let builder = if self.no_builtin { builder.without_builtin() } else { builder };
        Ok(self.overrides.iter().cloned().fold(builder, RegistryBuilder::overriding).load()?)
    }

    /// [`registry`](Self::registry), with a warning for each folder of `--plugin-dir` that cannot be searched.
    ///
    /// # Errors
    /// As there.
    pub(crate) fn registry_for_use(&self) -> miette::Result<Registry> {
        let registry = self.registry()?;
        for FolderReport { folder, state, .. } in registry.folders() {
            let why = match state {
                FolderState::Missing => "there is no such folder",
                FolderState::Unreadable(why) => why,
                FolderState::Searched | FolderState::AlreadySearched => continue,
            };
            if folder.origin == Origin::Named {
                warn(&format!("warning: no plugins of `{}` ({}): {why}", folder.path.display(), folder.origin));
            }
        }
        Ok(registry)
    }
}

/// List plugins, the components they offer, and why a file was not loaded
///
/// Every file is listed in the order of the search, which goes through the folders of --plugin-dir, then those of
/// SCHED_PLUGIN_PATH, then `plugins` beside this program, this program's own folder, and `../lib/sched/plugins` from
/// there. Last come the components that are compiled into this program.
///
/// If two plugins offer a component of one name, the first is used. Stock components of a plugin file hide compiled-in
/// ones. Other components with the name of a stock component must be chosen, with --override or in the policy.
///
/// The exit code is 0 even if files are rejected: a bad plugin does not affect the others.
#[derive(clap::Args, Clone, Debug)]
#[command(mut_arg("format", text_or_json))]
pub struct Args {
    #[command(flatten)]
    format: FormatOptions,

    /// Also show missing folders, and the declared properties of each component
    #[arg(long, short)]
    pub verbose: bool,
}

impl Args {
    /// Arguments of `sched plugins`, for tests.
    #[must_use]
    pub const fn new(verbose: bool, json: bool) -> Args {
        Args { verbose, format: FormatOptions::new(json) }
    }
}

/// Writes the list of `registry` to `out`.
///
/// # Errors
/// If `out` cannot be written.
pub fn run(args: &Args, registry: &Registry, out: &mut dyn Write) -> miette::Result<ExitCode> {
    if args.format.is_json() {
        json::write(registry, out)
    } else {
        out.write_all(text::render(registry, args.verbose).as_bytes())
    }
    .into_diagnostic()?;
    Ok(ExitCode::SUCCESS)
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;
    use sched_tree::plugin::Origin;

    #[derive(Parser)]
    struct Command {
        #[command(flatten)]
        options: PluginOptions,
    }

    #[test]
    fn folders_are_searched_in_the_order_of_the_help() {
        let words = ["sched", "--plugin-path", "/c:/d", "--plugin-dir", "/a", "--plugin-dir=/b"];
        let path = Command::parse_from(words).options.search_path();
        let folders: Vec<_> = path.folders().iter().map(|folder| (folder.path.as_path(), folder.origin)).collect();
        let named = ["/a", "/b"].map(|path| (path.as_ref(), Origin::Named));
        let listed = ["/c", "/d"].map(|path| (path.as_ref(), Origin::Variable));
        assert_eq!(folders[..4], [named, listed].concat());
        assert_eq!(folders[4].1, Origin::BesideExecutable);
        assert_eq!(folders.len(), 7);
    }
}

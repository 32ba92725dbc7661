//! What the command line gives for inputs and outputs: no stream and no file twice, and no input that would be lost.

use super::{FileNames, STREAM, Target};
use crate::compare;
use crate::contexts::wanted;
use crate::policy::{PolicyOptions, without_repetition};
use clap::{ArgMatches, FromArgMatches};
use std::ffi::{OsStr, OsString};
use std::fs;
use std::path::{Path, PathBuf};

/// Options and arguments that are read, or may name the standard input.
const INPUTS: [&str; 6] = ["workload", "graph", "platform", "xml", "matrix", "goals"];
/// Those with lists of policies.
const POLICIES: [&str; 2] = ["policies", "named"];
/// That with a policy, and perhaps a time.
const SWAP: &str = "swap_to";
/// That with a policy among other settings.
const CONTEXTS: &str = "contexts";
/// Options that name files to write, or the standard output.
const OUTPUTS: [&str; 6] = ["trace", "gantt", "record", "events", "html", "output"];
/// Those of which each of several policies has one.
const OF_EACH: [&str; 3] = ["trace", "gantt", "events"];

/// Refuses `-` for two inputs, or two outputs, of the command in `matches`, one file for two outputs, or for an input
/// and an output, and files without a name.
///
/// # Errors
/// The error with the fix.
pub(crate) fn check(matches: &ArgMatches) -> Result<(), String> {
    check_command("", matches)
}

fn check_command(command: &str, matches: &ArgMatches) -> Result<(), String> {
    let inputs = inputs(matches);
    let outputs: Vec<(&str, &OsStr)> =
        OUTPUTS.iter().flat_map(|id| given(matches, id).map(|name| (*id, name))).collect();
    let read = inputs.iter().filter(|name| *name == STREAM).count();
    // Several policies of one text are read once.
    let of_text = inputs.iter().any(|name| name.starts_with("-#"));
    let written = outputs.iter().filter(|(_, name)| *name == STREAM).count();
    for (times, stream) in [(read + usize::from(of_text), "input"), (written, "output")] {
        if times > 1 {
            return Err(format!("`-` is given {times} times for the standard {stream}, which can be used once"));
        }
    }
    let inputs: Vec<PathBuf> = inputs.iter().filter_map(|name| fs::canonicalize(name).ok()).collect();
    let mut parts = FileNames::default();
    let parts: Vec<String> = several(command, matches).iter().map(|policy| parts.of(policy)).collect();
    let mut files: Vec<(PathBuf, &str)> = Vec::new();
    for (id, name) in outputs.into_iter().filter(|(_, name)| *name != STREAM) {
        if name.is_empty() {
            return Err(format!("the name of the file for --{id} is empty: name a file, or `-`"));
        }
        for name in written_for(id, name, &parts) {
            let Some(file) = replaced(Path::new(&name)) else { continue };
            let name = Path::new(&name).display();
            if inputs.contains(&file) {
                return Err(format!(
                    "`{name}` is given for --{id}, which would replace what the command reads: name another file for --{id}"
                ));
            }
            if let Some((_, other)) = files.iter().find(|(known, _)| *known == file) {
                return Err(format!(
                    "`{name}` is given for --{other} and for --{id}: name another file for one of them"
                ));
            }
            files.push((file, id));
        }
    }
    matches.subcommand().map_or(Ok(()), |(command, below)| check_command(command, below))
}

/// The schedules of a command that have a file each.
fn several(command: &str, matches: &ArgMatches) -> Vec<String> {
    // What is wrong with the options is said later.
    let named = |named: fn(&PolicyOptions) -> miette::Result<Vec<String>>| {
        let policies = PolicyOptions::from_arg_matches(matches).ok().and_then(|options| named(&options).ok());
        without_repetition(policies.unwrap_or_default())
    };
    match command {
        "simulate" => Some(named(PolicyOptions::several)).filter(|policies| policies.len() > 1).unwrap_or_default(),
        "compare" => {
            let policies = named(|options| options.several_or("all"));
            policies.into_iter().chain(compare::STATIC.as_flattened().iter().map(|name| (*name).to_owned())).collect()
        }
        _ => Vec::new(),
    }
}

/// The file that is named for the option `id`, and those with one of these `parts` of each schedule in their names.
fn written_for(id: &str, name: &OsStr, parts: &[String]) -> Vec<OsString> {
    let target = Target::File(name.into());
    let of = |part: &String| Some(target.of_several(part).ok()?.path()?.as_os_str().to_owned());
    let each = parts.iter().filter(|_| OF_EACH.contains(&id)).filter_map(of);
    std::iter::once(name.to_owned()).chain(each).collect()
}

/// The names of all that is read. What is no file, such as the name of a shipped policy, is among them.
fn inputs(matches: &ArgMatches) -> Vec<String> {
    let of = |id| given(matches, id).map(|value| value.to_string_lossy().into_owned());
    let mut policies = Vec::new();
    for list in POLICIES.iter().flat_map(|id| of(id)) {
        match Path::new(&list).exists() {
            true => policies.push(list),
            false => policies.extend(list.split(',').map(|name| name.trim().to_owned())),
        }
    }
    for policy in of(SWAP) {
        policies.extend(policy.rsplit_once('@').map(|(policy, _time)| policy.to_owned()));
        policies.push(policy);
    }
    policies.extend(of(CONTEXTS).filter_map(|context| wanted(&context).ok()?.policy));
    let policies = policies.iter().map(|policy| text_of(policy));
    INPUTS.iter().flat_map(|id| of(id)).chain(policies).collect()
}

/// The file with the text of a policy, without the name in it and without parameters that are set. Of a text on the
/// standard input, the name stays.
fn text_of(policy: &str) -> String {
    if Path::new(policy).exists() {
        return policy.to_owned();
    }
    let name = match policy.split_once('+') {
        Some((name, set)) if set.contains('=') => name,
        _ => policy,
    };
    match name.rsplit_once('#') {
        Some((path, _)) if path != STREAM => path.to_owned(),
        _ => name.to_owned(),
    }
}

/// Values of an option on the command line.
fn given<'m>(matches: &'m ArgMatches, id: &str) -> impl Iterator<Item = &'m OsStr> + use<'m> {
    matches.try_get_raw(id).ok().flatten().into_iter().flatten()
}

/// The file that an output to `path` replaces, by one of its names; `None` for a pipe or a device.
fn replaced(path: &Path) -> Option<PathBuf> {
    if let Ok(there) = fs::canonicalize(path) {
        return there.is_file().then_some(there);
    }
    let folder = path.parent().filter(|folder| *folder != Path::new("")).unwrap_or(Path::new("."));
    let folder = fs::canonicalize(folder).unwrap_or_else(|_| folder.to_owned());
    Some(folder.join(path.file_name()?))
}

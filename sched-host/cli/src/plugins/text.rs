//! The list of plugins as text.

use sched_core::abi::driver::DriverSummary;
use sched_core::{Arity, ComponentInfo, ParamInfo};
use sched_text::count;
use sched_tree::plugin::{
    CompiledIn, ComponentState, FileState, FolderReport, FolderState, ListedComponent, LoadedPlugin, Registry,
};
use std::fmt::Write;
use std::path::Path;

/// The list, folder by folder in search order.
pub(super) fn render(registry: &Registry, verbose: bool) -> String {
    let mut out = String::new();
    for (index, report) in registry.folders().iter().enumerate() {
        let files: Vec<_> = registry.files().iter().filter(|file| file.folder == index).collect();
        let Some(remark) = folder_remark(report, files.is_empty(), verbose) else { continue };
        line(&mut out, 0, format_args!("{} ({}){remark}", report.folder.path.display(), report.folder.origin));
        for file in files {
            let name = file.path.file_name().map(Path::new).unwrap_or(&file.path).display();
            match &file.state {
                FileState::Loaded(plugin) => plugin_lines(&mut out, &name.to_string(), plugin, verbose),
                FileState::Rejected(error) => {
                    line(&mut out, 1, format_args!("{name}: rejected: {}", error.kind));
                    line(&mut out, 2, format_args!("fix: {}", error.fix()));
                }
                FileState::NotAPlugin(kind) if verbose => {
                    line(&mut out, 1, format_args!("{name}: not a plugin: {kind}"));
                }
                FileState::NotAPlugin(_) => line(&mut out, 1, format_args!("{name}: not a plugin")),
                FileState::AlreadySeen(first) => {
                    line(&mut out, 1, format_args!("{name}: already seen as {}", first.display()));
                }
            }
        }
        out.push('\n');
    }
    for package in registry.packages() {
        package_lines(&mut out, package, verbose);
        out.push('\n');
    }
    summary(&mut out, registry);
    out
}

/// Text about a folder after its name; `None` if it needs no line.
fn folder_remark(report: &FolderReport, empty: bool, verbose: bool) -> Option<String> {
    let asked_for = report.folder.origin.is_asked_for();
    match &report.state {
        FolderState::Searched if !empty => Some(String::new()),
        FolderState::Searched => (asked_for || verbose).then(|| ": no libraries".to_owned()),
        FolderState::AlreadySearched => verbose.then(|| ": already searched".to_owned()),
        FolderState::Missing => (asked_for || verbose).then(|| ": there is no such folder".to_owned()),
        FolderState::Unreadable(message) => Some(format!(": cannot be read: {message}")),
    }
}

fn plugin_lines(out: &mut String, name: &str, plugin: &LoadedPlugin, verbose: bool) {
    let (major, minor) = plugin.abi;
    let id = &plugin.id;
    line(out, 1, format_args!("{name}: {} {}, interface {major}.{minor}", id.package, id.version));
    for component in &plugin.components {
        component_lines(out, component, verbose);
    }
    if let Some(driver) = &plugin.driver {
        driver_lines(out, driver);
    }
    for warning in &plugin.warnings {
        line(out, 2, format_args!("warning: {warning}"));
    }
}

fn driver_lines(out: &mut String, driver: &DriverSummary) {
    line(out, 2, format_args!("{} (driver of {} devices){}", driver.name, driver.arch, described(&driver.doc)));
    if !driver.note.is_empty() {
        line(out, 3, format_args!("note{}", described(&driver.note)));
    }
}

fn package_lines(out: &mut String, package: &CompiledIn, verbose: bool) {
    let refused = if package.refused { ": refused" } else { "" };
    line(out, 0, format_args!("compiled in{refused}"));
    line(out, 1, format_args!("{}", format!("{} {}", package.id.package, package.id.version).trim_end()));
    for component in &package.components {
        if package.refused {
            line(out, 2, format_args!("{}", component.info.name));
        } else {
            component_lines(out, component, verbose);
        }
    }
}

fn component_lines(out: &mut String, listed: &ListedComponent, verbose: bool) {
    let ListedComponent { info, state, hides } = listed;
    if let ComponentState::Hidden(by) = state {
        return line(out, 2, format_args!("{}: hidden by {by}", info.name));
    }
    line(out, 2, format_args!("{} ({}, {}){}", info.name, info.family, children(info), described(&info.doc)));
    if let ComponentState::Rejected(errors) = state {
        for error in errors {
            line(out, 3, format_args!("rejected: {error}"));
            line(out, 4, format_args!("fix: {}", error.fix()));
        }
    }
    if !hides.is_empty() {
        line(out, 3, format_args!("hides the component of {}", hides.join(" and ")));
    }
    if verbose {
        line(out, 3, format_args!("{}", traits(info)));
    }
    for slot in &info.slots {
        let optional = if slot.optional { " (may be left out)" } else { "" };
        line(out, 3, format_args!("slot {}{optional}{}", slot.name, described(&slot.doc)));
    }
    for param in &info.params {
        line(out, 3, format_args!("{}", param_line(param)));
    }
}

fn param_line(param: &ParamInfo) -> String {
    let unit = if param.unit.is_empty() { String::new() } else { format!(" {}", param.unit) };
    format!("{}={}{unit} ({}){}", param.name, param.default, param.kind, described(&param.doc))
}

fn children(info: &ComponentInfo) -> &'static str {
    match info.arity {
        Arity::Leaf => "no children",
        Arity::One => "one child",
        Arity::Many => "one or more children",
        Arity::Slots => "a child for each slot",
        Arity::ManyAndSlots => "one or more children, and a child for each slot",
        _ => "children of a kind that is unknown here",
    }
}

/// Properties of a component that validation and other components use.
fn traits(info: &ComponentInfo) -> String {
    let mut traits = vec![match (info.stores, info.bounds.as_slice()) {
        (false, _) => "stores no tasks".to_owned(),
        (true, []) => "stores tasks without limit".to_owned(),
        (true, bounds) => format!("stores tasks up to {}", bounds.join(" or ")),
    }];
    if info.pulled_only {
        traits.push("lets them go only when it is pulled".to_owned());
    }
    if info.may_refuse {
        let when = if info.forwards_push { " that its children refuse" } else { "" };
        traits.push(format!("may refuse a task{when}"));
    }
    if info.wakes_workers {
        traits.push("leaves tasks to be pulled by its workers".to_owned());
    }
    if info.combined {
        traits.push("is for combined workers".to_owned());
    }
    if info.pushes_on_pull {
        traits.push("has tasks pushed as they arrive and when it is pulled".to_owned());
    }
    if info.keeps_state {
        traits.push("lives on when workers join or leave".to_owned());
    }
    if info.hears_tasks {
        traits.push("hears of the tasks that workers below execute".to_owned());
    }
    if info.newest_comes_back {
        traits.push("gives a worker first what that pushed last".to_owned());
    }
    if info.waits_at_home {
        traits.push("keeps a task where it is at home".to_owned());
    }
    if info.needs_models {
        traits.push("needs performance models".to_owned());
    }
    if info.arity != Arity::Leaf {
        traits.push(format!("wants {} tasks in a queue below", info.lookahead));
    }
    traits.join(", ")
}

fn summary(out: &mut String, registry: &Registry) {
    let (from_files, compiled_in): (Vec<_>, Vec<_>) =
        registry.components().partition(|component| component.plugin().path.is_some());
    let plugins = registry.files().iter().filter(|file| matches!(file.state, FileState::Loaded(_))).count();
    let rejected = registry.rejected().count();
    let mut words = format!("{} from {}", count(from_files.len(), "component"), count(plugins, "plugin"));
    if !compiled_in.is_empty() {
        let _ = write!(words, ", {} compiled in", compiled_in.len());
    }
    if rejected > 0 {
        let _ = write!(words, "; {} rejected", count(rejected, "file"));
    }
    line(out, 0, format_args!("{words}"));
}

/// Text of a plugin on one line, with white space collapsed.
fn described(words: &str) -> String {
    words.split_whitespace().enumerate().fold(String::new(), |line, (index, word)| {
        let before = if index == 0 { ": " } else { " " };
        line + before + word
    })
}

/// Adds one line, whatever names hold: other control characters are escaped where the list is written.
fn line(out: &mut String, depth: usize, words: std::fmt::Arguments<'_>) {
    let words = words.to_string().replace('\n', "\\u000a");
    // Writing to a string cannot fail.
    let _ = writeln!(out, "{:1$}{words}", "", depth * 2);
}

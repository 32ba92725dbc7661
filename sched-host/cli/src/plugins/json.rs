//! The list of plugins as JSON. Keys are added; they are not renamed within a version.

use sched_core::{Arity, ComponentInfo, ParamInfo, ParamKind, Value};
use sched_tree::plugin::{
    CompiledIn, ComponentError, ComponentState, FileReport, FileState, FolderState, ListedComponent, Registry,
};
use serde::Serialize;
use serde_json::{Number, Value as Json};
use std::io::{self, Write};

#[derive(Serialize)]
struct List<'a> {
    folders: Vec<Folder<'a>>,
    files: Vec<File<'a>>,
    builtin: Vec<Package<'a>>,
}

/// Components that are compiled into the program.
#[derive(Serialize)]
struct Package<'a> {
    package: &'a str,
    version: &'a str,
    refused: bool,
    components: Vec<Component<'a>>,
}

#[derive(Serialize)]
struct Folder<'a> {
    path: String,
    origin: String,
    state: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    message: Option<&'a str>,
}

#[derive(Serialize)]
struct File<'a> {
    path: String,
    folder: usize,
    state: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    plugin: Option<Plugin<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<Rejection>,
    #[serde(skip_serializing_if = "Option::is_none")]
    same_as: Option<String>,
}

#[derive(Serialize)]
struct Plugin<'a> {
    package: &'a str,
    version: &'a str,
    abi: String,
    components: Vec<Component<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    driver: Option<Driver<'a>>,
    warnings: &'a [String],
}

/// A device driver.
#[derive(Serialize)]
struct Driver<'a> {
    name: &'a str,
    arch: String,
    doc: &'a str,
    note: &'a str,
}

#[derive(Serialize)]
struct Rejection {
    kind: &'static str,
    message: String,
    fix: &'static str,
}

#[derive(Serialize)]
struct Component<'a> {
    name: &'a str,
    usable: bool,
    family: String,
    arity: &'static str,
    doc: &'a str,
    stores: bool,
    bounds: &'a [String],
    may_refuse: bool,
    needs_models: bool,
    lookahead: u32,
    slots: Vec<Slot<'a>>,
    params: Vec<Param<'a>>,
    /// Provider of the component of this name that is used instead.
    #[serde(skip_serializing_if = "Option::is_none")]
    hidden_by: Option<&'a str>,
    /// Other providers of a component of this name.
    hides: &'a [String],
    errors: Vec<Rejection>,
}

#[derive(Serialize)]
struct Slot<'a> {
    name: &'a str,
    doc: &'a str,
    /// Whether a policy may leave it out.
    optional: bool,
}

#[derive(Serialize)]
struct Param<'a> {
    name: &'a str,
    #[serde(rename = "type")]
    kind: &'static str,
    default: Json,
    /// Absent where there is no limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    min: Option<Json>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max: Option<Json>,
    /// The texts that are allowed; absent where any is.
    #[serde(skip_serializing_if = "Option::is_none")]
    choices: Option<&'a [String]>,
    unit: &'a str,
    doc: &'a str,
}

/// Writes the list.
pub(super) fn write(registry: &Registry, out: &mut dyn Write) -> io::Result<()> {
    let list = List {
        folders: registry.folders().iter().map(folder).collect(),
        files: registry.files().iter().map(file).collect(),
        builtin: registry.packages().iter().map(package).collect(),
    };
    serde_json::to_writer_pretty(&mut *out, &list)?;
    writeln!(out)
}

fn folder(report: &sched_tree::plugin::FolderReport) -> Folder<'_> {
    let (state, message) = match &report.state {
        FolderState::Searched => ("searched", None),
        FolderState::AlreadySearched => ("already-searched", None),
        FolderState::Missing => ("missing", None),
        FolderState::Unreadable(message) => ("unreadable", Some(message.as_str())),
    };
    Folder { path: report.folder.path.display().to_string(), origin: report.folder.origin.to_string(), state, message }
}

fn file(report: &FileReport) -> File<'_> {
    let bare = File {
        path: report.path.display().to_string(),
        folder: report.folder,
        state: "",
        plugin: None,
        error: None,
        same_as: None,
    };
    match &report.state {
        FileState::Loaded(plugin) => File {
            state: "loaded",
            plugin: Some(Plugin {
                package: &plugin.id.package,
                version: &plugin.id.version,
                abi: format!("{}.{}", plugin.abi.0, plugin.abi.1),
                components: plugin.components.iter().map(component).collect(),
                driver: plugin.driver.as_ref().map(|driver| Driver {
                    name: &driver.name,
                    arch: driver.arch.to_string(),
                    doc: &driver.doc,
                    note: &driver.note,
                }),
                warnings: &plugin.warnings,
            }),
            ..bare
        },
        FileState::Rejected(error) => File {
            state: "rejected",
            error: Some(Rejection { kind: error.kind.code(), message: error.kind.to_string(), fix: error.fix() }),
            ..bare
        },
        FileState::NotAPlugin(kind) => File {
            state: "not-a-plugin",
            error: Some(Rejection { kind: kind.code(), message: kind.to_string(), fix: kind.fix() }),
            ..bare
        },
        FileState::AlreadySeen(first) => {
            File { state: "already-seen", same_as: Some(first.display().to_string()), ..bare }
        }
    }
}

fn package(compiled_in: &CompiledIn) -> Package<'_> {
    let refused = compiled_in.refused;
    let components = compiled_in.components.iter().map(component);
    let components = components.map(|component| Component { usable: component.usable && !refused, ..component });
    Package {
        package: &compiled_in.id.package,
        version: &compiled_in.id.version,
        refused,
        components: components.collect(),
    }
}

fn component(listed: &ListedComponent) -> Component<'_> {
    let ListedComponent { info, state, hides } = listed;
    let (errors, hidden_by) = match state {
        ComponentState::Rejected(errors) => (errors.as_slice(), None),
        ComponentState::Hidden(by) => (&[][..], Some(by.as_str())),
        _ => (&[][..], None),
    };
    let problem =
        |error: &ComponentError| Rejection { kind: error.code(), message: error.to_string(), fix: error.fix() };
    Component {
        name: &info.name,
        usable: *state == ComponentState::Usable,
        family: info.family.to_string(),
        arity: arity(info),
        doc: &info.doc,
        stores: info.stores,
        bounds: &info.bounds,
        may_refuse: info.may_refuse,
        needs_models: info.needs_models,
        lookahead: info.lookahead,
        slots: info
            .slots
            .iter()
            .map(|slot| Slot { name: &slot.name, doc: &slot.doc, optional: slot.optional })
            .collect(),
        params: info.params.iter().map(param).collect(),
        hidden_by,
        hides,
        errors: errors.iter().map(problem).collect(),
    }
}

fn arity(info: &ComponentInfo) -> &'static str {
    match info.arity {
        Arity::Leaf => "leaf",
        Arity::One => "one",
        Arity::Many => "many",
        Arity::Slots => "slots",
        Arity::ManyAndSlots => "many-and-slots",
        _ => "unknown",
    }
}

fn param(info: &ParamInfo) -> Param<'_> {
    let choices = match &info.kind {
        ParamKind::Choice(of) => Some(of.as_slice()),
        _ => None,
    };
    let (kind, min, max) = match info.kind {
        ParamKind::Bool => ("bool", None, None),
        ParamKind::Int { min, max } => {
            ("int", (min != i64::MIN).then(|| min.into()), (max != i64::MAX).then(|| max.into()))
        }
        ParamKind::Float { min, max } => ("float", finite(min), finite(max)),
        ParamKind::Text | ParamKind::Choice(_) => ("text", None, None),
        _ => ("unknown", None, None),
    };
    let default = match &info.default {
        Value::Bool(flag) => Json::Bool(*flag),
        Value::Int(number) => (*number).into(),
        // JSON has no infinity.
        Value::Float(number) => finite(*number).unwrap_or_else(|| Json::String(number.to_string())),
        Value::Text(text) => Json::String(text.clone()),
    };
    Param { name: &info.name, kind, default, min, max, choices, unit: &info.unit, doc: &info.doc }
}

fn finite(number: f64) -> Option<Json> {
    Number::from_f64(number).map(Json::Number)
}

//! The result of an examination, as text and as JSON.

use crate::json;
use miette::IntoDiagnostic;
use sched_core::ComponentInfo;
use sched_core::rig::{Finding, Property};
use sched_text::count;
use sched_tree::plugin::{ComponentError, LoadedPlugin};
use serde::Serialize;
use std::io::Write;
use std::path::Path;

/// What was found out about a component.
pub(super) struct Examined {
    info: ComponentInfo,
    pub(super) findings: Vec<Finding>,
    /// What is wrong with its description, each with the fix.
    described: Vec<(String, &'static str)>,
    pub(super) sequences: u64,
    pub(super) calls: u64,
    /// The examination did not come to its end: properties without a finding are open.
    pub(super) is_cut_short: bool,
    pub(super) runs: Vec<Compared>,
}

/// A policy that was run and simulated.
#[derive(Serialize)]
pub(super) struct Compared {
    pub(super) policy: String,
    pub(super) run: Outcome,
    pub(super) simulation: Outcome,
    /// The stock component that was simulated in its place.
    pub(super) stock: Option<&'static str>,
    /// Simulated time, relative to that with the stock component.
    pub(super) ratio: Option<f64>,
}

/// A run or a simulation.
#[derive(Serialize)]
pub(super) struct Outcome {
    pub(super) makespan_s: Option<f64>,
    /// What went wrong.
    pub(super) problem: Option<String>,
}

impl Examined {
    pub(super) fn new(info: &ComponentInfo) -> Examined {
        Examined {
            info: info.clone(),
            findings: Vec::new(),
            described: Vec::new(),
            sequences: 0,
            calls: 0,
            is_cut_short: false,
            runs: Vec::new(),
        }
    }

    /// Notes a fault of its description.
    pub(super) fn misdescribed(&mut self, error: &ComponentError) {
        self.described.push((error.to_string(), error.fix()));
    }

    fn is_ok(&self) -> bool {
        let ended = |compared: &Compared| compared.run.problem.is_none() && compared.simulation.problem.is_none();
        self.findings.is_empty() && self.described.is_empty() && self.runs.iter().all(ended)
    }

    fn properties(&self) -> impl Iterator<Item = (Property, Option<&Finding>)> {
        let examined =
            Property::ALL.into_iter().filter(|property| self.described.is_empty() && property.concerns(&self.info));
        examined.map(|property| (property, self.findings.iter().find(|finding| finding.property == property)))
    }
}

/// The whole report.
pub(super) struct Document<'a> {
    file: &'a Path,
    plugin: &'a LoadedPlugin,
    seed: u64,
    sequences: usize,
    components: Vec<Examined>,
}

/// JSON of the report.
#[derive(Serialize)]
struct Root<'a> {
    file: String,
    package: &'a str,
    version: &'a str,
    seed: u64,
    sequences: usize,
    ok: bool,
    components: Vec<ComponentRow<'a>>,
}

#[derive(Serialize)]
struct ComponentRow<'a> {
    component: &'a str,
    family: String,
    ok: bool,
    calls: u64,
    /// Faults of its description: it was not examined then.
    description: Vec<Described<'a>>,
    properties: Vec<PropertyRow<'a>>,
    policies: &'a [Compared],
}

#[derive(Serialize)]
struct Described<'a> {
    message: &'a str,
    fix: &'a str,
}

#[derive(Serialize)]
struct PropertyRow<'a> {
    property: &'static str,
    says: &'static str,
    /// `None` if the examination did not come to its end.
    ok: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    finding: Option<FindingRow<'a>>,
}

#[derive(Serialize)]
struct FindingRow<'a> {
    message: &'a str,
    setting: &'a str,
    calls: &'a [String],
}

impl<'a> Document<'a> {
    pub(super) fn new(
        file: &'a Path,
        plugin: &'a LoadedPlugin,
        seed: u64,
        sequences: usize,
        components: Vec<Examined>,
    ) -> Document<'a> {
        Document { file, plugin, seed, sequences, components }
    }

    /// Whether nothing was found.
    pub(super) fn is_ok(&self) -> bool {
        self.components.iter().all(Examined::is_ok)
    }

    /// Writes it.
    ///
    /// # Errors
    /// If `out` cannot be written.
    pub(super) fn write(&self, is_json: bool, out: &mut dyn Write) -> miette::Result<()> {
        if is_json {
            return json::write(out, &self.root());
        }
        self.write_text(out).into_diagnostic()
    }

    fn root(&self) -> Root<'_> {
        let id = &self.plugin.id;
        Root {
            file: self.file.display().to_string(),
            package: &id.package,
            version: &id.version,
            seed: self.seed,
            sequences: self.sequences,
            ok: self.is_ok(),
            components: self.components.iter().map(ComponentRow::new).collect(),
        }
    }

    fn write_text(&self, out: &mut dyn Write) -> std::io::Result<()> {
        let id = &self.plugin.id;
        writeln!(out, "{}: {} {}", self.file.display(), id.package, id.version)?;
        for examined in &self.components {
            write_component(examined, out)?;
        }
        let bad = self.components.iter().filter(|examined| !examined.is_ok()).count();
        let (all, seed) = (count(self.components.len(), "component"), self.seed);
        match bad {
            0 => writeln!(out, "\n{all}, {} each, seed {seed}: ok", count(self.sequences, "sequence")),
            _ => writeln!(out, "\n{all}, {} each, seed {seed}: {bad} with findings", count(self.sequences, "sequence")),
        }
    }
}

/// A simulation that takes more than this number of times as long as with the stock component is marked.
const SLOW: f64 = 4.0;

fn write_component(examined: &Examined, out: &mut dyn Write) -> std::io::Result<()> {
    writeln!(out, "\n{} ({})", examined.info.name, examined.info.family)?;
    for (message, fix) in &examined.described {
        writeln!(out, "  FINDING  description         {message}\n                               fix: {fix}")?;
    }
    for (property, finding) in examined.properties() {
        let state = match finding {
            Some(_) => "FINDING",
            None if examined.is_cut_short => "open",
            None => "ok",
        };
        writeln!(out, "  {state:7}  {:18}  {}", property.name(), property.says())?;
        let Some(finding) = finding else { continue };
        writeln!(out, "             {}\n             {}", finding.message, finding.setting)?;
        for (call, number) in finding.calls.iter().zip(1..) {
            writeln!(out, "             {number:3}. {call}")?;
        }
    }
    for compared in &examined.runs {
        let policy: Vec<&str> = compared.policy.split_whitespace().collect();
        let slow = compared.ratio.is_some_and(|ratio| ratio > SLOW);
        let mut line = |name: &str, outcome: &Outcome, more: &str| match &outcome.problem {
            Some(problem) => {
                writeln!(out, "  FINDING  {name:18}  {}\n             {problem}", policy.join(" "))
            }
            None => {
                // A policy may have reasons to be slow.
                let state = if slow && !more.is_empty() { "slow" } else { "ok" };
                writeln!(out, "  {state:7}  {name:18}  {}{more}", policy.join(" "))
            }
        };
        line("run", &compared.run, "")?;
        let ratio = compared.ratio.zip(compared.stock);
        let more = ratio.map(|(ratio, stock)| format!(": {ratio:.2} times the time of {stock}")).unwrap_or_default();
        line("simulate", &compared.simulation, &more)?;
    }
    Ok(())
}

impl<'a> ComponentRow<'a> {
    fn new(examined: &'a Examined) -> ComponentRow<'a> {
        let described = examined.described.iter().map(|(message, fix)| Described { message, fix });
        let row = |(property, finding): (Property, Option<&'a Finding>)| PropertyRow {
            property: property.name(),
            says: property.says(),
            ok: if finding.is_none() && examined.is_cut_short { None } else { Some(finding.is_none()) },
            finding: finding.map(|finding| FindingRow {
                message: &finding.message,
                setting: &finding.setting,
                calls: &finding.calls,
            }),
        };
        ComponentRow {
            component: &examined.info.name,
            family: examined.info.family.to_string(),
            ok: examined.is_ok(),
            calls: examined.calls,
            description: described.collect(),
            properties: examined.properties().map(row).collect(),
            policies: &examined.runs,
        }
    }
}

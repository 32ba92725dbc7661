//! `sched model list`.

use crate::format::{FormatOptions, text_or_json};
use crate::json;
use crate::table::table;
use miette::IntoDiagnostic;
use sched_model::{MINIMUM_SAMPLES, Quantity, Store, Stored};
use serde::Serialize;
use std::io::Write;
use std::process::ExitCode;

/// List the models of a machine
///
/// A size is calibrated once it has 10 samples. Unusable files are listed with the reason and do not affect other
/// models.
#[derive(Debug, clap::Args)]
#[command(mut_arg("format", text_or_json))]
pub(super) struct Args {
    #[command(flatten)]
    format: FormatOptions,
}

#[derive(Serialize)]
struct Listing {
    machine: String,
    directory: String,
    models: Vec<Row>,
    problems: Vec<String>,
    #[serde(rename = "other_machines")]
    others: Vec<String>,
}

#[derive(Serialize)]
struct Row {
    name: String,
    kind: &'static str,
    /// Architecture, cores and implementation as text.
    variants: Vec<String>,
    /// Number of measured sizes over all variants.
    entries: usize,
    /// Number of sizes with enough samples for an estimate.
    calibrated: usize,
    samples: u64,
    /// Measured quantity.
    quantities: Vec<Quantity>,
}

impl Row {
    fn of(stored: &Stored) -> Row {
        let variants = &stored.measurements.variants;
        let entries = || variants.values().flat_map(|measured| measured.entries.values());
        let mut names: Vec<String> = variants.keys().map(|(variant, _)| variant.to_string()).collect();
        names.dedup();
        let mut quantities: Vec<Quantity> = variants.keys().map(|(_, quantity)| *quantity).collect();
        quantities.sort();
        quantities.dedup();
        Row {
            name: stored.symbol.clone(),
            kind: stored.kind.name(),
            variants: names,
            entries: entries().count(),
            calibrated: entries().filter(|entry| entry.samples.count() >= MINIMUM_SAMPLES).count(),
            samples: stored.measurements.samples(),
            quantities,
        }
    }
}

pub(super) fn run(args: &Args, store: &Store, out: &mut dyn Write) -> miette::Result<ExitCode> {
    let (mut models, mut problems) = (Vec::new(), Vec::new());
    for symbol in store.list()? {
        match store.read(&symbol) {
            Ok(stored) => models.extend(stored.iter().map(Row::of)),
            Err(problem) => problems.push(problem.to_string()),
        }
    }
    let (machine, directory) = (store.machine().to_string(), store.directory().display().to_string());
    let listing = Listing { machine, directory, models, problems, others: store.other_machines() };
    if args.format.is_json() {
        json::write(out, &listing)?;
    } else {
        text(&listing, out).into_diagnostic()?;
    }
    Ok(ExitCode::SUCCESS)
}

fn text(listing: &Listing, out: &mut dyn Write) -> std::io::Result<()> {
    writeln!(out, "machine {}, models in {}", listing.machine, listing.directory)?;
    if listing.models.is_empty() {
        writeln!(
            out,
            "none yet: `sched run cholesky --calibrate` measures some, `sched model import` imports StarPU's"
        )?;
        if !listing.others.is_empty() {
            writeln!(out, "there are models of other machines (--machine): {}", listing.others.join(", "))?;
        }
    } else {
        let rows = listing.models.iter().map(|row| {
            [
                row.name.clone(),
                row.kind.to_owned(),
                row.entries.to_string(),
                row.calibrated.to_string(),
                row.samples.to_string(),
                row.quantities.iter().map(|quantity| quantity.name()).collect::<Vec<_>>().join(", "),
                row.variants.join(", "),
            ]
        });
        let header = ["MODEL", "KIND", "SIZES", "CALIBRATED", "SAMPLES", "OF", "RUNS ON"];
        writeln!(out, "{}", table(header, rows, 2..5))?;
    }
    for problem in &listing.problems {
        writeln!(out, "not usable: {problem}")?;
    }
    Ok(())
}

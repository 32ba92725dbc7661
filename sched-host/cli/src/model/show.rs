//! `sched model show`.

use crate::format::{FormatOptions, text_or_json};
use crate::json;
use crate::table::table;
use miette::IntoDiagnostic;
use sched_model::plot::{amount, formula};
use sched_model::{Fit, MINIMUM_SAMPLES, Measured, Quantity, Store, Stored, Variant};
use sched_text::amount::decimal_bytes as bytes;
use serde::Serialize;
use std::io::Write;
use std::process::ExitCode;

/// Show a model by size: samples, estimate, spread, outliers
///
/// The estimate is the mean of the middle half of the samples, which a few outliers do not affect; the spread is the
/// range of that half. Below 10 samples there is no estimate. An outlier is a sample above three times the estimate or
/// below a third of it.
#[derive(Debug, clap::Args)]
#[command(mut_arg("format", text_or_json))]
pub(super) struct Args {
    /// Name of the model
    name: String,

    #[command(flatten)]
    format: FormatOptions,
}

#[derive(Serialize)]
struct Shown {
    name: String,
    kind: &'static str,
    machine: String,
    variants: Vec<ShownVariant>,
}

#[derive(Serialize)]
struct ShownVariant {
    arch: String,
    cores: u32,
    implementation: u32,
    quantity: Quantity,
    unit: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    regression: Option<ShownFit>,
    entries: Vec<ShownEntry>,
}

#[derive(Serialize)]
struct ShownFit {
    formula: String,
    coefficients: Vec<f64>,
    samples: u64,
    /// Whether it is used for estimates.
    calibrated: bool,
}

#[derive(Serialize)]
struct ShownEntry {
    footprint: String,
    bytes: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    flops: Option<f64>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    params: Vec<f64>,
    samples: u64,
    calibrated: bool,
    estimate: Option<f64>,
    quartiles: Option<[f64; 2]>,
    mean: Option<f64>,
    outliers: u64,
}

fn variant((variant, quantity): &(Variant, Quantity), measured: &Measured, stored: &Stored) -> ShownVariant {
    let fit = measured.fit(&stored.kind).or_else(|| measured.prior_fit(&stored.kind));
    let regression = fit.map(|fit| {
        let formula = formula(&fit);
        match fit {
            Fit::Power(power) => ShownFit {
                formula,
                coefficients: vec![power.a, power.b, power.c],
                samples: power.samples,
                calibrated: power.is_calibrated(MINIMUM_SAMPLES),
            },
            Fit::Linear(linear) => ShownFit {
                formula,
                calibrated: linear.samples >= MINIMUM_SAMPLES,
                samples: linear.samples,
                coefficients: linear.coefficients,
            },
        }
    });
    let mut entries: Vec<ShownEntry> = measured
        .entries
        .iter()
        .map(|(footprint, entry)| ShownEntry {
            footprint: format!("{footprint:08x}"),
            bytes: entry.bytes,
            flops: entry.flops,
            params: entry.params.clone(),
            samples: entry.samples.count(),
            calibrated: entry.samples.count() >= MINIMUM_SAMPLES,
            estimate: entry.samples.midmean(),
            quartiles: entry.samples.quantile(0.25).zip(entry.samples.quantile(0.75)).map(|(low, high)| [low, high]),
            mean: entry.samples.mean(),
            outliers: entry.samples.outliers(),
        })
        .collect();
    entries.sort_by_key(|entry| entry.bytes);
    ShownVariant {
        arch: variant.arch.to_string(),
        cores: variant.cores,
        implementation: variant.implementation,
        quantity: *quantity,
        unit: quantity.unit(),
        regression,
        entries,
    }
}

pub(super) fn run(args: &Args, store: &Store, out: &mut dyn Write) -> miette::Result<ExitCode> {
    let stored = super::existing(store, &args.name)?;
    let variants = stored.measurements.variants.iter().map(|(key, measured)| variant(key, measured, &stored)).collect();
    let shown =
        Shown { name: stored.symbol.clone(), kind: stored.kind.name(), machine: store.machine().to_string(), variants };
    if args.format.is_json() {
        json::write(out, &shown)?;
    } else {
        text(&shown, out).into_diagnostic()?;
    }
    Ok(ExitCode::SUCCESS)
}

fn text(shown: &Shown, out: &mut dyn Write) -> std::io::Result<()> {
    writeln!(out, "{} ({}), machine {}", shown.name, shown.kind, shown.machine)?;
    for variant in &shown.variants {
        let cores = if variant.cores == 1 { String::new() } else { format!(" ×{}", variant.cores) };
        let what = variant.quantity.name();
        writeln!(out, "\n{}{cores} implementation {}, {what}", variant.arch, variant.implementation)?;
        if let Some(fit) = &variant.regression {
            let state = if fit.calibrated { "" } else { ", not calibrated" };
            writeln!(out, "regression {}, {} samples{state}", fit.formula, fit.samples)?;
        }
        if variant.entries.is_empty() {
            continue;
        }
        let rows = variant.entries.iter().map(|entry| {
            let display_text = |value: f64| amount(value, variant.quantity);
            [
                entry.footprint.clone(),
                bytes(entry.bytes as f64),
                entry.samples.to_string(),
                entry.estimate.map(display_text).unwrap_or_default(),
                entry
                    .quartiles
                    .map(|[low, high]| format!("{} to {}", display_text(low), display_text(high)))
                    .unwrap_or_default(),
                entry.outliers.to_string(),
                if entry.calibrated { String::new() } else { format!("needs {}", MINIMUM_SAMPLES - entry.samples) },
            ]
        });
        let header = ["FOOTPRINT", "SIZE", "SAMPLES", "ESTIMATE", "MIDDLE HALF", "OUTLIERS", ""];
        writeln!(out, "{}", table(header, rows, 1..6))?;
    }
    Ok(())
}

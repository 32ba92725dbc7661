//! The text of a stored model: a line of JSON for each footprint.
//!
//! ```text
//! {"format":"sched-model","version":1,"symbol":"potrf","kind":"history","machine":"…"}
//! {"history":{"arch":"cpu","cores":1,"implementation":0,"quantity":"time","footprint":"617e5fe6","bytes":7372800,
//!             "bins":[[129,12,873456.1,63577130000.0]]}}
//! {"end":{"lines":2,"checksum":"1c291ca3"}}
//! ```
//!
//! A bin is its number, the count of its samples, their sum, and the sum of their squares; see `Distribution`. The last
//! line distinguishes a complete file from a truncated one, and its checksum a sound one from a damaged one. After
//! editing a file by hand, remove the checksum.

use super::Stored;
use super::lines::{self, EndLine, Format, Lines};
use crate::{Bin, Distribution, Entry, Fingerprint, Kind, Measurements, ModelError, Prior, Quantity, Variant};
use sched_core::Arch;
use serde::{Deserialize, Serialize};
use std::path::Path;

const FORMAT: Format = Format { name: "sched-model", version: 1, holds: "a stored model" };

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Header {
    format: String,
    version: u64,
    symbol: String,
    kind: Kind,
    machine: String,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Line {
    History(HistoryLine),
    Prior(PriorLine),
    End(EndLine),
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct HistoryLine {
    arch: String,
    cores: u32,
    implementation: u32,
    quantity: Quantity,
    footprint: String,
    bytes: u64,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    flops: Option<f64>,
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    params: Vec<f64>,
    bins: Vec<(i32, u64, f64, f64)>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct PriorLine {
    arch: String,
    cores: u32,
    implementation: u32,
    quantity: Quantity,
    prior: Prior,
}

impl lines::Line for Line {
    fn end(end: EndLine) -> Line {
        Line::End(end)
    }

    fn into_end(self) -> Result<EndLine, Line> {
        match self {
            Line::End(end) => Ok(end),
            other => Err(other),
        }
    }
}

/// The text of a model.
pub(super) fn print(stored: &Stored, machine: &Fingerprint) -> String {
    let mut out = Lines::default();
    let header = Header {
        format: FORMAT.name.to_owned(),
        version: FORMAT.version,
        symbol: stored.symbol.clone(),
        kind: stored.kind.clone(),
        machine: machine.to_string(),
    };
    out.push(&header);
    for ((variant, quantity), measured) in &stored.measurements.variants {
        let (arch, quantity) = (variant.arch.to_string(), *quantity);
        let Variant { cores, implementation, .. } = *variant;
        for (footprint, entry) in &measured.entries {
            let bins = entry.samples.bins().iter().map(|bin| (bin.number, bin.count, bin.sum, bin.sum2)).collect();
            let line = HistoryLine {
                arch: arch.clone(),
                cores,
                implementation,
                quantity,
                footprint: format!("{footprint:08x}"),
                bytes: entry.bytes,
                flops: entry.flops.filter(|flops| flops.is_finite()),
                params: entry.params.iter().copied().filter(|param| param.is_finite()).collect(),
                bins,
            };
            out.push(&Line::History(line));
        }
        if !measured.prior.is_empty() {
            let prior = measured.prior.clone();
            out.push(&Line::Prior(PriorLine { arch, cores, implementation, quantity, prior }));
        }
    }
    out.end::<Line>()
}

/// Reads the text of the model `symbol`.
pub(super) fn parse(bytes: &[u8], path: &Path, symbol: &str) -> Result<Stored, ModelError> {
    let mut measurements = Measurements::default();
    let (header, mut lines) = lines::read::<Header, Line>(bytes, path, &FORMAT, |lines, number, line| {
        let mut reader = Reader { measurements: &mut measurements, lines };
        match line {
            Line::History(line) => reader.history(number, line),
            Line::Prior(line) => reader.prior(number, line),
            Line::End(_) => {}
        }
    })?;
    match header {
        Some(Header { symbol: found, .. }) if found != symbol => {
            lines.flaw(1, 1, format!("this is the model `{found}`, expected `{symbol}`: its file was renamed"));
        }
        Some(Header { symbol, kind, .. }) if lines.flaws.is_empty() => {
            return Ok(Stored { symbol, kind, measurements });
        }
        _ => {}
    }
    Err(lines.damaged(bytes, path))
}

struct Reader<'a> {
    measurements: &'a mut Measurements,
    lines: &'a mut lines::Reader,
}

impl Reader<'_> {
    fn variant(&mut self, number: usize, arch: &str, cores: u32, implementation: u32) -> Option<Variant> {
        let Some(arch) = Arch::from_name(arch) else {
            self.lines.flaw(number, 1, format!("found architecture `{arch}`, expected one like `cpu` or `cuda`"));
            return None;
        };
        Some(Variant { arch, cores, implementation })
    }

    fn history(&mut self, number: usize, line: HistoryLine) {
        let variant = self.variant(number, &line.arch, line.cores, line.implementation);
        let Ok(footprint) = u32::from_str_radix(&line.footprint, 16) else {
            let found = &line.footprint;
            self.lines.flaw(number, 1, format!("found footprint `{found}`, expected eight hexadecimal digits"));
            return;
        };
        let mut samples = Distribution::default();
        for (bin, count, sum, sum2) in line.bins {
            if !samples.add_bin(Bin { number: bin, count, sum, sum2 }) {
                let message = format!(
                    "found bin [{bin}, {count}, {sum}, {sum2}], expected a number, a count of at least 1, and two sums above 0"
                );
                self.lines.flaw(number, 1, message);
            }
        }
        let Some(variant) = variant else { return };
        let entry = Entry { bytes: line.bytes, flops: line.flops, params: line.params, samples };
        let measured = self.measurements.variants.entry((variant, line.quantity)).or_default();
        if measured.entries.insert(footprint, entry).is_some() {
            self.lines.flaw(number, 1, format!("footprint {footprint:08x} of {variant} is there twice"));
        }
    }

    fn prior(&mut self, number: usize, line: PriorLine) {
        if let Some(variant) = self.variant(number, &line.arch, line.cores, line.implementation) {
            self.measurements.variants.entry((variant, line.quantity)).or_default().prior = line.prior;
        }
    }
}

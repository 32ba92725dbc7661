//! The text of a stored model: a line of JSON for each footprint.
//!
//! ```text
//! {"format":"sched-model","version":1,"symbol":"potrf","kind":"history","machine":"…"}
//! {"history":{"arch":"cpu","cores":1,"implementation":0,"quantity":"time","footprint":"617e5fe6","bytes":7372800,
//!             "bins":[[129,12,873456.1,63577130000.0]]}}
//! {"end":{"lines":2,"checksum":"1c291ca3"}}
//! ```
//!
//! A bin is its number, the number of its samples, their sum, and the sum of their squares; see `Distribution`. The last
//! line tells a whole file from one that was cut off, and its checksum a sound one from a damaged one. Who edits a file by
//! hand leaves the checksum out.

use super::Stored;
use crate::model::starpu::crc32;
use crate::model::{
    Bin, Distribution, Entry, Fingerprint, Flaw, Kind, Measurements, ModelError, Prior, Quantity, Variant,
};
use sched_core::Arch;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::path::Path;

const FORMAT: &str = "sched-model";
const VERSION: u64 = 1;

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

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct EndLine {
    /// How many lines come before this one.
    lines: usize,
    /// StarPU's CRC of all bytes before this line, eight hexadecimal digits.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    checksum: Option<String>,
}

/// The text of a model.
pub(super) fn print(stored: &Stored, machine: &Fingerprint) -> String {
    let mut out = String::new();
    let mut lines = 0;
    let header = Header {
        format: FORMAT.to_owned(),
        version: VERSION,
        symbol: stored.symbol.clone(),
        kind: stored.kind.clone(),
        machine: machine.to_string(),
    };
    push(&mut out, &header, &mut lines);
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
            push(&mut out, &Line::History(line), &mut lines);
        }
        if !measured.prior.is_empty() {
            let prior = measured.prior.clone();
            push(&mut out, &Line::Prior(PriorLine { arch, cores, implementation, quantity, prior }), &mut lines);
        }
    }
    let checksum = Some(format!("{:08x}", crc32(out.as_bytes(), 0)));
    let end = Line::End(EndLine { lines, checksum });
    push(&mut out, &end, &mut lines);
    out
}

fn push(out: &mut String, line: &impl Serialize, lines: &mut usize) {
    out.push_str(&serde_json::to_string(line).expect("such lines hold nothing that JSON has no words for"));
    out.push('\n');
    *lines += 1;
}

/// Reads the text of the model `symbol`.
pub(super) fn parse(bytes: &[u8], path: &Path, symbol: &str) -> Result<Stored, ModelError> {
    let damaged = |flaws: Vec<Flaw>| ModelError::damaged(path, flaws);
    let Ok(text) = std::str::from_utf8(bytes) else {
        return Err(damaged(vec![Flaw { line: 1, column: 1, message: "this is no text".to_owned() }]));
    };
    let first = text.lines().next().unwrap_or_default();
    // Before all else: a newer version may have other lines.
    let header: Value = serde_json::from_str(first).unwrap_or_default();
    if header["format"] == FORMAT
        && let Some(found) = header["version"].as_u64()
        && found > VERSION
    {
        return Err(ModelError::Newer { path: path.to_owned(), found, known: VERSION });
    }
    let mut reader = Reader { measurements: Measurements::default(), flaws: Vec::new() };
    let header: Option<Header> = reader.json(1, first, "the first line of a stored model");
    let (mut number, mut offset, mut end) = (1, first.len() + 1, None);
    for line in text.lines().skip(1) {
        number += 1;
        if end.is_some() {
            reader.flaw(number, 1, "there is a line behind the last one".to_owned());
            break;
        }
        match reader.json(number, line, "a line of a stored model") {
            Some(Line::History(line)) => reader.history(number, line),
            Some(Line::Prior(line)) => reader.prior(number, line),
            Some(Line::End(line)) => end = Some((number, line, offset)),
            None => {}
        }
        offset += line.len() + 1;
    }
    match &end {
        None => reader.flaw(number, 1, "the last line is missing: the file was cut off".to_owned()),
        Some((at, line, offset)) => reader.check_end(*at, line, &text.as_bytes()[..*offset], text.ends_with('\n')),
    }
    if let Some(header) = &header {
        if header.format != FORMAT || header.version != VERSION {
            let (found, version) = (&header.format, header.version);
            reader.flaw(1, 1, format!("found format `{found}` {version}, expected `{FORMAT}` {VERSION}"));
        }
        if header.symbol != symbol {
            let found = &header.symbol;
            reader.flaw(1, 1, format!("this is the model `{found}`, expected `{symbol}`: its file was renamed"));
        }
    }
    match header {
        Some(Header { symbol, kind, .. }) if reader.flaws.is_empty() => {
            Ok(Stored { symbol, kind, measurements: reader.measurements })
        }
        _ => Err(damaged(reader.flaws)),
    }
}

struct Reader {
    measurements: Measurements,
    flaws: Vec<Flaw>,
}

impl Reader {
    fn flaw(&mut self, line: usize, column: usize, message: String) {
        self.flaws.push(Flaw { line, column, message });
    }

    fn json<'a, T: Deserialize<'a>>(&mut self, number: usize, line: &'a str, what: &str) -> Option<T> {
        match serde_json::from_str(line) {
            Ok(value) => Some(value),
            Err(error) => {
                let told = error.to_string();
                // The place is said already, and it is that of the line in the file.
                let told = told.rsplit_once(" at line ").map_or(told.as_str(), |(told, _)| told);
                self.flaw(number, error.column().max(1), format!("expected {what}: {told}"));
                None
            }
        }
    }

    fn variant(&mut self, number: usize, arch: &str, cores: u32, implementation: u32) -> Option<Variant> {
        let Some(arch) = Arch::from_name(arch) else {
            self.flaw(number, 1, format!("found architecture `{arch}`, expected one like `cpu` or `cuda`"));
            return None;
        };
        Some(Variant { arch, cores, implementation })
    }

    fn history(&mut self, number: usize, line: HistoryLine) {
        let variant = self.variant(number, &line.arch, line.cores, line.implementation);
        let Ok(footprint) = u32::from_str_radix(&line.footprint, 16) else {
            let found = &line.footprint;
            self.flaw(number, 1, format!("found footprint `{found}`, expected eight hexadecimal digits"));
            return;
        };
        let mut samples = Distribution::default();
        for (bin, count, sum, sum2) in line.bins {
            if !samples.add_bin(Bin { number: bin, count, sum, sum2 }) {
                let message = format!(
                    "found bin [{bin}, {count}, {sum}, {sum2}], expected a number, a count of at least 1, and two sums above 0"
                );
                self.flaw(number, 1, message);
            }
        }
        let Some(variant) = variant else { return };
        let entry = Entry { bytes: line.bytes, flops: line.flops, params: line.params, samples };
        let measured = self.measurements.variants.entry((variant, line.quantity)).or_default();
        if measured.entries.insert(footprint, entry).is_some() {
            self.flaw(number, 1, format!("footprint {footprint:08x} of {variant} is there twice"));
        }
    }

    fn prior(&mut self, number: usize, line: PriorLine) {
        if let Some(variant) = self.variant(number, &line.arch, line.cores, line.implementation) {
            self.measurements.variants.entry((variant, line.quantity)).or_default().prior = line.prior;
        }
    }

    fn check_end(&mut self, number: usize, end: &EndLine, before: &[u8], ended: bool) {
        if end.lines != number - 1 {
            let (found, expected) = (number - 1, end.lines);
            self.flaw(number, 1, format!("found {found} lines, expected {expected}: some are missing or too many"));
        }
        let sum = format!("{:08x}", crc32(before, 0));
        if end.checksum.as_ref().is_some_and(|expected| *expected != sum) {
            let message = "the checksum is that of another text: the file is damaged, or was edited (leave the checksum out then)";
            self.flaw(number, 1, message.to_owned());
        }
        if !ended {
            self.flaw(number, 1, "the end of the last line is missing: the file was cut off".to_owned());
        }
    }
}

//! Lines of measurements in a codelet's performance model.

use super::scan::{Field, Line};
use crate::Flaw;

/// Limit of means: the microseconds that 64 bits hold in nanoseconds. Energies in joules are far below it.
const TOO_LONG: f64 = 1.8e16;

/// Largest difference between a mean and sum / n, relative to the latter. StarPU writes seven digits of each.
const TOLERANCE: f64 = 0.01;

/// Measurements of tasks with one footprint. Times are in microseconds; models of energy have joules instead.
///
/// Numbers of a line without samples may be NaN, and so may every standard deviation, as the root of what rounding made
/// negative.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct HistoryEntry {
    /// The [footprint](crate::task_footprint).
    pub footprint: u32,
    /// Total bytes of all buffers.
    pub size: u64,
    /// Number of floating-point operations; 0 or NaN when unknown.
    pub flops: f64,
    /// Mean time.
    pub mean: f64,
    /// Standard deviation.
    pub deviation: f64,
    /// Sum of the times; 0 in edited files, where the mean counts.
    pub sum: f64,
    /// Sum of their squares.
    pub sum2: f64,
    /// Number of samples.
    pub samples: u64,
}

impl HistoryEntry {
    /// The mean, by which further tasks are estimated; `None` without samples, or where it is 0, as energies are that
    /// were measured between two ticks of a counter.
    #[must_use]
    pub fn estimate(&self) -> Option<f64> {
        (self.samples > 0 && self.mean > 0.0).then_some(self.mean)
    }

    /// Reads a line; all errors in it are reported together.
    pub(super) fn read(line: &Line<'_>) -> Result<HistoryEntry, Vec<Flaw>> {
        let fields = line.fields();
        // Older files have no column of operations.
        let (hash, size, flops, [mean, deviation, sum, sum2, samples]) = match fields[..] {
            [hash, size, flops, mean, deviation, sum, sum2, n] => {
                (hash, size, Some(flops), [mean, deviation, sum, sum2, n])
            }
            [hash, size, mean, deviation, sum, sum2, n] => (hash, size, None, [mean, deviation, sum, sum2, n]),
            _ => {
                let message = format!(
                    "found {} fields, expected the 8 of a history line: hash, size, flops, mean, dev, sum, sum2, n",
                    fields.len()
                );
                return Err(vec![line.flaw(message)]);
            }
        };
        let footprint =
            u32::from_str_radix(hash.text, 16).map_err(|_| hash.flaw("a footprint of 8 hexadecimal digits"));
        let bytes = size.parse::<u64>("a size in bytes");
        let count = samples.parse::<u64>("a number of samples");
        let nothing = count == Ok(0);
        let mut flaws = Vec::new();
        let mut keep = |found: Result<f64, Flaw>| found.map_err(|flaw| flaws.push(flaw)).unwrap_or_default();
        let flops =
            flops.map_or(f64::NAN, |field| keep(number(field, true, f64::MAX, "a number of operations from 0")));
        let expected = format!("a mean from 0, and below {TOO_LONG:e}");
        let average = keep(number(mean, nothing, TOO_LONG, &expected));
        let deviation = keep(number(deviation, true, f64::MAX, "a standard deviation from 0"));
        let sum = keep(number(sum, nothing, f64::MAX, "a sum from 0"));
        let sum2 = keep(number(sum2, nothing, f64::MAX, "a sum of squares from 0"));
        match (footprint, bytes, count) {
            (Ok(footprint), Ok(size), Ok(samples)) if flaws.is_empty() => {
                let entry = HistoryEntry { footprint, size, flops, mean: average, deviation, sum, sum2, samples };
                entry.consistent(mean)
            }
            (footprint, bytes, count) => {
                flaws.extend(footprint.err().into_iter().chain(bytes.err()).chain(count.err()));
                flaws.sort_by_key(|flaw| flaw.column);
                Err(flaws)
            }
        }
    }

    /// The entry, unless the mean in `field` contradicts the sum: some programs go by one, and some by the other.
    fn consistent(self, field: Field<'_>) -> Result<HistoryEntry, Vec<Flaw>> {
        let of_sum = self.sum / self.samples as f64;
        if self.samples > 0 && self.sum > 0.0 && (self.mean - of_sum).abs() > TOLERANCE * of_sum {
            let expected = format!("the mean sum / n, which is {of_sum:.6e}; an edited mean counts where the sum is 0");
            return Err(vec![field.flaw(&expected)]);
        }
        Ok(self)
    }
}

/// A number from 0 and below `limit`, or NaN where it `may_be_unknown`.
fn number(field: Field<'_>, may_be_unknown: bool, limit: f64, expected: &str) -> Result<f64, Flaw> {
    let value: f64 = field.parse(expected)?;
    if (0.0..limit).contains(&value) || (may_be_unknown && value.is_nan()) {
        Ok(value)
    } else {
        Err(field.flaw(expected))
    }
}

//! Numbers with units: `6.5 GB/s`, `10 us`, `5.25 GiB`.

use std::time::Duration;

/// Splits a text into number and unit.
fn split(text: &str) -> Option<(f64, &str)> {
    let text = text.trim();
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.' && c != '_').unwrap_or(text.len());
    let number: f64 = text[..end].replace('_', "").parse().ok()?;
    Some((number, text[end..].trim()))
}

fn scaled(text: &str, units: &[(&str, f64)]) -> Option<f64> {
    let (number, unit) = split(text)?;
    let factor = units.iter().find(|(name, _)| *name == unit)?.1;
    Some(number * factor).filter(|number| number.is_finite())
}

const SIZES: [(&str, f64); 9] = [
    ("B", 1.0),
    ("kB", 1e3),
    ("MB", 1e6),
    ("GB", 1e9),
    ("TB", 1e12),
    ("KiB", 1024.0),
    ("MiB", 1_048_576.0),
    ("GiB", 1_073_741_824.0),
    ("TiB", 1_099_511_627_776.0),
];

/// Expected form of a time, for messages.
pub const TIME: &str = "a time, such as \"10 us\" (units: ns, us, ms, s)";
/// Expected form of a size, for messages.
pub const SIZE: &str = "a size, such as \"16 GiB\" (units: B, kB, MB, GB, TB, KiB, MiB, GiB, TiB)";
/// Expected form of a bandwidth, for messages.
pub const BANDWIDTH: &str = "a bandwidth, such as \"6.5 GB/s\" (units of sizes, with /s)";
/// Expected form of a power, for messages.
pub const POWER: &str = "a power below 1e12 W, such as \"95 W\" (units: mW, W, kW)";

/// A time.
#[must_use]
pub fn parse_time(text: &str) -> Option<Duration> {
    let nanos = scaled(text, &[("ns", 1.0), ("us", 1e3), ("µs", 1e3), ("ms", 1e6), ("s", 1e9)])?;
    (nanos < 1e18).then(|| Duration::from_nanos(nanos.round() as u64))
}

/// A size in bytes.
#[must_use]
pub fn parse_size(text: &str) -> Option<u64> {
    scaled(text, &SIZES).filter(|bytes| *bytes < 1e18).map(|bytes| bytes.round() as u64)
}

/// A bandwidth in bytes per nanosecond, more than 0, and enough that the time of a byte is a number.
#[must_use]
pub fn parse_bandwidth(text: &str) -> Option<f64> {
    let found = scaled(text.trim().strip_suffix("/s")?, &SIZES)? / 1e9;
    (found > 0.0 && found.recip().is_finite()).then_some(found)
}

/// A power in watts, below 10¹², so that the energy of a run is a number.
#[must_use]
pub fn parse_power(text: &str) -> Option<f64> {
    scaled(text, &[("mW", 1e-3), ("W", 1.0), ("kW", 1e3)]).filter(|watts| *watts < 1e12)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantities_have_units() {
        assert_eq!(parse_time("10 us"), Some(Duration::from_micros(10)));
        assert_eq!(parse_time("1.5ms"), Some(Duration::from_micros(1500)));
        assert_eq!(parse_size("1 GiB"), Some(1 << 30));
        assert_eq!(parse_bandwidth("6.5 GB/s"), Some(6.5));
        // A byte would take longer than any number.
        let slowest = |zeros: usize| parse_bandwidth(&format!("0.{}1 B/s", "0".repeat(zeros)));
        assert_eq!((slowest(320), slowest(300), slowest(0)), (None, None, Some(1e-10)));
        assert_eq!(
            (parse_power("2.5 W"), parse_power("500mW"), parse_power("0 W"), parse_power("1.2")),
            (Some(2.5), Some(0.5), Some(0.0), None)
        );
        let digits = |count: usize| parse_power(&format!("1{} W", "0".repeat(count)));
        assert_eq!((digits(11), digits(12), digits(300)), (Some(1e11), None, None), "the sum of many is a number");
        for wrong in ["10", "us", "-1 us", "1 parsec", ""] {
            assert_eq!((parse_time(wrong), parse_size(wrong), parse_bandwidth(wrong)), (None, None, None), "{wrong}");
        }
    }
}

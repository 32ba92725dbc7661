//! Formatting of amounts with units: bytes, times and others.

/// `512 B`, `32 KiB`, `1.5 GiB`: bytes in binary units, with at most one decimal.
#[must_use]
pub fn bytes(bytes: u64) -> String {
    const UNITS: [&str; 6] = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];
    // Rounded tenths in integer arithmetic: exact, and equal on every machine.
    let mut unit = 0;
    let mut divisor = 1_u64;
    while unit + 1 < UNITS.len() && bytes / divisor >= 1024 {
        unit += 1;
        divisor *= 1024;
    }
    let tenths = (u128::from(bytes) * 10 + u128::from(divisor / 2)) / u128::from(divisor);
    match tenths % 10 {
        0 => format!("{} {}", tenths / 10, UNITS[unit]),
        rest => format!("{}.{rest} {}", tenths / 10, UNITS[unit]),
    }
}

/// `11.1 MB`: bytes in decimal units with three significant digits, for axes and models.
#[must_use]
pub fn decimal_bytes(bytes: f64) -> String {
    scaled(bytes, 3, &[(1e18, "EB"), (1e15, "PB"), (1e12, "TB"), (1e9, "GB"), (1e6, "MB"), (1e3, "kB"), (1.0, "B")])
}

/// `12.35 ms`: a time in nanoseconds, with four significant digits.
#[must_use]
pub fn nanos(nanos: f64) -> String {
    if nanos < 1e3 { format!("{nanos:.0} ns") } else { scaled(nanos, 4, &[(1e9, "s"), (1e6, "ms"), (1e3, "µs")]) }
}

/// A value in the largest of `units` (in descending order) that it reaches, with `digits` significant digits; whole
/// numbers have no decimals.
#[must_use]
pub fn scaled(value: f64, digits: usize, units: &[(f64, &str)]) -> String {
    let fitting = units.iter().find(|(unit, _)| value >= *unit * 0.999_999);
    let (unit, name) = fitting.or(units.last()).copied().unwrap_or((1.0, ""));
    let number = value / unit;
    let decimals = match (number - number.round()).abs() < 1e-9 {
        true => 0,
        // Rounding up to a power of ten adds a digit before the point.
        false => (1..digits).rev().find(|decimals| format!("{number:.decimals$}").len() <= digits + 1).unwrap_or(0),
    };
    format!("{number:.decimals$} {name}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_have_one_decimal_at_most() {
        assert_eq!([0, 1023, 1024, 1536].map(bytes), ["0 B", "1023 B", "1 KiB", "1.5 KiB"]);
        assert_eq!([32 << 20, 265_390_489, u64::MAX].map(bytes), ["32 MiB", "253.1 MiB", "16384 PiB"]);
    }

    #[test]
    fn amounts_have_as_many_digits_as_say_something() {
        assert_eq!([11_059_200.0, 512.0, 1000.0].map(decimal_bytes), ["11.1 MB", "512 B", "1 kB"]);
        assert_eq!([9.996e3, 99.96e3, 999.6e3].map(decimal_bytes), ["10.0 kB", "100 kB", "1000 kB"]);
        assert_eq!([1.0, 1_234.5, 12_345_678.0, 2e9].map(nanos), ["1 ns", "1.234 µs", "12.35 ms", "2 s"]);
    }
}

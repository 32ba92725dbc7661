//! Text in drawings.

use crate::xml::escaped;
use std::fmt::Write as _;

/// A line of text at a place; `look` are its attributes.
pub(super) fn text(out: &mut String, x: f64, y: f64, look: &str, words: &str) {
    // Writing to a string does not fail.
    let _ = writeln!(out, "<text x=\"{x:.1}\" y=\"{y:.1}\" {look}>{}</text>", escaped(words));
}

/// A length of time, given in nanoseconds, in a unit that suits it.
pub(super) fn span(nanos: f64) -> String {
    let (number, unit) = match nanos {
        nanos if nanos >= 1e9 => (nanos * 1e-9, "s"),
        nanos if nanos >= 1e6 => (nanos * 1e-6, "ms"),
        nanos if nanos >= 1e3 => (nanos * 1e-3, "µs"),
        nanos => return format!("{nanos:.0} ns"),
    };
    let digits = if number < 10.0 { 3 } else { usize::from(number < 1000.0) + usize::from(number < 100.0) };
    format!("{number:.digits$} {unit}")
}

/// So many of a thing.
pub(super) fn count(number: u64, thing: &str) -> String {
    format!("{number} {thing}{}", if number == 1 { "" } else { "s" })
}

/// As much as fits into so many characters.
pub(super) fn shortened(words: &str, most: usize) -> String {
    if words.chars().count() <= most {
        return words.to_owned();
    }
    let start: String = words.chars().take(most - 1).collect();
    format!("{start}…")
}

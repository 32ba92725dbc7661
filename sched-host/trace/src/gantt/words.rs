//! Text in drawings.

use sched_text::xml::escaped;
use std::fmt::Write as _;

/// A line of text at a place; `look` are its attributes.
pub(super) fn text(out: &mut String, x: f64, y: f64, look: &str, words: &str) {
    // Writing to a string does not fail.
    let _ = writeln!(out, "<text x=\"{x:.1}\" y=\"{y:.1}\" {look}>{}</text>", escaped(words));
}

/// As much as fits into so many characters.
pub(super) fn shortened(words: &str, most: usize) -> String {
    if words.chars().count() <= most {
        return words.to_owned();
    }
    let start: String = words.chars().take(most - 1).collect();
    format!("{start}…")
}

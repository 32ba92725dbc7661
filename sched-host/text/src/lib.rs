//! Shared foundations of the crates that read, report or draw: text files, findings with places, KDL, suggestions,
//! quantities with units, quoting for output formats, and small numeric functions.
//!
//! This crate depends on no other crate of the host.

pub mod amount;
mod count;
pub mod dot;
mod earliest;
pub mod excerpt;
mod file;
mod finding;
pub mod hash;
pub mod kdl;
mod median;
mod plain;
pub mod quantity;
mod ranges;
mod span;
mod spread;
mod suggest;
pub mod svg;
pub mod terminal;
pub mod xml;

pub use count::count;
pub use earliest::Earliest;
pub use file::{STANDARD_INPUT, Unread, decode, file_name, read, read_bytes};
pub use finding::{Finding, Findings};
pub use median::median;
pub use plain::Plain;
pub use ranges::{parse_ranges, ranges, workers};
pub use span::{SourceText, Span, line_and_column, offset_of, word_at};
pub use spread::spread;
pub use suggest::{closest, did_you_mean, distance};

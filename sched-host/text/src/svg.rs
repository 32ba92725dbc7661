//! Drawings as SVG files that need no style sheet and no font from elsewhere.
//!
//! A [`Pen`] writes the elements that all drawings share, with every text escaped: lines of text, tooltips, boxes,
//! curves, headings and legends. [`KernelColours`] gives a kernel the same colour in every picture.

mod palette;
mod pen;
mod words;

pub use palette::{KernelColours, SERIES, ink_on};
pub use pen::{Pen, Px, Swatch, curve};
pub use words::{columns, shortened, text_width, wrapped};

/// The colour of headings.
pub const INK: &str = "#0f172a";
/// The colour of labels.
pub const LABEL: &str = "#334155";
/// The colour of text that explains.
pub const MUTED: &str = "#475569";
/// The colour of edges and frames.
pub const EDGE: &str = "#94a3b8";
/// The colour of warnings.
pub const WARNING: &str = "#b45309";

//! Places in a text.

use miette::{NamedSource, SourceSpan};
use std::sync::Arc;

/// A text with the name of its file, shared by all places in it.
pub type SourceText = Arc<NamedSource<String>>;

/// A place in a text; none for values built by a program.
///
/// All spans compare equal, so that values read from a text are compared by content, not by place.
#[derive(Clone, Copy, Debug, Default)]
pub struct Span(Option<SourceSpan>);

impl Span {
    /// No place: a program built the value.
    pub const NONE: Span = Span(None);

    /// The `len` bytes from byte `offset` on.
    #[must_use]
    pub fn new(offset: usize, len: usize) -> Span {
        Span(Some(SourceSpan::new(offset.into(), len)))
    }

    /// The place in the text, if the value came from one.
    #[must_use]
    pub fn get(self) -> Option<SourceSpan> {
        self.0
    }
}

impl PartialEq for Span {
    fn eq(&self, _: &Span) -> bool {
        true
    }
}

impl Eq for Span {}

/// Line and column of the byte at `offset`, both from 1; columns count characters. The cost is linear in the offset,
/// which suits the few places that are reported.
#[must_use]
pub fn line_and_column(text: &str, offset: usize) -> (usize, usize) {
    let before = text.get(..offset).unwrap_or(text);
    let in_line = before.rsplit('\n').next().unwrap_or_default();
    (before.matches('\n').count() + 1, in_line.chars().count() + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_count_characters() {
        assert_eq!(line_and_column("a\nµb", 0), (1, 1));
        assert_eq!(line_and_column("a\nµb", "a\nµ".len()), (2, 2));
        assert_eq!(line_and_column("a\n", 2), (2, 1));
        assert_eq!(line_and_column("a\nbc", 99), (2, 3), "beyond the end is the end");
    }
}

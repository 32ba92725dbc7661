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

/// The byte at this line and column, both from 1, for readers that know these only; the end of the line, or of the
/// text, beyond it.
#[must_use]
pub fn offset_of(text: &str, line: usize, column: usize) -> usize {
    let before: usize = text.split_inclusive('\n').take(line.saturating_sub(1)).map(str::len).sum();
    let line = text[before..].lines().next().unwrap_or_default();
    before + line.char_indices().nth(column.saturating_sub(1)).map_or(line.len(), |(offset, _)| offset)
}

/// The word that begins at byte `offset`, up to the next white space.
#[must_use]
pub fn word_at(text: &str, offset: usize) -> Span {
    let rest = text.get(offset..).unwrap_or_default();
    Span::new(offset, rest.find(char::is_whitespace).unwrap_or(rest.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_and_columns_lead_back_to_bytes() {
        let text = "a\nµb cd\r\nx";
        for offset in [0, 2, 4, 6, 10] {
            let (line, column) = line_and_column(text, offset);
            assert_eq!(offset_of(text, line, column), offset);
        }
        assert_eq!((offset_of(text, 2, 99), offset_of(text, 9, 1), offset_of("", 1, 1)), (8, text.len(), 0));
        assert_eq!(word_at(text, 2).get(), Some((2, 3).into()));
        assert_eq!(word_at(text, text.len()).get(), Some((text.len(), 0).into()));
    }

    #[test]
    fn columns_count_characters() {
        assert_eq!(line_and_column("a\nµb", 0), (1, 1));
        assert_eq!(line_and_column("a\nµb", "a\nµ".len()), (2, 2));
        assert_eq!(line_and_column("a\n", 2), (2, 1));
        assert_eq!(line_and_column("a\nbc", 99), (2, 3), "beyond the end is the end");
    }
}

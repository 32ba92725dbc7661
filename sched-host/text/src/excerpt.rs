//! Excerpts of a file for messages.

use super::span::line_and_column;
use miette::SourceSpan;
use std::ops::Range;

/// `word` between backticks, with control characters escaped, cut after `longest` characters.
#[must_use]
pub fn quoted_word(word: &str, longest: usize) -> String {
    let shown: String = word.chars().take(longest).flat_map(char::escape_debug).collect();
    let more = if word.chars().nth(longest).is_some() { "…" } else { "" };
    format!("`{shown}{more}`")
}

/// The text with control characters that could disturb a terminal replaced, byte for byte.
#[must_use]
pub fn printable(text: String) -> String {
    let disturbs = |c: char| c.is_control() && !matches!(c, '\n' | '\r' | '\t');
    if !text.contains(disturbs) {
        return text;
    }
    let shown = |c: char| if disturbs(c) { "?".repeat(c.len_utf8()) } else { c.to_string() };
    text.chars().map(shown).collect()
}

/// Place of a piece of text, for messages.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Position {
    /// Its line, from 1.
    pub line: usize,
    /// Its column, from 1; columns count characters.
    pub column: usize,
    /// The piece, shown with its line; `None` if the line is too long.
    pub shown: Option<SourceSpan>,
}

impl Position {
    /// Place of `piece` in `text`. Lines of more than `longest` bytes are not shown: JSON often has no line breaks.
    #[must_use]
    pub fn of(text: &str, piece: Range<usize>, longest: usize) -> Position {
        let (line, column) = line_and_column(text, piece.start);
        let begin = text.get(..piece.start).and_then(|before| before.rfind('\n')).map_or(0, |end| end + 1);
        let rest = text.get(piece.start..).map_or(0, |rest| rest.find('\n').unwrap_or(rest.len()));
        let fits = piece.start + rest - begin <= longest && piece.len() <= longest;
        Position { line, column, shown: fits.then(|| piece.into()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_cut_and_harmless() {
        assert_eq!(quoted_word("abc\u{1b}", 4), "`abc\\u{1b}`");
        assert_eq!(quoted_word("abcde", 4), "`abcd…`");
        assert_eq!(printable("a\u{1b}µ\n".to_owned()), "a?µ\n");
        assert_eq!(printable("\u{85}".to_owned()), "??", "it has two bytes");
    }

    #[test]
    fn long_lines_have_a_position_and_are_not_shown() {
        let text = "ab\ncdefgh\n";
        assert_eq!(Position::of(text, 4..6, 6), Position { line: 2, column: 2, shown: Some((4, 2).into()) });
        assert_eq!(Position::of(text, 4..6, 5).shown, None);
        assert_eq!(Position::of(text, 0..9, 6).shown, None);
    }
}

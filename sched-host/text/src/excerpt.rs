//! Excerpts of a file for messages.

use super::span::line_and_column;
use miette::{LabeledSpan, MietteError, MietteSpanContents, SourceCode, SourceSpan, SpanContents};
use std::ops::Range;

/// Length in bytes of the longest line that is shown as a whole. Of longer lines, miette would fill the screen, and
/// fail beyond 65 535 columns.
const LONGEST: usize = 1000;

/// Bytes of a longer line that are shown before the place, and of the place itself with what follows.
const BEFORE: usize = 60;
const AFTER: usize = 160;

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

/// A text whose long lines are shown in part, around the place. Labels must be those of [`labels`].
#[derive(Clone, Debug)]
pub struct Excerpts<S>(pub S);

impl<S: SourceCode> SourceCode for Excerpts<S> {
    fn read_span<'a>(
        &'a self,
        span: &SourceSpan,
        before: usize,
        after: usize,
    ) -> Result<Box<dyn SpanContents<'a> + 'a>, MietteError> {
        let whole = self.0.read_span(span, before, after)?;
        // Without context, only the name and the place are of interest.
        if (before, after) == (0, 0) || !has_long_line(whole.data()) {
            return Ok(whole);
        }
        let place = self.0.read_span(span, 0, 0)?;
        let (data, start) = (whole.data(), span.offset() - whole.span().offset());
        let begin = data[..start].iter().rposition(|byte| is_break(*byte)).map_or(0, |at| at + 1);
        let end = data[start..].iter().position(|byte| is_break(*byte)).map_or(data.len(), |at| start + at);
        let begin = boundary(data, begin.max(start.saturating_sub(BEFORE)));
        let end = boundary(data, end.min(start + AFTER));
        let shown = SourceSpan::new((whole.span().offset() + begin).into(), end - begin);
        let column = place.column().saturating_sub(start - begin);
        let (data, line) = (&data[begin..end], place.line());
        Ok(Box::new(match whole.name() {
            Some(name) => MietteSpanContents::new_named(name.to_owned(), data, shown, line, column, 1),
            None => MietteSpanContents::new(data, shown, line, column, 1),
        }))
    }
}

/// The labels that can be drawn in [`Excerpts`] of `source`: all of them, or the main one alone if it shares its lines
/// with long ones.
#[must_use]
pub fn labels(source: &dyn SourceCode, labels: Vec<LabeledSpan>) -> Vec<LabeledSpan> {
    let Some(start) = labels.iter().map(LabeledSpan::offset).min() else { return labels };
    let end = labels.iter().map(|label| label.offset() + label.len()).max().unwrap_or(start);
    let Ok(lines) = source.read_span(&SourceSpan::new(start.into(), end - start), 1, 1) else { return labels };
    if !has_long_line(lines.data()) {
        return labels;
    }
    let main = labels.iter().find(|label| label.primary()).or(labels.first());
    let Some(main) = main else { return Vec::new() };
    let Ok(place) = source.read_span(main.inner(), 0, 0) else { return Vec::new() };
    let in_line = place.data().iter().take(main.len()).position(|byte| is_break(*byte)).unwrap_or(main.len());
    let length = boundary(place.data(), in_line.min(AFTER / 2));
    let label = main.label().map(str::to_owned);
    // At the end of the text there is nothing to point at but the last character.
    let offset = if length == 0 { last_of_line(source, main.offset()) } else { main.offset() };
    let length = length.max(main.offset() - offset);
    vec![LabeledSpan::new_primary_with_span(label, SourceSpan::new(offset.into(), length))]
}

/// Offset of the character before `end` in its line; `end` at the beginning of a line.
fn last_of_line(source: &dyn SourceCode, end: usize) -> usize {
    let from = end.saturating_sub(char::MAX_LEN_UTF8);
    let Ok(before) = source.read_span(&SourceSpan::new(from.into(), end - from), 0, 0) else { return end };
    match before.data().get(..end - from) {
        Some(before @ [.., last]) if !is_break(*last) => from + boundary(before, before.len() - 1),
        _ => end,
    }
}

fn has_long_line(text: &[u8]) -> bool {
    text.len() > LONGEST && text.split(|byte| is_break(*byte)).any(|line| line.len() > LONGEST)
}

/// miette takes both for the end of a line.
fn is_break(byte: u8) -> bool {
    matches!(byte, b'\n' | b'\r')
}

/// The start of the character at `at`, or the end of the text.
fn boundary(text: &[u8], at: usize) -> usize {
    let continues = |at: &usize| text.get(*at).is_some_and(|byte| byte & 0xc0 == 0x80);
    (0..=at.min(text.len())).rev().find(|at| !continues(at)).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Finding, SourceText, Span};
    use miette::{Diagnostic, GraphicalReportHandler, GraphicalTheme, NamedSource};

    fn drawn(text: String, places: &[(usize, usize)]) -> String {
        let source = SourceText::new(NamedSource::new("long.kdl", text));
        let finding = Finding::error("wrong").in_source(Some(&source));
        let place = |finding: Finding, (offset, len): &(usize, usize)| finding.at(Span::new(*offset, *len), "here");
        let finding = places.iter().fold(finding, place);
        let mut drawn = String::new();
        let handler = GraphicalReportHandler::new_themed(GraphicalTheme::unicode_nocolor());
        handler.render_report(&mut drawn, &finding as &dyn Diagnostic).expect("it can be drawn");
        drawn
    }

    #[test]
    fn a_place_in_a_very_long_line_is_drawn_with_its_surroundings() {
        let text = format!("{} wrong{}\nnext", "µ".repeat(100_000), " 12345678".repeat(10_000));
        let drawn = drawn(text, &[(200_001, 5), (250_000, 1)]);
        assert!(drawn.contains("[long.kdl:1:200002]") && drawn.contains("µ wrong 12345678"), "{drawn}");
        assert!(drawn.lines().all(|line| line.chars().count() < 250), "{drawn}");
        assert_eq!(drawn.matches("── here").count(), 1, "{drawn}");
    }

    #[test]
    fn what_cannot_be_drawn_whole_is_cut() {
        for (text, place) in [
            ("x".repeat(100_000), (0, 100_000)),
            ("x".repeat(100_000), (99_999, 1)),
            ("x".repeat(100_000), (99_999, 0)),
            ("x".repeat(100_000), (100_000, 0)),
            (format!("{}\nshort\n", "x".repeat(70_000)), (70_000, 0)),
            (format!("short\r\n{}\r\nshort", "é".repeat(35_000)), (70_007, 0)),
            (format!("{}\n{}", "é".repeat(70_000), "x".repeat(70_000)), (139_000, 2_000)),
            (format!("{}\nshort\r\n{}", "x".repeat(70_000), "x".repeat(70_000)), (70_001, 5)),
        ] {
            let drawn = drawn(text, &[place, (0, 1)]);
            assert!(drawn.len() < 2_000 && drawn.contains("here"), "{place:?}: {drawn}");
        }
    }

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

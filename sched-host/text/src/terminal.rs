//! Foreign text on terminals.

use std::borrow::Cow;
use std::fmt::Write;

/// The text with control characters escaped as in JSON (`\\u001b`), so that names, documentation and contents of files
/// cannot move the cursor, clear the screen, or send answers to the shell. Line ends and tabs stay; so do the colours
/// of a report that is drawn in `colours`.
#[must_use]
pub fn escaped(text: &str, colours: bool) -> Cow<'_, str> {
    if !text.contains(is_control) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len() + 16);
    let mut rest = text;
    while let Some(at) = rest.find(is_control) {
        let (before, from) = rest.split_at(at);
        shown.push_str(before);
        let colour = if colours { colour(from) } else { 0 };
        let length = colour.max(from.chars().next().map_or(1, char::len_utf8));
        match colour {
            0 => from[..length].chars().for_each(|c| _ = write!(shown, "\\u{:04x}", u32::from(c))),
            _ => shown.push_str(&from[..length]),
        }
        rest = &from[length..];
    }
    shown.push_str(rest);
    Cow::Owned(shown)
}

/// Whether it may do more to a terminal than end a line.
fn is_control(c: char) -> bool {
    c.is_control() && !matches!(c, '\n' | '\t')
}

/// Length of the sequence at the start that sets colours; 0 if there is none.
fn colour(text: &str) -> usize {
    let Some(codes) = text.strip_prefix("\u{1b}[") else { return 0 };
    let end = codes.find(|c: char| !c.is_ascii_digit() && c != ';').unwrap_or(codes.len());
    if codes[end..].starts_with('m') { 2 + end + 1 } else { 0 }
}

#[cfg(test)]
mod tests {
    use super::escaped;

    #[test]
    fn nothing_but_text_and_colours_passes() {
        assert_eq!(escaped("a\tb\nµ", false), "a\tb\nµ");
        assert_eq!(escaped("a\u{1b}[2Jb\r\u{7f}\u{9b}c", true), "a\\u001b[2Jb\\u000d\\u007f\\u009bc");
        assert_eq!(escaped("\u{1b}[31mred\u{1b}[0m", true), "\u{1b}[31mred\u{1b}[0m");
        assert_eq!(escaped("\u{1b}[31mred", false), "\\u001b[31mred");
        assert_eq!(escaped("\u{1b}[31", true), "\\u001b[31");
    }
}

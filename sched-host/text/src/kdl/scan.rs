//! A look at the tokens of a KDL text, before it is parsed.
//!
//! The parser of the library recurses, once for each character in the worst case: for each error at the top of a
//! document, for each `/-` behind another, for each `*` in a comment; and it takes twice as long for each `/- {` in
//! another. After an error in a text in quotes, it may take such texts for code. So it is given a text of the same
//! length in which nothing of that kind is left.

use super::syntax_hints::{comment_not_closed, text_not_closed};
use crate::{Finding, Span};

/// Characters that end a line in KDL.
const NEWLINES: [char; 7] = ['\n', '\r', '\u{b}', '\u{c}', '\u{85}', '\u{2028}', '\u{2029}'];

/// A brace outside of texts and comments.
#[derive(Clone, Copy)]
pub(super) struct Brace {
    pub(super) offset: usize,
    pub(super) opens: bool,
    /// Indentation of its line.
    pub(super) indent: usize,
    /// Whether its line begins with it.
    pub(super) leads: bool,
}

pub(super) struct Scan<'a> {
    text: &'a str,
    offset: usize,
    /// Start of the line, up to the last brace that was met.
    line: usize,
    pub(super) braces: Vec<Brace>,
    /// Texts and comments that are not closed.
    pub(super) findings: Vec<Finding>,
    /// The text with blanks in the place of comments and of what texts in quotes contain. It has the same errors as
    /// the text, but for those in texts.
    pub(super) code: String,
    /// The text with blanks in the place of comments, which the parser takes long for. It has the same meaning as the
    /// text.
    pub(super) plain: String,
}

impl<'a> Scan<'a> {
    pub(super) fn of(text: &'a str) -> Scan<'a> {
        let (code, plain) = (String::with_capacity(text.len()), String::with_capacity(text.len()));
        let (braces, findings) = (Vec::new(), Vec::new());
        let mut scan = Scan { text, offset: 0, line: 0, braces, findings, code, plain };
        while scan.step() {}
        scan.leave_out_children();
        scan
    }

    /// Place of the first brace that is below `deepest` others.
    pub(super) fn too_deep(&self, deepest: usize) -> Option<usize> {
        let mut depth = 0_usize;
        let mut deeper = self.braces.iter().filter(|brace| {
            depth = depth.saturating_add_signed(if brace.opens { 1 } else { -1 });
            depth > deepest
        });
        deeper.next().map(|brace| brace.offset)
    }

    /// Place of the first `/-` behind another one, with nothing between the two.
    pub(super) fn repeated_slashdash(&self) -> Option<usize> {
        let places = self.code.match_indices("/-").map(|(at, _)| at);
        let skipped = |c: char| c.is_whitespace() || matches!(c, '\\' | '\u{feff}');
        places
            .zip(self.code.match_indices("/-").map(|(at, _)| at).skip(1))
            .find_map(|(one, other)| self.code[one + 2..other].chars().all(skipped).then_some(other))
    }

    fn rest(&self) -> &'a str {
        &self.text[self.offset..]
    }

    /// Advances past the next text, comment or character; `false` at the end.
    fn step(&mut self) -> bool {
        let rest = self.rest();
        let Some(first) = rest.chars().next() else { return false };
        let hashes = if first == '#' { rest.len() - rest.trim_start_matches('#').len() } else { 0 };
        let length;
        if rest.starts_with("//") {
            length = rest.find(NEWLINES).unwrap_or(rest.len());
            self.keep(length, false);
        } else if rest.starts_with("/*") {
            length = self.comment();
            self.keep(length, false);
        } else if rest[hashes..].starts_with('"') {
            length = self.quoted(hashes);
            self.plain.push_str(&rest[..length]);
            self.code.push_str(&if length == 1 { "x".to_owned() } else { format!("\"{}\"", "x".repeat(length - 2)) });
        } else {
            if first == '{' || first == '}' {
                self.brace(first == '{');
            }
            length = hashes.max(first.len_utf8());
            self.keep(length, true);
        }
        self.offset += length;
        true
    }

    /// Adds the next `length` bytes to the texts for the parser, or as many blanks.
    fn keep(&mut self, length: usize, kept: bool) {
        for into in [&mut self.plain, &mut self.code] {
            match kept {
                true => into.push_str(&self.text[self.offset..self.offset + length]),
                false => into.extend(std::iter::repeat_n(' ', length)),
            }
        }
    }

    /// Leaves out children behind `/-`. The parser takes twice as long for each such block in another.
    fn leave_out_children(&mut self) {
        let mut end = 0;
        let mut left_out = Vec::new();
        for (at, _) in self.code.match_indices("/-") {
            let rest = self.code[at + 2..].trim_start();
            if at < end || !rest.starts_with('{') {
                continue;
            }
            let (begin, mut depth) = (self.code.len() - rest.len(), 0_usize);
            let first = self.braces.partition_point(|brace| brace.offset < begin);
            let last = self.braces[first..].iter().find(|brace| {
                depth = depth.saturating_add_signed(if brace.opens { 1 } else { -1 });
                depth == 0
            });
            end = last.map_or(self.code.len(), |brace| brace.offset + 1);
            left_out.push(at..end);
        }
        for place in left_out {
            let blanks = " ".repeat(place.len());
            self.code.replace_range(place.clone(), &blanks);
            self.plain.replace_range(place, &blanks);
        }
    }

    fn brace(&mut self, opens: bool) {
        let seen = self.braces.last().map_or(0, |brace| brace.offset);
        if let Some(end) = self.text[seen..self.offset].rfind('\n') {
            self.line = seen + end + 1;
        }
        let line = &self.text[self.line..self.offset];
        // What is behind another brace of its line does not lead it, however long the line is.
        let before = self.braces.last().filter(|brace| brace.offset >= self.line);
        let (indent, leads) = match before {
            Some(brace) => (brace.indent, false),
            None => (line.len() - line.trim_start().len(), line.trim().is_empty()),
        };
        self.braces.push(Brace { offset: self.offset, opens, indent, leads });
    }

    /// Length of the comment that begins here; comments nest.
    fn comment(&mut self) -> usize {
        let rest = self.rest();
        let (mut depth, mut end) = (0_usize, 0);
        while end < rest.len() {
            let two = rest.as_bytes().get(end..end + 2);
            depth = depth.saturating_add_signed(match two {
                Some(b"/*") => 1,
                Some(b"*/") => -1,
                _ => 0,
            });
            end += if matches!(two, Some(b"/*" | b"*/")) { 2 } else { 1 };
            if depth == 0 {
                return end;
            }
        }
        self.findings.push(comment_not_closed(self.offset));
        rest.len()
    }

    /// Length of the text in quotes that begins with `hashes` times `#` and a quote.
    fn quoted(&mut self, hashes: usize) -> usize {
        let rest = self.rest();
        let quotes = if rest[hashes..].starts_with("\"\"\"") { 3 } else { 1 };
        let (begin, close) = (hashes + quotes, format!("{}{}", &"\"\"\""[..quotes], &rest[..hashes]));
        let mut end = begin;
        while let Some(next) = rest[end..].chars().next() {
            match next {
                _ if rest[end..].starts_with(&close) => return end + close.len(),
                '\\' if hashes == 0 => end += self.escape(end),
                _ if quotes == 1 && NEWLINES.contains(&next) => break,
                _ => end += next.len_utf8(),
            }
        }
        let span = Span::new(self.offset, rest[..end].trim_end().len());
        self.findings.push(text_not_closed(span, &close, quotes == 1));
        end
    }

    /// Length of the escape at `at` from here: a backslash with a character, or with all white space behind it.
    fn escape(&self, at: usize) -> usize {
        let rest = &self.rest()[at + 1..];
        match rest.len() - rest.trim_start().len() {
            0 => 1 + rest.chars().next().map_or(0, char::len_utf8),
            blank => 1 + blank,
        }
    }
}

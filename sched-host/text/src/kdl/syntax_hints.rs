//! Errors of KDL syntax that the parser reports at the wrong place: unmatched braces, quotes and comments, and nodes
//! without a separator.

use crate::{Finding, Span};

/// The errors of this kind in a text that the parser refused, in the order of the text.
pub(super) fn syntax_hints(text: &str, node: &str) -> Vec<Finding> {
    let mut scan = Scan { text, offset: 0, braces: Vec::new(), findings: Vec::new() };
    while scan.step() {}
    let mut findings = scan.findings;
    // With open quotes, braces may be inside or outside of texts.
    if findings.is_empty() {
        findings.extend(unpaired(text, &scan.braces));
        findings.extend(unseparated(text, node, &scan.braces));
    }
    findings.sort_by_key(|finding| finding.place().map(|place| place.offset()));
    findings
}

/// A brace outside of texts and comments.
#[derive(Clone, Copy)]
struct Brace {
    offset: usize,
    opens: bool,
    /// Indentation of its line.
    indent: usize,
    /// Whether its line begins with it.
    leads: bool,
}

struct Scan<'a> {
    text: &'a str,
    offset: usize,
    braces: Vec<Brace>,
    findings: Vec<Finding>,
}

impl<'a> Scan<'a> {
    fn rest(&self) -> &'a str {
        &self.text[self.offset..]
    }

    /// Advances past the next text, comment or character; `false` at the end.
    fn step(&mut self) -> bool {
        let rest = self.rest();
        let Some(first) = rest.chars().next() else { return false };
        let hashes = rest.len() - rest.trim_start_matches('#').len();
        self.offset += if rest.starts_with("//") {
            rest.find('\n').unwrap_or(rest.len())
        } else if rest.starts_with("/*") {
            self.comment()
        } else if rest[hashes..].starts_with('"') {
            self.quoted(hashes)
        } else {
            if first == '{' || first == '}' {
                self.brace(first == '{');
            }
            first.len_utf8()
        };
        true
    }

    fn brace(&mut self, opens: bool) {
        let line = &self.text[self.text[..self.offset].rfind('\n').map_or(0, |end| end + 1)..self.offset];
        let indent = line.len() - line.trim_start().len();
        self.braces.push(Brace { offset: self.offset, opens, indent, leads: line.trim().is_empty() });
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
        let finding = Finding::error("a comment is not closed".to_owned());
        self.findings.push(finding.at(Span::new(self.offset, 2), "begins here").help("end it with `*/`"));
        rest.len()
    }

    /// Length of the raw string that begins with `hashes` times `#` and a quote.
    fn quoted(&mut self, hashes: usize) -> usize {
        let rest = self.rest();
        let quotes = if rest[hashes..].starts_with("\"\"\"") { 3 } else { 1 };
        let (begin, close) = (hashes + quotes, format!("{}{}", &"\"\"\""[..quotes], &rest[..hashes]));
        let mut end = begin;
        while let Some(next) = rest[end..].chars().next() {
            match next {
                _ if rest[end..].starts_with(&close) => return end + close.len(),
                '\\' if hashes == 0 => end += 1 + rest[end + 1..].chars().next().map_or(0, char::len_utf8),
                '\n' if quotes == 1 => break,
                _ => end += next.len_utf8(),
            }
        }
        let finding = Finding::error("a text in quotes is not closed".to_owned());
        let span = Span::new(self.offset, rest[..end].trim_end().len());
        let help = format!("each text has `{close}` at its end{}", if quotes == 1 { ", on the same line" } else { "" });
        self.findings.push(finding.at(span, "begins here").help(help));
        end
    }
}

/// Unmatched braces.
fn unpaired(text: &str, braces: &[Brace]) -> Vec<Finding> {
    let (open, surplus) = match pair(braces, true) {
        // The indentation does not follow the braces.
        (open, surplus) if !open.is_empty() && !surplus.is_empty() => pair(braces, false),
        found => found,
    };
    let not_closed = |brace: Brace| {
        let line = text[..brace.offset].rfind('\n').map_or(0, |end| end + 1);
        let before = text[line..brace.offset].rsplit(['{', ';']).next().unwrap_or_default().trim();
        let what = before.split_whitespace().next().map_or(String::new(), |name| format!(" of `{name}`"));
        Finding::error(format!("the `{{`{what} is not closed"))
            .at(Span::new(brace.offset, 1), "not closed")
            .help("add a `}` behind what stands in it")
    };
    let closes_nothing = |brace: Brace| {
        Finding::error("a `}` closes nothing".to_owned())
            .at(Span::new(brace.offset, 1), "nothing is open here")
            .help("take it away, or add the `{` that it should close")
    };
    open.into_iter().map(not_closed).chain(surplus.into_iter().map(closes_nothing)).collect()
}

/// Unmatched opening and closing braces. By indentation, a brace that begins its line does not close one that is
/// indented further.
fn pair(braces: &[Brace], by_indent: bool) -> (Vec<Brace>, Vec<Brace>) {
    let (mut stack, mut open, mut surplus) = (Vec::<Brace>::new(), Vec::new(), Vec::new());
    for brace in braces {
        if brace.opens {
            stack.push(*brace);
            continue;
        }
        if by_indent && brace.leads {
            open.extend(std::iter::from_fn(|| stack.pop_if(|last| last.indent > brace.indent)));
        }
        if stack.pop().is_none() {
            surplus.push(*brace);
        }
    }
    open.extend(stack);
    open.sort_by_key(|brace| brace.offset);
    (open, surplus)
}

/// Nodes on the line of the previous one, without a separator.
fn unseparated(text: &str, node: &str, braces: &[Brace]) -> Vec<Finding> {
    let begins = |character: char| character.is_alphanumeric() || character == '_';
    let behind = braces.iter().filter(|brace| !brace.opens).filter_map(|brace| {
        let rest = text[brace.offset + 1..].trim_start_matches([' ', '\t']);
        let length = rest.find(|character: char| !(begins(character) || character == '-')).unwrap_or(rest.len());
        (length > 0 && rest.starts_with(begins)).then(|| Span::new(text.len() - rest.len(), length))
    });
    let finding = |span| {
        Finding::error(format!("a {node} begins on the line where another one ends"))
            .at(span, "here")
            .help("write it on a line of its own, or put a `;` between the two")
    };
    behind.map(finding).collect()
}

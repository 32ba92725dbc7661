//! Errors of KDL syntax that the parser reports at the wrong place: unmatched braces, quotes and comments, and nodes
//! without a separator.

use super::scan::{Brace, Scan};
use crate::{Earliest, Finding, Span};

/// The first errors of this kind in a text that the parser refused, in the order of the text, and the number of others.
pub(super) fn syntax_hints(text: &str, node: &str, scan: &Scan<'_>) -> (Vec<Finding>, usize) {
    // With open quotes, braces may be inside or outside of texts.
    let mut hints = match scan.findings.is_empty() {
        true => unpaired(&scan.braces).chain(unseparated(text, &scan.braces)).collect(),
        false => Vec::new(),
    };
    hints.sort_by_key(|(offset, _)| *offset);
    let first = hints.iter().map(|(offset, hint)| hint.finding(text, node, *offset));
    let first: Vec<Finding> = scan.findings.iter().cloned().chain(first).take(Earliest::<Finding>::MOST).collect();
    let more = scan.findings.len() + hints.len() - first.len();
    (first, more)
}

/// The comment that begins at `offset` has no end.
pub(super) fn comment_not_closed(offset: usize) -> Finding {
    Finding::error("a comment is not closed".to_owned())
        .at(Span::new(offset, 2), "begins here")
        .help("end it with `*/`")
}

/// The text in quotes has no `close` at its end, which is in the same line unless it has several.
pub(super) fn text_not_closed(span: Span, close: &str, one_line: bool) -> Finding {
    let line = if one_line { ", on the same line" } else { "" };
    Finding::error("a text in quotes is not closed".to_owned())
        .at(span, "begins here")
        .help(format!("each text has `{close}` at its end{line}"))
}

/// An error at a place in the code.
enum Hint {
    NotClosed,
    ClosesNothing,
    /// A name of this length begins behind a brace.
    Unseparated(usize),
}

impl Hint {
    fn finding(&self, text: &str, node: &str, offset: usize) -> Finding {
        match self {
            Hint::NotClosed => {
                let line = text[..offset].rfind('\n').map_or(0, |end| end + 1);
                let before = text[line..offset].rsplit(['{', ';']).next().unwrap_or_default().trim();
                let what = before.split_whitespace().next().map_or(String::new(), |name| format!(" of `{name}`"));
                Finding::error(format!("the `{{`{what} is not closed"))
                    .at(Span::new(offset, 1), "not closed")
                    .help("add a `}` behind what stands in it")
            }
            Hint::ClosesNothing => Finding::error("a `}` closes nothing")
                .at(Span::new(offset, 1), "nothing is open here")
                .help("take it away, or add the `{` that it should close"),
            Hint::Unseparated(length) => Finding::error(format!("a {node} begins on the line where another one ends"))
                .at(Span::new(offset, *length), "here")
                .help("write it on a line of its own, or put a `;` between the two"),
        }
    }
}

/// Unmatched braces.
fn unpaired(braces: &[Brace]) -> impl Iterator<Item = (usize, Hint)> {
    let (open, surplus) = match pair(braces, true) {
        // The indentation does not follow the braces.
        (open, surplus) if !open.is_empty() && !surplus.is_empty() => pair(braces, false),
        found => found,
    };
    let open = open.into_iter().map(|brace| (brace.offset, Hint::NotClosed));
    open.chain(surplus.into_iter().map(|brace| (brace.offset, Hint::ClosesNothing)))
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
fn unseparated(text: &str, braces: &[Brace]) -> impl Iterator<Item = (usize, Hint)> {
    let begins = |character: char| character.is_alphanumeric() || character == '_';
    braces.iter().filter(|brace| !brace.opens).filter_map(move |brace| {
        let rest = text[brace.offset + 1..].trim_start_matches([' ', '\t']);
        let length = rest.find(|character: char| !(begins(character) || character == '-')).unwrap_or(rest.len());
        (length > 0 && rest.starts_with(begins)).then_some((text.len() - rest.len(), Hint::Unseparated(length)))
    })
}

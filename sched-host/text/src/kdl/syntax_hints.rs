//! Errors of KDL syntax that the parser reports at the wrong place: unmatched braces, quotes and comments, and nodes
//! without a separator.

use super::scan::{Brace, Scan};
use crate::{Earliest, Finding, Span};

/// The first errors of this kind in a text that the parser refused, in the order of the text, and the number of others.
pub(super) fn syntax_hints(text: &str, node: &str, scan: &Scan<'_>) -> (Vec<Finding>, usize) {
    let mut findings = Earliest::new();
    for finding in &scan.findings {
        findings.report(finding.place().map_or(0, |place| place.offset()), finding.clone());
    }
    // With open quotes, braces may be inside or outside of texts.
    if findings.is_empty() {
        for (brace, finding) in unpaired(text, &scan.braces) {
            findings.report(brace.offset, finding);
        }
        for (offset, finding) in unseparated(text, node, &scan.braces) {
            findings.report(offset, finding);
        }
    }
    findings.take()
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

/// Unmatched braces.
fn unpaired<'a>(text: &'a str, braces: &[Brace]) -> impl Iterator<Item = (Brace, Finding)> + 'a {
    let (open, surplus) = match pair(braces, true) {
        // The indentation does not follow the braces.
        (open, surplus) if !open.is_empty() && !surplus.is_empty() => pair(braces, false),
        found => found,
    };
    let not_closed = move |brace: Brace| {
        let line = text[..brace.offset].rfind('\n').map_or(0, |end| end + 1);
        let before = text[line..brace.offset].rsplit(['{', ';']).next().unwrap_or_default().trim();
        let what = before.split_whitespace().next().map_or(String::new(), |name| format!(" of `{name}`"));
        let finding = Finding::error(format!("the `{{`{what} is not closed"));
        (brace, finding.at(Span::new(brace.offset, 1), "not closed").help("add a `}` behind what stands in it"))
    };
    let closes_nothing = |brace: Brace| {
        let finding = Finding::error("a `}` closes nothing").at(Span::new(brace.offset, 1), "nothing is open here");
        (brace, finding.help("take it away, or add the `{` that it should close"))
    };
    open.into_iter().map(not_closed).chain(surplus.into_iter().map(closes_nothing))
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
fn unseparated<'a>(text: &'a str, node: &'a str, braces: &'a [Brace]) -> impl Iterator<Item = (usize, Finding)> + 'a {
    let begins = move |character: char| character.is_alphanumeric() || character == '_';
    let behind = braces.iter().filter(|brace| !brace.opens).filter_map(move |brace| {
        let rest = text[brace.offset + 1..].trim_start_matches([' ', '\t']);
        let length = rest.find(|character: char| !(begins(character) || character == '-')).unwrap_or(rest.len());
        (length > 0 && rest.starts_with(begins)).then(|| (text.len() - rest.len(), length))
    });
    behind.map(move |(offset, length)| {
        let finding = Finding::error(format!("a {node} begins on the line where another one ends"));
        let finding = finding.at(Span::new(offset, length), "here");
        (offset, finding.help("write it on a line of its own, or put a `;` between the two"))
    })
}

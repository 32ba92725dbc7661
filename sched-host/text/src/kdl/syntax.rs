//! Parsing of KDL text, with KDL's errors as findings.

use super::enclosed::syntax_errors;
use super::reader::Language;
use super::scan::Scan;
use super::syntax_hints::syntax_hints;
use crate::{Earliest, Finding, Span};
use kdl::{KdlDiagnostic, KdlDocument};
use miette::SourceSpan;

/// Maximum nesting of braces. The KDL parser recurses, and would overflow its stack at some depth.
const DEEPEST: usize = 64;

/// Maximum number of bytes. The KDL parser takes up to 10 µs and 500 bytes of memory for each.
const LONGEST: usize = 4 << 20;

/// The document of a text, or the first of its syntax errors and the number of others.
pub(super) fn document(text: &str, language: Language) -> Result<KdlDocument, (Vec<Finding>, usize)> {
    if text.len() > LONGEST {
        let finding = Finding::error(format!("it has {} bytes, and {} MiB are the most", text.len(), LONGEST >> 20));
        let help = "is it the right file? a text of this size would take minutes to read";
        return Err((vec![finding.help(help)], 0));
    }
    let scan = Scan::of(text);
    if let Some(offset) = scan.too_deep(DEEPEST) {
        let finding = Finding::error(format!("braces nest more than {DEEPEST} deep"));
        let help = "a `}` may be missing, again and again; if none is, divide the text into parts that do not nest";
        return Err((vec![finding.at(Span::new(offset, 1), "too deep").help(help)], 0));
    }
    if let Some(offset) = scan.repeated_slashdash() {
        let finding = Finding::error("a `/-` follows another one").at(Span::new(offset, 2), "one too many");
        return Err((vec![finding.help("write one `/-` before what is to be left out")], 0));
    }
    let mut found = syntax_errors(&scan.code, Earliest::<Finding>::MOST);
    if found.is_empty() && scan.findings.is_empty() {
        match KdlDocument::parse(&scan.plain) {
            Ok(document) => return Ok(document),
            // Behind a wrong text in quotes, the parser takes texts for code.
            Err(error) => found = error.diagnostics.into_iter().take(1).collect(),
        }
    }
    let (mut known, more) = syntax_hints(text, language.node, &scan);
    if !known.is_empty() {
        // After such an error the parser also reports every enclosing brace as not closed.
        let lost = ["No closing '}'", "Closing '}' was not found", "Expected end of document"];
        let is_lost = |message: &String| lost.iter().any(|begins| message.starts_with(begins));
        found.retain(|found| !found.message.as_ref().is_some_and(is_lost));
    }
    let others: Vec<SourceSpan> = found.iter().filter(|one| !is_invalid_name(one)).map(|one| one.span).collect();
    found.retain(|one| !(is_invalid_name(one) && others.contains(&one.span)));
    known.extend(found.into_iter().map(|found| match cause(text, &scan.code, &found) {
        Some(cause) => cause,
        None => finding(text, language.node, found),
    }));
    Err((known, more))
}

/// The error that the parser adds to others about the same word.
fn is_invalid_name(found: &KdlDiagnostic) -> bool {
    found.message.as_deref() == Some("Found invalid node name")
}

/// The cause of an error that the parser does not name.
fn cause(text: &str, code: &str, found: &KdlDiagnostic) -> Option<Finding> {
    let (begin, end) = (found.span.offset(), found.span.offset() + found.span.len());
    let word = text.get(begin..end)?;
    if is_invalid_name(found) && word.starts_with(';') {
        let left_out = code[..begin].rfind("/-").map(|at| &code[at..begin]);
        let place = Span::new(begin, 1);
        return Some(match left_out.is_some_and(|node| !node.contains([';', '\n'])) {
            // The language allows it, and the parser does not.
            true => Finding::error("a `;` follows what `/-` leaves out")
                .at(place, "here")
                .help("end the line instead of writing `;`, or use `/*` and `*/`"),
            false => Finding::error("a `;` ends nothing").at(place, "one too many").help("leave it out"),
        });
    }
    if found.message.as_deref() == Some("matching multiline string prefix") {
        let blank = text[end..].len() - text[end..].trim_start_matches([' ', '\t']).len();
        return Some(
            Finding::error("a line of a text is indented less than the text's end, or otherwise")
                .at(Span::new(end, blank.max(1)), "in this line")
                .help("begin each line with the same blanks as the line of the closing `\"\"\"`"),
        );
    }
    let control = word.char_indices().find(|(_, c)| c.is_control() && !c.is_whitespace());
    control.map(|(at, control)| {
        let code = u32::from(control);
        Finding::error(format!("a word contains the control character {code:#04x}"))
            .at(Span::new(begin + at, control.len_utf8()), "here")
            .help(format!("take it away; in quotes, it is written `\\u{{{code:x}}}`"))
    })
}

/// The span without surrounding white space, which KDL sometimes includes.
pub(super) fn trimmed(text: &str, span: SourceSpan) -> Span {
    let found = text.get(span.offset()..span.offset() + span.len()).unwrap_or_default();
    let start = span.offset() + (found.len() - found.trim_start().len());
    Span::new(start, found.trim().len())
}

fn finding(text: &str, node: &str, found: KdlDiagnostic) -> Finding {
    let mut span = trimmed(text, found.span);
    let word = |span: Span| span.get().and_then(|span| text.get(span.offset()..span.offset() + span.len()));
    // The parser's spans may start at the document's first node; the error is at their end.
    if let (Some(wide), Some(found)) = (span.get(), word(span).filter(|found| found.contains('\n'))) {
        let last = found.chars().next_back().map_or(0, char::len_utf8);
        span = Span::new(wide.offset() + wide.len() - last, last);
    }
    let help = match word(span) {
        Some(word @ ("true" | "false" | "null" | "inf" | "-inf" | "nan")) => format!("write `#{word}`"),
        _ => found.help.unwrap_or_else(|| format!("a {node} is written `name param=value {{ children }}`")),
    };
    Finding::error(found.message.unwrap_or_else(|| "this is not KDL".to_owned())).at(span, "here").help(help)
}

/// The comment lines at the end of what is above a node, without slashes.
pub(super) fn last_comment(above: &str) -> String {
    // The rest after the last newline is the node's indentation, unless another node is in its line.
    let Some((above, indent)) = above.trim_start_matches('\u{FEFF}').rsplit_once('\n') else { return String::new() };
    let above = if indent.trim().is_empty() { above } else { "" };
    let lines = above.split('\n').rev().map(|line| line.trim().strip_prefix("//")).map_while(|line| line);
    let mut lines: Vec<&str> = lines.map(|line| line.strip_prefix(' ').unwrap_or(line)).collect();
    lines.reverse();
    lines.join("\n")
}

//! Text to a KDL document, and KDL's errors as findings.

use super::finding::Finding;
use super::span::Span;
use super::syntax_hints::syntax_hints;
use kdl::{KdlDiagnostic, KdlDocument, KdlNode};
use miette::SourceSpan;

/// How deep braces and comments may nest. The KDL parser recurses, and would overflow its stack at some depth.
const DEEPEST: usize = 64;

/// The document of a text.
///
/// # Errors
/// Everything that is wrong with its syntax.
pub fn document(text: &str) -> Result<KdlDocument, Vec<Finding>> {
    if let Some(offset) = too_deep(text) {
        return Err(vec![
            Finding::error(format!("braces nest more than {DEEPEST} deep"))
                .at(Span::new(offset, 1), "too deep")
                .help("no scheduler needs so many levels: a `}` may be missing, again and again")
                .code("kdl::syntax"),
        ]);
    }
    let found = KdlDocument::parse(text).map_err(|error| error.diagnostics);
    found.map_err(|mut found| {
        let known = syntax_hints(text);
        if !known.is_empty() {
            // The parser loses its way there, and says of every brace around that it is not closed.
            let lost = [
                "No closing '}'",
                "Closing '}' was not found",
                "Expected end of document",
                "Expected quoted string",
                "Unexpected newline in single-line quoted string",
                "Expected closing of multi-line comment",
            ];
            let is_lost = |message: &String| lost.iter().any(|begins| message.starts_with(begins));
            found.retain(|found| !found.message.as_ref().is_some_and(is_lost));
        }
        known.into_iter().chain(found.into_iter().map(|found| finding(text, found))).collect()
    })
}

/// The span without the white space around it, which KDL counts in at some places.
pub fn trimmed(text: &str, span: SourceSpan) -> Span {
    let found = text.get(span.offset()..span.offset() + span.len()).unwrap_or_default();
    let start = span.offset() + (found.len() - found.trim_start().len());
    Span::new(start, found.trim().len())
}

fn finding(text: &str, found: KdlDiagnostic) -> Finding {
    let mut span = trimmed(text, found.span);
    let word = |span: Span| span.get().and_then(|span| text.get(span.offset()..span.offset() + span.len()));
    // The parser's spans may start at the document's first node; the trouble is where they end.
    if let (Some(wide), Some(found)) = (span.get(), word(span).filter(|found| found.contains('\n'))) {
        let last = found.chars().next_back().map_or(0, char::len_utf8);
        span = Span::new(wide.offset() + wide.len() - last, last);
    }
    let help = match word(span) {
        Some(word @ ("true" | "false" | "null" | "inf" | "-inf" | "nan")) => format!("write `#{word}`"),
        _ => found.help.unwrap_or_else(|| "a component is written `name param=value { children }`".to_owned()),
    };
    Finding::error(found.message.unwrap_or_else(|| "this is not KDL".to_owned()))
        .at(span, "here")
        .help(help)
        .code("kdl::syntax")
}

/// Where braces or comments nest deeper than [`DEEPEST`]. Braces in texts and comments count too, which matters to
/// nobody.
fn too_deep(text: &str) -> Option<usize> {
    let mut depth = 0_usize;
    let mut rest = text.as_bytes();
    while let Some(first) = rest.first() {
        let (change, length) = match (first, rest.get(1)) {
            (b'{', _) => (1, 1),
            (b'}', _) => (-1, 1),
            (b'/', Some(b'*')) => (1, 2),
            (b'*', Some(b'/')) => (-1, 2),
            _ => (0, 1),
        };
        depth = depth.saturating_add_signed(change);
        if depth > DEEPEST {
            return Some(text.len() - rest.len());
        }
        rest = &rest[length..];
    }
    None
}

/// The comment lines right above a node, without slashes.
#[must_use]
pub fn comment_above(node: &KdlNode) -> String {
    let leading = node.format().map_or("", |format| format.leading.trim_start_matches('\u{FEFF}'));
    // What follows the last newline is the node's own indentation.
    let above: Vec<&str> = leading.split('\n').collect();
    let above = &above[..above.len() - 1];
    let lines = above.iter().rev().map(|line| line.trim().strip_prefix("//")).map_while(|line| line);
    let mut lines: Vec<&str> = lines.map(|line| line.strip_prefix(' ').unwrap_or(line)).collect();
    lines.reverse();
    lines.join("\n")
}

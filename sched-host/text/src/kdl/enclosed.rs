//! Syntax errors of a document of any length.

use kdl::{KdlDiagnostic, KdlNode};

/// What the parser says at the end of a document that goes on.
const SURPLUS: &str = "Expected end of document";

/// The first `most` syntax errors of a document, and perhaps some more.
///
/// The parser calls itself again behind each error at the top of a document, until the stack overflows. So the document
/// is given to it as the children of a node, where it stops at such an error, and then what is behind the error.
pub(super) fn syntax_errors(text: &str, most: usize) -> Vec<KdlDiagnostic> {
    let (mut found, mut from) = (Vec::new(), 0);
    while from < text.len() && found.len() < most {
        let rest = &text[from..];
        // A comment may be in the last line.
        let enclosed = format!("{OPEN}{rest}\n}}");
        let Err(error) = KdlNode::parse(&enclosed) else { break };
        let (mut stopped, mut open) = (None, false);
        for mut one in error.diagnostics {
            let (begin, end) = (one.span.offset(), one.span.offset() + one.span.len());
            let message = one.message.as_deref().unwrap_or_default();
            if begin + 1 == OPEN.len() && message.starts_with("No closing") {
                open = true;
            } else if begin == OPEN.len() && message.starts_with("Closing") && open {
                continue;
            } else if message.is_empty() {
                stopped = Some(begin);
            } else {
                let inside = |at: usize| at.clamp(OPEN.len(), OPEN.len() + rest.len()) - OPEN.len();
                one.span = (from + inside(begin)..from + inside(end)).into();
                found.push(one);
            }
        }
        let Some(stopped) = stopped else { break };
        // Either a `}` has closed the node, or nothing that is known begins here.
        let surplus = if open { Some(stopped) } else { enclosed[..stopped].rfind('}') };
        let at = from + surplus.unwrap_or(stopped).clamp(OPEN.len(), OPEN.len() + rest.len()) - OPEN.len();
        let length = text[at..].chars().next().map_or(0, char::len_utf8);
        let (message, span) = (Some(SURPLUS.to_owned()), (at..at + length).into());
        let (input, severity) = (error.input, miette::Severity::Error);
        found.push(KdlDiagnostic { input, span, message, label: None, help: None, severity });
        from = at + length.max(1);
    }
    found
}

/// What is before the document in the text for the parser.
const OPEN: &str = "_{";

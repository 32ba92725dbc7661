//! A text of simple form without repeated blanks.
//!
//! The parser tries a dozen alternatives at each blank, and indented text with comments is mostly blanks. Shipped
//! policies are read in each simulation, where that is a good part of the time of a small one.

use super::scan::Scan;
use kdl::{KdlDocument, KdlEntry, KdlIdentifier, KdlNode};
use miette::SourceSpan;

/// See the [module](self).
struct Dense {
    /// The text as the children of a node: behind an error at the top of a document, the parser calls itself again.
    enclosed: String,
    cuts: Vec<Cut>,
}

/// Blanks that were left out.
struct Cut {
    /// Place of what follows, in the dense text.
    at: usize,
    /// Number of bytes that were left out up to there.
    missing: usize,
}

const OPEN: &str = "_{";

/// The document of a text without errors and in which nothing is rare: no `\`, no `/-`, no texts of several lines, no
/// characters beyond ASCII but in comments. `None` for others.
pub(super) fn document(scan: &Scan) -> Option<KdlDocument> {
    let is_simple = |byte: u8| byte == b'\n' || (matches!(byte, b' '..=b'~') && byte != b'\\');
    let plain = &scan.plain;
    let is_rare = |word| plain.contains(word);
    if !scan.findings.is_empty() || !plain.bytes().all(is_simple) || is_rare("\"\"\"") || is_rare("/-") {
        return None;
    }
    // A text that closes the node around it is not a document.
    let mut depth = 0_usize;
    for brace in &scan.braces {
        depth = if brace.opens { depth + 1 } else { depth.checked_sub(1)? };
    }
    let dense = Dense::of(scan);
    let mut document = KdlNode::parse(&dense.enclosed).ok()?.children_mut().take()?;
    dense.place_document(&mut document);
    Some(document)
}

impl Dense {
    fn of(scan: &Scan) -> Dense {
        let mut dense = Dense { enclosed: String::with_capacity(scan.plain.len()), cuts: Vec::new() };
        dense.enclosed.push_str(OPEN);
        let (mut at, mut missing) = (0, 0);
        // In `code`, texts in quotes have no blanks.
        let (code, plain) = (scan.code.as_bytes(), &scan.plain);
        let is_blank = |byte: &u8| matches!(byte, b' ' | b'\n');
        while at < code.len() {
            let blanks = code[at..].iter().take_while(|byte| is_blank(byte)).count();
            if blanks > 0 {
                dense.enclosed.push(if code[at..at + blanks].contains(&b'\n') { '\n' } else { ' ' });
            }
            if blanks > 1 {
                missing += blanks - 1;
                dense.cuts.push(Cut { at: dense.enclosed.len() - OPEN.len(), missing });
            }
            at += blanks;
            let others = code[at..].iter().take_while(|byte| !is_blank(byte)).count();
            dense.enclosed.push_str(&plain[at..at + others]);
            at += others;
        }
        dense.enclosed.push_str("\n}");
        dense
    }

    /// The place in the text of this place in the dense text.
    fn place(&self, enclosed: usize) -> usize {
        let at = enclosed.saturating_sub(OPEN.len());
        let before = self.cuts.partition_point(|cut| cut.at <= at);
        at + before.checked_sub(1).map_or(0, |last| self.cuts[last].missing)
    }

    fn span(&self, dense: SourceSpan) -> SourceSpan {
        let (begin, end) = (self.place(dense.offset()), self.place(dense.offset() + dense.len()));
        (begin..end).into()
    }

    fn place_document(&self, document: &mut KdlDocument) {
        document.set_span(self.span(document.span()));
        document.nodes_mut().iter_mut().for_each(|node| self.place_node(node));
    }

    fn place_node(&self, node: &mut KdlNode) {
        node.set_span(self.span(node.span()));
        self.place_word(node.name_mut());
        node.ty_mut().iter_mut().for_each(|word| self.place_word(word));
        node.entries_mut().iter_mut().for_each(|entry| self.place_entry(entry));
        node.children_mut().iter_mut().for_each(|children| self.place_document(children));
    }

    fn place_entry(&self, entry: &mut KdlEntry) {
        entry.set_span(self.span(entry.span()));
        entry.name_mut().into_iter().for_each(|word| self.place_word(word));
        entry.ty_mut().iter_mut().for_each(|word| self.place_word(word));
    }

    fn place_word(&self, word: &mut KdlIdentifier) {
        word.set_span(self.span(word.span()));
    }
}

//! Reading KDL: text to a document, nodes to typed values, with all problems of both.
//!
//! A [`Reader`] belongs to one text. It parses the text, opens nodes as [`NodeReader`]s, which check their
//! [`Signature`] and give typed access to arguments and properties, and collects findings with their places. It
//! continues after each problem, so that all are reported.

mod enclosed;
mod node;
mod reader;
mod scan;
mod syntax;
mod syntax_hints;
#[cfg(test)]
mod tests;

pub use node::{NodeReader, Signature};
pub use reader::{Language, Reader};

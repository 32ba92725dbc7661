//! Reading KDL: a text to a document, nodes to typed values, and everything that is wrong with either.
//!
//! A [`Reader`] belongs to one text. It parses the text, gives out its nodes as [`NodeReader`]s, which check their [`Signature`]
//! and give typed access to arguments and properties, and collects findings with their places. Nothing that is wrong
//! stops it, so that its user reports all of it.

mod node;
mod reader;
mod syntax;
mod syntax_hints;
#[cfg(test)]
mod tests;

pub use node::{NodeReader, Signature};
pub use reader::{Language, Reader};
pub use syntax::comment_above;

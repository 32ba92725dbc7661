//! Workers: the leaves, which hand tasks to those who execute them.

mod combined;
mod list;
mod simple;

pub use combined::Combined;
pub use simple::Simple;

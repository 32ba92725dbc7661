//! Workers: the leaves, which hand tasks to workers for execution.

mod combined;
mod list;
mod simple;

pub use combined::Combined;
pub use simple::Simple;

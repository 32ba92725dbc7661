//! Workers: the leaves, which hand tasks to those who execute them.

mod simple;

pub use simple::Simple;

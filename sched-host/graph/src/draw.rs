//! Pictures of a graph: [`dot`] for Graphviz, and [`svg`] for browsers and papers.
//!
//! Up to [`MOST`] tasks are drawn one by one. Of larger graphs a picture shows groups, and says so: the tasks of a kind
//! that are equally deep or, where those are too many as well, all tasks of a kind.

mod dot;
mod layout;
mod sketch;
mod svg;
#[cfg(test)]
mod tests;

pub use dot::dot;
pub use sketch::MOST;
pub use svg::svg;

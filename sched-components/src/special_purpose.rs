//! Special purpose: components that neither hold tasks nor choose a resource.

mod best_implementation;

pub use best_implementation::BestImplementation;

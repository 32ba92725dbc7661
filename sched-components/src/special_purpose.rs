//! Special purpose: components that neither hold tasks nor choose a resource.

mod best_implementation;
mod perfmodel_select;

pub use best_implementation::BestImplementation;
pub use perfmodel_select::PerfmodelSelect;

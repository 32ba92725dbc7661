//! Special purpose: components that neither hold tasks nor choose a resource.

mod best_implementation;
mod perfmodel_select;
mod stage;
mod user_choice;

pub use best_implementation::BestImplementation;
pub use perfmodel_select::PerfmodelSelect;
pub use stage::Stage;
pub use user_choice::UserChoice;

//! The stock scheduling components: the families of the StarPU handbook's "Modularized Schedulers".
//!
//! | family | components |
//! |---|---|
//! | [flow control](flow_control) | [`Fifo`](flow_control::Fifo), [`Prio`](flow_control::Prio) |
//! | [resource mapping](resource_mapping) | [`Eager`](resource_mapping::Eager), [`EagerCalibration`](resource_mapping::EagerCalibration), [`EagerPrio`](resource_mapping::EagerPrio), [`Random`](resource_mapping::Random), [`WorkStealing`](resource_mapping::WorkStealing), [`Mct`](resource_mapping::Mct), [`Heft`](resource_mapping::Heft), [`Heteroprio`](resource_mapping::Heteroprio), [`Replan`](resource_mapping::Replan), [`Plan`](resource_mapping::Plan) |
//! | [special purpose](special_purpose) | [`BestImplementation`](special_purpose::BestImplementation), [`PerfmodelSelect`](special_purpose::PerfmodelSelect), [`Stage`](special_purpose::Stage), [`UserChoice`](special_purpose::UserChoice) |
//! | [workers](worker) | [`Simple`](worker::Simple), [`Combined`](worker::Combined) |
//!
//! Each is a [`Component`](sched_core::Component) like any other: it uses nothing that a plugin's author could not use,
//! and reaches a host compiled in or as a plugin.
#![forbid(unsafe_code)]

mod facts;
pub mod flow_control;
mod queue;
pub mod resource_mapping;
pub mod special_purpose;
mod sync;
pub mod worker;

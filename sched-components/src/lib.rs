//! The stock scheduling components: the families of the StarPU handbook's "Modularized Schedulers".
//!
//! | family | components |
//! |---|---|
//! | [flow control](flow_control) | [`Fifo`], [`Prio`] |
//! | [resource mapping](resource_mapping) | [`Eager`], [`EagerCalibration`], [`EagerPrio`], [`Random`], [`WorkStealing`], [`Mct`], [`Heft`], [`Heteroprio`], [`Replan`], [`Plan`] |
//! | [special purpose](special_purpose) | [`BestImplementation`], [`PerfmodelSelect`], [`Stage`], [`UserChoice`] |
//! | [workers](worker) | [`Simple`], [`Combined`] |
//!
//! Each is a [`Component`](sched_core::Component) like any other: it uses nothing that a plugin's author could not use,
//! and reaches a host compiled in ([`stock()`]) or as a plugin.
#![forbid(unsafe_code)]

mod facts;
pub mod flow_control;
mod queue;
pub mod resource_mapping;
pub mod special_purpose;
mod sync;
pub mod worker;

use flow_control::{Fifo, Prio};
use resource_mapping::{
    BlockCyclic, Eager, EagerCalibration, EagerPrio, Heft, Heteroprio, Mct, Plan, Random, Replan, WorkStealing,
};
use sched_core::Offer;
use special_purpose::{BestImplementation, PerfmodelSelect, Stage, UserChoice};
use worker::{Combined, Simple};

/// Name of this package, which every stock component [states](sched_core::Info::package).
pub const PACKAGE: &str = env!("CARGO_PKG_NAME");

/// Version of this package.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Upper bound of parameters that are numbers: what is computed from them stays finite, and fits into a duration.
const LARGEST: i64 = 1_000_000_000_000;

/// Every stock component.
///
/// ```
/// let names: Vec<&str> = sched_components::stock().iter().map(|offer| offer.info().name()).collect();
/// assert!(names.contains(&"fifo") && names.contains(&"worker"));
/// ```
#[must_use]
pub fn stock() -> Vec<Offer> {
    vec![
        Offer::of::<Fifo>(),
        Offer::of::<Prio>(),
        Offer::of::<BlockCyclic>(),
        Offer::of::<Eager>(),
        Offer::of::<EagerCalibration>(),
        Offer::of::<EagerPrio>(),
        Offer::of::<Heft>(),
        Offer::of::<Heteroprio>(),
        Offer::of::<Mct>(),
        Offer::of::<Random>(),
        Offer::of::<Replan>(),
        Offer::of::<Plan>(),
        Offer::of::<WorkStealing>(),
        Offer::of::<BestImplementation>(),
        Offer::of::<PerfmodelSelect>(),
        Offer::of::<Stage>(),
        Offer::of::<UserChoice>(),
        Offer::of::<Simple>(),
        Offer::of::<Combined>(),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use sched_core::ParamKind;

    #[test]
    fn no_number_is_too_large_for_what_is_computed_from_it() {
        for offer in stock() {
            for param in offer.info().describe().params {
                if let ParamKind::Float { max, .. } = param.kind {
                    assert!(max <= LARGEST as f64, "{} of {}", param.name, offer.info().name());
                }
            }
        }
    }

    #[test]
    fn every_stock_component_states_this_package() {
        for offer in stock() {
            assert_eq!(offer.info().describe().package, PACKAGE, "{}", offer.info().name());
        }
    }
}

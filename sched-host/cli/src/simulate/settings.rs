//! What the options of a simulation were, for its reports.

use super::setup::{CostsOption, PrioritiesOption};
use crate::task_options::TaskOptions;
use clap::ValueEnum;
use sched_sim::{Known, Noise};
use serde::Serialize;
use std::fmt::Display;

/// Options that change makespans, besides graph, machine, policy and seed. Fields are JSON keys.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Settings {
    costs: CostsOption,
    priorities: PrioritiesOption,
    /// `null` where it is not given, as with noise.
    parallel: Option<f64>,
    noise: Option<NoiseSetting>,
    /// Empty where none is given, as with data for the scheduler.
    #[serde(rename = "where")]
    places: Vec<OfKind<String>>,
    sched_data: Vec<OfKind<u64>>,
}

/// `--noise`.
#[derive(Clone, Debug, Serialize)]
struct NoiseSetting {
    spread: f64,
    bias: Vec<Bias>,
    /// What schedulers know of it.
    known: &'static str,
}

#[derive(Clone, Debug, Serialize)]
struct Bias {
    name: String,
    factor: f64,
}

/// A setting of the tasks of a kind.
#[derive(Clone, Debug, Serialize)]
struct OfKind<T> {
    kind: String,
    value: T,
}

impl Settings {
    pub(super) fn new(
        (costs, priorities, parallel): (CostsOption, PrioritiesOption, Option<f64>),
        noise: Option<&Noise>,
        tasks: &TaskOptions,
    ) -> Settings {
        let noise = noise.map(|noise| NoiseSetting {
            spread: noise.spread,
            bias: noise.bias.iter().map(|(name, factor)| Bias { name: name.clone(), factor: *factor }).collect(),
            known: noise.known.name(),
        });
        let places = tasks.places.iter().map(|(kind, places)| OfKind { kind: kind.clone(), value: places.to_string() });
        let sched_data = tasks.sched_data.iter().map(|(kind, data)| OfKind { kind: kind.clone(), value: *data });
        let (places, sched_data) = (places.collect(), sched_data.collect());
        Settings { costs, priorities, parallel, noise, places, sched_data }
    }

    /// The options as they are given, if any is.
    pub(crate) fn options(&self) -> Option<String> {
        let mut options = Vec::new();
        if self.costs != CostsOption::Default {
            options.push(format!("--costs {}", word(self.costs)));
        }
        if self.priorities != PrioritiesOption::AsGiven {
            options.push(format!("--priorities {}", word(self.priorities)));
        }
        options.extend(self.parallel.map(|share| format!("--parallel {share}")));
        options.extend(self.noise.as_ref().map(NoiseSetting::option));
        options.extend(self.places.iter().map(|setting| setting.option("--where")));
        options.extend(self.sched_data.iter().map(|setting| setting.option("--sched-data")));
        if options.is_empty() { None } else { Some(options.join(" ")) }
    }
}

impl NoiseSetting {
    fn option(&self) -> String {
        let spread = (self.spread != 0.0 || self.bias.is_empty()).then(|| format!("spread={}", self.spread));
        let bias = self.bias.iter().map(|Bias { name, factor }| format!("bias={name}:{factor}"));
        let known = (self.known != Known::default().name()).then(|| format!("known={}", self.known));
        format!("--noise {}", spread.into_iter().chain(bias).chain(known).collect::<Vec<_>>().join(","))
    }
}

impl<T: Display> OfKind<T> {
    fn option(&self, name: &str) -> String {
        format!("{name} {}={}", self.kind, self.value)
    }
}

/// The word for the value of an option.
fn word(value: impl ValueEnum) -> String {
    value.to_possible_value().map_or_else(String::new, |value| value.get_name().to_owned())
}

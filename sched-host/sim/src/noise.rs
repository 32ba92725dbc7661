//! Kernels that do not take the time that schedulers expect.

use super::lengths::{Lengths, Rows};
use super::platform::Platform;
use sched_graph::{TaskGraph, TaskId};
use sched_text::hash::mix;

/// How the execution times of kernels differ from those of the models. Schedulers expect the models, unless more is
/// [`known`](Self::known); kernels take what they take.
///
/// The factor of an execution is the product of three: `bias`, as given; one for each kind of task and class of
/// workers, the error of that model; and one for each execution. The last two are drawn from a log-normal distribution
/// of median 1, and their logarithms have a standard deviation of `spread`/√2 each, so that of the product is `spread`.
/// Each draw depends only on the seed, the class of workers and the kind or the task: every policy meets the same luck.
///
/// ```
/// use sched_graph::generate::independent;
/// use sched_sim::{Known, Noise, Platform, Simulation};
/// use std::time::Duration;
/// # let registry = std::sync::Arc::new(sched_tree::plugin::Registry::compiled_in());
/// let length = Duration::from_millis(1);
/// let run = |noise: Noise| {
///     let simulation = Simulation::new(independent(100, length), Platform::flat(4, length));
///     simulation.policy("tree-eager").registry(registry.clone()).noise(noise).run()
/// };
/// assert_eq!(run(Noise { bias: vec![("cpu".to_owned(), 1.5)], ..Noise::default() })?.makespan.as_micros(), 37_500);
/// let deviates = |known| Noise { spread: 0.2, known, ..Noise::default() };
/// let makespan = run(deviates(Known::Nothing))?.makespan;
/// assert_ne!(makespan.as_micros(), 25_000);
/// assert_eq!(run(deviates(Known::Executions))?.makespan, makespan, "`tree-eager` does not ask what kernels will take");
/// # Ok::<(), sched_sim::SimError>(())
/// ```
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Noise {
    /// Standard deviation of the logarithm of the factor; 0.1 is about 10 %.
    pub spread: f64,
    /// Factors of all executions on workers of an architecture or a class, or of a kind of task; all that apply are
    /// multiplied.
    pub bias: Vec<(String, f64)>,
    /// What schedulers know of it. Kernels take the same.
    pub known: Known,
    /// Seed of the draws.
    pub seed: u64,
}

/// What schedulers know of [`Noise`]. What a policy loses less when it knows more is lost for want of knowledge; the
/// rest is what the tasks of such lengths cost it on that machine.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Known {
    /// Nothing: they expect the models.
    #[default]
    Nothing,
    /// The errors of the models, with their bias: executions still differ.
    Models,
    /// What each execution takes.
    Executions,
}

impl Known {
    /// All, from nothing to everything.
    pub const ALL: [Known; 3] = [Known::Nothing, Known::Models, Known::Executions];

    /// Its word in options and reports.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Known::Nothing => "nothing",
            Known::Models => "models",
            Known::Executions => "executions",
        }
    }
}

/// The draws of a simulation.
#[derive(Debug)]
pub(super) struct Luck {
    seed: u64,
    /// Standard deviation of the logarithm of each of the two random factors.
    deviation: f64,
    classes: usize,
    /// By kind and class: bias and error of the model.
    of_model: Vec<f64>,
    /// Whether schedulers expect these.
    is_model_known: bool,
}

/// Largest and smallest factor.
const LIMITS: (f64, f64) = (1e-3, 1e3);

impl Noise {
    /// Whether kernels take what schedulers expect.
    #[must_use]
    pub fn is_none(&self) -> bool {
        self.spread <= 0.0 && self.bias.iter().all(|(_, factor)| *factor == 1.0)
    }

    /// The names among those of the biases that are no architecture or class of `platform` and no kind of `graph`.
    #[must_use]
    pub fn unknown(&self, graph: &TaskGraph, platform: &Platform) -> Vec<&str> {
        let is_known = |name: &str| {
            platform.classes.iter().any(|class| class.name == name || class.arch.to_string() == name)
                || graph.kinds.iter().any(|kind| kind.name == name)
        };
        self.bias.iter().map(|(name, _)| name.as_str()).filter(|name| !is_known(name)).collect()
    }

    /// What schedulers expect, and the draws beside that; `None` if kernels take just what is expected.
    pub(super) fn disturb(&self, graph: &TaskGraph, platform: &Platform, expected: Lengths) -> (Lengths, Option<Luck>) {
        let Some(mut luck) = self.luck(graph, platform) else { return (expected, None) };
        match self.known {
            Known::Nothing => (expected, Some(luck)),
            Known::Models => {
                let known =
                    expected.scaled(graph, Rows::Shared, |task, class| luck.factor_of_model(graph, task, class));
                luck.is_model_known = true;
                (known, Some(luck))
            }
            Known::Executions => {
                (expected.scaled(graph, Rows::OfEach, |task, class| luck.factor(graph, task, class)), None)
            }
        }
    }

    /// The draws for a graph on a platform; `None` if there is no noise.
    fn luck(&self, graph: &TaskGraph, platform: &Platform) -> Option<Luck> {
        if self.is_none() {
            return None;
        }
        let deviation = self.spread.max(0.0) / std::f64::consts::SQRT_2;
        let mut of_model = Vec::with_capacity(graph.kinds.len() * platform.classes.len());
        for (number, kind) in (0_u64..).zip(&graph.kinds) {
            for (place, class) in (0_u64..).zip(&platform.classes) {
                let arch = class.arch.to_string();
                let applies = |name: &str| name == kind.name || name == class.name || name == arch;
                let bias: f64 = self.bias.iter().filter(|(name, _)| applies(name)).map(|(_, factor)| factor).product();
                of_model.push(bias * log_normal(deviation, [self.seed, 1, number, place]));
            }
        }
        Some(Luck { seed: self.seed, deviation, classes: platform.classes.len(), of_model, is_model_known: false })
    }
}

impl Luck {
    /// How many times as long as by its model a task takes on a class of workers.
    fn factor(&self, graph: &TaskGraph, task: TaskId, class: usize) -> f64 {
        let of_execution = log_normal(self.deviation, [self.seed, 2, u64::from(task.0), class as u64]);
        (self.factor_of_model(graph, task, class) * of_execution).clamp(LIMITS.0, LIMITS.1)
    }

    /// How many times as long as by its model a task of its kind mostly takes there.
    fn factor_of_model(&self, graph: &TaskGraph, task: TaskId, class: usize) -> f64 {
        self.of_model[graph.task(task).kind.index() * self.classes + class]
    }

    /// Nanoseconds that a task takes on a class of workers where `expected` are expected.
    pub(super) fn nanos(&self, graph: &TaskGraph, task: TaskId, class: usize, expected: u64) -> u64 {
        let known = if self.is_model_known { self.factor_of_model(graph, task, class) } else { 1.0 };
        (expected as f64 * (self.factor(graph, task, class) / known)) as u64
    }

    /// Nanoseconds that a task takes at most where `expected` are expected.
    pub(super) fn longest(&self, graph: &TaskGraph, task: TaskId, expected: u64) -> u64 {
        (0..self.classes).map(|class| self.nanos(graph, task, class, expected)).max().unwrap_or(expected)
    }
}

/// A number of median 1 whose logarithm has this standard deviation, drawn for `what`.
fn log_normal(deviation: f64, what: [u64; 4]) -> f64 {
    if deviation == 0.0 {
        return 1.0;
    }
    let word = what.into_iter().fold(0x9e37_79b9_7f4a_7c15, |hash, part| mix(hash ^ mix(part.wrapping_add(1))));
    let unit = |word: u64| ((word >> 11) as f64 + 0.5) / (1_u64 << 53) as f64;
    // Box and Muller.
    let (radius, angle) = ((-2.0 * unit(word).ln()).sqrt(), std::f64::consts::TAU * unit(mix(word)));
    (deviation * radius * angle.cos()).exp()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::platform::find;
    use sched_graph::generate::{cholesky, independent};
    use std::collections::HashSet;
    use std::time::Duration;

    #[test]
    fn what_is_known_and_the_draws_beside_it_are_all_that_kernels_take() {
        let platform = find("cpu9-gpu3").expect("it is shipped");
        let graph = cholesky(6, 960);
        let lengths = || Lengths::new(&graph, &platform, &[]).expect("the platform has all kinds");
        let of = |known| {
            // With these, some factors reach the limit.
            let bias = vec![("cuda".to_owned(), 40.0), ("gpu".to_owned(), 20.0)];
            let noise = Noise { spread: 0.2, bias, seed: 7, known };
            noise.disturb(&graph, &platform, lengths())
        };
        let [nothing, models, executions] = Known::ALL.map(of);
        assert!(executions.1.is_none(), "nothing is left to chance");
        let mut known_of = [HashSet::new(), HashSet::new()];
        for task in graph.ids() {
            for class in 0..platform.classes.len() {
                let [real, by_models, known] = [&nothing, &models, &executions].map(|(lengths, luck)| {
                    let expected = lengths.nanos(lengths.row(task), class);
                    luck.as_ref().map_or(expected, |luck| luck.nanos(&graph, task, class, expected))
                });
                assert!(by_models.abs_diff(real) <= 2 && known == real, "{task:?}: {real}, {by_models}, {known}");
                for ((lengths, _), known_of) in [&models, &executions].into_iter().zip(&mut known_of) {
                    known_of.insert(lengths.nanos(lengths.row(task), class));
                }
                let expected = |lengths: &Lengths| lengths.nanos(lengths.row(task), class) as f64;
                let error = expected(&models.0) / expected(&nothing.0);
                let luck = nothing.1.as_ref().expect("there is noise");
                assert!((error / luck.factor_of_model(&graph, task, class) - 1.0).abs() < 1e-5, "{error}");
            }
        }
        let kinds = graph.kinds.len() * platform.classes.len();
        assert_eq!(known_of[0].len(), kinds, "tasks of a kind are equal by their model");
        assert!(known_of[1].len() > graph.tasks.len(), "no two executions are");
    }

    #[test]
    fn factors_have_the_spread_and_the_bias_asked_for() {
        let (graph, platform) =
            (independent(4000, Duration::from_millis(1)), Platform::flat(2, Duration::from_millis(1)));
        let noise = Noise { spread: 0.2, bias: vec![("cpu".to_owned(), 1.3)], seed: 7, ..Noise::default() };
        let luck = noise.luck(&graph, &platform).expect("there is noise");
        let logs: Vec<f64> = graph
            .ids()
            .map(|task| (luck.nanos(&graph, task, 0, 1_000_000) as f64 / 1e6 / luck.of_model[0]).ln())
            .collect();
        let mean = logs.iter().sum::<f64>() / logs.len() as f64;
        let deviation = (logs.iter().map(|log| (log - mean).powi(2)).sum::<f64>() / logs.len() as f64).sqrt();
        assert!(mean.abs() < 0.01 && (0.135..0.148).contains(&deviation), "{mean} {deviation}");
        let other = Noise { seed: 8, ..noise.clone() }.luck(&graph, &platform).expect("there is noise");
        assert!(luck.of_model != other.of_model);
        assert!((luck.of_model[0] / 1.3).ln().abs() < 0.6, "{:?}", luck.of_model);
        assert!(Noise::default().luck(&graph, &platform).is_none());
        let unknown = Noise { bias: vec![("gpu".to_owned(), 2.0)], ..noise };
        assert_eq!(unknown.unknown(&graph, &platform), ["gpu"]);
    }
}

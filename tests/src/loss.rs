//! What a policy loses where kernels take other times than it expects.

use sched_host::graph::TaskGraph;
use sched_host::plugin::Registry;
use sched_host::sim::{Known, Noise, Platform, Simulation};
use std::sync::Arc;

/// Standard deviation of what kernels take.
pub const SPREAD: f64 = 0.2;

/// Makespan in seconds of a simulation with this noise.
///
/// # Panics
/// If the policy does not fit.
#[must_use]
pub fn makespan(
    graph: &Arc<TaskGraph>,
    platform: &Arc<Platform>,
    policy: &str,
    registry: &Arc<Registry>,
    noise: Noise,
) -> f64 {
    let simulation = Simulation::new(Arc::clone(graph), Arc::clone(platform)).policy(policy).noise(noise);
    let outcome = simulation.registry(Arc::clone(registry)).run();
    outcome.unwrap_or_else(|error| panic!("{policy}: {error}")).makespan.as_secs_f64()
}

/// Makespans in seconds.
#[derive(Clone, Copy)]
pub struct Loss {
    /// Without deviations.
    pub undisturbed: f64,
    /// The median of several seeds with deviations of [`SPREAD`].
    pub median: f64,
}

impl Loss {
    /// What `policy` loses where schedulers know this much of what kernels take; the seeds are 1 to `seeds`.
    ///
    /// # Panics
    /// If the policy does not fit, or there is no seed.
    #[must_use]
    pub fn of(
        graph: &Arc<TaskGraph>,
        platform: &Arc<Platform>,
        policy: &str,
        registry: &Arc<Registry>,
        known: Known,
        seeds: u64,
    ) -> Loss {
        let makespan = |noise| makespan(graph, platform, policy, registry, noise);
        let disturbed = |seed| makespan(Noise { spread: SPREAD, seed, known, ..Noise::default() });
        let mut all: Vec<f64> = (1..=seeds).map(disturbed).collect();
        all.sort_unstable_by(f64::total_cmp);
        Loss { undisturbed: makespan(Noise::default()), median: all[all.len() / 2] }
    }

    /// The part that the median is longer by.
    #[must_use]
    pub fn share(self) -> f64 {
        self.median / self.undisturbed - 1.0
    }
}

//! What came of each policy.

use sched_graph::TaskGraph;
use sched_graph::bound::Bounds;
use sched_sim::{Platform, SimError, SimRecorder, Simulation};
use sched_trace::{Activity, Timeline, Trace};
use sched_tree::Fault;
use sched_tree::plugin::Registry;
use serde::Serialize;
use std::sync::Arc;

/// All of it. The fields are the keys of the JSON; times are virtual.
#[derive(Serialize)]
pub(super) struct Comparison {
    pub(super) workload: String,
    pub(super) platform: String,
    pub(super) workers: usize,
    pub(super) tasks: usize,
    pub(super) seed: u64,
    /// `null` for very large graphs.
    pub(super) bounds_s: Option<Bounds>,
    /// The quickest first.
    pub(super) contenders: Vec<Contender>,
    /// Policies that did not come to an end.
    pub(super) lost: Vec<Lost>,
}

/// A policy, or a static schedule, and how it did.
#[derive(Serialize)]
pub(super) struct Contender {
    pub(super) name: String,
    /// Whether it is a static schedule, which knows the whole graph beforehand.
    pub(super) planned: bool,
    pub(super) makespan_s: f64,
    /// How many times as long as the largest bound the makespan is.
    pub(super) ratio_to_bound: Option<f64>,
    /// `null` where the graph does not say how many operations there are.
    pub(super) gflops: Option<f64>,
    /// Joules; `null` for static schedules, and where the platform does not say what its workers draw.
    pub(super) energy_j: Option<f64>,
    /// How much of the time a worker was busy, from 0 to 1: the mean over all of them.
    pub(super) busy_share: f64,
    /// `null` for static schedules.
    pub(super) transfers: Option<u64>,
    pub(super) bytes_moved: Option<u64>,
    /// What components did wrong.
    pub(super) faults: Vec<Fault>,
    #[serde(skip)]
    pub(super) trace: Trace,
}

/// A policy that did not come to an end.
#[derive(Serialize)]
pub(super) struct Lost {
    pub(super) policy: String,
    pub(super) why: String,
}

impl Comparison {
    pub(super) fn new(
        graph: &TaskGraph,
        platform: &Platform,
        seed: u64,
        bounds_s: Option<Bounds>,
        mut contenders: Vec<Contender>,
        lost: Vec<Lost>,
    ) -> Comparison {
        contenders.sort_by(|a, b| a.makespan_s.total_cmp(&b.makespan_s));
        for contender in &mut contenders {
            contender.ratio_to_bound = bounds_s.map(|bounds| bounds.ratio(contender.makespan_s));
        }
        let (workers, tasks) = (platform.workers.len(), graph.tasks.len());
        let (workload, platform) = (graph.name.clone(), platform.name.clone());
        Comparison { workload, platform, workers, tasks, seed, bounds_s, contenders, lost }
    }

    /// Whether the energy of any schedule is known.
    pub(super) fn knows_energy(&self) -> bool {
        self.contenders.iter().any(|contender| contender.energy_j.is_some())
    }

    /// The largest bound, in seconds.
    pub(super) fn bound(&self) -> Option<f64> {
        self.bounds_s.map(|bounds| bounds.best())
    }
}

impl Contender {
    /// Simulates a policy.
    pub(super) fn simulate(
        graph: &Arc<TaskGraph>,
        platform: &Arc<Platform>,
        policy: &str,
        registry: &Arc<Registry>,
        seed: u64,
    ) -> Result<Contender, SimError> {
        let mut recorder = SimRecorder::new(Arc::clone(graph), Arc::clone(platform));
        let simulation = Simulation::new(Arc::clone(graph), Arc::clone(platform));
        let simulation = simulation.policy(policy).registry(Arc::clone(registry)).seed(seed);
        let outcome = simulation.observe(&mut recorder)?;
        let (gflops, makespan_s) = (outcome.gflops(), outcome.makespan.as_secs_f64());
        let of_policy = Contender::of(recorder.finish(policy), makespan_s, gflops, false);
        let (transfers, bytes_moved) = (Some(outcome.transfers), Some(outcome.bytes));
        Ok(Contender { transfers, bytes_moved, energy_j: outcome.energy, faults: outcome.faults, ..of_policy })
    }

    /// What a trace shows.
    pub(super) fn of(trace: Trace, makespan_s: f64, gflops: Option<f64>, planned: bool) -> Contender {
        let spans = Timeline::of(&trace).workers;
        let tasks = spans.iter().flatten().filter(|span| matches!(span.activity, Activity::Task { .. }));
        let busy = tasks.map(|span| (span.end - span.begin) as f64 * 1e-9).sum::<f64>();
        Contender {
            name: trace.title.clone(),
            planned,
            makespan_s,
            ratio_to_bound: None,
            gflops,
            energy_j: None,
            busy_share: busy / (makespan_s * trace.workers.len() as f64).max(f64::MIN_POSITIVE),
            transfers: None,
            bytes_moved: None,
            faults: Vec::new(),
            trace,
        }
    }
}

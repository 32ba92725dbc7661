//! Several runs on one matrix, side by side.

use super::problem::Problem;
use super::report::{Measured, Report, Run, block};
use crate::table::table;
use sched_runtime::Runtime;
use sched_text::median;
use serde::Serialize;

/// A policy over all of its runs. Fields are JSON keys.
#[derive(Serialize)]
pub(super) struct Contender {
    policy: String,
    /// Name on the command line.
    given: String,
    best_s: f64,
    median_s: f64,
    worst_s: f64,
    /// Of the median.
    gflops: f64,
    /// Median joules of its runs; `null` unless they were measured.
    energy_j: Option<f64>,
    /// Ratio of its median to that of the first policy.
    ratio: f64,
    /// The largest of all runs.
    residual: f64,
    /// Mean busy fraction over all workers and runs, from 0 to 1.
    busy_share: f64,
}

/// Measurements so far.
pub(super) struct Runs {
    repeat: usize,
    workers_bound: usize,
    runs: Vec<Run>,
}

impl Runs {
    /// For `repeat` runs with each policy.
    pub(super) fn new(repeat: usize) -> Runs {
        Runs { repeat, workers_bound: 0, runs: Vec::new() }
    }

    /// Adds a run with the policy at index `place` of the `given` ones.
    pub(super) fn add(&mut self, place: usize, given: &str, runtime: &Runtime, measured: Measured) {
        self.workers_bound = runtime.bound_workers();
        self.note(place, given, runtime.policy(), measured);
    }

    pub(super) fn note(&mut self, place: usize, given: &str, policy: &str, measured: Measured) {
        let round = 1 + self.runs.iter().filter(|run| run.place == place).count();
        let (policy, given) = (policy.to_owned(), given.to_owned());
        self.runs.push(Run { policy, given, place, round, measured, makespan_explained: None });
    }

    /// The figures. There is at least one run with each policy.
    pub(super) fn report(self, problem: Problem) -> Report {
        let Runs { repeat, workers_bound, runs } = self;
        let count = runs.iter().map(|run| run.place + 1).max().unwrap_or(0);
        let mut policies: Vec<Contender> = Vec::with_capacity(count);
        for place in 0..count {
            let of_policy: Vec<&Run> = runs.iter().filter(|run| run.place == place).collect();
            let reference = policies.first().map(|first| first.median_s);
            policies.extend(Contender::of(&of_policy, reference));
        }
        let residual = largest(runs.iter().map(|run| run.measured.residual));
        let tasks = runs.first().map_or(0, |run| run.measured.tasks);
        Report { problem, workers_bound, tasks, repeat, residual, policies, runs }
    }
}

impl Contender {
    /// The runs with one policy, compared with the median of the first policy.
    fn of(runs: &[&Run], reference: Option<f64>) -> Option<Contender> {
        let first = runs.first()?;
        let times = || runs.iter().map(|run| run.measured.makespan_s);
        let median_s = median(&mut times().collect::<Vec<_>>());
        Some(Contender {
            policy: first.policy.clone(),
            given: first.given.clone(),
            best_s: times().fold(f64::INFINITY, f64::min),
            median_s,
            worst_s: times().fold(0.0, f64::max),
            // Every run does the same work.
            gflops: first.measured.gflops * first.measured.makespan_s / median_s,
            energy_j: runs
                .iter()
                .map(|run| run.measured.energy.energy_j)
                .collect::<Option<Vec<f64>>>()
                .map(|mut joules| median(&mut joules)),
            ratio: median_s / reference.unwrap_or(median_s),
            residual: largest(runs.iter().map(|run| run.measured.residual)),
            busy_share: runs.iter().map(|run| run.measured.busy_share).sum::<f64>() / runs.len() as f64,
        })
    }
}

impl Report {
    /// All policies in a table.
    pub(super) fn comparison(&self) -> String {
        let Report { problem, workers_bound, tasks, repeat, policies, .. } = self;
        let runs = match policies.len() {
            1 => format!("{repeat}"),
            _ => format!("{repeat} with each policy, in turn"),
        };
        let block = block(&[
            problem.line(),
            problem.workers_line(*workers_bound),
            ("tasks", tasks.to_string()),
            ("runs", runs),
            problem.residual_line(self.residual),
        ]);
        let mut header =
            vec!["POLICY", "BEST (S)", "MEDIAN (S)", "WORST (S)", "GFLOP/S", "RATIO", "RESIDUAL", "BUSY (%)"];
        let measured = policies.iter().all(|policy| policy.energy_j.is_some());
        header.extend(measured.then_some("ENERGY (J)"));
        let rows = policies.iter().map(|policy| {
            let seconds = |time: f64| format!("{time:.4}");
            let mut row = vec![
                policy.given.clone(),
                seconds(policy.best_s),
                seconds(policy.median_s),
                seconds(policy.worst_s),
                format!("{:.1}", policy.gflops),
                format!("{:.3}", policy.ratio),
                format!("{:.1e}", policy.residual),
                format!("{:.1}", 100.0 * policy.busy_share),
            ];
            row.extend(policy.energy_j.filter(|_| measured).map(|joules| format!("{joules:.1}")));
            row
        });
        let columns = header.len();
        format!("{block}\n{}\n", table(header, rows, 1..columns))
    }
}

/// The largest residual; NaN is larger than all numbers.
pub(super) fn largest(residuals: impl Iterator<Item = f64>) -> f64 {
    residuals.fold(
        0.0,
        |largest: f64, residual| if largest.total_cmp(&residual.abs()).is_lt() { residual.abs() } else { largest },
    )
}

#[cfg(test)]
mod tests {
    use super::super::problem::tests::problem;
    use super::super::report::tests::measured;
    use super::*;

    #[test]
    fn policies_stand_side_by_side() {
        let mut runs = Runs::new(3);
        for (slow, quick) in [(2.0, 1.0), (4.0, 1.5), (2.5, 1.25)] {
            runs.note(0, "tree-eager", "tree-eager", measured(slow, 1e-16));
            runs.note(1, "mine.kdl", "mine", measured(quick, 2e-16));
        }
        runs.workers_bound = 2;
        let report = runs.report(problem());
        assert_eq!(report.residual, 2e-16);
        insta::assert_snapshot!(report.comparison(), @r"
        cholesky  order 4096, 16 × 16 tiles of 256, seed 42
        workers   2, each bound to a hardware thread
        tasks     816
        runs      3 with each policy, in turn
        residual  2.0e-16 (ok, at most 1.4e-11)

        POLICY      BEST (S)  MEDIAN (S)  WORST (S)  GFLOP/S  RATIO  RESIDUAL  BUSY (%)
        tree-eager    2.0000      2.5000     4.0000      9.2  1.000   1.0e-16      62.5
        mine.kdl      1.0000      1.2500     1.5000     18.4  0.500   2.0e-16      62.5
        ");
    }

    #[test]
    fn one_wrong_run_makes_the_policy_wrong() {
        for wrong in [1e-3, f64::NAN, -f64::NAN, f64::INFINITY] {
            let mut runs = Runs::new(2);
            runs.note(0, "a", "a", measured(1.0, wrong));
            runs.note(0, "a", "a", measured(1.0, 1e-16));
            let report = runs.report(problem());
            assert!(report.comparison().contains("TOO LARGE"), "{}", report.comparison());
            assert!(report.problem.check(report.residual, || None).is_err());
        }
    }
}

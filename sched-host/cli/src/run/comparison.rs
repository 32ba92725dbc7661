//! Several runs on the same matrix, beside each other.

use super::progress::Progress;
use super::report::{Measured, Problem, block, tell_faults, write};
use crate::table::table;
use sched_runtime::Runtime;
use sched_text::median;
use serde::Serialize;
use std::io::Write;

/// Runs with several policies, or several runs with one. The fields are the keys of the JSON.
#[derive(Serialize)]
pub(super) struct Comparison {
    #[serde(flatten)]
    pub(super) problem: Problem,
    /// Of the workers, those bound to a hardware thread.
    workers_bound: usize,
    tasks: u64,
    /// Runs with each policy.
    repeat: usize,
    /// In the order of the command line.
    policies: Vec<Contender>,
}

/// A policy, and its runs.
#[derive(Serialize)]
struct Contender {
    policy: String,
    /// As it was named on the command line.
    given: String,
    best_s: f64,
    median_s: f64,
    worst_s: f64,
    /// Of the median.
    gflops: f64,
    /// Median joules of its runs, if they were measured.
    #[serde(skip_serializing_if = "Option::is_none")]
    energy_j: Option<f64>,
    /// Its median by that of the first policy.
    ratio: f64,
    /// The largest of all runs.
    residual: f64,
    /// How much of the time a worker was busy, from 0 to 1: the mean over all workers and runs.
    busy_share: f64,
    /// In the order in which they ran.
    runs: Vec<Measured>,
}

/// What has been measured so far.
pub(super) struct Runs {
    repeat: usize,
    workers_bound: usize,
    /// The policy, how it was named, and what came of it.
    of_policies: Vec<(String, String, Vec<Measured>)>,
}

impl Runs {
    /// For so many runs with each policy.
    pub(super) fn new(repeat: usize) -> Runs {
        Runs { repeat, workers_bound: 0, of_policies: Vec::new() }
    }

    /// Adds a run with the policy in `place`, from 0, of those that were `given`; the first run of each comes in that order.
    pub(super) fn add(&mut self, place: usize, given: &str, runtime: &Runtime, measured: Measured) {
        self.workers_bound = runtime.bound_workers();
        self.note(place, given, runtime.policy(), measured);
    }

    fn note(&mut self, place: usize, given: &str, policy: &str, measured: Measured) {
        if place == self.of_policies.len() {
            self.of_policies.push((policy.to_owned(), given.to_owned(), Vec::new()));
        }
        self.of_policies[place].2.push(measured);
    }

    /// The figures. There is at least one run with each policy.
    pub(super) fn compare(self, problem: Problem) -> Comparison {
        let mut first = None;
        let contenders = self.of_policies.into_iter().map(|(policy, given, runs)| {
            let times = || runs.iter().map(|run| run.makespan_s);
            let median_s = median(&mut times().collect::<Vec<_>>());
            Contender {
                policy,
                given,
                best_s: times().fold(f64::INFINITY, f64::min),
                median_s,
                worst_s: times().fold(0.0, f64::max),
                // The same work in every run.
                gflops: runs[0].gflops * runs[0].makespan_s / median_s,
                energy_j: runs
                    .iter()
                    .map(|run| run.energy.map(|energy| energy.energy_j))
                    .collect::<Option<Vec<f64>>>()
                    .map(|mut joules| median(&mut joules)),
                ratio: median_s / *first.get_or_insert(median_s),
                residual: largest(runs.iter().map(|run| run.residual)),
                busy_share: runs.iter().map(Measured::busy_share).sum::<f64>() / runs.len() as f64,
                runs,
            }
        });
        let policies: Vec<Contender> = contenders.collect();
        let tasks = policies[0].runs[0].tasks;
        Comparison { problem, workers_bound: self.workers_bound, tasks, repeat: self.repeat, policies }
    }
}

impl Comparison {
    /// The largest residual of all runs, or one that is no number.
    pub(super) fn residual(&self) -> f64 {
        largest(self.policies.iter().map(|policy| policy.residual))
    }

    /// Writes the comparison to `out`, and then, for people, what components did wrong to stderr.
    ///
    /// # Errors
    /// When `out` cannot be written.
    pub(super) fn write(&self, json: bool, progress: &Progress, out: &mut dyn Write) -> miette::Result<()> {
        write(json, self, &self.text(), progress, out)?;
        if !json {
            for run in self.policies.iter().flat_map(|policy| &policy.runs) {
                tell_faults(&run.faults, progress);
            }
        }
        Ok(())
    }

    /// The comparison for people.
    fn text(&self) -> String {
        let Comparison { problem, workers_bound, tasks, repeat, policies } = self;
        let runs = match policies.len() {
            1 => format!("{repeat}"),
            _ => format!("{repeat} with each policy, in turn"),
        };
        let block = block(&[
            problem.line(),
            problem.workers_line(*workers_bound),
            ("tasks", tasks.to_string()),
            ("runs", runs),
            problem.residual_line(self.residual()),
        ]);
        let rows = policies.iter().map(|policy| {
            let seconds = |time: f64| format!("{time:.4}");
            [
                policy.given.clone(),
                seconds(policy.best_s),
                seconds(policy.median_s),
                seconds(policy.worst_s),
                format!("{:.1}", policy.gflops),
                format!("{:.3}", policy.ratio),
                format!("{:.1e}", policy.residual),
                format!("{:.1}", 100.0 * policy.busy_share),
            ]
        });
        let header = ["POLICY", "BEST (S)", "MEDIAN (S)", "WORST (S)", "GFLOP/S", "RATIO", "RESIDUAL", "BUSY (%)"];
        let joules: Option<Vec<f64>> = policies.iter().map(|policy| policy.energy_j).collect();
        let table = match joules {
            Some(joules) => {
                let joules = joules.iter().map(|joules| format!("{joules:.1}"));
                let rows = rows.zip(joules).map(|(row, joules)| with_last(row, joules));
                table(with_last(header, "ENERGY (J)"), rows, 1..=header.len())
            }
            None => table(header, rows, 1..header.len()),
        };
        format!("{block}\n{table}\n")
    }
}

/// A row with one more column.
fn with_last<T>([a, b, c, d, e, f, g, h]: [T; 8], last: T) -> [T; 9] {
    [a, b, c, d, e, f, g, h, last]
}

/// The largest of residuals, none of which is negative; one that is no number is larger than all others.
fn largest(residuals: impl Iterator<Item = f64>) -> f64 {
    residuals.fold(
        0.0,
        |largest: f64, residual| if largest.total_cmp(&residual.abs()).is_lt() { residual.abs() } else { largest },
    )
}

#[cfg(test)]
mod tests {
    use super::super::report::tests::{measured, problem};
    use super::*;

    #[test]
    fn policies_stand_side_by_side() {
        let mut runs = Runs::new(3);
        for (slow, quick) in [(2.0, 1.0), (4.0, 1.5), (2.5, 1.25)] {
            runs.note(0, "tree-eager", "tree-eager", measured(slow, 1e-16));
            runs.note(1, "mine.kdl", "mine", measured(quick, 2e-16));
        }
        runs.workers_bound = 2;
        let comparison = runs.compare(problem());
        assert_eq!(comparison.residual(), 2e-16);
        insta::assert_snapshot!(comparison.text(), @r"
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
            let comparison = runs.compare(problem());
            assert!(comparison.text().contains("TOO LARGE"), "{}", comparison.text());
            assert!(comparison.problem.check(comparison.residual(), || None).is_err());
        }
    }
}

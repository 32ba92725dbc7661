//! Each policy with several seeds: medians, spreads, and which policies lose most.

use super::Args;
use crate::json;
use crate::progress::Progress;
use crate::simulate::case::{Case, Chance, Recording, Simulated, Wish};
use crate::simulate::report::Failed;
use crate::simulate::settings::Settings;
use crate::table::table;
use miette::IntoDiagnostic;
use sched_sim::Noise;
use sched_text::{count, median};
use serde::Serialize;
use std::fmt::Write as _;
use std::io::Write;

/// Loss over the run without noise from which a policy is called fragile, if it also exceeds that of half of the
/// policies by half.
const FRAGILE: f64 = 0.02;

/// The comparison. Fields are JSON keys.
#[derive(Serialize)]
struct Seeds {
    workload: String,
    platform: String,
    tasks: usize,
    #[serde(flatten)]
    settings: Settings,
    seeds: Vec<u64>,
    policies: Vec<Row>,
    failed: Vec<Failed>,
}

/// One policy.
#[derive(Serialize)]
struct Row {
    policy: String,
    makespans_s: Vec<f64>,
    median_s: f64,
    /// Longest minus shortest, as a share of the median.
    spread: f64,
    /// Median of the makespans with the same seeds if kernels take what schedulers expect; `null` without noise.
    undisturbed_s: Option<f64>,
    /// How much longer the median with noise is; `null` without noise, and where the one without is 0.
    loss: Option<f64>,
    fragile: bool,
    /// The makespans behind `undisturbed_s`.
    #[serde(skip)]
    without_noise: Vec<f64>,
}

/// Simulates each policy with `count` seeds, the first of which is that of the case, and writes a table to `out`.
/// Returns whether all completed.
///
/// # Errors
/// If no policy completes, or `out` cannot be written.
pub(super) fn run(
    case: &Case,
    args: &Args,
    policies: &[String],
    count: usize,
    out: &mut dyn Write,
) -> miette::Result<bool> {
    let Chance { seed: first, noise } = &case.chance;
    let seeds: Vec<u64> = (0..count as u64).map(|place| first.wrapping_add(place)).collect();
    let mut rows: Vec<Row> = policies.iter().map(|policy| Row::new(policy)).collect();
    // Other random choices alone change makespans: without noise there are runs with the same seeds.
    let noises: &[Noise] = if noise.is_none() { &[Noise::default()] } else { &[Noise::default(), noise.clone()] };
    let each_noise = seeds.len() * policies.len();
    // Of up to a million seeds, little more than makespans is kept.
    let wanted = (0..noises.len() * each_noise).map(|place| Wish {
        policy: &policies[place % policies.len()],
        chance: Chance { seed: seeds[place % each_noise / policies.len()], noise: noises[place / each_noise].clone() },
        recording: Recording::of_trace(false),
    });
    let jobs = args.jobs.start(wanted.len())?;
    let progress = Progress::new(true, args.format.is_json());
    let (makespans, mut failed) =
        case.simulate_each(wanted, (&jobs, &progress), |Simulated { run, .. }| run.makespan_s)?;
    for (place, makespan) in makespans {
        let row = &mut rows[place % policies.len()];
        let is_undisturbed = noises.len() > 1 && place < each_noise;
        let of = if is_undisturbed { &mut row.without_noise } else { &mut row.makespans_s };
        of.push(makespan);
    }
    failed.sort_by(|one, other| one.policy.cmp(&other.policy));
    failed.dedup_by(|one, other| one.policy == other.policy);
    rows.retain(|row| !row.makespans_s.is_empty());
    judge(&mut rows);
    let (workload, platform) = (case.graph.name.clone(), case.platform.name.clone());
    let tasks = case.graph.tasks.len();
    let report = Seeds { workload, platform, tasks, settings: args.setup.settings(), seeds, policies: rows, failed };
    match args.format.is_json() {
        true => json::write(out, &report)?,
        false => out.write_all(report.text().as_bytes()).into_diagnostic()?,
    }
    Ok(report.failed.is_empty())
}

impl Row {
    fn new(policy: &str) -> Row {
        let policy = policy.to_owned();
        Row {
            policy,
            makespans_s: Vec::new(),
            median_s: 0.0,
            spread: 0.0,
            undisturbed_s: None,
            loss: None,
            fragile: false,
            without_noise: Vec::new(),
        }
    }
}

/// Fills in medians, spreads and losses, sorts by median, and marks fragile policies.
fn judge(rows: &mut [Row]) {
    for row in &mut *rows {
        let mut sorted = row.makespans_s.clone();
        row.median_s = median(&mut sorted);
        row.spread = (sorted[sorted.len() - 1] - sorted[0]) / row.median_s.max(f64::MIN_POSITIVE);
        row.undisturbed_s = (!row.without_noise.is_empty()).then(|| median(&mut row.without_noise));
        row.loss = row.undisturbed_s.filter(|alone| *alone > 0.0).map(|alone| row.median_s / alone - 1.0);
    }
    rows.sort_by(|one, other| one.median_s.total_cmp(&other.median_s));
    let mut losses: Vec<f64> = rows.iter().filter_map(|row| row.loss).collect();
    let usual = median(&mut losses).max(0.0);
    for row in rows {
        row.fragile = row.loss.is_some_and(|loss| loss > FRAGILE && loss > 1.5 * usual);
    }
}

impl Seeds {
    fn text(&self) -> String {
        let mut text = String::new();
        // Writing to a string cannot fail.
        let _ = writeln!(text, "workload  {}, {}", self.workload, count(self.tasks as u64, "task"));
        let _ = writeln!(text, "platform  {}", self.platform);
        if let Some(options) = self.settings.options() {
            let _ = writeln!(text, "options   {options}");
        }
        let (first, count) = (self.seeds.first().copied().unwrap_or(0), self.seeds.len());
        let _ = writeln!(text, "seeds     {count}, from {first}");
        let has_loss = self.policies.iter().any(|row| row.undisturbed_s.is_some());
        let mut header = vec!["POLICY", "MEDIAN (S)", "SHORTEST", "LONGEST", "SPREAD (%)"];
        header.extend(has_loss.then_some(["WITHOUT NOISE", "LOSS (%)"]).into_iter().flatten());
        let of = |row: &Row, pick: fn(f64, f64) -> f64| row.makespans_s.iter().copied().reduce(pick).unwrap_or(0.0);
        let rows = self.policies.iter().map(|row| {
            let mut cells = vec![
                row.policy.clone(),
                format!("{:.6}", row.median_s),
                format!("{:.6}", of(row, f64::min)),
                format!("{:.6}", of(row, f64::max)),
                format!("{:.1}", 100.0 * row.spread),
            ];
            if let Some(alone) = row.undisturbed_s {
                let loss = row.loss.map_or_else(|| "-".to_owned(), percent);
                cells.extend([format!("{alone:.6}"), loss]);
            }
            cells
        });
        let columns = header.len();
        let _ = writeln!(text, "\n{}", table(header, rows, 1..columns));
        let fragile: Vec<&str> =
            self.policies.iter().filter(|row| row.fragile).map(|row| row.policy.as_str()).collect();
        if !fragile.is_empty() {
            let _ = writeln!(text, "\nfragile (more loss than most by far): {}", fragile.join(", "));
        }
        for Failed { policy, why } in &self.failed {
            let _ = writeln!(text, "{policy} did not complete: {why}");
        }
        text
    }
}

/// A difference in percent with its sign, which one that is rounded to zero has not.
fn percent(share: f64) -> String {
    match format!("{:+.1}", 100.0 * share) {
        zero if zero[1..] == *"0.0" => "0.0".to_owned(),
        percent => percent,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(policy: &str, alone: f64, makespans: &[f64]) -> Row {
        Row { makespans_s: makespans.to_vec(), without_noise: vec![alone], ..Row::new(policy) }
    }

    #[test]
    fn a_policy_that_loses_far_more_than_most_is_fragile() {
        let mut rows =
            [row("a", 1.0, &[1.3, 1.2, 1.25]), row("b", 1.1, &[1.12, 1.11, 1.13]), row("c", 1.2, &[1.22, 1.21, 1.23])];
        judge(&mut rows);
        let seen: Vec<(&str, bool)> = rows.iter().map(|row| (row.policy.as_str(), row.fragile)).collect();
        assert_eq!(seen, [("b", false), ("c", false), ("a", true)]);
        assert!((rows[2].spread - 0.08).abs() < 1e-9 && (rows[0].median_s - 1.12).abs() < 1e-9);
    }

    #[test]
    fn random_choices_are_no_loss_by_noise() {
        let spread = [1.4, 1.0, 1.3];
        let mut rows = [Row { without_noise: vec![1.0, 1.3, 1.4], ..row("a", 1.0, &spread) }];
        judge(&mut rows);
        assert_eq!((rows[0].undisturbed_s, rows[0].loss, rows[0].fragile), (Some(1.3), Some(0.0), false));
    }

    #[test]
    fn a_loss_of_nothing_has_no_sign() {
        assert_eq!([-0.0004, 0.0004, 0.0, -0.0006, 0.281].map(percent), ["0.0", "0.0", "0.0", "-0.1", "+28.1"]);
    }

    #[test]
    fn of_nothing_nothing_is_lost() {
        let mut rows = [row("a", 0.0, &[0.0, 0.0])];
        judge(&mut rows);
        assert_eq!(rows[0].loss, None);
    }
}

//! What policies lose where kernels take other times than they expect.

use super::machines::{self, Machine};
use super::workloads::{self, Workload};
use super::{ONE, each_case, mean};
use sched_host::sim::Known;
use sched_test_support::reference_folder;
use sched_tests::loss::{Loss, SPREAD};
use sched_tests::stock;
use std::sync::Arc;

/// The policy that places each task when it is ready.
const OTHER: &str = "tree-dmda";

/// Number of seeds, whose median counts; and that for large graphs.
const SEEDS: u64 = 7;
const SEEDS_OF_LARGE: u64 = 3;

/// Tiles of large factorisations, if the environment does not say how many (`SCHED_QUALITY_TILES=20`).
const LARGE: usize = 16;

/// How much more than [`OTHER`] the judged policy may lose, in the mean of all cases: its makespans are shorter by far
/// more than that, also with deviations.
const MORE: f64 = 0.01;

/// A case: its machine, what [`ONE`] and [`OTHER`] lose, and what [`ONE`] would that knows what each kernel takes. That
/// is lost by the lengths that the tasks have, and not for want of knowledge.
type Case = (String, [Loss; 3]);

/// What each case loses with this number of seeds, which it prints.
fn losses(machines: &[Machine], of: impl Fn(&Machine) -> Vec<Workload>, seeds: u64) -> Vec<Case> {
    let registry = stock::registry(Vec::new());
    each_case(
        machines,
        of,
        |_| true,
        |machine, workload| {
            let (graph, platform) = (Arc::new(workload.graph.clone()), Arc::new(machine.platform.clone()));
            let losses = [(ONE, Known::Nothing), (OTHER, Known::Nothing), (ONE, Known::Executions)]
                .map(|(policy, known)| Loss::of(&graph, &platform, policy, &registry, known, seeds));
            let shown = losses
                .map(|loss| format!("{:6.1} % ({:.4} {:.4})", 100.0 * loss.share(), loss.undisturbed, loss.median));
            println!("{:22}{:16}{}", machine.name, workload.name, shown.join("  "));
            (machine.name.clone(), losses)
        },
    )
}

/// The standard error of the mean of these values.
fn standard_error(values: &[f64]) -> f64 {
    let mean = mean(values.iter().copied());
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    let count = values.len() as f64;
    (squares / (count - 1.0).max(1.0) / count).sqrt()
}

/// Prints and returns the mean losses of [`ONE`] and [`OTHER`], if there are cases.
fn means<'c>(what: &str, cases: impl Iterator<Item = &'c Case> + Clone) -> [f64; 2] {
    let of = |at: usize| mean(cases.clone().map(|(_, losses)| losses[at].share()));
    let disturbed = mean(cases.clone().map(|(_, [one, other, _])| (one.median / other.median).ln())).exp();
    let more: Vec<f64> = cases.clone().map(|(_, [one, other, _])| one.share() - other.share()).collect();
    let (count, error) = (more.len(), 100.0 * standard_error(&more));
    let [one, other, knowing] = [0, 1, 2].map(of);
    if count > 0 {
        println!(
            "{what:22}{count:4} cases: {ONE} loses {:5.1} %, {OTHER} {:5.1} %, {:.1} ± {error:.1} % more, and {ONE} then \
             takes {disturbed:.3} times as long; if it knew what each kernel takes, it would lose {:5.1} %",
            100.0 * one,
            100.0 * other,
            100.0 * (one - other),
            100.0 * knowing
        );
    }
    [one, other]
}

fn title(seeds: u64) {
    println!(
        "losses of the median of {seeds} seeds at a spread of {SPREAD} (makespans without and with it in seconds): {ONE}, \
         {OTHER}, and {ONE} that knows what each kernel takes"
    );
}

/// Prints the means of each machine.
fn by_machine(machines: &[Machine], cases: &[Case]) {
    for machine in machines {
        means(&machine.name, cases.iter().filter(|(name, _)| *name == machine.name));
    }
}

fn check([one, other]: [f64; 2]) {
    assert!(one <= other + MORE, "{ONE} loses {one}, {OTHER} {other}");
}

#[test]
#[ignore = "takes minutes: cargo test --release -p sched-tests --test schedule_quality -- --ignored --nocapture"]
fn the_table_of_losses() {
    let Some(data) = reference_folder() else { return };
    title(SEEDS);
    let (known, unseen) = (machines::all(&data), machines::unseen(&data));
    let of_known = losses(&known, |machine| workloads::all(&data, machine, &[4, 8, 12]), SEEDS);
    let of_unseen = losses(&unseen, |machine| workloads::unseen(&data, machine, &[5, 6, 10]), SEEDS);
    by_machine(&known, &of_known);
    by_machine(&unseen, &of_unseen);
    means("known", of_known.iter());
    means("unseen", of_unseen.iter());
    check(means("all", of_known.iter().chain(&of_unseen)));
}

#[test]
#[ignore = "takes minutes: cargo test --release -p sched-tests --test schedule_quality -- --ignored --nocapture"]
fn the_table_of_losses_of_large_factorisations() {
    let Some(data) = reference_folder() else { return };
    title(SEEDS_OF_LARGE);
    let machines = machines::all(&data);
    let tiles = match std::env::var("SCHED_QUALITY_TILES") {
        Ok(tiles) => tiles.parse().unwrap_or_else(|_| panic!("SCHED_QUALITY_TILES is no number of tiles: {tiles}")),
        Err(_) => LARGE,
    };
    let factorisations = |machine: &Machine| {
        let mut all = workloads::all(&data, machine, &[tiles]);
        all.retain(|workload| workload.name.ends_with(&format!(" {tiles}")));
        all
    };
    let cases = losses(&machines, factorisations, SEEDS_OF_LARGE);
    by_machine(&machines, &cases);
    check(means("all", cases.iter()));
}

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

/// A case.
struct Case {
    machine: String,
    /// What [`ONE`] and [`OTHER`] lose.
    losses: [Loss; 2],
    /// What they would lose that knew what each kernel takes: by the lengths that the tasks have, and not for want of
    /// knowledge.
    knowing: [Loss; 2],
}

/// What each case loses with this number of seeds, which it prints.
fn losses(machines: &[Machine], of: impl Fn(&Machine) -> Vec<Workload>, seeds: u64) -> Vec<Case> {
    let registry = stock::registry(Vec::new());
    each_case(
        machines,
        of,
        |_| true,
        |machine, workload| {
            let (graph, platform) = (Arc::new(workload.graph.clone()), Arc::new(machine.platform.clone()));
            let losses =
                |known| [ONE, OTHER].map(|policy| Loss::of(&graph, &platform, policy, &registry, known, seeds));
            let [losses, knowing] = [Known::Nothing, Known::Executions].map(losses);
            let shown = [losses[0], losses[1], knowing[0], knowing[1]]
                .map(|loss| format!("{:6.1} % ({:.4} {:.4})", 100.0 * loss.share(), loss.undisturbed, loss.median));
            println!("{:22}{:16}{}", machine.name, workload.name, shown.join("  "));
            Case { machine: machine.name.clone(), losses, knowing }
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
    let mean_of = |of: &dyn Fn(&Case) -> f64| mean(cases.clone().map(of));
    let disturbed = mean_of(&|case| (case.losses[0].median / case.losses[1].median).ln()).exp();
    let more: Vec<f64> = cases.clone().map(|case| case.losses[0].share() - case.losses[1].share()).collect();
    let found = [0, 1].map(|at| mean_of(&|case: &Case| case.losses[at].share()));
    let unknown = |at: usize| mean_of(&|case| (case.losses[at].median / case.knowing[at].median).ln()).exp_m1();
    let percent = |share: f64| 100.0 * share;
    if !more.is_empty() {
        println!(
            "{what:22}{:4} cases: {ONE} loses {:5.1} %, {OTHER} {:5.1} %, {:.1} ± {:.1} % more, and {ONE} then takes \
             {disturbed:.3} times as long; for want of knowledge {:5.1} and {:5.1} %",
            more.len(),
            percent(found[0]),
            percent(found[1]),
            percent(found[0] - found[1]),
            percent(standard_error(&more)),
            percent(unknown(0)),
            percent(unknown(1)),
        );
    }
    found
}

fn title(seeds: u64) {
    println!(
        "losses of the median of {seeds} seeds at a spread of {SPREAD} (makespans without and with it in seconds): {ONE}, \
         {OTHER}, and both where they know what each kernel takes"
    );
}

/// Prints the means of each machine.
fn by_machine(machines: &[Machine], cases: &[Case]) {
    for machine in machines {
        means(&machine.name, cases.iter().filter(|case| case.machine == machine.name));
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

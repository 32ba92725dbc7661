//! What policies lose where kernels take other times than they expect.

use super::machines::{self, Machine};
use super::workloads::{self, Workload};
use super::{ONE, each_case, mean};
use sched_test_support::reference_folder;
use sched_tests::loss::{Loss, SPREAD};
use sched_tests::stock;
use std::sync::Arc;

/// The policy that places each task when it is ready.
const OTHER: &str = "tree-dmda";

/// Number of seeds, whose median counts; and that for large graphs.
const SEEDS: u64 = 7;
const SEEDS_OF_LARGE: u64 = 3;

/// Tiles of large factorisations.
const LARGE: usize = 16;

/// How much more than [`OTHER`] the judged policy may lose, in the mean of all cases: its makespans are shorter by far
/// more than that, also with deviations.
const MORE: f64 = 0.01;

/// A case: its machine, and what [`ONE`] and [`OTHER`] lose.
type Case = (String, [Loss; 2]);

/// What each case loses with this number of seeds, which it prints.
fn losses(machines: &[Machine], of: impl Fn(&Machine) -> Vec<Workload>, seeds: u64) -> Vec<Case> {
    let registry = stock::registry(Vec::new());
    each_case(
        machines,
        of,
        |_| true,
        |machine, workload| {
            let (graph, platform) = (Arc::new(workload.graph.clone()), Arc::new(machine.platform.clone()));
            let losses = [ONE, OTHER].map(|policy| Loss::of(&graph, &platform, policy, &registry, seeds));
            let shown = losses
                .map(|loss| format!("{:6.1} % ({:.4} {:.4})", 100.0 * loss.share(), loss.undisturbed, loss.median));
            println!("{:22}{:16}{}  {}", machine.name, workload.name, shown[0], shown[1]);
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

/// Prints and returns the mean losses, if there are cases.
fn means<'c>(what: &str, cases: impl Iterator<Item = &'c Case> + Clone) -> [f64; 2] {
    let of = |at: usize| mean(cases.clone().map(|(_, losses)| losses[at].share()));
    let disturbed = mean(cases.clone().map(|(_, [one, other])| (one.median / other.median).ln())).exp();
    let more: Vec<f64> = cases.clone().map(|(_, [one, other])| one.share() - other.share()).collect();
    let (found, count, error) = ([of(0), of(1)], more.len(), 100.0 * standard_error(&more));
    let [one, other] = found.map(|loss| 100.0 * loss);
    if count > 0 {
        println!(
            "{what:22}{count:4} cases: {ONE} loses {one:5.1} %, {OTHER} {other:5.1} %, {:.1} ± {error:.1} % more, and \
             {ONE} then takes {disturbed:.3} times as long",
            one - other
        );
    }
    found
}

fn title(seeds: u64) {
    println!(
        "losses of the median of {seeds} seeds at a spread of {SPREAD} (makespans without and with it in seconds)"
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
    let factorisations = |machine: &Machine| {
        let mut all = workloads::all(&data, machine, &[LARGE]);
        all.retain(|workload| workload.name.ends_with(&format!(" {LARGE}")));
        all
    };
    let cases = losses(&machines, factorisations, SEEDS_OF_LARGE);
    by_machine(&machines, &cases);
    check(means("all", cases.iter()));
}

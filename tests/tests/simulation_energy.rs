//! Simulations on machines with power figures.

use sched_host::graph::{Task, TaskGraph};
use sched_host::sim::{Platform, SimOutcome, Simulation};
use sched_tests::{program, stock};
use std::time::Duration;

/// A core that is frugal, and a device that is four times as fast.
const MACHINE: &str = r#"
    memory "ram"
    workers "cpu" arch="cpu" watts="10 W" idle-watts="1 W"
    workers "gpu" arch="cuda" watts="100 W" idle-watts="5 W"
    kernel "work" { on "cpu" time="4 ms"; on "gpu" time="1 ms"; }
    kernel "hot" { on "cpu" time="4 ms" watts="500 W"; on "gpu" time="8 ms"; }
"#;

fn simulate(machine: &str, kind: &str, tree: &str) -> SimOutcome {
    let platform = Platform::parse("test.kdl", &format!("platform \"test\" {{ {machine} }}")).expect("it is sound");
    let mut graph = TaskGraph::new("one");
    let kind = graph.add_kind(kind);
    graph.add_task(Task::new(kind));
    let simulation = Simulation::new(graph, platform).registry(stock::registry(Vec::new()));
    simulation.policy_value(stock::policy(tree)).run().expect("it runs to the end")
}

/// Tasks go to a worker or a combined one, by their end and their energy.
fn mct(gamma: &str) -> String {
    format!(
        r#"perfmodel-select {{
            perfmodel {{ mct gamma={gamma} {{ each "worker" {{ fifo {{ use "leaf" }} }}; each "combined-worker" {{ fifo {{ combined-worker }} }} }} }}
            calibrator {{ eager {{ each "worker" {{ fifo {{ use "leaf" }} }} }} }}
            no-perfmodel {{ eager {{ each "worker" {{ fifo {{ use "leaf" }} }} }} }}
        }}
        shared "leaf" each="worker" {{ worker }}"#
    )
}

fn ms(count: u64) -> Duration {
    Duration::from_millis(count)
}

/// The time of a schedule, and its energy in thousandths of a joule.
fn shown(outcome: &SimOutcome) -> (Duration, u64) {
    (outcome.makespan, (outcome.energy.expect("it is known") * 1e3).round() as u64)
}

#[test]
fn a_joule_has_its_price() {
    // 3 ms more against 60 mJ less: worth it from 50 ms a joule on. The idle worker draws 1 W or 5 W meanwhile.
    assert_eq!(shown(&simulate(MACHINE, "work", &mct("0.0"))), (ms(1), 100 + 1));
    assert_eq!(shown(&simulate(MACHINE, "work", &mct("49000.0"))), (ms(1), 100 + 1));
    assert_eq!(shown(&simulate(MACHINE, "work", &mct("51000.0"))), (ms(4), 40 + 20));
}

#[test]
fn what_is_said_of_a_kernel_counts_more_than_what_is_said_of_workers() {
    assert_eq!(shown(&simulate(MACHINE, "hot", &mct("0.0"))), (ms(4), 2000 + 20));
    assert_eq!(shown(&simulate(MACHINE, "hot", &mct("10000.0"))), (ms(8), 800 + 8));
}

#[test]
fn every_member_of_a_team_draws() {
    let machine = r#"
        memory "ram"
        workers "cpu" count=2 watts="10 W"
        kernel "work" { on "cpu" time="4 ms" parallel=1.0; }
    "#;
    assert_eq!(shown(&simulate(machine, "work", &mct("0.0"))), (ms(2), 40));
    let half = machine.replace("1.0", "0.5");
    // 1 ms less, for 20 mJ.
    assert_eq!(shown(&simulate(&half, "work", &mct("49000.0"))), (ms(3), 60));
    assert_eq!(shown(&simulate(&half, "work", &mct("51000.0"))), (ms(4), 40));
}

#[test]
fn a_schedule_has_an_energy_where_all_that_executed_something_is_known() {
    let device = MACHINE.replace(r#"watts="100 W""#, "");
    assert_eq!(simulate(&device, "work", &mct("0.0")).energy, None);
    let core = MACHINE.replace(r#"watts="10 W""#, "");
    assert_eq!(shown(&simulate(&core, "work", &mct("0.0"))), (ms(1), 100 + 1));
}

#[test]
fn the_program_reports_the_energy_of_a_schedule() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("mine.kdl");
    let machine = r#"platform "mine" {
        memory "ram"
        workers "cpu" count=2 watts="10 W"
        kernel "*" { on "cpu" time="1 ms"; }
    }"#;
    std::fs::write(&path, machine).expect("the file can be written");
    let words = ["simulate", "cholesky", "--tiles", "4", "--platform", path.to_str().expect("a name that is text")];
    let ran = program::sched(&words);
    assert!(ran.out.contains("\nenergy    0.200 J\n"), "{ran:?}");
    let energy = |words: &[&str]| -> serde_json::Value {
        let ran = program::sched(&[words, &["--json"]].concat());
        let shown: serde_json::Value = serde_json::from_str(&ran.out).expect("it is JSON");
        shown["runs"][0]["energy_j"].clone()
    };
    assert!((energy(&words).as_f64().expect("it is known") - 0.2).abs() < 1e-9);
    assert_eq!(energy(&["simulate", "cholesky", "--tiles", "4", "--platform", "numa-2x12"]), serde_json::Value::Null);

    let page = folder.path().join("page.html");
    let compare = |platform: &str| {
        let page = page.to_str().expect("a name that is text");
        let policies = ["--policies", "tree-eager,tree-heft", "--html", page];
        let ran =
            program::sched(&[&["compare", "cholesky", "--tiles", "4", "--platform", platform][..], &policies].concat());
        let rows =
            ran.out.lines().filter(|line| ["POLICY", "tree-eager", "HEFT"].iter().any(|head| line.starts_with(head)));
        rows.map(|row| row.split_whitespace().last().map(str::to_owned).unwrap_or_default()).collect::<Vec<_>>()
    };
    let mut compared = compare(words[5]);
    compared.sort();
    assert_eq!(compared, ["(J)", "-", "0.200"]);
    assert_eq!(compare("numa-2x12")[0], "(GB)");
}

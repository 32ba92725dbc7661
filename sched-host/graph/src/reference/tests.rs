//! Published schedules, and schedules of random graphs.

use super::*;
use crate::{TaskGraph, TaskId, generate, read};
use proptest::prelude::*;
use sched_core::Arch;
use sched_test_support::reference_data;
use std::path::Path;

fn cpus(count: u32) -> Vec<Processor> {
    (0..count).map(|place| Processor { arch: Arch::CPU, place }).collect()
}

fn edge((from, to, bytes): (u32, u32, f64)) -> (TaskId, TaskId, f64) {
    (TaskId(from), TaskId(to), bytes)
}

/// The ten tasks of figure 2 of Topcuoglu, Hariri and Wu (2002), numbered from 0.
fn ten_tasks() -> Problem {
    const LENGTHS: [[f64; 3]; 10] = [
        [14.0, 16.0, 9.0],
        [13.0, 19.0, 18.0],
        [11.0, 13.0, 19.0],
        [13.0, 8.0, 17.0],
        [12.0, 13.0, 10.0],
        [13.0, 16.0, 9.0],
        [7.0, 15.0, 11.0],
        [5.0, 11.0, 14.0],
        [18.0, 12.0, 20.0],
        [21.0, 7.0, 16.0],
    ];
    const EDGES: [(u32, u32, f64); 15] = [
        (0, 1, 18.0),
        (0, 2, 12.0),
        (0, 3, 9.0),
        (0, 4, 11.0),
        (0, 5, 14.0),
        (1, 7, 19.0),
        (1, 8, 16.0),
        (2, 6, 23.0),
        (3, 7, 27.0),
        (3, 8, 23.0),
        (4, 8, 13.0),
        (5, 7, 15.0),
        (6, 9, 17.0),
        (7, 9, 11.0),
        (8, 9, 13.0),
    ];
    Problem::new(cpus(3), LENGTHS.concat(), &EDGES.map(edge), Links { latency: 0.0, per_byte: 1.0 })
}

/// Processor, start and end of each task, processors and tasks from 1 as in the paper.
fn shown(schedule: &Schedule) -> String {
    let lines = schedule
        .placements()
        .iter()
        .enumerate()
        .map(|(task, at)| format!("{:>2}: P{} {:>2}-{}", task + 1, at.processor.0 + 1, at.start, at.end));
    lines.collect::<Vec<_>>().join("\n")
}

#[test]
fn ranks_are_the_published_ones() {
    let problem = ten_tasks();
    let shown = |ranks: Vec<f64>| ranks.iter().map(|rank| format!("{rank:.3}")).collect::<Vec<_>>().join(" ");
    insta::assert_snapshot!(shown(problem.upward_ranks()), @"108.000 77.000 80.000 80.000 69.000 63.333 42.667 35.667 44.333 14.667");
    insta::assert_snapshot!(shown(problem.downward_ranks()), @"0.000 31.000 25.000 22.000 24.000 27.000 62.333 66.667 63.667 93.333");
}

/// The ranks of tasks 3 and 4 are the same: either may come first. With the lower number first the schedule is that of
/// the paper.
#[test]
fn heft_gives_the_published_schedule() {
    let problem = ten_tasks();
    let schedule = heft(&problem);
    assert_eq!(schedule.makespan(), 80.0);
    assert_eq!(schedule.check(&problem), Ok(()));
    insta::assert_snapshot!(shown(&schedule), @"
     1: P3  0-9
     2: P1 27-40
     3: P3  9-28
     4: P2 18-26
     5: P3 28-38
     6: P2 26-42
     7: P3 38-49
     8: P1 57-62
     9: P2 56-68
    10: P2 73-80
    ");
}

#[test]
fn many_tasks_that_wait_for_nothing_are_planned_soon() {
    let graph = generate::independent(60_000, std::time::Duration::from_millis(1));
    let problem = Problem::of(&graph, &cpus(10), Links::FREE, |_, _| Some(0.001)).expect("cores run all of them");
    for schedule in [heft(&problem), cpop(&problem), peft(&problem)] {
        assert_eq!(schedule.check(&problem), Ok(()));
        assert!((6.0..6.01).contains(&schedule.makespan()), "{}", schedule.makespan());
    }
}

#[test]
fn cpop_gives_the_published_schedule() {
    let problem = ten_tasks();
    let schedule = cpop(&problem);
    assert_eq!(schedule.makespan(), 86.0);
    assert_eq!(schedule.check(&problem), Ok(()));
    insta::assert_snapshot!(shown(&schedule), @"
     1: P2  0-16
     2: P2 16-35
     3: P1 28-39
     4: P3 25-42
     5: P2 35-48
     6: P3 42-51
     7: P1 39-46
     8: P3 54-68
     9: P2 65-77
    10: P2 79-86
    ");
}

#[test]
fn peft_does_nearly_as_well() {
    let problem = ten_tasks();
    let schedule = peft(&problem);
    assert_eq!(schedule.check(&problem), Ok(()));
    assert_eq!(schedule.makespan(), 85.0);
}

/// A workflow of the reference data in its neutral form, with the makespans that HEFT had under three orders of equals.
fn neutral(path: &Path) -> (Problem, Vec<f64>) {
    let text = std::fs::read_to_string(path).expect("it can be read");
    let file: serde_json::Value = serde_json::from_str(&text).expect("it is JSON");
    let list = |name: &str| file[name].as_array().unwrap_or_else(|| panic!("`{name}` is a list")).clone();
    let number = |value: &serde_json::Value| value.as_f64().expect("it is a number");
    let tasks = list("tasks");
    let place = |name: &serde_json::Value| tasks.iter().position(|task| task["name"] == *name).expect("it is a task");
    let edges: Vec<(usize, usize, f64)> =
        list("deps").iter().map(|edge| (place(&edge["src"]), place(&edge["dst"]), number(&edge["size"]))).collect();
    // Some are written down before what they wait for.
    let mut order: Vec<usize> = Vec::new();
    while order.len() < tasks.len() {
        let next = (0..tasks.len())
            .find(|task| !order.contains(task) && edges.iter().all(|(from, to, _)| to != task || order.contains(from)));
        order.push(next.expect("there is no cycle"));
    }
    let renumbered = |task: usize| TaskId(order.iter().position(|old| *old == task).expect("all are in it") as u32);
    let edges: Vec<_> = edges.iter().map(|(from, to, size)| (renumbered(*from), renumbered(*to), *size)).collect();
    let speeds: Vec<f64> = list("processors").iter().map(|processor| number(&processor["speed"])).collect();
    let seconds = order.iter().flat_map(|task| speeds.iter().map(|speed| number(&tasks[*task]["cost"]) / speed));
    let links = Links { latency: 0.0, per_byte: 1.0 / number(&file["link_speed_between_any_two"]) };
    let heft = file["makespans"]["Heft"].as_array().expect("HEFT is among them").iter().map(number).collect();
    let problem = Problem::new(cpus(speeds.len() as u32), seconds.collect(), &edges, links);
    // So the makespans were found.
    (problem.mean_over(MeanOver::All), heft)
}

#[test]
fn heft_has_the_known_makespan_on_fifteen_workflows() {
    let Some(folder) = reference_data("graphs") else { return };
    let mut seen = 0;
    for entry in std::fs::read_dir(folder.join("wfcommons")).expect("it is a folder") {
        let path = entry.expect("it can be listed").path();
        if !path.to_string_lossy().contains("--") {
            continue;
        }
        let (problem, known) = neutral(&path);
        for (name, schedule) in [("CPOP", cpop(&problem)), ("PEFT", peft(&problem))] {
            assert_eq!(schedule.check(&problem), Ok(()), "{name} on {}", path.display());
        }
        // Many tasks of a workflow have the same length and rank, and which of them comes first matters.
        let makespans = [Ties::Lower, Ties::Higher].map(|ties| {
            let schedule = heft_with(&problem, ties);
            assert_eq!(schedule.check(&problem), Ok(()), "HEFT on {}", path.display());
            schedule.makespan()
        });
        let hit = makespans.iter().any(|makespan| known.iter().any(|known| (makespan - known).abs() < 1e-8 * known));
        assert!(hit, "{}: {makespans:?}, and {known:?} are known", path.display());
        seen += 1;
    }
    assert_eq!(seen, 15);
}

#[test]
fn a_list_by_upward_rank_is_within_two_percent_of_the_optimum_on_average() {
    let Some(folder) = reference_data("graphs") else { return };
    let known = std::fs::read_to_string(folder.join("stg/optimal.csv")).expect("the optima are beside the graphs");
    let mut ratios = std::collections::BTreeMap::<u32, Vec<f64>>::new();
    for line in known.lines().skip(1) {
        let fields: Vec<&str> = line.split(',').collect();
        let [file, processors, optimum] = fields[..] else { panic!("a row is file, processors, optimum: {line}") };
        let (processors, optimum): (u32, f64) = (processors.parse().unwrap(), optimum.parse().unwrap());
        let graph = read(&folder.join("stg").join(file)).expect("it is of the Standard Task Graph Set");
        let problem = of_lengths(&graph, processors);
        let schedule = list_schedule(&problem, &problem.upward_ranks());
        assert_eq!(schedule.check(&problem), Ok(()), "{file}");
        let makespan = schedule.makespan() * 1e3;
        assert!(makespan > optimum - 1e-6, "{file} on {processors}: {makespan} is less than the optimum {optimum}");
        ratios.entry(processors).or_default().push(makespan / optimum);
    }
    assert_eq!(ratios.keys().copied().collect::<Vec<_>>(), [2, 4, 8, 16]);
    for (processors, ratios) in ratios {
        let mean = ratios.iter().sum::<f64>() / ratios.len() as f64;
        assert!(mean <= 1.02, "{processors} processors: {mean}");
    }
}

/// With the lengths that the graph itself says, in one place.
fn of_lengths(graph: &TaskGraph, processors: u32) -> Problem {
    let processors: Vec<Processor> = (0..processors).map(|_| Processor { arch: Arch::CPU, place: 0 }).collect();
    Problem::of(graph, &processors, Links::FREE, |task, arch| Some(task.lengths.get(arch)?.as_secs_f64()))
        .expect("the graph says all lengths on CPUs")
}

#[test]
fn a_task_that_can_run_nowhere_is_named() {
    let graph = generate::cholesky(2, 8);
    let error = Problem::of(&graph, &cpus(2), Links::FREE, |task, _| (task.kind.0 != 1).then_some(1.0));
    insta::assert_snapshot!(error.expect_err("nothing runs trsm"), @"task 1 (trsm(1,0)) can run on none of the processors");
}

#[test]
fn tasks_go_only_where_they_can_run() {
    let processors = [(Arch::CPU, 0), (Arch::CUDA, 1)].map(|(arch, place)| Processor { arch, place });
    let graph = generate::cholesky(5, 8);
    // Factors on the CPU only, updates on the device only.
    let seconds = |task: &crate::Task, arch| match (task.kind.0, arch) {
        (0, Arch::CPU) | (3, Arch::CUDA) => Some(1.0),
        (1 | 2, _) => Some(2.0),
        _ => None,
    };
    let links = Links { latency: 0.1, per_byte: 1e-3 };
    let problem = Problem::of(&graph, &processors, links, seconds).expect("each kind runs somewhere");
    for schedule in [heft(&problem), cpop(&problem), peft(&problem), list_schedule(&problem, &problem.upward_ranks())] {
        assert_eq!(schedule.check(&problem), Ok(()));
    }
}

#[test]
fn what_is_wrong_with_a_plan_is_told() {
    let problem = ten_tasks();
    let mut placements = heft(&problem).placements().to_vec();
    placements[9].start = 60.0;
    placements[9].end = 67.0;
    placements[3].processor = ProcessorId(0);
    let shown = Schedule::new(placements).check(&problem).expect_err("the plan is bad");
    let shown: Vec<String> = shown.iter().map(Violation::to_string).collect();
    insta::assert_snapshot!(shown.join("\n"), @"
    task 3 takes 13 s on processor 0, and is planned from 18 s to 26 s
    task 9 begins at 60 s, and what task 6 hands to it comes at 66 s
    task 9 begins at 60 s, and what task 7 hands to it comes at 73 s
    task 9 begins at 60 s, and what task 8 hands to it comes at 68 s
    processor 1 runs tasks 8 and 9 at once
    ");
}

proptest! {
    #[test]
    fn every_schedule_of_a_random_graph_can_be_carried_out(
        lengths in prop::collection::vec(prop::collection::vec(0u32..20, 3), 1..25),
        edges in prop::collection::vec((0u32..25, 0u32..25, 0u32..30), 0..60),
    ) {
        let tasks = lengths.len();
        let seconds: Vec<f64> = lengths.concat().into_iter().map(f64::from).collect();
        let edges: Vec<(TaskId, TaskId, f64)> = edges
            .into_iter()
            .map(|(a, b, bytes)| edge((a.min(b), a.max(b), f64::from(bytes))))
            .filter(|(from, to, _)| from < to && to.index() < tasks)
            .collect();
        let problem = Problem::new(cpus(3), seconds, &edges, Links { latency: 1.0, per_byte: 0.5 });
        for schedule in [heft(&problem), cpop(&problem), peft(&problem), list_schedule(&problem, &problem.upward_ranks())] {
            prop_assert_eq!(schedule.check(&problem), Ok(()));
            prop_assert!(schedule.makespan() >= problem.critical_path() - 1e-9);
        }
    }
}

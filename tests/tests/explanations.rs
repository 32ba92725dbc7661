//! Explanations: what happens to a task, and what the host knew of each child; and what a makespan consists of.

use proptest::prelude::*;
use sched_core::TaskId;
use sched_host::graph::generate::{Layered, cholesky, independent, layered, lu};
use sched_host::graph::{DataId, TaskGraph};
use sched_host::runtime::ReadWrite;
use sched_host::sim::platform::find;
use sched_host::sim::{Platform, SimRecorder, Simulation};
use sched_host::trace::{Behind, Chain, Digest, Explained, Explainer, Link, Moment, Observer, Parts, Step, Trace};
use sched_host::tree::TreeObserver;
use sched_tests::{program, stock};
use std::sync::Arc;
use std::time::Duration;

/// Decides by completion times alone, in front of short queues.
const BY_ENDS: &str = r#"
    prio {
        perfmodel-select {
            perfmodel {
                mct beta=0.0 {
                    each "worker" {
                        prio ntasks-threshold=1 { use "leaf" }
                    }
                }
            }
            calibrator {
                eager-calibration {
                    each "worker" {
                        prio ntasks-threshold=1 { use "leaf" }
                    }
                }
            }
            no-perfmodel {
                eager {
                    each "worker" {
                        prio ntasks-threshold=1 { use "leaf" }
                    }
                }
            }
        }
    }
    shared "leaf" each="worker" {
        worker
    }
"#;

fn all_tasks(graph: &TaskGraph) -> Vec<(TaskId, Vec<DataId>)> {
    let data = |task: &sched_host::graph::Task| task.accesses.iter().map(|access| access.data).collect();
    graph.ids().zip(&graph.tasks).map(|(id, task)| (id.submitted(), data(task))).collect()
}

/// What happens to all tasks of a graph, and the digest.
fn explain(graph: &Arc<TaskGraph>, platform: &Arc<Platform>, policy: &str) -> (Explained, u64) {
    struct Both(Explainer, Digest);
    impl Observer for Both {
        fn event(&mut self, nanos: u64, event: &sched_host::trace::Event) {
            self.0.event(nanos, event);
            self.1.event(nanos, event);
        }
    }
    let mut both = Both(Explainer::new(all_tasks(graph)), Digest::default());
    let simulation = simulation(graph, platform, policy).tree_observer(both.0.tree_observer(None));
    simulation.observe(&mut both).expect("it ends");
    (both.0.finish(), both.1.value())
}

fn simulation(graph: &Arc<TaskGraph>, platform: &Arc<Platform>, policy: &str) -> Simulation {
    let simulation = Simulation::new(Arc::clone(graph), Arc::clone(platform)).registry(stock::registry(Vec::new()));
    if policy.contains('{') { simulation.policy_value(stock::policy(policy)) } else { simulation.policy(policy) }
}

fn cpu9_gpu3() -> Arc<Platform> {
    Arc::new(find("cpu9-gpu3").expect("it is shipped"))
}

#[test]
fn a_component_that_decides_by_ends_chooses_the_child_that_is_shown_to_end_first() {
    let (graph, platform) = (Arc::new(cholesky(9, 960)), cpu9_gpu3());
    let (explained, _) = explain(&graph, &platform, BY_ENDS);
    let mut choices = 0;
    for task in &explained.tasks {
        // A refused decision stands.
        let mut is_decided = false;
        for Moment { nanos, what } in &task.steps {
            if let Step::Chosen(choice) = what
                && !std::mem::replace(&mut is_decided, true)
            {
                let ends: Vec<Option<u64>> = choice.children.iter().map(|child| child.end(*nanos)).collect();
                let first = ends.iter().flatten().min().expect("the platform has a length for each kind");
                assert_eq!(ends[choice.chosen], Some(*first), "{} at {nanos}", task.task);
                choices += 1;
            }
        }
    }
    assert_eq!(choices, graph.tasks.len(), "one decision for each task");
}

#[test]
fn a_task_is_executed_below_the_child_that_was_chosen_last() {
    let platform = cpu9_gpu3();
    for policy in [BY_ENDS, "tree-heft", "tree-dmdar", "tree-random", "tree-eager-prefetching", "tree-plan"] {
        let graph = Arc::new(lu(6, 960));
        for task in explain(&graph, &platform, policy).0.tasks {
            let at = |wanted: fn(&Step) -> bool| task.steps.iter().position(|step| wanted(&step.what));
            let started = at(|step| matches!(step, Step::Started(_))).expect("it starts");
            assert!(at(|step| matches!(step, Step::Submitted)) < at(|step| matches!(step, Step::Ready { .. })));
            assert!(at(|step| matches!(step, Step::Pulled(_))) < Some(started));
            assert!(matches!(task.steps.last(), Some(Moment { what: Step::Ended(_), .. })), "{policy}");
            let chosen = task.steps[..started].iter().rev().find_map(|step| match &step.what {
                Step::Chosen(choice) => Some(&choice.children[choice.chosen].workers),
                _ => None,
            });
            let workers = chosen.expect("some component chooses");
            assert!(workers.iter().any(|of| task.steps[started].what == Step::Started(*of)), "{policy}: {}", task.task);
        }
    }
}

#[test]
fn a_task_is_ready_after_the_last_that_it_waited_for() {
    let (graph, platform) = (Arc::new(cholesky(5, 960)), cpu9_gpu3());
    let dependencies = graph.dependencies();
    for task in explain(&graph, &platform, "tree-eager").0.tasks {
        let ready = task.steps.iter().find_map(|step| match step.what {
            Step::Ready { after } => Some(after),
            _ => None,
        });
        let id = sched_host::graph::TaskId::of_submitted(task.task).expect("it is of the graph");
        let waits_for: Vec<TaskId> = dependencies.predecessors(id).iter().map(|task| task.submitted()).collect();
        match ready.expect("it becomes ready") {
            Some((after, _)) => assert!(waits_for.contains(&after), "{}", task.task),
            None => assert_eq!(waits_for, [], "{}", task.task),
        }
    }
}

#[test]
fn data_arrives_between_ready_and_start_and_where_the_task_runs() {
    let (graph, platform) = (Arc::new(cholesky(6, 960)), cpu9_gpu3());
    let mut arrivals = 0;
    for task in explain(&graph, &platform, "tree-heft").0.tasks {
        let id = sched_host::graph::TaskId::of_submitted(task.task).expect("it is of the graph");
        let mut is_ready = false;
        for Moment { nanos, what } in &task.steps {
            match what {
                Step::Ready { .. } => is_ready = true,
                Step::Arrived { transfer, began } => {
                    assert!(is_ready && began <= nanos);
                    assert!(graph.tasks[id.index()].accesses.iter().any(|access| access.data == transfer.data));
                    arrivals += 1;
                }
                Step::Started(_) => is_ready = false,
                _ => {}
            }
        }
    }
    assert!(arrivals > 0);
}

#[test]
fn explaining_changes_no_schedule() {
    let (graph, platform) = (Arc::new(lu(7, 960)), cpu9_gpu3());
    for policy in ["tree-heft", "tree-ws", "tree-random", "tree-heteroprio", "tree-plan"] {
        let mut digest = Digest::default();
        simulation(&graph, &platform, policy).observe(&mut digest).expect("it ends");
        assert_eq!(explain(&graph, &platform, policy).1, digest.value(), "{policy}");
    }
}

#[test]
fn another_observer_of_the_tree_hears_the_same_as_without_explanations() {
    let (graph, platform) = (Arc::new(cholesky(5, 960)), cpu9_gpu3());
    let record = |explainer: Option<&Explainer>| {
        let mut recorder = SimRecorder::new(Arc::clone(&graph), Arc::clone(&platform));
        let own = recorder.tree_observer();
        let observer: Arc<dyn TreeObserver> = explainer.map_or(Arc::clone(&own), |it| it.tree_observer(Some(own)));
        simulation(&graph, &platform, "tree-heft").tree_observer(observer).observe(&mut recorder).expect("it ends");
        recorder.finish("")
    };
    let explainer = Explainer::new(all_tasks(&graph));
    let (alone, beside) = (record(None), record(Some(&explainer)));
    assert_eq!(alone.nodes, beside.nodes);
    assert_eq!(alone.events, beside.events);
    assert_eq!(explainer.finish().nodes, alone.nodes);
}

/// What `sched simulate` says of tasks of a factorisation, with policy [`BY_ENDS`].
fn said(arguments: &[&str]) -> program::Ran {
    let of_case = ["simulate", "cholesky", "--tiles", "5", "--platform", "cpu9-gpu3", "--policy", "-"];
    program::sched_reading(&format!("policy \"by-ends\" {{{BY_ENDS}}}"), &[&of_case[..], arguments].concat())
}

#[test]
fn the_program_explains_a_task_by_name_or_number() {
    const EXPLAINED: &str = "
gemm(4,3,0) (task 14)
  0.000014 s  submitted
  0.016968 s  ready: trsm(4,0) has ended on gpu 9
  0.016968 s  stored by prio
  0.016968 s  mct pushes it to worker 9/prio, which refuses 13 times until 0.016969 s: full
                 CHILD                            WORKERS  FREE (S)  TRANSFER (S)  LENGTH (S)   END (S)
                 worker 0/prio … worker 8/prio    0-8      0.016968      0.003867    0.058982  0.079817
              →  worker 9/prio                    9        0.024062      0.001933    0.002048  0.026110
                 worker 10/prio … worker 11/prio  10-11    0.024800      0.003875    0.002048  0.026848
  0.016970 s  mct pushes it to worker 9/prio again
  0.016970 s  stored by prio/perfmodel-select/perfmodel/mct/worker 9/prio
  0.018140 s  pulled by gpu 9
  0.018554 s  A(4,3) (7 MiB) has arrived in gpu0; it left ram at 0.017841 s
  0.020187 s  starts on gpu 9
  0.022235 s  ends on gpu 9, after 0.002048 s; 0.002048 s were expected
";
    for task in ["gemm(4,3,0)", "14", "task 14"] {
        let ran = said(&["--explain", task]);
        assert!(ran.out.ends_with(EXPLAINED), "{}", ran.out);
    }
    let twice = said(&["--explain", "gemm(4,3,0)", "--explain", "14"]);
    assert_eq!(twice.out.matches("gemm(4,3,0)").count(), 1, "{}", twice.out);
}

#[test]
fn scripts_get_every_step() {
    let report = said(&["--explain", "gemm(4,3,0)", "--json"]).json();
    let explained = &report["runs"][0]["explained"][0];
    assert_eq!((&explained["task"], &explained["kind"]), (&14.into(), &"gemm".into()));
    let steps = explained["steps"].as_array().expect("it is a list");
    let of = |kind: &str| steps.iter().filter(|step| step["step"] == kind).collect::<Vec<_>>();
    assert_eq!(of("chosen").len(), 14);
    assert_eq!(of("chosen")[0]["children"].as_array().map(Vec::len), Some(12));
    assert_eq!(of("refused")[0]["why"], "full");
    assert_eq!(of("ended")[0]["workers"], serde_json::json!([9]));
    assert!(said(&["--json"]).json()["runs"][0]["explained"].as_array().is_some_and(Vec::is_empty));
}

#[test]
fn the_members_of_a_team_have_one_line() {
    let arguments = ["simulate", "cholesky", "--tiles", "8", "--platform", "numa-2x12", "--parallel", "0.95"];
    let of_team = ["--policy", "tree-pheft", "--explain", "potrf(2)"];
    let ran = program::sched(&[&arguments[..], &of_team].concat());
    let lines: Vec<&str> = ran.out.lines().filter(|line| line.contains("starts on")).collect();
    assert!(matches!(lines[..], [line] if line.ends_with("starts on cpu 0-23")), "{}", ran.out);
}

#[test]
fn tasks_that_there_are_not_are_reported_at_once() {
    let ran = said(&["--explain", "potrf(9)", "--explain", "3", "--explain", "99"]);
    assert_eq!(ran.code, 1);
    assert_eq!(
        ran.err,
        "  × there is no task `potrf(9)` and no task 99
  help: cholesky of 5 × 5 tiles of 960 has 35 tasks, numbered from 1
        did you mean `potrf(0)`?

"
    );
}

fn trace_of(graph: &Arc<TaskGraph>, platform: &Arc<Platform>, policy: &str) -> Trace {
    let mut recorder = SimRecorder::new(Arc::clone(graph), Arc::clone(platform));
    simulation(graph, platform, policy).observe(&mut recorder).expect("it ends");
    recorder.finish(policy)
}

#[test]
fn the_links_of_a_chain_follow_each_other() {
    let platform = cpu9_gpu3();
    for graph in [cholesky(7, 960), lu(6, 960)].map(Arc::new) {
        let dependencies = graph.dependencies();
        for policy in [BY_ENDS, "tree-eager", "tree-ws", "tree-dmdar", "tree-random", "tree-plan"] {
            let trace = trace_of(&graph, &platform, policy);
            let chain = Chain::of(&trace).expect("tasks have run");
            assert_eq!(chain.total(), trace.end, "{policy}");
            adds_up(&chain);
            for pair in chain.links.windows(2) {
                let (before, link) = (&pair[0], &pair[1]);
                let id = |link: &Link| sched_host::graph::TaskId::of_submitted(link.task).expect("it is of the graph");
                match link.behind {
                    Behind::Task => assert!(dependencies.predecessors(id(link)).contains(&id(before)), "{pair:?}"),
                    Behind::Worker => assert_eq!(link.worker, before.worker, "{pair:?}"),
                    Behind::Program => panic!("{policy}: only the first may be: {pair:?}"),
                }
            }
            assert_eq!(chain.links[0].behind, Behind::Program);
        }
    }
}

/// The links leave out no time, and the parts are their sums.
fn adds_up(chain: &Chain) {
    for pair in chain.links.windows(2) {
        assert_eq!(pair[1].begin - pair[1].data - pair[1].unassigned, pair[0].end, "{pair:?}");
    }
    let sum = |of: fn(&Link) -> u64| chain.links.iter().map(of).sum::<u64>();
    let Parts { before, needed, in_the_way, data, unassigned } = chain.parts();
    assert_eq!((data, unassigned), (sum(|link| link.data), sum(|link| link.unassigned)));
    assert_eq!(needed + in_the_way, sum(|link| link.end - link.begin));
    assert_eq!(before + needed + in_the_way + data + unassigned, chain.total());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn chains_of_random_graphs_leave_out_no_time(
        (layers, width, seed) in (1..8_usize, 1..30_usize, any::<u64>()),
        density in 0.0..0.5,
        (platform, policy) in (0..2_usize, 0..4_usize),
    ) {
        let (length, bytes) = (Duration::from_micros(200), 1 << 20);
        let graph = Arc::new(layered(Layered { layers, width, density, length, bytes, seed }));
        let platform = Arc::new(find(["cpu9-gpu3", "numa-2x12"][platform]).expect("it is shipped"));
        let trace = trace_of(&graph, &platform, ["tree-eager", "tree-ws", "tree-heft", "tree-random"][policy]);
        adds_up(&Chain::of(&trace).expect("tasks have run"));
    }
}

#[test]
fn a_chain_tells_a_busy_worker_from_a_long_chain_of_dependencies() {
    let ms = Duration::from_millis;
    let parts = |graph: TaskGraph, workers: usize| {
        let chain = Chain::of(&trace_of(&Arc::new(graph), &Arc::new(Platform::flat(workers, ms(2))), "tree-eager"));
        chain.expect("tasks have run").parts()
    };
    let nothing = Parts::default();
    assert_eq!(
        parts(independent(5, ms(2)), 1),
        Parts { needed: 2_000_000, in_the_way: 8_000_000, ..nothing },
        "one worker has all"
    );
    let mut chain = independent(5, ms(2));
    (1..5).for_each(|task| chain.tasks[task as usize].after.push(sched_host::graph::TaskId(task - 1)));
    assert_eq!(parts(chain, 3), Parts { needed: 10_000_000, ..nothing }, "each needs the one before");
}

#[test]
fn a_real_run_has_a_chain_too() {
    let runtime = stock::builder(stock::EAGER, 2, Vec::new()).trace(10_000).build().expect("the runtime starts");
    let codelet = runtime.codelet::<(ReadWrite<u64>,), ()>("add").cpu("add", |_, (x,)| *x += 1).build();
    let data = [(); 3].map(|()| runtime.register(0));
    for _ in 0..20 {
        data.iter().for_each(|x| _ = runtime.task(&codelet, (x,)).submit().expect("the task is sound"));
    }
    runtime.wait_all().expect("no kernel fails");
    let trace = runtime.take_trace().expect("it is recorded");
    let chain = Chain::of(&trace).expect("tasks have run");
    adds_up(&chain);
    assert_eq!(chain.total(), trace.end);
}

#[test]
fn the_program_explains_a_makespan() {
    let ran = program::sched_reading(
        &format!("policy \"by-ends\" {{{BY_ENDS}}}"),
        &["simulate", "cholesky", "--tiles", "3", "--platform", "cpu9-gpu3", "--policy", "-", "--explain", "makespan"],
    );
    assert!(ran.out.ends_with(MAKESPAN), "{}", ran.out);
    let links = said(&["--explain", "makespan", "--json"]).json();
    let links = &links["runs"][0]["makespan_explained"]["chain"];
    assert_eq!(links[0]["name"], "potrf(0)");
    let on_a_cluster =
        program::sched(&["simulate", "cholesky", "--platform", "cluster:2x4", "--explain", "makespan", "--tiles", "3"]);
    assert_eq!(on_a_cluster.code, 1);
    assert!(on_a_cluster.says("makespans are explained on one machine"), "{}", on_a_cluster.err);
}

const MAKESPAN: &str = "
makespan 0.038506 s, a chain of 7 tasks, each as soon as the one before had ended
  0.032075 s   83.3 %  tasks that the next one waited for, and the last one
  0.001173 s    3.0 %  tasks that the worker of the next one was busy with
  0.005253 s   13.6 %  a worker waits for data
  0.000005 s    0.0 %  a task is ready, its later worker is free, and they have not met
  0.000000 s    0.0 %  before the first task

BEGIN (S)  TASK       WORKER  LENGTH (S)  BEHIND   DATA (S)  UNASSIGNED (S)
 0.000846  potrf(0)   gpu 9     0.007814  program  0.000846        0.000000
 0.010330  trsm(2,0)  gpu 10    0.003730  task     0.001669        0.000001
 0.015256  syrk(2,0)  gpu 10    0.001173  task     0.001194        0.000002
 0.016430  potrf(1)   gpu 10    0.007814  worker   0.000000        0.000000
 0.024923  trsm(2,1)  gpu 9     0.003730  task     0.000679        0.000000
 0.029507  syrk(2,1)  gpu 9     0.001173  task     0.000853        0.000001
 0.030692  potrf(2)   gpu 9     0.007814  task     0.000011        0.000001
";

#[test]
fn the_program_explains_the_makespan_of_a_real_run() {
    let run = ["run", "cholesky", "--tiles", "4", "--tile-size", "32", "--explain", "makespan"];
    let text = program::sched(&run);
    // The chain may begin behind the program, with any task; it ends with the one that needs all others.
    assert!(text.out.contains("\n\nmakespan ") && text.out.contains("  potrf(3)  "), "{}", text.out);
    let report = program::sched(&[&run[..], &["--json"]].concat()).json();
    let explained = &report["runs"][0]["makespan_explained"];
    let of = |part: &str| explained[part].as_f64().expect("it is a number");
    let parts: f64 = ["before_s", "needed_s", "in_the_way_s", "data_s", "unassigned_s"].map(of).iter().sum();
    let chain = explained["chain"].as_array().expect("it is a list");
    let end = chain.last().and_then(|link| link["end_s"].as_f64()).expect("tasks have run");
    assert!((parts - end).abs() < 1e-9, "{explained}");
    let several = program::sched(&[&run[..], &["--repeat", "2"]].concat());
    assert_eq!(several.code, 1);
    assert!(several.err.starts_with("  × --explain is for one run, and there would be 2"), "{}", several.err);
}

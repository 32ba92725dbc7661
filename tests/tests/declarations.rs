//! Declarations of third-party components are compared with what happens: a false one is a fault with node, method and
//! count, in runs, simulations and their JSON, and harms no task.

use sched_core::{Build, BuildError, Child, Component, Family, Info, Mutex, Node, Offer, Params, Push, Storage, Task};
use sched_host::graph::generate::cholesky;
use sched_host::sim::Simulation;
use sched_host::sim::platform::find;
use sched_host::tree::attendance::Method;
use sched_host::tree::{Declaration, Fault, FaultKind};
use sched_tests::bad::Bad;
use sched_tests::chains::submit_chains;
use sched_tests::liars::*;
use sched_tests::plugin_folder::fixture_folder;
use sched_tests::program::sched;
use sched_tests::stock;
use std::time::Duration;

const TASKS: usize = 60;

fn liars() -> Vec<Offer> {
    vec![
        Offer::of::<Bad>(),
        Offer::of::<Liar<NO_STORAGE>>(),
        Offer::of::<Liar<UNBOUNDED>>(),
        Offer::of::<Liar<NEVER_REFUSES>>(),
        Offer::of::<Liar<FORWARDS_PUSH>>(),
        Offer::of::<Liar<FORWARDS_PULL>>(),
        Offer::of::<Liar<EMPTY_UNTIL_PUSHED>>(),
        Offer::of::<Liar<END_IS_NOTED>>(),
        Offer::of::<Liar<PULLED_ONLY>>(),
        Offer::of::<Liar<WAKES_WORKERS>>(),
        Offer::of::<Liar<PUSHES_ON_PULL>>(),
    ]
}

/// Tasks are pulled through it.
const PULLED: &str = "fifo { LIAR { eager { EACH { worker } } } }";
/// Tasks are pushed to it when there is room below, and pulled through it.
const BETWEEN: &str = "fifo { LIAR { eager { EACH { fifo ntasks-threshold=2 { worker } } } } }";
/// Tasks are pushed to it.
const LEAF_BELOW: &str = "eager { EACH { LIAR { fifo { worker } } } }";
const ROOT: &str = "LIAR { eager { EACH { worker } } }";
const MCT_ABOVE: &str = "fifo { perfmodel-select {
    perfmodel { mct { use \"way\" } }
    calibrator { eager-calibration { use \"way\" } }
    no-perfmodel { eager { use \"way\" } }
} }
shared \"way\" each=\"worker\" { fifo ntasks-threshold=2 { LIAR { worker } } }";

/// Who lies, where it stands, and what is said of it.
fn cases() -> Vec<(&'static str, &'static str, Declaration, Method)> {
    use Declaration::*;
    let name = |offer: &sched_core::Info| offer.name();
    vec![
        (name(&Liar::<NO_STORAGE>::INFO), BETWEEN, StoresNothing, Method::PushTask),
        (name(&Liar::<UNBOUNDED>::INFO), LEAF_BELOW, StoresAnyNumber, Method::PushTask),
        (name(&Liar::<NEVER_REFUSES>::INFO), LEAF_BELOW, NeverRefuses, Method::PushTask),
        (name(&Liar::<FORWARDS_PUSH>::INFO), LEAF_BELOW, ForwardsPush, Method::PushTask),
        (name(&Liar::<FORWARDS_PULL>::INFO), ROOT, ForwardsPull, Method::PullTask),
        (name(&Liar::<EMPTY_UNTIL_PUSHED>::INFO), PULLED, EmptyUntilPushed, Method::PullTask),
        (name(&Liar::<END_IS_NOTED>::INFO), MCT_ABOVE, EndIsNoted, Method::EstimatedEnd),
        (name(&Liar::<PULLED_ONLY>::INFO), ROOT, PulledOnly, Method::PushTask),
        (
            name(&Liar::<WAKES_WORKERS>::INFO),
            "bad { eager { EACH { LIAR { worker } } } }",
            WakesWorkers,
            Method::PushTask,
        ),
        (
            name(&Liar::<PUSHES_ON_PULL>::INFO),
            "fifo { eager { EACH { LIAR { worker } } } }",
            PushesOnPull,
            Method::PullTask,
        ),
    ]
}

fn tree(liar: &str, tree: &str) -> String {
    tree.replace("LIAR", liar).replace("EACH", "each \"worker\"")
}

fn assert_named(faults: &[Fault], liar: &str, expected: Declaration, by: Method, tree: &str) {
    let lies = faults.iter().filter_map(|fault| match fault.kind {
        FaultKind::Declaration { declaration, method, count } => Some((fault, declaration, method, count)),
        _ => None,
    });
    let mut seen = 0;
    for (fault, declaration, method, count) in lies {
        assert_eq!((&*fault.component, declaration), (liar, expected), "{tree}: {fault}");
        seen += if method == by { count } else { 0 };
    }
    assert!(seen > 0, "{tree}: {faults:?}");
}

#[test]
fn lies_in_a_run_are_faults_and_do_no_harm() {
    for (liar, place, declaration, method) in cases() {
        // Tasks of a run have no expected lengths here, so nobody asks for ends.
        if declaration == Declaration::EndIsNoted {
            continue;
        }
        let tree = tree(liar, place);
        for workers in [1, 3] {
            let runtime =
                stock::builder(&tree, workers, liars()).build().unwrap_or_else(|why| panic!("{tree}: {why:?}"));
            let runs = submit_chains(&runtime, TASKS);
            runtime.wait_all().unwrap_or_else(|end| panic!("{tree}: {end}"));
            runs.assert_once(&tree);
            assert_named(&runtime.faults(), liar, declaration, method, &tree);
        }
    }
}

/// Keeps tasks until they are pulled, with the default `can_push`.
struct Patient(Mutex<Vec<Task>>);

impl Build for Patient {
    const INFO: Info =
        Info::new("patient", Family::FlowControl, "Waits to be pulled.").storage(Storage::Unbounded).pulled_only();

    fn build(_params: &Params) -> Result<Self, BuildError> {
        Ok(Patient(Mutex::new(Vec::new())))
    }
}

impl Component for Patient {
    fn push_task(&self, node: Node<'_>, task: Task) -> Push {
        self.0.lock().push(task);
        node.children_can_pull();
        Ok(())
    }

    fn pull_task(&self, node: Node<'_>, _to: Child) -> Option<Task> {
        let mut tasks = self.0.lock();
        let found = tasks.iter().rposition(|task| node.requester_can_execute(task))?;
        Some(tasks.remove(found))
    }

    fn drain(&self) -> Vec<Task> {
        std::mem::take(&mut *self.0.lock())
    }
}

#[test]
fn what_is_pulled_only_may_pass_a_request_on() {
    // A worker that has ended a task says that it has room, which arrives at the root.
    let tree = tree("patient", "LIAR { best-implementation { random { EACH { stage { worker } } } } }");
    let platform = find("numa-2x12").expect("it is shipped");
    let simulation = Simulation::new(cholesky(6, 960), platform).policy_value(stock::policy(&tree));
    let outcome = simulation.registry(stock::registry(vec![Offer::of::<Patient>()])).run().expect("it ends");
    assert_eq!((outcome.tasks, outcome.faults), (56, Vec::new()));
}

#[test]
fn lies_in_a_simulation_are_faults_and_do_no_harm() {
    for (liar, place, declaration, method) in cases() {
        let tree = tree(liar, place);
        let platform = find("cpu9-gpu3").expect("it is shipped");
        let simulation = Simulation::new(cholesky(6, 960), platform).registry(stock::registry(liars()));
        let outcome = simulation.policy_value(stock::policy(&tree)).run();
        let outcome = outcome.unwrap_or_else(|error| panic!("{tree}: {error:?}"));
        assert_eq!(outcome.tasks, 56, "{tree}");
        assert_named(&outcome.faults, liar, declaration, method, &tree);
    }
}

#[test]
fn the_program_names_who_lies() {
    let folder = fixture_folder(&["misbehaving"]);
    let file = folder.path().join("policy.kdl");
    let tree = tree("lies-of-pulls", ROOT);
    std::fs::write(&file, format!("policy \"lied-to\" {{ {tree}; }}")).expect("it can be written");
    let [plugins, policy] = [folder.path(), &*file].map(|path| path.to_str().expect("text"));
    let options = ["--plugin-dir", plugins, "--policy", policy, "--tiles", "4", "--tile-size", "24"];
    for command in [&["run", "cholesky", "-w", "2"][..], &["simulate", "cholesky"]] {
        let ran = sched(&[command, &options, &["--json"]].concat()).json();
        let fault = &ran["runs"][0]["faults"][0];
        let said = [&fault["fault"], &fault["declaration"], &fault["method"], &fault["component"], &fault["node"]];
        assert_eq!(said, ["declaration", "forwards-pull", "pull_task", "lies-of-pulls", "lies-of-pulls"], "{ran}");
        assert!(fault["count"].as_u64() > Some(0), "{ran}");
        let ran = sched(&[command, &options].concat());
        let said = "declares `forwards_pull`, but `pull_task` did not give what its parents gave (seen";
        assert!(ran.out.contains(said) || ran.says(said), "{ran:?}");
    }
    // It is sound as a text, and started it is not.
    let check = ["check", policy, "--plugin-dir", plugins, "-w", "2"];
    assert_eq!(sched(&check).code, 0);
    let ran = sched(&[&check[..], &["--run"]].concat());
    let said = "fault: component `lies-of-pulls` of";
    assert!(ran.code == 1 && ran.out.contains("480 tasks on 2 workers: not as declared"), "{ran:?}");
    assert!(ran.out.contains(said) && ran.out.contains("declares `forwards_pull`"), "{ran:?}");
    let ran = sched(&[&check[..], &["--run", "--json"]].concat());
    let json: serde_json::Value = serde_json::from_str(&ran.out).expect("it is JSON");
    let run = &json["files"][0]["policies"][0]["run"];
    assert_eq!((ran.code, &run["faults"][0]["declaration"]), (1, &"forwards-pull".into()), "{json}");
    let ran = sched(&["check", "tree-heft", "tree-ws", "--run", "-w", "2"]);
    let said = ran.out.matches("run: 480 tasks on 2 workers: every component does as it declares").count();
    assert_eq!((ran.code, said), (0, 2), "{ran:?}");
    let elsewhere = sched(&["check", "tree-heft", "--run", "--platform", "cpu9-gpu3"]);
    assert!(elsewhere.code == 2 && elsewhere.says("cannot be used with"), "{elsewhere:?}");
}

/// Who sleeps in a stall, where, and what the report says of it.
const STALLS: [(&str, &str, &str, &str); 3] = [
    (
        "deaf",
        "fifo { BAD { eager { EACH { worker } } } }",
        "fifo/bad",
        "`pull_task` gave nothing and asked nobody above",
    ),
    (
        "hoard",
        "fifo { BAD { eager { EACH { worker } } } }",
        "fifo/bad",
        "`pull_task` gave nothing and asked nobody above",
    ),
    (
        "mute",
        "BAD { eager { EACH { worker } } }",
        "bad",
        "`push_task` kept a task and woke nobody, while workers below slept",
    ),
];

#[test]
fn a_stall_names_the_node_that_sleeps_and_not_the_queue_above() {
    for (what, place, node, why) in STALLS {
        let tree = place.replace("BAD", &format!("bad what=\"{what}\"")).replace("EACH", "each \"worker\"");
        let expected = format!("look at `{node}` first: {why}");
        // In a run, a worker that is still awake finds what nobody is woken for.
        if what != "mute" {
            let runtime = stock::builder(&tree, 2, vec![Offer::of::<Bad>()]).quiet_period(Duration::from_millis(100));
            let runtime = runtime.build().expect("it starts");
            let _runs = submit_chains(&runtime, 3);
            let stall = runtime.wait_all().expect_err("nobody gets the tasks").to_string();
            assert!(stall.contains(&expected), "{what}: {stall}");
            runtime.default_context().swap_policy_value(stock::policy(stock::EAGER)).expect("it fits");
            runtime.wait_all().expect("every task is executed");
        }
        let platform = find("cpu9-gpu3").expect("it is shipped");
        let simulation = Simulation::new(cholesky(4, 960), platform).policy_value(stock::policy(&tree));
        let stall = simulation.registry(stock::registry(vec![Offer::of::<Bad>()])).run().expect_err("nobody gets them");
        assert!(stall.to_string().contains(&expected), "{what}: {stall}");
    }
}

#[test]
fn faults_and_lines_of_the_log_are_marks_in_traces() {
    let plugins = fixture_folder(&["misbehaving"]);
    let folder = tempfile::tempdir().expect("a folder");
    let (policy, trace) = (folder.path().join("policy.kdl"), folder.path().join("trace"));
    let tree = "verbose { eager { each \"worker\" { lies-of-sorting { worker } } } }";
    std::fs::write(&policy, format!("policy \"lied-to\" {{ {tree}; }}")).expect("it can be written");
    let [plugins, policy, trace] = [plugins.path(), &*policy, &*trace].map(|path| path.to_str().expect("text"));
    let options = ["--plugin-dir", plugins, "--policy", policy, "--tiles", "4", "--tile-size", "24"];
    let node = "verbose/eager/worker 0/lies-of-sorting";
    for command in [&["run", "cholesky", "-w", "1"][..], &["simulate", "cholesky"]] {
        let traced = |name: &str| {
            let file = format!("{trace}.{name}");
            let ran = sched(&[command, &options, &["--trace", &file]].concat());
            assert_eq!(ran.code, 0, "{ran:?}");
            std::fs::read_to_string(file).expect("it was written")
        };
        let whole: serde_json::Value = serde_json::from_str(&traced("json")).expect("it is JSON");
        let events = whole["traceEvents"].as_array().expect("a list");
        let track = |event: &&serde_json::Value| event["name"] == "thread_name" && event["args"]["name"] == node;
        let track = events.iter().find(track).unwrap_or_else(|| panic!("the node has a track: {whole}"));
        let marks = |cat: &str| events.iter().filter(|event| event["cat"] == cat).collect::<Vec<_>>();
        let fault = marks("fault").into_iter().find(|mark| mark["tid"] == track["tid"]).expect("it lies");
        let text = fault["args"]["text"].as_str().expect("what the fault is");
        assert!(fault["ph"] == "i" && text.starts_with("declares `pushes_on_pull`, but `pull_task`"), "{fault}");
        let lines = marks("log");
        assert_eq!(lines.len(), 20, "one for each task");
        assert!(lines.iter().all(|line| line["ph"] == "i" && line["args"]["text"].as_str() > Some("")), "{lines:?}");
        let paje = traced("paje");
        let marked = |start: &str, what: &str| {
            paje.lines().filter(|line| line.starts_with("9 ") && line.contains(start) && line.contains(what)).count()
        };
        assert!(marked(" F n", "\"fault: declares `pushes_on_pull`") > 0, "{paje}");
        assert_eq!(marked(" G n", ""), 20, "{paje}");
    }
}

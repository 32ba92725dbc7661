//! The subcommands about policies.

use super::{shown, stock};
use crate::{check, policies, tree};
use clap::Parser;
use insta::assert_snapshot;
use sched_policy::{Catalogue, library};
use sched_tree::plugin::Registry;

#[derive(Parser)]
enum Sched {
    Policies(policies::Args),
    Tree(tree::Args),
    Check(check::Args),
}

/// Words are parted by blanks; an underscore is a blank inside a word.
fn sched(catalogue: &Catalogue, line: &str) -> String {
    let words =
        line.split(' ').map(|word| if word.starts_with('/') { word.to_owned() } else { word.replace('_', " ") });
    sched_args(catalogue, words)
}

fn sched_args(catalogue: &Catalogue, args: impl IntoIterator<Item = String>) -> String {
    let mut out = Vec::new();
    let result = match Sched::try_parse_from(std::iter::once("sched".to_owned()).chain(args)) {
        Ok(Sched::Policies(args)) => policies::run(&args, catalogue, &mut out),
        Ok(Sched::Tree(args)) => tree::run(&args, catalogue, &mut out),
        Ok(Sched::Check(args)) => check::run(&args, &Registry::compiled_in(), &mut out),
        Err(error) => return error.to_string(),
    };
    match result {
        Ok(_) => String::from_utf8(out).expect("it is text"),
        Err(report) => shown(&*report),
    }
}

#[test]
fn policies_lists_what_is_shipped() {
    // How it is broken into lines depends on the terminal.
    let list = sched(&stock(), "policies");
    for shipped in library() {
        let row = |line: &str| line.split_whitespace().next() == Some(shipped.name);
        assert_eq!(list.lines().filter(|line| row(line)).count(), 1, "{} in {list}", shipped.name);
    }
    assert!(list.contains("One queue for all"), "{list}");
    assert!(!list.contains("not usable"), "{list}");
    assert!(list.ends_with("Where none is named, SCHED_POLICY names it, or else it is tree-ws.\n"), "{list}");
}

#[test]
fn policies_says_what_cannot_be_used() {
    let list = sched(&Catalogue::default(), "policies");
    assert!(list.matches("not usable here:").count() >= library().len(), "each of them, and why: {list}");
}

#[test]
fn policies_shows_the_text() {
    let shipped = library().iter().find(|shipped| shipped.name == "tree-eager").expect("it is shipped");
    for name in ["tree-eager", "modular-eager"] {
        assert_eq!(sched(&stock(), &format!("policies --show {name}")), shipped.text);
    }
}

#[test]
fn policies_speaks_json() {
    let list: serde_json::Value = serde_json::from_str(&sched(&stock(), "policies --json")).expect("it is JSON");
    assert_eq!((&list["policies"][0]["name"], &list["policies"][0]["usable"]), (&"tree-eager".into(), &true.into()));
    let defaults = list["policies"].as_array().expect("a list").iter().filter(|policy| policy["default"] == true);
    assert_eq!(defaults.map(|policy| &policy["name"]).collect::<Vec<_>>(), ["tree-ws"]);
    let one = sched(&stock(), "policies --json --show tree-eager");
    let one: serde_json::Value = serde_json::from_str(&one).expect("it is JSON");
    assert!(one["policies"][0]["text"].as_str().is_some_and(|text| text.contains("fifo sorted=#false {")));
}

#[test]
fn policies_writes_simple_schedulers() {
    let simple = |args: &[&str]| {
        let words = ["policies", "--simple"].iter().chain(args);
        sched_args(&stock(), words.map(ToString::to_string))
    };
    assert_snapshot!(simple(&["eager decide-workers fifo-above impl", "--name", "mine"]), @r#"
    // The simple scheduler `eager decide-workers fifo-above impl`.
    policy "mine" {
        fifo sorted=#false {
            eager {
                each "worker" {
                    best-implementation {
                        worker
                    }
                }
            }
        }
    }
    "#);
    let json = simple(&["heft decide-archs perfmodel fifos-below fifo-above", "--json"]);
    let json: serde_json::Value = serde_json::from_str(&json).expect("it is JSON");
    let json = &json["policies"][0];
    assert_eq!((&json["name"], &json["usable"]), (&"simple".into(), &true.into()));
    assert!(json["text"].as_str().is_some_and(|text| text.contains("ntasks-threshold=30")));
    assert_snapshot!(simple(&["eagr decide-workers fifo-above"]), @r#"
      × simple scheduler `eagr decide-workers fifo-above`: 1 error

    Error: V7 policy::component

      × there is no component `eagr`
       ╭─[policy simple (built by a program):4:9]
     3 │     fifo sorted=#false {
     4 │         eagr {
       ·         ──┬─
       ·           ╰── unknown component
     5 │             each "worker" {
       ╰────
      help: did you mean `eager`?
            components come from: flow-control, resource-mapping, special-purpose, worker
            why: a policy is made of the components that plugins offer and that are compiled in
    "#);
    assert_snapshot!(simple(&["eager decide-worker"]), @r"
      × simple scheduler: 1 error

    Error: V7 policy::flags

      × there is no flag `decide-worker` of a simple scheduler
       ╭─[simple scheduler:1:7]
     1 │ eager decide-worker
       ·       ──────┬──────
       ·             ╰── unknown flag
       ╰────
      help: did you mean `decide-workers`?
    ");
    assert!(simple(&["eager decide-workers fifo-above", "--show", "tree-eager"]).contains("cannot be used with"));
    assert!(sched(&stock(), "policies --name mine").contains("--simple"));
}

#[test]
fn tree_draws() {
    assert_snapshot!(sched(&stock(), "tree tree-eager --workers 8"), @r#"
    fifo sorted=#false
    └─ eager
       └─ worker × 8 (workers 0-7)
    "#);
    assert_eq!(sched(&stock(), "tree tree-eager --workers 8 --unfold").lines().count(), 10);
    assert!(sched(&stock(), "tree tree-eager --workers 2 --format dot").starts_with("digraph \"tree-eager\" {"));
}

#[test]
fn tree_draws_for_a_machine_that_is_not_this_one() {
    let file =
        file(r#"policy "nodes" { fifo { eager { each "numa" { fifo { eager { each "worker" { worker } } } } } } }"#);
    let tree = format!("tree {} ", file.path().display());
    assert_snapshot!(sched(&stock(), &format!("{tree}--synthetic node:2_core:2_pu:1")), @r"
    fifo
    └─ eager
       ├─ fifo (numa 0)
       │  └─ eager
       │     ├─ worker (worker 0)
       │     └─ worker (worker 1)
       └─ fifo (numa 1)
          └─ eager
             ├─ worker (worker 2)
             └─ worker (worker 3)
    ");
    let xml = concat!(env!("CARGO_MANIFEST_DIR"), "/../machine/src/topology/testdata/two-memories.xml");
    assert_snapshot!(sched(&stock(), &format!("{tree}--xml {xml} --workers 4")), @r"
    fifo
    └─ eager
       ├─ fifo (numa 0)
       │  └─ eager
       │     ├─ worker (worker 0)
       │     └─ worker (worker 1)
       └─ fifo (numa 2)
          └─ eager
             ├─ worker (worker 2)
             └─ worker (worker 3)
    ");
    let both = sched(&stock(), &format!("{tree}--xml {xml} --synthetic pu:2"));
    assert!(both.contains("cannot be used with"), "{both}");
}

#[test]
fn tree_shows_what_is_wrong() {
    assert_snapshot!(sched(&stock(), "tree tree-eagre"), @r"
      × policy `tree-eagre`: 1 error

    Error: policy::unknown

      × there is no policy `tree-eagre`
      help: did you mean `tree-eager`?
            a policy of your own is given by the path of its file, which ends in `.kdl`
    ");
    assert!(sched(&stock(), "tree tree-eager --workers 0").contains("invalid value '0'"));
}

#[test]
fn help_teaches_by_example() {
    assert!(sched(&stock(), "tree --help").contains("sched tree mine.kdl --workers 64"));
    assert!(sched(&stock(), "policies --help").contains("sched policies --show tree-eager > mine.kdl"));
}

/// A policy file that is there for the time of a test.
fn file(text: &str) -> tempfile::NamedTempFile {
    let file = tempfile::Builder::new().suffix(".kdl").tempfile().expect("there is a place for temporary files");
    std::fs::write(file.path(), text).expect("it can be written");
    file
}

#[test]
fn check_shows_areas_and_pumps_of_what_is_valid() {
    assert_snapshot!(sched(&stock(), "check tree-eager-prefetching --workers 4"), @r#"
    policy tree-eager-prefetching, on 4 workers

    area 1: the application ─▶ fifo
        reservoirs below fifo (unbounded)
        pump down        the application
    area 2: fifo ─▶ fifo × 4
        reservoir above  fifo (unbounded)
        through          eager
        reservoirs below fifo (bounded by ntasks-threshold=2 and exp-len-threshold=1000000000.0) × 4
        pump down        fifo
    area 3 × 4: fifo ─▶ worker
        reservoir above  fifo (bounded by ntasks-threshold=2 and exp-len-threshold=1000000000.0)
        pump down        fifo
        pump up          worker

    fifo sorted=#false
    └─ eager
       └─ fifo ntasks-threshold=2 exp-len-threshold=1000000000.0 ready=#true sorted=#false × 4 (workers 0-3)
          └─ worker × 4

    ok
    "#);
}

#[test]
fn check_shows_areas_of_several_kinds() {
    let file = file(super::HEFT);
    assert_snapshot!(sched(&stock(), &format!("check {} --workers 2", file.path().display())), @r#"
        policy tree-heft, on 2 workers

        area 1: the application ─▶ prio
            reservoirs below prio (unbounded)
            pump down        the application
        area 2: prio ─▶ prio × 2, worker × 2
            reservoir above  prio (unbounded)
            through          perfmodel-select, mct beta=2.0, eager-calibration, eager, best-implementation × 2
            reservoirs below prio (bounded by ntasks-threshold=30) × 2
            pump down        prio
            pump up          worker × 2
        area 3 × 2: prio ─▶ worker
            reservoir above  prio (bounded by ntasks-threshold=30)
            through          best-implementation
            pump down        prio
            pump up          worker

        prio
        └─ perfmodel-select
           ├─ perfmodel: mct beta=2.0
           │  ├─ prio ntasks-threshold=30 (worker 0)
           │  │  └─ best-implementation
           │  │     └─ worker
           │  └─ prio ntasks-threshold=30 (worker 1)
           │     └─ best-implementation
           │        └─ worker
           ├─ calibrator: eager-calibration
           │  ├─ best-implementation (worker 0) ↑ drawn above
           │  └─ best-implementation (worker 1) ↑ drawn above
           └─ no-perfmodel: eager
              ├─ best-implementation (worker 0) ↑ drawn above
              └─ best-implementation (worker 1) ↑ drawn above

        ok
    "#);
}

#[test]
fn check_draws_areas() {
    assert_snapshot!(sched(&stock(), "check tree-eager --workers 2 --format dot"), @r##"
    digraph "tree-eager" {
        node [shape=box, style="rounded,filled", fontname="sans-serif"];
        edge [fontname="sans-serif", fontsize=10];
        subgraph cluster_1 {
            label="area 1"; style="rounded,filled"; color="#f3f3f3"; fontname="sans-serif";
            application [shape=plaintext, style=""];
        }
        subgraph cluster_2 {
            label="area 2"; style="rounded,filled"; color="#eaf2fb"; fontname="sans-serif";
            n0 [label="fifo\nsorted=#false", fillcolor="#cfe2f3", tooltip="fifo"];
            n1 [label="eager", fillcolor="#fff2cc", tooltip="fifo/eager"];
            n2 [label="worker\nworker 0 (cpu)", fillcolor="#f4cccc", tooltip="fifo/eager/worker 0/worker"];
            n3 [label="worker\nworker 1 (cpu)", fillcolor="#f4cccc", tooltip="fifo/eager/worker 1/worker"];
        }
        application -> n0;
        n0 -> n1;
        n1 -> n2;
        n1 -> n3;
    }
    "##);
}

#[test]
fn check_is_for_the_machine_that_is_named() {
    let file = file(r#"policy "one" { fifo { eager { each "package" { worker } } } }"#);
    let check = |machine: &str| sched(&stock(), &format!("check {} {machine}", file.path().display()));
    let fits = check("--synthetic package:3_core:1_pu:1");
    assert!(fits.starts_with("policy one, on 3 workers\n") && fits.ends_with("ok\n"), "{fits}");
    let wide = check("--synthetic package:1_core:4_pu:1");
    assert!(wide.contains("`worker` stands for 4 workers"), "{wide}");
    let bad = check("--synthetic nood:2_core:2");
    assert!(bad.contains("did you mean `node`?"), "{bad}");
    let gone = check("--xml gone.xml");
    assert!(gone.contains("gone.xml"), "{gone}");
}

#[test]
fn check_reports_all_that_is_wrong() {
    let file = file(
        "policy \"one\" {\n    eager { each \"worker\" { worker } }\n}\npolicy \"two\" {\n    fifo { eager { each \"wroker\" { worker } } }\n}",
    );
    let path = file.path().display().to_string();
    let shown = sched(&stock(), &format!("check {path} tree-eagre tree-eager"));
    assert_snapshot!(shown.replace(&path, "mine.kdl"), @r#"
          × mine.kdl, tree-eagre: 3 errors

        Error: V7 policy::level

          × there is no level `wroker` of the machine
           ╭─[mine.kdl:5:25]
         4 │ policy "two" {
         5 │     fifo { eager { each "wroker" { worker } } }
           ·                         ────┬───
           ·                             ╰── unknown level
         6 │ }
           ╰────
          help: did you mean `worker`?

        Error: V1 policy::refusal

          × the root may refuse tasks: no queue above `eager` keeps them for its workers
           ╭─[mine.kdl:2:5]
         1 │ policy "one" {
         2 │     eager { each "worker" { worker } }
           ·     ──┬──                   ───┬──
           ·       │                        ╰── this worker
           ·       ╰── keeps no task, and hands a worker one only when it pulls
         3 │ }
           ╰────
          help: put an unbounded queue at the top: `fifo { eager { … } }`
                why: a task that the root refuses is lost: an unbounded queue must be above all that may refuse

        Error: policy::unknown

          × there is no policy `tree-eagre`
          help: did you mean `tree-eager`?
                a policy of your own is given by the path of its file, which ends in `.kdl`
    "#);
    // One policy of a file may be fine although another is not; what is wrong with the text concerns them all.
    assert!(sched(&stock(), &format!("check {path}#three")).contains("wroker"));
}

#[test]
fn check_reports_what_depends_on_the_machine() {
    let file = file("policy \"one\" {\n    fifo { worker }\n}");
    let path = file.path().display().to_string();
    let shown = |workers: u32| sched(&stock(), &format!("check {path} --workers {workers}"));
    assert!(shown(1).ends_with("ok\n"), "{}", shown(1));
    assert!(shown(2).contains("V4 policy::leaf") && shown(2).contains("`worker` stands for 2 workers"), "{}", shown(2));
}

#[test]
fn check_speaks_json() {
    let file = file("policy \"one\" {\n    fifo ntasks-threshold=1 { worker }\n}");
    let path = file.path().display().to_string();
    let found: serde_json::Value =
        serde_json::from_str(&sched(&stock(), &format!("check {path} tree-eager --json --workers 1")))
            .expect("it is JSON");
    assert_eq!(found["valid"], false);
    let found = &found["files"];
    let finding = &found[0]["problems"][0];
    assert_eq!((&found[0]["valid"], &finding["id"], &finding["line"]), (&false.into(), &"V1".into(), &2.into()));
    assert_eq!((&finding["column"], &finding["file"]), (&10.into(), &path.into()));
    let areas = &found[1]["policies"][0]["areas"];
    assert_eq!((&found[1]["valid"], &areas[0]["pump_down"]), (&true.into(), &"application".into()));
    assert_eq!(areas[1]["reservoir_above"]["bounded"], false);
    assert_eq!(areas[1]["pumps_up"][0], "fifo/eager/worker 0/worker");
}

#[test]
fn check_names_the_policies_of_a_file() {
    let file = file(r#"policy "one" { fifo { worker } }"#);
    let found = sched(&stock(), &format!("check {}#two", file.path().display()));
    assert!(found.contains("holds no policy `two`"), "{found}");
}

#[test]
fn a_parameter_that_is_set_makes_no_name_of_a_policy_odd() {
    let file = file(
        r#"policy "one" { fifo { eager { each "worker" { worker } } } }
           policy "a,b" { fifo { eager { each "worker" { worker } } } }"#,
    );
    let said = sched(&stock(), &format!("check {} --set fifo.sorted=#false --workers 1", file.path().display()));
    assert_eq!(said.matches("cannot name").count(), 1, "{said}");
    assert!(said.contains("cannot name the policy `a,b`") && said.contains("policy one+fifo.sorted=#false"), "{said}");
}

#[test]
fn check_reports_what_is_wrong_beside_a_parameter_that_cannot_be_set() {
    let file = file(r#"policy "one" { fifo depth=1 { eager { each "worker" { worker } } } }"#);
    let said = sched(&stock(), &format!("check {} --set prio.sorted=#true", file.path().display()));
    assert!(said.contains("has no component `prio`") && said.contains("has no parameter `depth`"), "{said}");
}

#[test]
fn policies_are_drawn_and_checked_on_machines_with_gpus() {
    let tree = sched(&stock(), "tree tree-heft --platform cpu9-gpu3");
    assert!(tree.contains("(workers 0-8)") && tree.contains("(workers 9-11)"), "{tree}");
    assert_eq!(tree, sched(&stock(), "tree --policy tree-heft --platform cpu9-gpu3"));
    let checked = sched(&stock(), "check tree-heteroprio --platform cpu9-gpu3 --workers 2");
    assert!(checked.starts_with("policy tree-heteroprio, on 5 workers\n") && checked.ends_with("ok\n"), "{checked}");
    let refused = sched(&stock(), "check tree-eager --platform cpu9-gpu3 --synthetic core:2_pu:1");
    assert!(refused.contains("cannot be used with"), "{refused}");
}

#[test]
fn several_policies_are_drawn_one_after_the_other() {
    let line = "tree tree-eager --policy tree-ws --synthetic core:2_pu:1";
    let drawn = sched(&stock(), line);
    assert!(
        drawn.starts_with("policy tree-eager\n\nfifo sorted=#false\n") && drawn.contains("\n\npolicy tree-ws\n\n"),
        "{drawn}"
    );
    assert!(sched(&stock(), &format!("{line} --format svg")).contains("a picture is of one policy, and 2 are named"));
    let json: serde_json::Value =
        serde_json::from_str(&sched(&stock(), &format!("{line} --json"))).expect("it is JSON");
    let [eager, ws] = json["policies"].as_array().map_or(&[][..], Vec::as_slice) else { panic!("two: {json}") };
    assert_eq!((&eager["name"], &ws["name"]), (&"tree-eager".into(), &"tree-ws".into()));
    assert_eq!((&eager["nodes"][0]["component"], &eager["nodes"][0]["children"][0]["id"]), (&"fifo".into(), &1.into()));
    let leaves: Vec<_> = eager["nodes"].as_array().expect("nodes").iter().map(|node| &node["worker"]).collect();
    assert_eq!(leaves.iter().filter(|worker| worker.is_number()).count(), 2, "{json}");
}

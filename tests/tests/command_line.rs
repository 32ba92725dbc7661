//! What all commands of the program have in common: standard streams, JSON, exit codes, machines.

use sched_tests::program::{Ran, command, sched, sched_reading};
use serde_json::Value;
use std::fs;

const SMALL: [&str; 4] = ["--tiles", "4", "--tile-size", "24"];

const MINE: &str = r#"policy "mine" { fifo { eager { each "worker" { worker } } } }"#;

/// A run that succeeds, and writes nothing but notes to the standard error.
fn good(ran: Ran) -> Ran {
    assert!(ran.code == 0 && ran.err.lines().all(is_note), "{ran:?}");
    ran
}

fn is_note(line: &str) -> bool {
    line.starts_with("note: ") || line.starts_with("{\"note\":")
}

/// The only object on the standard error.
fn error(ran: &Ran, code: i32) -> Value {
    assert_eq!(ran.code, code, "{ran:?}");
    assert_eq!((ran.out.as_str(), ran.err.lines().count()), ("", 1), "{ran:?}");
    let object: Value = serde_json::from_str(&ran.err).expect("the error is JSON");
    object["error"].clone()
}

#[test]
fn what_graph_writes_simulate_reads() {
    let graph = good(sched(&["graph", "layered", "--width", "5", "--steps", "4", "--seed", "3", "--json"])).out;
    let options = ["--policy", "tree-ws", "--json"];
    let direct = ["simulate", "layered", "--width", "5", "--steps", "4", "--seed", "3"];
    let seeded = [&options[..], &["--seed", "3"]].concat();
    let direct = good(sched(&[&direct[..], &options].concat())).json();
    for source in [&["-"][..], &["--graph", "-"]] {
        let read = good(sched_reading(&graph, &[&["simulate"][..], source, &seeded].concat())).json();
        assert_eq!((&read["tasks"], &read["workload"]), (&20.into(), &direct["workload"]));
        assert_eq!(read["runs"][0]["digest"], direct["runs"][0]["digest"], "the same events at the same times");
    }
    let again = good(sched_reading(&graph, &["graph", "-", "-f", "json"])).out;
    assert_eq!(again, graph);
}

#[test]
fn a_policy_a_machine_and_a_matrix_may_be_on_the_standard_input() {
    let tree = good(sched_reading(MINE, &["tree", "-", "--synthetic", "core:2 pu:1"])).out;
    assert!(tree.starts_with("fifo\n└─ eager\n"), "{tree}");
    let ran =
        good(sched_reading(MINE, &[&["run", "cholesky", "--policy", "-", "-w", "1", "--json"], &SMALL[..]].concat()));
    assert_eq!(ran.json()["runs"][0]["policy"], "mine", "it is read for the check, and for the run");
    let platform = r#"platform "two" { memory "ram"; workers "cpu" count=2 arch="cpu" memory="ram"; kernel "*" { on "cpu" time="1 ms"; } }"#;
    let ran = good(sched_reading(platform, &["simulate", "independent", "--tasks", "6", "--platform", "-", "--json"]));
    assert_eq!((&ran.json()["workers"], &ran.json()["platform"]), (&2.into(), &"two".into()));
    let matrix = "%%MatrixMarket matrix array real general\n2 2\n4\n1\n1\n3\n";
    let ran = good(sched_reading(matrix, &["run", "lu", "--matrix", "-", "-w", "1", "--json"]));
    assert_eq!((&ran.json()["order"], &ran.json()["matrix"]), (&2.into(), &"standard input".into()));
    let ran = sched_reading("policy", &["check", "-"]);
    assert!(ran.code == 1 && ran.says("standard input"), "{ran:?}");
}

#[test]
fn a_picture_may_take_the_standard_output_and_the_report_makes_way() {
    for command in [&["simulate", "lu"][..], &["run", "lu", "-w", "1"]] {
        let ran = sched(&[command, &SMALL, &["--gantt", "-"]].concat());
        assert!(ran.code == 0 && ran.out.starts_with("<svg") && ran.out.trim_end().ends_with("</svg>"), "{ran:?}");
        assert!(ran.err.contains(if command[0] == "run" { "lu  " } else { "workload  LU of" }), "{ran:?}");
        let ran = sched(&[command, &SMALL, &["--trace", "-"]].concat());
        assert!(serde_json::from_str::<Value>(&ran.out).is_ok(), "{ran:?}");
    }
    let events = sched(&["simulate", "lu", "--tiles", "2", "--events", "-"]);
    assert!(events.out.lines().count() > 15 && events.out.starts_with("0 submitted task "), "{events:?}");
    assert!(events.err.contains("\nmakespan  "), "{events:?}");
    let page = sched(&["compare", "lu", "--tiles", "2", "--policy", "tree-ws", "--html", "-"]);
    assert!(page.out.starts_with("<!DOCTYPE html>") && page.says("TIMES BOUND"), "{page:?}");
    let twice = sched(&["simulate", "lu", "--trace", "-", "--gantt", "-"]);
    assert!(twice.code == 2 && twice.says("for the standard output, which can be used once"), "{twice:?}");
}

#[test]
fn errors_are_json_where_answers_are() {
    let unknown = error(&sched(&["simulate", "lu", "--policy", "tree-eagr", "--json"]), 1);
    assert_eq!(unknown["errors"][0]["code"], "policy::unknown");
    assert!(unknown["errors"][0]["help"].as_str().is_some_and(|help| help.contains("`tree-eager`")), "{unknown}");
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("typo.kdl");
    fs::write(&path, "policy \"typo\" {\n    fifi { eager { each \"worker\" { worker } } }\n}\n").expect("a file");
    let path = path.to_str().expect("a name that is text");
    let wrong = error(&sched(&["tree", path, "-f", "json"]), 1);
    let place = &wrong["errors"][0];
    assert_eq!((&place["file"], &place["line"], &place["column"]), (&path.into(), &2.into(), &5.into()), "{wrong}");
    let misread = error(&sched(&["run", "lu", "--json", "--tiles", "0"]), 2);
    assert_eq!(misread["code"], "usage");
    assert!(misread["message"].as_str().is_some_and(|message| message.contains("must be at least 1")), "{misread}");
    let oversubscribed = sched(&[&["run", "lu", "--json", "--workers", "300"], &SMALL[..]].concat());
    let warnings: Vec<Value> = oversubscribed
        .of_machine
        .lines()
        .map(|line| serde_json::from_str(line).expect("a warning is JSON, too"))
        .collect();
    let of = |warning: &Value| warning["warning"].as_str().is_some_and(|warning| warning.contains("oversubscribed"));
    assert!(warnings.iter().any(of), "{warnings:?}");
}

#[test]
fn errors_for_people_have_no_empty_heading() {
    let ran = sched(&["tree", "tree-eagr"]);
    assert!(ran.code == 1 && !ran.says("Error:"), "{ran:?}");
    assert!(ran.err.contains("\npolicy::unknown\n\n  × there is no policy `tree-eagr`"), "{ran:?}");
    let ran = sched_reading("3\n0 0 0\n", &["graph", "-"]);
    assert!(ran.code == 1 && !ran.says("Error:") && ran.says("standard input:1:1"), "{ran:?}");
    let context = ["simulate", "lu", "-n", "3", "--context", "a:policy=-"];
    let ran = sched_reading("policy \"a\" {\n    fifi\n}\n", &context);
    assert!(ran.code == 1 && !ran.says("Error:") && ran.says("standard input:2:5"), "{ran:?}");
    assert!(
        ran.err.contains("context `a` cannot be made\n  ╰─▶ policy `a`: 1 error\n\nV7 policy::component"),
        "{ran:?}"
    );
    let ran = error(&sched_reading("policy \"a\" {\n    fifi\n}\n", &[&context[..], &["--json"]].concat()), 1);
    let place = &ran["errors"][0]["errors"][0];
    assert_eq!(
        (&place["line"], &place["column"], &place["code"]),
        (&2.into(), &5.into(), &"V7 policy::component".into())
    );
}

#[test]
fn a_simulation_of_several_policies_has_the_keys_of_one() {
    let words = ["simulate", "lu", "--tiles", "3", "--json"];
    let one = good(sched(&[&words[..], &["--policy", "tree-ws"]].concat())).json();
    let two = good(sched(&[&words[..], &["--policy", "tree-ws,tree-eager", "--policy", "tree-ws"]].concat())).json();
    let compared = good(sched(&["compare", "lu", "--tiles", "3", "--json", "--policy", "tree-ws"]));
    assert!(!compared.out.contains("-0.0"), "the sum of no times is 0: {compared:?}");
    let compared = compared.json();
    let keys = |value: &Value| value.as_object().expect("an object").keys().cloned().collect::<Vec<_>>();
    for other in [&two, &compared] {
        assert_eq!((keys(&one), keys(&one["runs"][0])), (keys(other), keys(&other["runs"][0])));
    }
    let policies: Vec<_> = two["runs"].as_array().expect("a list").iter().map(|run| &run["policy"]).collect();
    assert_eq!(policies, ["tree-ws", "tree-eager"], "each once");
    assert_eq!(one["runs"][0]["digest"], two["runs"][0]["digest"]);
}

#[test]
fn machines_are_named_in_the_same_way_everywhere() {
    let machine = ["--synthetic", "node:2 core:4 pu:1", "--workers", "6"];
    for words in [&["tree"][..], &["check", "tree-ws"], &["topology"], &["simulate", "lu", "--tiles", "3"]] {
        let ran = good(sched(&[words, &machine].concat()));
        assert!(ran.out.contains("worker"), "{ran:?}");
        let gpus = good(sched(&[words, &["--platform", "cpu9-gpu3", "-w", "1"]].concat())).out;
        assert!(
            gpus.contains("gpu")
                || gpus.contains("workers 1-3")
                || gpus.contains("worker 3")
                || gpus.contains("4 workers"),
            "{gpus}"
        );
        let ran = sched(&[words, &["--platform", "cpu9-gpu4"]].concat());
        assert!(ran.code == 1 && ran.says("did you mean `cpu9-gpu3`?"), "{ran:?}");
    }
    let simulated = good(sched(&[&["simulate", "lu", "--tiles", "3", "--json"][..], &machine].concat())).json();
    assert_eq!((&simulated["workers"], &simulated["runs"][0]["per_worker"][5]["id"]), (&6.into(), &5.into()));
}

#[test]
fn a_comparison_writes_what_is_asked_for_and_nothing_else() {
    let folder = tempfile::tempdir().expect("a folder");
    let run = |words: &[&str]| {
        let words = [&["compare", "lu", "--tiles", "3", "--policy", "tree-ws,tree-eager"][..], words].concat();
        good(Ran::of(command(&words).current_dir(folder.path())))
    };
    let files = || {
        let names = fs::read_dir(folder.path()).expect("a folder").map(|entry| entry.expect("a file").file_name());
        let mut names: Vec<String> = names.map(|name| name.to_string_lossy().into_owned()).collect();
        names.sort();
        names
    };
    run(&[]);
    assert_eq!(files(), [""; 0]);
    run(&["--gantt", "lu.svg", "--trace", "lu.json"]);
    let contenders = ["CPOP--static", "HEFT--static", "PEFT--static", "tree-eager", "tree-ws"];
    let named: Vec<String> =
        contenders.iter().flat_map(|it| [format!("lu-{it}.json"), format!("lu-{it}.svg")]).collect();
    assert_eq!(files(), named);
    let svg = fs::read_to_string(folder.path().join("lu-tree-ws.svg")).expect("a drawing");
    assert!(svg.starts_with("<svg") && svg.contains("lower bound "), "{svg}");
}

#[test]
fn random_choices_are_no_loss_by_noise() {
    let words = ["compare", "cholesky", "--tiles", "5", "--policy", "tree-random,tree-eager", "--seeds", "5"];
    let seen = good(sched(&[&words[..], &["--noise", "spread=0.000001", "--json"]].concat())).json();
    for policy in seen["policies"].as_array().expect("a list") {
        assert!(policy["loss"].as_f64().expect("there is noise").abs() < 1e-3, "{policy}");
        assert_eq!(policy["fragile"], false, "{policy}");
    }
    let random = seen["policies"].as_array().expect("a list").iter().find(|row| row["policy"] == "tree-random");
    assert!(random.expect("it completes")["spread"].as_f64() > Some(0.01), "seeds choose otherwise: {seen}");
}

#[test]
fn reports_of_simulations_have_the_options_that_change_them() {
    let of = |command: &str, options: &[&str]| {
        let words = [command, "cholesky", "--tiles", "3", "--policy", "tree-eager"];
        good(sched(&[&words[..], options].concat()))
    };
    let noise = ["--noise", "spread=0.1,bias=cuda:1.5,known=models", "--priorities", "upward-rank"];
    let given = [&noise[..], &["--where", "potrf=cpu", "--sched-data", "*=3", "--parallel", "0.5"]].concat();
    let line = "options   --priorities upward-rank --parallel 0.5 --noise spread=0.1,bias=cuda:1.5,known=models \
                --where potrf=cpu --sched-data *=3\n";
    for (command, more) in [("simulate", &[][..]), ("compare", &[]), ("compare", &["--seeds", "2"])] {
        let given = [&given[..], more].concat();
        let text = of(command, &given).out;
        assert!(text.contains(line), "{text}");
        let plain = of(command, more);
        assert!(!plain.out.contains("options "), "{plain:?}");
        let seen = of(command, &[&given[..], &["--json"]].concat()).json();
        assert_eq!((&seen["costs"], &seen["priorities"]), (&"default".into(), &"upward-rank".into()));
        let noise =
            serde_json::json!({ "spread": 0.1, "bias": [{ "name": "cuda", "factor": 1.5 }], "known": "models" });
        assert_eq!((&seen["noise"], &seen["parallel"]), (&noise, &0.5.into()));
        assert_eq!(seen["where"], serde_json::json!([{ "kind": "potrf", "value": "cpu" }]));
        assert_eq!(seen["sched_data"], serde_json::json!([{ "kind": "*", "value": 3 }]));
        let plain = of(command, &[more, &["--json"]].concat()).json();
        assert_eq!((&plain["priorities"], &plain["noise"]), (&"as-given".into(), &Value::Null));
        assert_eq!((&plain["where"], &plain["parallel"]), (&serde_json::json!([]), &Value::Null));
    }
}

#[test]
fn policies_are_compared_in_contexts() {
    let words =
        ["compare", "lu", "--tiles", "4", "--platform", "numa-2x12", "--policy", "tree-eager,tree-ws", "--json"];
    let contexts = ["--context", "a:workers=0-11", "--context", "b:policy=tree-heft,workers=8-23"];
    let seen = good(sched(&[&words[..], &contexts].concat())).json();
    assert_eq!(seen["tasks"], 60, "the workload runs in both");
    let runs = seen["runs"].as_array().expect("a list");
    assert!(
        runs.len() == 2 && runs.iter().all(|run| run["planned"] == false),
        "static schedules know no contexts: {seen}"
    );
    for run in runs {
        assert_eq!(
            (&run["contexts"][0]["policy"], &run["contexts"][1]["policy"]),
            (&run["policy"], &"tree-heft".into())
        );
        assert_eq!(run["contexts"][0]["workers"].as_array().map(Vec::len), Some(12));
    }
    let nothing = sched(&[&words[..], &["--context", "a:policy=tree-ws"]].concat());
    assert!(nothing.code == 1 && nothing.says("nothing to compare"), "{nothing:?}");
}

#[test]
fn a_cluster_is_simulated_node_by_node() {
    let words = ["simulate", "cholesky", "--tiles", "8", "--policy", "tree-prio", "--platform"];
    let simulated = |platform: &str| good(sched(&[&words[..], &[platform, "--json"]].concat())).json();
    let report = simulated("cluster:4x3,latency=2us");
    let run = &report["runs"][0];
    assert_eq!((&report["workers"], &report["platform"]), (&12.into(), &"cluster:4x3,latency=2us".into()));
    let nodes = run["per_node"].as_array().expect("there are nodes");
    let sum = |key: &str| nodes.iter().map(|node| node[key].as_u64().expect("it is a number")).sum::<u64>();
    assert_eq!((sum("tasks"), sum("workers")), (120, 12));
    assert_eq!(
        (sum("sent"), sum("received_bytes")),
        (run["messages"].as_u64().expect("it is a number"), sum("sent_bytes"))
    );
    assert!(report["bounds_s"]["critical_path"].as_f64() <= run["makespan_s"].as_f64());
    assert_eq!(simulated("cluster:4x3,latency=2us")["runs"][0]["digest"], run["digest"], "the same events again");
    let text = good(sched(&[&words[..], &["cluster:40x3"]].concat())).out;
    assert!(text.contains("messages between nodes") && text.contains("\nmedian"), "{text}");
    let file = "cluster \"mine\" { nodes \"numa-2x12\"; nodes \"3\" count=2; switch nodes=2 uplink=\"1 GB/s\"; }";
    let mixed = good(sched_reading(file, &[&words[..], &["-", "--json"]].concat())).json();
    assert_eq!((&mixed["workers"], &mixed["platform"]), (&30.into(), &"mine".into()));
    let elsewhere = sched(&["tree", "--platform", "cluster:2x2"]);
    assert!(elsewhere.code == 1 && elsewhere.says("is a cluster, and this takes one machine"), "{elsewhere:?}");
    let compared = sched(&["compare", "lu", "--platform", "cluster:2x2"]);
    assert!(compared.code == 1 && compared.says("static schedules are for one machine"), "{compared:?}");
}

#[test]
fn goals_of_contexts_come_from_options_and_from_a_file() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("goals.kdl");
    fs::write(&file, "hypervisor period=\"2 ms\" {\n    context \"a\" share=0.75\n}\n").expect("it can be written");
    let words = ["simulate", "cholesky", "--tiles", "8", "--platform", "numa-2x12", "--json", "--context"];
    let path = file.to_str().expect("it is text");
    let by_file = good(sched(&[&words[..], &["a", "--context", "b", "--goals", path]].concat())).json();
    let goals = &by_file["runs"][0]["hypervisor"]["goals"];
    assert_eq!((&goals[0]["goal"], &goals[1]["context"]), (&"share 0.75".into(), &"b".into()), "{by_file}");
    assert!(by_file["runs"][0]["hypervisor"]["moves"].as_array().is_some_and(|moves| !moves.is_empty()), "{by_file}");
    let by_option = good(sched(&[&words[..], &["a:share=0.75", "--context", "b"]].concat())).json();
    assert_eq!(by_option["runs"][0]["hypervisor"]["goals"][0]["met"], true, "{by_option}");
    let both = sched(&[&words[..], &["a:deadline=1s", "--context", "b", "--goals", path]].concat());
    assert!(both.code == 1 && both.says("context `a` has goals twice"), "{both:?}");
    fs::write(&file, "hypervisor {\n    context \"a\" share=1.5\n}\n").expect("it can be written");
    let wrong = sched(&[&words[..], &["a", "--goals", path]].concat());
    assert_eq!(wrong.code, 1, "{wrong:?}");
    let error: Value = serde_json::from_str(&wrong.err).expect("errors are JSON, too");
    let error = &error["error"]["errors"];
    assert_eq!((&error[0]["line"], &error[0]["column"]), (&2.into(), &5.into()), "{wrong:?}");
    assert_eq!(error[0]["message"], "context `a` has the share 1.5; it is more than 0, and at most 1");
    let run = ["run", "cholesky", "--workers", "2", "--json", "--context"];
    for (words, workers) in [(&words[..], 24), (&[&run[..5], &SMALL, &run[5..]].concat(), 2)] {
        let many = sched(&[words, &["a:share=0.5,min=30"]].concat());
        let said = format!("context `a` has at least 30 workers, and all governed contexts have {workers}");
        assert!(many.code == 1 && many.says(&said), "{many:?}");
    }
    let missing = sched(&[&words[..], &["a", "--goals", "no-such-file.kdl"]].concat());
    assert!(missing.code == 1 && missing.says("the goals `no-such-file.kdl` cannot be read"), "{missing:?}");
}

#[test]
fn all_policies_are_looked_at_before_any_is_simulated() {
    let ran = sched(&["simulate", "lu", "--tiles", "3", "--policy", "tree-ws,tree-eagr"]);
    assert!(ran.code == 1 && ran.out.is_empty(), "{ran:?}");
    assert!(ran.says("1 of 2 policies cannot be used; nothing was simulated"), "{ran:?}");
}

#[test]
fn folders_of_plugins_that_are_not_there_are_named() {
    let simulate = ["simulate", "cholesky", "--tiles", "3"];
    for (folder, why) in
        [("/no/such/folder", "there is no such folder"), ("/dev/null", "Not a directory (os error 20)")]
    {
        let ran = sched(&[&["--plugin-dir", folder][..], &simulate].concat());
        let warning = format!("warning: no plugins of `{folder}` (--plugin-dir): {why}\n");
        assert_eq!((ran.code, ran.err.as_str()), (0, warning.as_str()));
    }
    // The list of plugins says so where the others are.
    let ran = good(sched(&["plugins", "--plugin-dir", "/no/such/folder"]));
    assert!(ran.out.contains("/no/such/folder (--plugin-dir): there is no such folder"), "{}", ran.out);
}

#[test]
fn control_characters_of_arguments_do_not_reach_the_terminal() {
    // The standard error is no terminal here, so that colours are foreign, too.
    let clear = "\u{1b}[2J\u{1b}[31mx\u{9b}2J";
    for words in [
        &["graph", clear][..],
        &["tree", clear],
        &["check", clear],
        &["run", "cholesky", "--policy", clear],
        &["run", "cholesky", "--workers", clear],
        &["simulate", "cholesky", "--platform", clear],
        &["topology", "--synthetic", clear],
        &[clear],
    ] {
        for json in [&[][..], &["--json"]] {
            let ran = sched(&[words, json].concat());
            let shown = |text: &str| text.chars().all(|c| !c.is_control() || matches!(c, '\n' | '\t'));
            assert!(
                ran.code != 0 && ran.err.len() + ran.out.len() > 0 && shown(&ran.err) && shown(&ran.out),
                "{words:?}: {ran:?}"
            );
        }
    }
}

#[test]
fn manual_pages_replace_old_ones_when_they_are_complete() {
    let folder = tempfile::tempdir().expect("a folder");
    let pages = folder.path().join("man1");
    let words = ["man", "--dir", pages.to_str().expect("text")];
    good(sched(&words));
    let (page, reader) = (pages.join("sched-run.1"), folder.path().join("reader"));
    fs::write(&page, "an old page").expect("it can be written");
    fs::hard_link(&page, &reader).expect("a second name");
    good(sched(&words));
    assert_eq!(fs::read_to_string(&reader).expect("it is there"), "an old page", "who reads the old page goes on");
    assert!(fs::read_to_string(&page).expect("it is there").contains("sched"));
    let others = fs::read_dir(&pages).expect("a folder").flatten();
    assert!(others.into_iter().all(|file| file.path().extension().is_some_and(|end| end == "1")), "no draft is left");
}

#[test]
fn parameters_are_set_for_all_policies_or_for_one_of_several() {
    let machine = ["--synthetic", "pu:2", "--json"];
    let drawn = |words: &[&str]| good(sched(&[&["tree"], words, &machine].concat())).json();
    let beta = |tree: &Value| {
        let nodes = tree["policies"][0]["nodes"].as_array().expect("a list").clone();
        let mct = nodes.iter().find(|node| node["component"] == "mct").expect("there is one").clone();
        mct["params"]["beta"].clone()
    };
    assert_eq!(beta(&drawn(&["tree-heft"])), "1.0");
    assert_eq!(beta(&drawn(&["tree-heft", "--set", "mct.beta=3"])), "3.0");
    assert_eq!(beta(&drawn(&["tree-heft+mct.beta=2.5"])), "2.5");
    let words = ["compare", "cholesky", "--tiles", "4", "--platform", "cpu9-gpu3", "--json"];
    let policies =
        ["--policy", "tree-heft,tree-heft+mct.beta=9.0+mct/prio.ntasks-threshold=2", "--set", "mct.alpha=1.5"];
    let seen = good(sched(&[&words[..], &policies].concat())).json();
    let names: Vec<&Value> = seen["runs"].as_array().expect("a list").iter().map(|run| &run["policy"]).collect();
    assert!(names.contains(&&"tree-heft+mct.alpha=1.5".into()), "{names:?}");
    assert!(
        names.contains(&&"tree-heft+mct.beta=9.0+mct/prio.ntasks-threshold=2+mct.alpha=1.5".into()),
        "the one with more of them: {names:?}"
    );
    let ran = sched(&["check", "tree-heft", "--set", "mct.betta=3"]);
    assert!(ran.code == 1 && ran.says("did you mean `beta`?") && ran.says("tree-heft.kdl:"), "{ran:?}");
    let ran = sched(&["run", "cholesky", "--policy", "tree-eager", "--set", "mct.beta=3"]);
    assert!(ran.code == 1 && ran.says("policy `tree-eager` has no component `mct`"), "{ran:?}");
    for words in [&["tree-heft", "--set", "mct.beta=0"][..], &["tree-heft+mct.beta=0"]] {
        let ran = sched(&[&["tree"], words, &["--set", "mct.beta=50"]].concat());
        assert!(ran.code == 1 && ran.says("`mct.beta` is given twice, as 0 and as 50"), "{ran:?}");
    }
    let ran = sched(&["tree", "--set", "beta=3"]);
    assert!(ran.code == 2 && ran.says("sets no parameter of a component"), "{ran:?}");
}

#[test]
fn help_and_version_that_cannot_be_written_are_failures() {
    for word in ["--help", "--version"] {
        let full = fs::File::options().write(true).open("/dev/full").expect("it is always there");
        let status = command(&[word]).stdout(full).status().expect("it runs");
        assert_eq!(status.code(), Some(1), "{word}");
    }
}

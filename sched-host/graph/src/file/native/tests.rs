//! What is written is read again, and what is malformed is refused line by line.

use super::*;
use crate::{ContextId, generate};
use proptest::prelude::*;
use std::time::Duration;

fn read_back(graph: &TaskGraph) -> TaskGraph {
    let text = to_json(graph, &graph.dependencies());
    crate::parse("graph.json", text, None).unwrap_or_else(|error| panic!("{:?}", miette::Report::new(error)))
}

/// What is wrong with `text`, a line for each problem.
fn wrong(text: &str) -> String {
    let error = crate::parse("t.json", text.to_owned(), None).expect_err("the text is malformed");
    let problems = error.problems().iter().map(|problem| match problem.fix() {
        Some(fix) => format!("{problem} ({fix})"),
        None => problem.to_string(),
    });
    std::iter::once(error.to_string()).chain(problems).collect::<Vec<_>>().join("\n")
}

#[test]
fn programs_find_everything_under_its_key() {
    let graph = generate::cholesky(2, 10);
    let text = to_json(&graph, &graph.dependencies());
    let document: serde_json::Value = serde_json::from_str(&text).expect("it is JSON");
    assert_eq!((&document["format"], &document["version"]), (&"sched-task-graph".into(), &1.into()));
    assert_eq!((&document["summary"]["tasks"], &document["summary"]["weight"]), (&4.into(), &"flops".into()));
    assert_eq!(document["tasks"][1]["kind"], "trsm");
    assert_eq!(document["tasks"][1]["waits_for"], serde_json::json!([0]));
    assert_eq!(document["tasks"][2]["accesses"][1]["mode"], "read-write");
    assert_eq!((&document["data"][0]["bytes"], &document["data"][0]["home"]), (&800.into(), &0.into()));
    assert_eq!(text.lines().filter(|line| line.contains("waits_for")).count(), 4, "a line for each task: {text}");
}

#[test]
fn generated_graphs_are_read_back_as_they_were() {
    let length = Duration::from_nanos(1_234_567);
    for graph in [
        generate::cholesky(5, 96),
        generate::stencil(4, 3, length, 1 << 20),
        generate::independent(7, length),
        TaskGraph::new("nothing"),
    ] {
        assert_eq!(read_back(&graph), graph);
    }
}

#[test]
fn kinds_of_one_name_are_told_apart() {
    let mut graph = TaskGraph::new("two kinds");
    let kinds = [graph.add_kind("k"), graph.add_kind("k")];
    graph.kinds[1].runs = false;
    for kind in kinds {
        graph.add_task(Task::new(kind));
    }
    assert_eq!(read_back(&graph), graph);
}

#[test]
fn a_graph_written_by_hand_needs_little() {
    let text = r#"{ "format": "sched-task-graph", "version": 1,
        "data": [ { "bytes": 8 } ],
        "tasks": [ { "kind": "make", "accesses": [ { "data": 0, "mode": "write" } ] },
                   { "kind": "use", "accesses": [ { "data": 0, "mode": "read" } ], "seconds": { "cpu": 0.001, "cuda": 1e-4 } },
                   { "kind": "use", "after": [1] } ] }"#;
    let graph = crate::parse("hand.json", text.to_owned(), None).expect("it is well-formed");
    assert_eq!((&*graph.name, graph.kinds.len(), graph.tasks.len()), ("hand.json", 2, 3));
    assert_eq!(graph.tasks[1].lengths.get(Arch::CUDA), Some(Duration::from_micros(100)));
    assert_eq!(graph.dependencies().predecessors(TaskId(2)), [TaskId(1)]);
}

#[test]
fn every_problem_is_reported_with_its_line() {
    let text = r#"{ "format": "sched-task-graph", "version": 1, "nmae": "x",
"kinds": [ { "name": "gemm", "runs": 1 }, { "runs": true } ],
"data": [ { "bytes": -1 }, { "size": 8 } ],
"tasks": [
{ "id": 1, "kind": "gem" },
{ "kind": "gemm", "priority": 1e9, "accesses": [ { "data": 2, "mode": "read" }, { "data": 0, "mode": "rw" } ] },
{ "kind": 7, "after": [0, 2, "x"], "seconds": { "gpu": 1, "cpu": -1 }, "flops": null },
[]
],
"wont_use": [ { "submitted": 9, "data": 0 } ] }"#;
    insta::assert_snapshot!(wrong(text), @r"
    cannot read a task graph from `t.json`: 18 problems
    line 1, column 47: there is no member `nmae` here (did you mean `name`?)
    line 2, column 38: `runs` is the number `1`: `true` or `false` is expected
    line 2, column 43: the object that begins here has no `name`
    line 3, column 22: `bytes` is the number `-1`: a whole number from 0 on is expected
    line 3, column 28: the object that begins here has no `bytes`
    line 3, column 30: there is no member `size` here (it may have: name, bytes, home)
    line 5, column 9: this is task 1, where task 0 is expected: tasks are numbered from 0
    line 5, column 20: there is no kind `gem` in `kinds` (did you mean `gemm`?)
    line 6, column 31: `priority` is the number `1e9`: a whole number from -2147483648 to 2147483647 is expected
    line 6, column 60: there is no data 2: 1 is the last
    line 6, column 102: `rw` is no mode: read, write, read-write, commute, redux or scratch is expected
    line 7, column 11: there is no kind 7: 1 is the last
    line 7, column 27: task 2 comes after task 2, which is not before it (tasks stand in the order of submission, and wait for earlier ones only)
    line 7, column 30: `after` is the string `x`: a whole number from 0 on is expected
    line 7, column 49: there is no architecture `gpu` (`cpu`, `cuda`, `opencl`, `hip`, `sycl`, `mpi`, `fpga`, or `arch7` to `arch31`)
    line 7, column 66: `cpu` is the number `-1`: a number of seconds, from 0 and below 1.8e10 is expected
    line 8, column 1: `tasks` is an array: an object is expected
    line 10, column 30: there is no task 9: 3 is the last
    ");
}

#[test]
fn what_could_mean_two_things_is_refused() {
    let text = r#"{ "format": "sched-task-graph", "version": 1, "name": "a", "name": "b",
"kinds": [ { "name": "k" }, { "name": "other", "runs": true, "runs": false }, { "name": "k", "runs": false } ],
"tasks": [
{ "kind": "k", "seconds": { "cpu": 5, "cuda": 1, "cpu": 1 } },
{ "kind": 2, "seconds": { "cpu": 5 }, "seconds": { "cpu": 1 } }
] }"#;
    insta::assert_snapshot!(wrong(text), @"
    cannot read a task graph from `t.json`: 5 problems
    line 1, column 60: the member `name` is there already (remove one of them)
    line 2, column 62: the member `runs` is there already (remove one of them)
    line 4, column 11: `kinds` has several kinds `k` (write the place of the one that is meant: 0, 2 or a later one)
    line 4, column 50: the member `cpu` is there already (remove one of them)
    line 5, column 39: the member `seconds` is there already (remove one of them)
    ");
}

#[test]
fn tasks_that_a_file_says_to_wait_for_are_those_that_its_tasks_wait_for() {
    let text = |waits_for: &str| {
        format!(
            r#"{{ "format": "sched-task-graph", "version": 1, "data": [ {{ "bytes": 8 }} ],
"tasks": [
{{ "kind": "k", "accesses": [ {{ "data": 0, "mode": "write" }} ] }},
{{ "kind": "k" }},
{{ "kind": "k", "accesses": [ {{ "data": 0, "mode": "read" }} ], "after": [1], "waits_for": {waits_for} }}
] }}"#
        )
    };
    for sound in ["[0, 1]", "[1, 0]", "null"] {
        assert!(crate::parse("t.json", text(sound), None).is_ok(), "{sound}");
    }
    insta::assert_snapshot!(wrong(&text("[1]")), @"
    cannot read a task graph from `t.json`: one problem
    line 5, column 77: `waits_for` of task 2 names task 1, but its accesses and `after` mean tasks 0 and 1 (name tasks to wait for in `after`, and leave out `waits_for`)
    ");
    insta::assert_snapshot!(wrong(&text("[]")), @"
    cannot read a task graph from `t.json`: one problem
    line 5, column 77: `waits_for` of task 2 names no task, but its accesses and `after` mean tasks 0 and 1 (name tasks to wait for in `after`, and leave out `waits_for`)
    ");
    insta::assert_snapshot!(wrong(&text("\"01\"")), @"
    cannot read a task graph from `t.json`: one problem
    line 5, column 90: `waits_for` is the string `01`: an array is expected
    ");
    insta::assert_snapshot!(wrong(&text("[2, \"1\", 0.5]")), @"
    cannot read a task graph from `t.json`: 3 problems
    line 5, column 91: task 2 waits for task 2, which is not before it (tasks stand in the order of submission, and wait for earlier ones only)
    line 5, column 94: `waits_for` is the string `1`: a whole number from 0 on is expected
    line 5, column 99: `waits_for` is the number `0.5`: a whole number from 0 on is expected
    ");
}

#[test]
fn another_version_or_format_is_refused() {
    insta::assert_snapshot!(wrong(r#"{ "format": "sched-task-graph", "version": 2, "graph": {} }"#), @r"
    cannot read a task graph from `t.json`: one problem
    line 1, column 44: `version` is 2: 1 is expected (a later version of the program reads it)
    ");
    insta::assert_snapshot!(wrong(r#"{ "format": "other", "of": "sched-task-graph" }"#), @r"
    cannot read a task graph from `t.json`: one problem
    line 1, column 13: `format` is `other`: `sched-task-graph` is expected
    ");
    insta::assert_snapshot!(wrong(r#"{ "format": "sched-task-graph" }"#), @r"
    cannot read a task graph from `t.json`: one problem
    line 1, column 1: the object that begins here has no `version`
    ");
}

fn task(kinds: u32, data: u32) -> impl Strategy<Value = Task> {
    let mode = prop::sample::select(MODES.map(|(_, mode)| mode).to_vec());
    let access = (0..data, mode).prop_map(|(data, mode)| Access { data: DataId(data), mode });
    let archs = prop::sample::subsequence(vec![Arch::CPU, Arch::CUDA, Arch::FPGA], 0..=3);
    let lengths = (archs, 0u64..1_728_000_000_000_000).prop_map(|(archs, nanos)| {
        archs.into_iter().fold(Lengths::default(), |lengths, arch| lengths.with(arch, Duration::from_nanos(nanos)))
    });
    let places = prop::sample::subsequence(vec!["cpu", "cuda", "3", "7-9"], 0..=4);
    let places = (places.prop_map(|words| words.join("+").parse::<Where>().ok().map(Box::new)), any::<u32>());
    let facts = (any::<i32>(), any::<u16>(), any::<Option<u32>>(), prop::option::of("[ -~é]{0,8}"), 0.0..1e18);
    // As numbers that are brought into range later.
    let after = prop::collection::vec(any::<u32>(), 0..3);
    let accesses = prop::collection::vec(access, 0..5);
    (0..kinds, facts, places, lengths, accesses, after).prop_map(
        |(kind, (priority, context, footprint, name, flops), (only, data), lengths, accesses, after)| Task {
            kind: KindId(kind),
            priority,
            context: ContextId(context),
            only,
            sched_data: u64::from(data),
            footprint,
            name: name.map(Into::into),
            flops,
            lengths,
            accesses: accesses.into(),
            after: after.into_iter().map(TaskId).collect(),
        },
    )
}

fn graph() -> impl Strategy<Value = TaskGraph> {
    let kind = ("[a-c]", any::<bool>()).prop_map(|(name, runs)| Kind { name, runs });
    let datum = (prop::option::of("[ -~]{1,8}"), any::<u64>(), 0u32..4).prop_map(|(name, bytes, home)| Datum {
        name: name.map(Into::into),
        bytes,
        home: MemoryNode(home),
    });
    let hint = (0u32..4, 0u32..3).prop_map(|(submitted, data)| WontUse { submitted, data: DataId(data) });
    let parts = (
        "[ -~é]{1,12}",
        prop::collection::vec(kind, 3),
        prop::collection::vec(datum, 3),
        prop::collection::vec(task(3, 3), 4..12),
        prop::collection::vec(hint, 0..3),
    );
    parts.prop_map(|(name, kinds, data, mut tasks, wont_use)| {
        for (number, task) in (0u32..).zip(&mut tasks) {
            task.after.retain(|_| number > 0);
            task.after.iter_mut().for_each(|before| before.0 %= number);
        }
        TaskGraph { name, kinds, data, tasks, wont_use }
    })
}

proptest! {
    #[test]
    fn whatever_is_written_is_read_back_as_it_was(graph in graph()) {
        let read = read_back(&graph);
        prop_assert_eq!(&read, &graph);
        let (before, after) = (graph.dependencies(), read.dependencies());
        for task in graph.ids() {
            prop_assert_eq!(before.predecessors(task), after.predecessors(task));
        }
    }

    #[test]
    fn a_text_cut_or_changed_anywhere_makes_no_reader_panic(
        graph in graph(),
        at in any::<prop::sample::Index>(),
        byte in 32u8..127,
        cut in any::<bool>(),
    ) {
        let text: String = to_json(&graph, &graph.dependencies()).chars().filter(char::is_ascii).collect();
        let at = at.index(text.len());
        let changed = match cut {
            true => text[..at].to_owned(),
            false => format!("{}{}{}", &text[..at], byte as char, &text[at + 1..]),
        };
        let _ = parse(&changed);
    }
}

//! Files of all formats, good and bad.

use super::*;
use crate::{AccessMode, TaskId};
use proptest::prelude::*;
use sched_core::Arch;
use sched_test_support::reference_data;
use std::path::PathBuf;
use std::time::Duration;

/// What is wrong with `text`, a line for each problem.
fn wrong(name: &str, text: &str) -> String {
    let error = parse(name, text.to_owned(), None).expect_err("the text is malformed");
    let shown = error.problems().iter().map(|problem| match problem.fix() {
        Some(fix) => format!("{problem} ({fix})"),
        None => problem.to_string(),
    });
    std::iter::once(error.to_string()).chain(shown).collect::<Vec<_>>().join("\n")
}

#[test]
fn a_trace_of_cholesky_is_the_graph_of_cholesky() {
    let Some(file) = reference_data("starpu-rec/cholesky-mirage-n4.tasks.rec") else { return };
    let graph = read(&file).expect("StarPU wrote it");
    let tasks: Vec<&crate::Task> = graph.tasks.iter().filter(|task| graph.kind_of(task).runs).collect();
    assert_eq!(tasks.len(), 20);
    let names: Vec<&str> = tasks[..6].iter().filter_map(|task| task.name.as_deref()).collect();
    assert_eq!(names, ["POTRF", "TRSM", "TRSM", "TRSM", "SYRK", "GEMM"]);
    assert_eq!(graph.kind_of(tasks[0]).name, "chol_model_potrf");
    assert_eq!((tasks[0].priority, tasks[0].footprint, tasks[0].flops), (8, Some(0x617e_5fe6), 0.295_372e9));
    let modes: Vec<AccessMode> = tasks[1].accesses.iter().map(|access| access.mode).collect();
    assert_eq!(modes, [AccessMode::Read, AccessMode::ReadWrite]);
    assert!(graph.data.iter().all(|datum| datum.bytes == 3_686_400));
    assert_eq!((graph.data.len(), graph.wont_use.len()), (10, 10));
    let dependencies = graph.dependencies();
    let first = graph.ids().find(|id| graph.kind_of(graph.task(*id)).runs).expect("there are twenty");
    let next: Vec<&crate::Task> = dependencies.successors(first).iter().map(|id| graph.task(*id)).collect();
    let next = next.into_iter().filter(|task| graph.kind_of(task).runs);
    assert_eq!(next.filter_map(|task| task.name.as_deref()).collect::<Vec<_>>(), ["TRSM"; 3]);
    // The tile of the first column's factor is not used any more after its three solves.
    let hint = graph.wont_use[0];
    let used = graph.tasks[hint.submitted as usize - 1].accesses[0].data;
    assert_eq!(used, hint.data);
}

#[test]
fn every_trace_and_graph_of_the_reference_data_can_be_read() {
    for (folder, extension) in [("starpu-rec", "rec"), ("starpu-rec/executed", "rec"), ("graphs/stg", "stg")] {
        let Some(folder) = reference_data(folder) else { continue };
        let entries =
            std::fs::read_dir(folder).expect("it is a folder").map(|entry| entry.expect("it can be listed").path());
        let files: Vec<PathBuf> = entries.filter(|path| path.extension().is_some_and(|e| e == extension)).collect();
        assert!(!files.is_empty());
        for file in files {
            let graph = read(&file).unwrap_or_else(|error| panic!("{:?}", miette::Report::new(error)));
            assert!(graph.dependencies().n_edges() > graph.tasks.len() / 4, "{}", file.display());
        }
    }
}

#[test]
fn explicit_dependencies_may_point_forward_and_into_nowhere() {
    let text = "JobId: 1\nSubmitOrder: 1\nWorkerId: 0\nDependsOn: 3 99\n\n\
                JobId: 2\nSubmitOrder: 2\nWorkerId: 0\nPriority: 5\nHandles: a\nModes: W\nSizes: 8\n\n\
                JobId: 3\nSubmitOrder: 3\nWorkerId: 1\nHandles: a\nModes: R\nSizes: 8\n";
    let graph = parse("t.rec", text.to_owned(), None).expect("it is well-formed");
    let dependencies = graph.dependencies();
    assert_eq!(graph.tasks.iter().map(|task| task.priority).collect::<Vec<_>>(), [5, 5, 0]);
    assert_eq!(dependencies.predecessors(TaskId(1)), [TaskId(0)]);
    assert_eq!(dependencies.predecessors(TaskId(2)), [TaskId(1)]);
}

#[test]
fn every_problem_of_a_trace_is_told_with_its_line() {
    let text = "JobId: 1\nPirority: 3\nFootprint: xyz\n\n\
                Name: gemm\nHandles: a b\nModes: R Q\nSizes: 8\n\n\
                JobId: 1\nJobId: 2\nGFlop: -1\nnonsense\n\n\
                Control: Nothing\nJobId: 4x\nSubmitOrder: 3.5\n";
    insta::assert_snapshot!(wrong("t.rec", text), @"
    cannot read StarPU tasks from `t.rec`: 14 problems
    line 2, column 1: there is no field `Pirority` (did you mean `Priority`?)
    line 3, column 12: `xyz` is no footprint: up to eight hexadecimal digits are expected
    line 5, column 1: the record has no `JobId` (records are parted by a blank line)
    line 5, column 1: the record has a codelet and no `WorkerId`: nobody ran it (take the trace of a run that has ended; a task without a worker would take no time)
    line 7, column 10: `Q` is no mode: R, W, RW, RWC (commutes), X (reduces) or S (scratch) is
    line 8, column 1: there are 1 Sizes for 2 handles
    line 10, column 8: job `1` is there already, at line 1
    line 11, column 1: the record has a second `JobId` (records are parted by a blank line; is it missing?)
    line 12, column 8: -1 billion operations cannot be: a number from 0 to 1e21 is expected
    line 13, column 1: `nonsense` is no field: `Name: value` is expected (records are parted by a blank line)
    line 15, column 1: a hint is about one handle, and this one names 0
    line 15, column 10: `Nothing` is no control: `WontUse` is
    line 16, column 8: `4x` is no job: a number is expected
    line 17, column 14: `3.5` is not a whole number
    ");
}

#[test]
fn operations_are_so_few_that_their_sums_are_numbers() {
    let native = |flops: &str| {
        let task = format!("{{\"id\":0,\"kind\":\"a\",\"flops\":{flops}}}");
        format!(
            "{{\"format\":\"sched-task-graph\",\"version\":1,\"name\":\"a\",\"kinds\":[{{\"name\":\"a\"}}],\"data\":[],\"tasks\":[{task}]}}"
        )
    };
    insta::assert_snapshot!(wrong("g.json", &native("1e308")), @"
    cannot read a task graph from `g.json`: one problem
    line 1, column 122: `flops` is the number `1e308`: a number from 0 to 1e30 is expected
    ");
    insta::assert_snapshot!(wrong("t.rec", "JobId: 1\nSubmitOrder: 1\nWorkerId: 0\nGFlop: 1e308\n"), @"
    cannot read StarPU tasks from `t.rec`: one problem
    line 4, column 8: 1e308 billion operations cannot be: a number from 0 to 1e21 is expected
    ");
    assert!(parse("g.json", native("1e30"), None).is_ok());
}

#[test]
fn a_trace_with_gaps_is_refused() {
    let task = |job: u32, order: u32| format!("JobId: {job}\nSubmitOrder: {order}\nWorkerId: 0\nModel: gemm\n\n");
    insta::assert_snapshot!(wrong("t.rec", &[task(1, 1), task(2, 5), task(3, 7)].concat()), @"
    cannot read StarPU tasks from `t.rec`: 2 problems
    line 6, column 1: the trace has a gap: no record has the `SubmitOrder` 2 to 4 (take the whole trace; without these tasks others would begin too early)
    line 11, column 1: the trace has a gap: no record has the `SubmitOrder` 6 (take the whole trace; without these tasks others would begin too early)
    ");
    let text = [task(1, 4), task(2, 5)].concat();
    let (graph, warnings) = parsed("t.rec", text, None).expect("an earlier part may be missing");
    assert_eq!(graph.tasks.len(), 2);
    let late = "t.rec:1:1: the trace begins with the `SubmitOrder` 4: what the earlier tasks wrote is there from the beginning";
    assert_eq!(warnings, [late]);
    assert!(parse("t.rec", [task(1, 0), task(2, 1)].concat(), None).is_ok(), "it may count from 0");
    let last = "JobId: 2\nSubmitOrder: 18446744073709551615\nWorkerId: 0\n\n";
    insta::assert_snapshot!(wrong("t.rec", &format!("{}{last}{}", task(1, 1), last.replace("JobId: 2", "JobId: 3"))), @"
    cannot read StarPU tasks from `t.rec`: 2 problems
    line 6, column 1: the trace has a gap: no record has the `SubmitOrder` 2 to 18446744073709551614 (take the whole trace; without these tasks others would begin too early)
    line 10, column 1: the `SubmitOrder` 18446744073709551615 is there already, in the record of the job at line 6 (take the trace as StarPU wrote it: no two tasks have the same number)
    ");
}

#[test]
fn a_handle_of_several_sizes_is_said() {
    let task = |job: u32, bytes: u32| {
        format!("JobId: {job}\nSubmitOrder: {job}\nWorkerId: 0\nHandles: a b\nModes: R W\nSizes: {bytes} 4\n\n")
    };
    let read = |sizes: &[u32]| {
        let text: String = (1..).zip(sizes).map(|(job, bytes)| task(job, *bytes)).collect();
        let (graph, warnings) = parsed("t.rec", text, None).expect("it is well-formed");
        (graph.data[0].bytes, warnings.join("\n"))
    };
    assert_eq!(read(&[8, 8]), (8, String::new()));
    let (bytes, warning) = read(&[8, 16]);
    assert_eq!(bytes, 8);
    insta::assert_snapshot!(warning, @"t.rec:11:10: the handle `a` has 16 bytes here, and had 8 before, which count: give data of their own another handle");
    insta::assert_snapshot!(read(&[8, 16, 8, 0]).1, @"t.rec:11:10: the handle `a` has 16 bytes here (and 1 more such place), and had 8 before, which count: give data of their own another handle");
}

#[test]
fn a_trace_that_waits_for_itself_is_refused() {
    let text = "JobId: 1\nDependsOn: 2\nWorkerId: 0\n\nJobId: 2\nDependsOn: 1\nWorkerId: 0\n\n";
    insta::assert_snapshot!(wrong("t.rec", text), @"
    cannot read StarPU tasks from `t.rec`: one problem
    line 1, column 8: job 1 waits for itself: 1 waits for 2 waits for 1
    ");
}

#[test]
fn a_standard_task_graph_has_its_critical_path() {
    let Some(file) = reference_data("graphs/stg/rand0004.stg") else { return };
    let graph = read(&file).expect("it is of the Standard Task Graph Set");
    assert_eq!(graph.tasks.len(), 52);
    assert_eq!(graph.tasks.iter().filter(|task| graph.kind_of(task).runs).count(), 50);
    assert_eq!(graph.tasks[1].lengths.get(Arch::CPU), Some(Duration::from_millis(3)));
    assert_eq!(graph.dependencies().n_edges(), 233 + 6);
}

#[test]
fn every_problem_of_a_standard_task_graph_is_told_with_its_line() {
    let text = "3\n0 0 0\n1 x 1 0\n2 5 2 0\n7 5 1 9\n4 -1\n";
    insta::assert_snapshot!(wrong("t.stg", text), @"
    cannot read a standard task graph from `t.stg`: 5 problems
    line 3, column 3: `x` is not the processing time: a whole number below 2³² is expected
    line 4, column 1: it says that the task waits for 2 others, and names 1
    line 5, column 1: this is task 7, where task 3 is expected: tasks are numbered from 0
    line 5, column 7: there is no task 9: tasks have the numbers 0 to 3
    line 6, column 1: a task is its number, its processing time, how many tasks it waits for, and their numbers
    ");
    insta::assert_snapshot!(wrong("t.stg", "1\n0 0 0\n1 5 1 2\n2 0 1 1\n"), @"
    cannot read a standard task graph from `t.stg`: one problem
    line 3, column 1: task 1 waits for itself: 1 waits for 2 waits for 1
    ");
    insta::assert_snapshot!(wrong("t.stg", "7\n0 0 0\n1 5 1 0\n"), @"
    cannot read a standard task graph from `t.stg`: one problem
    line 1, column 1: it says 7 tasks, and there are lines for 2 (9 lines are expected, with the dummy tasks at both ends)
    ");
    insta::assert_snapshot!(wrong("t.stg", "# only a comment\n"), @"
    cannot read a standard task graph from `t.stg`: one problem
    there is nothing in it (the first line is the number of tasks)
    ");
}

#[test]
fn a_standard_task_graph_that_is_cut_or_names_a_task_twice_is_refused() {
    let whole = "3\n0 0 0\n1 5 1 0\n2 6 1 1\n3 7 1 1\n4 0 2 2 3\n";
    let cut: String = whole.lines().take(4).map(|line| format!("{line}\n")).collect();
    insta::assert_snapshot!(wrong("t.stg", &cut), @"
    cannot read a standard task graph from `t.stg`: one problem
    line 1, column 1: it says 3 tasks, and there are lines for 2 and one dummy task (5 lines are expected, with the dummy tasks at both ends)
    ");
    insta::assert_snapshot!(wrong("t.stg", &whole.replace("2 2 3", "2 3 3")), @"
    cannot read a standard task graph from `t.stg`: one problem
    line 6, column 9: the task waits for task 3 twice (name each task once; another one may be meant)
    ");
    // Without dummy tasks, or with dummy tasks that are counted.
    for text in ["2\n0 5 0\n1 6 1 0\n", "3\n0 0 0\n1 5 1 0\n2 0 1 1\n", whole] {
        assert!(parse("t.stg", text.to_owned(), None).is_ok(), "{text}");
    }
}

#[test]
fn a_workflow_has_its_files_and_run_times() {
    let Some(file) = reference_data("graphs/wfcommons/blast-60-seed1.json") else { return };
    let graph = read(&file).expect("wfcommons made it");
    assert_eq!(graph.name, "Blast-synthetic-instance");
    assert_eq!(graph.tasks.len(), 58);
    let first = &graph.tasks[0];
    assert_eq!(
        (first.name.as_deref(), graph.kind_of(first).name.as_str()),
        (Some("split_fasta_00000001"), "split_fasta")
    );
    assert_eq!(first.lengths.get(Arch::CPU), Some(Duration::from_millis(724)));
    assert_eq!(first.accesses.len(), 3);
    assert_eq!(graph.data[first.accesses[0].data.index()].bytes, 148_740);
    assert_eq!(graph.dependencies().successors(TaskId(0)).len(), 55);
    for other in ["epigenomics-60", "genome-60", "montage-60", "seismology-105"] {
        let file = reference_data(&format!("graphs/wfcommons/{other}-seed1.json")).expect("the others are beside it");
        assert!(read(&file).is_ok_and(|graph| graph.tasks.len() > 50));
    }
}

#[test]
fn a_file_that_its_writer_names_twice_is_written_before_it_is_read() {
    let text = r#"{ "workflow": { "specification": { "tasks": [
        { "id": "reads", "inputFiles": ["f"] }, { "id": "writes", "outputFiles": ["f", "g", "f"] } ],
        "files": [ { "id": "f", "sizeInBytes": 1 }, { "id": "g", "sizeInBytes": 1 } ] } } }"#;
    let graph = parse("t.json", text.to_owned(), None).expect("it is a workflow");
    assert_eq!(graph.tasks[1].name.as_deref(), Some("reads"));
    assert_eq!(graph.dependencies().predecessors(TaskId(1)), [TaskId(0)]);
}

#[test]
fn a_task_that_ran_a_script_is_of_the_kind_of_its_name() {
    let specified = ["a", "b", "c"].map(|id| format!(r#"{{ "id": "{id}", "name": "align" }}"#)).join(",");
    let programs = [("a", r"echo 1 > id.txt\n  align id.txt"), ("b", "-"), ("c", "sort")];
    let executed = programs.map(|(id, program)| {
        format!(r#"{{ "id": "{id}", "runtimeInSeconds": 1, "command": {{ "program": "{program}" }} }}"#)
    });
    let text = format!(
        r#"{{ "workflow": {{ "specification": {{ "tasks": [{specified}] }}, "execution": {{ "tasks": [{}] }} }} }}"#,
        executed.join(",")
    );
    let graph = parse("t.json", text, None).expect("it is a workflow");
    let kinds: Vec<&str> = graph.tasks.iter().map(|task| &*graph.kind_of(task).name).collect();
    assert_eq!(kinds, ["align", "align", "sort"]);
}

#[test]
fn a_task_may_replace_a_file_that_its_parent_reads() {
    let text = r#"{ "workflow": { "specification": { "tasks": [
        { "id": "replaces", "parents": ["reads"], "outputFiles": ["f"] }, { "id": "reads", "inputFiles": ["f"] } ],
        "files": [ { "id": "f", "sizeInBytes": 1 } ] } } }"#;
    let graph = parse("t.json", text.to_owned(), None).expect("it is a workflow");
    assert_eq!(graph.tasks[0].name.as_deref(), Some("reads"));
    assert_eq!(graph.dependencies().predecessors(TaskId(1)), [TaskId(0)]);
}

#[test]
fn a_workflow_without_a_list_of_files_has_files_without_a_size() {
    let text = r#"{ "workflow": { "specification": { "tasks": [ { "id": "a", "outputFiles": ["f"] } ] } } }"#;
    let (graph, warnings) = parsed("t.json", text.to_owned(), None).expect("it is a workflow");
    assert_eq!((graph.data.len(), graph.data[0].bytes), (1, 0));
    assert_eq!(warnings, ["t.json: there is no list of `files`: they are taken to be empty"]);
    assert!(
        wrong("t.json", &text.replace("} ] }", "} ], \"files\": [] }")).contains("there is no file `f` in `files`")
    );
}

#[test]
fn every_problem_of_a_workflow_is_told_with_its_line() {
    let text = r#"{ "name": 7, "workflow": { "specification": {
  "tasks": [
    { "id": "a", "parents": ["b1"], "children": ["c"], "outputFiles": ["f", "g"] },
    { "id": "b", "parents": "a", "children": [] },
    { "name": "no id" },
    { "id": "a", "children": [null] }
  ],
  "files": [ { "id": "f", "sizeInBytes": -4 }, { "id": "h", "size": 3 } ] },
  "execution": { "tasks": [ { "id": "a", "runtimeInSeconds": "fast" }, { "id": "z", "runtimeInSecond": 1 } ] }
} }"#;
    insta::assert_snapshot!(wrong("t.json", text), @"
    cannot read a WfFormat workflow from `t.json`: 14 problems
    line 1, column 11: `name` is the number `7`: a string is expected
    line 3, column 30: there is no task `b1`
    line 3, column 50: there is no task `c`
    line 3, column 77: there is no file `g` in `files`
    line 4, column 13: task `b` is not among those of `execution`, which say how long they took
    line 4, column 29: `parents` is not an array of strings, as is expected
    line 5, column 5: the object that begins here has no `id`
    line 6, column 13: task `a` is there already
    line 6, column 31: `children` has an element that is no string
    line 8, column 42: `sizeInBytes` is the number `-4`: a number of bytes, from 0 and below 9.2e18 is expected
    line 8, column 48: the object that begins here has no `sizeInBytes`
    line 9, column 62: `runtimeInSeconds` is the string `fast`: a number of seconds, from 0 and below 1.8e10 is expected
    line 9, column 72: the object that begins here has no `runtimeInSeconds` (is `runtimeInSecond` meant to be `runtimeInSeconds`?)
    line 9, column 80: there is no task `z`
    ");
    insta::assert_snapshot!(wrong("t.json", "{ \"workflow\": { \"specification\": [}"), @"
    cannot read a WfFormat workflow from `t.json`: one problem
    line 1, column 35: this is no JSON: Unexpected close brace
    ");
    insta::assert_snapshot!(wrong("t.json", "{\n\"workflow\": { \"jobs\": [] } }"), @"
    cannot read a WfFormat workflow from `t.json`: one problem
    line 2, column 15: this is WfFormat of a schema before 1.5 (schema 1.5 has `workflow.specification` and `workflow.execution` instead)
    ");
    let cycle = r#"{ "workflow": { "specification": { "tasks": [ { "id": "a", "parents": ["b"] }, { "id": "b", "parents": ["a"] } ] } } }"#;
    insta::assert_snapshot!(wrong("t.json", cycle), @"
    cannot read a WfFormat workflow from `t.json`: one problem
    line 1, column 55: task `a` waits for itself: `a` waits for `b` waits for `a`
    ");
}

#[test]
fn an_unknown_schema_of_a_workflow_is_a_warning() {
    let warnings = |version: &str| {
        let text =
            format!("{{ \"schemaVersion\": {version},\n\"workflow\": {{ \"specification\": {{ \"tasks\": [] }} }} }}");
        let (_, warnings) = parsed("w.json", text, None).expect("it is a workflow");
        warnings.join("\n")
    };
    assert_eq!((&*warnings("\"1.5\""), &*warnings("\"1.6\""), &*warnings("1.5")), ("", "", ""));
    insta::assert_snapshot!(warnings("\"9.9\""), @"w.json:1:20: `schemaVersion` is `9.9`, expected 1.5 or 1.6: members that those lack are ignored");
    assert!(warnings("{}").contains("w.json:1:20: `schemaVersion` is `{}`"), "{}", warnings("{}"));
}

#[test]
fn what_no_workflow_can_have_is_told() {
    let text = r#"{ "workflow": { "specification": { "tasks": [ { "id": "a" }, { "id": "b" } ],
  "files": [ { "id": "f", "sizeInBytes": 1e19 }, { "id": "g", "sizeInBytes": 9e18 } ] },
  "execution": { "tasks": [ { "id": "a", "runtimeInSeconds": 1e300 }, { "id": "b", "runtimeInSeconds": 1.8e10 },
    { "id": "b", "runtimeInSeconds": 2 } ] } } }"#;
    insta::assert_snapshot!(wrong("t.json", text), @r#"
cannot read a WfFormat workflow from `t.json`: 3 problems
line 2, column 42: `sizeInBytes` is the number `1e19`: a number of bytes, from 0 and below 9.2e18 is expected
line 3, column 62: `runtimeInSeconds` is the number `1e300`: a number of seconds, from 0 and below 1.8e10 is expected
line 4, column 13: the execution of task `b` is there already
"#);
}

#[test]
fn json_that_is_no_task_graph_is_in_no_known_format() {
    insta::assert_snapshot!(wrong("t.json", r#"{ "tasks": [], "edges": [] }"#), @r#"
    cannot read a task graph from `t.json`: one problem
    it is in no known format: it is a JSON object with `tasks`, `edges` (known are this program's format (*.json, with `"format": "sched-task-graph"`, as `sched graph --json` writes it), StarPU's tasks.rec (*.rec), WfFormat (*.json, with a member `workflow`) and the Standard Task Graph format (*.stg))
    "#);
    let problem = |text: &str| {
        let shown = wrong("t.json", text);
        shown.lines().nth(1).map_or(String::new(), |line| line.replace(super::KNOWN, "KNOWN"))
    };
    for (text, expected) in [
        ("", "there is nothing in it (KNOWN)"),
        (" \n", "there is nothing in it (KNOWN)"),
        ("{}", "it is in no known format: it is a JSON object without members (KNOWN)"),
        ("[1, 2]", "it is in no known format: it is an array in JSON (KNOWN)"),
        ("7", "it is in no known format: it is the number `7` in JSON (KNOWN)"),
        ("{", "line 1, column 1: this is no JSON: Unterminated object"),
    ] {
        assert_eq!(problem(text), expected, "{text}");
    }
    let many = r#"{ "a": 1, "b": 1, "c": 1, "d": 1, "e": 1, "f": 1 }"#;
    assert!(problem(many).contains("a JSON object with `a`, `b`, `c`, `d`, `e` and others ("), "{}", problem(many));
    for (format, expected) in
        [(FileFormat::Native, "`\"format\": \"sched-task-graph\"`"), (FileFormat::WfFormat, "`workflow`")]
    {
        let error = parse("t", String::new(), Some(format)).expect_err("it is empty");
        assert!(error.problems()[0].fix().is_some_and(|fix| fix.contains(expected)), "{error:?}");
    }
}

#[test]
fn a_deep_document_does_not_overflow_the_stack() {
    assert!(wrong("t.json", &format!("{{ \"workflow\": {}", "[".repeat(200_000))).contains("nesting"));
}

#[test]
fn what_is_in_no_format_is_told_so() {
    insta::assert_snapshot!(wrong("t.txt", "hello\n"), @r#"
    cannot read a task graph from `t.txt`: one problem
    it is in no known format (known are this program's format (*.json, with `"format": "sched-task-graph"`, as `sched graph --json` writes it), StarPU's tasks.rec (*.rec), WfFormat (*.json, with a member `workflow`) and the Standard Task Graph format (*.stg))
    "#);
    let shown = read(Path::new("/nowhere/graph.stg")).expect_err("there is no such file").to_string();
    assert!(shown.starts_with("cannot read a task graph from `/nowhere/graph.stg`"), "{shown}");
}

#[test]
fn the_format_is_seen_by_the_content_where_the_name_says_nothing() {
    for (text, format) in [
        ("# c\n\nJobId: 1\n", Some(FileFormat::TasksRec)),
        ("  12\n", Some(FileFormat::Stg)),
        (" {\"workflow\": 1}", Some(FileFormat::WfFormat)),
        (" {\"a\": 1}", None),
        (" {\"format\": \"sched-task-graph\"}", Some(FileFormat::Native)),
        ("plain words", None),
    ] {
        assert_eq!(FileFormat::guess("graph", text), format);
    }
    assert_eq!(FileFormat::guess("a.STG", "anything"), Some(FileFormat::Stg));
}

/// Text that is nearly of a format: words of it, shuffled.
fn nearly() -> impl Strategy<Value = String> {
    let words = [
        "JobId: 1\n",
        "\n",
        "DependsOn: 1 2\n",
        "Handles: a b\n",
        "Modes: R W\n",
        "Sizes: 1 2\n",
        "WorkerId: 0\n",
        "SubmitOrder: 2\n",
        "1 ",
        "0 ",
        "2 ",
        "{",
        "}",
        "[",
        "]",
        ",",
        ":",
        "\"id\"",
        "\"a\"",
        "\"workflow\"",
        "\"specification\"",
        "\"tasks\"",
        "-",
        "é",
        "\t",
    ];
    prop::collection::vec(prop::sample::select(words.to_vec()), 0..40).prop_map(|words| words.concat())
}

proptest! {
    #[test]
    fn no_text_makes_a_reader_panic(text in prop_oneof![any::<String>(), nearly()]) {
        for format in [FileFormat::Native, FileFormat::TasksRec, FileFormat::WfFormat, FileFormat::Stg] {
            match parse("file", text.clone(), Some(format)) {
                Ok(graph) => prop_assert!(graph.dependencies().n_tasks() == graph.tasks.len()),
                Err(error) => prop_assert!(!error.problems().is_empty()),
            }
        }
    }

    #[test]
    fn a_file_cut_anywhere_or_with_a_byte_changed_makes_no_reader_panic(at in any::<prop::sample::Index>(), byte in 32u8..127, cut in any::<bool>()) {
        let rec = "JobId: 1\nSubmitOrder: 1\nWorkerId: 0\nHandles: a b\nModes: R RW\nSizes: 8 9\n\nJobId: 2\nDependsOn: 1\n\n";
        let stg = "2\n0 0 0\n1 5 1 0\n2 6 1 1\n3 0 1 2\n";
        let wf = r#"{"workflow":{"specification":{"tasks":[{"id":"a","children":["b"],"outputFiles":["f"]},{"id":"b"}],"files":[{"id":"f","sizeInBytes":1}]},"execution":{"tasks":[{"id":"a","runtimeInSeconds":1},{"id":"b","runtimeInSeconds":2.5}]}}}"#;
        for (text, format) in [(rec, FileFormat::TasksRec), (stg, FileFormat::Stg), (wf, FileFormat::WfFormat)] {
            prop_assert!(parse("whole", text.to_owned(), Some(format)).is_ok());
            let at = at.index(text.len());
            let changed = if cut { text[..at].to_owned() } else { format!("{}{}{}", &text[..at], byte as char, &text[at + 1..]) };
            let _ = parse("changed", changed, Some(format));
        }
    }
}

#[test]
fn a_mark_that_an_editor_put_before_the_text_is_no_part_of_it() {
    let (sound, marked) = (b"1\n0 7 0\n".to_vec(), b"\xef\xbb\xbf1\r\n0 7 0\r\n".to_vec());
    let read = |bytes| from_bytes("a.stg", bytes).expect("it is one task");
    assert_eq!(read(marked), read(sound));
}

#[test]
fn names_cannot_steer_a_terminal() {
    let text = r#"{"name":"a\u001b[31m","workflow":{"specification":{"tasks":[{"id":"a","name":"k\u0007"}]}}}"#;
    let graph = parse("t.json", text.to_owned(), None).expect("it is one task");
    assert_eq!((&*graph.name, &*graph.kinds[0].name), ("a [31m", "k "));
}

#[test]
fn of_a_file_with_an_error_in_each_line_the_first_hundred_are_shown() {
    const LINES: usize = 200_000;
    let same_job = "JobId: 7\n\n".repeat(LINES);
    let error = parse("t.rec", same_job, None).expect_err("each job but the first is there already");
    assert_eq!((error.problems().len(), error.more()), (100, LINES - 101));
    assert_eq!(error.problems()[0].to_string(), "line 3, column 8: job `7` is there already, at line 1");
    assert_eq!(error.problems()[99].position(), Some((201, 8)));

    let rows: String = (0..LINES).map(|row| format!("{row} x 1 0\n")).collect();
    let error = parse("t.stg", format!("{LINES}\n{rows}"), None).expect_err("no length is a number");
    assert_eq!((error.problems().len(), error.more()), (100, LINES - 100));
}

#[test]
fn many_fields_and_many_unknown_kinds_are_looked_at_once_each() {
    const MANY: usize = 5_000;
    let fields: String =
        (0..20 * MANY).map(|field| format!("FieldOfALaterVersionOfTheFormatNumber{field}: 1\n")).collect();
    let graph = parse("t.rec", format!("JobId: 1\n{fields}\n"), None).expect("unknown fields are ignored");
    assert_eq!(graph.tasks.len(), 1);

    let kinds: Vec<String> = (0..MANY).map(|kind| format!("{{\"name\":\"kind {kind}\"}}")).collect();
    let tasks: Vec<String> = (0..MANY).map(|task| format!("{{\"kind\":\"other {task}\"}}")).collect();
    let text = format!(
        "{{\"format\":\"sched-task-graph\",\"version\":1,\"kinds\":[{}],\"tasks\":[{}]}}",
        kinds.join(","),
        tasks.join(",")
    );
    let error = parse("t.json", text, None).expect_err("no kind is known");
    assert_eq!(error.problems().len() + error.more(), MANY);
}

//! `sched plugin test`: what is wrong with the components of a plugin is found and named, and sound ones pass.

use sched_tests::fixtures::{Profile, plugin, stock_plugin};
use sched_tests::program::{Ran, sched};
use serde_json::Value;
use std::path::Path;

fn tested(file: &Path, options: &[&str]) -> Ran {
    let file = file.to_str().expect("its name is text");
    sched(&[&["plugin", "test", file, "--sequences", "150"], options].concat())
}

/// The report on each component, by name.
fn components(ran: &Ran) -> Vec<(String, Value)> {
    let report: Value = serde_json::from_str(&ran.out).unwrap_or_else(|error| panic!("{error}: {ran:?}"));
    assert_eq!(report["ok"] == true, ran.code == 0, "{ran:?}");
    let components = report["components"].as_array().expect("a list").iter();
    components.map(|row| (row["component"].as_str().expect("a name").to_owned(), row.clone())).collect()
}

/// The names of the properties with a finding.
fn found(component: &Value) -> Vec<&str> {
    let properties = component["properties"].as_array().expect("a list").iter();
    properties.filter(|row| row["ok"] == false).filter_map(|row| row["property"].as_str()).collect()
}

/// The calls of the finding about a property.
fn calls<'a>(component: &'a Value, property: &str) -> Vec<&'a str> {
    let properties = component["properties"].as_array().expect("a list").iter();
    let row = properties.into_iter().find(|row| row["property"] == property).expect("it is examined");
    row["finding"]["calls"].as_array().expect("a list").iter().filter_map(Value::as_str).collect()
}

#[test]
fn every_misbehaving_component_is_found_and_named() {
    let ran = tested(&plugin("misbehaving"), &["--json"]);
    assert_eq!((ran.code, &*ran.err), (1, ""), "{ran:?}");
    let components = components(&ran);
    let expected = [
        ("panics-in-push", "panics"),
        ("panics-in-pull", "panics"),
        ("panics-in-can-push", "panics"),
        ("panics-in-can-pull", "panics"),
        ("panics-in-estimates", "panics"),
        ("drops-tasks", "tasks"),
        ("leaks-tasks", "drain"),
        ("hoarder", "flow"),
        ("refuser", "storage"),
        ("deep", "flow"),
        ("talkative", "log"),
        ("verbose", "log"),
        ("lies-of-storage", "storage"),
        ("lies-of-bounds", "storage"),
        ("lies-of-refusals", "storage"),
        ("lies-of-pushes", "forwards-push"),
        ("lies-of-pulls", "forwards-pull"),
        ("lies-of-emptiness", "empty-until-pushed"),
        ("lies-of-ends", "end-is-noted"),
        ("lies-of-pumping", "pulled-only"),
        ("lies-of-waking", "wakes-workers"),
        ("lies-of-sorting", "pushes-on-pull"),
    ];
    // It does so only with a text for a parameter that the examination cannot guess.
    let components: Vec<_> = components.into_iter().filter(|(name, _)| name != "sticks").collect();
    let names: Vec<&str> = components.iter().map(|(name, _)| &**name).collect();
    assert_eq!(names, expected.map(|(name, _)| name));
    for ((name, property), (_, component)) in expected.iter().zip(&components) {
        assert!(found(component).contains(property), "{name}: {:?}", found(component));
        let calls = calls(component, property);
        assert!((1..=14).contains(&calls.len()), "{name}: the sequence is short: {calls:?}");
    }
    let deep = &components.iter().find(|(name, _)| name == "deep").expect("it is there").1;
    let nested = deep["policies"].as_array().expect("a list").iter();
    let problems: Vec<&str> = nested.filter_map(|row| row["simulation"]["problem"].as_str()).collect();
    assert!(problems.iter().any(|problem| problem.contains("cycle")), "one in the other: {problems:?}");
}

#[test]
fn lies_hangs_and_crashes_are_found_and_named() {
    let ran = tested(&plugin("dishonest"), &["--json", "--patience", "1"]);
    assert_eq!((ran.code, &*ran.err), (1, ""), "{ran:?}");
    let expected = [
        ("says-it-forwards", "forwards-pull"),
        ("says-it-is-pulled", "pulled-only"),
        ("says-it-notes", "end-is-noted"),
        ("says-it-is-empty", "storage"),
        ("refuses-another", "refusals"),
        ("names-an-absent-child", "neighbours"),
        ("has-no-number", "estimates"),
        ("is-mute", "wakes"),
        ("hangs-when-notified", "returns"),
        ("aborts-when-notified", "returns"),
        ("chooses-blindly", "predictions"),
    ];
    let components = components(&ran);
    assert_eq!(components.len(), expected.len());
    for ((name, property), (named, component)) in expected.iter().zip(&components) {
        assert_eq!((name, found(component)), (&&**named, vec![*property]), "{component}");
        let calls = calls(component, property);
        match *property {
            "returns" => assert_eq!(calls.last(), Some(&"notify_change_workers"), "{name}"),
            _ => assert!((1..=4).contains(&calls.len()), "{name}: the sequence is short: {calls:?}"),
        }
    }
    let said = |name: &str| {
        let component = &components.iter().find(|(named, _)| named == name).expect("it is there").1;
        let rows = component["properties"].as_array().expect("a list").iter();
        rows.filter_map(|row| row["finding"]["message"].as_str()).collect::<Vec<_>>().join(" ")
    };
    assert!(said("hangs-when-notified").contains("did not come back within 1s"), "{}", said("hangs-when-notified"));
    assert!(said("aborts-when-notified").contains("signal 6 (SIGABRT"), "{}", said("aborts-when-notified"));
}

#[test]
fn sound_plugins_pass() {
    for family in ["example-lifo", "flow-control", "worker", "special-purpose", "resource-mapping"] {
        let ran = tested(&stock_plugin(&format!("sched-plugin-{family}"), Profile::Debug), &[]);
        assert_eq!((ran.code, &*ran.err), (0, ""), "{family}: {}", ran.out);
        assert!(ran.out.trim_end().ends_with(": ok"), "{family}: {}", ran.out);
    }
}

#[test]
fn the_report_has_a_line_for_each_property() {
    let file = plugin("misbehaving");
    let ran = tested(&file, &["--component", "drops-tasks"]);
    let shown = ran.out.replace(file.to_str().expect("its name is text"), "FILE");
    insta::assert_snapshot!(shown, @r#"
    FILE: misbehaving 0.1.0

    drops-tasks (flow-control)
      ok       builds              it is built from its default parameters
      ok       returns             every call comes back, and none ends the process
      ok       panics              no call panics
      ok       locks               no lock is held across a hop
      FINDING  tasks               no task is dropped, made up or given away twice
                 the component dropped task 0: it must keep a task, hand it on or hand it back
                 workers: cpu; child 0
                   1. push task 0: taken
      ok       refusals            a refusal hands back the task that was pushed
      ok       room                where it reports that it has no room, it refuses tasks, and holds some if it can
      ok       neighbours          the children and parents that it names exist
      ok       able                a worker gets tasks that it can execute
      ok       drain               a drain gives up every task, after whatever calls
      ok       storage             it stores and refuses tasks as declared
      ok       wakes               work that waits wakes a worker
      ok       flow                tasks come, and go to workers that pull and children that have room
      ok       estimates           ends and loads are usable, and asking for them moves nothing
      ok       repeats             the same calls have the same results
      ok       log                 warnings are few, and lines are plain text
      ok       threads             calls from several threads lose no task
      FINDING  run                 drops-tasks { eager { each "worker" { worker } } }
                 node `drops-tasks`: dropped
      FINDING  simulate            drops-tasks { eager { each "worker" { worker } } }
                 node `drops-tasks`: dropped
      ok       run                 fifo { eager { each "worker" { drops-tasks { worker } } } }
      slow     simulate            fifo { eager { each "worker" { drops-tasks { worker } } } }: 4.33 times the time of fifo
      FINDING  run                 drops-tasks { drops-tasks { eager { each "worker" { worker } } } }
                 node `drops-tasks`: dropped
      FINDING  simulate            drops-tasks { drops-tasks { eager { each "worker" { worker } } } }
                 node `drops-tasks`: dropped

    1 component, 150 sequences each, seed 42: 1 with findings
    "#);
    assert_eq!((ran.code, &*ran.err), (1, ""));
    let again = tested(&file, &["--component", "drops-tasks"]);
    assert_eq!(again.out, ran.out, "the same seed finds the same");
}

#[test]
fn what_cannot_be_tested_is_an_error_with_the_fix() {
    let wrong = tested(&plugin("misbehaving"), &["--component", "hoader"]);
    assert_eq!((wrong.code, &*wrong.out), (1, ""));
    assert!(wrong.says("has no component `hoader`") && wrong.says("did you mean `hoarder`?"), "{wrong:?}");
    let driver = stock_plugin("sched-plugin-driver-fake", Profile::Debug);
    for options in [&[][..], &["--component", "fifo"]] {
        let driver = tested(&driver, options);
        assert!(driver.code == 1 && driver.says("has no components: it is the device driver `fake`"), "{driver:?}");
    }
    let other = tested(&plugin("not-a-plugin"), &["--json"]);
    let error: Value = serde_json::from_str(&other.err).expect("an error is a line of JSON");
    let message = error["error"]["message"].as_str().unwrap_or_default();
    assert!(other.code == 1 && message.starts_with("a plugin is not loaded: "), "{other:?}");
    assert!(error["error"]["help"].is_string(), "{error}");
    let ill = tested(&plugin("ill-described"), &["--json"]);
    let rows = components(&ill);
    let described = rows.iter().any(|(_, row)| row["description"].as_array().is_some_and(|list| !list.is_empty()));
    assert!(ill.code == 1 && described, "{ill:?}");
    let aborts = tested(&plugin("aborts-in-build"), &[]);
    assert!(aborts.code == 1 && aborts.says("SIGABRT"), "{aborts:?}");
}

#[test]
fn a_parameter_shows_what_only_it_makes_a_component_do() {
    let file = plugin("misbehaving");
    let with = |param: &str| tested(&file, &["--component", "sticks", "--param", param, "--json", "--patience", "0.5"]);
    let ran = with("in=can_push");
    let components = components(&ran);
    assert_eq!((ran.code, found(&components[0].1)), (1, vec!["returns"]), "{ran:?}");
    let calls = calls(&components[0].1, "returns");
    assert!(calls.last().is_some_and(|call| call.starts_with("can_push")), "{calls:?}");
    let ran = with("in=exit task_ended");
    let row = &self::components(&ran)[0].1;
    let problem = row["policies"][0]["run"]["problem"].as_str().unwrap_or_default();
    assert!(ran.code == 1 && problem.contains("ended the process") && problem.contains("`task_ended`"), "{ran:?}");
    let unknown = with("of=can_push");
    assert!(unknown.code == 1 && unknown.says("no examined component has a parameter `of`"), "{unknown:?}");
    let wrong = tested(&file, &["--component", "panics-in-push", "--param", "after=soon"]);
    assert!(wrong.says("`after` of component `panics-in-push` is `soon`"), "{wrong:?}");
    assert!(wrong.code == 1 && wrong.says("expected a whole number"), "{wrong:?}");
}

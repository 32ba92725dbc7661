//! Components in C: they are loaded, run, simulated and examined like others, and what they do wrong is named.

use sched_core::rig::{Examination, Property};
use sched_core::{Arch, Params};
use sched_host::context::SchedContext;
use sched_host::graph::generate::cholesky;
use sched_host::plugin::Registry;
use sched_host::runtime::{ReadWrite, Runtime};
use sched_host::sim::platform::find;
use sched_host::sim::{SimOutcome, Simulation};
use sched_host::tree::Fault;
use sched_test_support::has_compiler;
use sched_tests::chains::submit_chains;
use sched_tests::hold::Hold;
use sched_tests::in_c::{folder_of, with_stock};
use sched_tests::plugin_folder::{PLAIN, listing, load};
use sched_tests::program::sched;
use sched_tests::stock::{self, EAGER};
use std::sync::Arc;
use std::time::Duration;

const EXAMPLE: (&str, &str, &[&str]) = ("lifo", "sched-core/examples/c/lifo.c", &[]);
const MISBEHAVING: (&str, &str, &[&str]) = ("misbehaving", "tests/fixtures/c/misbehaving.c", &[]);

fn runtime(tree: &str, registry: &Arc<Registry>) -> Runtime {
    let builder = stock::builder(tree, 2, Vec::new()).registry(Arc::clone(registry));
    builder.build().unwrap_or_else(|error| panic!("{tree}: {error}"))
}

fn simulate(tree: &str, registry: &Arc<Registry>) -> SimOutcome {
    let platform = find("cpu9-gpu3").expect("it is shipped");
    let simulation = Simulation::new(cholesky(5, 960), platform).registry(Arc::clone(registry));
    let outcome = simulation.policy_value(stock::policy(tree)).run();
    outcome.unwrap_or_else(|error| panic!("{tree}: {error}"))
}

#[test]
fn the_example_runs_is_simulated_and_gives_up_its_tasks() {
    if !has_compiler() {
        return;
    }
    let folder = folder_of(&[EXAMPLE]);
    let registry = with_stock(folder.path());
    let tree = "lifo-in-c { eager { each \"worker\" { worker } } }";
    let runtime = runtime(tree, &registry);
    // So that there are tasks to drain.
    let hold = Hold::new(&runtime);
    let held = [hold.worker(), hold.worker()];
    let runs = submit_chains(&runtime, 200);
    let facts = runtime.survey().into_iter().find(|node| node.component == "lifo-in-c").expect("it is there").facts;
    assert_eq!(facts, [("tasks".to_owned(), "7".to_owned())], "one of each chain is ready");
    runtime.default_context().swap_policy_value(stock::policy(EAGER)).expect("the policy is sound");
    drop(held);
    runtime.default_context().swap_policy_value(stock::policy(tree)).expect("the policy is sound");
    runtime.wait_all().unwrap_or_else(|end| panic!("{end}"));
    runs.assert_once(tree);
    assert_eq!(runtime.faults(), []);

    let outcome = simulate(tree, &registry);
    assert_eq!((outcome.tasks, outcome.faults), (35, vec![]));
}

#[test]
fn the_example_is_listed_and_passes_the_examination() {
    if !has_compiler() {
        return;
    }
    let folder = folder_of(&[EXAMPLE]);
    insta::assert_snapshot!(listing(&PLAIN, &load(folder.path()), folder.path()), @"
    DIR (--plugin-dir)
      lifo.so: lifo-in-c 0.1.0, interface 1.1
        lifo-in-c (flow-control, one child): Gives back the task that was pushed last.

    1 component from 1 plugin
    ");
    let file = folder.path().join("lifo.so");
    let ran = sched(&["plugin", "test", file.to_str().expect("text"), "--sequences", "150"]);
    assert!(ran.code == 0 && ran.out.trim_end().ends_with(": ok"), "{ran:?}");
}

const NOT_HELD: &str = "`pull_task` gave a task that the component does not hold";

/// Components, the trees that they stand in, and what is said of them.
const CASES: [(&str, &str, &str); 8] = [
    ("gives-another", "IT { eager { EACH } }", NOT_HELD),
    ("gives-twice", "IT { eager { EACH } }", "a task that the component does not hold"),
    ("pushes-another", "IT { eager { EACH } }", "it pushed a task that it does not hold"),
    (
        "refuses-what-is-gone",
        "fifo { IT { fifo { eager { EACH } } } }",
        "`push_task` refused a task that the component had given away",
    ),
    ("reads-another", "IT { eager { EACH } }", "`task_get` was called with a task that the component does not hold"),
    ("gives-too-soon", "IT { eager { EACH } }", "`give` was called outside of `drain`"),
    ("fails", "IT { eager { EACH } }", "it ran out of ideas"),
    ("asks-nonsense", "IT { eager { EACH } }", ""),
];

fn assert_named(faults: &[Fault], name: &str, says: &str) {
    let said: Vec<String> = faults.iter().map(ToString::to_string).collect();
    match says {
        "" => assert!(said.is_empty(), "{name}: {said:?}"),
        _ => {
            assert!(said.iter().any(|line| line.contains(says)), "{name}: {said:?}");
            assert!(said.iter().all(|line| line.contains(&format!("component `{name}` of "))), "{name}: {said:?}");
        }
    }
}

#[test]
fn what_a_component_does_wrong_is_named_and_every_task_runs_once() {
    if !has_compiler() {
        return;
    }
    let folder = folder_of(&[MISBEHAVING]);
    let registry = with_stock(folder.path());
    for (name, tree, says) in CASES {
        let tree = tree.replace("IT", name).replace("EACH", "each \"worker\" { worker }");
        let runtime = runtime(&tree, &registry);
        let runs = submit_chains(&runtime, 100);
        runtime.wait_all().unwrap_or_else(|end| panic!("{tree}: {end}"));
        runs.assert_once(&tree);
        assert_named(&runtime.faults(), name, says);
        let outcome = simulate(&tree, &registry);
        assert_eq!(outcome.tasks, 35, "{tree}");
        assert_named(&outcome.faults, name, says);
    }
    let runtime = runtime("keeps-all { eager { each \"worker\" { worker } } }", &registry);
    let hold = Hold::new(&runtime);
    let held = [hold.worker(), hold.worker()];
    let runs = submit_chains(&runtime, 100);
    runtime.default_context().swap_policy_value(stock::policy(EAGER)).expect("the policy is sound");
    drop(held);
    runtime.wait_all().unwrap_or_else(|end| panic!("{end}"));
    runs.assert_once("keeps-all");
    assert_named(&runtime.faults(), "keeps-all", "`drain` kept 7 tasks, which were taken back from it");
}

#[test]
fn the_examination_finds_what_a_component_does_wrong() {
    if !has_compiler() {
        return;
    }
    let folder = folder_of(&[MISBEHAVING]);
    let registry = load(folder.path());
    for component in registry.components() {
        let make = |params: &Params| component.build(params).map_err(|error| error.to_string());
        let findings = Examination::new(component.info(), &make).rounds(100).run();
        let found: Vec<Property> = findings.iter().map(|finding| finding.property).collect();
        let name = &*component.info().name;
        let expected = match name {
            "keeps-all" => vec![Property::Drain],
            "asks-nonsense" => vec![],
            // It is no queue, although it says so.
            "refuses-what-is-gone" => vec![Property::Panics, Property::Storage],
            _ => vec![Property::Panics],
        };
        assert_eq!(found, expected, "{name}: {findings:?}");
        let says = CASES.iter().find(|(case, _, _)| *case == name).map_or("", |(_, _, says)| says);
        assert!(findings.is_empty() || findings[0].message.contains(says), "{name}: {findings:?}");
    }
}

#[test]
fn what_cannot_be_used_is_a_line() {
    if !has_compiler() {
        return;
    }
    let source = "tests/fixtures/c/broken.c";
    let folder = folder_of(&[
        ("a-function", source, &["-DFIELDS=.push_task=NULL"]),
        ("b-drain", source, &["-DFIELDS=.push_task=push_task,.flags=MSCHED_STORES", "-Wno-override-init"]),
        ("c-zero", source, &["-DSIZE=0"]),
        ("d-short", source, &["-DSIZE=offsetof(msched_component,push_task)"]),
        ("e-odd", source, &["-DSIZE=sizeof(msched_component)+1"]),
        ("f-null", source, &["-DTABLE=NULL"]),
        ("g-family", source, &["-DFIELDS=.push_task=push_task,.family=9", "-Wno-override-init"]),
        ("h-wild", source, &["-DFIELDS=.push_task=push_task,.doc=(const char*)8", "-Wno-override-init"]),
        ("i-layout", source, &["-Dreserved=reserved[3]"]),
        ("j-tables", source, &["-DNO_TABLES"]),
        ("k-thread-end", source, &["-DTHREAD_END"]),
        ("l-process-end", source, &["-DPROCESS_END"]),
        ("m-slots", source, &["-DFIELDS=.push_task=push_task,.arity=MSCHED_SLOTS"]),
        ("n-leaf", source, &["-DFIELDS=.push_task=push_task,.arity=MSCHED_LEAF"]),
    ]);
    insta::assert_snapshot!(listing(&PLAIN, &load(folder.path()), folder.path()), @"
    DIR (--plugin-dir)
      a-function.so: rejected: component `broken` has no function `push_task`
        fix: ask its author, or update this host if the plugin is newer
      b-drain.so: rejected: component `broken` stores tasks, and has no function `drain`
        fix: ask its author, or update this host if the plugin is newer
      c-zero.so: rejected: component 1 says that its table has 0 bytes, expected 192: `sizeof(msched_component)`
        fix: ask its author, or update this host if the plugin is newer
      d-short.so: rejected: component 1 says that its table has 80 bytes, expected 192: `sizeof(msched_component)`
        fix: ask its author, or update this host if the plugin is newer
      e-odd.so: rejected: component 1 says that its table has 193 bytes, expected 192: `sizeof(msched_component)`
        fix: ask its author, or update this host if the plugin is newer
      f-null.so: rejected: component 1 is null
        fix: ask its author, or update this host if the plugin is newer
      g-family.so: rejected: component `broken` has family 9, expected 1 to 4
        fix: ask its author, or update this host if the plugin is newer
      h-wild.so: rejected: it is damaged, or fails on its own: it ends the process by SIGSEGV (a wrong address)
        fix: build it again, or copy it again; if that does not help, ask its author
      i-layout.so: rejected: its tables of functions have another layout than those of `msched.h`
        fix: compile it with the `msched.h` of this host, and without options that pack structures
      j-tables.so: rejected: it has a stamp of `msched.h` and no `SCHED_C_PLUGIN`
        fix: build it with `MSCHED_PLUGIN` of `msched.h`
      k-thread-end.so: rejected: it is damaged, or fails on its own: it ends the process by SIGABRT (it gave up)
        fix: build it again, or copy it again; if that does not help, ask its author
      l-process-end.so: rejected: it is damaged, or fails on its own: it ends the process by SIGABRT (it gave up)
        fix: build it again, or copy it again; if that does not help, ask its author
      m-slots.so: broken 0.1.0, interface 1.1
        broken (special-purpose, a child for each slot): Cannot be used.
          rejected: DIR/m-slots.so describes component `broken` badly: it has a child for each slot, and no slots
            fix: ask the author of the component to fix its `Info`
      n-leaf.so: broken 0.1.0, interface 1.1
        broken (special-purpose, no children): Cannot be used.
          rejected: DIR/n-leaf.so describes component `broken` badly: it is of the special-purpose family and takes no children, as components of the worker family alone do
            fix: ask the author of the component to fix its `Info`

    0 components from 2 plugins; 12 files rejected
    ");
}

/// What a component of this name says of itself after some tasks, each with a datum and a length of 3 ms.
fn heard(name: &str, registry: &Arc<Registry>) -> Vec<String> {
    let tree = format!("{name} order=\"length\" {{ fifo {{ eager {{ each \"worker\" {{ worker }} }} }} }}");
    let runtime = stock::builder(&tree, 2, Vec::new()).registry(Arc::clone(registry)).build().expect("it is sound");
    let codelet = runtime.codelet::<(ReadWrite<u32>,), ()>("add").cpu("add", |_, (number,)| *number += 1);
    let codelet = codelet.estimate(Arch::CPU, Duration::from_millis(3)).build();
    let number = runtime.register(0u32);
    for _ in 0..20 {
        runtime.task(&codelet, (&number,)).submit().expect("the task is sound");
    }
    runtime.wait_all().expect("every task runs");
    assert_eq!(*runtime.read(&number).expect("it is there"), 20);
    assert_eq!(runtime.faults(), []);
    let node = runtime.survey().into_iter().find(|node| node.component == name).expect("it is there");
    node.facts.iter().map(|(fact, value)| format!("{fact}: {value}")).collect()
}

#[test]
fn a_component_in_c_hears_of_tasks_and_sees_those_to_come() {
    if !has_compiler() {
        return;
    }
    let folder = folder_of(&[("hears", "tests/fixtures/c/hears.c", &[])]);
    let registry = with_stock(folder.path());
    let facts = heard("hears", &registry);
    assert_eq!(facts[..4], ["started: 20", "ended: 20", "able: 2", "length: 3"]);
    assert_eq!(facts[5..], ["accesses: 1", "writes: 1"]);
    assert_eq!(
        heard("deaf", &registry),
        Vec::<String>::new(),
        "functions that its header does not know are not called"
    );
    for name in ["hears", "deaf"] {
        let outcome = simulate(&format!("{name} {{ fifo {{ eager {{ each \"worker\" {{ worker }} }} }} }}"), &registry);
        assert_eq!((outcome.tasks, outcome.faults), (35, vec![]));
    }
    let wrong = stock::builder("hears order=\"size\" { fifo { worker } }", 1, Vec::new()).registry(registry).build();
    let error = wrong.err().map(|error| format!("{error:?}")).expect("it is no choice");
    assert!(error.contains("cannot be"), "{error}");
}

/// What a component of this name says of itself in a context.
fn known(context: &SchedContext, name: &str) -> Vec<String> {
    let node = context.survey().into_iter().find(|node| node.component == name).expect("it is there");
    node.facts.iter().map(|(fact, value)| format!("{fact}: {value}")).collect()
}

#[test]
fn a_component_in_c_knows_what_stands_around_it_and_hands_on_what_it_has_learnt() {
    if !has_compiler() {
        return;
    }
    let folder = folder_of(&[("knows", "tests/fixtures/c/knows.c", &[])]);
    let registry = with_stock(folder.path());
    let runtime = runtime(EAGER, &registry);
    let leaf = "shared \"leaf\" each=\"worker\" { worker }";
    let queues = "each \"worker\" { fifo ntasks-threshold=2 { use \"leaf\" } }";
    let tree = |name: &str, rest: &str| format!("{leaf}; fifo {{ {name} {{ {queues}; {rest} }} }}");
    let slot = "rest { fifo ntasks-threshold=2 { eager { use \"leaf\" } } }";
    let context = runtime.context("living").policy_value(stock::policy(&tree("knows", slot))).user_data("attached");
    let context = context.build().expect("the policy is sound");
    let run = || {
        let runs = context.with(|| submit_chains(&runtime, 20));
        runtime.wait_all().unwrap_or_else(|end| panic!("{end}"));
        runs.assert_once("knows");
    };
    run();
    let around = |rest: &str| {
        [
            "child: fifo (4), family 1".to_owned(),
            "parent: fifo, family 1".to_owned(),
            "nobody: \"\" (0), family 1".to_owned(),
            "context: liv of 6".to_owned(),
            "data: attached of 8".to_owned(),
            format!("rest: {rest}"),
        ]
    };
    assert_eq!(known(&context, "knows")[1..], around("present"));
    // A slot may be left out; the next instance gets what the last one leaves.
    let pushed = |at: usize| known(&context, "knows")[0].split([' ', ',']).nth(at).map(str::to_owned);
    let before = pushed(1).expect("it says so");
    context.swap_policy_value(stock::policy(&tree("knows", ""))).expect("the slot is optional");
    assert_eq!(known(&context, "knows")[1..], around("absent"));
    assert_eq!(known(&context, "knows")[0], format!("pushed: 0, after {before}"));
    run();
    // What an older header does not have is not called.
    context.swap_policy_value(stock::policy(&tree("forgets", ""))).expect("the policy is sound");
    run();
    context.swap_policy_value(stock::policy(&tree("forgets", ""))).expect("the policy is sound");
    assert_eq!(runtime.faults(), []);
    let outcome = simulate(&tree("knows", slot), &registry);
    assert_eq!((outcome.tasks, outcome.faults), (35, vec![]));
    let early = "leaves-early { fifo { eager { each \"worker\" { worker } } } }";
    assert_named(&simulate(early, &registry).faults, "leaves-early", "`leave` was called outside of `export_state`");
}

#[test]
fn headers_and_hosts_of_different_ages_go_together() {
    if !has_compiler() {
        return;
    }
    let folder = folder_of(&[("ages", "tests/fixtures/c/ages.c", &[])]);
    let registry = with_stock(folder.path());
    for name in ["older", "newer"] {
        // `mct` asks for ends, which the older one does not know of.
        let queues = "each \"worker\" { fifo ntasks-threshold=2 { use \"leaf\" } }";
        let tree = format!(
            "shared \"leaf\" each=\"worker\" {{ worker }}; fifo {{ perfmodel-select {{
                perfmodel {{ mct {{ each \"worker\" {{ {name} {{ fifo ntasks-threshold=2 {{ use \"leaf\" }} }} }} }} }}
                calibrator {{ eager {{ {queues} }} }}
                no-perfmodel {{ eager {{ {queues} }} }}
            }} }}"
        );
        let runtime = runtime(&tree, &registry);
        let runs = submit_chains(&runtime, 100);
        runtime.wait_all().unwrap_or_else(|end| panic!("{tree}: {end}"));
        runs.assert_once(&tree);
        let node = runtime.survey().into_iter().find(|node| node.component == name).expect("it is there");
        let facts: Vec<_> = node.facts.iter().map(|(fact, value)| format!("{fact}: {value}")).collect();
        assert_eq!(facts, if name == "older" { vec![] } else { vec!["later: absent", "log: offered"] });
        assert_eq!(runtime.faults(), []);
        let outcome = simulate(&tree, &registry);
        assert_eq!((outcome.tasks, outcome.faults), (35, vec![]), "{tree}");
    }
}

#[test]
fn a_queue_in_c_says_that_it_is_full_and_is_not_called_then() {
    if !has_compiler() {
        return;
    }
    let folder = folder_of(&[("rooms", "tests/fixtures/c/rooms.c", &[])]);
    let registry = with_stock(folder.path());
    for mapper in ["eager", "where-room-is"] {
        let tree = format!("fifo {{ {mapper} {{ each \"worker\" {{ one {{ worker }} }} }} }}");
        // All happens in this thread, so that no push is under way while another queue becomes full.
        let alone = stock::builder(&tree, 1, Vec::new()).registry(Arc::clone(&registry)).main_worker();
        let alone = alone.build().unwrap_or_else(|error| panic!("{tree}: {error}"));
        let runs = submit_chains(&alone, 1_000);
        alone.wait_all().unwrap_or_else(|end| panic!("{tree}: {end}"));
        runs.assert_once(&tree);
        assert_eq!(alone.faults(), []);
        let queue = alone.survey().into_iter().find(|node| node.component == "one").expect("it is there");
        let refused: u32 = queue.facts[0].1.parse().expect("it is a number");
        // It is called while it is on trial.
        assert!((1..=64).contains(&refused), "{mapper}: {refused}");

        let together = runtime(&tree, &registry);
        let runs = submit_chains(&together, 1_000);
        together.wait_all().unwrap_or_else(|end| panic!("{tree}: {end}"));
        runs.assert_once(&tree);
        assert_eq!(together.faults(), []);
        let outcome = simulate(&tree, &registry);
        assert_eq!((outcome.tasks, outcome.faults), (35, vec![]));
    }
    let file = folder.path().join("rooms.so");
    let ran = sched(&["plugin", "test", file.to_str().expect("text"), "--sequences", "150"]);
    assert!(ran.code == 0, "{ran:?}");
}

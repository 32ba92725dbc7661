//! Plugins of every age and build in hosts of every age.

use sched_core::{Arity, Component, LogLevel, Node, Params, Push, Refusal, Refused, Task, WorkerId, WorkerSet, adapt};
use sched_host::plugin::{FileState, Registry};
use sched_host::tree::{Claims, Ledger, NodeId, Part, Tree, Unplaced, WorkerFacts};
use sched_tests::fake_services::{FakeServices, Request};
use sched_tests::fixtures::{self, Profile, stock_plugin};
use sched_tests::plugin_folder::{LIFO, fixture_folder, folder_of, load};
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

/// The leaf of a worker, which only asks further up.
struct Leaf;

impl Component for Leaf {
    fn push_task(&self, _node: Node<'_>, task: Task) -> Push {
        Err(Refused::new(task, Refusal::PullInstead))
    }
}

/// Pushes tasks 0 to 3 into a tree of the registry's only component above one worker, and pulls them back. Gives their
/// order, and what the tree asked of its back end.
fn order(registry: &Registry) -> (Vec<u64>, Vec<Request>) {
    let registered = registry.components().next().unwrap();
    let part = |component, name: &str, children| Part {
        component: Unplaced::new(component, None),
        name: name.to_owned(),
        plugin: registered.plugin().to_string(),
        params: Params::default(),
        path: name.to_owned(),
        object: String::new(),
        children,
        workers: WorkerSet::first(1),
        workers_in_context: WorkerSet::first(1),
        sharing: None,
        worker: None,
        claims: Claims::from(registered.info()),
        attended: true,
    };
    let root =
        part(registered.build(&Params::default()).unwrap(), &registered.info().name, vec![(NodeId(1), String::new())]);
    let leaf = Part { worker: Some(WorkerId(0)), ..part(adapt(Leaf), "worker", Vec::new()) };
    let (services, ledger) = (Arc::new(FakeServices::new(1)), Arc::new(Ledger::new()));
    let tree = Tree::assemble(vec![root, leaf], &[WorkerFacts::CPU], services.clone(), Arc::clone(&ledger), 0);
    for (sequence, slot) in ledger.grow().iter().take(4).enumerate() {
        slot.head().sequence.store(sequence as u64, Relaxed);
        slot.head().archs.store(1, Relaxed);
        tree.push(slot, None, None);
    }
    let pulled = std::iter::from_fn(|| tree.pull(WorkerId(0))).map(|slot| slot.head().sequence.load(Relaxed)).collect();
    assert_eq!(tree.faults(), []);
    (pulled, services.take_requests())
}

#[test]
fn a_plugin_from_before_works_in_this_host() {
    let folder = fixture_folder(&["from-1-0"]);
    let registry = load(folder.path());
    let FileState::Loaded(plugin) = &registry.files()[0].state else { panic!("{:?}", registry.files()) };
    assert_eq!(plugin.abi, (1, 0));
    assert_eq!(order(&registry), (vec![3, 2, 1, 0], vec![]));
}

#[test]
fn a_plugin_of_today_uses_what_this_host_adds() {
    let folder = fixture_folder(&["uses-log"]);
    let (pulled, log) = order(&load(folder.path()));
    assert_eq!(pulled, [3, 2, 1, 0]);
    let (node, line) = ("uses-log".to_owned(), "task 0 came".to_owned());
    assert_eq!(log[0], Request::Log { node, level: LogLevel::Info, line });
    assert_eq!(log.len(), 4);
}

#[test]
fn debug_and_release_builds_go_together() {
    for profile in [Profile::Debug, Profile::Release] {
        let folder = folder_of([("lifo.so", stock_plugin(LIFO, profile))]);
        assert_eq!(order(&load(folder.path())).0, [3, 2, 1, 0], "{profile:?}");
    }
}

#[test]
fn newer_declarations_are_used_here_and_make_a_line_or_nothing_in_a_host_from_before() {
    let plugin = fixtures::plugin("declares");
    // Without the rules that later versions added, and without the calls.
    insta::assert_snapshot!(in_old_host(Profile::Debug, &plugin), @"
    host 1.0
    plugin declares 0.1.0, interface 1.1
    component beside
      share: a number from 0 to 1
      order: a text
    push 0: taken
    push 1: taken
    push 2: taken
    push 3: taken
    pull: 3
    pull: 2
    pull: 1
    pull: 0
    component optional
      slots rest
      share: a number from 0 to 1
      order: a text
    push 0: taken
    push 1: taken
    push 2: taken
    push 3: taken
    pull: 3
    pull: 2
    pull: 1
    pull: 0
    ");
    for (setting, line) in [
        ("share=0.25", ""),
        ("order=oldest", ""),
        ("share=1.5", "refused: `share` is a number from 0 to 1, not 1.5"),
        ("order=middle", "refused: "),
    ] {
        let output = Command::new(fixtures::old_host(Profile::Debug)).arg(&plugin).arg(setting).output().unwrap();
        let said = String::from_utf8_lossy(&output.stdout);
        let refused: Vec<&str> = said.lines().filter(|line| line.starts_with("refused")).collect();
        assert_eq!(refused.len(), usize::from(!line.is_empty()), "{setting}: {said}");
        assert!(output.status.success() == line.is_empty() && output.stderr.is_empty(), "{setting}: {output:?}");
        assert!(refused.iter().all(|refused| refused.starts_with(line)), "{setting}: {said}");
    }
    let folder = folder_of([("declares.so", plugin)]);
    let registry = load(folder.path());
    let beside = registry.component("beside").expect("it is offered").info().clone();
    assert_eq!((beside.arity, beside.slots[0].optional, beside.hears_tasks), (Arity::ManyAndSlots, true, true));
}

/// What a host of interface 1.0 does with a plugin.
fn in_old_host(profile: Profile, plugin: &Path) -> String {
    let output = Command::new(fixtures::old_host(profile)).arg(plugin).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn plugins_of_today_work_in_a_host_from_before() {
    insta::assert_snapshot!(in_old_host(Profile::Release, &stock_plugin(LIFO, Profile::Debug)), @"
    host 1.0
    plugin sched-plugin-example-lifo 0.1.0, interface 1.1
    component lifo
    push 0: taken
    push 1: taken
    push 2: taken
    push 3: taken
    pull: 3
    pull: 2
    pull: 1
    pull: 0
    ");
    insta::assert_snapshot!(in_old_host(Profile::Debug, &fixtures::plugin("uses-log")), @"
    host 1.0
    plugin uses-log 0.1.0, interface 1.1
    component uses-log
    push 0: taken
    push 1: taken
    push 2: taken
    push 3: taken
    pull: 3
    pull: 2
    pull: 1
    pull: 0
    ");
}

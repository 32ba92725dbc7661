//! Policies that are connected by hand.

use super::{Node, PREFETCHING, catalogue, policy, shape, stock};
use crate::{Component, ComponentId, Connect, Level, Policy, Source, check, parse};
use proptest::prelude::*;
use sched_core::{Arch, Value};

#[test]
fn the_handbooks_example() {
    let mut tree = Connect::new();
    let fifo = tree.add("fifo".into());
    let eager = tree.add("eager".into());
    let bounded = Component::new("fifo").set("ntasks-threshold", Value::Int(2));
    let below = tree.add_each(Level::Worker, bounded.set("exp-len-threshold", Value::Float(1e9)));
    let worker = tree.add("worker".into());
    for (parent, child) in [(fifo, eager), (eager, below), (below, worker)] {
        tree.connect(parent, child);
    }
    assert_eq!(tree.policy("tree-eager-prefetching"), policy(PREFETCHING));
}

#[test]
fn the_example_of_the_first_handbook() {
    let weights = [("alpha", 1.0), ("beta", 2.0), ("gamma", 0.0), ("idle-power", 0.0)];
    let heft =
        weights.iter().fold(Component::new("heft"), |heft, (name, weight)| heft.set(*name, Value::Float(*weight)));
    let mut tree = Connect::new();
    let select = tree.add("perfmodel-select".into());
    let stealing = tree.add_each(Level::MemoryNode, "work-stealing".into());
    let best = tree.add_each(Level::Worker, "best-implementation".into());
    let worker = tree.add("worker".into());
    for (slot, decision) in [("perfmodel", heft), ("calibrator", "random".into()), ("no-perfmodel", "random".into())] {
        let decision = tree.add(decision);
        tree.connect_slot(select, slot, decision);
        tree.connect(decision, stealing);
    }
    tree.connect(stealing, best);
    tree.connect(best, worker);
    let shipped = Source::find("tree-heft-ws").and_then(|source| source.policy()).expect("it is shipped");
    let machine = Node { cores: 2, gpus: 2 };
    assert_eq!(shape(&tree.policy("mine"), &machine), shape(&shipped, &machine));
}

#[test]
fn several_parents_share_a_child_wherever_they_are() {
    let mut tree = Connect::new();
    let fifo = tree.add("fifo".into());
    let eager = tree.add("eager".into());
    let (one, other) = (tree.add_each(Level::Worker, "fifo".into()), tree.add_each(Level::Worker, "prio".into()));
    let (best, worker) = (tree.add("best-implementation".into()), tree.add("worker".into()));
    tree.connect(fifo, eager);
    for queue in [one, other] {
        tree.connect(eager, queue);
        tree.connect(queue, best);
    }
    tree.connect(best, worker);
    tree.connect(best, worker);
    let text = r#"policy "p" {
        fifo { eager { each "worker" { fifo { use "best-implementation" } }; each "worker" { prio { use "best-implementation" } } } }
        shared "best-implementation" each="worker" { best-implementation { worker } }
    }"#;
    assert_eq!(tree.policy("p"), policy(text));
}

#[test]
fn the_finest_parent_says_how_often_a_shared_child_exists() {
    let mut tree = Connect::new();
    let (fifo, eager) = (tree.add("fifo".into()), tree.add("eager".into()));
    let queue = tree.add_each_of(Level::Worker, Arch::CUDA, "fifo".into());
    let cores = tree.add_each_of(Level::Numa, Arch::CPU, "eager".into());
    let (gpu, core) = (tree.add("worker".into()), tree.add_each(Level::Worker, "worker".into()));
    for (parent, child) in [(fifo, eager), (eager, queue), (eager, cores), (queue, gpu), (cores, core)] {
        tree.connect(parent, child);
    }
    let text = r#"policy "p" { fifo { eager {
        each "worker" arch="cuda" { fifo { worker } }
        each "numa" arch="cpu" { eager { each "worker" { worker } } }
    } } }"#;
    assert_eq!(tree.policy("p"), policy(text));
    // Another way to the same leaves.
    tree.connect(eager, gpu);
    let text = r#"policy "p" {
        fifo { eager {
            each "worker" arch="cuda" { fifo { use "worker" } }
            each "numa" arch="cpu" { eager { each "worker" { worker } } }
            use "worker"
        } }
        shared "worker" each="worker" arch="cuda" { worker }
    }"#;
    assert_eq!(tree.policy("p"), policy(text));
}

#[test]
fn mistakes_are_left_to_the_check() {
    let rules = |tree: &Connect| {
        let findings = check(&tree.policy("p"), &catalogue());
        findings.iter().map(|finding| finding.id()).collect::<Vec<_>>()
    };
    assert_eq!(rules(&Connect::new()), ["V2"], "nothing was connected");
    let mut tree = Connect::new();
    let fifo = tree.add("fifo".into());
    let worker = tree.add_each(Level::Worker, "worker".into());
    assert!(rules(&tree).contains(&"V2"), "two roots");
    tree.connect(fifo, worker);
    assert!(rules(&tree).contains(&"V2"), "several children of a queue");
    let (upper, lower) = (tree.add("fifo".into()), tree.add("prio".into()));
    tree.connect(upper, lower);
    tree.connect(lower, upper);
    assert!(rules(&tree).contains(&"V6"), "a circle");
}

#[test]
#[should_panic(expected = "was not added to this tree")]
fn components_of_another_tree_are_not_connected() {
    let mut other = Connect::new();
    let id = other.add("fifo".into());
    Connect::new().connect(id, id);
}

/// Components with any links between them.
fn graph() -> impl Strategy<Value = Policy> {
    let level = prop::option::of(prop::sample::select(Level::ALL.to_vec()));
    let arch = prop::option::of(prop::sample::select(vec![Arch::CPU, Arch::CUDA]));
    let name = prop::sample::select(vec!["fifo", "eager", "worker", "perfmodel-select"]);
    let nodes = prop::collection::vec((name, level, arch), 1..8);
    let slot = prop::option::weighted(0.2, Just("perfmodel"));
    let links = prop::collection::vec((any::<prop::sample::Index>(), any::<prop::sample::Index>(), slot), 0..12);
    (nodes, links, any::<bool>()).prop_map(|(nodes, links, circles)| {
        let mut tree = Connect::new();
        let ids: Vec<ComponentId> = nodes
            .into_iter()
            .map(|(name, level, arch)| match (level, arch) {
                (Some(level), Some(arch)) => tree.add_each_of(level, arch, name.into()),
                (Some(level), None) => tree.add_each(level, name.into()),
                (None, _) => tree.add(name.into()),
            })
            .collect();
        for (one, other, slot) in links {
            let (parent, child) = (one.index(ids.len()), other.index(ids.len()));
            // Downward only, where there must be no circle.
            if parent < child || circles {
                match slot {
                    Some(slot) => tree.connect_slot(ids[parent], slot, ids[child]),
                    None => tree.connect(ids[parent], ids[child]),
                }
            }
        }
        tree.policy("any")
    })
}

proptest! {
    #[test]
    fn what_is_connected_reads_back(policy in graph()) {
        let text = policy.to_kdl();
        prop_assert_eq!(crate::read("any.kdl", &text).policies, [policy.clone()]);
        // Whatever is wrong with it is found, and nothing breaks.
        let findings = check(&policy, &stock());
        prop_assert_eq!(parse("any.kdl", &text).is_err(), findings.iter().any(|finding| {
            ["policy::root", "policy::shared", "policy::cycle"].contains(&finding.rule()) && finding.is_error()
        }));
    }
}

//! Specs over the topology of machines.

use super::{Node, policy, shape, shown, stock};
use crate::{
    BoundMachine, Component, FlatMachine, Group, Level, Machine, Policy, Recipe, TopologySpecs, check, expand,
};
use insta::assert_snapshot;
use proptest::prelude::*;
use sched_core::{Arch, Value, WorkerId};
use sched_machine::topology::{BindingPlan, Topology};
use std::error::Error;

fn eager() -> Component {
    Component::new("eager")
}

/// A queue that holds `ntasks` tasks, above what shares them out.
fn queue(ntasks: i64) -> Recipe {
    Recipe::singleton(Component::new("fifo").set("ntasks-threshold", Value::Int(ntasks))).add(eager())
}

/// A queue for each of everything.
fn everything() -> TopologySpecs {
    TopologySpecs::new(queue(0)).memory_component(queue(3)).socket(queue(4)).cache(queue(5))
}

/// What specs give for a machine that hwloc knows, one worker to each core.
fn over(specs: &TopologySpecs, machine: &str) -> Result<Policy, Box<dyn Error>> {
    let topology = Topology::from_synthetic(machine)?;
    let plan = BindingPlan::new(&topology, BindingPlan::default_workers(&topology))?;
    let machine = BoundMachine::new(&topology, &plan);
    let policy = specs.policy("p", &machine);
    expand(&policy, &stock(), &machine).map_err(|errors| shown(&errors))?;
    Ok(policy)
}

#[test]
fn the_order_of_the_levels_is_that_of_the_machine() -> Result<(), Box<dyn Error>> {
    let order = |machine: &str| -> Result<String, Box<dyn Error>> {
        let text = over(&everything(), machine)?.to_kdl();
        let levels = text.lines().filter_map(|line| line.trim().strip_prefix("each "));
        Ok(levels.map(|level| level.trim_end_matches(" {")).collect::<Vec<_>>().join(" "))
    };
    assert_eq!(order("node:2 package:2 l3:2 core:2 pu:1")?, r#""numa" "package" "l3" "worker""#);
    assert_eq!(order("package:2 node:2 l3:1 l2:2 core:2 pu:1")?, r#""package" "numa" "l3" "l2" "worker""#);
    // Memory at a place of its own in the tree, beside what is in the package: hwloc 2 keeps NUMA nodes so.
    assert_eq!(order("package:2 [numa] core:2 pu:1")?, r#""numa" "package" "worker""#);
    assert_eq!(order("package:1 l3:1 [numa] core:4 pu:1")?, r#""numa" "package" "l3" "worker""#);
    assert_eq!(order("package:1 l3:2 group:2 [numa] core:2 pu:1")?, r#""package" "l3" "numa" "worker""#);
    assert_eq!(order("core:4 pu:2")?, r#""numa" "worker""#, "what the machine lacks is skipped");
    Ok(())
}

#[test]
fn levels_without_a_recipe_are_skipped() -> Result<(), Box<dyn Error>> {
    let specs = TopologySpecs::new(queue(0)).socket(queue(4)).workers(Component::new("best-implementation"));
    let text = r#"policy "p" {
        fifo ntasks-threshold=0 { eager { each "package" { fifo ntasks-threshold=4 { eager {
            each "worker" { best-implementation { worker } }
        } } } } }
    }"#;
    assert_eq!(over(&specs, "node:2 package:2 l3:1 core:2 pu:1")?, policy(text));
    Ok(())
}

/// Two NUMA nodes of two cores, and a GPU at each, which hwloc sees there.
struct Attached;

impl Machine for Attached {
    fn workers(&self) -> usize {
        6
    }

    fn arch(&self, worker: WorkerId) -> Arch {
        if worker.0 < 4 { Arch::CPU } else { Arch::CUDA }
    }

    fn groups(&self, level: Level) -> Vec<Group> {
        let group = |label: &str, workers: &[u32]| Group {
            label: label.to_owned(),
            workers: workers.iter().copied().map(WorkerId).collect(),
        };
        match level {
            Level::Numa => vec![group("numa 0", &[0, 1, 4]), group("numa 1", &[2, 3, 5])],
            Level::Package => vec![group("package 0", &[0, 1, 2, 3])],
            Level::Worker => (0..6).map(|worker| group(&format!("worker {worker}"), &[worker])).collect(),
            _ => Vec::new(),
        }
    }
}

#[test]
fn different_workers_are_brothers_or_cousins() {
    let specs = TopologySpecs::new(queue(0))
        .memory_component(queue(3))
        .workers(Component::new("best-implementation"))
        .workers_of(Arch::CUDA, Recipe::new());
    assert_snapshot!(specs.policy("cousins", &Attached).to_kdl(), @r#"
    policy "cousins" {
        fifo ntasks-threshold=0 {
            eager {
                each "numa" arch="cpu" {
                    fifo ntasks-threshold=3 {
                        eager {
                            each "worker" {
                                best-implementation {
                                    worker
                                }
                            }
                        }
                    }
                }
                each "numa" arch="cuda" {
                    fifo ntasks-threshold=3 {
                        eager {
                            each "worker" {
                                worker
                            }
                        }
                    }
                }
            }
        }
    }
    "#);
    let mixed = specs.clone().mix_heterogeneous_workers(true).policy("brothers", &Attached);
    assert_snapshot!(mixed.to_kdl(), @r#"
    policy "brothers" {
        fifo ntasks-threshold=0 {
            eager {
                each "numa" {
                    fifo ntasks-threshold=3 {
                        eager {
                            each "worker" arch="cpu" {
                                best-implementation {
                                    worker
                                }
                            }
                            each "worker" arch="cuda" {
                                worker
                            }
                        }
                    }
                }
            }
        }
    }
    "#);
    let count = |policy: &Policy| shape(policy, &Attached).iter().filter(|node| node.starts_with("fifo")).count();
    assert_eq!((count(&specs.policy("cousins", &Attached)), count(&mixed)), (5, 3));
}

#[test]
fn levels_that_only_some_have_are_theirs() {
    // The package holds no GPU; GPUs outside every NUMA node have their own memory.
    let specs = everything().mix_heterogeneous_workers(true);
    assert_snapshot!(levels(&specs.policy("p", &Attached)), @r#"
    "package" arch="cpu"
    "numa"
    "worker"
    "numa" arch="cuda"
    "worker"
    "#);
    assert_snapshot!(levels(&specs.policy("p", &Node { cores: 2, gpus: 2 })), @r#"
    "memory-node"
    "worker"
    "#);
    let apart = specs.mix_heterogeneous_workers(false);
    assert_snapshot!(levels(&apart.policy("p", &Node { cores: 2, gpus: 2 })), @r#"
    "numa" arch="cpu"
    "worker"
    "memory-node" arch="cuda"
    "worker"
    "#);
    let bare = TopologySpecs::new(queue(0)).workers_of(Arch::CUDA, Component::new("best-implementation"));
    assert_snapshot!(levels(&bare.policy("p", &Node { cores: 2, gpus: 2 })), @r#"
    "worker" arch="cpu"
    "worker" arch="cuda"
    "#);
}

/// The repetitions of a policy.
fn levels(policy: &Policy) -> String {
    let text = policy.to_kdl();
    let levels = text.lines().filter_map(|line| line.trim().strip_prefix("each "));
    levels.map(|level| level.trim_end_matches(" {")).collect::<Vec<_>>().join("\n")
}

#[test]
fn a_machine_without_workers_is_left_to_the_check() {
    let nothing = everything().policy("p", &FlatMachine { workers: 0 });
    assert!(check(&nothing, &stock()).is_empty());
    assert!(expand(&nothing, &stock(), &FlatMachine { workers: 0 }).is_err(), "nothing is left of it");
    let headless = TopologySpecs::new(Recipe::new()).policy("p", &FlatMachine { workers: 2 });
    assert_eq!(check(&headless, &stock())[0].id(), "V2", "tasks enter at one component");
}

/// A recipe that may stand above workers and more of its kind.
fn recipe() -> impl Strategy<Value = Recipe> {
    let chooser = prop::sample::select(vec!["eager", "random", "work-stealing"]);
    let queue = (prop::option::of("fifo|prio"), 0..3_i64, prop::option::of(Just("best-implementation")));
    let some = (queue, chooser).prop_map(|((queue, tasks, best), chooser)| {
        let queue = queue.map(|name| Component::new(name).set("ntasks-threshold", Value::Int(tasks)));
        let row = queue.into_iter().chain(best.map(Component::new)).chain([Component::new(chooser)]);
        row.fold(Recipe::new(), Recipe::add)
    });
    prop_oneof![1 => Just(Recipe::new()), 3 => some]
}

proptest! {
    #[test]
    fn any_specs_reach_every_worker(
        recipes in prop::array::uniform3(recipe()),
        above_gpus in prop::bool::ANY,
        mix in prop::bool::ANY,
        cores in 1..4_u32,
        gpus in 0..3_u32,
    ) {
        let [memory, socket, cache] = recipes;
        let mut specs = TopologySpecs::new(queue(0)).memory_component(memory).socket(socket).cache(cache);
        if above_gpus {
            specs = specs.workers_of(Arch::CUDA, Component::new("best-implementation"));
        }
        let specs = specs.mix_heterogeneous_workers(mix);
        let machines: [&dyn Machine; 3] = [&Node { cores, gpus }, &Attached, &FlatMachine { workers: cores as usize }];
        for machine in machines {
            let policy = specs.policy("any", machine);
            prop_assert_eq!(crate::parse("any.kdl", &policy.to_kdl()).expect("it parses"), [policy.clone()]);
            let findings = check(&policy, &stock());
            prop_assert!(findings.is_empty(), "{}\n{:?}", policy.to_kdl(), findings);
            prop_assert!(expand(&policy, &stock(), machine).is_ok(), "{}", policy.to_kdl());
        }
    }
}

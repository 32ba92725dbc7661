//! Leaves for combined workers.

use super::{Node, catalogue, policy, shown};
use crate::{BoundMachine, FlatMachine, Machine, TreePlan, expand, expand_unchecked};
use insta::assert_snapshot;
use sched_core::WorkerId;
use sched_machine::topology::{BindingPlan, Topology};

fn plan(text: &str, machine: &dyn Machine) -> TreePlan {
    expand(&policy(text), &catalogue(), machine).unwrap_or_else(|errors| panic!("{}", shown(&errors)))
}

fn fails(text: &str, machine: &dyn Machine) -> String {
    shown(&expand_unchecked(&policy(text), &catalogue(), machine).map(|_| ()).expect_err("something is wrong"))
}

/// Each leaf for a combined worker: its path, and the worker.
fn teams(plan: &TreePlan) -> Vec<(&str, u32)> {
    let leaves = plan.nodes.iter().filter(|node| node.info.combined);
    leaves.map(|node| (node.path.as_str(), node.leaf_worker.expect("it is a leaf").0)).collect()
}

const BOTH: &str = r#"policy "both" {
    fifo { eager { each "worker" { worker }; each "combined-worker" { combined-worker } } }
}"#;

#[test]
fn each_combined_worker_has_a_leaf_and_a_number_above_the_workers() {
    let flat = plan(BOTH, &FlatMachine { workers: 5 });
    assert_eq!(
        teams(&flat),
        [
            ("fifo/eager/combined-worker 0-3/combined-worker", 5),
            ("fifo/eager/combined-worker 0-1/combined-worker", 6),
            ("fifo/eager/combined-worker 2-3/combined-worker", 7),
        ]
    );
    assert_eq!(flat.root().workers.len(), 8);
    assert_eq!(flat.leaf(WorkerId(6)).map(|leaf| leaf.place.as_str()), Some("combined-worker 0-1"));
    assert_eq!(teams(&plan(BOTH, &FlatMachine { workers: 1 })), [], "there is none, and nothing is left of it");

    let topology = Topology::from_synthetic("package:2 core:2 pu:1").expect("the description is sound");
    let bound = BindingPlan::new(&topology, 4).expect("there are PUs");
    let bound = plan(BOTH, &BoundMachine::new(&topology, &bound));
    assert_eq!(teams(&bound).iter().map(|(_, worker)| *worker).collect::<Vec<_>>(), [4, 5, 6]);
}

#[test]
fn a_group_has_the_combined_workers_inside_it() {
    let text = r#"policy "by-numa" {
        fifo { eager { each "numa" { fifo { eager {
            each "worker" { worker }
            each "combined-worker" arch="cpu" { combined-worker }
        } } }; each "worker" arch="cuda" { worker } } }
    }"#;
    let plan = plan(text, &Node { cores: 2, gpus: 1 });
    assert_eq!(
        teams(&plan),
        [
            ("fifo/eager/numa 0/fifo/eager/combined-worker 0-1/combined-worker", 5),
            ("fifo/eager/numa 1/fifo/eager/combined-worker 2-3/combined-worker", 6),
        ]
    );
}

#[test]
fn shared_leaves_are_linked_inside_and_outside() {
    let text = r#"policy "shared" {
        fifo { random {
            eager { use "leaf"; use "team" }
            eager { each "worker" { fifo { use "leaf" } }; each "combined-worker" { fifo { use "team" } } }
        } }
        shared "leaf" each="worker" { best-implementation { worker } }
        shared "team" each="combined-worker" { best-implementation { combined-worker } }
    }"#;
    let plan = plan(text, &FlatMachine { workers: 2 });
    assert_eq!(teams(&plan), [("team/combined-worker 0-1/best-implementation/combined-worker", 2)]);
    let shared = plan.find("team/combined-worker 0-1/best-implementation").expect("it is shared");
    let above: Vec<&str> = shared.parents.iter().map(|parent| plan[*parent].path.as_str()).collect();
    assert_eq!(above, ["fifo/random/eager", "fifo/random/eager/combined-worker 0-1/fifo"]);
}

#[test]
fn leaves_stand_for_the_workers_that_they_are_made_for() {
    assert_snapshot!(fails(r#"policy "p" { fifo { eager { each "worker" { combined-worker } } } }"#, &FlatMachine { workers: 2 }), @r#"
      × policy `p`: 1 error

    Error: V4 policy::leaf

      × `combined-worker` is for combined workers, and stands for one that is simple
       ╭─[test.kdl:1:45]
     1 │ policy "p" { fifo { eager { each "worker" { combined-worker } } } }
       ·                                             ───────┬───────
       ·                                                    ╰── worker 0 here: worker 0
       ╰────
      help: write `each "combined-worker" { combined-worker }` for one leaf for each combined worker
            why: a leaf hands tasks to exactly one worker
    "#);
    assert_snapshot!(fails(r#"policy "p" { fifo { eager { each "worker" { worker }; each "combined-worker" { worker } } } }"#, &FlatMachine { workers: 2 }), @r#"
      × policy `p`: 1 error

    Error: V4 policy::leaf

      × `worker` is for simple workers, and stands for a combined one
       ╭─[test.kdl:1:80]
     1 │ policy "p" { fifo { eager { each "worker" { worker }; each "combined-worker" { worker } } } }
       ·                                                                                ───┬──
       ·                                                                                   ╰── combined-worker 0-1 here: worker 2
       ╰────
      help: write `each "worker" { worker }` for one leaf for each worker
            why: a leaf hands tasks to exactly one worker
    "#);
    assert_snapshot!(fails(r#"policy "p" { fifo { eager { each "worker" { worker }; each "numa" { combined-worker } } } }"#, &FlatMachine { workers: 2 }), @r#"
      × policy `p`: 1 error

    Error: V4 policy::leaf

      × `combined-worker` stands for 2 workers
       ╭─[test.kdl:1:69]
     1 │ policy "p" { fifo { eager { each "worker" { worker }; each "numa" { combined-worker } } } }
       ·                                                                     ───────┬───────
       ·                                                                            ╰── numa 0 here: workers 0-1
       ╰────
      help: write `each "combined-worker" { combined-worker }` for one leaf for each combined worker
            why: a leaf hands tasks to exactly one worker
    "#);
}

#[test]
fn a_combined_worker_has_one_leaf_and_no_worker_is_left_out_for_it() {
    let twice = r#"policy "p" { fifo { eager {
        each "worker" { worker }
        each "combined-worker" { combined-worker }
        fifo { eager { each "combined-worker" { combined-worker } } }
    } } }"#;
    assert_snapshot!(fails(twice, &FlatMachine { workers: 2 }), @r#"
      × policy `p`: 1 error

    Error: V4 policy::leaf

      × policy `p` has several leaves for combined-worker 0-1
       ╭─[test.kdl:3:34]
     2 │         each "worker" { worker }
     3 │         each "combined-worker" { combined-worker }
       ·                                  ───────┬───────
       ·                                         ╰── a leaf of combined-worker 0-1
     4 │         fifo { eager { each "combined-worker" { combined-worker } } }
       ·                                                 ───────┬───────
       ·                                                        ╰── a leaf of combined-worker 0-1
     5 │     } } }
       ╰────
      help: write `shared "team" each="combined-worker" { combined-worker }` once, and `use "team"` in each
            place
            why: a leaf accounts for the tasks of its worker, so a worker has exactly one
    "#);
    assert_snapshot!(fails(r#"policy "p" { fifo { eager { each "combined-worker" { combined-worker } } } }"#, &FlatMachine { workers: 2 }), @r#"
      × policy `p`: 1 error

    Error: V4 policy::unreachable

      × policy `p` does not reach workers 0-1
       ╭─[test.kdl:1:8]
     1 │ policy "p" { fifo { eager { each "combined-worker" { combined-worker } } } }
       ·        ─┬─
       ·         ╰── no leaf for them
       ╰────
      help: add `each "worker" { worker }`, or an `each` without an `arch` that leaves them out
            why: a worker without a leaf never gets a task
    "#);
}

#[test]
fn the_level_is_printed_as_it_is_read() {
    let printed = policy(BOTH).to_kdl();
    assert!(printed.contains("each \"combined-worker\""), "{printed}");
    assert_eq!(policy(&printed).to_kdl(), printed);
}

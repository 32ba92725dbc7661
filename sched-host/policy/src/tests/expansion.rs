//! Policies laid over machines.

use super::{EAGER, HEFT, Node, PREFETCHING, catalogue, policy, set, shown};
use crate::{FlatMachine, Machine, NodeIndex, Policy, SomeWorkers, TreePlan, expand_unchecked};
use insta::assert_snapshot;
use sched_core::{Arch, Value, WorkerId};

fn plan(text: &str, machine: &dyn Machine) -> TreePlan {
    expand_unchecked(&policy(text), &catalogue(), machine).unwrap_or_else(|errors| panic!("{}", shown(&errors)))
}

fn fails(text: &str, machine: &dyn Machine) -> String {
    match expand_unchecked(&policy(text), &catalogue(), machine) {
        Ok(plan) => panic!("it has a plan: {:?}", paths(&plan)),
        Err(errors) => shown(&errors),
    }
}

fn paths(plan: &TreePlan) -> Vec<&str> {
    plan.nodes.iter().map(|node| node.path.as_str()).collect()
}

/// What holds of every plan.
fn sound(plan: &TreePlan, machine: &dyn Machine) {
    for (index, node) in plan.nodes.iter().enumerate() {
        assert_eq!(node.id, NodeIndex(index));
        assert_eq!(node.parents.is_empty(), index == 0, "only the root has no parent");
        assert!(node.parents.iter().all(|parent| parent.0 < index), "parents come first");
        assert!(node.parents.iter().all(|parent| plan[*parent].children.iter().any(|child| child.node == node.id)));
        let below = node.children.iter().flat_map(|child| plan[child.node].workers.iter().collect::<Vec<_>>());
        let below = below.chain(node.leaf_worker).collect();
        assert_eq!(node.workers, below, "{}", node.path);
        assert_eq!(plan.nodes.iter().filter(|other| other.path == node.path).count(), 1, "{}", node.path);
    }
    assert_eq!(plan.root().workers.len(), machine.workers());
}

#[test]
fn each_worker_gets_its_own_queue() {
    let machine = FlatMachine { workers: 2 };
    let plan = plan(PREFETCHING, &machine);
    sound(&plan, &machine);
    assert_eq!(
        paths(&plan),
        [
            "fifo",
            "fifo/eager",
            "fifo/eager/worker 0/fifo",
            "fifo/eager/worker 0/fifo/worker",
            "fifo/eager/worker 1/fifo",
            "fifo/eager/worker 1/fifo/worker",
        ]
    );
    let queue = plan.find("fifo/eager/worker 1/fifo").expect("listed above");
    assert_eq!(queue.params.get("ntasks-threshold"), Some(&Value::Int(2)));
    assert_eq!(queue.params.get("ready"), Some(&Value::Bool(false)), "defaults are filled in");
    assert_eq!((queue.place.as_str(), queue.plugin.as_str()), ("worker 1", "flow-control"));
    assert_eq!(plan.root().place, "machine");
    assert_eq!(plan.leaf(WorkerId(1)).map(|leaf| leaf.parents.clone()), Some(vec![queue.id]));
}

#[test]
fn whole_numbers_become_what_the_component_declares() {
    let plan = plan(r#"policy "p" { fifo exp-len-threshold=3 { worker } }"#, &FlatMachine { workers: 1 });
    assert_eq!(plan.root().params.get("exp-len-threshold"), Some(&Value::Float(3.0)));
}

#[test]
fn each_within_each_goes_over_its_workers() {
    let machine = Node { cores: 2, gpus: 0 };
    let text = r#"policy "p" { eager { each "numa" { fifo { eager { each "worker" { worker } } } } } }"#;
    let plan = plan(text, &machine);
    sound(&plan, &machine);
    let workers = |path| plan.find(path).unwrap_or_else(|| panic!("{path} in {:?}", paths(&plan))).workers.clone();
    assert_eq!(workers("eager/numa 0/fifo"), set([0, 1]));
    assert_eq!(workers("eager/numa 1/fifo/eager"), set([2, 3]));
    assert_eq!(workers("eager/numa 1/fifo/eager/worker 3/worker"), set([3]));
}

#[test]
fn arch_keeps_only_its_workers() {
    let text = r#"policy "p" { eager {
        each "memory-node" arch="cpu" { fifo { eager { each "worker" { worker } } } }
        each "worker" arch="cuda" { fifo ntasks-threshold=4 { worker } }
    } }"#;
    let machine = Node { cores: 2, gpus: 2 };
    let with_gpus = plan(text, &machine);
    sound(&with_gpus, &machine);
    let children: Vec<_> =
        with_gpus.root().children.iter().map(|child| with_gpus[child.node].workers.clone()).collect();
    assert_eq!(children, [set([0, 1, 2, 3]), set([4]), set([5])]);
    assert!(with_gpus.find("eager/worker 5/fifo").is_some_and(|node| node.archs.contains(Arch::CUDA)));

    let machine = FlatMachine { workers: 2 };
    let without = plan(text, &machine);
    sound(&without, &machine);
    assert_eq!(without.root().children.len(), 1, "an `each` that matches nothing leaves nothing behind");
}

#[test]
fn a_shared_leaf_has_a_parent_in_each_place() {
    let machine = FlatMachine { workers: 3 };
    let plan = plan(HEFT, &machine);
    sound(&plan, &machine);
    let leaf = plan.find("leaf/worker 1/best-implementation").expect("one for each worker");
    let parents: Vec<&str> = leaf.parents.iter().map(|parent| plan[*parent].path.as_str()).collect();
    assert_eq!(
        parents,
        [
            "prio/perfmodel-select/perfmodel/mct/worker 1/prio",
            "prio/perfmodel-select/calibrator/eager-calibration",
            "prio/perfmodel-select/no-perfmodel/eager",
        ]
    );
    let select = plan.find("prio/perfmodel-select").expect("below the root");
    let slots: Vec<_> = select.children.iter().map(|child| child.slot.as_deref()).collect();
    assert_eq!(slots, [Some("perfmodel"), Some("calibrator"), Some("no-perfmodel")]);
    assert_eq!(plan.nodes.iter().filter(|node| node.leaf_worker.is_some()).count(), 3);
}

#[test]
fn use_links_to_the_instances_of_the_enclosing_workers() {
    let machine = Node { cores: 2, gpus: 0 };
    let text = r#"policy "p" {
        eager { each "numa" { fifo { eager { use "leaf" } } } }
        shared "leaf" each="worker" { worker }
    }"#;
    let plan = plan(text, &machine);
    sound(&plan, &machine);
    assert_eq!(plan.find("eager/numa 1/fifo/eager").map(|node| node.workers.clone()), Some(set([2, 3])));
}

#[test]
fn what_contexts_share_is_the_same_for_any_of_their_workers() {
    let text = r#"policy "p" {
        eager { use "q" }
        shared "q" each="numa" between-contexts=#true { fifo { eager { each "worker" { worker } } } }
    }"#;
    let machine = Node { cores: 2, gpus: 2 };
    let part_of = |workers: &[u32]| {
        let workers = set(workers.iter().copied());
        let plan = plan(text, &SomeWorkers { machine: &machine, workers: &workers });
        let shared = plan.nodes.iter().filter_map(|node| node.between_contexts.clone()).collect::<Vec<_>>();
        assert_eq!(shared[0].text, text.lines().nth(2).expect("it has three lines").trim());
        assert!(shared.iter().all(|node| node.part == "q"));
        let names = shared.into_iter().map(|node| node.name).collect::<Vec<_>>();
        let here = |path| plan.find(path).map(|node| (node.workers.clone(), node.workers_in_context.clone()));
        (names, here("eager"), here("q/numa 0/fifo/eager"))
    };
    let (names, root, queue) = part_of(&[0, 3]);
    let of_numa = |numa: u32| {
        let top = format!("q/numa {numa}/fifo");
        let leaf = |worker: u32| format!("{top}/eager/worker {worker}/worker");
        [top.clone(), format!("{top}/eager"), leaf(2 * numa), leaf(2 * numa + 1)]
    };
    let expected = [of_numa(0), of_numa(1)].concat();
    assert_eq!(names, expected);
    assert_eq!(root, Some((set([0, 1, 2, 3]), set([0, 3]))));
    assert_eq!(queue, Some((set([0, 1]), set([0]))));
    let (names, root, queue) = part_of(&[1]);
    assert_eq!(names, expected[..4], "an instance without workers of the context is not there");
    assert_eq!((root, queue), (Some((set([0, 1]), set([1]))), Some((set([0, 1]), set([1])))));
}

#[test]
fn use_within_a_smaller_each_links_to_what_contains_it() {
    let machine = Node { cores: 2, gpus: 0 };
    let text = r#"policy "p" {
        eager { each "worker" { fifo ntasks-threshold=1 { use "pool" } } }
        shared "pool" each="numa" { eager { each "worker" { worker } } }
    }"#;
    let plan = plan(text, &machine);
    sound(&plan, &machine);
    let pool = plan.find("pool/numa 1/eager").expect("one for each NUMA node");
    let parents: Vec<&str> = pool.parents.iter().map(|parent| plan[*parent].path.as_str()).collect();
    assert_eq!(parents, ["eager/worker 2/fifo", "eager/worker 3/fifo"]);
}

#[test]
fn shared_parts_may_use_others() {
    let machine = FlatMachine { workers: 2 };
    let text = r#"policy "p" {
        eager { each "worker" { fifo { use "queue" } }; eager { use "queue" } }
        shared "queue" each="worker" { prio ntasks-threshold=1 { use "leaf" } }
        shared "leaf" each="worker" { worker }
    }"#;
    let plan = plan(text, &machine);
    sound(&plan, &machine);
    assert_eq!(plan.find("queue/worker 1/prio").map(|node| node.parents.len()), Some(2));
    assert_eq!(plan.find("leaf/worker 1/worker").map(|node| node.parents.len()), Some(1));
}

#[test]
fn like_siblings_have_different_paths() {
    let text = r#"policy "p" { eager { fifo { use "pool" }; fifo { use "pool" } }
        shared "pool" { eager { each "worker" { worker } } } }"#;
    let machine = FlatMachine { workers: 1 };
    let plan = plan(text, &machine);
    sound(&plan, &machine);
    assert_eq!(paths(&plan)[..3], ["eager", "eager/fifo", "eager/fifo#2"]);
}

#[test]
fn a_policy_built_by_a_program_expands_like_its_text() {
    let machine = FlatMachine { workers: 2 };
    let mut built: Policy = policy(EAGER);
    built.source = None;
    let plan = expand_unchecked(&built, &catalogue(), &machine).expect("it is valid");
    sound(&plan, &machine);
    assert!(plan.source.is_some(), "errors of later checks can point into the printed text");
}

#[test]
fn a_leaf_of_several_workers_is_an_error() {
    let text = "policy \"p\" {\n    eager {\n        each \"numa\" { worker }\n    }\n}";
    assert_snapshot!(fails(text, &Node { cores: 2, gpus: 0 }), @r#"
      × policy `p`: 1 error

    Error: V4 policy::leaf

      × `worker` stands for 2 workers
       ╭─[test.kdl:3:23]
     2 │     eager {
     3 │         each "numa" { worker }
       ·                       ───┬──
       ·                          ╰── numa 0 here: workers 0-1
     4 │     }
       ╰────
      help: write `each "worker" { worker }` for one leaf for each worker
            why: a leaf hands tasks to exactly one worker
    "#);
    let one = FlatMachine { workers: 1 };
    sound(&plan(text, &one), &one);
}

#[test]
fn workers_that_are_not_reached_are_named() {
    let text = "policy \"p\" {\n    eager { each \"worker\" arch=\"cpu\" { worker } }\n}";
    assert_snapshot!(fails(text, &Node { cores: 2, gpus: 3 }), @r#"
      × policy `p`: 1 error

    Error: V4 policy::unreachable

      × policy `p` does not reach workers 4-6
       ╭─[test.kdl:1:8]
     1 │ policy "p" {
       ·        ─┬─
       ·         ╰── no leaf for them
     2 │     eager { each "worker" arch="cpu" { worker } }
       ╰────
      help: add `each "worker" { worker }`, or an `each` without an `arch` that leaves them out
            why: a worker without a leaf never gets a task
    "#);
}

#[test]
fn several_leaves_of_a_worker_are_an_error() {
    let text = "policy \"p\" {\n    eager {\n        each \"worker\" { worker }\n        each \"numa\" { eager { each \"worker\" { worker } } }\n    }\n}";
    assert_snapshot!(fails(text, &Node { cores: 1, gpus: 0 }), @r#"
      × policy `p`: 1 error

    Error: V4 policy::leaf

      × policy `p` has several leaves for workers 0-1
       ╭─[test.kdl:3:25]
     2 │     eager {
     3 │         each "worker" { worker }
       ·                         ───┬──
       ·                            ╰── a leaf of worker 0
     4 │         each "numa" { eager { each "worker" { worker } } }
       ·                                               ───┬──
       ·                                                  ╰── a leaf of worker 0
     5 │     }
       ╰────
      help: write `shared "leaf" each="worker" { worker }` once, and `use "leaf"` in each place
            why: a leaf accounts for the tasks of its worker, so a worker has exactly one
    "#);
}

#[test]
fn a_policy_for_another_machine_is_an_error() {
    let text = "policy \"p\" {\n    fifo { eager { each \"worker\" arch=\"cuda\" { worker } } }\n}";
    assert_snapshot!(fails(text, &FlatMachine { workers: 4 }), @r#"
      × policy `p`: 1 error

    Error: V4 policy::empty

      × nothing is left of policy `p` on this machine
       ╭─[test.kdl:1:8]
     1 │ policy "p" {
       ·        ─┬─
       ·         ╰── every `each` in it is empty
     2 │     fifo { eager { each "worker" arch="cuda" { worker } } }
       ╰────
      help: workers of this machine: 4 × cpu
    "#);
}

#[test]
fn a_slot_that_is_empty_on_the_machine_is_an_error() {
    let text = r#"policy "p" {
    perfmodel-select {
        perfmodel { eager { each "worker" { worker } } }
        calibrator { eager { each "worker" arch="cuda" { worker } } }
        no-perfmodel { eager { each "worker" arch="hip" { worker } } }
    }
}"#;
    assert_snapshot!(fails(text, &FlatMachine { workers: 2 }), @r#"
      × policy `p`: 1 error

    Error: V7 policy::slots

      × slot `calibrator` is empty on this machine
       ╭─[test.kdl:4:9]
     3 │         perfmodel { eager { each "worker" { worker } } }
     4 │         calibrator { eager { each "worker" arch="cuda" { worker } } }
       ·         ─────┬────
       ·              ╰── no worker below, for machine: workers 0-1
     5 │         no-perfmodel { eager { each "worker" arch="hip" { worker } } }
       ╰────
      help: workers of this machine: 2 × cpu
            why: a component with slots needs a child in each; give this one workers that the machine has
    "#);
}

#[test]
fn several_instances_below_a_component_that_takes_one_are_an_error() {
    let text = r#"policy "p" {
    eager { each "numa" { fifo { use "leaf" } } }
    shared "leaf" each="worker" { worker }
}"#;
    assert_snapshot!(fails(text, &Node { cores: 2, gpus: 0 }), @r#"
      × policy `p`: 1 error

    Error: V2 policy::arity

      × `fifo` takes one child, and gets 2 on this machine
       ╭─[test.kdl:2:27]
     1 │ policy "p" {
     2 │     eager { each "numa" { fifo { use "leaf" } } }
       ·                           ──┬─
       ·                             ╰── for numa 0: workers 0-1
     3 │     shared "leaf" each="worker" { worker }
       ╰────
      help: put a component between that takes several, such as `eager { … }`
    "#);
    let small = Node { cores: 1, gpus: 0 };
    sound(&plan(text, &small), &small);
}

#[test]
fn an_invalid_policy_is_not_expanded() {
    let errors =
        expand_unchecked(&policy(r#"policy "p" { fifo { eagr } }"#), &catalogue(), &FlatMachine { workers: 1 });
    assert_eq!(errors.map(|plan| plan.nodes.len()).unwrap_err().findings()[0].rule(), "policy::component");
}

#[test]
fn one_worker_may_have_other_components_than_the_rest() {
    let machine = FlatMachine { workers: 4 };
    let text = r#"policy "p" { fifo { eager {
        each "worker" only="2" { fifo ntasks-threshold=8 { worker } }
        each "worker" except="2" { worker }
    } } }"#;
    let plan = plan(text, &machine);
    sound(&plan, &machine);
    let below = |path: &&str| path.starts_with("fifo/eager/");
    assert_eq!(
        paths(&plan).into_iter().filter(below).collect::<Vec<_>>(),
        [
            "fifo/eager/worker 2/fifo",
            "fifo/eager/worker 2/fifo/worker",
            "fifo/eager/worker 0/worker",
            "fifo/eager/worker 1/worker",
            "fifo/eager/worker 3/worker",
        ]
    );
    // On a machine without that worker there are the others.
    let machine = FlatMachine { workers: 2 };
    assert_eq!(self::plan(text, &machine).nodes.len(), 4);
}

#[test]
fn workers_are_filtered_in_groups_and_teams() {
    let machine = Node { cores: 2, gpus: 0 };
    let text = r#"policy "p" { fifo { eager {
        each "numa" except="3" { fifo { eager { each "worker" { worker } } } }
        each "numa" only="3" { fifo { worker } }
        each "combined-worker" only="0-2" { combined-worker }
    } } }"#;
    let plan = plan(text, &machine);
    let leaves: Vec<_> = plan.nodes.iter().filter_map(|node| node.leaf_worker).collect();
    let mut numbers: Vec<u32> = leaves.into_iter().map(|worker| worker.0).collect();
    numbers.sort_unstable();
    assert_eq!(numbers, [0, 1, 2, 3, 4], "of the two teams, workers 0 and 1 only");
}

#[test]
fn numbers_of_workers_that_cannot_be_read() {
    for wrong in ["only=\"3-1\"", "only=\"\"", "except=\"a\"", "only=3"] {
        let text = format!("policy \"p\" {{ fifo {{ eager {{ each \"worker\" {wrong} {{ worker }} }} }} }}");
        let error = crate::parse("test.kdl", &text).expect_err("it is wrong").findings()[0].message().to_owned();
        let name = wrong.split('=').next().expect("there is a name");
        assert!(error.starts_with(&format!("`{name}` is ")), "{wrong}: {error}");
    }
}

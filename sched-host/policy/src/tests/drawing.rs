//! Plans as pictures.

use super::{EAGER, HEFT, Node, PREFETCHING, catalogue, policy};
use crate::{Component, FlatMachine, Fold, Machine, Policy, TreePlan, expand_unchecked};
use insta::assert_snapshot;
use sched_core::Value;

fn plan(text: &str, machine: &dyn Machine) -> TreePlan {
    expand_unchecked(&policy(text), &catalogue(), machine).expect("it is valid")
}

#[test]
fn like_children_are_folded() {
    assert_snapshot!(plan(PREFETCHING, &FlatMachine { workers: 64 }).to_text(Fold::Runs), @r"
    fifo
    └─ eager
       └─ fifo ntasks-threshold=2 exp-len-threshold=1000000000.0 × 64 (workers 0-63)
          └─ worker × 64
    ");
}

#[test]
fn few_children_are_drawn_one_by_one() {
    assert_snapshot!(plan(EAGER, &FlatMachine { workers: 2 }).to_text(Fold::Runs), @r"
    fifo
    └─ eager
       ├─ worker (worker 0)
       └─ worker (worker 1)
    ");
}

#[test]
fn unfolded_every_node_has_a_line() {
    assert_snapshot!(plan(PREFETCHING, &FlatMachine { workers: 3 }).to_text(Fold::Nothing), @r"
    fifo
    └─ eager
       ├─ fifo ntasks-threshold=2 exp-len-threshold=1000000000.0 (worker 0)
       │  └─ worker
       ├─ fifo ntasks-threshold=2 exp-len-threshold=1000000000.0 (worker 1)
       │  └─ worker
       └─ fifo ntasks-threshold=2 exp-len-threshold=1000000000.0 (worker 2)
          └─ worker
    ");
}

#[test]
fn a_machine_of_many_workers_is_drawn_unfolded() {
    let plan = plan(PREFETCHING, &FlatMachine { workers: 20_000 });
    assert_eq!(plan.to_text(Fold::Nothing).lines().count(), 40_002);
}

#[test]
fn shared_nodes_are_drawn_once() {
    let plan = plan(HEFT, &FlatMachine { workers: 4 });
    assert_snapshot!(plan.to_text(Fold::Runs), @r"
    prio
    └─ perfmodel-select
       ├─ perfmodel: mct beta=2.0
       │  └─ prio ntasks-threshold=30 × 4 (workers 0-3)
       │     └─ best-implementation × 4
       │        └─ worker × 4
       ├─ calibrator: eager-calibration
       │  └─ best-implementation × 4 (workers 0-3) ↑ drawn above
       └─ no-perfmodel: eager
          └─ best-implementation × 4 (workers 0-3) ↑ drawn above
    ");
}

#[test]
fn shared_nodes_are_drawn_once_unfolded_too() {
    assert_snapshot!(plan(HEFT, &FlatMachine { workers: 2 }).to_text(Fold::Nothing), @r"
    prio
    └─ perfmodel-select
       ├─ perfmodel: mct beta=2.0
       │  ├─ prio ntasks-threshold=30 (worker 0)
       │  │  └─ best-implementation
       │  │     └─ worker
       │  └─ prio ntasks-threshold=30 (worker 1)
       │     └─ best-implementation
       │        └─ worker
       ├─ calibrator: eager-calibration
       │  ├─ best-implementation (worker 0) ↑ drawn above
       │  └─ best-implementation (worker 1) ↑ drawn above
       └─ no-perfmodel: eager
          ├─ best-implementation (worker 0) ↑ drawn above
          └─ best-implementation (worker 1) ↑ drawn above
    ");
}

#[test]
fn one_node_below_many_is_drawn_as_one() {
    let text = r#"policy "p" {
        eager { each "worker" { fifo ntasks-threshold=1 { use "pool" } } }
        shared "pool" { eager { each "worker" { worker } } }
    }"#;
    assert_snapshot!(plan(text, &FlatMachine { workers: 8 }).to_text(Fold::Runs), @r"
    eager
    └─ fifo ntasks-threshold=1 × 8 (workers 0-7)
       └─ eager (machine)
          └─ worker × 8 (workers 0-7)
    ");
}

#[test]
fn folds_nest_and_tell_architectures_apart() {
    let text = r#"policy "p" { eager {
        each "numa" { fifo { eager { each "worker" arch="cpu" { worker } } } }
        each "worker" arch="cuda" { fifo ntasks-threshold=2 { worker } }
    } }"#;
    assert_snapshot!(plan(text, &Node { cores: 6, gpus: 3 }).to_text(Fold::Runs), @r"
    eager
    ├─ fifo (numa 0)
    │  └─ eager
    │     └─ worker × 6 (workers 0-5), cpu
    ├─ fifo (numa 1)
    │  └─ eager
    │     └─ worker × 6 (workers 6-11), cpu
    └─ fifo ntasks-threshold=2 × 3 (workers 12-14)
       └─ worker × 3, cuda
    ");
}

#[test]
fn below_a_fold_lines_stand_for_several_nodes_each() {
    let text = r#"policy "p" {
        eager { each "worker" { eager { fifo { use "leaf" }; fifo { use "leaf" } } } }
        shared "leaf" each="worker" { worker }
    }"#;
    assert_snapshot!(plan(text, &FlatMachine { workers: 4 }).to_text(Fold::Runs), @r"
    eager
    └─ eager × 4 (workers 0-3)
       └─ fifo × 8
          └─ worker × 4
    ");
}

#[test]
fn graphviz_has_a_node_for_each_component() {
    assert_snapshot!(plan(PREFETCHING, &FlatMachine { workers: 2 }).to_dot(), @r##"
    digraph "tree-eager-prefetching" {
        node [shape=box, style="rounded,filled", fontname="sans-serif"];
        edge [fontname="sans-serif", fontsize=10];
        n0 [label="fifo", fillcolor="#cfe2f3", tooltip="fifo"];
        n1 [label="eager", fillcolor="#fff2cc", tooltip="fifo/eager"];
        n2 [label="fifo\nntasks-threshold=2\nexp-len-threshold=1000000000.0", fillcolor="#cfe2f3", tooltip="fifo/eager/worker 0/fifo"];
        n3 [label="worker\nworker 0 (cpu)", fillcolor="#f4cccc", tooltip="fifo/eager/worker 0/fifo/worker"];
        n4 [label="fifo\nntasks-threshold=2\nexp-len-threshold=1000000000.0", fillcolor="#cfe2f3", tooltip="fifo/eager/worker 1/fifo"];
        n5 [label="worker\nworker 1 (cpu)", fillcolor="#f4cccc", tooltip="fifo/eager/worker 1/fifo/worker"];
        n0 -> n1;
        n1 -> n2;
        n1 -> n4;
        n2 -> n3;
        n4 -> n5;
    }
    "##);
}

#[test]
fn graphviz_text_is_escaped() {
    let mct = Component::new("mct").set("log", Value::Text("a \"b\" \\ c".to_owned())).child(Component::new("worker"));
    let plan = expand_unchecked(&Policy::new("the \"best\"", mct), &catalogue(), &FlatMachine { workers: 1 });
    assert_snapshot!(plan.expect("it is valid").to_dot(), @r##"
    digraph "the \"best\"" {
        node [shape=box, style="rounded,filled", fontname="sans-serif"];
        edge [fontname="sans-serif", fontsize=10];
        n0 [label="mct\nlog=\"a \\\"b\\\" \\\\ c\"", fillcolor="#fff2cc", tooltip="mct"];
        n1 [label="worker\nworker 0 (cpu)", fillcolor="#f4cccc", tooltip="mct/worker"];
        n0 -> n1;
    }
    "##);
}

#[test]
fn an_svg_has_every_component_beside_the_others_and_workers_in_order() {
    for (text, workers) in [(EAGER, 1), (PREFETCHING, 5), (HEFT, 8)] {
        let plan = plan(text, &FlatMachine { workers });
        let svg = plan.to_svg();
        let document = roxmltree::Document::parse(&svg).expect("it is XML");
        let number = |node: roxmltree::Node<'_, '_>, name: &str| {
            node.attribute(name).and_then(|value| value.parse::<f64>().ok()).expect("a number")
        };
        let groups: Vec<_> = document.descendants().filter(|node| node.has_tag_name("g")).collect();
        let boxes: Vec<[f64; 4]> = groups
            .iter()
            .map(|group| group.children().find(|child| child.has_tag_name("rect")).expect("a box"))
            .map(|rect| ["x", "y", "width", "height"].map(|name| number(rect, name)))
            .collect();
        assert_eq!(boxes.len(), plan.nodes.len());
        let (across, down) = (number(document.root_element(), "width"), number(document.root_element(), "height"));
        for (index, [x, y, width, height]) in boxes.iter().enumerate() {
            assert!(*x >= 0.0 && *y >= 0.0 && x + width <= across && y + height <= down, "{svg}");
            let apart = |[a, b, w, h]: &[f64; 4]| x + width <= *a || a + w <= *x || y + height <= *b || b + h <= *y;
            assert!(boxes[index + 1..].iter().all(apart), "{svg}");
        }
        let leaves: Vec<f64> = (0..workers)
            .map(|worker| plan.leaf(sched_core::WorkerId(worker as u32)).expect("it has a leaf"))
            .map(|leaf| boxes[leaf.id.0][0])
            .collect();
        assert!(leaves.is_sorted(), "{leaves:?}");
        for node in &plan.nodes {
            assert!(svg.contains(&format!("<title>{}</title>", node.path)), "{}", node.path);
            let [_, y, _, height] = boxes[node.id.0];
            assert!(node.children.iter().all(|child| boxes[child.node.0][1] > y + height), "children stand below");
        }
        assert_eq!(svg.contains(">no-perfmodel</text>"), text == HEFT, "{svg}");
    }
}

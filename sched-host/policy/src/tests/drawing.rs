//! Plans as pictures.

use super::{EAGER, HEFT, Node, PREFETCHING, catalogue, policy};
use crate::plan::Child;
use crate::{Component, FlatMachine, Fold, Machine, Policy, TreePlan, expand_unchecked};
use insta::assert_snapshot;
use sched_core::Value;
use std::collections::BTreeMap;

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
    assert_snapshot!(plan(PREFETCHING, &FlatMachine { workers: 2 }).to_dot(Fold::Runs), @r##"
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
    assert_snapshot!(plan.expect("it is valid").to_dot(Fold::Runs), @r##"
    digraph "the \"best\"" {
        node [shape=box, style="rounded,filled", fontname="sans-serif"];
        edge [fontname="sans-serif", fontsize=10];
        n0 [label="mct\nlog=\"a \\\"b\\\" \\\\ c\"", fillcolor="#fff2cc", tooltip="mct"];
        n1 [label="worker\nworker 0 (cpu)", fillcolor="#f4cccc", tooltip="mct/worker"];
        n0 -> n1;
    }
    "##);
}

fn number(node: roxmltree::Node<'_, '_>, name: &str) -> f64 {
    node.attribute(name).and_then(|value| value.parse().ok()).expect("a number")
}

/// Left, top, width and height of each box, by its title.
fn boxes(document: &roxmltree::Document<'_>) -> BTreeMap<String, [f64; 4]> {
    let groups = document.descendants().filter(|node| node.has_tag_name("g"));
    let part = |group: roxmltree::Node<'_, '_>, name: &str| {
        let id = group.children().find(|child| child.has_tag_name(name)).expect("it is there").id();
        document.get_node(id).expect("it is there")
    };
    let found = groups.map(|group| {
        let title = part(group, "title").text().expect("it has words").to_owned();
        (title, ["x", "y", "width", "height"].map(|name| number(part(group, "rect"), name)))
    });
    found.collect()
}

/// All boxes are in the picture, and none covers another.
fn assert_apart(boxes: &BTreeMap<String, [f64; 4]>, across: f64, down: f64) {
    let boxes: Vec<_> = boxes.values().collect();
    for (index, [x, y, width, height]) in boxes.iter().enumerate() {
        assert!(*x >= 0.0 && *y >= 0.0 && x + width <= across && y + height <= down, "{boxes:?}");
        let apart = |[a, b, w, h]: &&[f64; 4]| x + width <= *a || a + w <= *x || y + height <= *b || b + h <= *y;
        assert!(boxes[index + 1..].iter().all(apart), "{boxes:?}");
    }
}

#[test]
fn an_svg_has_a_box_for_similar_components() {
    let plan = plan(HEFT, &FlatMachine { workers: 500 });
    let svg = plan.to_svg(Fold::Runs);
    let document = roxmltree::Document::parse(&svg).expect("it is XML");
    let boxes = boxes(&document);
    assert_eq!(boxes.len(), 8, "{:?}", boxes.keys());
    let (across, down) = (number(document.root_element(), "width"), number(document.root_element(), "height"));
    assert_apart(&boxes, across, down);
    assert!(across < 1000.0 && svg.contains("× 500 (workers 0-499), cpu"), "{svg}");
    // All three branches lead to the one box.
    assert_eq!(svg.matches("<path").count(), 9, "{svg}");
    let below = |above: &str, one: &str| {
        let find = |name: &str| boxes.iter().find(|(title, _)| title.contains(name)).expect("it is there").1;
        assert!(find(above)[1] + find(above)[3] < find(one)[1], "{one} stands below {above}");
    };
    below("eager-calibration", "best-implementation");
    below("best-implementation", "best-implementation/worker");
}

#[test]
fn graphviz_has_a_node_for_similar_components() {
    let text = r#"policy "p" { eager {
        each "numa" { fifo { eager { each "worker" arch="cpu" { worker } } } }
        each "worker" arch="cuda" { fifo ntasks-threshold=2 { worker } }
    } }"#;
    assert_snapshot!(plan(text, &Node { cores: 6, gpus: 3 }).to_dot(Fold::Runs), @r##"
    digraph "p" {
        node [shape=box, style="rounded,filled", fontname="sans-serif"];
        edge [fontname="sans-serif", fontsize=10];
        n0 [label="eager", fillcolor="#fff2cc", tooltip="eager"];
        n1 [label="fifo", fillcolor="#cfe2f3", tooltip="eager/numa 0/fifo"];
        n2 [label="eager", fillcolor="#fff2cc", tooltip="eager/numa 0/fifo/eager"];
        n3 [label="worker\n× 6 (workers 0-5), cpu", fillcolor="#f4cccc", tooltip="eager/numa 0/fifo/eager/worker 0/worker, and 5 more"];
        n4 [label="fifo", fillcolor="#cfe2f3", tooltip="eager/numa 1/fifo"];
        n5 [label="eager", fillcolor="#fff2cc", tooltip="eager/numa 1/fifo/eager"];
        n6 [label="worker\n× 6 (workers 6-11), cpu", fillcolor="#f4cccc", tooltip="eager/numa 1/fifo/eager/worker 6/worker, and 5 more"];
        n7 [label="fifo\nntasks-threshold=2\n× 3 (workers 12-14)", fillcolor="#cfe2f3", tooltip="eager/worker 12/fifo, and 2 more"];
        n8 [label="worker\n× 3 (workers 12-14), cuda", fillcolor="#f4cccc", tooltip="eager/worker 12/fifo/worker, and 2 more"];
        n0 -> n1;
        n0 -> n4;
        n0 -> n7;
        n1 -> n2;
        n2 -> n3;
        n4 -> n5;
        n5 -> n6;
        n7 -> n8;
    }
    "##);
}

#[test]
fn an_svg_has_every_component_beside_the_others_and_workers_in_order() {
    for (text, workers) in [(EAGER, 1), (PREFETCHING, 5), (HEFT, 8)] {
        let plan = plan(text, &FlatMachine { workers });
        let svg = plan.to_svg(Fold::Nothing);
        let document = roxmltree::Document::parse(&svg).expect("it is XML");
        let boxes = boxes(&document);
        assert_eq!(boxes.len(), plan.nodes.len());
        let (across, down) = (number(document.root_element(), "width"), number(document.root_element(), "height"));
        assert_apart(&boxes, across, down);
        let leaves: Vec<f64> = (0..workers)
            .map(|worker| plan.leaf(sched_core::WorkerId(worker as u32)).expect("it has a leaf"))
            .map(|leaf| boxes[&leaf.path][0])
            .collect();
        assert!(leaves.is_sorted(), "{leaves:?}");
        for node in &plan.nodes {
            let [_, y, _, height] = boxes[&node.path];
            let below = |child: &Child| boxes[&plan[child.node].path][1] > y + height;
            assert!(node.children.iter().all(below), "children stand below");
        }
        assert_eq!(svg.contains(">no-perfmodel</text>"), text == HEFT, "{svg}");
    }
}

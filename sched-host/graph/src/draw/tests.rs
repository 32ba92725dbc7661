//! Pictures of small and of large graphs.

use super::*;
use crate::{Task, TaskGraph, generate};
use std::time::Duration;

#[test]
fn dot_has_a_box_for_each_task() {
    let graph = generate::fork_join(2, 1, Duration::from_millis(1), 8);
    insta::assert_snapshot!(dot(&graph, &graph.dependencies()), @r##"
    digraph tasks {
      label="fork-join (1 × 2 tasks)"; labelloc=t; fontname="Helvetica";
      node [shape=box, style="filled,rounded", fontname="Helvetica", fontsize=11];
      edge [color="#64748b", fontname="Helvetica", fontsize=9];
      t0 [label="fork(0)", tooltip="task 0: fork(0) (fork), priority 3, 1ms on cpu", fillcolor="#56b4e9", fontcolor="#0f172a", penwidth=3];
      t1 [label="work(0,0)", tooltip="task 1: work(0,0) (work), priority 2, 1ms on cpu", fillcolor="#f0e442", fontcolor="#0f172a", penwidth=3];
      t2 [label="work(0,1)", tooltip="task 2: work(0,1) (work), priority 2, 1ms on cpu", fillcolor="#f0e442", fontcolor="#0f172a"];
      t3 [label="join(0)", tooltip="task 3: join(0) (join), priority 1, 1ms on cpu", fillcolor="#d55e00", fontcolor="white", penwidth=3];
      t0 -> t1 [penwidth=3];
      t0 -> t2;
      t1 -> t3 [penwidth=3];
      t2 -> t3;
    }
    "##);
}

#[test]
fn text_in_pictures_cannot_break_out_of_them() {
    let mut graph = TaskGraph::new("a <b> & \"c\"\\");
    let kind = graph.add_kind("k\"<");
    graph.add_task(Task::new(kind).named("x</text>\u{7}\"\\"));
    let dependencies = graph.dependencies();
    let picture = svg(&graph, &dependencies);
    assert!(picture.contains("x&lt;/text&gt; &quot;\\") && !picture.contains("<b>"), "{picture}");
    assert!(dot(&graph, &dependencies).contains(r#"label="x</text> \"\\","#));
}

#[test]
fn svg_has_all_tasks_kinds_and_the_critical_path() {
    let graph = generate::cholesky(6, 64);
    let picture = svg(&graph, &graph.dependencies());
    assert_eq!(picture.matches("<g><rect").count(), graph.tasks.len());
    assert_eq!(picture.matches("<path").count(), graph.dependencies().n_edges());
    for kind in ["potrf (6)", "trsm (15)", "syrk (15)", "gemm (20)"] {
        assert!(picture.contains(kind), "{kind}");
    }
    assert!(picture.contains("stroke-width=\"3\"") && picture.contains("56 tasks, "));
}

#[test]
fn a_large_graph_is_shown_in_groups_and_that_is_said() {
    let graph = generate::cholesky(20, 64);
    let dependencies = graph.dependencies();
    for picture in [svg(&graph, &dependencies), dot(&graph, &dependencies)] {
        assert!(
            picture
                .contains("1540 tasks are too many to show each: a box is all tasks of a kind that are equally deep")
        );
        assert!(picture.contains("trsm × 19"), "the first solves are one box");
    }
    let chain = generate::stencil(1, 2000, Duration::from_millis(1), 8);
    let picture = dot(&chain, &chain.dependencies());
    assert!(
        picture.contains("a box is all tasks of a kind") && picture.contains("t0 -> t0 [label=\"1999\"]"),
        "{picture}"
    );
    assert!(svg(&chain, &chain.dependencies()).contains("1999 dependencies"));
}

#[test]
fn an_empty_graph_can_be_drawn() {
    let graph = TaskGraph::new("nothing");
    let dependencies = graph.dependencies();
    assert!(svg(&graph, &dependencies).ends_with("</svg>\n") && dot(&graph, &dependencies).ends_with("}\n"));
}

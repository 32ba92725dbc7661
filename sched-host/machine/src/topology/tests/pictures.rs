use std::error::Error;

use super::{restricted, two_memories};
use crate::topology::{BindingPlan, Topology, draw};

fn planned(description: &str, workers: usize) -> Result<(Topology, BindingPlan), Box<dyn Error>> {
    let machine = Topology::from_synthetic(description)?;
    let plan = BindingPlan::new(&machine, workers)?;
    Ok((machine, plan))
}

#[test]
fn the_text_shows_tree_memory_and_workers() -> Result<(), Box<dyn Error>> {
    let (machine, plan) = planned("node:2(memory=64GiB) package:1 l3:1(size=32MiB) core:2 pu:2", 5)?;
    insta::assert_snapshot!(draw::text(&machine, &plan), @r#"
    synthetic topology "node:2(memory=64GiB) package:1 l3:1(size=32MiB) core:2 pu:2"
    2 packages, 2 memory nodes, 4 cores, 8 PUs, 128 GiB of memory
    5 workers on 5 of 8 PUs, each alone on its PU

    machine
    ├─ package 0 · numa 0 (64 GiB) · l3 0 (32 MiB)
    │  ├─ core 0: pu 0 [worker 0], pu 1 [worker 4]
    │  └─ core 1: pu 2 [worker 1], pu 3 (free)
    └─ package 1 · numa 1 (64 GiB) · l3 1 (32 MiB)
       ├─ core 2: pu 4 [worker 2], pu 5 (free)
       └─ core 3: pu 6 [worker 3], pu 7 (free)

    memory nodes
      numa 0  64 GiB  PUs 0-3  workers 0-1, 4
      numa 1  64 GiB  PUs 4-7  workers 2-3

    combined workers
      workers 0-4 of machine
      workers 0-1, 4 of l3 0
      workers 0, 4 of core 0
      workers 2-3 of l3 1
    "#);
    Ok(())
}

#[test]
fn the_text_shows_what_is_forbidden_and_what_is_shared() -> Result<(), Box<dyn Error>> {
    let machine = restricted();
    let picture = draw::text(&machine, &BindingPlan::new(&machine, 6)?);
    let body: Vec<&str> = picture.lines().skip(1).collect(); // The first line names a temporary file.
    insta::assert_snapshot!(body.join("\n"), @"
    2 packages, 4 memory nodes, 4 cores, 8 PUs, 40 GiB of memory
    6 workers on 4 of 8 PUs, some sharing a PU

    machine
    ├─ package 0
    │  ├─ numa 0 (16 GiB) · l3 0 (32 MiB)
    │  │  ├─ core 0: pu 0 [workers 0, 4], pu 1 [worker 2]
    │  │  └─ core 1: pu 2 [workers 1, 5], pu 3 [worker 3]
    │  └─ numa 1 (4 GiB) for PUs 0-3
    └─ package 1
       ├─ numa 2 (16 GiB) · l3 1 (32 MiB)
       │  ├─ core 2: pu 4 (forbidden), pu 5 (forbidden)
       │  └─ core 3: pu 6 (forbidden), pu 7 (forbidden)
       └─ numa 3 (4 GiB) for PUs 4-7

    memory nodes
      numa 0  16 GiB  PUs 0-3  workers 0-5
      numa 1   4 GiB  PUs 0-3  no workers
      numa 2  16 GiB  PUs 4-7  no workers
      numa 3   4 GiB  PUs 4-7  no workers

    combined workers
      workers 0-5 of l3 0
      workers 0, 2, 4 of core 0
      workers 1, 3, 5 of core 1

    warning: restricted: this process may use 4 of the machine's 8 PUs (affinity mask or cgroup)
    warning: oversubscribed: workers 4-5 share PUs with other workers, because only 4 may be used; timings and performance models will be unreliable (use at most 4 workers)
    ");
    Ok(())
}

#[test]
fn the_graph_has_a_node_for_each_box() -> Result<(), Box<dyn Error>> {
    let (machine, plan) = planned("package:1 core:2 pu:2", 3)?;
    insta::assert_snapshot!(draw::dot(&machine, &plan), @r##"
    graph topology {
      graph [label="synthetic topology \"package:1 core:2 pu:2\"\n1 package, 1 memory node, 2 cores, 4 PUs, 1 GiB of memory\n3 workers on 3 of 4 PUs, each alone on its PU", labelloc=t, rankdir=LR, fontname="sans-serif"];
      node [shape=box, style=filled, fillcolor="#f1f5f9", color="#94a3b8", fontname="sans-serif"];
      edge [color="#94a3b8"];
      n0 [label="machine\npackage 0\nnuma 0 (1 GiB)"];
      n1 [label="core 0"];
      n2 [label="pu 0\nworker 0", fillcolor="#0f766e", fontcolor=white];
      n3 [label="pu 1\nworker 2", fillcolor="#0f766e", fontcolor=white];
      n1 -- n2;
      n1 -- n3;
      n4 [label="core 1"];
      n5 [label="pu 2\nworker 1", fillcolor="#0f766e", fontcolor=white];
      n6 [label="pu 3\nfree", fillcolor=white];
      n4 -- n5;
      n4 -- n6;
      n0 -- n1;
      n0 -- n4;
    }
    "##);
    Ok(())
}

#[test]
fn the_graph_escapes_what_would_end_a_string() -> Result<(), Box<dyn Error>> {
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("a\"b\\c<&>.xml");
    std::fs::copy(two_memories(), &path)?;
    let machine = Topology::from_xml_file(&path)?;
    let plan = BindingPlan::new(&machine, 1)?;
    assert!(draw::dot(&machine, &plan).contains("a\\\"b\\\\c<&>.xml"));
    assert!(draw::svg(&machine, &plan).contains("a&quot;b\\c&lt;&amp;&gt;.xml"));
    Ok(())
}

#[test]
fn the_drawing_names_every_object_and_worker() -> Result<(), Box<dyn Error>> {
    let (machine, plan) = planned("node:2 package:1 l3:1 core:2 pu:2", 9)?;
    let drawing = draw::svg(&machine, &plan);
    for object in machine.root().walk() {
        assert!(drawing.contains(&format!(">{}", object.title())), "{}", object.title());
    }
    for worker in 1..8 {
        assert!(drawing.contains(&format!(">worker {worker}<")), "worker {worker}");
    }
    assert!(drawing.contains(">2 workers<") && drawing.contains("pu 0: workers 0, 8 take turns here"));
    assert!(drawing.contains("oversubscribed"));
    Ok(())
}

#[test]
fn no_two_pus_of_the_drawing_overlap() -> Result<(), Box<dyn Error>> {
    let (machine, plan) = planned("package:2 l3:3 l2:2 core:3 pu:2", 72)?;
    let drawing = draw::svg(&machine, &plan);
    let number = |line: &str, key: &str| -> Option<i64> {
        let (_, rest) = line.split_once(&format!(" {key}=\""))?;
        rest.split('"').next()?.parse().ok()
    };
    let corners: Vec<(i64, i64)> = drawing
        .lines()
        .filter(|line| line.starts_with("<g>") && line.contains("#0f766e"))
        .filter_map(|line| Some((number(line, "x")?, number(line, "y")?)))
        .collect();
    assert_eq!(corners.len(), 72);
    for (at, a) in corners.iter().enumerate() {
        for b in &corners[..at] {
            assert!((a.0 - b.0).abs() >= 74 || (a.1 - b.1).abs() >= 40, "{a:?} {b:?}");
        }
    }
    Ok(())
}

// Longer than 60 lines because of its golden text.
#[test]
fn programs_find_everything_under_stable_keys() -> Result<(), Box<dyn Error>> {
    let (machine, plan) = planned("node:1 core:1 pu:2", 3)?;
    insta::assert_snapshot!(draw::json(&machine, &plan), @r#"
    {
      "source": {
        "kind": "synthetic",
        "description": "node:1 core:1 pu:2"
      },
      "this_machine": false,
      "allowed_pus": [
        0,
        1
      ],
      "machine": {
        "level": "machine",
        "os_index": 0,
        "logical_index": 0,
        "pus": [
          0,
          1
        ],
        "memory_bytes": 1073741824,
        "children": [
          {
            "level": "core",
            "os_index": 0,
            "logical_index": 0,
            "pus": [
              0,
              1
            ],
            "memory_bytes": null,
            "children": [
              {
                "level": "numa",
                "os_index": 0,
                "logical_index": 0,
                "pus": [
                  0,
                  1
                ],
                "memory_bytes": 1073741824,
                "children": [
                  {
                    "level": "pu",
                    "os_index": 0,
                    "logical_index": 0,
                    "pus": [
                      0
                    ],
                    "memory_bytes": null,
                    "children": []
                  },
                  {
                    "level": "pu",
                    "os_index": 1,
                    "logical_index": 1,
                    "pus": [
                      1
                    ],
                    "memory_bytes": null,
                    "children": []
                  }
                ]
              }
            ]
          }
        ]
      },
      "memory_nodes": [
        {
          "os_index": 0,
          "memory_bytes": 1073741824,
          "pus": [
            0,
            1
          ],
          "workers": [
            0,
            1,
            2
          ]
        }
      ],
      "workers": [
        {
          "worker": 0,
          "pu": 0,
          "core": 0,
          "numa": 0,
          "shared": true
        },
        {
          "worker": 1,
          "pu": 1,
          "core": 0,
          "numa": 0,
          "shared": false
        },
        {
          "worker": 2,
          "pu": 0,
          "core": 0,
          "numa": 0,
          "shared": true
        }
      ],
      "combined_workers": [
        {
          "members": [
            0,
            1,
            2
          ],
          "within": "numa 0"
        }
      ],
      "warnings": [
        {
          "kind": "oversubscribed",
          "workers": {
            "start": 2,
            "end": 3
          },
          "pus": 2,
          "message": "oversubscribed: worker 2 shares its PU with other workers, because only 2 may be used; timings and performance models will be unreliable (use at most 2 workers)"
        }
      ]
    }
    "#);
    Ok(())
}

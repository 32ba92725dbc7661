//! Every reader of files, with small valid inputs.

use clap::Parser;
use miette::{Diagnostic, GraphicalReportHandler, GraphicalTheme};
use sched_host::graph::{self, FileFormat};
use sched_host::linalg::{ReadLimits, parse_general, parse_symmetric};
use sched_host::model::starpu::CodeletFile;
use sched_host::model::{BusConfig, Fingerprint, Flaw, NodeMatrix, Quantity, Store};
use sched_host::policy::{FlatMachine, Fold, check, expand, read};
use sched_host::sim::Platform;
use sched_host::topology::{BindingPlan, Topology, draw};
use sched_tests::stock;
use std::path::Path;
use std::sync::OnceLock;

/// A reader with its valid inputs.
pub(super) struct Reader {
    pub(super) name: &'static str,
    pub(super) seeds: &'static [&'static str],
    /// Reads the input, which is in the file too. An error is returned as it is shown.
    pub(super) read: fn(&[u8], &Path) -> Result<(), String>,
}

/// All of them.
pub(super) static ALL: [&Reader; 14] = [
    &POLICY,
    &PLATFORM,
    &HWLOC_XML,
    &SYNTHETIC,
    &NATIVE_GRAPH,
    &WORKFLOW,
    &TASKS_REC,
    &STG,
    &STARPU_CODELET,
    &STARPU_MATRIX,
    &STORED_MODEL,
    &STORED_LINKS,
    &MATRIX_MARKET,
    &WORKLOAD,
];

/// The error as the program shows it.
fn drawn(error: &dyn Diagnostic) -> String {
    let mut text = String::new();
    let handler = GraphicalReportHandler::new_themed(GraphicalTheme::unicode_nocolor());
    handler.render_report(&mut text, error).expect("a string takes everything");
    text
}

fn shown(error: &(impl Diagnostic + std::fmt::Debug)) -> String {
    format!("{error:?}{}", drawn(error))
}

fn listed(flaws: &[Flaw]) -> String {
    assert!(flaws.len() <= 101, "{} errors are kept", flaws.len());
    flaws.iter().map(|flaw| format!("{}:{}: {}\n", flaw.line, flaw.column, flaw.message)).collect()
}

/// Bytes that are no text are refused before the reader sees them.
fn text(input: &[u8]) -> Result<String, String> {
    sched_host::text::decode(input.to_vec()).map_err(|error| error.to_string())
}

pub(super) static POLICY: Reader = Reader {
    name: "policy.kdl",
    seeds: &[
        include_str!("../../../sched-host/policy/policies/tree-heft.kdl"),
        include_str!("../../../sched-host/policy/policies/tree-ws.kdl"),
        include_str!("../../../sched-host/policy/policies/tree-heteroprio.kdl"),
    ],
    read: |input, _| {
        static CATALOGUE: OnceLock<sched_host::policy::Catalogue> = OnceLock::new();
        let catalogue = CATALOGUE.get_or_init(|| stock::registry(Vec::new()).catalogue());
        let found = read("policy.kdl", &text(input)?);
        let mut display_text = String::new();
        assert!(found.findings.len() <= 101, "{} findings are kept", found.findings.len());
        found.findings.iter().for_each(|finding| display_text.push_str(&drawn(finding)));
        for policy in &found.policies {
            check(policy, catalogue).iter().take(100).for_each(|finding| display_text.push_str(&drawn(finding)));
            match expand(policy, catalogue, &FlatMachine { workers: 4 }) {
                Ok(plan) => assert!(!plan.to_text(Fold::Runs).is_empty()),
                Err(findings) => display_text.push_str(&shown(&findings)),
            }
        }
        if display_text.is_empty() { Ok(()) } else { Err(display_text) }
    },
};

pub(super) static PLATFORM: Reader = Reader {
    name: "platform.kdl",
    seeds: &[
        include_str!("../../../sched-host/sim/platforms/cpu9-gpu3.kdl"),
        include_str!("../../../sched-host/sim/platforms/numa-2x12.kdl"),
    ],
    read: |input, _| match Platform::parse("platform.kdl", &text(input)?) {
        Ok(platform) => {
            assert!(!platform.to_text().is_empty());
            Ok(())
        }
        Err(findings) => Err(shown(&findings)),
    },
};

/// What anybody does with a machine.
fn looked_at(machine: &Topology) {
    let plan = BindingPlan::new(machine, 2);
    plan.into_iter().for_each(|plan| assert!(!draw::text(machine, &plan).is_empty()));
}

pub(super) static HWLOC_XML: Reader = Reader {
    name: "machine.xml",
    seeds: &[include_str!("../../../sched-host/machine/src/topology/testdata/two-memories.xml")],
    read: |_, file| Topology::from_xml_file(file).map(|machine| looked_at(&machine)).map_err(|error| shown(&error)),
};

pub(super) static SYNTHETIC: Reader = Reader {
    name: "synthetic",
    seeds: &[
        "node:2 package:1 l3:1 core:8 pu:2",
        "node:2(memory=64GiB) l3:1(size=32MiB) core:2 pu:1(indexes=0,2,1,3)",
        "package:2 [numa(memory=1GB)] [numa] group:2 die:1 core:0x2 pu:02",
        "2 2 2",
    ],
    read: |input, _| {
        let description = text(input)?;
        Topology::from_synthetic(&description).map(|machine| looked_at(&machine)).map_err(|error| shown(&error))
    },
};

fn graph(name: &str, input: &[u8], format: FileFormat) -> Result<(), String> {
    let graph = graph::parse(name, text(input)?, Some(format)).map_err(|error| {
        assert!(error.problems().len() <= 100);
        shown(&error)
    })?;
    let dependencies = graph.dependencies();
    assert!(!graph::to_json(&graph, &dependencies).is_empty());
    Ok(())
}

pub(super) static NATIVE_GRAPH: Reader = Reader {
    name: "graph.json",
    seeds: &[r#"{ "format": "sched-task-graph", "version": 1, "name": "hand",
  "data": [ { "bytes": 8, "home": 0 }, { "name": "B", "bytes": 4096 } ],
  "tasks": [
    { "kind": "make", "accesses": [ { "data": 0, "mode": "write" } ] },
    { "kind": "use", "accesses": [ { "data": 0, "mode": "read" } ], "seconds": { "cpu": 0.001, "cuda": 1e-4 } },
    { "kind": "use", "after": [1] }
  ],
  "wont_use": [ { "submitted": 2, "data": 1 } ] }
"#],
    read: |input, _| graph("graph.json", input, FileFormat::Native),
};

pub(super) static WORKFLOW: Reader = Reader {
    name: "workflow.json",
    seeds: &[r#"{ "name": "blast", "schemaVersion": "1.5", "workflow": {
  "specification": {
    "tasks": [
      { "id": "split", "name": "split", "parents": [], "children": ["search"], "inputFiles": ["in"], "outputFiles": ["part"] },
      { "id": "search", "name": "search", "parents": ["split"], "children": [], "inputFiles": ["part"], "outputFiles": [] }
    ],
    "files": [ { "id": "in", "sizeInBytes": 1000 }, { "id": "part", "sizeInBytes": 500 } ]
  },
  "execution": { "makespanInSeconds": 3, "tasks": [
    { "id": "split", "runtimeInSeconds": 1.5, "command": { "program": "split" } },
    { "id": "search", "runtimeInSeconds": 2 }
  ] }
} }
"#],
    read: |input, _| graph("workflow.json", input, FileFormat::WfFormat),
};

pub(super) static TASKS_REC: Reader = Reader {
    name: "tasks.rec",
    seeds: &["Model: gemm\nJobId: 1\nSubmitOrder: 1\nPriority: 5\nWorkerId: 0\nFootprint: 24c84a50\nGFlop: 1.77\n\
         Handles: a b\nModes: R RW\nSizes: 8192 8192\n\nControl: WontUse\nJobId: 2\nSubmitOrder: 2\nHandles: a\n\n\
         Name: last\nModel: potrf\nJobId: 3\nSubmitOrder: 3\nDependsOn: 1\nWorkerId: 1\nHandles: b\nModes: W\nSizes: 8192\n"],
    read: |input, _| graph("tasks.rec", input, FileFormat::TasksRec),
};

pub(super) static STG: Reader = Reader {
    name: "graph.stg",
    seeds: &["4\n0 0 0\n1 10 1 0\n2 20 1 0\n3 5 2 1 2\n4 7 1 3\n5 0 1 4\n# a comment\n"],
    read: |input, _| graph("graph.stg", input, FileFormat::Stg),
};

pub(super) static STARPU_CODELET: Reader = Reader {
    name: "starpu-codelet",
    seeds: &["# Performance Model Version\n45\n\n1\n# COMB_0\n1\n0\n0\n1\n# implementations\n2\n# entries\n2\n\
         1.0e+00 2.0e+00 3.0e+00 4.0e+00 nan -nan 7 10 1000\nnan\tnan\tnan\n0\n\
         24c84a50\t11059200\t1.769472e+09\t8.778020e+04\t9.598441e+02\t2.889724e+08\t2.536909e+13\t3292\n\
         0000ff01\t4096\t5.0e+1\t2.5\t6.0e+2\t3.0075e+4\t12\n0\n0 0 0 0 nan nan 0 0 0\n1.5 0.5 inf\n3 0.25 1 2\n"],
    read: |input, _| {
        let file = CodeletFile::parse(&String::from_utf8_lossy(input)).map_err(|flaws| listed(&flaws))?;
        let imported = file.import(Quantity::Time);
        assert!(!CodeletFile::export(&imported.kind, &imported.measurements, Quantity::Time, 2).to_text().is_empty());
        Ok(())
    },
};

pub(super) static STARPU_MATRIX: Reader = Reader {
    name: "starpu-bus",
    seeds: &[
        "# to 0\t\tto 1\n0.000000e+00\t9.1e+03\n9.0e+03\t0.0e+00\nnan nan\n",
        "# Current configuration\n4 # CPUs\n2 # CUDA devices\n0 # OpenCL\n",
    ],
    read: |input, _| {
        let input = String::from_utf8_lossy(input);
        let matrix = NodeMatrix::parse(&input).map(|matrix| drop(matrix.to_text()));
        let config = BusConfig::parse(&input).map(|config| drop(config.to_text()));
        matrix.or(config).map_err(|flaws| listed(&flaws))
    },
};

/// Reads with a store whose file for `name` is the input.
fn stored<T>(
    file: &Path,
    name: &str,
    read: impl Fn(&Store) -> Result<Option<T>, sched_host::model::ModelError>,
) -> Result<(), String> {
    let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
    let store = Store::new(folder.path(), Fingerprint::named("here"));
    std::fs::create_dir_all(store.directory()).map_err(|error| error.to_string())?;
    std::fs::copy(file, store.directory().join(name)).map_err(|error| error.to_string())?;
    match read(&store) {
        Ok(Some(_)) => Ok(()),
        Ok(None) => panic!("there is no file {name}"),
        Err(error) => Err(shown(&error)),
    }
}

pub(super) static STORED_MODEL: Reader = Reader {
    name: "stored.model",
    seeds: &[r#"{"format":"sched-model","version":1,"symbol":"potrf","kind":"history","machine":"here"}
{"history":{"arch":"cpu","cores":1,"implementation":0,"quantity":"time","footprint":"617e5fe6","bytes":7372800,"bins":[[129,12,873456.1,63577130000.0]]}}
{"end":{"lines":2}}
"#],
    read: |_, file| stored(file, "potrf.model", |store| store.read("potrf")),
};

pub(super) static STORED_LINKS: Reader = Reader {
    name: "stored.bus",
    seeds: &[r#"{"format":"sched-bus","version":1,"machine":"here","nodes":2}
{"link":{"from":0,"to":1,"latency_us":0.4,"bandwidth_mb_s":9100.0}}
{"link":{"from":1,"to":0,"latency_us":0.4,"bandwidth_mb_s":9000.0}}
{"end":{"lines":3}}
"#],
    read: |_, file| stored(file, "memory-nodes.bus", Store::bus),
};

pub(super) static MATRIX_MARKET: Reader = Reader {
    name: "matrix.mtx",
    seeds: &[
        "%%MatrixMarket matrix coordinate real symmetric\n% a comment\n3 3 4\n1 1 4.0\n2 2 5e0\n3 3 6\n3 1 -1.5\n",
        "%%MatrixMarket matrix array integer general\n2 2\n4\n1\n1\n5\n",
        "%%MatrixMarket matrix coordinate real general\n2 2 2\n1 1 2\n2 2 .5\n",
    ],
    read: |input, _| {
        let limits = ReadLimits { max_order: 1000, ..ReadLimits::default() };
        let input = text(input)?;
        let symmetric = parse_symmetric("matrix.mtx", input.clone(), limits).map(drop);
        let general = parse_general("matrix.mtx", input, limits).map(drop);
        symmetric.or(general).map_err(|error| shown(&error))
    },
};

#[derive(Parser)]
struct Graph {
    #[command(flatten)]
    args: sched_cli::graph::Args,
}

pub(super) static WORKLOAD: Reader = Reader {
    name: "workload",
    seeds: &[
        "cholesky --tiles 4 --tile-size 8",
        "layered --width 3 --steps 4 --density 0.25 --length 0.001 --bytes 40 --seed 7",
        "independent --tasks 9 --length 0.5 --json",
        "stencil --width 3 --steps 2 --format svg",
    ],
    read: |input, _| {
        let line = text(input)?;
        // Numbers of tasks that are large, and valid, take the time and memory that they need.
        let large = |word: &str| word.parse::<f64>().is_ok_and(|number| (50.0..3e7).contains(&number));
        let words: Vec<&str> = line.split_whitespace().filter(|word| !large(word)).collect();
        let read = Graph::try_parse_from(["graph"].into_iter().chain(words)).map_err(|error| error.to_string())?;
        let mut out = Vec::new();
        sched_cli::graph::run(&read.args, &mut out).map(drop).map_err(|report| drawn(report.as_ref()))
    },
};

//! Which crate of the workspace may name which: the arrows of ARCHITECTURE.md run down only.

use sched_tests::repository::{cargo, metadata};
use serde_json::Value;
use std::collections::BTreeSet;

/// Crates of one layer.
struct Layer {
    crates: &'static [&'static str],
    /// Whether they may name each other. (Cargo refuses a circle.)
    siblings: bool,
}

/// From the lowest to the highest: a crate may name those of lower layers.
const LAYERS: [Layer; 10] = [
    Layer { crates: &["sched-core"], siblings: false },
    Layer { crates: &["sched-components", "sched-sync", "sched-text"], siblings: false },
    Layer { crates: &["sched-machine", "sched-policy"], siblings: true },
    Layer { crates: &["sched-graph", "sched-memory", "sched-model", "sched-trace", "sched-tree"], siblings: true },
    Layer { crates: &["sched-runtime", "sched-sim"], siblings: false },
    Layer { crates: &["sched-cluster", "sched-cublas"], siblings: false },
    Layer { crates: &["sched-workloads"], siblings: false },
    Layer { crates: &["sched-host"], siblings: false },
    Layer { crates: &["sched-cli"], siblings: false },
    Layer { crates: &["sched-test-support", "sched-tests"], siblings: true },
];

/// The only dependencies of a plugin.
const IN_PLUGINS: [&str; 2] = ["sched-core", "sched-components"];

/// What device drivers name besides: bindings to libraries of vendors, which are loaded when a driver is opened.
const BINDINGS: [&str; 2] = ["cl3", "cudarc"];

/// Crates for programs on a terminal only.
const TERMINAL: [&str; 7] =
    ["clap", "clap_complete", "clap_mangen", "comfy-table", "indicatif", "terminal_size", "textwrap"];

/// Further crates that an application must not have to build.
const HEAVY: [&str; 2] = ["faer", "microlp"];

/// Number of crates that an application builds for the library at most.
const MAX_CRATES: usize = 90;

/// One line of a manifest: `package` depends on `dependency`.
struct Arrow {
    package: String,
    dependency: String,
    kind: String,
    /// Features that the manifest asks for.
    features: Vec<String>,
}

fn packages() -> Vec<Value> {
    metadata()["packages"].as_array().expect("a workspace has packages").clone()
}

fn text<'value>(value: &'value Value, key: &str) -> &'value str {
    value[key].as_str().unwrap_or_else(|| panic!("`{key}` is a text in {value}"))
}

/// What the manifests of the workspace name, in all kinds of dependencies.
fn arrows(packages: &[Value]) -> Vec<Arrow> {
    let of = |package: &Value| -> Vec<Arrow> {
        let dependencies = package["dependencies"].as_array().expect("a list");
        let arrow = |dependency: &Value| Arrow {
            package: text(package, "name").to_owned(),
            dependency: text(dependency, "name").to_owned(),
            kind: dependency["kind"].as_str().unwrap_or("normal").to_owned(),
            features: dependency["features"]
                .as_array()
                .into_iter()
                .flatten()
                .filter_map(Value::as_str)
                .map(str::to_owned)
                .collect(),
        };
        dependencies.iter().map(arrow).collect()
    };
    packages.iter().flat_map(of).collect()
}

fn height(package: &str) -> Option<usize> {
    LAYERS.iter().position(|layer| layer.crates.contains(&package))
}

fn is_plugin(package: &str) -> bool {
    package.starts_with("sched-plugin-")
}

/// Reason why this dependency is forbidden, if it is.
fn objection(Arrow { package, dependency, .. }: &Arrow) -> Option<String> {
    if is_plugin(package) {
        let is_binding = package.starts_with("sched-plugin-driver-") && BINDINGS.contains(&dependency.as_str());
        let fits = is_binding || IN_PLUGINS.contains(&dependency.as_str());
        return (!fits).then(|| format!("{package} names {dependency}: a plugin needs {} only", IN_PLUGINS.join(", ")));
    }
    let (from, to) = (height(package)?, height(dependency)?);
    let beside = from == to && !LAYERS[from].siblings;
    (from < to || beside).then(|| {
        let where_it_is = if beside { "stands beside it" } else { "stands above it" };
        format!("{package} names {dependency}, which {where_it_is}: move what both need to a lower crate")
    })
}

#[test]
fn dependencies_run_down_only() {
    let packages = packages();
    let names: Vec<&str> = packages.iter().map(|package| text(package, "name")).collect();
    let unknown: Vec<&&str> = names.iter().filter(|name| !is_plugin(name) && height(name).is_none()).collect();
    assert!(unknown.is_empty(), "give these crates a layer in this test and in ARCHITECTURE.md: {unknown:?}");
    let missing: Vec<&&str> =
        LAYERS.iter().flat_map(|layer| layer.crates).filter(|name| !names.contains(name)).collect();
    assert!(missing.is_empty(), "these crates have a layer but are not in the workspace: {missing:?}");
    let arrows = arrows(&packages);
    let wrong: Vec<String> = arrows.iter().filter(|arrow| arrow.kind != "dev").filter_map(objection).collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Not even for their tests: what both show is tested in `tests/tests`.
#[test]
fn runtime_and_simulation_never_name_each_other() {
    let pair = ["sched-runtime", "sched-sim"];
    let is_one = |name: &String| pair.contains(&name.as_str());
    let arrows = arrows(&packages());
    let wrong: Vec<String> = arrows
        .iter()
        .filter(|Arrow { package, dependency, .. }| is_one(package) && is_one(dependency))
        .map(|Arrow { package, dependency, kind, .. }| format!("{package} names {dependency} ({kind})"))
        .collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn arrows_that_run_up_are_found() {
    let says = |package: &str, dependency: &str| {
        let (package, dependency) = (package.to_owned(), dependency.to_owned());
        objection(&Arrow { package, dependency, kind: "normal".to_owned(), features: Vec::new() })
    };
    assert_eq!(
        says("sched-tree", "sched-runtime").as_deref(),
        Some("sched-tree names sched-runtime, which stands above it: move what both need to a lower crate")
    );
    assert_eq!(
        says("sched-sim", "sched-runtime").as_deref(),
        Some("sched-sim names sched-runtime, which stands beside it: move what both need to a lower crate")
    );
    assert_eq!(
        says("sched-plugin-worker", "sched-host").as_deref(),
        Some("sched-plugin-worker names sched-host: a plugin needs sched-core, sched-components only")
    );
    assert_eq!(says("sched-plugin-driver-opencl", "cl3"), None, "a driver needs the library of its vendor");
    assert!(says("sched-plugin-worker", "cl3").is_some(), "components do not");
    assert_eq!(says("sched-trace", "sched-tree"), None, "crates of this layer may name each other");
    assert_eq!(says("sched-cli", "clap"), None, "crates from elsewhere are not looked at");
}

/// Libraries return data and errors; the program draws them.
#[test]
fn only_the_program_knows_terminals() {
    let packages = packages();
    let is_library = |name: &str| height(name).is_some_and(|height| height < height_of_the_program());
    let arrows = arrows(&packages);
    let draws = |arrow: &&Arrow| {
        let fancy = arrow.features.iter().any(|feature| feature.starts_with("fancy"));
        TERMINAL.contains(&arrow.dependency.as_str()) || (arrow.dependency == "miette" && fancy)
    };
    let of_libraries = arrows.iter().filter(|arrow| is_library(&arrow.package) && arrow.kind != "dev");
    let wrong: Vec<String> = of_libraries
        .filter(draws)
        .map(|Arrow { package, dependency, features, .. }| format!("{package} names {dependency} {features:?}"))
        .collect();
    assert!(wrong.is_empty(), "only sched-cli may:\n{}", wrong.join("\n"));
}

fn height_of_the_program() -> usize {
    height("sched-cli").expect("the program has a layer")
}

#[test]
fn the_library_stays_small() {
    let tree = cargo(&["tree", "--package", "sched-host", "--edges", "normal", "--prefix", "none"]);
    // A line is a name, a version, and notes in parentheses.
    let crates: BTreeSet<(&str, &str)> = tree
        .lines()
        .filter_map(|line| {
            let mut words = line.split(' ');
            Some((words.next()?, words.next()?))
        })
        .collect();
    let heavy: Vec<&str> =
        TERMINAL.into_iter().chain(HEAVY).filter(|name| crates.iter().any(|it| it.0 == *name)).collect();
    assert!(heavy.is_empty(), "an application does not need {heavy:?}");
    assert!(crates.len() <= MAX_CRATES, "{} crates, expected at most {MAX_CRATES}:\n{tree}", crates.len());
}

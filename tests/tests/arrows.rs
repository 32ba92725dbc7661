//! Which crate of the workspace may name which: the arrows of ARCHITECTURE.md run down only.

use serde_json::Value;
use std::path::Path;
use std::process::Command;

/// Crates of one height.
struct Layer {
    crates: &'static [&'static str],
    /// Whether they may name each other. (Cargo refuses a circle.)
    siblings: bool,
}

/// From the lowest to the highest: a crate may name those of lower layers.
const LAYERS: [Layer; 10] = [
    Layer { crates: &["sched-core"], siblings: false },
    Layer { crates: &["sched-components", "sched-text"], siblings: false },
    Layer { crates: &["sched-sync"], siblings: false },
    Layer { crates: &["sched-machine", "sched-policy"], siblings: true },
    Layer { crates: &["sched-graph", "sched-memory", "sched-model", "sched-trace", "sched-tree"], siblings: true },
    Layer { crates: &["sched-runtime", "sched-sim"], siblings: false },
    Layer { crates: &["sched-workloads"], siblings: false },
    Layer { crates: &["sched-host"], siblings: false },
    Layer { crates: &["sched-cli"], siblings: false },
    Layer { crates: &["sched-test-support", "sched-tests"], siblings: true },
];

/// What a plugin file is made of, and nothing else.
const IN_PLUGINS: [&str; 2] = ["sched-core", "sched-components"];

/// One line of a manifest: `package` depends on `dependency`.
struct Arrow {
    package: String,
    dependency: String,
    kind: String,
}

/// Standard output of cargo in the root of the repository.
fn cargo(arguments: &[&str]) -> String {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let output = Command::new(env!("CARGO")).args(arguments).arg("--offline").current_dir(root).output();
    let output = output.expect("cargo starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("cargo writes UTF-8")
}

fn packages() -> Vec<Value> {
    let metadata: Value =
        serde_json::from_str(&cargo(&["metadata", "--format-version", "1", "--no-deps"])).expect("cargo writes JSON");
    metadata["packages"].as_array().expect("a workspace has packages").clone()
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

/// Why this arrow must not be, if so.
fn objection(Arrow { package, dependency, .. }: &Arrow) -> Option<String> {
    if is_plugin(package) {
        let fits = IN_PLUGINS.contains(&dependency.as_str());
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
        .map(|Arrow { package, dependency, kind }| format!("{package} names {dependency} ({kind})"))
        .collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn arrows_that_run_up_are_found() {
    let says = |package: &str, dependency: &str| {
        objection(&Arrow { package: package.into(), dependency: dependency.into(), kind: "normal".into() })
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
    assert_eq!(says("sched-trace", "sched-tree"), None, "crates of this layer may name each other");
    assert_eq!(says("sched-cli", "clap"), None, "crates from elsewhere are not looked at");
}

//! Policies with the component, run and simulated, beside the same policies with a stock component.

use super::TestError;
use super::child::{self, Ended, ending};
use super::report::{Compared, Outcome};
use crate::plugins::PluginOptions;
use sched_core::{Arity, ComponentInfo, Value};
use sched_policy::{Catalogue, check, read};
use sched_text::Finding;
use sched_tree::plugin::Registered;
use serde_json::Value as Json;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// Stands for the component in a tree.
const IT: &str = "COMPONENT";

/// Number of trees that are tried with a component.
const MOST: usize = 3;

/// A folder in which nothing but the plugin is found.
pub(super) struct Place {
    folder: PathBuf,
    /// The plugin's file name in it.
    library: String,
    plugins: PluginOptions,
    patience: Duration,
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.folder);
    }
}

impl Place {
    pub(super) fn new(file: &Path, plugins: &PluginOptions, patience: Duration) -> Result<Place, TestError> {
        let failed = |error| TestError::NoProcess { what: "there is no temporary folder", error };
        let folder = std::env::temp_dir().join(format!("sched-plugin-test-{}", std::process::id()));
        fs::create_dir_all(folder.join("plugins")).map_err(failed)?;
        let library = format!("tested.{}", std::env::consts::DLL_EXTENSION);
        let mut place = Place { folder, library, plugins: plugins.clone(), patience };
        symlink(super::absolute(file), place.folder.join("plugins").join(&place.library)).map_err(failed)?;
        place.plugins.plugin_dirs.insert(0, place.folder.join("plugins"));
        Ok(place)
    }

    /// Runs and simulates some policies with the component.
    pub(super) fn compare(
        &self,
        component: &Registered,
        values: &[(String, Value)],
        seed: u64,
    ) -> Result<Vec<Compared>, TestError> {
        let info = component.info();
        // The component with its parameters, as a policy names it.
        let it: String = values.iter().fold(info.name.clone(), |it, (name, value)| format!("{it} {name}={value}"));
        let mut plugins = self.plugins.clone();
        // Another component may have its name.
        let named = format!("{}={}", info.name, self.library);
        plugins.overrides = vec![sched_policy::Override::new(&info.name).from(&self.library)];
        let Ok(registry) = plugins.registry() else { return Ok(Vec::new()) };
        let catalogue = registry.catalogue();
        let stock = stock(info);
        let mut compared = Vec::new();
        let sound = trees(info).into_iter().filter(|tree| is_sound(&tree.replace(IT, &it), &catalogue));
        for tree in sound.take(MOST) {
            let with = |name: &str, words: &[&str]| self.run(&tree.replace(IT, name), words, &named, seed);
            let run = ["run", "cholesky", "--tiles", "5", "--tile-size", "16", "--workers", "2", "--quiet-period", "1"];
            let simulate = ["simulate", "cholesky", "--tiles", "8", "--platform", "cpu9-gpu3"];
            let ran = with(&it, &run)?;
            let simulated = with(&it, &simulate)?;
            let beside = tree.replace(IT, stock);
            let reference = if is_sound(&beside, &catalogue) { with(stock, &simulate)?.makespan_s } else { None };
            let ratio = simulated.makespan_s.zip(reference).map(|(it, stock)| it / stock);
            let policy = tree.replace(IT, &it);
            compared.push(Compared { policy, run: ran, simulation: simulated, stock: ratio.map(|_| stock), ratio });
        }
        Ok(compared)
    }

    fn run(&self, tree: &str, words: &[&str], named: &str, seed: u64) -> Result<Outcome, TestError> {
        let policy = self.folder.join("policy.kdl");
        let text = format!("policy \"tested\" {{\n{}\n}}\n", with_shared(tree));
        fs::write(&policy, text)
            .map_err(|error| TestError::NoProcess { what: "there is no temporary folder", error })?;
        let mut command = child::sched(words)?;
        command.arg("--policy").arg(&policy).args(["--json", "--seed", &seed.to_string(), "--override", named]);
        command.arg("--patience").arg(self.patience.as_secs_f64().to_string());
        self.with_plugins(&mut command);
        let ended = child::run(command, self.patience * 6)?;
        Ok(outcome(&ended))
    }

    fn with_plugins(&self, command: &mut Command) {
        for folder in &self.plugins.plugin_dirs {
            command.arg("--plugin-dir").arg(folder);
        }
        if let Some(path) = &self.plugins.plugin_path {
            command.arg("--plugin-path").arg(path);
        }
        if self.plugins.no_builtin {
            command.arg("--no-builtin");
        }
    }
}

/// What became of a run or a simulation.
fn outcome(ended: &Ended) -> Outcome {
    let document: Json = serde_json::from_str(&ended.out).unwrap_or(Json::Null);
    let run = &document["runs"][0];
    let makespan_s = run["makespan_s"].as_f64();
    let problem = match ended.status {
        None => Some("it does not end".to_owned()),
        Some(status) if status.code() == Some(0) && run.is_object() => faults(run),
        Some(status) => Some(error_of(&ended.err).unwrap_or_else(|| format!("{}, without a result", ending(status)))),
    };
    Outcome { makespan_s, problem }
}

/// The faults of a run, in one line: each of those that several nodes have once.
fn faults(run: &Json) -> Option<String> {
    let mut told: Vec<(String, &str, usize)> = Vec::new();
    for fault in run["faults"].as_array()? {
        let word = |key: &str| fault[key].as_str();
        let kind = word("fault").unwrap_or("fault");
        let more = word("message").or_else(|| word("breach")).map(|more| format!(": {more}")).unwrap_or_default();
        let method = word("method").map(|method| format!(" in `{method}`")).unwrap_or_default();
        let what = format!("{kind}{more}{method}");
        match told.iter_mut().find(|(known, _, _)| *known == what) {
            Some((_, _, nodes)) => *nodes += 1,
            None => told.push((what, word("node").unwrap_or_default(), 1)),
        }
    }
    let text = |(what, node, nodes): &(String, &str, usize)| match nodes {
        1 => format!("node `{node}`: {what}"),
        _ => format!("node `{node}` and {} others: {what}", nodes - 1),
    };
    let told: Vec<String> = told.iter().map(text).collect();
    (!told.is_empty()).then(|| told.join("; "))
}

/// The message of an error that a command wrote as JSON.
fn error_of(err: &str) -> Option<String> {
    let lines = err.lines().rev().filter_map(|line| serde_json::from_str::<Json>(line).ok());
    let message = lines.filter_map(|line| line["error"]["message"].as_str().map(str::to_owned)).next()?;
    Some(message.lines().take(4).map(str::trim).collect::<Vec<_>>().join(": "))
}

fn is_sound(tree: &str, catalogue: &Catalogue) -> bool {
    let text = format!("policy \"tested\" {{\n{}\n}}\n", with_shared(tree));
    let parsed = read("tested.kdl", &text);
    let found = parsed.policies.iter().flat_map(|policy| check(policy, catalogue));
    !parsed.policies.is_empty() && !parsed.findings.iter().cloned().chain(found).any(|found| Finding::is_error(&found))
}

/// With the definition of the shared leaf, if it is used.
fn with_shared(tree: &str) -> String {
    let shared = if tree.contains("use \"leaf\"") { "\nshared \"leaf\" each=\"worker\" { worker }" } else { "" };
    format!("{tree}{shared}")
}

/// The stock component that is most like it.
fn stock(info: &ComponentInfo) -> &'static str {
    match info.arity {
        Arity::One if info.stores => "fifo",
        Arity::One => "best-implementation",
        Arity::Leaf if info.combined => "combined-worker",
        Arity::Leaf => "worker",
        Arity::Many if info.needs_models => "mct",
        _ => "eager",
    }
}

/// Trees in which such a component may stand, the most usual first. Those that are not sound are left out.
fn trees(info: &ComponentInfo) -> Vec<String> {
    const EACH: &str = r#"each "worker" { worker }"#;
    let name = |text: &str| text.replace("EACH", EACH);
    match info.arity {
        Arity::One if info.stores => [
            "COMPONENT { eager { EACH } }",
            r#"fifo { eager { each "worker" { COMPONENT { worker } } } }"#,
            "COMPONENT { COMPONENT { eager { EACH } } }",
            "fifo { COMPONENT { eager { EACH } } }",
        ]
        .map(name)
        .to_vec(),
        Arity::One => [
            "fifo { COMPONENT { eager { EACH } } }",
            "COMPONENT { fifo { eager { EACH } } }",
            "fifo { COMPONENT { COMPONENT { eager { EACH } } } }",
            r#"fifo { eager { each "worker" { COMPONENT { worker } } } }"#,
        ]
        .map(name)
        .to_vec(),
        Arity::Leaf if info.combined => {
            vec![name(r#"fifo { eager { EACH; each "combined-worker" { COMPONENT } } }"#)]
        }
        Arity::Leaf => vec![
            r#"fifo { eager { each "worker" { COMPONENT } } }"#.to_owned(),
            r#"eager { each "worker" { fifo { COMPONENT } } }"#.to_owned(),
        ],
        Arity::Slots => {
            let slots: Vec<String> =
                info.slots.iter().map(|slot| format!("{} {{ eager {{ use \"leaf\" }} }}", slot.name)).collect();
            vec![format!("fifo {{ COMPONENT {{ {} }} }}", slots.join("; "))]
        }
        Arity::ManyAndSlots => {
            let slots: Vec<String> =
                info.slots.iter().map(|slot| format!("{} {{ eager {{ use \"leaf\" }} }}", slot.name)).collect();
            vec![format!("fifo {{ COMPONENT {{ use \"leaf\"; {} }} }}", slots.join("; "))]
        }
        _ => [
            "fifo { COMPONENT { EACH } }",
            r#"fifo { COMPONENT { each "worker" { fifo ntasks-threshold=2 { worker } } } }"#,
            "COMPONENT { EACH }",
            r#"COMPONENT { each "worker" { fifo { worker } } }"#,
            r#"fifo { perfmodel-select {
                perfmodel { COMPONENT { each "worker" { fifo ntasks-threshold=2 { use "leaf" } } } }
                calibrator { eager { each "worker" { fifo ntasks-threshold=2 { use "leaf" } } } }
                no-perfmodel { eager { each "worker" { fifo ntasks-threshold=2 { use "leaf" } } } }
            } }"#,
        ]
        .map(name)
        .to_vec(),
    }
}

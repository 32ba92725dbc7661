//! `--where KIND=PLACES` and `--sched-data KIND=NUMBER`: what the user says of the tasks of a kind.

use miette::miette;
use sched_core::Arch;
use sched_graph::{TaskGraph, Where};
use sched_runtime::Builder;
use sched_runtime::context::SchedContext;
use sched_text::did_you_mean;

/// Settings of tasks by their kinds.
#[derive(clap::Args, Clone, Debug, Default)]
pub(super) struct TaskOptions {
    /// Restrict the tasks of a kind to architectures or workers, such as gemm=cuda, potrf=0, trsm=0-3+8; `*` is every
    /// kind; repeat it for several
    #[arg(long = "where", value_name = "KIND=PLACES", value_parser = places)]
    pub(super) places: Vec<(String, Where)>,

    /// Give the tasks of a kind a number for the scheduler, which components such as user-choice read; `*` is every
    /// kind; repeat it for several
    #[arg(long, value_name = "KIND=NUMBER", value_parser = sched_data)]
    pub(super) sched_data: Vec<(String, u64)>,
}

/// Reads `gemm=0-3+8`.
fn places(text: &str) -> Result<(String, Where), String> {
    let (kind, places) = split(text, "gemm=cuda, or gemm=0-3+8")?;
    Ok((kind, places.parse()?))
}

/// Reads `gemm=1`.
fn sched_data(text: &str) -> Result<(String, u64), String> {
    let (kind, number) = split(text, "gemm=1")?;
    let number = number.parse().map_err(|_| format!("`{number}` is not a whole number from 0"))?;
    Ok((kind, number))
}

fn split<'t>(text: &'t str, example: &str) -> Result<(String, &'t str), String> {
    let (kind, rest) =
        text.split_once('=').ok_or_else(|| format!("`{text}` names no kind of task: write {example}"))?;
    Ok((kind.to_owned(), rest))
}

impl TaskOptions {
    /// Applies the settings to a graph.
    ///
    /// # Errors
    /// If the graph has no tasks of a kind.
    pub(super) fn apply(&self, graph: &mut TaskGraph) -> miette::Result<()> {
        self.check(graph)?;
        for at in 0..graph.tasks.len() {
            let kind = &graph.kinds[graph.tasks[at].kind.index()].name;
            let (places, data) = (setting(&self.places, kind).cloned(), setting(&self.sched_data, kind).copied());
            let task = &mut graph.tasks[at];
            if let Some(places) = places {
                task.only = Some(Box::new(places));
            }
            task.sched_data = data.unwrap_or(task.sched_data);
        }
        Ok(())
    }

    /// The settings for the kinds of `graph`, each by its name.
    ///
    /// # Errors
    /// If the graph has no tasks of a kind.
    pub(super) fn for_kinds_of(&self, graph: &TaskGraph) -> miette::Result<TaskOptions> {
        self.check(graph)?;
        let kinds = || graph.kinds.iter().map(|kind| &kind.name);
        let places = |kind: &String| Some((kind.clone(), setting(&self.places, kind)?.clone()));
        let data = |kind: &String| Some((kind.clone(), *setting(&self.sched_data, kind)?));
        Ok(TaskOptions { places: kinds().filter_map(places).collect(), sched_data: kinds().filter_map(data).collect() })
    }

    /// Applies the settings for named kinds to the codelets of a runtime.
    pub(super) fn set(&self, mut builder: Builder) -> Builder {
        for (kind, places) in &self.places {
            builder = builder.only_on(kind, places.clone());
        }
        for (kind, data) in &self.sched_data {
            builder = builder.sched_data(kind, *data);
        }
        builder
    }

    /// Checks, before anything runs, that each context with workers has one for the tasks of each kind of `graph`. Cores
    /// execute all kinds, devices those `on_devices`.
    ///
    /// # Errors
    /// All contexts and kinds without such a worker.
    pub(super) fn check_contexts(
        &self,
        contexts: &[SchedContext],
        graph: &TaskGraph,
        on_devices: &[&str],
    ) -> miette::Result<()> {
        let mut lines = Vec::new();
        for context in contexts {
            let is_able = |kind: &str| {
                let places = setting(&self.places, kind);
                let has_kernel = |arch| arch == Arch::CPU || on_devices.contains(&kind);
                context.has_worker(|worker, arch| {
                    has_kernel(arch) && places.is_none_or(|places| places.allows(worker, arch))
                })
            };
            let unable = graph.kinds.iter().map(|kind| &*kind.name).filter(|kind| !is_able(kind));
            let unable: Vec<String> = unable
                .map(|kind| match setting(&self.places, kind) {
                    Some(places) => format!("tasks of kind `{kind}` (restricted to {places})"),
                    None => format!("tasks of kind `{kind}`"),
                })
                .collect();
            if !context.workers().is_empty() && !unable.is_empty() {
                lines.push(format!("no worker of context `{}` may execute {}", context.name(), unable.join(", ")));
            }
        }
        if lines.is_empty() {
            return Ok(());
        }
        Err(miette!(
            help = "give the context a worker that may: --context NAME:workers=0-3; or change --where",
            "{}",
            lines.join("\n")
        ))
    }

    fn check(&self, graph: &TaskGraph) -> miette::Result<()> {
        let named = self.places.iter().map(|(kind, _)| kind).chain(self.sched_data.iter().map(|(kind, _)| kind));
        let known = graph.kinds.iter().map(|kind| &*kind.name);
        match named.into_iter().find(|kind| *kind != ANY && !known.clone().any(|known| known == *kind)) {
            None => Ok(()),
            Some(kind) => Err(miette!(
                help = did_you_mean(kind, known, "the kinds"),
                "the tasks of `{}` have no kind `{kind}`",
                graph.name
            )),
        }
    }
}

/// Stands for every kind.
const ANY: &str = "*";

/// The last setting for a kind.
fn setting<'a, T>(settings: &'a [(String, T)], kind: &str) -> Option<&'a T> {
    settings.iter().rev().find(|(of, _)| of == kind || of == ANY).map(|(_, value)| value)
}

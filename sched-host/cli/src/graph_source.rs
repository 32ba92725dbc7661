//! The task graph of a command: a generator with its sizes, or a file.

use super::hints::GRAPH;
use super::reports;
use super::streams::STREAM;
use super::task_options::TaskOptions;
use super::values::{number_bytes, positive, seconds, share};
use miette::miette;
use sched_graph::{AccessMode, Dependencies, TaskGraph, generate, read_with_warnings};
use std::path::Path;
use std::time::Duration;

/// The graph.
#[derive(clap::Args, Clone, Debug)]
pub(super) struct GraphOptions {
    /// cholesky, lu, qr, stencil, fork-join, layered or independent, or the path of a file (`-` is the standard input)
    #[arg(value_name = "GRAPH|FILE", required_unless_present = "graph", value_parser = GRAPH, hide_possible_values = true)]
    workload: Option<String>,

    /// Read the graph from this file, even if it has the name of a generator (`-` is the standard input)
    #[arg(long, value_name = "FILE", conflicts_with = "workload")]
    graph: Option<String>,

    #[command(flatten)]
    pub(super) tasks: TaskOptions,

    #[command(flatten)]
    sizes: Sizes,
}

impl GraphOptions {
    /// Reads or generates the graph; `seed` is for random ones.
    ///
    /// # Errors
    /// If the graph is unknown or too large, a size does not apply to it, its file is malformed, or it has no tasks of
    /// a kind that is set.
    pub(super) fn load(&self, seed: u64) -> miette::Result<TaskGraph> {
        let mut graph = match (&self.graph, &self.workload) {
            (Some(file), _) => self.sizes.file(file)?,
            (None, workload) => self.sizes.graph(workload.as_deref().unwrap_or_default(), seed)?,
        };
        self.tasks.apply(&mut graph)?;
        Ok(graph)
    }
}

/// Names of the generators.
pub(super) fn names() -> Vec<&'static str> {
    GENERATORS.iter().map(|(name, _)| *name).collect()
}

/// Heading of these options in a help.
const HEADING: &str = "Sizes of generated graphs";

/// Sizes of generated graphs. Each names the graphs it applies to.
#[derive(clap::Args, Clone, Debug)]
pub(super) struct Sizes {
    /// Tiles in a row of tiles [cholesky, lu, qr; default: 16]
    #[arg(long, short = 'n', value_name = "N", value_parser = positive, help_heading = HEADING)]
    tiles: Option<usize>,

    /// Rows of a tile [cholesky, lu, qr; default: 960]
    #[arg(long, short = 'b', value_name = "B", value_parser = positive, help_heading = HEADING)]
    tile_size: Option<usize>,

    /// Bytes of a number, or its precision: `double`, or 8, or `single`, or 4 [cholesky, lu, qr; default: 8]
    #[arg(long, visible_alias = "precision", value_name = "N", value_parser = number_bytes, help_heading = HEADING)]
    element_bytes: Option<usize>,

    /// Number of tasks in a step [stencil, fork-join, layered; default: 16]
    #[arg(long, value_name = "N", value_parser = positive, help_heading = HEADING)]
    width: Option<usize>,

    /// Number of steps, phases or layers [stencil, fork-join, layered; default: 10]
    #[arg(long, value_name = "N", value_parser = positive, help_heading = HEADING)]
    steps: Option<usize>,

    /// Number of tasks [independent; default: 1000]
    #[arg(long, value_name = "N", value_parser = positive, help_heading = HEADING)]
    tasks: Option<usize>,

    /// Probability that a task depends on a given one of the previous layer, from 0 to 1 [layered; default: 0.2]
    #[arg(long, value_name = "P", value_parser = share, help_heading = HEADING)]
    density: Option<f64>,

    /// Duration of a task on a CPU in seconds, or its mean [stencil, fork-join, layered, independent; default: 0.001]
    #[arg(long, value_name = "SECONDS", value_parser = seconds, help_heading = HEADING)]
    length: Option<Duration>,

    /// Bytes that a task passes to its successors [stencil, fork-join, layered; default: 1048576]
    #[arg(long, value_name = "N", help_heading = HEADING)]
    bytes: Option<u64>,
}

/// Names of the generators, with their sizes.
const GENERATORS: [(&str, &[&str]); 7] = [
    ("cholesky", &["--tiles", "--tile-size", "--element-bytes"]),
    ("lu", &["--tiles", "--tile-size", "--element-bytes"]),
    ("qr", &["--tiles", "--tile-size", "--element-bytes"]),
    ("stencil", &["--width", "--steps", "--length", "--bytes"]),
    ("fork-join", &["--width", "--steps", "--length", "--bytes"]),
    ("layered", &["--width", "--steps", "--density", "--length", "--bytes"]),
    ("independent", &["--tasks", "--length"]),
];

/// Maximum number of dependencies of a graph from a file, which take 2 GiB.
const MOST_DEPENDENCIES: usize = 1 << 28;

/// Maximum number of tasks and dependencies of a generated graph; more would not fit into the memory of most machines.
const MOST_TASKS: f64 = 3e7;

impl Sizes {
    /// Sets the number of tasks where the command line does not.
    pub(super) fn or_tasks(mut self, tasks: usize) -> Sizes {
        self.tasks.get_or_insert(tasks);
        self
    }

    /// The graph of the generator `name`, or of a file (`-` is the standard input). `seed` is for random graphs.
    ///
    /// # Errors
    /// If there is no such generator or file, a size does not apply to the graph, the graph would be too large, or the
    /// file is malformed.
    pub(super) fn graph(&self, name: &str, seed: u64) -> miette::Result<TaskGraph> {
        let Some((_, sizes)) = GENERATORS.iter().find(|(known, _)| *known == name) else {
            return self.file(name);
        };
        self.refuse_others(name, sizes)?;
        let (tiles, tile_size) = (self.tiles.unwrap_or(16), self.tile_size.unwrap_or(960));
        let (width, steps) = (self.width.unwrap_or(16), self.steps.unwrap_or(10));
        let (tasks, density) = (self.tasks.unwrap_or(1000), self.density.unwrap_or(0.2));
        let (length, bytes) = (self.length.unwrap_or(Duration::from_millis(1)), self.bytes.unwrap_or(1 << 20));
        let count = match name {
            "cholesky" => (tiles as f64).powi(3) / 6.0,
            "lu" | "qr" => (tiles as f64).powi(3) / 3.0,
            "independent" => tasks as f64,
            // Each task scans the previous layer; a scanned task costs a hundredth of a found one.
            "layered" => width as f64 * steps as f64 * (width as f64 * density.max(0.01)).max(1.0),
            _ => width as f64 * steps as f64,
        };
        if count > MOST_TASKS {
            return Err(miette!(
                help = "take fewer",
                "{name} of these sizes has some {count:.1e} tasks and dependencies, the maximum is {MOST_TASKS:.0e}"
            ));
        }
        if tile_size > 1 << 20 {
            return Err(miette!("a tile of {tile_size} rows is larger than any memory"));
        }
        let mut graph = match name {
            "cholesky" => generate::cholesky(tiles, tile_size),
            "lu" => generate::lu(tiles, tile_size),
            "qr" => generate::qr(tiles, tile_size),
            "stencil" => generate::stencil(width, steps, length, bytes),
            "fork-join" => generate::fork_join(width, steps, length, bytes),
            "layered" => generate::layered(generate::Layered { layers: steps, width, density, length, bytes, seed }),
            _ => generate::independent(tasks, length),
        };
        if let Some(element) = self.element_bytes {
            // Generated tiles have numbers of eight bytes.
            for datum in &mut graph.data {
                datum.bytes = (datum.bytes / 8).saturating_mul(element as u64);
            }
        }
        Ok(graph)
    }

    /// Reads the graph from a file (`-` is the standard input).
    ///
    /// # Errors
    /// If there is no such file, sizes are given, or the file is malformed.
    fn file(&self, name: &str) -> miette::Result<TaskGraph> {
        self.refuse_others(name, &[])?;
        file(name)
    }

    /// A size without effect is an error.
    fn refuse_others(&self, name: &str, sizes: &[&str]) -> miette::Result<()> {
        let given = [
            ("--tiles", self.tiles.is_some()),
            ("--tile-size", self.tile_size.is_some()),
            ("--element-bytes", self.element_bytes.is_some()),
            ("--width", self.width.is_some()),
            ("--steps", self.steps.is_some()),
            ("--tasks", self.tasks.is_some()),
            ("--density", self.density.is_some()),
            ("--length", self.length.is_some()),
            ("--bytes", self.bytes.is_some()),
        ];
        let others: Vec<&str> =
            given.iter().filter(|(size, given)| *given && !sizes.contains(size)).map(|(size, _)| *size).collect();
        if others.is_empty() {
            return Ok(());
        }
        let others = others.join(", ");
        if sizes.is_empty() {
            let generators = names().join(", ");
            return Err(miette!(
                help = format!("leave them out, or name a graph that is generated: {generators}"),
                "{others} set the size of generated graphs, and `{name}` is a file"
            ));
        }
        Err(miette!(help = format!("the sizes of {name} are {}", sizes.join(", ")), "{name} has no {others}"))
    }
}

/// Reads the graph from a file.
fn file(name: &str) -> miette::Result<TaskGraph> {
    let path = Path::new(name);
    let looks_like_a_file = name == STREAM || path.exists() || name.contains(['/', '.']);
    if !looks_like_a_file {
        if GENERATORS.iter().any(|(known, _)| *known == name) {
            let help = format!("leave out `--graph` to generate `{name}`");
            return Err(miette!(help = help, "there is no file `{name}`"));
        }
        if let Some((generator, size)) = name.split_once(':')
            && let Some((generator, sizes)) = GENERATORS.iter().find(|(known, _)| *known == generator)
        {
            return Err(miette!(
                help = size_help(generator, sizes, size),
                "there is no graph `{name}`, and no file of that name"
            ));
        }
        let near = GENERATORS.iter().map(|(known, _)| (sched_text::distance(known, name), *known)).min();
        let known: Vec<&str> = GENERATORS.iter().map(|(known, _)| *known).collect();
        let help = match near {
            Some((distance, near)) if distance <= 2 => format!("did you mean `{near}`?"),
            _ => format!("graphs that can be generated: {}", known.join(", ")),
        };
        return Err(miette!(help = help, "there is no graph `{name}`, and no file of that name"));
    }
    let (graph, warnings) = read_with_warnings(path)?;
    warnings.iter().for_each(|warning| reports::warn(warning));
    refuse_too_many(&graph, MOST_DEPENDENCIES, name)?;
    Ok(graph)
}

/// Refuses the graph of a file with more dependencies than `most`.
fn refuse_too_many(graph: &TaskGraph, most: usize, name: &str) -> miette::Result<()> {
    let in_any_order = |mode| matches!(mode, AccessMode::Commute | AccessMode::Redux);
    let any = graph.tasks.iter().flat_map(|task| &task.accesses).any(|access| in_any_order(access.mode));
    // Otherwise there are about as many as accesses.
    if !any || Dependencies::count(graph, most).is_some() {
        return Ok(());
    }
    Err(miette!(
        help = "each task that reads a value waits for each that has added to it (`commute`, `redux`): put a task \
                between the two that reads and writes the value",
        "the {} tasks of `{name}` have more than {most} dependencies, which take more memory than most machines have",
        graph.tasks.len()
    ))
}

/// How the `size` that was written behind a generator and a colon is given: by the first of its `sizes`.
fn size_help(generator: &str, sizes: &[&str], size: &str) -> String {
    let number =
        size.parse::<u32>().ok().filter(|number| *number > 0).map_or_else(|| "4".to_owned(), |size| size.to_string());
    let first = sizes.first().copied().unwrap_or_default();
    format!("sizes are options: `{generator} {first} {number}`; those of {generator} are {}", sizes.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;
    use miette::IntoDiagnostic;

    #[derive(Parser)]
    struct Cli {
        name: String,
        #[command(flatten)]
        sizes: Sizes,
    }

    fn graph(words: &[&str]) -> miette::Result<TaskGraph> {
        let cli = Cli::try_parse_from([&["test"], words].concat()).into_diagnostic()?;
        cli.sizes.graph(&cli.name, 42)
    }

    fn shown(words: &[&str]) -> String {
        let report = graph(words).expect_err("this is refused");
        match report.help() {
            Some(help) => format!("{report} ({help})"),
            None => report.to_string(),
        }
    }

    #[test]
    fn every_generator_has_a_graph_of_the_sizes_asked_for() -> miette::Result<()> {
        assert_eq!(graph(&["cholesky", "-n", "8"])?.tasks.len(), 120);
        assert_eq!(graph(&["lu", "--tiles", "4", "--tile-size", "10"])?.tasks.len(), 30);
        for (option, value, bytes) in
            [("--element-bytes", "4", 400), ("--precision", "single", 400), ("--precision", "double", 800)]
        {
            assert_eq!(graph(&["lu", "--tile-size", "10", option, value])?.data[0].bytes, bytes, "{option} {value}");
        }
        assert_eq!(graph(&["qr", "--tiles", "4"])?.tasks.len(), 30);
        assert_eq!(graph(&["stencil", "--width", "3", "--steps", "5"])?.tasks.len(), 15);
        assert_eq!(graph(&["fork-join", "--width", "3", "--steps", "5"])?.tasks.len(), 25);
        assert_eq!(graph(&["layered", "--width", "3", "--steps", "5", "--density", "1"])?.tasks.len(), 15);
        assert_eq!(graph(&["independent", "--tasks", "7", "--length", "0.5"])?.tasks.len(), 7);
        Ok(())
    }

    #[test]
    fn what_is_not_meant_so_is_refused() {
        insta::assert_snapshot!(shown(&["choleski"]), @"there is no graph `choleski`, and no file of that name (did you mean `cholesky`?)");
        insta::assert_snapshot!(shown(&["cholesky:12"]), @"there is no graph `cholesky:12`, and no file of that name (sizes are options: `cholesky --tiles 12`; those of cholesky are --tiles, --tile-size, --element-bytes)");
        insta::assert_snapshot!(shown(&["fork-join:wide"]), @"there is no graph `fork-join:wide`, and no file of that name (sizes are options: `fork-join --width 4`; those of fork-join are --width, --steps, --length, --bytes)");
        insta::assert_snapshot!(shown(&["sort:4"]), @"there is no graph `sort:4`, and no file of that name (graphs that can be generated: cholesky, lu, qr, stencil, fork-join, layered, independent)");
        insta::assert_snapshot!(shown(&["sort"]), @"there is no graph `sort`, and no file of that name (graphs that can be generated: cholesky, lu, qr, stencil, fork-join, layered, independent)");
        insta::assert_snapshot!(shown(&["cholesky", "--width", "3", "--bytes", "9"]), @"cholesky has no --width, --bytes (the sizes of cholesky are --tiles, --tile-size, --element-bytes)");
        insta::assert_snapshot!(shown(&["cholesky", "--tiles", "100000"]), @"cholesky of these sizes has some 1.7e14 tasks and dependencies, the maximum is 3e7 (take fewer)");
        insta::assert_snapshot!(shown(&["missing.stg"]), @"cannot read a task graph from `missing.stg`: one problem");
        insta::assert_snapshot!(shown(&["missing.stg", "--tiles", "4"]), @"--tiles set the size of generated graphs, and `missing.stg` is a file (leave them out, or name a graph that is generated: cholesky, lu, qr, stencil, fork-join, layered, independent)");
        assert!(graph(&["layered", "--density", "2"]).is_err());
    }

    #[test]
    fn graphs_with_more_dependencies_than_memory_are_refused() {
        let mut graph = TaskGraph::new("sum");
        let (kind, data) = (graph.add_kind("k"), graph.add_data(sched_graph::Datum::new(8)));
        for mode in [AccessMode::Redux, AccessMode::Read] {
            (0..30).for_each(|_| _ = graph.add_task(sched_graph::Task::new(kind).access(data, mode)));
        }
        assert!(refuse_too_many(&graph, 900, "sum.json").is_ok());
        let refused = refuse_too_many(&graph, 899, "sum.json").expect_err("there are 900").to_string();
        insta::assert_snapshot!(refused, @"the 60 tasks of `sum.json` have more than 899 dependencies, which take more memory than most machines have");
    }
}

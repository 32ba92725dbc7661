//! `sched graph`: figures and pictures of a task graph.

use super::format::{Format, FormatOptions};
use super::graph_source::GraphOptions;
use super::values::SeedOption;
use miette::{IntoDiagnostic, WrapErr};
use sched_graph::{Summary, Weight, draw, to_json};
use sched_text::amount::bytes;
use sched_text::count;
use std::io::Write;
use std::process::ExitCode;

/// Show a task graph: numbers of tasks by kind, critical path and parallelism, or a picture
///
/// The graph is generated (cholesky, lu, qr, stencil, fork-join, layered, independent), or read from a file: what
/// `sched graph --json` writes, a `tasks.rec` that StarPU recorded, a workflow in WfFormat (WfCommons), or a standard
/// task graph (STG). The format is recognised by file name or content; `-` reads the standard input.
///
/// The critical path is the heaviest chain of dependent tasks. Work divided by it is the parallelism: more workers than
/// that cannot all be busy throughout. Both are in seconds where the graph has durations, in floating-point operations
/// where it has those, and in tasks otherwise. Pictures of more than 600 tasks show groups.
#[derive(Clone, Debug, clap::Args)]
#[command(after_long_help = "Examples:
  sched graph cholesky --tiles 8                           figures of a tiled Cholesky factorisation
  sched graph layered --width 8 --steps 5 --format svg > layers.svg
  sched graph tasks.rec                                    a graph that StarPU recorded
  sched graph workflow.json --format dot | dot -Tpdf > workflow.pdf
  sched graph rand0000.stg --json | jq .summary.parallelism
  sched graph tasks.rec --json > tasks.json                in this program's format, for `sched simulate tasks.json`")]
pub struct Args {
    #[command(flatten)]
    graph: GraphOptions,

    #[command(flatten)]
    seed: SeedOption,

    #[command(flatten)]
    format: FormatOptions,
}

/// Prints the graph that `args` name to `out`.
///
/// # Errors
/// All problems if the graph is unknown or malformed, or if `out` cannot be written.
pub fn run(args: &Args, out: &mut dyn Write) -> miette::Result<ExitCode> {
    let graph = args.graph.load(args.seed.seed)?;
    let dependencies = graph.dependencies();
    let picture = match args.format.get() {
        Format::Text => text(&Summary::of(&graph, &dependencies)),
        Format::Dot => draw::dot(&graph, &dependencies),
        Format::Svg => draw::svg(&graph, &dependencies),
        Format::Json => to_json(&graph, &dependencies),
    };
    out.write_all(picture.as_bytes()).into_diagnostic().wrap_err("cannot write the graph")?;
    Ok(ExitCode::SUCCESS)
}

fn text(summary: &Summary) -> String {
    let mut lines = vec![
        summary.name.clone(),
        format!("tasks          {}", summary.tasks),
        format!("dependencies   {}", summary.dependencies),
        format!("data           {} ({})", summary.data, bytes(summary.bytes)),
        format!("entries, exits {} wait for nothing, nothing waits for {}", summary.entries, summary.exits),
        format!("longest chain  {}", count(summary.depth, "task")),
        format!("widest level   {} equally deep", count(summary.width, "task")),
        format!("work           {}", amount(summary.work, summary.weight)),
        format!("critical path  {}", amount(summary.critical_path, summary.weight)),
        format!("parallelism    {:.1}", summary.parallelism),
    ];
    let longest = summary.kinds.iter().map(|kind| kind.name.chars().count()).fold("kind".len(), usize::max);
    if !summary.kinds.is_empty() {
        lines.push(String::new());
        lines.push(format!("{:<longest$}  {:>8}  {:>14}  {:>6}", "kind", "tasks", "work", "share"));
    }
    for kind in &summary.kinds {
        let share = if summary.work > 0.0 { 100.0 * kind.weight / summary.work } else { 0.0 };
        let work = amount(kind.weight, summary.weight);
        lines.push(format!("{:<longest$}  {:>8}  {work:>14}  {share:>5.1}%", kind.name, kind.tasks));
    }
    lines.push(String::new());
    lines.join("\n")
}

fn amount(weight: f64, of: Weight) -> String {
    match of {
        Weight::Seconds => format!("{weight:.6} s"),
        Weight::Flops => format!("{:.3} GFlop", weight / 1e9),
        Weight::Tasks => count(weight as u64, "task"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Parser)]
    struct Cli {
        #[command(flatten)]
        args: Args,
    }

    fn sched(words: &[&str]) -> miette::Result<String> {
        let cli = Cli::try_parse_from([&["graph"], words].concat()).into_diagnostic()?;
        let mut out = Vec::new();
        run(&cli.args, &mut out)?;
        String::from_utf8(out).into_diagnostic()
    }

    #[test]
    fn one_task_is_singular() {
        assert_eq!([1.0, 2.0].map(|weight| amount(weight, Weight::Tasks)), ["1 task", "2 tasks"]);
    }

    #[test]
    fn a_factorisation_in_numbers() -> miette::Result<()> {
        insta::assert_snapshot!(sched(&["cholesky", "--tiles", "8", "--tile-size", "960"])?, @"
        cholesky of 8 × 8 tiles of 960
        tasks          120
        dependencies   252
        data           36 (253.1 MiB)
        entries, exits 1 wait for nothing, nothing waits for 1
        longest chain  22 tasks
        widest level   28 tasks equally deep
        work           151.024 GFlop
        critical path  18.286 GFlop
        parallelism    8.3

        kind      tasks            work   share
        potrf         8     2.363 GFlop    1.6%
        trsm         28    24.773 GFlop   16.4%
        syrk         28    24.798 GFlop   16.4%
        gemm         56    99.090 GFlop   65.6%
        ");
        Ok(())
    }

    #[test]
    fn a_file_in_numbers_and_in_every_format() -> miette::Result<()> {
        let file = tempfile::Builder::new().suffix(".stg").tempfile().into_diagnostic()?;
        std::fs::write(file.path(), "2\n0 0 0\n1 10 1 0\n2 20 1 0\n3 0 2 1 2\n").into_diagnostic()?;
        let path = file.path().display().to_string();
        let shown = sched(&[&path])?;
        let shown: Vec<&str> = shown.lines().skip(1).collect();
        insta::assert_snapshot!(shown.join("\n"), @"
        tasks          4
        dependencies   4
        data           0 (0 B)
        entries, exits 1 wait for nothing, nothing waits for 1
        longest chain  3 tasks
        widest level   2 tasks equally deep
        work           0.030000 s
        critical path  0.020000 s
        parallelism    1.5

        kind      tasks            work   share
        task          2      0.030000 s  100.0%
        dummy         2      0.000000 s    0.0%
        ");
        for (words, start) in [("dot", "digraph tasks {"), ("svg", "<svg xmlns="), ("json", "{\n")] {
            let printed = sched(&["--graph", &path, "--format", words])?;
            assert!(printed.starts_with(start) && printed.ends_with('\n'), "{printed}");
        }
        Ok(())
    }

    #[test]
    fn a_graph_must_be_named_once() {
        for (words, says) in [
            (&[][..], "arguments were not provided:\n  <GRAPH|FILE>"),
            (&["lu", "--graph", "a.stg"], "'[GRAPH|FILE]' cannot be used with"),
            (&["lu", "--json", "--format", "dot"], "'--json' cannot be used with"),
        ] {
            let shown = sched(words).expect_err("a graph is named once, and a format").to_string();
            assert!(shown.contains(says), "{shown}");
        }
    }
}

//! The options that write down what happened: traces for other programs, and drawings.

use miette::{IntoDiagnostic, WrapErr, miette};
use sched_trace::{Bound, Format, Gantt, Trace, gantt};
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

/// So many events of each worker are written down in a real run: some hundred megabytes.
pub(super) const MOST_EVENTS: usize = 2_000_000;

/// What to write down, and where.
#[derive(clap::Args, Clone, Debug)]
pub(super) struct Pictures {
    /// Write what happened to a file: .json for Perfetto and chrome://tracing, .trace or .paje for Paje's viewers
    ///
    /// There is a track for each worker and each link between memories, with tasks, transfers, idle time, refusals and
    /// wakes, and a counter for each queue. Open a .json in https://ui.perfetto.dev.
    #[arg(long, value_name = "FILE", value_parser = trace_file)]
    trace: Option<PathBuf>,

    /// Draw the schedule, with a lower bound of the makespan as a line
    #[arg(long, value_name = "FILE.svg", value_parser = svg_file)]
    gantt: Option<PathBuf>,
}

fn trace_file(file: &str) -> Result<PathBuf, String> {
    let file = PathBuf::from(file);
    Format::of(&file).map_err(|error| error.to_string())?;
    Ok(file)
}

fn svg_file(file: &str) -> Result<PathBuf, String> {
    let is_svg = Path::new(file).extension().is_some_and(|extension| extension.eq_ignore_ascii_case("svg"));
    if is_svg { Ok(file.into()) } else { Err("the drawing is an SVG: the file's name must end in .svg".to_owned()) }
}

impl Pictures {
    /// Whether anything is to be written.
    pub(super) fn wanted(&self) -> bool {
        self.trace.is_some() || self.gantt.is_some()
    }

    /// Creates the files, before anything runs.
    ///
    /// # Errors
    /// When one cannot be written.
    pub(super) fn open(&self) -> miette::Result<PictureFiles> {
        let trace = self.trace.as_deref().map(create).transpose()?;
        let gantt = self.gantt.as_deref().map(create).transpose()?;
        Ok(PictureFiles { trace, gantt })
    }

    /// The same, where they are of one run, and there are `runs`.
    ///
    /// # Errors
    /// When there is more than one, too.
    pub(super) fn open_for(&self, runs: usize) -> miette::Result<PictureFiles> {
        if self.wanted() && runs > 1 {
            return Err(miette!(
                help = "give one policy and one run, or look at several simulations with `sched compare`",
                "--trace and --gantt show one run, and there would be {runs}"
            ));
        }
        self.open()
    }
}

fn create(path: &Path) -> miette::Result<(PathBuf, File)> {
    let file = File::create(path).into_diagnostic().wrap_err_with(|| unwritten(path))?;
    Ok((path.to_owned(), file))
}

pub(super) fn unwritten(path: &Path) -> String {
    format!("`{}` cannot be written", path.display())
}

/// Files that wait for a trace.
pub(super) struct PictureFiles {
    trace: Option<(PathBuf, File)>,
    gantt: Option<(PathBuf, File)>,
}

impl PictureFiles {
    /// Whether there are any.
    pub(super) fn wanted(&self) -> bool {
        self.trace.is_some() || self.gantt.is_some()
    }

    /// Writes the trace of a run of `workload`, whose makespan is at least `bound` seconds.
    ///
    /// # Errors
    /// When a file cannot be written.
    pub(super) fn write(self, trace: &Trace, workload: &str, bound: Option<f64>) -> miette::Result<()> {
        if let Some((path, file)) = self.trace {
            let mut out = BufWriter::new(file);
            let format = Format::of(&path)?;
            let written = format.write(trace, &mut out).and_then(|()| out.flush());
            written.into_diagnostic().wrap_err_with(|| unwritten(&path))?;
        }
        if let Some((path, mut file)) = self.gantt {
            let title = Some(format!("{}: {workload}", trace.title));
            let bound = bound.map(|seconds| Bound { seconds, name: "lower bound".to_owned() });
            let drawing = gantt(trace, &Gantt { title, bound, until: None });
            file.write_all(drawing.as_bytes()).into_diagnostic().wrap_err_with(|| unwritten(&path))?;
        }
        Ok(())
    }
}

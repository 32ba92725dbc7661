//! Options for recordings: traces for other programs, and Gantt charts.

use super::streams::{STREAM, Sink, Target};
use miette::miette;
use sched_trace::{Bound, Format, Gantt, Trace, gantt};
use std::io::Write;
use std::path::Path;

/// Maximum number of events recorded per worker of a real run: some hundred megabytes.
pub(super) const MOST_EVENTS: usize = 2_000_000;

/// Name of a bound that no schedule is shorter than.
pub(super) const LOWER_BOUND: &str = "lower bound";

/// Recordings and their files.
#[derive(clap::Args, Clone, Debug)]
pub(super) struct Pictures {
    /// Write a trace to a file: .json for Perfetto and chrome://tracing, .trace or .paje for Paje's viewers
    ///
    /// The trace has a track for each worker and each link between memories, with tasks, transfers, idle time, refusals
    /// and wakes, and a counter for each queue. Open a .json in https://ui.perfetto.dev. `-` is the standard output
    /// (.json). Each of several simulations gets a file, with the policy's name before the extension; of a real
    /// run there is one: choose one policy, and `--repeat 1`.
    #[arg(long, value_name = "FILE", value_parser = trace_file)]
    trace: Option<Target>,

    /// Draw a Gantt chart (SVG) with the lower bound of the makespan as a line; `-` is the standard output
    ///
    /// Each of several simulations gets a file, with the policy's name before the extension; all share one time axis.
    /// Of a real run there is one: choose one policy, and `--repeat 1`.
    #[arg(long, value_name = "FILE.svg", value_parser = svg_file)]
    gantt: Option<Target>,
}

fn trace_file(name: &str) -> Result<Target, String> {
    if name != STREAM {
        Format::of(Path::new(name)).map_err(|error| error.to_string())?;
    }
    Ok(target(name))
}

/// A file for a drawing.
///
/// # Errors
/// If its name is that of another kind of file.
pub(super) fn svg_file(name: &str) -> Result<Target, String> {
    let is_svg = Path::new(name).extension().is_some_and(|extension| extension.eq_ignore_ascii_case("svg"));
    if is_svg || name == STREAM {
        Ok(target(name))
    } else {
        Err("the drawing is an SVG: the file's name must end in .svg".to_owned())
    }
}

fn target(name: &str) -> Target {
    let Ok(target) = name.parse();
    target
}

impl Pictures {
    /// Whether anything is to be written.
    pub(super) fn wanted(&self) -> bool {
        self.trace.is_some() || self.gantt.is_some()
    }

    /// Creates the files, before anything runs.
    ///
    /// # Errors
    /// If one cannot be written.
    pub(super) fn open(&self) -> miette::Result<PictureFiles> {
        open(self.trace.as_ref(), self.gantt.as_ref())
    }

    /// Creates the files of one of several schedules, with `part` of their names.
    ///
    /// # Errors
    /// If one cannot be written, or is the standard output.
    pub(super) fn open_for(&self, part: &str) -> miette::Result<PictureFiles> {
        let of = |target: &Option<Target>| target.as_ref().map(|target| target.of_several(part)).transpose();
        open(of(&self.trace)?.as_ref(), of(&self.gantt)?.as_ref())
    }

    /// Creates the files for one of `runs` real runs.
    ///
    /// # Errors
    /// If one cannot be written, or there is more than one run.
    pub(super) fn open_alone(&self, runs: usize) -> miette::Result<PictureFiles> {
        if self.wanted() && runs > 1 {
            return Err(miette!(
                help = "give one policy and one run, or look at several simulations with `sched compare`",
                "--trace and --gantt show one run, and there would be {runs}"
            ));
        }
        self.open()
    }
}

fn open(trace: Option<&Target>, gantt: Option<&Target>) -> miette::Result<PictureFiles> {
    let trace = trace.map(Target::create).transpose()?;
    let gantt = gantt.map(Target::create).transpose()?;
    Ok(PictureFiles { trace, gantt })
}

/// Open files for a trace.
#[derive(Default)]
pub(super) struct PictureFiles {
    trace: Option<Sink>,
    gantt: Option<Sink>,
}

/// Annotations of a schedule.
#[derive(Clone, Copy, Default)]
pub(super) struct Beside<'a> {
    /// Title.
    pub(super) workload: &'a str,
    /// Lower bound of the makespan.
    pub(super) bound: Option<&'a Bound>,
    /// End of the time axis, in seconds, for compared schedules.
    pub(super) until: Option<f64>,
}

impl PictureFiles {
    /// Whether there are files.
    pub(super) fn wanted(&self) -> bool {
        self.trace.is_some() || self.gantt.is_some()
    }

    /// Whether one of them is the standard output.
    pub(super) fn take_the_output(&self) -> bool {
        [&self.trace, &self.gantt].into_iter().flatten().any(Sink::is_standard)
    }

    /// Writes the trace of a run; `out` is the standard output.
    ///
    /// # Errors
    /// If a file cannot be written.
    pub(super) fn write(self, trace: &Trace, beside: Beside<'_>, out: &mut dyn Write) -> miette::Result<()> {
        if let Some(sink) = self.trace {
            let format = sink.target().path().map_or(Ok(Format::Chrome), Format::of)?;
            sink.write(out, |out| format.write(trace, out))?;
        }
        if let Some(sink) = self.gantt {
            let title = Some(format!("{}: {}", trace.title, beside.workload));
            let drawing = gantt(trace, &Gantt { title, bound: beside.bound.cloned(), until: beside.until });
            sink.write(out, |out| out.write_all(drawing.as_bytes()))?;
        }
        Ok(())
    }
}

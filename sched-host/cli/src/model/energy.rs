//! `sched model energy`.

use crate::energy::CounterOptions;
use crate::format::{FormatOptions, text_or_json};
use crate::json;
use crate::table::table;
use crate::values::seconds;
use miette::IntoDiagnostic;
use sched_machine::energy::Counter;
use sched_model::Quantity;
use sched_model::plot::amount;
use serde::Serialize;
use std::io::Write;
use std::process::ExitCode;
use std::time::Duration;

/// Show the energy counters of this machine
///
/// Linux counts the energy of each package as Intel's and AMD's processors report it (RAPL). `sched run … --energy`
/// uses the counters to report the energy of a run, and `Runtime::measure_energy` to learn the energy of tasks, which
/// models store beside durations. Without counters, or without permission to read them, the error names the reason and
/// the fix, with exit code 1.
#[derive(Debug, clap::Args)]
#[command(mut_arg("format", text_or_json))]
#[command(after_long_help = "Examples:
  sched model energy               the counters
  sched model energy --watch 10    mean power over ten seconds
  sched model energy --json        for programs")]
pub(super) struct Args {
    #[command(flatten)]
    counters: CounterOptions,

    /// Measure the mean power of the packages over this time, in watts; without other load, it is the idle power to
    /// subtract
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    watch: Option<Duration>,

    #[command(flatten)]
    format: FormatOptions,
}

#[derive(Serialize)]
struct Shown<'a> {
    counters: &'a [Counter],
    /// `null` unless `--watch` is given.
    watts: Option<f64>,
}

pub(super) fn run(args: &Args, out: &mut dyn Write) -> miette::Result<ExitCode> {
    let meter = args.counters.open()?;
    let watts = args.watch.map(|time| meter.idle_watts(time)).transpose()?;
    match args.format.is_json() {
        true => json::write(out, &Shown { counters: meter.counters(), watts })?,
        false => text(meter.counters(), watts, out).into_diagnostic()?,
    }
    Ok(ExitCode::SUCCESS)
}

fn text(counters: &[Counter], watts: Option<f64>, out: &mut dyn Write) -> std::io::Result<()> {
    let rows = counters.iter().map(|counter| {
        let range = amount(counter.range_uj as f64 / 1e6, Quantity::Energy);
        [counter.name.clone(), range, counter.path.display().to_string()]
    });
    writeln!(out, "{}", table(["PACKAGE", "BEGINS AGAIN AFTER", "COUNTER"], rows, []))?;
    watts.map_or(Ok(()), |watts| writeln!(out, "\nmean power {watts:.1} W, all packages together"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;
    use sched_test_support::Powercap;

    #[derive(Parser)]
    struct Cli {
        #[command(flatten)]
        args: Args,
    }

    fn sched(powercap: &Powercap, words: &[&str]) -> miette::Result<(String, ExitCode)> {
        let path = powercap.path().to_str().expect("a name that is text");
        let cli = Cli::try_parse_from([&["energy", "--powercap", path], words].concat()).into_diagnostic()?;
        let mut out = Vec::new();
        let code = run(&cli.args, &mut out)?;
        Ok((String::from_utf8(out).expect("output is text").replace(path, "ROOT"), code))
    }

    fn machine() -> Powercap {
        Powercap::new(&[
            ("intel-rapl:0", "package-0", 7),
            ("intel-rapl:1", "package-1", 7),
            ("intel-rapl:2", "psys", 7),
        ])
    }

    #[test]
    fn counters_are_listed() -> miette::Result<()> {
        insta::assert_snapshot!(sched(&machine(), &[])?.0, @"
        PACKAGE    BEGINS AGAIN AFTER  COUNTER
        package-0  262 kJ              ROOT/intel-rapl:0
        package-1  262 kJ              ROOT/intel-rapl:1
        ");
        let watched = sched(&machine(), &["--watch", "0.001"])?.0;
        assert!(watched.ends_with("ROOT/intel-rapl:1\n\nmean power 0.0 W, all packages together\n"), "{watched}");
        insta::assert_snapshot!(sched(&machine(), &["--json", "--watch", "0.001"])?.0, @r#"
        {
          "counters": [
            {
              "name": "package-0",
              "path": "ROOT/intel-rapl:0",
              "range_uj": 262143328850
            },
            {
              "name": "package-1",
              "path": "ROOT/intel-rapl:1",
              "range_uj": 262143328850
            }
          ],
          "watts": 0.0
        }
        "#);
        Ok(())
    }

    #[test]
    fn why_there_are_none_is_said() -> miette::Result<()> {
        let none = Powercap::new(&[]);
        let error = sched(&none, &[]).expect_err("there are none");
        assert!(error.to_string().contains(": found none, expected at least one folder `intel-rapl:N`"), "{error}");
        assert!(error.help().is_some_and(|help| help.to_string().contains("modprobe intel_rapl_msr")), "{error:?}");
        assert!(sched(&none, &["--json"]).is_err());
        Ok(())
    }
}

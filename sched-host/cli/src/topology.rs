//! `sched topology`: the machine, its devices, and the binding of workers.

use std::io::Write;
use std::process::ExitCode;

use miette::{IntoDiagnostic, WrapErr};

use super::format::{Format, FormatOptions};
use super::machine::{Machine, MachineOptions};
use super::model::bus::host_nodes;
use crate::devices;
use sched_machine::topology::{BindingPlan, Surroundings, Topology, draw};
use sched_runtime::{DeviceChoice, DeviceReport};
use sched_sim::Platform;
use sched_tree::plugin::Registry;

/// Show the machine and where workers would be bound on it
///
/// Prints every object that hwloc finds (memory nodes, packages, caches, cores and their hardware threads, called PUs)
/// and the PU that each worker of a run gets: one worker for each core first, then the cores' further hardware threads.
/// PUs that an affinity mask or a cgroup forbids are shown but never used. Warnings report workers that share a PU with
/// each other or with another run, and a cgroup that limits their time.
///
/// Objects are named as in policy files (`each "numa"`, `each "l3"`, `each "core"`); PUs and memory nodes
/// have the numbers of the operating system, as `taskset` and `numactl` take them.
///
/// Below come the devices of all drivers that can be used, or of those that --devices names: their memory, the worker
/// and the memory node that a run with them has for each, and the measured latency and bandwidth of their links.
///
/// For a simulated platform it prints the memories, the workers near each, and transfer times.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = "Examples:
  sched topology                                          this machine
  sched topology --workers 4                              where 4 workers would be bound
  sched topology --devices opencl                         with the devices of one driver
  sched topology --platform cpu9-gpu3                     a described machine, as for simulations
  sched topology --synthetic \"node:2 l3:1 core:8 pu:2\"    a synthetic machine
  sched topology --xml cluster.xml --format svg > c.svg   one saved with `lstopo cluster.xml`
  sched topology --format dot | dot -Tpdf > machine.pdf   a graph, drawn by graphviz")]
pub struct Args {
    #[command(flatten)]
    machine: MachineOptions,

    /// Devices to list: `all`, `none`, or drivers and numbered devices joined by commas, such as `opencl,cuda:0`
    #[arg(long, value_name = "DEVICES", default_value = "all", help_heading = "Machine")]
    devices: DeviceChoice,

    #[command(flatten)]
    format: FormatOptions,
}

/// Prints the machine that `args` name to `out`.
///
/// # Errors
///
/// If the machine cannot be described, 0 workers are requested, a device is named that does not exist, or `out` cannot
/// be written.
pub fn run(args: &Args, registry: &Registry, out: &mut dyn Write) -> miette::Result<ExitCode> {
    let picture = match args.machine.machine()? {
        Machine::Topology(topology, _) => {
            let devices = match topology.is_this_machine() {
                true => devices::explore(registry, &args.devices)?,
                false => Vec::new(),
            };
            let mut plan = args.machine.plan_beside(devices.len(), &topology)?;
            plan.warn_of(&Surroundings::look(None));
            of_topology(&topology, &plan, &devices, args.format.get())?
        }
        Machine::Platform(platform) => of_platform(&platform, args.format.get()),
    };
    out.write_all(picture.as_bytes()).into_diagnostic().wrap_err("cannot write the topology")?;
    Ok(ExitCode::SUCCESS)
}

fn of_topology(
    topology: &Topology,
    plan: &BindingPlan,
    devices: &[DeviceReport],
    format: Format,
) -> miette::Result<String> {
    Ok(match format {
        Format::Text => draw::text(topology, plan) + &devices::list(devices, plan.workers().len(), host_nodes(plan)),
        Format::Dot => draw::dot(topology, plan),
        Format::Svg => draw::svg(topology, plan),
        Format::Json if devices.is_empty() => draw::json(topology, plan),
        Format::Json => with_devices(&draw::json(topology, plan), devices).into_diagnostic()?,
    })
}

/// Adds devices to the description of a machine.
fn with_devices(machine: &str, devices: &[DeviceReport]) -> serde_json::Result<String> {
    let mut machine: serde_json::Value = serde_json::from_str(machine)?;
    machine["devices"] = serde_json::to_value(devices)?;
    Ok(serde_json::to_string_pretty(&machine)? + "\n")
}

fn of_platform(platform: &Platform, format: Format) -> String {
    match format {
        Format::Text => platform.to_text(),
        Format::Dot => platform.to_dot(),
        Format::Svg => platform.to_svg(),
        Format::Json => platform.to_json(),
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Cli {
        #[command(flatten)]
        args: Args,
    }

    fn sched(words: &[&str]) -> miette::Result<String> {
        let cli = Cli::try_parse_from([&["topology"], words].concat()).into_diagnostic()?;
        let mut out = Vec::new();
        run(&cli.args, &Registry::compiled_in(), &mut out)?;
        String::from_utf8(out).into_diagnostic()
    }

    #[test]
    fn every_format_starts_as_its_readers_expect() -> miette::Result<()> {
        let machine = ["--synthetic", "core:2 pu:2"];
        let starts = [
            (vec![], "synthetic topology"),
            (vec!["--format", "text"], "synthetic topology"),
            (vec!["--format", "dot"], "graph topology {"),
            (vec!["-f", "svg"], "<svg xmlns="),
            (vec!["-f", "json"], "{\n"),
            (vec!["--json"], "{\n"),
        ];
        for (words, start) in starts {
            let printed = sched(&[&machine, words.as_slice()].concat())?;
            assert!(printed.starts_with(start) && printed.ends_with('\n'), "{words:?}: {printed}");
        }
        Ok(())
    }

    #[test]
    fn a_platform_is_shown_in_every_format() -> miette::Result<()> {
        for (format, start) in
            [("text", "platform cpu9-gpu3\n5 workers"), ("dot", "digraph platform {"), ("svg", "<svg")]
        {
            let printed = sched(&["--platform", "cpu9-gpu3", "-w", "2", "-f", format])?;
            assert!(printed.starts_with(start) && printed.ends_with('\n'), "{printed}");
        }
        let printed = sched(&["--platform", "cpu9-gpu3", "--json"])?;
        let seen: serde_json::Value = serde_json::from_str(&printed).into_diagnostic()?;
        assert_eq!(seen["workers"].as_array().map(Vec::len), Some(12));
        assert_eq!((&seen["source"]["kind"], &seen["memory_nodes"][1]["device"]), (&"platform".into(), &true.into()));
        let error = sched(&["--platform", "cpu9-gpu3", "-w", "10"]).expect_err("there are nine").to_string();
        assert_eq!(error, "10 CPU workers are asked for, and the platform `cpu9-gpu3` has 9");
        Ok(())
    }

    #[test]
    fn this_machine_gets_a_worker_for_each_pu_that_may_be_used() -> miette::Result<()> {
        let printed = sched(&["--json"])?;
        let seen: serde_json::Value = serde_json::from_str(&printed).into_diagnostic()?;
        assert_eq!(seen["workers"].as_array().map(Vec::len), seen["allowed_pus"].as_array().map(Vec::len));
        assert_eq!(seen["source"]["kind"], "this-machine");
        Ok(())
    }

    #[test]
    fn more_workers_than_pus_is_a_warning_and_none_an_error() -> miette::Result<()> {
        let printed = sched(&["--synthetic", "pu:2", "--workers", "8"])?;
        assert!(printed.contains("warning: oversubscribed: workers 2-7 share PUs"), "{printed}");
        let display_text =
            sched(&["--synthetic", "pu:2", "--workers", "0"]).expect_err("nobody would work").to_string();
        assert!(display_text.contains("at least 1") || display_text.contains("worker"), "{display_text}");
        Ok(())
    }

    #[test]
    fn options_that_contradict_each_other_are_refused() {
        for words in [["--synthetic", "pu:2", "--xml", "machine.xml"].as_slice(), &["--json", "--format", "svg"]] {
            let display_text = sched(words).expect_err("they contradict each other").to_string();
            assert!(display_text.contains("cannot be used with"), "{display_text}");
        }
    }

    #[test]
    fn a_bad_description_is_reported_with_its_place_and_fix() {
        let report = sched(&["--synthetic", "nood:2 core:2 pu:1"]).expect_err("there is no level `nood`");
        let mut display_text = String::new();
        let narrow = miette::NarratableReportHandler::new();
        narrow.render_report(&mut display_text, report.as_ref()).expect("writing to a string never fails");
        assert!(
            display_text.contains("did you mean `node`?") && display_text.contains("line 1, column 1"),
            "{display_text}"
        );
    }
}

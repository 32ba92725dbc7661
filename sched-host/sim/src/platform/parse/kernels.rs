//! `kernel "gemm" { on "cpu" … }`: execution times of a kind of tasks on classes of workers.

use super::Builder;
use crate::platform::kernels::{KernelTime, Kernels, Parallel, Sized};
use kdl::KdlNode;
use sched_core::Arch;
use sched_text::kdl::{NodeReader, Signature};
use sched_text::quantity::{self, POWER, SIZE, TIME};
use sched_text::{Finding, Span};
use std::collections::HashSet;

const KERNEL: Signature =
    Signature { arguments: 1, properties: &[], example: "kernel \"gemm\" { on \"cpu\" time=\"3 ms\" }" };
const ON: Signature = Signature {
    arguments: 1,
    properties: &["time", "gflops", "overhead", "a", "b", "parallel", "max-team", "team", "watts"],
    example: "on \"cpu\" time=\"3 ms\"",
};
const AT: Signature = Signature { arguments: 2, properties: &[], example: "at \"11.06 MB\" \"87.8 ms\"" };

/// An `on` of a `kernel`, kept until all classes are known.
pub(super) struct On {
    kind: String,
    pub(super) class: String,
    pub(super) span: Span,
    time: KernelTime,
    said: Teams,
    watts: Option<f64>,
}

/// What an `on` gives for teams.
enum Teams {
    Nothing,
    /// The time is that of one worker; teams follow Amdahl's law.
    Share {
        share: f64,
        most: u16,
    },
    /// The time is that of a team of this size.
    Size(u16),
}

impl Builder<'_> {
    pub(super) fn kernel(&mut self, node: &KdlNode) {
        let kind = self.reader.open(node, &KERNEL).argument(0, "the name of a kind of tasks");
        let Some((kind, _)) = kind else { return };
        for on in node.iter_children() {
            if on.name().value() != "on" {
                let finding = self.reader.misplaced(on, "in a kernel", "a kernel", &["on"]);
                self.reader.report(finding);
                continue;
            }
            let mut open = self.reader.open(on, &ON);
            let class = open.argument(0, "the name of a class of workers");
            let time = kernel_time(&mut open, on);
            let said = teams(&mut open);
            let watts = open.quantity("watts", quantity::parse_power, POWER);
            if watts.is_some() && matches!(said, Teams::Size(_)) {
                let finding = Finding::error("`watts` is the power of each worker, alone or in a team");
                let span = open.span();
                open.report(finding.at(span, "of this one").help("write it beside the time of one worker"));
            }
            if let (Some((class, span)), Some(time)) = (class, time) {
                self.on.push(On { kind: kind.clone(), class, span, time, said, watts });
            }
        }
    }

    pub(super) fn set_kernel(&mut self, kernels: &mut Kernels, on: On, class: usize) {
        if let Some(watts) = on.watts {
            kernels.set_watts(&on.kind, class, watts);
        }
        let known = kernels.parallel_of(&on.kind, class).cloned();
        let twice = match (&on.said, &known) {
            (Teams::Size(size), Some(Parallel::Sizes(times))) => times.contains_key(size),
            (Teams::Size(_), _) => false,
            _ => kernels.is_set(&on.kind, class),
        };
        if twice {
            let finding = Finding::error(format!("it is said twice how long `{}` takes on `{}`", on.kind, on.class));
            return self
                .reader
                .report(finding.at(on.span, "again here").help("leave one of them out").code("platform::on"));
        }
        let parallel = match (on.said, known) {
            (Teams::Nothing, _) => return kernels.set(&on.kind, class, on.time),
            _ if self.classes[class].arch != Arch::CPU => "only CPU workers execute tasks together",
            (Teams::Share { share, most }, None) => {
                kernels.set(&on.kind, class, on.time);
                return kernels.set_parallel(&on.kind, class, Parallel::Amdahl { share, most });
            }
            (Teams::Size(size), Some(Parallel::Sizes(mut times))) => {
                times.insert(size, on.time);
                return kernels.set_parallel(&on.kind, class, Parallel::Sizes(times));
            }
            (Teams::Size(size), None) => {
                let times = [(size, on.time)].into();
                return kernels.set_parallel(&on.kind, class, Parallel::Sizes(times));
            }
            (Teams::Share { .. }, Some(_)) | (Teams::Size(_), Some(Parallel::Amdahl { .. })) => {
                "it is said in two ways how long teams take"
            }
        };
        let finding = Finding::error(parallel).at(on.span, "of this class");
        self.reader.report(finding.help("leave out `parallel` or `team` here").code("platform::on"));
    }
}

/// Reads what an `on` gives for teams.
fn teams(on: &mut NodeReader<'_>) -> Teams {
    let size = |size: usize| u16::try_from(size).unwrap_or(u16::MAX);
    let share = on.positive("parallel");
    let most = on.whole("max-team", 2..=usize::from(u16::MAX)).map(size);
    let team = on.whole("team", 2..=usize::from(u16::MAX)).map(size);
    let wrong = match (share, most, team) {
        (Some(share), ..) if share > 1.0 => "`parallel` is a share of a task, from 0 to 1",
        (Some(_), _, Some(_)) => "`team` says how long a task takes, so `parallel` cannot",
        (None, Some(_), _) => "`max-team` goes with `parallel`",
        (Some(share), most, None) => return Teams::Share { share, most: most.unwrap_or(u16::MAX) },
        (None, None, Some(team)) => return Teams::Size(team),
        (None, None, None) => return Teams::Nothing,
    };
    let span = on.span();
    on.report(
        Finding::error(wrong)
            .at(span, "of this one")
            .help("write `parallel=0.95 max-team=8` beside the time of one worker, or `team=4` beside that of four"),
    );
    Teams::Nothing
}

/// Reads the execution time of an `on`.
fn kernel_time(on: &mut NodeReader<'_>, node: &KdlNode) -> Option<KernelTime> {
    let before = on.reader().reported();
    let fixed = on.quantity("time", quantity::parse_time, TIME);
    let overhead = on.quantity("overhead", quantity::parse_time, TIME).unwrap_or_default();
    let gflops = on.positive("gflops");
    let power = on.positive("a").zip(on.number("b"));
    let alone = match () {
        () if on.has("overhead") && !on.has("gflops") => Some("`overhead` goes with `gflops`"),
        () if on.has("a") != on.has("b") => Some("`a` and `b` go together"),
        () => None,
    };
    if let Some(alone) = alone {
        let span = on.span();
        on.report(
            Finding::error(alone)
                .at(span, "of this one")
                .help("write `gflops=10.0 overhead=\"5 us\"`, or `a=0.1 b=1.5`"),
        );
    }
    let mut measured = Vec::new();
    let mut sizes = HashSet::new();
    for at in node.iter_children() {
        if at.name().value() != "at" {
            let finding = on.reader().misplaced(at, "in `on`", "`on`", &["at"]);
            on.reader().report(finding);
            continue;
        }
        let mut open = on.reader().open(at, &AT);
        let bytes = open.quantity_argument(0, quantity::parse_size, SIZE);
        let time = open.quantity_argument(1, quantity::parse_time, TIME);
        if bytes == Some(0) {
            let span = open.span();
            let finding = Finding::error("a time is given for 0 bytes").at(span, "here");
            open.report(finding.help("give it for more: between sizes, times are interpolated by their logarithms"));
        }
        if let (Some(bytes), Some(time)) = (bytes.filter(|bytes| *bytes > 0), time) {
            if !sizes.insert(bytes) {
                let span = open.span();
                let finding = Finding::error(format!("the time for {bytes} bytes is given twice"));
                open.report(finding.at(span, "again here").help("leave one of them out"));
            }
            measured.push(Sized { bytes, time });
        }
    }
    measured.sort_by_key(|sized| sized.bytes);
    let measured = (!measured.is_empty()).then_some(KernelTime::Measured(measured));
    let ways = [
        fixed.map(KernelTime::Fixed),
        gflops.map(|gflops| KernelTime::Rate { gflops, overhead }),
        power.map(|(a, b)| KernelTime::Power { a, b }),
        measured,
    ];
    let mut ways = ways.into_iter().flatten();
    let found = (ways.next(), ways.next());
    if let (Some(time), None) = found {
        return Some(time);
    }
    if on.reader().reported() == before {
        let finding = Finding::error("`on` says in one way how long a kernel takes");
        let span = on.span();
        let help = "write `time=\"3 ms\"`, `gflops=10.0`, `a=0.1 b=1.5`, or `{ at \"11.06 MB\" \"87.8 ms\" }`";
        on.report(finding.at(span, "expected one of the four").help(help));
    }
    None
}

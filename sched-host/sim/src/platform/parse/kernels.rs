//! `kernel "gemm" { on "cpu" … }`: how long tasks of a kind take on a class of workers.

use super::Builder;
use crate::platform::kernels::{KernelTime, Kernels, Parallel, Sized};
use kdl::KdlNode;
use sched_core::Arch;
use sched_text::quantity::{self, POWER, SIZE, TIME};
use sched_text::{Finding, Span};

/// A place in `kernel`, kept until all classes are known.
pub(super) struct On {
    kind: String,
    pub(super) class: String,
    pub(super) span: Span,
    time: KernelTime,
    said: Teams,
    watts: Option<f64>,
}

/// What `on` says of teams.
enum Teams {
    Nothing,
    /// The time is that of a worker alone, and this is how teams go.
    Share {
        share: f64,
        most: u16,
    },
    /// The time is that of a team of this size.
    Size(u16),
}

impl Builder<'_> {
    pub(super) fn kernel(&mut self, node: &KdlNode) {
        self.reader.shape(node, 1, &[]);
        let Some((kind, _)) = self.reader.argument(node, 0, "the name of a kind of tasks") else { return };
        for on in node.iter_children() {
            if on.name().value() != "on" {
                self.reader.unknown_node(on, "a kernel", &["on"]);
                continue;
            }
            self.reader.shape(
                on,
                1,
                &["time", "gflops", "overhead", "a", "b", "parallel", "max-team", "team", "watts"],
            );
            let class = self.reader.argument(on, 0, "the name of a class of workers");
            let time = self.kernel_time(on);
            let said = self.teams(on);
            let watts = self.reader.quantity(on, "watts", quantity::parse_power, POWER);
            if watts.is_some() && matches!(said, Teams::Size(_)) {
                let problem = Finding::error("`watts` is what each worker draws, alone or in a team")
                    .at(self.reader.span(on), "of this one")
                    .help("write it beside the time of one worker");
                self.reader.report(problem);
            }
            if let (Some((class, span)), Some(time)) = (class, time) {
                self.on.push(On { kind: kind.clone(), class, span, time, said, watts });
            }
        }
    }

    fn teams(&mut self, node: &KdlNode) -> Teams {
        let reader = &mut *self.reader;
        let size = |size: usize| u16::try_from(size).unwrap_or(u16::MAX);
        let share = reader.positive(node, "parallel");
        let most = reader.whole(node, "max-team", 2, usize::from(u16::MAX)).map(size);
        let team = reader.whole(node, "team", 2, usize::from(u16::MAX)).map(size);
        let wrong = match (share, most, team) {
            (Some(share), ..) if share > 1.0 => "`parallel` is a share of a task, from 0 to 1",
            (Some(_), _, Some(_)) => "`team` says how long a task takes, so `parallel` cannot",
            (None, Some(_), _) => "`max-team` goes with `parallel`",
            (Some(share), most, None) => return Teams::Share { share, most: most.unwrap_or(u16::MAX) },
            (None, None, Some(team)) => return Teams::Size(team),
            (None, None, None) => return Teams::Nothing,
        };
        let span = reader.span(node);
        reader.report(
            Finding::error(wrong).at(span, "of this one").help(
                "write `parallel=0.95 max-team=8` beside the time of one worker, or `team=4` beside that of four",
            ),
        );
        Teams::Nothing
    }

    fn kernel_time(&mut self, node: &KdlNode) -> Option<KernelTime> {
        let reader = &mut *self.reader;
        let before = reader.problems.len();
        let fixed = reader.quantity(node, "time", quantity::parse_time, TIME);
        let overhead = reader.quantity(node, "overhead", quantity::parse_time, TIME).unwrap_or_default();
        let gflops = reader.positive(node, "gflops");
        let power = reader.positive(node, "a").zip(reader.number(node, "b"));
        let mut measured = Vec::new();
        for at in node.iter_children() {
            if at.name().value() != "at" {
                reader.unknown_node(at, "`on`", &["at"]);
                continue;
            }
            reader.shape(at, 2, &[]);
            let bytes = reader.quantity_argument(at, 0, quantity::parse_size, SIZE);
            let time = reader.quantity_argument(at, 1, quantity::parse_time, TIME);
            if let (Some(bytes), Some(time)) = (bytes.filter(|bytes| *bytes > 0), time) {
                measured.push(Sized { bytes, time });
            }
        }
        measured.sort_by_key(|sized| sized.bytes);
        measured.dedup_by_key(|sized| sized.bytes);
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
        if reader.problems.len() == before {
            let problem = Finding::error("`on` says in one way how long a kernel takes");
            let span = reader.span(node);
            let help = "write `time=\"3 ms\"`, `gflops=10.0`, `a=0.1 b=1.5`, or `{ at \"11.06 MB\" \"87.8 ms\" }`";
            reader.report(problem.at(span, "expected one of the four").help(help));
        }
        None
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
            let problem = Finding::error(format!("it is said twice how long `{}` takes on `{}`", on.kind, on.class));
            return self.reader.report(problem.at(on.span, "again here").help("leave one of them out"));
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
        let problem = Finding::error(parallel).at(on.span, "of this class");
        self.reader.report(problem.help("leave out `parallel` or `team` here"));
    }
}

//! The reader of platforms in KDL.

mod kernels;
mod wires;

use super::routes::routes;
use super::{Kernels, MAX_MEMORIES, MAX_WORKERS, Memory, Overheads, Platform, Power, Sharing, Worker, WorkerClass};
use kdl::{KdlDocument, KdlEntry, KdlNode, KdlValue};
use kernels::On;
use sched_core::{Arch, MemoryNode};
use sched_machine::topology::CombinedSizes;
use sched_text::kdl::{Language, NodeReader, Reader, Signature};
use sched_text::quantity::{self, POWER, SIZE, TIME};
use sched_text::{Finding, Findings, Span};
use std::collections::HashSet;
use std::time::Duration;
use wires::Wire;

const LANGUAGE: Language = Language { name: "platform", node: "part", rule: "" };

const PLATFORM: Signature = Signature { arguments: 1, properties: &[], example: "platform \"name\" { … }" };
const MEMORY: Signature = Signature {
    arguments: 1,
    properties: &["size", "device", "copied-by-workers"],
    example: "memory \"ram\" size=\"64 GiB\"",
};
const SWITCH: Signature = Signature { arguments: 1, properties: &[], example: "switch \"pci\"" };
const WORKERS: Signature = Signature {
    arguments: 1,
    properties: &["count", "arch", "memory", "package", "speed", "pipeline", "watts", "idle-watts"],
    example: "workers \"cpu\" count=4 arch=\"cpu\" memory=\"ram\"",
};
const COMBINED: Signature =
    Signature { arguments: 0, properties: &["min", "max", "arity"], example: "combined-workers min=2 max=8 arity=2" };
const EXPECTED: Signature =
    Signature { arguments: 0, properties: &["contention"], example: "expected-transfers contention=6.0" };
const SHARING: Signature = Signature { arguments: 1, properties: &[], example: "sharing \"latency\"" };
const OVERHEADS: Signature = Signature {
    arguments: 0,
    properties: &["submission", "push", "fetch", "kernel-queueing", "transfer-queueing", "allocation", "wake-up"],
    example: "overheads submission=\"1 us\"",
};
const REPEAT: Signature = Signature { arguments: 1, properties: &[], example: "repeat 8 { … }" };

const PARTS: &[&str] = &[
    "memory",
    "switch",
    "workers",
    "combined-workers",
    "link",
    "expected-transfers",
    "sharing",
    "overheads",
    "kernel",
    "repeat",
];

/// Parts that a platform has at most once.
const ONCE: &[&str] = &["combined-workers", "expected-transfers", "sharing", "overheads"];

/// Number of problems after which those of kernels are not searched for any more.
const MOST_PROBLEMS: usize = 100;

/// Maximum number of parts that `repeat` makes in a platform: a few lines could otherwise request 10⁹ of them.
const MAX_REPEATED: usize = 100_000;

impl Platform {
    /// Reads a platform from KDL. `source_name` is the name of the text in errors, usually its path.
    ///
    /// - `memory "ram" size="64 GiB" device=#true`: a memory node; unlimited without a size. The first one has all data
    ///   at the beginning. On a device, the allocation of memory has a cost. With `copied-by-workers=#true`, data that
    ///   is fetched ahead from it or to it takes its time from the worker beside it, not from a copy engine.
    /// - `switch "pci"`: a place where links meet.
    /// - `link "ram" "pci" bandwidth="6 GB/s" latency="10 us" back="6.5 GB/s"`: the link between two places in both
    ///   directions. With `shared=#true` instead of `back` they share the bandwidth. Transfers take the route of least
    ///   latency.
    /// - `sharing "latency"`: simultaneous transfers share a link in proportion to 1/latency of their routes; `"even"`,
    ///   the default, gives each the same ([`Sharing`]).
    /// - `workers "cpu" count=9 arch="cpu" memory="ram" package=0 speed=1.0 pipeline=1`: workers of a class.
    /// - `workers "cpu" … watts="9.5 W" idle-watts="2 W"`: power of each of them while it executes a kernel, alone or
    ///   in a team (or `kernel "gemm" { on "cpu" gflops=30.0 watts="11 W"; }` for that kernel), and while it is idle,
    ///   which is at most the former. With this, schedulers know the energy of tasks, and so does the outcome
    ///   ([`SimOutcome::energy`](crate::SimOutcome::energy)).
    /// - `combined-workers min=2 max=8 arity=2`: sizes of the combined workers that the CPU workers offer; all by
    ///   default.
    /// - `overheads submission="1 us" …`: see [`Overheads`].
    /// - `expected-transfers contention=6.0`: factor by which schedulers expect transfers to be slower than alone.
    /// - `kernel "gemm" { on "cpu" … }`: execution time of tasks of a kind on a class: `time="3 ms"`, `gflops=10.0
    ///   overhead="5 us"` (by operations), `a=0.1 b=1.5` (µs = a·bytes^b), or `{ at "11.06 MB" "87.8 ms"; … }`
    ///   (measured, by the bytes of all data of a task). The kind `"*"` stands for all that are not named.
    /// - `on "cpu" time="3 ms" parallel=0.95 max-team=8`: this fraction of a task is divided among the members of a
    ///   team of at most eight ([`Parallel::Amdahl`](super::Parallel::Amdahl)); or `on "cpu" team=4 time="1 ms"`:
    ///   execution time on a team of four, given in any of the ways above, beside the `on "cpu"` for one worker
    ///   ([`Parallel::Sizes`](super::Parallel::Sizes)).
    /// - `repeat 8 { … }`: its parts eight times, with `{}` in texts replaced by 0 to 7.
    ///
    /// ```
    /// let platform = sched_sim::Platform::parse("mine.kdl", r#"
    ///     platform "mine" {
    ///         memory "ram"
    ///         workers "cpu" count=4 arch="cpu" memory="ram"
    ///         kernel "*" { on "cpu" time="1 ms" }
    ///     }
    /// "#)?;
    /// assert_eq!(platform.workers.len(), 4);
    /// # Ok::<(), sched_text::Findings>(())
    /// ```
    ///
    /// # Errors
    /// All problems of the text.
    pub fn parse(source_name: &str, text: &str) -> Result<Platform, Findings> {
        let mut reader = Reader::new(LANGUAGE, source_name, text);
        let document = reader.document();
        let platform = document.and_then(|document| Builder::new(&mut reader).document(&document));
        match platform {
            Some(platform) if reader.reported() == 0 => Ok(platform),
            _ => Err(Findings::new(source_name, reader.into_findings())),
        }
    }
}

struct Builder<'a> {
    reader: &'a mut Reader,
    memories: Vec<Memory>,
    switches: Vec<String>,
    classes: Vec<WorkerClass>,
    workers: Vec<Worker>,
    /// Links, kept until all places are known.
    links: Vec<Wire>,
    /// The ends of links, in the order of their names.
    linked: HashSet<(String, String)>,
    overheads: Overheads,
    contention: f64,
    sharing: Sharing,
    combined_sizes: CombinedSizes,
    on: Vec<On>,
    /// The parts of [`ONCE`] that were found.
    said: Vec<String>,
    /// Number of parts that `repeat` has made.
    repeated: usize,
}

impl<'a> Builder<'a> {
    fn new(reader: &'a mut Reader) -> Builder<'a> {
        Builder {
            reader,
            memories: Vec::new(),
            switches: Vec::new(),
            classes: Vec::new(),
            workers: Vec::new(),
            links: Vec::new(),
            linked: HashSet::new(),
            overheads: Overheads::default(),
            contention: 1.0,
            sharing: Sharing::default(),
            combined_sizes: CombinedSizes::default(),
            on: Vec::new(),
            said: Vec::new(),
            repeated: 0,
        }
    }

    fn document(mut self, document: &KdlDocument) -> Option<Platform> {
        let mut found = document.nodes().iter();
        let node = found.find(|node| node.name().value() == "platform");
        for other in document.nodes().iter().filter(|node| node.name().value() != "platform") {
            let finding = self.reader.misplaced(other, "in a platform file", "a platform file", &["platform"]);
            self.reader.report(finding);
        }
        if let Some(second) = found.find(|node| node.name().value() == "platform") {
            let finding = Finding::error("a file holds one platform")
                .at(self.reader.name_span(second), "this is the second")
                .code("platform::platform");
            self.reader.report(finding);
        }
        let Some(node) = node else {
            self.reader.report(
                Finding::error("the file holds no platform")
                    .help("write `platform \"name\" { … }`")
                    .code("platform::platform"),
            );
            return None;
        };
        let name = self.reader.open(node, &PLATFORM).argument(0, "a name").map(|(name, _)| name);
        node.iter_children().for_each(|part| self.part(part, 0));
        if self.workers.is_empty() && self.reader.reported() == 0 {
            let finding = Finding::error("the platform has no workers").at(self.reader.name_span(node), "this one");
            self.reader.report(
                finding.help("write `workers \"cpu\" count=4 arch=\"cpu\" memory=\"ram\"`").code("platform::platform"),
            );
        }
        let doc = self.reader.comment_above(node);
        self.finish(name?, doc)
    }

    /// Reports a part that was found before: only one of them would count.
    fn once(&mut self, node: &KdlNode) {
        let name = node.name().value();
        if self.said.iter().any(|said| said == name) {
            let finding = Finding::error(format!("`{name}` stands twice in the platform"));
            let finding = finding
                .at(self.reader.name_span(node), "again here")
                .help("write all of it in one place")
                .code("platform::twice");
            return self.reader.report(finding);
        }
        self.said.push(name.to_owned());
    }

    fn part(&mut self, node: &KdlNode, depth: usize) {
        if ONCE.contains(&node.name().value()) {
            self.once(node);
        }
        match node.name().value() {
            "memory" => self.memory(node),
            "switch" => {
                if let Some((name, span)) = self.reader.open(node, &SWITCH).argument(0, "a name") {
                    self.new_place(&name, span);
                    self.switches.push(name);
                }
            }
            "workers" => self.add_workers(node),
            "combined-workers" => {
                let mut open = self.reader.open(node, &COMBINED);
                let mut size =
                    |name, least, default| open.whole(name, least..=usize::from(u16::MAX)).unwrap_or(default);
                let sizes = CombinedSizes {
                    min: size("min", 2, 2),
                    max: size("max", 0, usize::MAX),
                    arity: size("arity", 2, 2),
                };
                if (1..sizes.min).contains(&sizes.max) {
                    let finding = Finding::error(format!("`min` is {}, and `max` is {}", sizes.min, sizes.max))
                        .at(open.span(), "no combined worker is of such a size")
                        .help("exchange them; `max=0` is for none");
                    open.report(finding);
                }
                self.combined_sizes = sizes;
            }
            "link" => self.link(node),
            "expected-transfers" => {
                self.contention = self.reader.open(node, &EXPECTED).positive("contention").unwrap_or(1.0);
            }
            "sharing" => self.sharing(node),
            "overheads" => self.overheads(node),
            "kernel" => self.kernel(node),
            "repeat" => self.repeat(node, depth),
            _ => {
                let finding = self.reader.misplaced(node, "in a platform", "a platform", PARTS);
                self.reader.report(finding);
            }
        }
    }

    fn repeat(&mut self, node: &KdlNode, depth: usize) {
        let rounds = self.reader.open(node, &REPEAT).whole_argument(1..=1024).unwrap_or(1);
        if depth > 2 {
            let finding = Finding::error("`repeat` is nested too deeply")
                .code("platform::repeat")
                .at(self.reader.name_span(node), "here");
            return self.reader.report(finding);
        }
        for round in 0..rounds {
            let before = self.reader.reported();
            for child in node.iter_children() {
                self.repeated += 1;
                if self.repeated > MAX_REPEATED {
                    let finding = Finding::error(format!("`repeat` makes more than {MAX_REPEATED} parts"));
                    self.reader.report(
                        finding
                            .at(self.reader.name_span(node), "here")
                            .help("repeat less often")
                            .code("platform::repeat"),
                    );
                    break;
                }
                let mut child = child.clone();
                fill_in(&mut child, round);
                self.part(&child, depth + 1);
            }
            if self.reader.reported() > before {
                // The next rounds would repeat the problem.
                break;
            }
        }
    }

    fn places(&self) -> impl Iterator<Item = &str> + Clone {
        self.memories.iter().map(|memory| memory.name.as_str()).chain(self.switches.iter().map(String::as_str))
    }

    fn new_place(&mut self, name: &str, span: Span) {
        if self.places().any(|known| known == name) {
            let finding = Finding::error(format!("two places are called `{name}`")).at(span, "again here");
            self.reader.report(finding.help("give one of them another name").code("platform::twice"));
        }
    }

    fn memory(&mut self, node: &KdlNode) {
        let mut open = self.reader.open(node, &MEMORY);
        let capacity = open.quantity("size", quantity::parse_size, SIZE);
        let (device, copied_by_workers) = (open.flag("device"), open.flag("copied-by-workers"));
        let Some((name, span)) = open.argument(0, "a name") else { return };
        self.new_place(&name, span);
        if self.memories.len() == MAX_MEMORIES {
            let finding = Finding::error(format!("a platform has {MAX_MEMORIES} memories at most"));
            return self.reader.report(finding.at(span, "this is one too many").code("platform::memory"));
        }
        self.memories.push(Memory { name, capacity, device, copied_by_workers });
    }

    fn add_workers(&mut self, node: &KdlNode) {
        let left = MAX_WORKERS - self.workers.len();
        let mut open = self.reader.open(node, &WORKERS);
        let name = open.argument(0, "the name of a class").map(|(name, _)| name);
        let count = open.whole("count", 1..=MAX_WORKERS).unwrap_or(1);
        if count > left {
            let finding = Finding::error(format!("a platform has {MAX_WORKERS} workers at most"))
                .at(open.span(), format!("{count} more, and there is room for {left}"))
                .help("lower a `count`");
            return open.report(finding);
        }
        let pipeline = open.whole("pipeline", 1..=64).unwrap_or(1);
        let speed = open.positive("speed").unwrap_or(1.0);
        let power = Power {
            busy: open.quantity("watts", quantity::parse_power, POWER),
            idle: open.quantity("idle-watts", quantity::parse_power, POWER).unwrap_or(0.0),
        };
        if let Some(busy) = power.busy.filter(|busy| *busy < power.idle) {
            let finding = Finding::error(format!("`idle-watts` is {} W, and `watts` is {busy} W", power.idle))
                .at(open.span(), "more power while idle than while busy")
                .help("`watts` is the power while a kernel runs, with that of the idle worker: exchange them?");
            open.report(finding);
        }
        let package = open.whole("package", 0..=1 << 20).map(|number| number as u32);
        let arch = if open.has("arch") { open.arch("arch") } else { Some(Arch::CPU) };
        let memory = home(&mut open, &self.memories);
        let (Some(name), Some(arch)) = (name, arch) else { return };
        let Some(class) = self.class(node, WorkerClass { name, arch, speed, pipeline, power }) else { return };
        let worker = Worker { class, memory: MemoryNode(memory as u32), package };
        self.workers.extend(std::iter::repeat_n(worker, count));
    }

    /// The place of a class, which is new or has the same figures as an earlier one.
    fn class(&mut self, node: &KdlNode, class: WorkerClass) -> Option<usize> {
        match self.classes.iter().position(|known| known.name == class.name) {
            Some(number) if self.classes[number] == class => Some(number),
            Some(_) => {
                let finding = Finding::error(format!("the workers `{}` differ from each other", class.name))
                    .at(self.reader.name_span(node), "these differ from earlier ones in arch, speed, pipeline or watts")
                    .help("give them another name")
                    .code("platform::workers");
                self.reader.report(finding);
                None
            }
            None => {
                self.classes.push(class);
                Some(self.classes.len() - 1)
            }
        }
    }

    fn sharing(&mut self, node: &KdlNode) {
        let Some((by, span)) = self.reader.open(node, &SHARING).argument(0, "`latency` or `even`") else { return };
        match by.as_str() {
            "latency" => self.sharing = Sharing::ByLatency,
            "even" => self.sharing = Sharing::Even,
            _ => self.reader.unknown_name("way of sharing links", &by, span, ["latency", "even"]),
        }
    }

    fn overheads(&mut self, node: &KdlNode) {
        let mut open = self.reader.open(node, &OVERHEADS);
        let mut time = |name| open.quantity(name, quantity::parse_time, TIME).unwrap_or(Duration::ZERO);
        self.overheads = Overheads {
            submission: time("submission"),
            push: time("push"),
            fetch: time("fetch"),
            kernel_queueing: time("kernel-queueing"),
            transfer_queueing: time("transfer-queueing"),
            allocation: time("allocation"),
            wake_up: time("wake-up"),
            free_transfers: false,
        };
    }

    fn finish(mut self, name: String, doc: String) -> Option<Platform> {
        let places: Vec<String> = self.places().map(str::to_owned).collect();
        let (links, edges) = self.links_and_edges(&places);
        let mut kernels = Kernels::default();
        for on in std::mem::take(&mut self.on) {
            if self.reader.reported() >= MOST_PROBLEMS {
                break;
            }
            let Some(class) = self.classes.iter().position(|class| class.name == on.class) else {
                let known = self.classes.iter().map(|class| class.name.as_str());
                self.reader.unknown_name("class of workers", &on.class, on.span, known);
                continue;
            };
            self.set_kernel(&mut kernels, on, class);
        }
        let bandwidth: Vec<f64> = links.iter().map(|link| link.bandwidth).collect();
        let count = self.memories.len();
        let routes = routes(count, places.len(), &edges, &bandwidth, self.contention);
        self.check_routes(&routes);
        let Builder { memories, classes, workers, sharing, overheads, combined_sizes, .. } = self;
        Some(Platform {
            name,
            doc,
            classes,
            workers,
            memories,
            links,
            routes,
            sharing,
            overheads,
            kernels,
            combined_sizes,
            left_out: Vec::new(),
            assumed: Vec::new(),
            layout: None,
            names: Vec::new(),
        })
    }
}

/// The place of the memory node of workers: the only one, unless they name one.
fn home(workers: &mut NodeReader<'_>, memories: &[Memory]) -> usize {
    let Some((name, span)) = workers.text("memory") else {
        if memories.len() != 1 && !workers.has("memory") {
            workers.missing("memory", "\"ram\"");
        }
        return 0;
    };
    let known = memories.iter().map(|memory| memory.name.as_str());
    known.clone().position(|known| known == name).unwrap_or_else(|| {
        workers.reader().unknown_name("memory", &name, span, known);
        0
    })
}

/// Replaces `{}` in the texts of a node and its descendants.
fn fill_in(node: &mut KdlNode, round: usize) {
    for entry in node.entries_mut() {
        if let KdlValue::String(text) = entry.value()
            && text.contains("{}")
        {
            let (text, span) = (text.replace("{}", &round.to_string()), entry.span());
            let mut filled = match entry.name() {
                Some(name) => KdlEntry::new_prop(name.value(), text),
                None => KdlEntry::new(text),
            };
            filled.set_span(span);
            *entry = filled;
        }
    }
    if let Some(children) = node.children_mut() {
        children.nodes_mut().iter_mut().for_each(|child| fill_in(child, round));
    }
}

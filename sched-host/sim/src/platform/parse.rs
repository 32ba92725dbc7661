//! Platform text to platforms.

mod kernels;

use super::reader::Reader;
use super::routes::{Edge, routes};
use super::{Kernels, Link, MAX_MEMORIES, MAX_WORKERS, Memory, Overheads, Platform, Power, Worker, WorkerClass};
use kdl::{KdlDocument, KdlEntry, KdlNode, KdlValue};
use kernels::On;
use sched_core::{Arch, MemoryNode};
use sched_machine::topology::CombinedSizes;
use sched_policy::ARCH_NAMES;
use sched_text::kdl::{comment_above, document};
use sched_text::quantity::{self, BANDWIDTH, POWER, SIZE, TIME};
use sched_text::{Finding, Findings, Span};
use std::time::Duration;

const PARTS: &[&str] =
    &["memory", "switch", "workers", "combined-workers", "link", "expected-transfers", "overheads", "kernel", "repeat"];

/// Parts of which there is one at most.
const ONCE: &[&str] = &["combined-workers", "expected-transfers", "overheads"];

/// Nobody reads on when so many things are wrong with times of kernels.
const MOST_PROBLEMS: usize = 100;

/// So many parts `repeat` makes of one platform at most: a few lines could otherwise ask for a thousand million of them.
const MAX_REPEATED: usize = 100_000;

impl Platform {
    /// Reads a platform from KDL. `source_name` is what errors call the text, usually its path.
    ///
    /// - `memory "ram" size="64 GiB" device=#true`: a memory; without a size it is never too small. The first one is where
    ///   data is in the beginning. On a device, allocating memory has a cost.
    /// - `switch "pci"`: a place that links meet at.
    /// - `link "ram" "pci" bandwidth="6 GB/s" latency="10 us" back="6.5 GB/s" shared=#true`: a link between two places, in
    ///   both directions, which are apart unless they are `shared`. Transfers take the way of the least latency.
    /// - `workers "cpu" count=9 arch="cpu" memory="ram" package=0 speed=1.0 pipeline=1`: workers of a class.
    /// - `workers "cpu" … watts="9.5 W" idle-watts="2 W"`: what each of them draws while it executes a kernel, alone or in a team
    ///   (or `kernel "gemm" { on "cpu" gflops=30.0 watts="11 W"; }`: that kernel), and while it does not. With this,
    ///   schedulers know the energy of tasks, and a schedule has one ([`Outcome::energy`](crate::Outcome::energy)).
    /// - `combined-workers min=2 max=8 arity=2`: which sizes of combined workers the CPU workers offer; without this, all.
    /// - `overheads submission="1 us" …`: see [`Overheads`].
    /// - `expected-transfers contention=6.0`: how much longer than alone schedulers are told to expect transfers to take.
    /// - `kernel "gemm" { on "cpu" … }`: how long tasks of a kind take on a class: `time="3 ms"`, `gflops=10.0
    ///   overhead="5 us"` (by operations), `a=0.1 b=1.5` (µs = a·bytes^b), or `{ at "11.06 MB" "87.8 ms"; … }` (as
    ///   measured, by the bytes of all data of a task). The kind `"*"` stands for all that are not named.
    /// - `on "cpu" time="3 ms" parallel=0.95 max-team=8`: so large a share of a task is divided among the members of a
    ///   team, of eight at most ([`Parallel::Amdahl`](super::Parallel::Amdahl)); or `on "cpu" team=4 time="1 ms"`: how
    ///   long it takes four together, in the same ways, beside the `on "cpu"` for one
    ///   ([`Parallel::Sizes`](super::Parallel::Sizes)).
    /// - `repeat 8 { … }`: what is in it, eight times, with `{}` in texts replaced by 0 to 7.
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
    /// Everything that is wrong with the text.
    pub fn parse(source_name: &str, text: &str) -> Result<Platform, Findings> {
        let mut reader = Reader::new(source_name, text);
        let platform = match document(text) {
            Ok(found) => Builder::new(&mut reader).document(&found),
            Err(problems) => {
                problems.into_iter().for_each(|problem| reader.report(problem));
                None
            }
        };
        match platform {
            Some(platform) if reader.problems.is_empty() => Ok(platform),
            _ => Err(Findings::new(source_name, reader.problems)),
        }
    }
}

struct Builder<'a> {
    reader: &'a mut Reader,
    memories: Vec<Memory>,
    switches: Vec<String>,
    classes: Vec<WorkerClass>,
    workers: Vec<Worker>,
    /// From and to with their places, and what is said of the link.
    links: Vec<(Named, Named, Wire)>,
    overheads: Overheads,
    contention: f64,
    combined_sizes: CombinedSizes,
    on: Vec<On>,
    /// Which of [`ONCE`] were there.
    said: Vec<String>,
    /// Parts that `repeat` has made.
    repeated: usize,
}

/// A name and its place.
type Named = (String, Span);

struct Wire {
    there: f64,
    back: f64,
    shared: bool,
    latency: u64,
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
            overheads: Overheads::default(),
            contention: 1.0,
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
            self.reader.unknown_node(other, "a platform file", &["platform"]);
        }
        if let Some(second) = found.find(|node| node.name().value() == "platform") {
            let problem =
                Finding::error("a file holds one platform").at(self.reader.span(second), "this is the second");
            self.reader.report(problem);
        }
        let Some(node) = node else {
            self.reader.report(Finding::error("the file holds no platform").help("write `platform \"name\" { … }`"));
            return None;
        };
        self.reader.shape(node, 1, &[]);
        let name = self.reader.argument(node, 0, "a name").map(|(name, _)| name);
        node.iter_children().for_each(|part| self.part(part, 0));
        if self.workers.is_empty() && self.reader.problems.is_empty() {
            let problem = Finding::error("the platform has no workers").at(self.reader.span(node), "this one");
            self.reader.report(problem.help("write `workers \"cpu\" count=4 arch=\"cpu\" memory=\"ram\"`"));
        }
        self.finish(name?, comment_above(node))
    }

    /// Reports what says in another place what was said already: only one of them would count.
    fn once(&mut self, node: &KdlNode) {
        let name = node.name().value();
        if self.said.iter().any(|said| said == name) {
            let problem = Finding::error(format!("`{name}` stands twice in the platform"));
            let problem = problem.at(self.reader.span(node), "again here").help("write all of it in one place");
            return self.reader.report(problem);
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
                self.reader.shape(node, 1, &[]);
                if let Some((name, span)) = self.reader.argument(node, 0, "a name") {
                    self.new_place(&name, span);
                    self.switches.push(name);
                }
            }
            "workers" => self.add_workers(node),
            "combined-workers" => {
                self.reader.shape(node, 0, &["min", "max", "arity"]);
                let mut size = |name, least, default| {
                    self.reader.whole(node, name, least, usize::from(u16::MAX)).unwrap_or(default)
                };
                self.combined_sizes = CombinedSizes {
                    min: size("min", 2, 2),
                    max: size("max", 0, usize::MAX),
                    arity: size("arity", 2, 2),
                };
            }
            "link" => self.link(node),
            "expected-transfers" => {
                self.reader.shape(node, 0, &["contention"]);
                self.contention = self.reader.positive(node, "contention").unwrap_or(1.0);
            }
            "overheads" => self.overheads(node),
            "kernel" => self.kernel(node),
            "repeat" => {
                self.reader.shape(node, 1, &[]);
                if depth > 2 {
                    let problem = Finding::error("`repeat` is nested too deeply").at(self.reader.span(node), "here");
                    return self.reader.report(problem);
                }
                for round in 0..self.reader.whole(node, "", 1, 1024).unwrap_or(1) {
                    let before = self.reader.problems.len();
                    for child in node.iter_children() {
                        self.repeated += 1;
                        if self.repeated > MAX_REPEATED {
                            let problem = Finding::error(format!("`repeat` makes more than {MAX_REPEATED} parts"));
                            self.reader.report(problem.at(self.reader.span(node), "here").help("repeat less often"));
                            break;
                        }
                        let mut child = child.clone();
                        fill_in(&mut child, round);
                        self.part(&child, depth + 1);
                    }
                    if self.reader.problems.len() > before {
                        // The next rounds would say the same.
                        break;
                    }
                }
            }
            _ => self.reader.unknown_node(node, "a platform", PARTS),
        }
    }

    fn places(&self) -> impl Iterator<Item = &str> + Clone {
        self.memories.iter().map(|memory| memory.name.as_str()).chain(self.switches.iter().map(String::as_str))
    }

    fn new_place(&mut self, name: &str, span: Span) {
        if self.places().any(|known| known == name) {
            let problem = Finding::error(format!("two places are called `{name}`")).at(span, "again here");
            self.reader.report(problem.help("give one of them another name"));
        }
    }

    fn memory(&mut self, node: &KdlNode) {
        self.reader.shape(node, 1, &["size", "device"]);
        let capacity = self.reader.quantity(node, "size", quantity::parse_size, SIZE);
        let device = self.reader.flag(node, "device");
        let Some((name, span)) = self.reader.argument(node, 0, "a name") else { return };
        self.new_place(&name, span);
        if self.memories.len() == MAX_MEMORIES {
            let problem = Finding::error(format!("a platform has {MAX_MEMORIES} memories at most"));
            return self.reader.report(problem.at(span, "this is one too many"));
        }
        self.memories.push(Memory { name, capacity, device });
    }

    fn add_workers(&mut self, node: &KdlNode) {
        const KNOWN: &[&str] = &["count", "arch", "memory", "package", "speed", "pipeline", "watts", "idle-watts"];
        self.reader.shape(node, 1, KNOWN);
        let reader = &mut *self.reader;
        let name = reader.argument(node, 0, "the name of a class").map(|(name, _)| name);
        let count = reader.whole(node, "count", 1, MAX_WORKERS - self.workers.len()).unwrap_or(1);
        let pipeline = reader.whole(node, "pipeline", 1, 64).unwrap_or(1);
        let speed = reader.positive(node, "speed").unwrap_or(1.0);
        let power = Power {
            busy: reader.quantity(node, "watts", quantity::parse_power, POWER),
            idle: reader.quantity(node, "idle-watts", quantity::parse_power, POWER).unwrap_or(0.0),
        };
        let package = reader.whole(node, "package", 0, 1 << 20).map(|number| number as u32);
        let arch = match reader.text(node, "arch") {
            None => Some(Arch::CPU),
            Some((arch, span)) => {
                let found = Arch::from_name(&arch);
                if found.is_none() {
                    reader.unknown_name("architecture", &arch, span, ARCH_NAMES);
                }
                found
            }
        };
        let memory = match reader.text(node, "memory") {
            None => {
                if self.memories.len() != 1 {
                    reader.missing(node, "memory", "\"ram\"");
                }
                0
            }
            Some((name, span)) => {
                let known = self.memories.iter().map(|memory| memory.name.as_str());
                known.clone().position(|known| known == name).unwrap_or_else(|| {
                    reader.unknown_name("memory", &name, span, known);
                    0
                })
            }
        };
        let (Some(name), Some(arch)) = (name, arch) else { return };
        let class = WorkerClass { name, arch, speed, pipeline, power };
        let number = match self.classes.iter().position(|known| known.name == class.name) {
            Some(number) if self.classes[number] == class => number,
            Some(_) => {
                let problem = Finding::error(format!("the workers `{}` are not all alike", class.name));
                let span = self.reader.span(node);
                return self.reader.report(
                    problem
                        .at(span, "these differ from earlier ones in arch, speed, pipeline or watts")
                        .help("give them another name"),
                );
            }
            None => {
                self.classes.push(class);
                self.classes.len() - 1
            }
        };
        let worker = Worker { class: number, memory: MemoryNode(memory as u32), package };
        self.workers.extend(std::iter::repeat_n(worker, count));
    }

    fn link(&mut self, node: &KdlNode) {
        let reader = &mut *self.reader;
        reader.shape(node, 2, &["bandwidth", "back", "latency", "shared"]);
        let from = reader.argument(node, 0, "a memory or switch");
        let to = reader.argument(node, 1, "a second memory or switch");
        let there = reader.quantity(node, "bandwidth", quantity::parse_bandwidth, BANDWIDTH);
        let back = reader.quantity(node, "back", quantity::parse_bandwidth, BANDWIDTH);
        let latency = reader.quantity(node, "latency", quantity::parse_time, TIME).unwrap_or_default();
        let shared = reader.flag(node, "shared");
        if node.entry("bandwidth").is_none() {
            reader.missing(node, "bandwidth", "\"6.5 GB/s\"");
        }
        let (Some(from), Some(to), Some(there)) = (from, to, there) else { return };
        let wire = Wire { there, back: back.unwrap_or(there), shared, latency: latency.as_nanos() as u64 };
        self.links.push((from, to, wire));
    }

    fn overheads(&mut self, node: &KdlNode) {
        const KNOWN: &[&str] =
            &["submission", "push", "fetch", "kernel-queueing", "transfer-queueing", "allocation", "wake-up"];
        self.reader.shape(node, 0, KNOWN);
        let mut time = |name| self.reader.quantity(node, name, quantity::parse_time, TIME).unwrap_or(Duration::ZERO);
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
        let (mut links, mut edges) = (Vec::new(), Vec::new());
        for ((from, from_span), (to, to_span), wire) in &self.links {
            let mut place = |name: &str, span| {
                let found = places.iter().position(|place| place == name);
                if found.is_none() {
                    self.reader.unknown_name("memory or switch", name, span, places.iter().map(String::as_str));
                }
                found
            };
            let (Some(a), Some(b)) = (place(from, *from_span), place(to, *to_span)) else { continue };
            let there = links.len();
            links.push(Link { name: format!("{from}-{to}"), bandwidth: wire.there });
            let back = if wire.shared { there } else { links.len() };
            if !wire.shared {
                links.push(Link { name: format!("{to}-{from}"), bandwidth: wire.back });
            }
            edges.push(Edge { from: a, to: b, link: there, latency: wire.latency });
            edges.push(Edge { from: b, to: a, link: back, latency: wire.latency });
        }
        let mut kernels = Kernels::default();
        for on in std::mem::take(&mut self.on) {
            if self.reader.problems.len() >= MOST_PROBLEMS {
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
        let used = |memory: &usize| self.workers.iter().any(|worker| worker.memory.0 as usize == *memory);
        for memory in (0..count).filter(used) {
            let cut_off = |to: usize| to != memory && routes[memory * count + to].links.is_empty();
            if self.reader.problems.is_empty() && (cut_off(0) || (memory != 0 && routes[memory].links.is_empty())) {
                let (here, home) = (&self.memories[memory].name, &self.memories[0].name);
                let problem = Finding::error(format!("there is no way between the memories `{home}` and `{here}`"));
                self.reader.report(problem.help(format!("write `link {home:?} {here:?} bandwidth=\"10 GB/s\"`")));
            }
        }
        let Builder { memories, classes, workers, overheads, combined_sizes, .. } = self;
        Some(Platform { name, doc, classes, workers, memories, links, routes, overheads, kernels, combined_sizes })
    }
}

/// Replaces `{}` in the texts of a node and what is below it.
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

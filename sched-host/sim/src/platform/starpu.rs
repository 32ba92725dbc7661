//! Platforms from StarPU's performance directory: workers and links as its simulation sees them, and execution times
//! from its models.

use super::{
    KernelTime, Kernels, Link, Memory, Overheads, Parallel, Platform, Power, Route, Sharing, Sized, TransferCost,
    Worker, WorkerClass,
};
use miette::{NamedSource, SourceSpan};
use roxmltree::Node;
use sched_core::{Arch, MemoryNode};
use sched_machine::topology::CombinedSizes;
use sched_model::starpu::{CodeletFile, Sampling};
use sched_model::{Bus, ModelError, NodeMatrix};
use sched_text::excerpt::printable;
use sched_text::{SourceText, count, file_name, line_and_column, offset_of, word_at};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// Reason why a performance directory gives no platform.
#[derive(Debug, thiserror::Error, miette::Diagnostic)]
#[non_exhaustive]
pub enum StarpuError {
    /// The models cannot be read, or there are none for the machine.
    #[error(transparent)]
    #[diagnostic(transparent)]
    Model(#[from] ModelError),
    /// A file is missing or cannot be read.
    #[error("{}: {source}", path.display())]
    #[diagnostic(help("StarPU writes it when it is built for simulation, or when `starpu_machine_display` is run"))]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// The cause.
        source: std::io::Error,
    },
    /// A file is invalid.
    #[error("{what}")]
    #[diagnostic(help("a platform file of StarPU for SimGrid 3.13 or later is expected"))]
    Wrong {
        /// The problem, after the name of the file, line and column.
        what: String,
        /// The file.
        #[source_code]
        text: SourceText,
        /// Its place.
        #[label("here")]
        place: SourceSpan,
    },
    /// Several of the above.
    #[error("there are {} problems in {}", causes.len(), directory.display())]
    Several {
        /// The performance directory.
        directory: PathBuf,
        /// The problems.
        #[related]
        causes: Vec<StarpuError>,
    },
}

/// Overheads of StarPU's simulation by default.
pub const STARPU_OVERHEADS: Overheads = Overheads {
    submission: Duration::from_micros(1),
    push: Duration::from_micros(1),
    fetch: Duration::from_micros(1),
    kernel_queueing: Duration::from_micros(10),
    transfer_queueing: Duration::from_micros(10),
    allocation: Duration::from_micros(175),
    wake_up: Duration::ZERO,
    free_transfers: false,
};

/// Speed of a CUDA device relative to a core in StarPU, for components that use it.
const CUDA_SPEED: f64 = 13.33;

/// Least bandwidth in bytes per second: over a slower link, the time of a byte may be infinite.
const LEAST_BANDWIDTH: f64 = 1e-290;

/// Kinds of generated graphs, with the names of their models in StarPU's examples.
const ALIASES: [(&str, &str); 7] = [
    ("potrf", "chol_model_potrf"),
    ("trsm", "chol_model_trsm"),
    ("syrk", "chol_model_syrk"),
    ("gemm", "chol_model_gemm"),
    ("getrf", "starpu_slu_lu_model_getrf"),
    ("trsm_row", "starpu_slu_lu_model_trsm_ll"),
    ("trsm_column", "starpu_slu_lu_model_trsm_ru"),
];

impl Platform {
    /// The machine `host` of StarPU's performance directory `directory`, with its cores and CUDA devices. As in StarPU,
    /// each device occupies a core, and schedulers expect transfers to take as long as if all devices used the bus in
    /// both directions. Where transfers were not measured, this follows from the links, and is
    /// [said](Platform::assumed). Measurements on several cores together give the execution times of teams.
    ///
    /// # Errors
    /// If files other than models are missing or invalid. Models that are damaged are [left out](Platform::left_out).
    pub fn from_starpu(directory: &Path, host: &str) -> Result<Platform, StarpuError> {
        let mut sampling = Sampling::load(directory, host)?;
        // A damaged model matters only for tasks of its kind.
        let models = directory.join("codelets");
        let (left_out, causes): (Vec<_>, Vec<_>) = sampling
            .problems
            .drain(..)
            .partition(|problem| problem.path().is_some_and(|path| path.starts_with(&models)));
        let mut causes: Vec<StarpuError> = causes.into_iter().map(StarpuError::from).collect();
        let path = directory.join("bus").join(format!("{host}.platform.v4.xml"));
        let drawn = match sched_text::read(&path) {
            Ok(text) => Drawn::read(&text).map_err(|flaws| wrong(&path, &text, flaws)),
            Err(why) => Err(vec![StarpuError::Unreadable { path, source: why.into() }]),
        };
        match drawn {
            Ok(drawn) if causes.is_empty() => {
                let zeros = sampling.codelets.iter().filter_map(|(name, file)| zeros(directory, host, name, file));
                let left_out = left_out.iter().map(ModelError::in_full).chain(zeros).collect();
                let assumed = drawn.unmeasured(directory, host, &sampling);
                return Ok(Platform { left_out, assumed, ..drawn.platform(host, &sampling) });
            }
            Ok(_) => {}
            Err(problems) => causes.extend(problems),
        }
        // Once it fails, all problems are reported.
        causes.splice(..0, left_out.into_iter().map(StarpuError::from));
        Err(match causes.len() {
            1 => causes.remove(0),
            _ => StarpuError::Several { directory: directory.to_owned(), causes },
        })
    }
}

/// Contents of a platform file of SimGrid.
struct Drawn {
    cores: usize,
    /// Memory of each CUDA device in bytes.
    devices: Vec<u64>,
    links: Vec<(Link, u64)>,
    /// From, to (0 is main memory, then the devices), links.
    routes: BTreeMap<(usize, usize), Vec<usize>>,
}

/// A byte of a platform file, and the problem there.
type Flaw = (usize, String);

/// The errors for these problems of a file.
fn wrong(path: &Path, text: &str, flaws: Vec<Flaw>) -> Vec<StarpuError> {
    let source = SourceText::new(NamedSource::new(file_name(path), printable(text.to_owned())));
    let error = |(offset, what): Flaw| {
        let (line, column) = line_and_column(text, offset);
        let what = format!("{}:{line}:{column}: {what}", path.display());
        let place = word_at(text, offset).get().unwrap_or_else(|| offset.into());
        StarpuError::Wrong { what, text: Arc::clone(&source), place }
    };
    flaws.into_iter().map(error).collect()
}

impl Drawn {
    fn read(text: &str) -> Result<Drawn, Vec<Flaw>> {
        let options = roxmltree::ParsingOptions { allow_dtd: true, ..Default::default() };
        let document = roxmltree::Document::parse_with_options(text, options).map_err(|error| {
            let place = error.pos();
            vec![(offset_of(text, place.row as usize, place.col as usize), error.to_string())]
        })?;
        let mut drawn = Drawn { cores: 0, devices: Vec::new(), links: Vec::new(), routes: BTreeMap::new() };
        let mut names: BTreeMap<&str, usize> = BTreeMap::new();
        let mut lines: BTreeMap<(&str, String), u32> = BTreeMap::new();
        let mut flaws = Vec::new();
        for node in document.descendants().filter(roxmltree::Node::is_element) {
            if let Err(flaw) = only(node, &mut lines) {
                flaws.push(flaw);
                continue;
            }
            let read = match node.tag_name().name() {
                "host" => drawn.host(node),
                "link" => drawn.link(node, &mut names),
                "route" => drawn.route(node, &names),
                _ => Ok(()),
            };
            flaws.extend(read.err());
        }
        if drawn.cores <= drawn.devices.len() {
            flaws.push((0, format!("{} cores for {} devices", drawn.cores, drawn.devices.len())));
        }
        // Without a route data would arrive at once.
        let devices = if flaws.is_empty() { drawn.devices.len() } else { 0 };
        for device in 0..devices {
            let missing = |(from, to): (&str, &str)| (0, format!("there is no route from {from} to {to}"));
            let name = format!("CUDA{device}");
            let ways = [((0, device + 1), ("RAM", &*name)), ((device + 1, 0), (&*name, "RAM"))];
            let there = |way| drawn.routes.get(way).is_some_and(|links| !links.is_empty());
            flaws.extend(ways.iter().filter(|(way, _)| !there(way)).map(|(_, names)| missing(*names)));
        }
        if flaws.is_empty() { Ok(drawn) } else { Err(flaws) }
    }

    fn host(&mut self, node: Node<'_, '_>) -> Result<(), Flaw> {
        let id = need(node, "id")?;
        if id.starts_with("CPU") {
            self.cores += 1;
        } else if id.starts_with("CUDA") {
            let size = node.children().find(|prop| prop.attribute("id") == Some("memsize"));
            // Unlimited where the file says nothing; routes to a device of an invalid size are valid.
            self.devices.push(u64::MAX);
            if let (Some(prop), Some(device)) = (size, self.devices.last_mut()) {
                let text = need(prop, "value")?;
                let wrong = format!("`memsize` is `{text}`, expected a whole number of bytes, such as `6442450944`");
                *device = text.parse().map_err(|_| (prop.range().start, wrong))?;
            }
        }
        Ok(())
    }

    fn link<'x>(&mut self, node: Node<'x, '_>, names: &mut BTreeMap<&'x str, usize>) -> Result<(), Flaw> {
        let name = need(node, "id")?;
        // Routes over an invalid link are valid.
        names.insert(name, self.links.len());
        self.links.push((Link { name: name.to_owned(), bandwidth: 1.0 }, 0));
        let bandwidth = number(node, "bandwidth", "Bps", LEAST_BANDWIDTH)? / 1e9;
        let latency = (number(node, "latency", "s", 0.0)? * 1e9).round() as u64;
        let (link, known_latency) = self.links.last_mut().expect("one was just added");
        (link.bandwidth, *known_latency) = (bandwidth, latency);
        Ok(())
    }

    fn route(&mut self, node: Node<'_, '_>, names: &BTreeMap<&str, usize>) -> Result<(), Flaw> {
        let place = |name: &str| match name.strip_prefix("CUDA") {
            Some(number) => number.parse::<usize>().ok().and_then(|number| number.checked_add(1)),
            None => (name == "RAM").then_some(0),
        };
        let (Some(from), Some(to)) = (place(need(node, "src")?), place(need(node, "dst")?)) else { return Ok(()) };
        let mut passed = Vec::new();
        for part in node.children().filter(|part| part.has_tag_name("link_ctn")) {
            let name = need(part, "id")?;
            let link = names.get(name).copied();
            passed.push(link.ok_or_else(|| (part.range().start, format!("there is no link `{name}`")))?);
        }
        self.routes.insert((from, to), passed);
        Ok(())
    }

    /// The links from one memory node to another; through main memory between devices without a route of their own.
    fn way(&self, from: usize, to: usize) -> Vec<usize> {
        let route = |from, to| self.routes.get(&(from, to)).filter(|links| !links.is_empty());
        match route(from, to) {
            Some(links) => links.clone(),
            None if from == to => Vec::new(),
            None => [route(from, 0), route(0, to)].into_iter().flatten().flatten().copied().collect(),
        }
    }

    /// The route between each two memory nodes, row by row.
    fn routes(&self, memories: usize, sampling: &Sampling) -> Vec<Route> {
        let pairs = (0..memories).flat_map(|from| (0..memories).map(move |to| (from, to)));
        let route = pairs.map(|(from, to)| {
            let links = self.way(from, to);
            let latency = links.iter().map(|link| self.links[*link].1).fold(0, u64::saturating_add);
            let expected = self.measured(from, to, sampling).unwrap_or_else(|| self.drawn_cost(&links, latency));
            Route { links, latency, expected }
        });
        route.collect()
    }

    /// What schedulers expect of transfers that were measured: a straight line through the times of no bytes and of
    /// many.
    fn measured(&self, from: usize, to: usize, sampling: &Sampling) -> Option<TransferCost> {
        let (bus, devices) = (sampling.bus.as_ref()?, self.devices.len() as u32);
        let (from, to) = (measured_node(bus, from, to), measured_node(bus, to, from));
        let none = bus.predicted_transfer(from, to, 0, devices)?;
        let many = bus.predicted_transfer(from, to, 1 << 30, devices)?;
        Some(TransferCost { latency: (none * 1e3) as u64, per_byte: (many - none) * 1e3 / f64::from(1 << 30) })
    }

    /// The same of transfers that were not: all devices use the links in both directions. A link that the route passes
    /// twice has half as much for it.
    fn drawn_cost(&self, links: &[usize], latency: u64) -> TransferCost {
        let nanos = |link: &usize| {
            let passed = links.iter().filter(|other| *other == link).count();
            passed as f64 / self.links[*link].0.bandwidth
        };
        let slowest = links.iter().map(nanos).fold(0.0, f64::max);
        TransferCost { latency, per_byte: slowest * 2.0 * self.devices.len() as f64 }
    }

    /// What to say of transfers that were not measured.
    fn unmeasured(&self, directory: &Path, host: &str, sampling: &Sampling) -> Vec<String> {
        let memories = self.devices.len() + 1;
        let pairs = (0..memories).flat_map(|from| (0..memories).map(move |to| (from, to)));
        let lacking: Vec<(usize, usize)> =
            pairs.filter(|(from, to)| from != to && self.measured(*from, *to, sampling).is_none()).collect();
        if lacking.is_empty() {
            return Vec::new();
        }
        let [bandwidth, latency, ..] = Bus::paths(&directory.join("bus"), host);
        let assumed = format!("schedulers expect what the links of {host}.platform.v4.xml give");
        let Some(bus) = &sampling.bus else {
            let missing = [bandwidth, latency].into_iter().filter(|path| !path.exists());
            return missing.map(|path| format!("{} is missing: {assumed}", path.display())).collect();
        };
        let name = |memory: usize| memory.checked_sub(1).map_or("RAM".to_owned(), |device| format!("CUDA{device}"));
        let sentence = |(path, matrix): (PathBuf, &NodeMatrix)| {
            let known = |(from, to)| matrix.get(measured_node(bus, from, to), measured_node(bus, to, from)).is_some();
            let mut without = lacking.iter().filter(|pair| !known(**pair));
            let shown: Vec<String> =
                without.by_ref().take(3).map(|(from, to)| format!("from {} to {}", name(*from), name(*to))).collect();
            let more = match without.count() {
                0 => String::new(),
                more => format!(" and {more} more"),
            };
            let path = path.display();
            (!shown.is_empty()).then(|| format!("{path} has no number {}{more}: {assumed}", shown.join(", ")))
        };
        [(bandwidth, &bus.bandwidth), (latency, &bus.latency)].into_iter().filter_map(sentence).collect()
    }

    fn platform(self, host: &str, sampling: &Sampling) -> Platform {
        let devices = self.devices.len();
        let mut classes: Vec<WorkerClass> = (0..devices)
            .map(|device| WorkerClass {
                name: format!("cuda{device}"),
                arch: Arch::CUDA,
                speed: CUDA_SPEED,
                pipeline: 2,
                power: Power::default(),
            })
            .collect();
        let power = Power::default();
        classes.push(WorkerClass { name: "cpu".to_owned(), arch: Arch::CPU, speed: 1.0, pipeline: 1, power });
        // In StarPU's simulation, cores are first among idle workers to get a task; here the first workers are.
        let on_device = |device| Worker { class: device, memory: MemoryNode(device as u32 + 1), package: None };
        let on_core = Worker { class: devices, memory: MemoryNode(0), package: Some(0) };
        let mut workers = vec![on_core; self.cores - devices];
        workers.extend((0..devices).map(on_device));
        let mut memories =
            vec![Memory { name: "ram".to_owned(), capacity: None, device: false, copied_by_workers: false }];
        memories.extend(self.devices.iter().enumerate().map(|(device, bytes)| Memory {
            name: format!("cuda{device}"),
            capacity: (*bytes != u64::MAX).then_some(*bytes),
            device: true,
            copied_by_workers: false,
        }));
        let routes = self.routes(memories.len(), sampling);
        let kernels = kernels(sampling, &classes, workers.len());
        Platform {
            name: host.to_owned(),
            doc: String::new(),
            classes,
            workers,
            memories,
            links: self.links.into_iter().map(|(link, _)| link).collect(),
            routes,
            sharing: Sharing::ByLatency,
            overheads: STARPU_OVERHEADS,
            kernels,
            combined_sizes: CombinedSizes::default(),
            left_out: Vec::new(),
            assumed: Vec::new(),
            layout: None,
            names: Vec::new(),
        }
    }
}

/// The node of the measurements that stands for a memory node of the platform, in a transfer to or from `other`. The
/// platform has one main memory; the measurements have one for each NUMA node, before the devices.
fn measured_node(bus: &Bus, node: usize, other: usize) -> usize {
    match (node.checked_sub(1), other.checked_sub(1)) {
        (Some(device), _) => bus.main_memories() + device,
        (None, Some(device)) => bus.nearest_to(device),
        (None, None) => 0,
    }
}

/// Execution times of each kernel on each class of workers, alone and on teams of cores.
fn kernels(sampling: &Sampling, classes: &[WorkerClass], workers: usize) -> Kernels {
    let mut kernels = Kernels::default();
    let kinds = sampling.codelets.iter().map(|(name, file)| (name.as_str(), file));
    let renamed = ALIASES.iter().filter_map(|(alias, name)| Some((*alias, sampling.codelets.get(*name)?)));
    for (kind, file) in kinds.chain(renamed) {
        for (number, class) in classes.iter().enumerate() {
            let device = if class.arch == Arch::CUDA { number as u32 } else { 0 };
            if let Some(time) = history(file, class.arch, device, 1) {
                kernels.set(kind, number, time);
            }
            if class.arch == Arch::CPU {
                let sizes = 2..=u16::try_from(workers).unwrap_or(u16::MAX);
                let known = |size| Some((size, history(file, class.arch, device, u32::from(size))?));
                let times: BTreeMap<u16, KernelTime> = sizes.filter_map(known).collect();
                if !times.is_empty() {
                    kernels.set_parallel(kind, number, Parallel::Sizes(times));
                }
            }
        }
        kernels.note_model(kind);
    }
    kernels
}

/// Checks that a host, a link or a route is there once; `lines` has the line of each.
fn only<'x>(node: Node<'x, '_>, lines: &mut BTreeMap<(&'x str, String), u32>) -> Result<(), Flaw> {
    let kind = node.tag_name().name();
    let name = match kind {
        "host" | "link" => format!("`{}`", need(node, "id")?),
        // The way back is another route.
        "route" => format!("from `{}` to `{}`", need(node, "src")?, need(node, "dst")?),
        _ => return Ok(()),
    };
    let start = node.range().start;
    let line = node.document().text_pos_at(start).row;
    match lines.insert((kind, name.clone()), line) {
        Some(first) => Err((start, format!("a second {kind} {name}, expected only that of line {first}: remove one"))),
        None => Ok(()),
    }
}

fn need<'x>(node: Node<'x, '_>, name: &str) -> Result<&'x str, Flaw> {
    let found = node.attribute(name);
    found.ok_or_else(|| (node.range().start, format!("a `{}` without `{name}`", node.tag_name().name())))
}

/// An attribute with a number and a unit, of at least `least`.
fn number(node: Node<'_, '_>, name: &str, unit: &str, least: f64) -> Result<f64, Flaw> {
    let text = need(node, name)?;
    let value: Option<f64> = text.strip_suffix(unit).unwrap_or(text).parse().ok();
    value.filter(|value| *value >= least && value.is_finite()).ok_or_else(|| {
        let from = match value {
            Some(value) if (f64::MIN_POSITIVE..least).contains(&value) => format!("from {least:e}"),
            _ => if least > 0.0 { "more than 0" } else { "from 0" }.to_owned(),
        };
        (node.range().start, format!("`{name}` is `{text}`, expected a number of {unit}, {from}"))
    })
}

/// What to say of measurements of a codelet that are 0, if there are any: no kernel takes no time.
fn zeros(directory: &Path, host: &str, codelet: &str, file: &CodeletFile) -> Option<String> {
    let measured = file.combs.iter().flat_map(|comb| &comb.implementations).flat_map(|measured| &measured.history);
    let mut zeros = measured.filter(|entry| entry.samples > 0 && entry.estimate().is_none());
    let first = zeros.next()?.footprint;
    let others = match zeros.count() {
        0 => String::new(),
        others => format!(" and {}", count(others, "other history line")),
    };
    let path = Sampling::codelet_path(directory, codelet, host);
    Some(format!("{}: the history line of footprint {first:08x}{others}, with a mean of 0", path.display()))
}

/// The history of the fastest implementation for each footprint, on one device or on `cores` cores together.
fn history(file: &CodeletFile, arch: Arch, device: u32, cores: u32) -> Option<KernelTime> {
    let mut times: BTreeMap<u32, Duration> = BTreeMap::new();
    let mut sizes: BTreeMap<u64, Duration> = BTreeMap::new();
    let measured = &file.comb(arch, device, cores)?.implementations;
    let history = measured.iter().flat_map(|measured| &measured.history);
    for (entry, micros) in history.filter_map(|entry| Some((entry, entry.estimate()?))) {
        let time = Duration::from_nanos((micros * 1e3).round().max(1.0) as u64);
        let best = times.entry(entry.footprint).or_insert(time);
        *best = time.min(*best);
        // Sizes are compared by their logarithms.
        let best = sizes.entry(entry.size.max(1)).or_insert(time);
        *best = time.min(*best);
    }
    let measured: Vec<Sized> = sizes.into_iter().map(|(bytes, time)| Sized { bytes, time }).collect();
    (!times.is_empty()).then_some(KernelTime::History { times, measured })
}

//! Clusters by name, and in KDL.

#[cfg(test)]
mod tests;

use super::network::{Network, SwitchLevel};
use super::{Cluster, MAX_CLUSTER_WORKERS, MAX_NODES, SharedCores};
use crate::platform::{self, MAX_WORKERS, Platform, Route, Worker};
use kdl::{KdlDocument, KdlNode};
use sched_core::MemoryNode;
use sched_text::kdl::{Language, Reader, Signature};
use sched_text::quantity::{self, BANDWIDTH, TIME};
use sched_text::{Finding, Findings};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

/// What the name of a cluster begins with.
const PREFIX: &str = "cluster:";

/// Help for names.
const FORM: &str = "write cluster:NODESxSHAPE, where the shape of a node is a platform or a number of cores, such as \
                    cluster:4xcpu9-gpu3 or cluster:1024x12; then, if wanted, ,latency=1.5us,bandwidth=12.5GB/s and for \
                    each level of switches ,switch=NODES:UPLINK:LATENCY";

const LANGUAGE: Language = Language { name: "cluster", node: "part", rule: "" };
const CLUSTER: Signature = Signature { arguments: 1, properties: &[], example: "cluster \"name\" { … }" };
const NODES: Signature =
    Signature { arguments: 1, properties: &["count", "cores"], example: "nodes \"numa-2x12\" count=64" };
const NETWORK: Signature = Signature {
    arguments: 0,
    properties: &["latency", "bandwidth", "foreign-task", "receive", "copy"],
    example: "network latency=\"1.5 us\" bandwidth=\"12.5 GB/s\"",
};
const SWITCH: Signature = Signature {
    arguments: 0,
    properties: &["nodes", "uplink", "latency"],
    example: "switch nodes=32 uplink=\"100 GB/s\" latency=\"300 ns\"",
};
const PARTS: &[&str] = &["nodes", "network", "switch"];

impl Cluster {
    /// Whether a name, as [`named`](Self::named) takes it, is that of a cluster rather than of a platform: it begins
    /// with `cluster:`, or is the path of a KDL file with a node `cluster`.
    #[must_use]
    pub fn is_named(name: &str) -> bool {
        if name.starts_with(PREFIX) {
            return true;
        }
        let has_it = |text: String| {
            // Large platforms are parsed once, where they are read. A name may be written with escapes.
            if !text.contains("cluster") && !text.contains('\\') {
                return false;
            }
            let document = Reader::new(LANGUAGE, name, &text).document();
            document.is_some_and(|document| document.nodes().iter().any(|node| node.name().value() == "cluster"))
        };
        (name == sched_text::STANDARD_INPUT || Path::new(name).is_file())
            && sched_text::read(Path::new(name)).is_ok_and(has_it)
    }

    /// Finds a cluster: `cluster:NODESxSHAPE` (or `×`), or the path of a KDL file ([`parse`](Self::parse)).
    ///
    /// The shape of a node is a platform by its name or path, or a number of cores as those of the shipped platform
    /// `numa-2x12`, with one memory. Options follow, separated by commas: `latency=1us`, `bandwidth=25GB/s`,
    /// `foreign-task=50ns`, `receive=3us`, `copy=5GB/s`, and for each level of switches, from the nodes upwards,
    /// `switch=32:100GB/s:300ns`, the nodes below each, its uplink, and the latency of that, 0 if it is left out.
    /// [`Network`] has the defaults.
    ///
    /// ```
    /// use sched_sim::cluster::Cluster;
    /// let cluster = Cluster::named("cluster:4xcpu9-gpu3,latency=2us,switch=2:10GB/s")?;
    /// assert_eq!((cluster.nodes.len(), cluster.workers()), (4, 48));
    /// assert_eq!(cluster.network.switches[0].uplink, 10.0);
    /// # Ok::<(), sched_text::Findings>(())
    /// ```
    ///
    /// # Errors
    /// All problems of the name or the file.
    pub fn named(name: &str) -> Result<Cluster, Findings> {
        let wrong = |why: String| Findings::new(name, vec![Finding::error(why).help(FORM)]);
        let Some(rest) = name.strip_prefix(PREFIX) else {
            let source_name = sched_text::file_name(Path::new(name));
            let text = sched_text::read(Path::new(name))
                .map_err(|error| wrong(format!("the cluster `{source_name}` cannot be read: {error}")))?;
            return parse_in(Path::new(name).parent(), &source_name, &text);
        };
        let mut parts = rest.split(',');
        let shape = parts.next().unwrap_or("");
        let (count, shape) = shape
            .split_once(['x', '×'])
            .ok_or_else(|| wrong(format!("`{name}` has no number of nodes and shape, such as 4x12")))?;
        let count = count.trim().parse().ok().filter(|count: &usize| (1..=MAX_NODES).contains(count));
        let count = count.ok_or_else(|| wrong(format!("`{name}` does not have 1 to {MAX_NODES} nodes")))?;
        let shape = shape.trim();
        let node = match shape_of(shape) {
            // The name is what the user wrote, unless the shape is a file with places.
            Err(found) if found.findings().iter().all(|finding| finding.place().is_none()) => {
                return Err(Findings::new(name, found.findings().to_vec()));
            }
            found => found?,
        };
        if count.saturating_mul(node.workers.len()) > MAX_CLUSTER_WORKERS {
            return Err(too_many(name, count, node.workers.len()));
        }
        let (mut network, mut names) = (Network::default(), Vec::new());
        for option in parts {
            let key = option.split('=').next().unwrap_or_default().trim();
            if key != "switch" && names.contains(&key) {
                return Err(wrong(format!("`{name}` has `{key}` twice: leave one of them out")));
            }
            names.push(key);
            set(&mut network, option).map_err(|why| wrong(format!("`{option}` in `{name}` {why}")))?;
        }
        check_switches(&network).map_err(wrong)?;
        let (name, doc) = (name.to_owned(), String::new());
        let node = Arc::new(node);
        Ok(Cluster { name, doc, nodes: vec![node; count], network, shared: Vec::new() })
    }

    /// Reads a cluster from KDL. `source_name` is the name of the text in errors, usually its path.
    ///
    /// - `nodes "numa-2x12" count=64`: nodes of this shape, as in [`named`](Self::named), or of a `platform` that
    ///   stands beside the cluster in the same text; they are numbered in the order of the text. The path of a platform
    ///   begins at the folder of `source_name`. `cores=2` says that these nodes together have two cores
    ///   ([`SharedCores`]), as ranks of one machine.
    /// - `network latency="1.5 us" bandwidth="12.5 GB/s" foreign-task="50 ns" receive="3 us" copy="5 GB/s"`: see
    ///   [`Network`].
    /// - `switch nodes=32 uplink="100 GB/s" latency="300 ns"`: a level of switches, from the nodes upwards
    ///   ([`SwitchLevel`]).
    ///
    /// ```
    /// let cluster = sched_sim::cluster::Cluster::parse("mine.kdl", r#"
    ///     cluster "mixed" {
    ///         nodes "numa-2x12" count=6
    ///         nodes "cpu9-gpu3" count=2
    ///         network latency="1 us" bandwidth="25 GB/s"
    ///         switch nodes=4 uplink="50 GB/s"
    ///     }
    /// "#)?;
    /// assert_eq!((cluster.nodes.len(), cluster.workers()), (8, 6 * 24 + 2 * 12));
    /// # Ok::<(), sched_text::Findings>(())
    /// ```
    ///
    /// # Errors
    /// All problems of the text.
    pub fn parse(source_name: &str, text: &str) -> Result<Cluster, Findings> {
        parse_in(Path::new(source_name).parent(), source_name, text)
    }
}

/// [`Cluster::parse`] for a file in this folder: its name in errors is not always its path.
fn parse_in(folder: Option<&Path>, source_name: &str, text: &str) -> Result<Cluster, Findings> {
    let mut reader = Reader::new(LANGUAGE, source_name, text);
    let cluster = reader.document().and_then(|document| read(&mut reader, &document, folder));
    match cluster {
        Some(cluster) if reader.reported() == 0 => Ok(cluster),
        _ => Err(Findings::new(source_name, reader.into_findings())),
    }
}

/// The platforms that the file of a cluster names.
struct Shapes<'a> {
    /// Those in the file, and others that were found, by the names of their shapes.
    found: BTreeMap<String, Arc<Platform>>,
    /// The folder of the file, where paths of others begin.
    folder: Option<&'a Path>,
}

impl Shapes<'_> {
    /// The platform of this shape, which is read once.
    fn find(&mut self, shape: &str) -> Result<Arc<Platform>, Findings> {
        if let Some(found) = self.found.get(shape) {
            return Ok(Arc::clone(found));
        }
        let platform = Arc::new(self.read(shape)?);
        self.found.insert(shape.to_owned(), Arc::clone(&platform));
        Ok(platform)
    }

    fn read(&self, shape: &str) -> Result<Platform, Findings> {
        let is_other = || is_number(shape) || platform::library().iter().any(|shipped| shipped.name == shape);
        let beside = self.folder.map(|folder| folder.join(shape)).and_then(|path| path.to_str().map(str::to_owned));
        match beside {
            Some(beside) if !is_other() && platform::is_path(shape, &beside) => shape_of(&beside),
            _ => shape_of(shape),
        }
    }
}

fn read(reader: &mut Reader, document: &KdlDocument, folder: Option<&Path>) -> Option<Cluster> {
    let (mut found, mut shapes) = (None, Shapes { found: BTreeMap::new(), folder });
    for node in document.nodes() {
        match node.name().value() {
            "cluster" if found.is_none() => found = Some(node),
            "platform" => {
                if let Some(platform) = platform_of(reader, node) {
                    shapes.found.entry(platform.name.clone()).or_insert_with(|| Arc::new(platform));
                }
            }
            _ => {
                let finding =
                    reader.misplaced(node, "in the file of a cluster", "such a file", &["cluster", "platform"]);
                reader.report(finding.help("a file holds one cluster, and platforms of its nodes"));
            }
        }
    }
    let Some(node) = found else {
        reader.report(Finding::error("the file holds no cluster").help("write `cluster \"name\" { … }`"));
        return None;
    };
    let name = reader.open(node, &CLUSTER).argument(0, "a name").map(|(name, _)| name);
    let (nodes_so_far, shared, network_of) = (Vec::new(), Vec::new(), Network::default());
    let mut cluster =
        Cluster { name: name?, doc: reader.comment_above(node), nodes: nodes_so_far, network: network_of, shared };
    let mut has_network = false;
    for part in node.iter_children() {
        match part.name().value() {
            "nodes" => nodes(reader, part, &mut cluster, &mut shapes),
            "network" if has_network => {
                let finding = Finding::error("`network` stands twice in the cluster");
                reader.report(finding.at(reader.name_span(part), "again here").help("write all of it in one place"));
            }
            "network" => {
                has_network = true;
                network(reader, part, &mut cluster.network);
            }
            "switch" => switch(reader, part, &mut cluster.network),
            _ => {
                let finding = reader.misplaced(part, "in a cluster", "a cluster", PARTS);
                reader.report(finding);
            }
        }
    }
    let workers: usize = cluster.nodes.iter().map(|node| node.workers.len()).sum();
    if workers > MAX_CLUSTER_WORKERS {
        let why = format!("the cluster has {workers} workers, and {MAX_CLUSTER_WORKERS} are the maximum");
        let finding = Finding::error(why).at(reader.name_span(node), "this one");
        reader.report(finding.help("take fewer nodes, or smaller ones"));
    }
    if cluster.nodes.is_empty() && reader.reported() == 0 {
        let finding = Finding::error("the cluster has no nodes").at(reader.name_span(node), "this one");
        reader.report(finding.help(format!("write `{}`", NODES.example)));
    }
    if let Err(why) = check_switches(&cluster.network) {
        reader.report(Finding::error(why).at(reader.name_span(node), "in this one"));
    }
    Some(cluster)
}

/// A platform that stands beside the cluster.
fn platform_of(reader: &mut Reader, node: &KdlNode) -> Option<Platform> {
    let span = node.span();
    let within = span.offset()..span.offset() + span.len();
    // The text without everything else, so that places stay what they are.
    let others = |(at, letter): (usize, char)| match within.contains(&at) || letter == '\n' {
        true => std::iter::repeat_n(letter, 1),
        false => std::iter::repeat_n(' ', letter.len_utf8()),
    };
    let text: String = reader.source().inner().char_indices().flat_map(others).collect();
    match Platform::parse(reader.source().name(), &text) {
        Ok(platform) => Some(platform),
        Err(findings) => {
            findings.findings().iter().for_each(|finding| reader.report(finding.clone()));
            None
        }
    }
}

fn nodes(reader: &mut Reader, node: &KdlNode, cluster: &mut Cluster, shapes: &mut Shapes<'_>) {
    let most = MAX_NODES - cluster.nodes.len().min(MAX_NODES - 1);
    let mut open = reader.open(node, &NODES);
    let count = open.whole("count", 1..=most).unwrap_or(1);
    let cores = open.whole("cores", 1..=MAX_WORKERS);
    let Some((shape, span)) = open.argument(0, "a platform or a number of cores") else { return };
    match shapes.find(&shape) {
        Ok(platform) => {
            let first = cluster.nodes.len();
            cluster.nodes.extend(std::iter::repeat_n(platform, count));
            cluster.shared.extend(cores.map(|cores| SharedCores { nodes: first..first + count, cores }));
        }
        Err(problems) => {
            let first = problems.findings().first().map_or_else(|| problems.to_string(), ToString::to_string);
            let finding = Finding::error(format!("`{shape}` is no shape of nodes: {first}"));
            reader.report(finding.at(span, "this one").help("name a platform, the file of one, or a number of cores"));
        }
    }
}

fn network(reader: &mut Reader, node: &KdlNode, network: &mut Network) {
    let mut open = reader.open(node, &NETWORK);
    let latency = open.quantity("latency", quantity::parse_time, TIME);
    let bandwidth = open.quantity("bandwidth", quantity::parse_bandwidth, BANDWIDTH);
    let foreign = open.quantity("foreign-task", quantity::parse_time, TIME);
    let receive = open.quantity("receive", quantity::parse_time, TIME);
    let copy = open.quantity("copy", quantity::parse_bandwidth, BANDWIDTH);
    network.latency = latency.unwrap_or(network.latency);
    network.bandwidth = bandwidth.unwrap_or(network.bandwidth);
    network.foreign_task = foreign.unwrap_or(network.foreign_task);
    network.receive = receive.unwrap_or(network.receive);
    network.copy = copy.unwrap_or(network.copy);
}

fn switch(reader: &mut Reader, node: &KdlNode, network: &mut Network) {
    let mut open = reader.open(node, &SWITCH);
    for needed in ["nodes", "uplink"].into_iter().filter(|needed| !open.has(needed)).collect::<Vec<_>>() {
        open.missing(needed, if needed == "nodes" { "32" } else { "\"100 GB/s\"" });
    }
    let nodes = open.whole("nodes", 1..=MAX_NODES);
    let uplink = open.quantity("uplink", quantity::parse_bandwidth, BANDWIDTH);
    let latency = open.quantity("latency", quantity::parse_time, TIME).unwrap_or_default();
    if let (Some(nodes), Some(uplink)) = (nodes, uplink) {
        network.switches.push(SwitchLevel { nodes, uplink, latency });
    }
}

/// Checks that the switches of each level have several of the level below.
fn check_switches(network: &Network) -> Result<(), String> {
    let mut below = 1;
    for level in &network.switches {
        if level.nodes <= below && below > 1 || !level.nodes.is_multiple_of(below) {
            return Err(format!(
                "a switch with {} nodes cannot stand above switches with {below}: levels go from the nodes upwards, and \
                 each has a multiple of the nodes of that below",
                level.nodes
            ));
        }
        below = level.nodes;
    }
    Ok(())
}

/// Sets an option of a name.
fn set(network: &mut Network, option: &str) -> Result<(), String> {
    let (name, value) = option.split_once('=').ok_or("is no option")?;
    let time = |text: &str| quantity::parse_time(text).ok_or_else(|| format!("needs {TIME}"));
    let bandwidth = |text: &str| quantity::parse_bandwidth(text).ok_or_else(|| format!("needs {BANDWIDTH}"));
    match name.trim() {
        "latency" => network.latency = time(value)?,
        "bandwidth" => network.bandwidth = bandwidth(value)?,
        "foreign-task" => network.foreign_task = time(value)?,
        "receive" => network.receive = time(value)?,
        "copy" => network.copy = bandwidth(value)?,
        "switch" => {
            let mut parts = value.split(':');
            let nodes = parts.next().and_then(|nodes| nodes.trim().parse().ok());
            let nodes = nodes.filter(|nodes| (1..=MAX_NODES).contains(nodes)).ok_or("needs a number of nodes")?;
            let uplink = bandwidth(parts.next().ok_or("needs the bandwidth of its uplink, as in switch=32:100GB/s")?)?;
            let latency = parts.next().map_or(Ok(std::time::Duration::ZERO), time)?;
            if let Some(more) = parts.next() {
                return Err(format!("has `{more}` left over"));
            }
            network.switches.push(SwitchLevel { nodes, uplink, latency });
        }
        _ => return Err("is none of latency, bandwidth, foreign-task, receive, copy and switch".to_owned()),
    }
    Ok(())
}

/// The finding of a cluster with more workers than can be simulated.
fn too_many(name: &str, nodes: usize, workers: usize) -> Findings {
    let why = format!("{nodes} nodes of {workers} workers are more than {MAX_CLUSTER_WORKERS} workers, the maximum");
    Findings::new(name, vec![Finding::error(why).help("take fewer nodes, or smaller ones")])
}

fn is_number(shape: &str) -> bool {
    !shape.is_empty() && shape.bytes().all(|byte| byte.is_ascii_digit())
}

/// The platform of a node.
fn shape_of(shape: &str) -> Result<Platform, Findings> {
    if !is_number(shape) {
        return platform::find(shape);
    }
    let Some(cores) = shape.parse().ok().filter(|cores| (1..=MAX_WORKERS).contains(cores)) else {
        let why = format!("a node cannot have {shape} cores: 1 to {MAX_WORKERS} are possible");
        return Err(Findings::new(shape, vec![Finding::error(why)]));
    };
    let base = platform::find("numa-2x12")?;
    let mut memories = base.memories.clone();
    memories.truncate(1);
    memories.iter_mut().for_each(|memory| memory.capacity = None);
    Ok(Platform {
        name: format!("{cores} cores"),
        workers: vec![Worker { class: 0, memory: MemoryNode(0), package: Some(0) }; cores],
        memories,
        links: Vec::new(),
        routes: vec![Route::default()],
        ..base
    })
}

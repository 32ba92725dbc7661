//! Clusters by name, and in KDL.

use super::network::{Network, SwitchLevel};
use super::{Cluster, MAX_CLUSTER_WORKERS, MAX_NODES, SharedCores};
use crate::platform::{self, MAX_WORKERS, Platform, Route, Worker};
use kdl::{KdlDocument, KdlNode};
use sched_core::MemoryNode;
use sched_text::kdl::{Language, Reader, Signature};
use sched_text::quantity::{self, BANDWIDTH, TIME};
use sched_text::{Finding, Findings};
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
            return Cluster::parse(&source_name, &text);
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
    ///   stands beside the cluster in the same text; they are numbered in the order of the text. `cores=2` says that
    ///   these nodes together have two cores ([`SharedCores`]), as ranks of one machine.
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
        let mut reader = Reader::new(LANGUAGE, source_name, text);
        let cluster = reader.document().and_then(|document| read(&mut reader, &document));
        match cluster {
            Some(cluster) if reader.reported() == 0 => Ok(cluster),
            _ => Err(Findings::new(source_name, reader.into_findings())),
        }
    }
}

fn read(reader: &mut Reader, document: &KdlDocument) -> Option<Cluster> {
    let (mut found, mut shapes) = (None, Vec::new());
    for node in document.nodes() {
        match node.name().value() {
            "cluster" if found.is_none() => found = Some(node),
            "platform" => shapes.extend(platform_of(reader, node)),
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
            "nodes" => nodes(reader, part, &mut cluster, &shapes),
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

fn nodes(reader: &mut Reader, node: &KdlNode, cluster: &mut Cluster, shapes: &[Platform]) {
    let most = MAX_NODES - cluster.nodes.len().min(MAX_NODES - 1);
    let mut open = reader.open(node, &NODES);
    let count = open.whole("count", 1..=most).unwrap_or(1);
    let cores = open.whole("cores", 1..=MAX_WORKERS);
    let Some((shape, span)) = open.argument(0, "a platform or a number of cores") else { return };
    let here = shapes.iter().find(|platform| platform.name == shape).cloned();
    match here.map_or_else(|| shape_of(&shape), Ok) {
        Ok(platform) => {
            let first = cluster.nodes.len();
            cluster.nodes.extend(std::iter::repeat_n(Arc::new(platform), count));
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

/// The platform of a node.
fn shape_of(shape: &str) -> Result<Platform, Findings> {
    if shape.is_empty() || !shape.bytes().all(|byte| byte.is_ascii_digit()) {
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

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    /// All problems, with their places.
    fn problems(found: Result<Cluster, Findings>) -> Vec<String> {
        let errors = found.expect_err("it is wrong");
        let line = |problem: &Finding| match problem.position() {
            Some((_, line, column)) => format!("{line}:{column}: {problem}"),
            None => problem.to_string(),
        };
        errors.findings().iter().map(line).collect()
    }

    #[test]
    fn names_tell_nodes_shape_and_network() {
        let cluster =
            Cluster::named("cluster:3×5,latency=1us,bandwidth=2GB/s,switch=2:3GB/s:7ns").expect("it is right");
        assert_eq!((cluster.nodes.len(), cluster.workers()), (3, 15));
        assert_eq!((cluster.network.latency, cluster.network.bandwidth), (Duration::from_micros(1), 2.0));
        let level = SwitchLevel { nodes: 2, uplink: 3.0, latency: Duration::from_nanos(7) };
        assert_eq!(cluster.network.switches, [level]);
        assert!(Cluster::is_named("cluster:nonsense") && !Cluster::is_named("numa-2x12"));
    }

    #[test]
    fn a_file_is_a_clusters_by_its_node_however_the_name_is_written() {
        let file = tempfile::NamedTempFile::with_suffix(".kdl").expect("there is room");
        let is_clusters = |text: &str| {
            std::fs::write(file.path(), text).expect("there is room");
            Cluster::is_named(&file.path().display().to_string())
        };
        for text in ["cluster \"c\" {}", "\"cluster\" \"c\" {}", r#""clus\u{74}er" "c" {}"#] {
            assert!(is_clusters(text), "{text}");
        }
        for text in ["platform \"cluster\" {}", "// cluster", r#"platform "a \" b" {}"#, "", "}"] {
            assert!(!is_clusters(text), "{text}");
        }
    }

    #[test]
    fn large_clusters_are_possible_and_errors_name_the_cluster() {
        assert!(Cluster::named("cluster:1024x12").is_ok() && Cluster::named("cluster:16384x64").is_ok());
        for name in ["cluster:4x0", "cluster:4xnosuch"] {
            let errors = Cluster::named(name).expect_err("it has no shape");
            assert_eq!(errors.to_string(), format!("{name}: 1 error"));
        }
    }

    #[test]
    fn wrong_names_say_what_is_wrong() {
        for (name, problem) in [
            ("cluster:4", "`cluster:4` has no number of nodes and shape, such as 4x12"),
            ("cluster:0x12", "`cluster:0x12` does not have 1 to 16384 nodes"),
            ("cluster:4x0", "a node cannot have 0 cores: 1 to 65536 are possible"),
            ("cluster:4xcpu9-gpu4", "there is no platform `cpu9-gpu4`"),
            ("cluster:64x65536", "64 nodes of 65536 workers are more than 1048576 workers, the maximum"),
            (
                "cluster:4x4,latency=1us,latency=2us",
                "`cluster:4x4,latency=1us,latency=2us` has `latency` twice: leave one of them out",
            ),
            ("cluster:4x12,fast", "`fast` in `cluster:4x12,fast` is no option"),
            (
                "cluster:4x12,speed=3",
                "`speed=3` in `cluster:4x12,speed=3` is none of latency, bandwidth, foreign-task, receive, copy and switch",
            ),
            (
                "cluster:4x12,latency=3",
                "`latency=3` in `cluster:4x12,latency=3` needs a time, such as \"10 us\" (units: ns, us, ms, s)",
            ),
            (
                "cluster:4x12,switch=4:1GB/s,switch=6:1GB/s",
                "a switch with 6 nodes cannot stand above switches with 4: levels go from the nodes upwards, and each has a \
                 multiple of the nodes of that below",
            ),
        ] {
            assert_eq!(problems(Cluster::named(name)), [problem]);
        }
    }

    #[test]
    fn problems_of_a_file_have_places() {
        let wrong =
            "cluster \"c\" {\n    nodes \"numa-3x12\" count=2\n    network speed=3\n    switch nodes=4\n    link\n}\n";
        let expected = [
            "2:11: `numa-3x12` is no shape of nodes: there is no platform `numa-3x12`",
            "3:13: `network` has no property `speed`",
            "4:5: `switch` has no `uplink`",
            "5:5: `link` cannot stand in a cluster",
        ];
        assert_eq!(problems(Cluster::parse("c.kdl", wrong)), expected);
        assert_eq!(problems(Cluster::parse("c.kdl", "cluster \"c\" {}")), ["1:1: the cluster has no nodes"]);
        let other = problems(Cluster::parse("c.kdl", "policy \"c\" {}"));
        let misplaced = "1:1: `policy` cannot stand in the file of a cluster";
        assert_eq!(other, [misplaced, "the file holds no cluster"]);
    }

    #[test]
    fn platforms_of_nodes_stand_beside_the_cluster() {
        let platform =
            "platform \"mine\" {\n    memory \"ram\"\n    workers \"cpu\" count=3 arch=\"cpu\" memory=\"ram\"\n}\n";
        let cluster =
            "// Größe\ncluster \"c\" {\n    nodes \"mine\" count=2\n    network receive=\"3 us\" copy=\"5 GB/s\"\n}\n";
        let found = Cluster::parse("c.kdl", &format!("{cluster}{platform}")).expect("it is right");
        assert_eq!(found.shared, []);
        let sharing = cluster.replace("count=2", "count=2 cores=3");
        let sharing = Cluster::parse("c.kdl", &format!("{sharing}{platform}")).expect("it is right");
        assert_eq!(sharing.shared, [SharedCores { nodes: 0..2, cores: 3 }]);
        assert_eq!((found.nodes.len(), found.workers()), (2, 6));
        assert_eq!((found.network.receive, found.network.copy), (Duration::from_micros(3), 5.0));
        let wrong = platform.replace("count=3", "count=3 color=4");
        let found = problems(Cluster::parse("c.kdl", &format!("{cluster}{wrong}")));
        assert_eq!(found[0], "8:27: `workers` has no property `color`");
    }
}

//! Links between memory nodes on disk, beside the models of the machine: a line of JSON for each link.
//!
//! ```text
//! {"format":"sched-bus","version":1,"machine":"…","nodes":2}
//! {"link":{"from":0,"to":1,"latency_us":0.4,"bandwidth_mb_s":9100.0}}
//! {"link":{"from":1,"to":0,"latency_us":0.4,"bandwidth_mb_s":9000.0}}
//! {"end":{"lines":3,"checksum":"1c291ca3"}}
//! ```

use super::lines::{self, EndLine, Format, Lines};
use super::{MovedAside, Store, move_aside, write_whole};
use crate::ModelError;
use crate::{Bus, NodeMatrix};
use sched_machine::topology::MOST_MEMORY_NODES;
use serde::{Deserialize, Serialize};
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

const FORMAT: Format = Format { name: "sched-bus", version: 1, holds: "stored links between memory nodes" };

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Header {
    format: String,
    version: u64,
    machine: String,
    nodes: usize,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Line {
    Link(LinkLine),
    End(EndLine),
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct LinkLine {
    from: usize,
    to: usize,
    latency_us: f64,
    bandwidth_mb_s: f64,
}

impl lines::Line for Line {
    fn end(end: EndLine) -> Line {
        Line::End(end)
    }

    fn into_end(self) -> Result<EndLine, Line> {
        match self {
            Line::End(end) => Ok(end),
            other @ Line::Link(_) => Err(other),
        }
    }
}

/// The links between a machine's memory nodes are stored beside its models.
impl Store {
    /// The file of the links between memory nodes.
    #[must_use]
    pub fn bus_path(&self) -> PathBuf {
        self.directory.join("memory-nodes.bus")
    }

    /// Reads the links between the memory nodes of the machine; `None` if not stored.
    ///
    /// # Errors
    /// If the file cannot be read, is damaged, or was written by a newer program. It is left unchanged.
    pub fn bus(&self) -> Result<Option<Bus>, ModelError> {
        let path = self.bus_path();
        match fs::read(&path) {
            Ok(bytes) => parse(&bytes, &path).map(Some),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(ModelError::io(&path, "read", error)),
        }
    }

    /// Stores the links, replacing the previous ones. Returns the error in the previous file if it had to be moved
    /// aside.
    ///
    /// ```
    /// use sched_model::{Bus, NodeMatrix};
    /// use sched_model::{Fingerprint, Store};
    ///
    /// let directory = tempfile::tempdir()?;
    /// let store = Store::new(&directory, Fingerprint::named("here"));
    /// let links = |value: f64| NodeMatrix::new(2, vec![0.0, value, value, 0.0]);
    /// let bus = Bus { bandwidth: links(9000.0), latency: links(0.5), ..Bus::default() };
    /// assert!(store.keep_bus(&bus)?.is_none());
    /// assert_eq!(store.bus()?, Some(bus));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// If the directory or the file cannot be written. The stored links are unchanged then.
    pub fn keep_bus(&self, bus: &Bus) -> Result<Option<MovedAside>, ModelError> {
        let path = self.bus_path();
        let _lock = self.lock()?;
        let moved = match self.bus() {
            Ok(_) => None,
            Err(problem @ (ModelError::Damaged(_) | ModelError::Newer { .. })) => Some(move_aside(&path, problem)?),
            Err(error) => return Err(error),
        };
        write_whole(&path, print(bus, self.machine.as_str()).as_bytes())?;
        Ok(moved)
    }
}

fn print(bus: &Bus, machine: &str) -> String {
    let mut out = Lines::default();
    let nodes = bus.nodes();
    let (format, version) = (FORMAT.name.to_owned(), FORMAT.version);
    out.push(&Header { format, version, machine: machine.to_owned(), nodes });
    for (from, to) in (0..nodes).flat_map(|from| (0..nodes).map(move |to| (from, to))).filter(|(from, to)| from != to) {
        if let (Some(latency_us), Some(bandwidth_mb_s)) = (bus.latency.get(from, to), bus.bandwidth.get(from, to)) {
            out.push(&Line::Link(LinkLine { from, to, latency_us, bandwidth_mb_s }));
        }
    }
    out.end::<Line>()
}

fn parse(bytes: &[u8], path: &Path) -> Result<Bus, ModelError> {
    let mut links = Vec::new();
    let (header, mut reader) = lines::read::<Header, Line>(bytes, path, &FORMAT, |_, number, line| {
        if let Line::Link(link) = line {
            links.push((number, link));
        }
    })?;
    let nodes = header.map_or(0, |header| header.nodes);
    if nodes > MOST_MEMORY_NODES {
        reader.flaw(1, 1, format!("found {nodes} memory nodes, expected at most {}", MOST_MEMORY_NODES));
        return Err(reader.damaged(bytes, path));
    }
    let on_the_spot = |pair: usize| if pair / nodes == pair % nodes { 0.0 } else { f64::NAN };
    let mut bandwidth: Vec<f64> = (0..nodes * nodes).map(on_the_spot).collect();
    let mut latency = bandwidth.clone();
    for (number, LinkLine { from, to, latency_us, bandwidth_mb_s }) in links {
        if from >= nodes || to >= nodes || from == to {
            reader.flaw(number, 1, format!("found a link from {from} to {to}, expected two of {nodes} memory nodes"));
        } else if !(latency_us >= 0.0 && bandwidth_mb_s > 0.0) {
            let message = format!(
                "found latency {latency_us} and bandwidth {bandwidth_mb_s}, expected one from 0 and one above 0"
            );
            reader.flaw(number, 1, message);
        } else {
            (latency[from * nodes + to], bandwidth[from * nodes + to]) = (latency_us, bandwidth_mb_s);
        }
    }
    if reader.flaws.is_empty() {
        let (bandwidth, latency) = (NodeMatrix::new(nodes, bandwidth), NodeMatrix::new(nodes, latency));
        Ok(Bus { bandwidth, latency, ..Bus::default() })
    } else {
        Err(reader.damaged(bytes, path))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Fingerprint;

    fn links(nodes: usize, of: impl Fn(usize, usize) -> f64) -> NodeMatrix {
        let pairs = (0..nodes).flat_map(|from| (0..nodes).map(move |to| (from, to)));
        NodeMatrix::new(nodes, pairs.map(|(from, to)| if from == to { 0.0 } else { of(from, to) }).collect())
    }

    #[test]
    fn what_is_damaged_or_newer_is_told_and_kept_aside() -> Result<(), Box<dyn std::error::Error>> {
        let directory = tempfile::tempdir()?;
        let store = Store::new(&directory, Fingerprint::named("here"));
        assert_eq!(store.bus()?, None);
        let bandwidth = links(3, |from, to| 1000.0 * (1 + from + 3 * to) as f64);
        let bus = Bus { bandwidth, latency: links(3, |_, _| 0.25), ..Bus::default() };
        store.keep_bus(&bus)?;
        assert_eq!(store.bus()?.as_ref(), Some(&bus));
        let sound = fs::read_to_string(store.bus_path())?;
        let damaged = [
            (sound.replace("0.25", "0.75"), "the checksum is that of another text"),
            (sound.lines().take(3).map(|line| format!("{line}\n")).collect(), "the last line is missing"),
            (sound.replace("sched-bus", "sched-cart"), "found format `sched-cart` 1, expected `sched-bus` 1"),
            (sound.replace("\"nodes\":3", "\"nodes\":2"), "expected two of 2 memory nodes"),
            (sound.replace("\"nodes\":3", "\"nodes\":3000000000"), "found 3000000000 memory nodes"),
            (sound.replace(":1000.0", ":-1.0").replace(":4000.0", ":-1.0"), "expected one from 0 and one above 0"),
            ("{}".to_owned(), "expected the first line of stored links between memory nodes"),
        ];
        for (text, expected) in damaged {
            fs::write(store.bus_path(), &text)?;
            let reported = store.bus().expect_err("it is damaged").in_full();
            assert!(reported.contains(expected), "{reported}");
            let moved = store.keep_bus(&bus)?.expect("it is kept aside");
            assert_eq!(fs::read_to_string(moved.kept)?, text);
            assert_eq!(store.bus()?.as_ref(), Some(&bus));
        }
        fs::write(store.bus_path(), sound.replace("\"version\":1", "\"version\":2"))?;
        assert!(matches!(store.bus(), Err(ModelError::Newer { found: 2, known: 1, .. })));
        let moved = store.keep_bus(&bus)?.expect("it is kept aside");
        assert!(moved.kept.to_string_lossy().ends_with(".newer-1"), "{}", moved.kept.display());
        assert!(store.list()?.is_empty(), "it is no model");
        Ok(())
    }
}

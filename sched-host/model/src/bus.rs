//! The cost of transfers between memory nodes, in StarPU's terms.

use super::flaw::FoundFlaws;
use super::starpu::{Scan, Scientific};
use super::store::write_whole;
use super::{Flaw, ModelError};
use sched_text::count;
use std::fmt::Write;
use std::io;
use std::path::{Path, PathBuf};

/// Maximum number of memory nodes in a file; StarPU has 64 at most.
const MOST_NODES: usize = 1024;

/// The shape of a matrix, for messages.
const ALL: &str = "one for each memory node; the file may be cut";

/// The links of one machine.
///
/// Memory nodes are numbered as in StarPU: main memory first (one node in old files, one per NUMA node in newer ones),
/// then every CUDA device, then the OpenCL devices, and so on.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Bus {
    /// Bandwidth in bytes per microsecond (MB/s), from row to column.
    pub bandwidth: NodeMatrix,
    /// Latency in microseconds, from row to column.
    pub latency: NodeMatrix,
    /// Numbers of workers at the time of the measurement.
    pub config: BusConfig,
    /// For each device, the numbers of the NUMA nodes (in old files: of the cores), nearest first.
    pub affinity: Vec<Vec<u32>>,
}

impl Bus {
    /// Number of memory nodes.
    #[must_use]
    pub fn nodes(&self) -> usize {
        self.bandwidth.nodes().max(self.latency.nodes())
    }

    /// Number of main memories, which are the first nodes: one for each NUMA node that the configuration counts; 1 in
    /// old files.
    #[must_use]
    pub fn main_memories(&self) -> usize {
        let counted = self.config.lines.iter().find(|(_, says)| says.contains("NUMA"));
        counted.map_or(1, |(count, _)| (*count as usize).max(1))
    }

    /// The main memory that is nearest to a device; `device` counts all of them from 0.
    #[must_use]
    pub fn nearest_to(&self, device: usize) -> usize {
        let main = self.main_memories();
        // The lists of old files are of cores.
        let nearest = self.affinity.get(device).and_then(|nodes| nodes.first()).map_or(0, |node| *node as usize);
        if nearest < main { nearest } else { 0 }
    }

    /// Microseconds to transfer `bytes` from one node to another on an idle machine; 0 within a node, `None` if not
    /// measured.
    #[must_use]
    pub fn transfer(&self, from: usize, to: usize, bytes: u64) -> Option<f64> {
        if from == to {
            return Some(0.0);
        }
        let (latency, bandwidth) = (self.latency.get(from, to)?, self.bandwidth.get(from, to)?);
        (bandwidth > 0.0).then(|| latency + bytes as f64 / bandwidth)
    }

    /// Microseconds that StarPU's schedulers predict: as if each of the `devices` in use took its share of the link, in
    /// both directions.
    #[must_use]
    pub fn predicted_transfer(&self, from: usize, to: usize, bytes: u64, devices: u32) -> Option<f64> {
        if from == to {
            return Some(0.0);
        }
        let (latency, bandwidth) = (self.latency.get(from, to)?, self.bandwidth.get(from, to)?);
        (bandwidth > 0.0).then(|| latency + bytes as f64 / bandwidth * 2.0 * f64::from(devices))
    }
}

impl Bus {
    /// Paths of the files of the machine `host`; `directory` is the `bus` of a directory of measurements.
    #[must_use]
    pub fn paths(directory: &Path, host: &str) -> [PathBuf; 4] {
        ["bandwidth", "latency", "config", "affinity"].map(|what| directory.join(format!("{host}.{what}")))
    }

    /// Writes the files of the machine `host` into `directory`, the `bus` of a directory of measurements.
    ///
    /// # Errors
    /// If one cannot be written; the others may have been.
    pub fn write(&self, directory: &Path, host: &str) -> Result<(), ModelError> {
        let widest = self.affinity.iter().map(Vec::len).max().unwrap_or(0);
        let header: String = (0..widest).map(|node| format!("\tNUMA{node}")).collect();
        let mut affinity = format!("# GPU{header}\n");
        for (device, nodes) in self.affinity.iter().enumerate() {
            // Each kind of device is numbered from 0.
            let number = if device < self.config.cuda as usize { device } else { device - self.config.cuda as usize };
            let nodes: String = nodes.iter().map(|node| format!("\t{node}")).collect();
            let _ = writeln!(affinity, "{number}{nodes}");
        }
        let texts = [self.bandwidth.to_text(), self.latency.to_text(), self.config.to_text(), affinity];
        for (path, text) in Bus::paths(directory, host).iter().zip(texts) {
            write_whole(path, text.as_bytes())?;
        }
        Ok(())
    }
}

/// A number for each pair of memory nodes.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct NodeMatrix {
    nodes: usize,
    /// Row by row; NaN where nothing was measured.
    values: Vec<f64>,
}

impl NodeMatrix {
    /// Creates a matrix of `nodes` rows from its values, row by row, NaN where unknown.
    ///
    /// # Panics
    /// If there are not `nodes` × `nodes` values.
    #[must_use]
    pub fn new(nodes: usize, values: Vec<f64>) -> NodeMatrix {
        assert_eq!(values.len(), nodes * nodes, "one value for each pair of nodes");
        NodeMatrix { nodes, values }
    }

    /// Number of memory nodes.
    #[must_use]
    pub fn nodes(&self) -> usize {
        self.nodes
    }

    /// The number from one node to another, if known.
    #[must_use]
    pub fn get(&self, from: usize, to: usize) -> Option<f64> {
        let known = from < self.nodes && to < self.nodes;
        known.then(|| self.values[from * self.nodes + to]).filter(|value| !value.is_nan())
    }

    /// Reads a file of bandwidths or latencies.
    ///
    /// # Errors
    /// If it cannot be read, or contains a value that is not such a number.
    pub fn read(path: &Path) -> Result<NodeMatrix, ModelError> {
        read(path, NodeMatrix::parse)
    }

    /// Reads a file of bandwidths: between two nodes they are more than 0.
    ///
    /// # Errors
    /// As [`read`](Self::read), and for a bandwidth of 0.
    pub fn read_bandwidths(path: &Path) -> Result<NodeMatrix, ModelError> {
        read(path, |text| NodeMatrix::parse_some(text, true))
    }

    /// Parses a text: one row for each source node. Rows and columns at the end that contain only NaN are nodes that
    /// did not exist.
    ///
    /// # Errors
    /// Every value that is not a number, or is negative; every node without a row or a column of its own.
    pub fn parse(text: &str) -> Result<NodeMatrix, Vec<Flaw>> {
        NodeMatrix::parse_some(text, false)
    }

    /// Parses a text of bandwidths, or of other numbers.
    fn parse_some(text: &str, bandwidths: bool) -> Result<NodeMatrix, Vec<Flaw>> {
        let mut scan = Scan::new(text);
        let (mut rows, mut lines, mut flaws) = (Vec::new(), Vec::new(), FoundFlaws::default());
        while let Some(line) = scan.line() {
            let mut row: Vec<f64> = Vec::new();
            for (to, field) in line.fields().into_iter().enumerate() {
                match field.parse::<f64>("a number, or nan") {
                    Ok(value) if value < 0.0 || value == f64::INFINITY => {
                        flaws.push(field.flaw("a number from 0, or nan"));
                    }
                    // Also where it is so small that the time of a byte is infinite.
                    Ok(value) if bandwidths && rows.len() != to && value.recip().is_infinite() => {
                        flaws.push(field.flaw("a bandwidth of more than 0, or nan where none was measured"));
                        row.push(value);
                    }
                    Ok(value) => row.push(value),
                    Err(flaw) => flaws.push(flaw),
                }
            }
            rows.push(row);
            lines.push(line);
        }
        if !flaws.is_empty() {
            return Err(flaws.into_flaws());
        }
        if rows.is_empty() {
            return Err(vec![scan.flaw("the file has no rows, expected one for each memory node".to_owned())]);
        }
        let known = |row: &Vec<f64>| row.iter().rposition(|value| !value.is_nan()).map_or(0, |last| last + 1);
        let height = rows.iter().rposition(|row| known(row) > 0).map_or(0, |last| last + 1);
        let nodes = rows.iter().map(known).max().unwrap_or(0).max(height);
        if nodes > MOST_NODES {
            return Err(vec![scan.flaw(format!("the file has {nodes} memory nodes, expected at most {MOST_NODES}"))]);
        }
        // A node that others can be reached from is one that can be reached.
        for (row, line) in rows.iter().zip(&lines).take(nodes).filter(|(row, _)| row.len() < nodes) {
            flaws.push(line.flaw(format!("found {}, expected {nodes}: {ALL}", count(row.len(), "column"))));
        }
        if rows.len() < nodes {
            let found = count(rows.len(), "row");
            flaws.push(scan.flaw(format!("the file ends after {found}, expected {nodes}: {ALL}")));
        }
        if !flaws.is_empty() {
            return Err(flaws.into_flaws());
        }
        let value = |from: usize, to: usize| rows.get(from).and_then(|row| row.get(to)).copied().unwrap_or(f64::NAN);
        let values = (0..nodes * nodes).map(|index| value(index / nodes, index % nodes)).collect();
        Ok(NodeMatrix { nodes, values })
    }

    /// The text of the file.
    #[must_use]
    pub fn to_text(&self) -> String {
        let mut out = String::from("#");
        for to in 0..self.nodes {
            let _ = write!(out, " to {to}\t\t");
        }
        out.push('\n');
        for row in self.values.chunks(self.nodes.max(1)) {
            let row: Vec<String> = row.iter().map(|value| Scientific(*value).to_string()).collect();
            let _ = writeln!(out, "{}", row.join("\t"));
        }
        out
    }
}

/// The numbers of workers of a machine.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct BusConfig {
    /// CPU cores.
    pub cpus: u32,
    /// CUDA devices.
    pub cuda: u32,
    /// OpenCL devices.
    pub opencl: u32,
    /// Every line: its number, and the text of its comment.
    pub lines: Vec<(u32, String)>,
}

impl BusConfig {
    /// Reads a file.
    ///
    /// # Errors
    /// If it cannot be read, or a line does not start with a number.
    pub fn read(path: &Path) -> Result<BusConfig, ModelError> {
        read(path, BusConfig::parse)
    }

    /// Parses a text: each line has a number, and a comment that names it. Lines without a comment count as CPUs, CUDA
    /// devices and OpenCL devices, in this order.
    ///
    /// # Errors
    /// Every line that does not start with a number.
    pub fn parse(text: &str) -> Result<BusConfig, Vec<Flaw>> {
        let mut scan = Scan::new(text);
        let (mut config, mut flaws) = (BusConfig::default(), FoundFlaws::default());
        while let Some(line) = scan.line() {
            let fields = line.fields();
            match fields[0].parse("a number of devices") {
                Ok(count) => {
                    let words: Vec<&str> = fields[1..].iter().map(|field| field.text).collect();
                    config.lines.push((count, words.join(" ").trim_start_matches(['#', ' ']).to_owned()));
                }
                Err(flaw) => flaws.push(flaw),
            }
        }
        if config.lines.is_empty() && flaws.is_empty() {
            flaws.push(scan.flaw("the file has no lines, expected the number of CPUs".to_owned()));
        }
        if !flaws.is_empty() {
            return Err(flaws.into_flaws());
        }
        let find = |place: usize, name: &str| {
            let named = config.lines.iter().find(|(_, says)| says.contains(name));
            let by_place = config.lines.get(place).filter(|(_, says)| says.is_empty());
            named.or(by_place).map_or(0, |(count, _)| *count)
        };
        (config.cpus, config.cuda, config.opencl) = (find(0, "CPU"), find(1, "CUDA"), find(2, "OpenCL"));
        Ok(config)
    }
}

impl BusConfig {
    /// The text of the file.
    #[must_use]
    pub fn to_text(&self) -> String {
        let lines = self.lines.iter().map(|(count, says)| format!("{count} # {says}\n"));
        std::iter::once("# Current configuration\n".to_owned()).chain(lines).collect()
    }
}

/// Reads a file of affinities.
pub(crate) fn affinity(path: &Path) -> Result<Vec<Vec<u32>>, ModelError> {
    read(path, |text| {
        let mut scan = Scan::new(text);
        let (mut rows, mut flaws) = (Vec::new(), FoundFlaws::default());
        while let Some(line) = scan.line() {
            let mut row = Vec::new();
            for field in line.fields() {
                match field.parse::<u32>("a number of a device or a node") {
                    Ok(number) => row.push(number),
                    Err(flaw) => flaws.push(flaw),
                }
            }
            // The first field is the number of the device, which restarts for each kind.
            rows.push(row.split_off(1.min(row.len())));
        }
        if flaws.is_empty() { Ok(rows) } else { Err(flaws.into_flaws()) }
    })
}

/// Reads a file of StarPU's.
pub(crate) fn read<T>(path: &Path, parse: impl Fn(&str) -> Result<T, Vec<Flaw>>) -> Result<T, ModelError> {
    let bytes = bytes(path).map_err(|error| ModelError::io(path, "read", error))?;
    let text = String::from_utf8_lossy(&bytes);
    let text = text.strip_prefix('\u{feff}').unwrap_or(&text);
    parse(text).map_err(|flaws| ModelError::damaged(path, text, flaws))
}

/// The bytes of a file. Nobody may write to a pipe, and the reading of one would not end.
fn bytes(path: &Path) -> io::Result<Vec<u8>> {
    let kind = std::fs::metadata(path)?.file_type();
    match kind.is_file() || kind.is_dir() {
        true => std::fs::read(path),
        false => Err(io::Error::new(io::ErrorKind::InvalidInput, "it is a pipe or a device, expected a file")),
    }
}

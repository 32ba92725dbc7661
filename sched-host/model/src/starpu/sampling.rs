//! A directory of StarPU's measurements.

use super::codelet::CodeletFile;
use crate::ModelError;
use crate::bus::{self, Bus, BusConfig, NodeMatrix};
use std::collections::{BTreeMap, BTreeSet};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// All StarPU measurements of one machine.
#[derive(Debug)]
pub struct Sampling {
    /// The machine's name, as in the file names.
    pub host: String,
    /// The models, by the codelet's name without the machine's.
    pub codelets: BTreeMap<String, CodeletFile>,
    /// The links, if both bandwidths and latencies are present.
    pub bus: Option<Bus>,
    /// Files that could not be read. All others were.
    pub problems: Vec<ModelError>,
}

/// Subdirectory of the codelets' models.
const CODELETS: &str = "codelets/45";

impl Sampling {
    /// Reads every file of the machine `host` below `directory`.
    ///
    /// # Errors
    /// If the directory contains nothing of that machine. Damaged files are reported as [problems](Self::problems) of
    /// the result.
    pub fn load(directory: impl AsRef<Path>, host: &str) -> Result<Sampling, ModelError> {
        Sampling::load_named(directory, host, &[])
    }

    /// Reads every file of the machine `host` below `directory`, and the models called `names` that are in no file of a
    /// machine: as in StarPU, a name with a dot is the name of its file. Without being named, it would be taken for a
    /// model of another machine.
    ///
    /// # Errors
    /// As [`load`](Self::load). Names without a file are no error.
    pub fn load_named(directory: impl AsRef<Path>, host: &str, names: &[String]) -> Result<Sampling, ModelError> {
        let directory = directory.as_ref();
        let mut sampling =
            Sampling { host: host.to_owned(), codelets: BTreeMap::new(), bus: None, problems: Vec::new() };
        for path in entries(&directory.join(CODELETS), &mut sampling.problems) {
            let name = path.file_name().and_then(|name| name.to_str());
            let Some(symbol) = name.and_then(|name| name.strip_suffix(host)?.strip_suffix('.')) else { continue };
            // The machine's name is not appended to a name with a dot; so this is of a machine with a longer name.
            if !symbol.contains('.') {
                sampling.load_codelet(symbol, &path);
            }
        }
        for name in names.iter().filter(|name| name.contains('.')) {
            // Names come from the user; files in other directories are not models.
            let is_file_name = Path::new(name).file_name().is_some_and(|file| file == name.as_str());
            let path = Sampling::codelet_path(directory, name, host);
            let is_missing =
                || std::fs::symlink_metadata(&path).is_err_and(|error| error.kind() == ErrorKind::NotFound);
            if is_file_name && !sampling.codelets.contains_key(name) && !is_missing() {
                sampling.load_codelet(name, &path);
            }
        }
        sampling.load_bus(&directory.join("bus"));
        if sampling.codelets.is_empty() && sampling.bus.is_none() && sampling.problems.is_empty() {
            let directory = directory.to_owned();
            let hosts = hosts(&directory);
            return Err(ModelError::NoSampling { directory, host: host.to_owned(), hosts });
        }
        Ok(sampling)
    }

    fn load_codelet(&mut self, symbol: &str, path: &Path) {
        match CodeletFile::read(path) {
            Ok(file) => drop(self.codelets.insert(symbol.to_owned(), file)),
            Err(problem) => self.problems.push(problem),
        }
    }

    fn load_bus(&mut self, directory: &Path) {
        let path = |what: &str| directory.join(format!("{}.{what}", self.host));
        let mut problems = Vec::new();
        let bandwidth = optional(&path("bandwidth"), NodeMatrix::read_bandwidths, &mut problems);
        let latency = optional(&path("latency"), NodeMatrix::read, &mut problems);
        let config = optional(&path("config"), BusConfig::read, &mut problems).unwrap_or_default();
        let affinity = optional(&path("affinity"), bus::affinity, &mut problems).unwrap_or_default();
        if let (Some(bandwidth), Some(latency)) = (bandwidth, latency) {
            self.bus = Some(Bus { bandwidth, latency, config, affinity });
        }
        self.problems.append(&mut problems);
    }

    /// The path of a codelet's model below `directory`. As in StarPU, the machine's name is not appended to a name with
    /// a dot.
    #[must_use]
    pub fn codelet_path(directory: &Path, symbol: &str, host: &str) -> PathBuf {
        let name = if symbol.contains('.') { symbol.to_owned() } else { format!("{symbol}.{host}") };
        directory.join(CODELETS).join(name)
    }
}

fn optional<T>(
    path: &Path,
    read: impl Fn(&Path) -> Result<T, ModelError>,
    problems: &mut Vec<ModelError>,
) -> Option<T> {
    match read(path) {
        // Other errors, such as that of a link to itself, do not mean that there is no such file.
        Err(ModelError::Io { source, .. }) if source.kind() == ErrorKind::NotFound => None,
        read => read.map_err(|problem| problems.push(problem)).ok(),
    }
}

/// What a directory contains, files or not. That it cannot be read is a problem, and that there is none is not.
fn entries(directory: &Path, problems: &mut Vec<ModelError>) -> Vec<PathBuf> {
    let entries = match std::fs::read_dir(directory) {
        Ok(entries) => entries,
        Err(error) if error.kind() == ErrorKind::NotFound => return Vec::new(),
        Err(error) => {
            problems.push(ModelError::io(directory, "read", error));
            return Vec::new();
        }
    };
    let mut paths: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    paths.sort();
    paths
}

fn files(directory: &Path) -> Vec<PathBuf> {
    entries(directory, &mut Vec::new()).into_iter().filter(|path| path.is_file()).collect()
}

/// The machines that a directory contains files of. Their names may have dots, and those of codelets before them do
/// not.
fn hosts(directory: &Path) -> Vec<String> {
    let names = |path: PathBuf| path.file_name().and_then(|name| name.to_str()).map(str::to_owned);
    let mut hosts = BTreeSet::new();
    for name in files(&directory.join(CODELETS)).into_iter().filter_map(names) {
        hosts.extend(name.split_once('.').map(|(_, host)| host.to_owned()));
    }
    for name in files(&directory.join("bus")).into_iter().filter_map(names) {
        let host = [".bandwidth", ".latency", ".config", ".affinity"].iter().find_map(|what| name.strip_suffix(what));
        hosts.extend(host.map(str::to_owned));
    }
    hosts.into_iter().collect()
}

/// The directories in which StarPU looks for its measurements, in order, given the environment:
/// `STARPU_PERF_MODEL_DIR`, the entries of `STARPU_PERF_MODEL_PATH`, and `.starpu/sampling` in `STARPU_HOME` or `HOME`.
#[must_use]
pub fn directories(env: impl Fn(&str) -> Option<String>) -> Vec<PathBuf> {
    let mut found: Vec<PathBuf> = env("STARPU_PERF_MODEL_DIR").map(PathBuf::from).into_iter().collect();
    found.extend(env("STARPU_PERF_MODEL_PATH").iter().flat_map(std::env::split_paths));
    let home = env("STARPU_HOME").or_else(|| env("HOME"));
    found.extend(home.map(|home| Path::new(&home).join(".starpu/sampling")));
    found
}

/// The machine's name in StarPU's file names, given the environment: `STARPU_HOSTNAME`, or the system's host name
/// without its domain.
#[must_use]
pub fn host_name(env: impl Fn(&str) -> Option<String>) -> String {
    let system = || std::fs::read_to_string("/proc/sys/kernel/hostname").ok();
    env("STARPU_HOSTNAME").or_else(|| Some(without_domain(&system()?))).unwrap_or_else(|| "localhost".to_owned())
}

/// `node7` of `node7.cluster.org`.
pub(super) fn without_domain(name: &str) -> String {
    name.trim().split('.').next().unwrap_or_default().to_owned()
}

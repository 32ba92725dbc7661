//! The sources of topologies, and reading from them.

use std::fmt;
use std::path::{Path, PathBuf};

use hwlocality::cpu::binding::CpuBindingFlags;
use hwlocality::topology::builder::{BuildFlags, TopologyBuilder};
use miette::NamedSource;
use sched_text::excerpt::printable;
use sched_text::{self as text, Finding, SourceText};
use serde::Serialize;

use super::error::TopologyError;
use super::object::Object;
use super::{Topology, convert, synthetic, xml};

/// The source of a [`Topology`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Source {
    /// The machine that this process runs on.
    ThisMachine,
    /// A description in hwloc's synthetic language.
    Synthetic {
        /// The description.
        description: String,
    },
    /// A number of cores.
    Flat {
        /// The number.
        cores: u32,
    },
    /// A file that `lstopo FILE.xml` (or hwloc's library) wrote on some machine.
    Xml {
        /// The file.
        #[serde(serialize_with = "lossy")]
        path: PathBuf,
    },
}

/// Serialises a path; one that is not Unicode must not make the whole document fail.
fn lossy<S: serde::Serializer>(path: &Path, to: S) -> Result<S::Ok, S::Error> {
    to.collect_str(&path.display())
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::ThisMachine => f.write_str("this machine"),
            Self::Synthetic { description } => write!(f, "synthetic topology {description:?}"),
            Self::Flat { cores } => write!(f, "{cores} cores"),
            Self::Xml { path } => write!(f, "topology file {}", path.display()),
        }
    }
}

impl Topology {
    /// Discovers the machine that this process runs on, in about a millisecond.
    ///
    /// # Errors
    ///
    /// [`TopologyError::Discovery`] if hwloc fails.
    pub fn this_machine() -> Result<Self, TopologyError> {
        let hwloc = build(TopologyBuilder::new()).map_err(|why| TopologyError::Discovery { why })?;
        Ok(Self::new(Source::ThisMachine, hwloc))
    }

    /// Describes a machine, which need not exist, in [hwloc's synthetic language][language]: the levels from the
    /// outermost to the PUs, each with its count *in each object of the previous level*.
    ///
    /// ```
    /// # use sched_machine::topology::{Level, Topology};
    /// let machine = Topology::from_synthetic("node:2 l3:1 core:8 pu:2")?;
    /// assert_eq!(machine.level(Level::Numa).len(), 2);
    /// assert_eq!(machine.level(Level::Core).len(), 16);
    /// assert_eq!(machine.pus().len(), 32);
    /// # Ok::<(), sched_machine::topology::TopologyError>(())
    /// ```
    ///
    /// [language]: https://hwloc.readthedocs.io/en/stable/synthetic.html
    ///
    /// # Errors
    ///
    /// [`TopologyError::Synthetic`] for a description that hwloc does not understand, and for one with more than 16384
    /// PUs (probably a typo, for which hwloc would use gigabytes).
    pub fn from_synthetic(description: &str) -> Result<Self, TopologyError> {
        let refused = |problems| TopologyError::Synthetic { description: description.to_owned(), problems };
        if let Some(problem) = synthetic::too_large(description) {
            return Err(refused(vec![problem]));
        }
        let grouped = synthetic::grouped(description);
        let hwloc = TopologyBuilder::new()
            .from_synthetic(&grouped.description)
            .map_err(|error| error.to_string())
            .and_then(build)
            .map_err(|why| refused(synthetic::diagnose(description, &why)))?;
        let root = convert::tree(&hwloc, &grouped.added);
        Ok(Self::of(Source::Synthetic { description: description.to_owned() }, hwloc, root))
    }

    /// Reads the description of a machine from an XML file, as written by `lstopo machine.xml`.
    ///
    /// # Errors
    ///
    /// [`TopologyError::UnreadableXml`] if the file is missing or not text; [`TopologyError::BadXml`] if it is not a
    /// topology that the installed hwloc understands.
    pub fn from_xml_file(path: &Path) -> Result<Self, TopologyError> {
        // Read the file here and not in hwloc: the crate panics on a file that cannot be opened.
        let written =
            text::read(path).map_err(|why| TopologyError::UnreadableXml { path: path.to_owned(), why: why.into() })?;
        let hwloc = xml::checked(&written).and_then(|xml| {
            let builder = TopologyBuilder::new().from_xml(&xml).map_err(|error| error.to_string());
            builder.and_then(build).map_err(|why| Box::new(Finding::error(why)))
        });
        let hwloc = hwloc.map_err(|why| {
            let source = SourceText::new(NamedSource::new(text::file_name(path), printable(written)));
            TopologyError::BadXml { path: path.to_owned(), why: Box::new(why.in_source(Some(&source))) }
        })?;
        Ok(Self::new(Source::Xml { path: path.to_owned() }, hwloc))
    }
}

/// Keeps PUs that a cgroup forbids, so that users see their whole machine and which part of it they may use.
fn build(builder: TopologyBuilder) -> Result<hwlocality::Topology, String> {
    builder
        .with_flags(BuildFlags::INCLUDE_DISALLOWED)
        .map_err(|error| error.to_string())?
        .build()
        .map_err(|error| error.to_string())
}

/// The PUs of `root` that this process may use.
pub(super) fn allowed_pus(hwloc: &hwlocality::Topology, root: &Object) -> Vec<u32> {
    let permitted = hwloc.allowed_cpuset();
    // The mask of the process, not of the calling thread, which may itself be a bound worker. If the system does not
    // know the mask, nothing is restricted.
    let mask = if hwloc.is_this_system() { hwloc.cpu_binding(CpuBindingFlags::PROCESS).ok() } else { None };
    let usable = |pu: u32| {
        let Ok(index) = usize::try_from(pu) else {
            return false;
        };
        permitted.is_set(index) && mask.as_ref().is_none_or(|mask| mask.is_set(index))
    };
    root.pus.iter().copied().filter(|&pu| usable(pu)).collect()
}

//! Identifies the machine that a model was measured on.

use super::crc32;
use sched_machine::topology::{Level, Topology};
use std::fmt;

/// Distinguishes machines with different task durations: by the processor's name and hwloc's topology, without the size
/// of the memory and the machine's name. Identical nodes of a cluster thus share their models.
///
/// Example: `intel-xeon-gold-6148-40c80t-3f2a91c0`, which gives the processor, cores and hardware threads, and a
/// checksum of the whole description.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Fingerprint(String);

impl Fingerprint {
    /// The fingerprint of a machine with this topology and processor.
    #[must_use]
    pub fn of(topology: &Topology, processor: &str) -> Fingerprint {
        let mut described = processor.to_owned();
        for object in topology.root().walk() {
            let is_cache = matches!(object.level, Level::L1 | Level::L2 | Level::L3 | Level::L4 | Level::L5);
            let size = object.memory_bytes.filter(|_| is_cache).unwrap_or(0);
            described.push_str(&format!(";{} {} {size}", object.level, object.pus.len()));
        }
        let (cores, threads) = (topology.level(Level::Core).len(), topology.pus().len());
        let sum = crc32(described.as_bytes(), 0);
        Fingerprint(format!("{}-{cores}c{threads}t-{sum:08x}", slug(processor)))
    }

    /// The fingerprint of this machine, whose topology is given.
    #[must_use]
    pub fn of_this_machine(topology: &Topology) -> Fingerprint {
        let info = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
        Fingerprint::of(topology, processor(&info))
    }

    /// A fingerprint with this text, such as one read from a file.
    #[must_use]
    pub fn named(name: &str) -> Fingerprint {
        Fingerprint(name.to_owned())
    }

    /// Its text, which is a valid directory name.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The processor's name in the text of `/proc/cpuinfo`.
fn processor(info: &str) -> &str {
    let field = |name: &str| {
        let lines = info.lines().filter_map(|line| line.split_once(':'));
        lines.map(|(key, value)| (key.trim(), value.trim())).find(|(key, _)| *key == name).map(|(_, value)| value)
    };
    field("model name").or_else(|| field("cpu")).or_else(|| field("CPU part")).unwrap_or(std::env::consts::ARCH)
}

/// The letters and digits of `name`, separated by single dashes.
fn slug(name: &str) -> String {
    let name = name.replace("(R)", " ").replace("(TM)", " ").replace("(tm)", " ");
    let words = name.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| !word.is_empty());
    let mut slug = String::new();
    for word in words.filter(|word| !["CPU", "Processor"].contains(word)) {
        if slug.len() + word.len() > 40 {
            break;
        }
        if !slug.is_empty() {
            slug.push('-');
        }
        slug.push_str(&word.to_ascii_lowercase());
    }
    if slug.is_empty() { "machine".to_owned() } else { slug }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sched_machine::topology::TopologyError;

    #[test]
    fn it_tells_processors_and_shapes_apart_and_nothing_else() -> Result<(), TopologyError> {
        let machine = Topology::from_synthetic("package:2 core:4 pu:2")?;
        let info = "processor\t: 0\nmodel name\t: Intel(R) Xeon(R) Gold 6148 CPU @ 2.40GHz\n";
        let one = Fingerprint::of(&machine, processor(info));
        assert!(one.as_str().starts_with("intel-xeon-gold-6148-2-40ghz-8c16t-"), "{one}");
        assert_eq!(one, Fingerprint::of(&machine, processor(info)));
        assert_ne!(one, Fingerprint::of(&machine, "another processor"));
        assert_ne!(one, Fingerprint::of(&Topology::from_synthetic("package:4 core:2 pu:2")?, processor(info)));
        assert_eq!(processor(""), std::env::consts::ARCH);
        assert_eq!(slug("///"), "machine");
        Ok(())
    }
}

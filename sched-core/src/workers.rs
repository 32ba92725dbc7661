//! Workers, their architectures, and sets of them.

use std::fmt;

/// A worker: one processing unit that executes tasks, numbered from 0 in the runtime.
///
/// A *combined worker* is several workers that execute one parallel task together. It has a number of its own, above
/// those of all simple workers.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct WorkerId(pub u32);

impl WorkerId {
    /// Its number as an index of lists by worker.
    #[inline]
    #[must_use]
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

impl fmt::Display for WorkerId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "worker {}", self.0)
    }
}

/// A memory node: memory that its workers access without a transfer.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct MemoryNode(pub u32);

impl MemoryNode {
    /// Its number as an index of lists by memory node.
    #[inline]
    #[must_use]
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// The architecture of a worker, a number below 32.
///
/// A task lists the architectures that it has an implementation for in an [`ArchSet`].
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Arch(u8);

impl Arch {
    /// A core of a general-purpose processor.
    pub const CPU: Arch = Arch(0);
    /// An NVIDIA device programmed with CUDA.
    pub const CUDA: Arch = Arch(1);
    /// A device programmed with OpenCL.
    pub const OPENCL: Arch = Arch(2);
    /// An AMD device programmed with HIP.
    pub const HIP: Arch = Arch(3);
    /// A device programmed with SYCL.
    pub const SYCL: Arch = Arch(4);
    /// Another machine, reached through MPI.
    pub const MPI: Arch = Arch(5);
    /// A reconfigurable device (FPGA).
    pub const FPGA: Arch = Arch(6);

    const NAMES: [&'static str; 7] = ["cpu", "cuda", "opencl", "hip", "sycl", "mpi", "fpga"];

    /// The architecture with this number; `None` if it is 32 or more.
    #[must_use]
    pub const fn new(number: u8) -> Option<Arch> {
        if number < 32 { Some(Arch(number)) } else { None }
    }

    /// Its number.
    #[must_use]
    pub const fn number(self) -> u8 {
        self.0
    }

    /// Speed of a whole worker of this architecture relative to one CPU core: 13.33 for CUDA, HIP and SYCL devices,
    /// 12.22 for OpenCL devices, 0.5 for an FPGA, 1 for all others. These are StarPU's figures. They are rough, and
    /// used only where no performance model is available: for random choices and for weighing loads.
    ///
    /// A combined worker is as fast as all its members together.
    #[must_use]
    pub const fn relative_speedup(self) -> f64 {
        match self {
            Arch::CUDA | Arch::HIP | Arch::SYCL => 13.33,
            Arch::OPENCL => 12.22,
            Arch::FPGA => 0.5,
            _ => 1.0,
        }
    }

    /// The architecture of this name, as in policies and platform files: `cpu`, `cuda`, `opencl`, `hip`, `sycl`, `mpi`,
    /// `fpga`, or `arch7` to `arch31`.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Arch> {
        if let Some(known) = Self::NAMES.iter().position(|known| *known == name) {
            return Some(Arch(known as u8));
        }
        let number = name.strip_prefix("arch")?.parse().ok()?;
        Arch::new(number).filter(|arch| arch.0 as usize >= Self::NAMES.len())
    }
}

impl fmt::Display for Arch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match Self::NAMES.get(self.0 as usize) {
            Some(name) => f.write_str(name),
            None => write!(f, "arch{}", self.0),
        }
    }
}

/// A set of architectures.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct ArchSet(u32);

impl ArchSet {
    /// No architecture.
    pub const EMPTY: ArchSet = ArchSet(0);

    /// The set whose bit *n* stands for architecture *n*.
    #[must_use]
    pub const fn from_bits(bits: u32) -> ArchSet {
        ArchSet(bits)
    }

    /// The set as bits: bit *n* stands for architecture *n*.
    #[must_use]
    pub const fn bits(self) -> u32 {
        self.0
    }

    /// The set with `arch` added.
    #[must_use]
    pub const fn with(self, arch: Arch) -> ArchSet {
        ArchSet(self.0 | 1 << arch.0)
    }

    /// Whether `arch` is a member.
    #[must_use]
    pub const fn contains(self, arch: Arch) -> bool {
        self.0 & (1 << arch.0) != 0
    }

    /// Whether the two sets share an architecture.
    #[must_use]
    pub const fn intersects(self, other: ArchSet) -> bool {
        self.0 & other.0 != 0
    }

    /// Whether there is no member.
    #[must_use]
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// The members, by number.
    pub fn iter(self) -> impl Iterator<Item = Arch> {
        (0..32).map(Arch).filter(move |arch| self.contains(*arch))
    }
}

impl FromIterator<Arch> for ArchSet {
    fn from_iter<I: IntoIterator<Item = Arch>>(archs: I) -> ArchSet {
        archs.into_iter().fold(ArchSet::EMPTY, ArchSet::with)
    }
}

impl fmt::Debug for ArchSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.iter().map(|arch| arch.to_string())).finish()
    }
}

/// A set of workers, of any number.
///
/// ```
/// use sched_core::{WorkerId, WorkerSet};
/// let mut set: WorkerSet = [WorkerId(3), WorkerId(150)].into_iter().collect();
/// assert!(set.contains(WorkerId(150)) && set.len() == 2);
/// set.remove(WorkerId(3));
/// assert_eq!(set.iter().collect::<Vec<_>>(), [WorkerId(150)]);
/// ```
#[derive(Clone, Default)]
pub struct WorkerSet {
    /// Bit *n* of word *m* stands for worker 64·m + n.
    words: Vec<u64>,
}

impl WorkerSet {
    /// The empty set.
    #[must_use]
    pub const fn new() -> WorkerSet {
        WorkerSet { words: Vec::new() }
    }

    /// The set of workers 0 to `count` − 1.
    #[must_use]
    pub fn first(count: u32) -> WorkerSet {
        (0..count).map(WorkerId).collect()
    }

    /// The set as words: bit *n* of word *m* stands for worker 64·m + n.
    #[must_use]
    pub fn words(&self) -> &[u64] {
        &self.words
    }

    /// Builds a set from its [`words`](Self::words).
    #[must_use]
    pub fn from_words(words: &[u64]) -> WorkerSet {
        WorkerSet { words: words.to_vec() }
    }

    /// Adds `worker`. Returns whether it was new.
    pub fn insert(&mut self, worker: WorkerId) -> bool {
        let (word, bit) = place(worker);
        if word >= self.words.len() {
            self.words.resize(word + 1, 0);
        }
        let new = self.words[word] & bit == 0;
        self.words[word] |= bit;
        new
    }

    /// Removes `worker`. Returns whether it was a member.
    pub fn remove(&mut self, worker: WorkerId) -> bool {
        let (word, bit) = place(worker);
        let Some(word) = self.words.get_mut(word) else { return false };
        let was = *word & bit != 0;
        *word &= !bit;
        was
    }

    /// Whether `worker` is a member.
    #[must_use]
    pub fn contains(&self, worker: WorkerId) -> bool {
        let (word, bit) = place(worker);
        self.words.get(word).is_some_and(|word| word & bit != 0)
    }

    /// Number of members.
    #[must_use]
    pub fn len(&self) -> usize {
        self.words.iter().map(|word| word.count_ones() as usize).sum()
    }

    /// Whether there is no member.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.words.iter().all(|word| *word == 0)
    }

    /// The members, in order.
    pub fn iter(&self) -> impl Iterator<Item = WorkerId> {
        members(&self.words)
    }

    /// Adds every member of `other`.
    pub fn union_with(&mut self, other: &WorkerSet) {
        if self.words.len() < other.words.len() {
            self.words.resize(other.words.len(), 0);
        }
        for (mine, theirs) in self.words.iter_mut().zip(&other.words) {
            *mine |= theirs;
        }
    }

    /// Keeps only members of `other`.
    pub fn intersect_with(&mut self, other: &WorkerSet) {
        for (index, mine) in self.words.iter_mut().enumerate() {
            *mine &= other.words.get(index).copied().unwrap_or(0);
        }
    }

    /// Whether every member is also in `other`.
    #[must_use]
    pub fn is_subset(&self, other: &WorkerSet) -> bool {
        let of_other = other.words.iter().copied().chain(std::iter::repeat(0));
        self.words.iter().zip(of_other).all(|(mine, theirs)| mine & !theirs == 0)
    }
}

/// The members of a set given as [words](WorkerSet::words), in order.
pub(crate) fn members(words: &[u64]) -> impl Iterator<Item = WorkerId> {
    words.iter().enumerate().flat_map(|(index, word)| {
        let mut rest = *word;
        std::iter::from_fn(move || {
            let bit = (rest != 0).then(|| rest.trailing_zeros())?;
            rest &= rest - 1;
            Some(WorkerId(index as u32 * 64 + bit))
        })
    })
}

fn place(worker: WorkerId) -> (usize, u64) {
    ((worker.0 / 64) as usize, 1 << (worker.0 % 64))
}

impl PartialEq for WorkerSet {
    fn eq(&self, other: &WorkerSet) -> bool {
        // Trailing empty words carry no member.
        let (short, long) = if self.words.len() <= other.words.len() { (self, other) } else { (other, self) };
        long.words[..short.words.len()] == short.words[..]
            && long.words[short.words.len()..].iter().all(|word| *word == 0)
    }
}

impl Eq for WorkerSet {}

impl FromIterator<WorkerId> for WorkerSet {
    fn from_iter<I: IntoIterator<Item = WorkerId>>(workers: I) -> WorkerSet {
        let mut set = WorkerSet::new();
        workers.into_iter().for_each(|worker| {
            set.insert(worker);
        });
        set
    }
}

impl fmt::Debug for WorkerSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.iter().map(|worker| worker.0)).finish()
    }
}

#[cfg(test)]
mod tests;

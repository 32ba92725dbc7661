//! The workers that may execute a task, as an application or a user names them.

use sched_core::{Arch, ArchSet, WorkerId, WorkerSet};
use sched_text::excerpt::quoted_word;
use sched_text::ranges;
use std::fmt;
use std::str::FromStr;

/// Places where a task may run: architectures, workers, or both. A worker may execute the task if it has one of the
/// architectures or is one of the workers (StarPU's `where` and `execute_on_a_specific_worker`).
///
/// As text, architectures and numbers or ranges of workers are joined by `+`: `cuda`, `cpu+cuda`, `0-3+8`, `cuda+0`.
///
/// ```
/// use sched_core::{Arch, WorkerId};
/// use sched_graph::Where;
///
/// let places: Where = "cuda+0-1".parse()?;
/// assert!(places.allows(WorkerId(1), Arch::CPU) && places.allows(WorkerId(9), Arch::CUDA));
/// assert!(!places.allows(WorkerId(2), Arch::CPU));
/// assert_eq!(places, Where::arch(Arch::CUDA).or_workers([0, 1]));
/// # Ok::<(), String>(())
/// ```
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Where {
    archs: ArchSet,
    workers: WorkerSet,
}

impl Where {
    /// Largest number of a worker in a text.
    const LARGEST: u32 = 0xffff;

    /// The workers of one architecture.
    #[must_use]
    pub fn arch(arch: Arch) -> Where {
        Where { archs: ArchSet::EMPTY.with(arch), workers: WorkerSet::new() }
    }

    /// One worker.
    #[must_use]
    pub fn worker(worker: u32) -> Where {
        Where::workers([worker])
    }

    /// These workers.
    #[must_use]
    pub fn workers(workers: impl IntoIterator<Item = u32>) -> Where {
        Where { archs: ArchSet::EMPTY, workers: workers.into_iter().map(WorkerId).collect() }
    }

    /// The workers of another architecture as well.
    #[must_use]
    pub fn or_arch(mut self, arch: Arch) -> Where {
        self.archs = self.archs.with(arch);
        self
    }

    /// These workers as well.
    #[must_use]
    pub fn or_workers(mut self, workers: impl IntoIterator<Item = u32>) -> Where {
        self.workers.union_with(&workers.into_iter().map(WorkerId).collect());
        self
    }

    /// Whether a worker of this architecture is one of these places.
    #[must_use]
    pub fn allows(&self, worker: WorkerId, arch: Arch) -> bool {
        self.archs.contains(arch) || self.workers.contains(worker)
    }

    /// The architectures, if no worker is named: then they say all.
    #[must_use]
    pub fn only_archs(&self) -> Option<ArchSet> {
        self.workers.is_empty().then_some(self.archs)
    }

    /// What remains of the architectures `archs` of a task within all of `places`: the architectures, and the workers
    /// among `machine` if some place names workers. `None` if no worker remains.
    pub fn remaining<'w>(
        places: impl Iterator<Item = &'w Where> + Clone,
        archs: ArchSet,
        machine: impl Iterator<Item = (WorkerId, Arch)>,
    ) -> Option<(ArchSet, Option<WorkerSet>)> {
        let allowed = |(worker, arch): &(WorkerId, Arch)| {
            archs.contains(*arch) && places.clone().all(|places| places.allows(*worker, *arch))
        };
        let (mut workers, mut left) = (WorkerSet::new(), ArchSet::EMPTY);
        for (worker, arch) in machine.filter(allowed) {
            workers.insert(worker);
            left = left.with(arch);
        }
        let names_workers = places.clone().any(|places| places.only_archs().is_none());
        (!workers.is_empty()).then_some((left, names_workers.then_some(workers)))
    }
}

impl fmt::Display for Where {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let archs = self.archs.iter().map(|arch| arch.to_string());
        let workers = ranges(self.workers.iter().map(|worker| worker.0));
        let workers = workers.split(", ").filter(|range| !range.is_empty()).map(str::to_owned);
        f.write_str(&archs.chain(workers).collect::<Vec<_>>().join("+"))
    }
}

impl FromStr for Where {
    type Err = String;

    fn from_str(text: &str) -> Result<Where, String> {
        let mut places = Where { archs: ArchSet::EMPTY, workers: WorkerSet::new() };
        for word in text.split('+').map(str::trim) {
            if let Some(arch) = Arch::from_name(word) {
                places.archs = places.archs.with(arch);
                continue;
            }
            let (first, last) = word.split_once('-').unwrap_or((word, word));
            let Some((first, last)) = number(first).zip(number(last)) else {
                return Err(format!(
                    "{} is neither an architecture nor a worker: write cpu, cuda, 0, 0-3, or several with +",
                    quoted_word(word, 40)
                ));
            };
            if first > last {
                return Err(format!(
                    "{} is no range of workers: the smaller number comes first",
                    quoted_word(word, 40)
                ));
            }
            if last > Self::LARGEST {
                return Err(format!(
                    "{} is no worker: they are numbered from 0, and no machine has more than {}",
                    quoted_word(word, 40),
                    Self::LARGEST + 1
                ));
            }
            (first..=last).map(WorkerId).for_each(|worker| _ = places.workers.insert(worker));
        }
        Ok(places)
    }
}

/// A whole number, where one that is too large for its type is the largest.
fn number(text: &str) -> Option<u32> {
    let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then(|| text.parse().unwrap_or(u32::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_wrong_with_places_is_said() {
        let wrong = |text: &str| text.parse::<Where>().expect_err("it is wrong");
        for far in ["65536", "0-70000", "cuda+99999999999999999999"] {
            assert!(wrong(far).ends_with("is no worker: they are numbered from 0, and no machine has more than 65536"));
        }
        assert_eq!(wrong("0+3-1"), "`3-1` is no range of workers: the smaller number comes first");
        for neither in ["", "-1", "1-", "+", "0++1", "0,1", "1e3", "gpu"] {
            assert!(wrong(neither).contains("is neither an architecture nor a worker"), "{neither}");
        }
        assert_eq!("65535".parse(), Ok(Where::worker(65535)));
    }
}

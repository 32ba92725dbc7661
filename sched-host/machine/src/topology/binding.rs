//! The binding of workers to PUs.

mod aside;

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use hwlocality::cpu::binding::CpuBindingFlags;
use hwlocality::cpu::cpuset::CpuSet;
use serde::Serialize;

use super::MOST_MEMORY_NODES;
use super::combined::{CombinedSizes, CombinedWorker, combine};
use super::error::BindingError;
use super::object::{Level, Object};
use super::source::Source;
use super::surroundings::Surroundings;
use super::{Claim, Topology};
use sched_text::ranges;

/// The position of one worker in the machine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct WorkerBinding {
    /// The worker's number, from 0.
    pub worker: usize,
    /// The operating system's number of its PU.
    pub pu: u32,
    /// The rank of its core in the topology, where there are cores.
    pub core: Option<u32>,
    /// The operating system's number of its local memory node, unless
    /// [`with_memory_nodes`](BindingPlan::with_memory_nodes) assigned another.
    pub numa: Option<u32>,
    /// Whether another worker has the same PU, so that they take turns.
    pub shared: bool,
}

/// A condition that makes a plan's timings unreliable. None prevents a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum BindingWarning {
    /// There are more workers than usable PUs.
    Oversubscribed {
        /// The workers that share the PU of an earlier worker.
        workers: Range<usize>,
        /// Number of usable PUs.
        pus: usize,
    },
    /// Some PUs of the machine are forbidden to this process.
    Restricted {
        /// Number of PUs that it may use.
        allowed: usize,
        /// Number of PUs of the machine.
        machine: usize,
    },
    /// An environment variable makes hwloc describe another machine: nothing will be bound.
    Redirected,
    /// A control group allows less CPU time than the workers could use, so it stops all of them in each period.
    Quota {
        /// The allowed time, in thousandths of a PU.
        thousandths: u64,
        /// Number of PUs that the workers run on.
        pus: usize,
    },
    /// Workers of another runtime are bound to PUs of the plan.
    Neighbour {
        /// The other runtime's process.
        process: u32,
        /// Whether that is this process, which then has two runtimes.
        same_process: bool,
        /// The PUs that both use.
        pus: Vec<u32>,
    },
}

impl fmt::Display for BindingWarning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Oversubscribed { workers, pus } => {
                let last = workers.end.saturating_sub(1);
                let (who, verb) = if workers.len() == 1 {
                    (format!("worker {last}"), "shares its PU")
                } else {
                    (format!("workers {}-{last}", workers.start), "share PUs")
                };
                write!(
                    f,
                    "oversubscribed: {who} {verb} with other workers, because only {pus} may be used; timings and \
                     performance models will be unreliable (use at most {pus} worker{})",
                    if *pus == 1 { "" } else { "s" }
                )
            }
            Self::Restricted { allowed, machine } => write!(
                f,
                "restricted: this process may use {allowed} of the machine's {machine} PUs (affinity mask or cgroup)"
            ),
            Self::Redirected => f.write_str(
                "redirected: HWLOC_XMLFILE or HWLOC_SYNTHETIC makes hwloc describe another machine than this one, \
                 so no thread can be bound (unset the variable)",
            ),
            Self::Quota { thousandths, pus } => {
                let whole = (thousandths / 1000).max(1);
                write!(
                    f,
                    "quota: the control group allows this process the time of {} PUs, and the workers run on {pus}; it \
                     will stop all of them repeatedly, and timings and performance models will be unreliable (use \
                     at most {whole} worker{})",
                    *thousandths as f64 / 1000.0,
                    if whole == 1 { "" } else { "s" }
                )
            }
            Self::Neighbour { process, same_process, pus } => {
                let who = if *same_process {
                    "another runtime of this process".to_owned()
                } else {
                    format!("another runtime, of process {process},")
                };
                let (noun, verb) = if pus.len() == 1 { ("PU", "is") } else { ("PUs", "are") };
                write!(
                    f,
                    "shared: workers of {who} are bound to {noun} {}, which {verb} to be used here too; they will take \
                     turns, and timings and performance models will be unreliable (give each runtime PUs of its own, with \
                     `taskset` for example)",
                    ranges(pus.iter().copied())
                )
            }
        }
    }
}

/// An assignment of a PU to each worker, made before any worker starts.
///
/// Workers are spread over distinct cores first, in topology order, and only then over the cores' further hardware
/// threads. Only PUs that the process may use are assigned. If there are too few, the plan starts over from the first
/// PU: every worker has a position in the topology, several take turns on one PU, and a
/// [`BindingWarning::Oversubscribed`] reports it.
#[derive(Clone, Debug)]
pub struct BindingPlan {
    workers: Vec<WorkerBinding>,
    combined: Vec<CombinedWorker>,
    by_pu: BTreeMap<u32, Vec<usize>>,
    /// Usable PUs that no worker has.
    free: Vec<WorkerBinding>,
    warnings: Vec<BindingWarning>,
    source: Source,
    /// `None` if the plan is for another machine.
    hwloc: Option<Arc<hwlocality::Topology>>,
}

impl BindingPlan {
    /// Creates a plan for `workers` workers on `topology`.
    ///
    /// # Errors
    ///
    /// [`BindingError::NoWorkers`] for zero workers; [`BindingError::NoAllowedPu`] if there is nowhere to run.
    pub fn new(topology: &Topology, workers: usize) -> Result<Self, BindingError> {
        if workers == 0 {
            return Err(BindingError::NoWorkers);
        }
        let mut places = places(topology);
        if places.is_empty() {
            return Err(BindingError::NoAllowedPu { source_name: topology.source().clone() });
        }
        let mut by_pu: BTreeMap<u32, Vec<usize>> = BTreeMap::new();
        let plan = (0..workers).map(|worker| {
            let place = worker % places.len();
            // Worker `place` gets the PU first; the next to get it is one round later.
            let shared = worker >= places.len() || place + places.len() < workers;
            by_pu.entry(places[place].pu).or_default().push(worker);
            WorkerBinding { worker, shared, ..places[place].clone() }
        });
        let plan: Vec<WorkerBinding> = plan.collect();
        let mut warnings = Vec::new();
        if *topology.source() == Source::ThisMachine && !topology.is_this_machine() {
            warnings.push(BindingWarning::Redirected);
        }
        if places.len() < topology.pus().len() {
            warnings.push(BindingWarning::Restricted { allowed: places.len(), machine: topology.pus().len() });
        }
        if workers > places.len() {
            warnings.push(BindingWarning::Oversubscribed { workers: places.len()..workers, pus: places.len() });
        }
        Ok(Self {
            combined: combine(topology, &plan, CombinedSizes::default()),
            workers: plan,
            by_pu,
            free: places.split_off(workers.min(places.len())),
            warnings,
            source: topology.source().clone(),
            hwloc: topology.hwloc.clone().filter(|_| topology.is_this_machine()),
        })
    }

    /// Default number of workers: one for each PU that the process may use.
    #[must_use]
    pub fn default_workers(topology: &Topology) -> usize {
        topology.allowed_pus().len()
    }

    /// [`default_workers`](Self::default_workers) beside this number of devices, whose threads have a PU each: a thread
    /// that has to wait for the end of a task on its PU keeps its device waiting too. At least one, if there is a PU.
    #[must_use]
    pub fn default_workers_beside(topology: &Topology, devices: usize) -> usize {
        let all = Self::default_workers(topology);
        all.saturating_sub(devices).max(all.min(1))
    }

    /// Adds warnings about limits and other users of the plan's PUs. A plan for another machine gets none.
    pub fn warn_of(&mut self, around: &Surroundings) {
        if self.hwloc.is_none() {
            return;
        }
        let pus = self.by_pu.len();
        if let Some(thousandths) = around.quota.filter(|quota| *quota < 1000 * pus as u64) {
            self.warnings.push(BindingWarning::Quota { thousandths, pus });
        }
        for neighbour in &around.neighbours {
            let both: Vec<u32> = neighbour.pus.iter().copied().filter(|pu| self.by_pu.contains_key(pu)).collect();
            if !both.is_empty() {
                let (process, same_process) = (neighbour.process, neighbour.process == std::process::id());
                self.warnings.push(BindingWarning::Neighbour { process, same_process, pus: both });
            }
        }
    }

    /// Announces the used PUs to other runtimes of this user while the claim is kept; `None` for a plan for another
    /// machine, and if announcing is impossible.
    #[must_use]
    pub fn claim(&self) -> Option<Claim> {
        self.hwloc.as_ref().and_then(|_| Claim::new(self.by_pu.keys().copied()))
    }

    /// The position of every worker; worker `i` is the `i`-th.
    #[must_use]
    pub fn workers(&self) -> &[WorkerBinding] {
        &self.workers
    }

    /// Replaces the combined workers by those of other sizes; `topology` is the one that the plan was made for.
    #[must_use]
    pub fn with_combined(mut self, topology: &Topology, sizes: CombinedSizes) -> Self {
        self.combined = combine(topology, &self.workers, sizes);
        self
    }

    /// Distributes the workers over `nodes` memory nodes, so that adjacent workers share one, whatever the machine has.
    /// For tests, and for trying a policy on a machine with several memory nodes.
    ///
    /// # Errors
    /// [`BindingError::MemoryNodes`] for zero nodes, and for more nodes than workers or than replicas support
    /// ([`MOST_MEMORY_NODES`]).
    ///
    /// ```
    /// # use sched_machine::topology::{BindingPlan, Topology};
    /// let machine = Topology::from_synthetic("core:5 pu:1")?;
    /// let plan = BindingPlan::new(&machine, 5)?.with_memory_nodes(2)?;
    /// let nodes: Vec<u32> = plan.workers().iter().filter_map(|worker| worker.numa).collect();
    /// assert_eq!(nodes, [0, 0, 0, 1, 1]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn with_memory_nodes(mut self, nodes: usize) -> Result<Self, BindingError> {
        let workers = self.workers.len();
        if nodes == 0 || nodes > workers.min(MOST_MEMORY_NODES) {
            return Err(BindingError::MemoryNodes { nodes, workers });
        }
        for place in &mut self.workers {
            place.numa = Some((place.worker * nodes / workers) as u32);
        }
        Ok(self)
    }

    /// The combined workers for parallel tasks, each before those that it contains.
    ///
    /// ```
    /// # use sched_machine::topology::{BindingPlan, Topology};
    /// let machine = Topology::from_synthetic("package:2 core:2 pu:1")?;
    /// let plan = BindingPlan::new(&machine, 4)?;
    /// let members: Vec<&[usize]> = plan.combined().iter().map(|combined| &combined.members[..]).collect();
    /// assert_eq!(members, [&[0, 1, 2, 3][..], &[0, 1], &[2, 3]]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn combined(&self) -> &[CombinedWorker] {
        &self.combined
    }

    /// Warnings for the user.
    #[must_use]
    pub fn warnings(&self) -> &[BindingWarning] {
        &self.warnings
    }

    /// The workers that run on PU `pu`, ascending; none for an unused PU.
    #[must_use]
    pub fn workers_on(&self, pu: u32) -> &[usize] {
        self.by_pu.get(&pu).map_or(&[], Vec::as_slice)
    }

    /// The usable PUs that no worker has, ascending: those of cores without workers, if there are any, and of these
    /// those that are local to the memory node `numa`, if there are any.
    ///
    /// ```
    /// # use sched_machine::topology::{BindingPlan, Topology};
    /// let machine = Topology::from_synthetic("core:3 pu:2")?;
    /// assert_eq!(BindingPlan::new(&machine, 2)?.free_pus(None), [4, 5]);
    /// assert_eq!(BindingPlan::new(&machine, 3)?.free_pus(None), [1, 3, 5]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn free_pus(&self, numa: Option<u32>) -> Vec<u32> {
        let is_used = |core: Option<u32>| core.is_some() && self.workers.iter().any(|worker| worker.core == core);
        let free = preferred(self.free.iter().collect(), |place| !is_used(place.core));
        let free = preferred(free, |place| numa.is_some() && place.numa == numa);
        let mut pus: Vec<u32> = free.into_iter().map(|place| place.pu).collect();
        pus.sort_unstable();
        pus
    }

    /// Binds the calling thread, that of `worker` without a PU of its own, to the [free PUs](Self::free_pus); the
    /// operating system chooses among them. Returns whether there are any: otherwise the thread keeps its binding.
    ///
    /// # Errors
    ///
    /// As for [`bind_current_thread`](Self::bind_current_thread), but for [`BindingError::UnknownWorker`].
    pub fn bind_current_thread_beside(&self, worker: usize, numa: Option<u32>) -> Result<bool, BindingError> {
        let pus = self.free_pus(numa);
        let Some(first) = pus.first() else { return Ok(false) };
        self.bind(worker, *first, &pus).map(|()| true)
    }

    /// Binds the calling thread to the PU of `worker`. Other threads keep their binding.
    ///
    /// # Errors
    ///
    /// [`BindingError::UnknownWorker`]; [`BindingError::NotThisMachine`] for a plan on a synthetic or foreign topology
    /// (hwloc would accept the call and do nothing); [`BindingError::Refused`] if the operating system refuses.
    pub fn bind_current_thread(&self, worker: usize) -> Result<(), BindingError> {
        self.bind_current_thread_to(&[worker])
    }

    /// Binds the calling thread to the PUs of all these workers, for the kernel of a parallel task that starts threads
    /// of its own.
    ///
    /// # Errors
    ///
    /// As for [`bind_current_thread`](Self::bind_current_thread).
    pub fn bind_current_thread_to(&self, workers: &[usize]) -> Result<(), BindingError> {
        let place = |worker: &usize| {
            let unknown = BindingError::UnknownWorker { worker: *worker, workers: self.workers.len() };
            self.workers.get(*worker).map(|place| place.pu).ok_or(unknown)
        };
        let pus = workers.iter().map(place).collect::<Result<Vec<u32>, BindingError>>()?;
        let Some((worker, pu)) = workers.last().zip(pus.last()) else { return Ok(()) };
        self.bind(*worker, *pu, &pus)
    }

    /// Binds the calling thread to `pus`; an error names `worker` and `pu`.
    fn bind(&self, worker: usize, pu: u32, pus: &[u32]) -> Result<(), BindingError> {
        let Some(hwloc) = &self.hwloc else {
            return Err(BindingError::NotThisMachine { worker, source_name: self.source.clone() });
        };
        let refused = |why| BindingError::Refused { worker, pu, why };
        let mut set = CpuSet::new();
        for pu in pus {
            set.set(usize::try_from(*pu).map_err(|error| refused(error.to_string()))?);
        }
        hwloc.bind_cpu(&set, CpuBindingFlags::THREAD).map_err(|error| refused(error.to_string()))
    }
}

/// Those that are preferred; all if none is.
fn preferred(places: Vec<&WorkerBinding>, is_preferred: impl Fn(&WorkerBinding) -> bool) -> Vec<&WorkerBinding> {
    match places.iter().any(|place| is_preferred(place)) {
        true => places.into_iter().filter(|place| is_preferred(place)).collect(),
        false => places,
    }
}

/// The usable PUs in the order in which workers get them: the first of each core, then the second of each, and so on.
fn places(topology: &Topology) -> Vec<WorkerBinding> {
    // The most local node comes last and so overwrites the others.
    let mut nodes = topology.level(Level::Numa);
    nodes.sort_by_key(|node| Reverse((node.pus.len(), node.logical_index)));
    let local: BTreeMap<u32, u32> =
        nodes.iter().flat_map(|node| node.pus.iter().map(|&pu| (pu, node.index()))).collect();

    let mut rounds: Vec<Vec<WorkerBinding>> = Vec::new();
    let mut taken: BTreeMap<u32, usize> = BTreeMap::new();
    let mut place = |pu: u32, core: Option<&Object>| {
        if topology.allowed_pus().binary_search(&pu).is_err() {
            return;
        }
        let round = core.map_or(0, |core| {
            let used = taken.entry(core.logical_index).or_default();
            *used += 1;
            *used - 1
        });
        if rounds.len() <= round {
            rounds.push(Vec::new());
        }
        let core = core.map(|core| core.logical_index);
        rounds[round].push(WorkerBinding { worker: 0, pu, core, numa: local.get(&pu).copied(), shared: false });
    };
    let mut core = None;
    for object in topology.root().walk() {
        match object.level {
            Level::Core => core = Some(object),
            Level::Pu => place(object.index(), core.filter(|core| core.contains(object.index()))),
            _ => {}
        }
    }
    rounds.concat()
}

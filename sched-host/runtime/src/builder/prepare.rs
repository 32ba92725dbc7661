//! From the settings of a runtime to what it starts with: policy, plugins, machine, devices.

use super::{Builder, MOST_WORKERS, StartError};
use crate::Start;
use crate::context::PolicyEnv;
use crate::device::choice::{ChosenDevice, DeviceError, OpenedDevices};
use crate::device::links::{self, Links};
use crate::device::machine::DevicePlace;
use crate::device::{Device, LinkedDevices};
use sched_core::{Arch, MemoryNode, WorkerId, WorkerSet};
use sched_machine::topology::{
    BindingError, BindingPlan, Claim, CombinedSizes, Surroundings, Topology, WorkerBinding, WorkerDistances,
};
use sched_memory::{Coherence, Known, known, measure_once};
use sched_model::{Bus, Models};
use sched_tree::WorkerFacts;
use std::sync::Arc;

impl Builder {
    /// What a runtime of these settings starts with.
    pub(super) fn prepare(self) -> Result<Start, StartError> {
        let (min, max) = (*self.priorities.start(), *self.priorities.end());
        if min > max {
            return Err(StartError::Priorities { min, max });
        }
        if self.quiet_period.is_zero() {
            return Err(StartError::QuietPeriod);
        }
        let registry = match self.registry {
            Some(registry) => registry,
            None => Arc::new(self.components.load()?),
        };
        let policy = self.policy.find()?;
        let topology = self.topology.map_or_else(Topology::this_machine, Ok)?;
        let OpenedDevices { chosen, why_none, left_out } = self.devices.open(&registry)?;
        let count = self.workers.unwrap_or_else(|| BindingPlan::default_workers_beside(&topology, chosen.len()));
        if count > MOST_WORKERS {
            return Err(StartError::TooManyWorkers { asked: count });
        }
        let mut warnings = registry.warnings();
        let sizes = self.combined.unwrap_or_else(|| CombinedSizes::from_environment(&mut warnings));
        let (binding, claim) = plan_binding(&topology, count, sizes, self.memory_nodes, self.bind)?;
        warnings.extend(binding.warnings().iter().map(ToString::to_string));
        let mut workers: Vec<WorkerFacts> = binding.workers().iter().map(facts_of).collect();
        warnings.extend(why_none.into_iter().chain(left_out));
        let places = device_places(&chosen, &workers);
        let policy_env = PolicyEnv::new(registry, topology, binding.clone(), places.clone(), self.unchecked, self.seed);
        let parts = policy_env.lay(&policy, &WorkerSet::first((count + chosen.len()) as u32))?;
        let members = |members: &[usize]| members.iter().map(|member| WorkerId(*member as u32)).collect();
        let combined = binding.combined().iter().map(|combined| members(&combined.members)).collect();
        let distances = WorkerDistances::new(&policy_env.topology, &binding);
        let binding = Some(binding).filter(|_| self.bind && policy_env.topology.is_this_machine());
        let models = self.models.into_models();
        let (given, simulated) = (self.bus, self.memory_nodes.is_some());
        let bus = bus_between(&workers, given, simulated, models.as_deref(), binding.as_ref(), &mut warnings)?;
        let memories = with_devices(bus, &mut workers, chosen, &places, self.devices.limit())?;
        Ok(Start {
            policy: policy.name.clone(),
            parts,
            workers,
            combined,
            distances,
            binding,
            main_worker: self.main_worker.then(|| WorkerId(count as u32 - 1)),
            claim,
            warnings,
            seed: self.seed,
            laid: policy,
            policy_env,
            quiet_period: self.quiet_period,
            priorities: self.priorities,
            models,
            trace: self.trace,
            captures: self.captures,
            bound: self.bound,
            memories,
            codelet_settings: self.codelet_settings,
            user_data: self.user_data,
        })
    }
}

/// A core, on the memory node of its binding.
fn facts_of(worker: &WorkerBinding) -> WorkerFacts {
    WorkerFacts { arch: Arch::CPU, memory_node: MemoryNode(worker.numa.unwrap_or(0)), relative_speedup: 1.0 }
}

/// The places of devices, after the memory nodes of the cores.
fn device_places(chosen: &[ChosenDevice], cores: &[WorkerFacts]) -> Vec<DevicePlace> {
    let first = cores.iter().map(|core| core.memory_node.0).max().map_or(0, |last| last + 1);
    chosen.iter().zip(first..).map(|(device, node)| DevicePlace { arch: device.arch, node: MemoryNode(node) }).collect()
}

/// The devices with the links to their memory, after the bus between the memory nodes of the cores. Adds their workers.
fn with_devices(
    bus: Option<Bus>,
    workers: &mut Vec<WorkerFacts>,
    chosen: Vec<ChosenDevice>,
    places: &[DevicePlace],
    limit: Option<u64>,
) -> Result<Option<LinkedDevices>, StartError> {
    let Some(first) = places.first() else { return Ok(bus.map(|bus| (bus, Box::default()))) };
    if first.node.index() + places.len() > Coherence::MOST_NODES {
        let (found, most) = (first.node.index() + places.len(), Coherence::MOST_NODES);
        return Err(StartError::MemoryNodes { found, most });
    }
    let mut devices = Vec::new();
    for (chosen, place) in chosen.into_iter().zip(places) {
        let worker = WorkerId(workers.len() as u32);
        let relative_speedup = place.arch.relative_speedup();
        workers.push(WorkerFacts { arch: place.arch, memory_node: place.node, relative_speedup });
        devices.push(Arc::new(Device::new(chosen, limit, worker, place.node)));
    }
    let links = devices
        .iter()
        .map(|device| device.links().map_err(|error| DeviceError::Unusable { device: device.name(), error }));
    let links = links.collect::<Result<Vec<Links>, DeviceError>>()?;
    let bus = links::with_devices(&bus.unwrap_or_default(), first.node.index(), &links);
    Ok(Some((bus, devices.into())))
}

/// The bus between the memory nodes of these workers, if there are several: the given one, or one that is measured.
fn bus_between(
    workers: &[WorkerFacts],
    given: Option<Bus>,
    simulated: bool,
    models: Option<&Models>,
    binding: Option<&BindingPlan>,
    warnings: &mut Vec<String>,
) -> Result<Option<Bus>, StartError> {
    let nodes = by_memory_node(workers);
    if nodes.len() <= 1 {
        return Ok(None);
    }
    if nodes.len() > Coherence::MOST_NODES {
        let (last, most) = (nodes.len() - 1, Coherence::MOST_NODES);
        warnings.push(format!(
            "there are workers on memory node {last}, and replicas can be on the first {most} only: data is not copied"
        ));
        return Ok(None);
    }
    if let Some(bus) = given {
        return Ok(Some(bus));
    }
    // Simulated memory nodes do not describe the machine.
    let Known { bus, problems } = measure_bus(&nodes, models.filter(|_| !simulated), binding)?;
    warnings.extend(problems);
    Ok(Some(bus))
}

/// Plans where workers are bound, with warnings about other users of the machine, and claims their PUs.
fn plan_binding(
    topology: &Topology,
    workers: usize,
    sizes: CombinedSizes,
    memory_nodes: Option<usize>,
    bind: bool,
) -> Result<(BindingPlan, Option<Claim>), BindingError> {
    let mut binding = BindingPlan::new(topology, workers)?.with_combined(topology, sizes);
    if let Some(nodes) = memory_nodes {
        binding = binding.with_memory_nodes(nodes)?;
    }
    // The claim comes before the look around: of two runtimes that start at once, at least one sees the other.
    let claim = if bind { binding.claim() } else { None };
    let mut around = Surroundings::look(claim.as_ref());
    if !bind {
        // The system keeps unbound workers out of each other's way.
        around.neighbours.clear();
    }
    binding.warn_of(&around);
    Ok((binding, claim))
}

/// Latency and bandwidth between memory nodes: as `models` store them for this machine, else measured once per process.
fn measure_bus(
    nodes: &[Vec<usize>],
    models: Option<&Models>,
    binding: Option<&BindingPlan>,
) -> Result<Known, StartError> {
    let store = models.and_then(|models| Some((models.store()?, !models.is_read_only())));
    let measured = match (store, binding) {
        (Some((store, keep)), Some(plan)) => known(store, keep, nodes, plan),
        _ => measure_once(nodes, binding).map(|bus| Known { bus, problems: Vec::new() }),
    };
    measured.map_err(StartError::Thread)
}

/// Workers by memory node. All in one list if they share a node.
fn by_memory_node(workers: &[WorkerFacts]) -> Vec<Vec<usize>> {
    let node = |worker: &WorkerFacts| worker.memory_node.index();
    let last = workers.iter().map(node).max().unwrap_or(0);
    if workers.iter().all(|worker| node(worker) == last) {
        return vec![(0..workers.len()).collect()];
    }
    let mut nodes = vec![Vec::new(); last + 1];
    workers.iter().enumerate().for_each(|(number, worker)| nodes[node(worker)].push(number));
    nodes
}

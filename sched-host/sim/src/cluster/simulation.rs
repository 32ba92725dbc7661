//! Simulations of clusters: the engines of all nodes under one clock.

use super::messages::{Happening, Messages};
use super::outcome::{ClusterOutcome, NodeStats};
use super::processors::Processors;
use super::view::{NodeObserver, NodeTreeObserver, Numbers};
use super::{Cluster, Platform};
use crate::allowed::Allowed;
use crate::backend::SimBackend;
use crate::engine::{Engine, Mail, PolicyEnv, RankCosts};
use crate::lengths::Lengths;
use crate::outcome::{LinkStats, SimOutcome};
use crate::specs::Specs;
use crate::{Noise, SimError, homes, openings, overflow, restrictions};
use sched_graph::ranks::{Grid, Message, Role, Share, Shares};
use sched_graph::{ContextId, Dependencies, Task, TaskGraph};
use sched_policy::Policy;
use sched_text::hash::fold;
use sched_trace::{Event, Observer, RankMessage};
use sched_tree::TreeObserver;
use sched_tree::combined::has_team_leaves;
use sched_tree::context::WantedPolicy;
use sched_tree::plugin::Registry;
use std::cell::RefCell;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::Arc;
use std::time::Duration;

/// A simulation of a cluster that is being set up. Its events depend only on graph, cluster, owners, policy and seed.
#[must_use = "a simulation begins with `run`"]
#[derive(Clone)]
pub struct ClusterSimulation {
    graph: Arc<TaskGraph>,
    cluster: Arc<Cluster>,
    owners: Option<Vec<usize>>,
    policy: WantedPolicy,
    registry: Option<Arc<Registry>>,
    seed: u64,
    noise: Noise,
    tree_observer: Option<Arc<dyn TreeObserver>>,
}

impl ClusterSimulation {
    /// A simulation of this graph on this cluster, with the policy that the environment variable `SCHED_POLICY` names,
    /// or `tree-ws`, on each node. The blocks of matrices are dealt to a grid of nodes, other data in turn
    /// ([`Grid::owners`]).
    pub fn new(graph: impl Into<Arc<TaskGraph>>, cluster: impl Into<Arc<Cluster>>) -> ClusterSimulation {
        ClusterSimulation {
            graph: graph.into(),
            cluster: cluster.into(),
            owners: None,
            policy: WantedPolicy::Default,
            registry: None,
            seed: 0,
            noise: Noise::default(),
            tree_observer: None,
        }
    }

    /// Sets the policy of every node: the name of a shipped one, or the path of a KDL file.
    pub fn policy(mut self, name_or_path: &str) -> ClusterSimulation {
        self.policy = WantedPolicy::Named(name_or_path.to_owned());
        self
    }

    /// Sets the policy of every node to a given value.
    pub fn policy_value(mut self, policy: Policy) -> ClusterSimulation {
        self.policy = WantedPolicy::Value(Box::new(policy));
        self
    }

    /// Sets the node that owns each datum of the graph.
    pub fn owners(mut self, owners: Vec<usize>) -> ClusterSimulation {
        self.owners = Some(owners);
        self
    }

    /// Sets the available components; [`Registry::available`] by default.
    pub fn registry(mut self, registry: Arc<Registry>) -> ClusterSimulation {
        self.registry = Some(registry);
        self
    }

    /// Sets the seed of the random choices of every component; 0 by default.
    pub fn seed(mut self, seed: u64) -> ClusterSimulation {
        self.seed = seed;
        self
    }

    /// Lets kernels take other times than schedulers expect, on each node its own.
    pub fn noise(mut self, noise: Noise) -> ClusterSimulation {
        self.noise = noise;
        self
    }

    /// Sets the observer of the trees of all nodes.
    pub fn tree_observer(mut self, tree_observer: Arc<dyn TreeObserver>) -> ClusterSimulation {
        self.tree_observer = Some(tree_observer);
        self
    }

    /// Runs all tasks.
    ///
    /// # Errors
    /// See [`SimError`].
    pub fn run(self) -> Result<ClusterOutcome, SimError> {
        struct Nobody;
        impl Observer for Nobody {
            fn event(&mut self, _nanos: u64, _event: &Event) {}
        }
        self.observe(&mut Nobody)
    }

    /// Runs all tasks, and reports each event to `observer`: tasks as they are numbered in the graph, workers and
    /// memory nodes through all nodes.
    ///
    /// # Errors
    /// See [`SimError`].
    pub fn observe(self, observer: &mut dyn Observer) -> Result<ClusterOutcome, SimError> {
        let (graph, cluster) = (Arc::clone(&self.graph), Arc::clone(&self.cluster));
        let owners = self.checked_owners()?;
        let policy = self.policy.clone().find()?;
        let registry = self.registry.clone().unwrap_or_else(|| Arc::new(Registry::available()));
        let merged = cluster.merged();
        let shortest = Lengths::new(&graph, &merged, &[])?;
        check_times(&graph, &cluster)?;
        let Shares { ranks, messages } = Shares::new(&graph, &owners, cluster.nodes.len());
        let alone = critical_path(&graph, &merged, &shortest);
        drop((merged, shortest));
        let observer = RefCell::new(observer);
        let mut observers = Vec::with_capacity(ranks.len());
        let mut seats = Vec::with_capacity(ranks.len());
        let (mut first_worker, mut first_memory) = (0, 0);
        for (rank, (share, platform)) in (0..).zip(ranks.into_iter().zip(&cluster.nodes)) {
            let Share { graph, roles, data, passed_over, .. } = share;
            let (roles, data): (Arc<[Role]>, _) = (roles.into(), data.into());
            let numbers = Numbers { rank, first_worker, first_memory, roles, data };
            first_worker += platform.workers.len() as u32;
            first_memory += platform.memories.len() as u32;
            observers.push(NodeObserver { numbers: numbers.clone(), observer: &observer });
            seats.push(Seat { graph, platform: Arc::clone(platform), numbers, passed_over });
        }
        let nodes = seats.into_iter().zip(&mut observers).map(|(seat, observer)| {
            let policy_env = PolicyEnv { registry: Arc::clone(&registry), seed: self.seed };
            let (rank, platform) = (seat.numbers.rank, seat.platform.name.clone());
            let engine = self.engine(seat, policy.clone(), policy_env, observer);
            engine.map_err(|error| on_node(rank as usize, platform, error))
        });
        let nodes = nodes.collect::<Result<Vec<Engine<'_>>, SimError>>()?;
        let critical_path =
            if nodes.iter().any(Engine::has_teams) { path_with_teams(&graph, &cluster)? } else { alone };
        let traffic = Messages::new(&cluster.network, cluster.nodes.len(), &messages);
        let processors = Processors::new(&cluster.shared, cluster.nodes.len());
        let mut clock = Clock::new(nodes, traffic, processors, &observer);
        clock.run(&messages);
        let Clock { nodes, traffic, .. } = clock;
        let mut outcome = finish(nodes, &cluster, &messages, &graph)?;
        outcome.total.critical_path = critical_path;
        let links = traffic.links().map(|(name, bytes)| LinkStats { name, bytes });
        outcome.total.links.splice(0..0, links);
        Ok(outcome)
    }

    fn checked_owners(&self) -> Result<Vec<usize>, SimError> {
        let (graph, nodes) = (&self.graph, self.cluster.nodes.len());
        if let Some((id, task)) = graph.ids().zip(&graph.tasks).find(|(_, task)| task.context != ContextId::DEFAULT) {
            return Err(SimError::TaskContext { task: id.0, context: task.context, contexts: 1 });
        }
        let owners = self.owners.clone().unwrap_or_else(|| Grid::new(nodes).owners(&graph.data));
        let beyond = owners.iter().position(|owner| *owner >= nodes);
        match beyond.or((owners.len() != graph.data.len()).then_some(owners.len().min(graph.data.len()))) {
            Some(data) => Err(SimError::Owner { data, owner: owners.get(data).copied(), nodes }),
            None => Ok(owners),
        }
    }

    /// The engine of a node.
    fn engine<'a>(
        &self,
        seat: Seat,
        policy: Policy,
        policy_env: PolicyEnv,
        observer: &'a mut dyn Observer,
    ) -> Result<Engine<'a>, SimError> {
        let Seat { graph, platform, numbers, passed_over } = seat;
        let contexts = openings(policy, Vec::new(), &platform, &policy_env)?;
        let has_teams = contexts.iter().any(|context| has_team_leaves(&context.parts, platform.workers.len()));
        let combined = if has_teams { platform.combined_members() } else { Vec::new() };
        let specs = Specs::of(&graph);
        let lengths = Lengths::new(&graph, &platform, &combined)?;
        restrictions::check(&graph, &specs, &platform, &lengths)?;
        let noise = Noise { seed: fold(self.noise.seed, u64::from(numbers.rank)), ..self.noise.clone() };
        let (lengths, luck) = noise.disturb(&graph, &platform, lengths);
        overflow::check(&graph, &specs, &platform, &lengths, luck.as_ref())?;
        homes::check(&graph, &platform)?;
        let dependencies = graph.dependencies();
        let (graph, dependencies) = (Arc::new(graph), Arc::new(dependencies));
        let mut backend = SimBackend::new(graph, specs, dependencies, platform, lengths, combined);
        backend.luck = luck;
        backend.tree_observer = self.tree_observer.clone().map(|observer| {
            let numbers = numbers.clone();
            Arc::new(NodeTreeObserver { numbers, observer }) as Arc<dyn TreeObserver>
        });
        let network = &self.cluster.network;
        let nanos = |time: Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        let (receive, copy) = if network.is_free { (0, 0.0) } else { (nanos(network.receive), 1.0 / network.copy) };
        let costs = RankCosts { foreign_task: nanos(network.foreign_task), receive, copy };
        let mut engine = Engine::new(backend, policy_env, contexts, Vec::new(), observer)?;
        let mut mail = Mail::new(numbers.roles, passed_over, costs);
        mail.shares_cores = self.cluster.shared.iter().any(|shared| shared.nodes.contains(&(numbers.rank as usize)));
        engine.mail = Some(mail);
        Ok(engine)
    }
}

/// What the engine of a node is made of.
struct Seat {
    graph: TaskGraph,
    platform: Arc<Platform>,
    numbers: Numbers,
    passed_over: Vec<u32>,
}

fn on_node(node: usize, platform: String, error: SimError) -> SimError {
    SimError::Node { node, platform, error: Box::new(error) }
}

/// Checks that the times of all messages can be counted.
fn check_times(graph: &TaskGraph, cluster: &Cluster) -> Result<(), SimError> {
    let network = &cluster.network;
    let narrowest = network.switches.iter().map(|level| level.uplink).fold(network.bandwidth, f64::min);
    let latency = network.latency.as_nanos() as f64
        + network.switches.iter().map(|level| 2.0 * level.latency.as_nanos() as f64).sum::<f64>();
    let [foreign, receive] = [network.foreign_task, network.receive].map(|time| time.as_nanos() as f64);
    let nanos = |task: &Task| {
        let accesses = task.accesses.len() as f64 + task.after.len() as f64;
        let bytes = graph.bytes_of(task) as f64;
        2.0 * (bytes / narrowest + (latency + receive) * accesses) + bytes / network.copy + foreign
    };
    overflow::check_nanos(graph.ids().zip(graph.tasks.iter().map(nanos)))
}

/// [`critical_path`], where combined workers of the nodes execute tasks too.
fn path_with_teams(graph: &TaskGraph, cluster: &Cluster) -> Result<Duration, SimError> {
    let merged = cluster.merged();
    let shortest = Lengths::new(graph, &merged, &merged.combined_members())?;
    Ok(critical_path(graph, &merged, &shortest))
}

/// Length of the longest chain, with each task where it is fastest. Nodes have copies, so only what tasks read counts.
fn critical_path(graph: &TaskGraph, platform: &Platform, lengths: &Lengths) -> Duration {
    let (dependencies, allowed) = (Dependencies::of_flows(graph), Allowed::new(platform));
    let mut ends = vec![0_u64; graph.tasks.len()];
    for task in graph.ids() {
        let before = dependencies.predecessors(task);
        let start = before.iter().map(|before| ends[before.index()]).max().unwrap_or(0);
        let shortest = match graph.task(task).only {
            Some(_) => lengths.shortest_on(lengths.row(task), &allowed.by_class(graph.task(task))),
            None => lengths.shortest(task),
        };
        ends[task.index()] = start.saturating_add(shortest);
    }
    Duration::from_nanos(ends.into_iter().max().unwrap_or(0))
}

/// The nodes, and the messages between them, under one clock. At one time messages come before shared cores, these
/// before nodes, and these in the order of their ranks.
struct Clock<'a, 'x> {
    nodes: Vec<Engine<'a>>,
    traffic: Messages<'a>,
    /// The cores that nodes share.
    processors: Processors,
    observer: &'a RefCell<&'x mut dyn Observer>,
    /// The next time of each node that has one, and others that are out of date.
    next: BinaryHeap<Reverse<(u64, u32)>>,
    /// The time of each node that is in the heap.
    planned: Vec<u64>,
}

impl<'a, 'x> Clock<'a, 'x> {
    fn new(
        nodes: Vec<Engine<'a>>,
        traffic: Messages<'a>,
        processors: Processors,
        observer: &'a RefCell<&'x mut dyn Observer>,
    ) -> Clock<'a, 'x> {
        let planned = vec![u64::MAX; nodes.len()];
        Clock { nodes, traffic, processors, observer, next: BinaryHeap::new(), planned }
    }

    fn run(&mut self, messages: &[Message]) {
        for node in 0..self.nodes.len() {
            self.nodes[node].begin();
            self.take_out(0, node);
            self.plan(node);
        }
        loop {
            let (node, arrives, ends) = (self.next_node(), self.traffic.next_time(), self.processors.next_time());
            let of_node = node.map_or(u64::MAX, |(time, _)| time);
            let earliest = arrives.into_iter().chain(ends).fold(of_node, u64::min);
            match node {
                _ if arrives == Some(earliest) => self.pass_on(messages),
                _ if ends == Some(earliest) => self.end_on_core(),
                Some((time, node)) => {
                    self.next.pop();
                    self.planned[node] = u64::MAX;
                    self.advance(time, node);
                }
                None => return,
            }
        }
    }

    /// Ends what a shared core does.
    fn end_on_core(&mut self) {
        let Some((now, node, job)) = self.processors.end_next() else { return };
        self.nodes[node].core_ended(now, job);
        self.take_out(now, node);
        self.plan(node);
    }

    /// The next time of any node.
    fn next_node(&mut self) -> Option<(u64, usize)> {
        while let Some(Reverse((time, node))) = self.next.peek().copied() {
            if self.planned[node as usize] == time {
                return Some((time, node as usize));
            }
            self.next.pop();
        }
        None
    }

    /// Lets a node act until another, or a message, is next.
    fn advance(&mut self, mut time: u64, node: usize) {
        loop {
            self.nodes[node].step();
            self.take_out(time, node);
            let Some(next) = self.nodes[node].next_time() else { return };
            let waits = self.traffic.next_time().is_some_and(|arrives| arrives <= next)
                || self.processors.next_time().is_some_and(|ends| ends <= next)
                || self.next.peek().is_some_and(|Reverse((other, of))| (*other, *of) < (next, node as u32));
            if waits {
                return self.plan(node);
            }
            time = next;
        }
    }

    fn plan(&mut self, node: usize) {
        if let Some(time) = self.nodes[node].next_time()
            && time != self.planned[node]
        {
            self.planned[node] = time;
            self.next.push(Reverse((time, node as u32)));
        }
    }

    /// Sends what a node has posted, and begins what it asks of cores that it shares.
    fn take_out(&mut self, now: u64, node: usize) {
        while let Some(message) = self.nodes[node].take_posted() {
            self.traffic.post(now, message);
        }
        while let Some(work) = self.nodes[node].take_asked() {
            self.processors.begin(now, node, work);
        }
    }

    /// Performs the next step of a message.
    fn pass_on(&mut self, messages: &[Message]) {
        let Some((now, happening)) = self.traffic.step() else { return };
        let of = |id: sched_graph::ranks::MessageId| messages[id.index()];
        let (message, node, task) = match happening {
            Happening::Begins(id) => {
                let Message { from, to, data, bytes, .. } = of(id);
                return self.observer.borrow_mut().event(now, &Event::Sent(RankMessage { data, from, to, bytes }));
            }
            Happening::Sent(id) => (of(id), of(id).from as usize, of(id).sends),
            Happening::Arrived(id) => (of(id), of(id).to as usize, of(id).receives),
        };
        if let Happening::Arrived(_) = happening {
            let Message { from, to, data, bytes, .. } = message;
            self.observer.borrow_mut().event(now, &Event::Received(RankMessage { data, from, to, bytes }));
        }
        self.nodes[node].message(now, task);
        self.take_out(now, node);
        self.plan(node);
    }
}

/// The results of all nodes, and all of them together.
fn finish(
    mut nodes: Vec<Engine<'_>>,
    cluster: &Cluster,
    messages: &[Message],
    graph: &TaskGraph,
) -> Result<ClusterOutcome, SimError> {
    let makespan = nodes.iter().map(Engine::end_of_tasks).max().unwrap_or(0);
    let mut stats = Vec::with_capacity(nodes.len());
    let mut total = SimOutcome::nothing();
    let (mut failed, mut first_worker) = (None, 0);
    for (rank, engine) in nodes.iter_mut().enumerate() {
        if let Some(mail) = &mut engine.mail {
            mail.until = makespan;
        }
        let end = Duration::from_nanos(engine.end_of_tasks());
        stats.push(NodeStats::new(cluster.nodes[rank].name.clone(), first_worker, end));
        first_worker += cluster.nodes[rank].workers.len() as u32;
    }
    for (rank, engine) in nodes.into_iter().enumerate() {
        match engine.finish() {
            Ok(outcome) => {
                stats[rank].add(&outcome);
                total.join(outcome, rank, stats[rank].first_worker);
            }
            Err(error) => {
                // One that holds tasks is the cause; others wait for its messages.
                let waits =
                    matches!(&error, SimError::Stalled { nodes, .. } if nodes.iter().all(|node| node.tasks == 0));
                if failed.is_none() || (!waits && matches!(failed, Some((true, _)))) {
                    failed = Some((waits, on_node(rank, cluster.nodes[rank].name.clone(), error)));
                }
            }
        }
    }
    if let Some((_, error)) = failed {
        return Err(error);
    }
    total.makespan = Duration::from_nanos(makespan);
    total.tasks = graph.tasks.len();
    total.flops = graph.flops();
    for message in messages {
        let (from, to) = (message.from as usize, message.to as usize);
        stats[from].sent += 1;
        stats[from].sent_bytes += message.bytes;
        stats[to].received += 1;
        stats[to].received_bytes += message.bytes;
    }
    let message_bytes = messages.iter().map(|message| message.bytes).sum();
    Ok(ClusterOutcome { total, nodes: stats, messages: messages.len() as u64, message_bytes })
}

//! What the host finds out by itself, instead of calling a component, is what the call would have said: in random trees, with
//! random lengths and loads, whatever is pushed and pulled.

use proptest::prelude::*;
use sched_core::abi::TaskHead;
use sched_core::*;
use sched_host::plugin::Registry;
use sched_host::tree::{Ledger, NodeId, Part, Phase, Services, Slot, Tree, WorkerFacts};
use sched_tests::stock;
use std::fmt::Write as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::*};
use std::time::Duration;

const WORKERS: u32 = 12;
const CLASSES: usize = 3;
const CODELETS: usize = 3;
const MEMORIES: usize = 3;

/// A tree to be; its leaves are for worker after worker, or for two of them together.
#[derive(Clone, Debug)]
enum Shape {
    Worker,
    Combined,
    /// A component with such a `ntasks-threshold`, if it takes one.
    Of(&'static str, i64, Vec<Shape>),
    /// Two components over the same children, below one that chooses.
    Two([&'static str; 2], Vec<Shape>),
}

impl Shape {
    fn leaves(&self) -> u32 {
        match self {
            Shape::Worker | Shape::Combined => 1,
            Shape::Of(.., below) | Shape::Two(_, below) => below.iter().map(Shape::leaves).sum(),
        }
    }
}

fn shape() -> impl Strategy<Value = Shape> {
    let leaf = prop_oneof![6 => Just(Shape::Worker), 1 => Just(Shape::Combined)];
    let inner = leaf.prop_recursive(4, 16, 4, |inner| {
        let above_one = prop::sample::select(vec!["fifo", "fifo", "prio", "best-implementation"]);
        let above_many = prop::sample::select(vec![
            "eager", "eager", "eager-prio", "mct", "work-stealing", "random", "heft", "heteroprio", "replan", "keep", "keep", "probe",
        ]);
        prop_oneof![
            3 => (above_one, 0..4_i64, inner.clone()).prop_map(|(name, room, below)| Shape::Of(name, room, vec![below])),
            2 => (above_many.clone(), prop::collection::vec(inner.clone(), 1..5))
                .prop_map(|(name, below)| Shape::Of(name, 0, below)),
            1 => ([above_many.clone(), above_many], prop::collection::vec(inner, 1..4))
                .prop_map(|(names, below)| Shape::Two(names, below)),
        ]
    });
    let root = prop::collection::vec(inner, 2..5).prop_map(|below| Shape::Of("probe", 0, below));
    root.prop_filter("there are as many workers", |root| root.leaves() <= WORKERS)
}

/// What is known of the workers and of the codelets.
#[derive(Clone, Debug)]
struct Facts {
    /// Of each worker.
    workers: Vec<(bool, u32, u32)>,
    /// Of each codelet in each class: microseconds; 0 stands for a model to be calibrated, and 1 for none.
    lengths: Vec<Vec<u64>>,
    /// Of each codelet to each memory, in nanoseconds.
    transfers: Option<Vec<Vec<u64>>>,
    /// Of each codelet in each class.
    joules: Vec<Vec<Option<u32>>>,
    /// The members of each combined worker.
    teams: Vec<Box<[WorkerId]>>,
}

fn facts() -> impl Strategy<Value = Facts> {
    fn of_each<T: std::fmt::Debug>(
        columns: usize,
        value: impl Strategy<Value = T>,
    ) -> impl Strategy<Value = Vec<Vec<T>>> {
        prop::collection::vec(prop::collection::vec(value, columns), CODELETS)
    }
    // Few kinds, so that there are workers that are alike.
    let kinds = prop::collection::vec((any::<bool>(), 0..CLASSES as u32, 0..MEMORIES as u32), 1..4);
    let of_kinds = prop::collection::vec(any::<prop::sample::Index>(), WORKERS as usize);
    let workers = (kinds, of_kinds).prop_map(|(kinds, of)| of.iter().map(|index| *index.get(&kinds)).collect());
    let transfers = prop::option::of(of_each(MEMORIES, 0..50_000_u64));
    (workers, of_each(CLASSES, 0..12_u64), transfers, of_each(CLASSES, prop::option::of(1..9_u32))).prop_map(
        |(workers, lengths, transfers, joules)| Facts { workers, lengths, transfers, joules, teams: Vec::new() },
    )
}

impl Facts {
    fn arch(&self, worker: usize) -> Arch {
        if self.workers[worker].0 { Arch::CUDA } else { Arch::CPU }
    }

    /// Those of the first member, for a combined worker.
    fn simple(&self, worker: WorkerId) -> usize {
        let number = worker.0 as usize;
        number.checked_sub(WORKERS as usize).map_or(number, |team| self.teams[team][0].0 as usize)
    }
}

/// What is done to a tree.
#[derive(Clone, Debug)]
enum Act {
    Push {
        codelet: usize,
        archs: u32,
        width: u16,
        priority: i32,
        by: Option<u32>,
    },
    Pull(u32),
    PullForTeam(usize),
    Sleep(u32),
    /// Nanoseconds go by.
    Wait(u64),
}

fn act() -> impl Strategy<Value = Act> {
    let worker = || 0..WORKERS;
    prop_oneof![
        6 => (0..CODELETS, 1..4_u32, 1..3_u16, -1..2, prop::option::of(worker())).prop_map(
            |(codelet, archs, width, priority, by)| Act::Push { codelet, archs, width, priority, by },
        ),
        4 => worker().prop_map(Act::Pull),
        1 => (0..4_usize).prop_map(Act::PullForTeam),
        1 => worker().prop_map(Act::Sleep),
        1 => (0..20_000_u64).prop_map(Act::Wait),
    ]
}

/// The world as it is told to a tree.
struct World {
    facts: Facts,
    now: AtomicU64,
    busy: Vec<AtomicU64>,
    sleeping: Arc<[AtomicU64]>,
    log: Mutex<String>,
}

impl Services for World {
    fn now(&self) -> Time {
        Time::from_nanos(self.now.load(Relaxed))
    }

    fn sleeping(&self) -> Arc<[AtomicU64]> {
        Arc::clone(&self.sleeping)
    }

    fn wake(&self, worker: WorkerId) -> bool {
        let _ = writeln!(self.log.lock(), "wakes {}", worker.0);
        self.sleeping[0].fetch_and(!(1 << worker.0), Relaxed) & 1 << worker.0 != 0
    }

    fn combined(&self) -> &[Box<[WorkerId]>] {
        &self.facts.teams
    }

    fn busy_until(&self, worker: WorkerId) -> Option<Time> {
        Some(Time::from_nanos(self.busy[worker.0 as usize].load(Relaxed)))
    }

    fn expected_length(&self, worker: WorkerId, task: &TaskHead, _implementation: Option<u32>) -> Estimate {
        match self.facts.lengths[task.codelet.load(Relaxed) as usize][self.speed_class(worker) as usize] {
            0 => Estimate::Uncalibrated,
            1 => Estimate::NoModel,
            micros => Estimate::Known(Duration::from_micros(micros)),
        }
    }

    fn speed_class(&self, worker: WorkerId) -> u32 {
        self.facts.workers[self.facts.simple(worker)].1
    }

    fn expected_energy(&self, worker: WorkerId, task: &TaskHead, _implementation: Option<u32>) -> Option<f64> {
        let of_class = &self.facts.joules[task.codelet.load(Relaxed) as usize];
        of_class[self.speed_class(worker) as usize].map(f64::from)
    }

    fn transfers(&self) -> bool {
        self.facts.transfers.is_some()
    }

    fn expected_transfer(&self, memory_node: MemoryNode, task: &TaskHead) -> Duration {
        let Some(transfers) = &self.facts.transfers else { return Duration::ZERO };
        Duration::from_nanos(transfers[task.codelet.load(Relaxed) as usize][memory_node.0 as usize])
    }

    fn log(&self, _node: &str, _level: LogLevel, line: &str) {
        let _ = writeln!(self.log.lock(), "{line}");
    }
}

/// Logs what it hears of its children before it hands a task to one of them, and what is not the same asked one by one.
struct Probe;

impl Build for Probe {
    const INFO: Info = Info::new("probe", Family::ResourceMapping, "Asks for all there is to know.").forwards_push();

    fn build(_params: &Params) -> Result<Self, BuildError> {
        Ok(Probe)
    }
}

/// What [`Node::prospects`] says, asked worker by worker.
fn one_by_one(node: Node<'_>, child: Child, task: &Task) -> Prospect {
    let able: Vec<WorkerId> =
        node.each_child_worker_in_context(child).filter(|worker| node.worker_can_execute(*worker, task)).collect();
    let known = able.iter().filter_map(|worker| Some((node.expected_length(*worker, task).known()?, *worker)));
    let best = known.min_by_key(|(length, _)| *length);
    let transfers = able.iter().filter_map(|worker| node.memory_node(*worker));
    let transfers: Duration = transfers.map(|memory_node| node.expected_transfer(memory_node, task)).sum();
    Prospect {
        able: able.len() as u32,
        length: best.map(|(length, _)| length.as_nanos() as u64),
        transfer: transfers.as_nanos() as u64 / (able.len() as u64).max(1),
        energy: best.and_then(|(_, worker)| node.expected_energy(worker, task)),
    }
}

impl Component for Probe {
    fn push_task(&self, node: Node<'_>, mut task: Task) -> Push {
        let mut ends = Vec::new();
        node.ends_below(|child, end| ends.push((child, end)));
        node.prospects(&task, true, |child, prospect| {
            assert_eq!(prospect, one_by_one(node, child, &task), "{} child {}", node.path(), child.0);
            let (end, load) = (node.child_estimated_end(child), node.child_load(child));
            assert_eq!(ends[child.0 as usize], (child, end));
            let (path, child, end) = (node.path(), child.0, end.as_nanos());
            node.log(LogLevel::Info, &format!("{path} child {child}: {end} {load:?} {prospect:?}"));
        });
        let mut able = Vec::new();
        node.prospects(&task, false, |child, prospect| {
            assert_eq!(Prospect { energy: None, ..one_by_one(node, child, &task) }, prospect);
            able.extend((prospect.able > 0).then_some((child, prospect)));
        });
        for (child, prospect) in able {
            task.set_predicted(prospect.length.map(Duration::from_nanos));
            match node.push_to(child, task) {
                Ok(()) => return Ok(()),
                Err(refused) => task = refused.task,
            }
        }
        Err(Refused::new(task, Refusal::Full))
    }
}

/// Keeps tasks above many children until they are pulled, and notes how long they should take.
struct Keep(Mutex<Vec<Task>>);

impl Keep {
    fn change<T>(&self, node: Node<'_>, change: impl FnOnce(&mut Vec<Task>) -> T) -> T {
        let mut tasks = self.0.lock();
        let answer = change(&mut tasks);
        node.note_queued(tasks.iter().filter_map(Task::predicted).sum());
        answer
    }
}

impl Build for Keep {
    const INFO: Info = Info::new("keep", Family::ResourceMapping, "Keeps tasks until they are pulled.")
        .storage(Storage::Unbounded)
        .end_is_noted();

    fn build(_params: &Params) -> Result<Self, BuildError> {
        Ok(Keep(Mutex::default()))
    }
}

impl Component for Keep {
    fn push_task(&self, node: Node<'_>, task: Task) -> Push {
        self.change(node, |tasks| tasks.push(task));
        node.children_can_pull();
        Ok(())
    }

    fn pull_task(&self, node: Node<'_>, _to: Child) -> Option<Task> {
        let able = |tasks: &mut Vec<Task>| {
            let first = tasks.iter().position(|task| node.requester_can_execute(task))?;
            Some(tasks.remove(first))
        };
        self.change(node, able).or_else(|| node.pull_from_parents())
    }

    fn estimated_end(&self, node: Node<'_>) -> Time {
        let queued = self.0.lock().iter().filter_map(Task::predicted).sum();
        node.end_below_with_queued(queued)
    }

    fn drain(&self) -> Vec<Task> {
        std::mem::take(&mut *self.0.lock())
    }
}

/// A shortcut that is taken or not.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Shortcut {
    ForwardsPull,
    EmptyUntilPushed,
    EndIsNoted,
}

/// A tree in the making.
struct Maker {
    registry: Arc<Registry>,
    without: Option<Shortcut>,
    parts: Vec<Part>,
    workers: u32,
    teams: Vec<Box<[WorkerId]>>,
}

impl Maker {
    /// Adds a node without children, for now.
    fn node(&mut self, name: &str, room: i64, worker: Option<u32>) -> NodeId {
        let component = self.registry.component(name).expect("it is a stock component");
        let info = component.info();
        let mut params =
            Params::from_values(info.params.iter().map(|param| (param.name.clone(), param.default.clone())));
        if info.param("ntasks-threshold").is_some() {
            params.set("ntasks-threshold", Value::Int(room));
        }
        let id = self.parts.len() as NodeId;
        self.parts.push(Part {
            component: component.build(&params).expect("the parameters are sound"),
            name: name.to_owned(),
            plugin: "test".to_owned(),
            path: format!("{id} {name}"),
            object: String::new(),
            children: Vec::new(),
            workers: worker.map(WorkerId).into_iter().collect(),
            worker: worker.map(WorkerId),
            forwards_pull: info.forwards_pull && self.without != Some(Shortcut::ForwardsPull),
            empty_until_pushed: info.empty_until_pushed && self.without != Some(Shortcut::EmptyUntilPushed),
            end_is_noted: info.end_is_noted && self.without != Some(Shortcut::EndIsNoted),
        });
        id
    }

    fn add(&mut self, shape: &Shape) -> NodeId {
        let (nodes, below) = match shape {
            Shape::Worker => {
                self.workers += 1;
                return self.node("worker", 0, Some(self.workers - 1));
            }
            Shape::Combined => {
                let first = 2 * self.teams.len() as u32;
                self.teams.push([first, first + 1].map(|member| WorkerId(member % WORKERS)).into());
                return self.node("combined-worker", 0, Some(WORKERS + first / 2));
            }
            Shape::Of(name, room, below) => (vec![self.node(name, *room, None)], below),
            Shape::Two(names, below) => {
                let above = self.node("probe", 0, None);
                (std::iter::once(above).chain(names.map(|name| self.node(name, 0, None))).collect(), below)
            }
        };
        let lowest = if nodes.len() == 1 { &nodes[..] } else { &nodes[1..] };
        let children: Vec<NodeId> = below.iter().map(|shape| self.add(shape)).collect();
        let workers: WorkerSet =
            children.iter().flat_map(|child| self.parts[*child as usize].workers.iter().collect::<Vec<_>>()).collect();
        let links = |children: &[NodeId]| children.iter().map(|child| (*child, String::new())).collect();
        for node in &nodes {
            let below = if lowest.contains(node) { &children[..] } else { lowest };
            let part = &mut self.parts[*node as usize];
            (part.children, part.workers) = (links(below), workers.clone());
        }
        nodes[0]
    }
}

/// All that can be seen of a tree while things are done to it.
fn history(shape: &Shape, facts: &Facts, acts: &[Act], without: Option<Shortcut>) -> Result<String, TestCaseError> {
    let registry = stock::registry(vec![Offer::of::<Probe>(), Offer::of::<Keep>()]);
    let mut maker = Maker { registry, without, parts: Vec::new(), workers: 0, teams: Vec::new() };
    maker.add(shape);
    let Maker { parts, teams, .. } = maker;
    let count = teams.len();
    let world = Arc::new(World {
        facts: Facts { teams, ..facts.clone() },
        now: AtomicU64::new(0),
        busy: (0..WORKERS).map(|_| AtomicU64::new(0)).collect(),
        sleeping: Arc::new([AtomicU64::new(0)]),
        log: Mutex::default(),
    });
    let worker_facts = |worker| WorkerFacts {
        arch: facts.arch(worker),
        memory_node: MemoryNode(facts.workers[worker].2),
        relative_speedup: 1.0 + f64::from(facts.workers[worker].1),
    };
    let workers: Vec<WorkerFacts> = (0..WORKERS as usize).map(worker_facts).collect();
    let ledger = Arc::new(Ledger::new());
    ledger.grow();
    let tree = Tree::assemble(parts, &workers, Arc::<World>::clone(&world), Arc::clone(&ledger), 7);
    let mut pushed = 0;
    // A worker that has a task executes it at once, and for as long as that is expected to take.
    let begin = |slot: &Slot, workers: &[WorkerId]| {
        if let Estimate::Known(length) = world.expected_length(workers[0], slot.head(), None) {
            let end = world.now() + length;
            workers.iter().for_each(|worker| world.busy[worker.0 as usize].store(end.as_nanos(), Relaxed));
        }
    };
    for act in acts {
        let _ = writeln!(world.log.lock(), "{act:?}");
        let pulled = match act {
            Act::Push { codelet, archs, width, priority, by } => {
                let slot = ledger.slot(pushed);
                pushed += 1;
                let head = slot.head();
                head.reset();
                head.sequence.store(pushed.into(), Relaxed);
                head.codelet.store(*codelet as u32, Relaxed);
                head.archs.store(*archs, Relaxed);
                head.width.store(*width, Relaxed);
                head.priority.store(*priority, Relaxed);
                slot.set_phase(Phase::Waiting);
                tree.push(slot, by.map(WorkerId), None);
                None
            }
            Act::Pull(worker) => {
                let pulled = tree.pull(WorkerId(*worker));
                pulled.inspect(|slot| begin(slot, &[WorkerId(*worker)]))
            }
            Act::PullForTeam(team) if *team < count => {
                let members = &world.facts.teams[*team];
                let pulled = tree.pull_for_team(members[1], WorkerId(WORKERS + *team as u32));
                pulled.inspect(|slot| begin(slot, members))
            }
            Act::PullForTeam(_) => None,
            Act::Sleep(worker) => {
                world.sleeping[0].fetch_or(1 << worker, Relaxed);
                None
            }
            Act::Wait(nanos) => {
                world.now.fetch_add(*nanos, Relaxed);
                None
            }
        };
        let phases: Vec<Phase> = (0..pushed).map(|slot| ledger.slot(slot).phase()).collect();
        let _ = writeln!(world.log.lock(), "{:?} {phases:?}", pulled.map(Slot::index));
    }
    prop_assert_eq!(tree.faults(), []);
    Ok(std::mem::take(&mut world.log.lock()))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 600, max_shrink_iters: 2000, ..ProptestConfig::default() })]

    #[test]
    fn a_tree_does_the_same_without_each_shortcut(
        shape in shape(),
        facts in facts(),
        acts in prop::collection::vec(act(), 1..60),
    ) {
        let with_all = history(&shape, &facts, &acts, None)?;
        for without in [Shortcut::ForwardsPull, Shortcut::EmptyUntilPushed, Shortcut::EndIsNoted] {
            let other = history(&shape, &facts, &acts, Some(without))?;
            let differ = with_all.lines().zip(other.lines()).find(|(a, b)| a != b);
            prop_assert!(with_all == other, "without {:?}: {:?}\n{}", without, differ, with_all);
        }
    }
}

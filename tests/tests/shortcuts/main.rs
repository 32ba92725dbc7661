//! What the host finds out by itself, instead of calling a component, is what the call would have said: in random
//! trees, with random lengths and loads, for any sequence of pushes and pulls.

mod components;
mod scenario;
mod shape;
mod straight_back;

use components::{Keep, Probe};
use proptest::prelude::*;
use scenario::{Scenario, scenario};
use sched_core::*;
use sched_host::tree::{Ledger, Phase, Services, Slot, SlotId, Tree, WorkerFacts};
use sched_tests::fake_services::FakeServices;
use sched_tests::stock;
use shape::{Maker, Shape, Shortcut, shape};
use std::fmt::Write as _;
use std::sync::Arc;
use std::sync::atomic::Ordering::*;

const WORKERS: u32 = 12;
const CLASSES: usize = 3;
const CODELETS: usize = 3;
const MEMORIES: usize = 3;

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

/// A tree on which acts are played.
struct Play {
    tree: Tree,
    ledger: Arc<Ledger>,
    services: Arc<FakeServices<Scenario>>,
    /// Number of tasks that were pushed.
    pushed: u32,
}

impl Play {
    /// Does what `act` says; returns the task that a worker or team pulled, if any.
    fn act(&mut self, act: &Act) -> Option<&'static Slot> {
        match act {
            Act::Push { codelet, archs, width, priority, by } => {
                let slot = self.ledger.slot(SlotId(self.pushed));
                self.pushed += 1;
                let head = slot.head();
                head.reset();
                head.sequence.store(self.pushed.into(), Relaxed);
                head.codelet.store(*codelet as u32, Relaxed);
                head.archs.store(*archs, Relaxed);
                head.width.store(*width, Relaxed);
                head.priority.store(*priority, Relaxed);
                slot.set_phase(Phase::Waiting);
                self.tree.push(slot, by.map(WorkerId), None);
                None
            }
            Act::Pull(worker) => {
                let pulled = self.tree.pull(WorkerId(*worker));
                pulled.inspect(|slot| self.begin(slot, &[WorkerId(*worker)]))
            }
            Act::PullForTeam(team) => {
                let members = self.services.combined().get(*team)?;
                let pulled = self.tree.pull_for_team(members[1], WorkerId(WORKERS + *team as u32));
                pulled.inspect(|slot| self.begin(slot, members))
            }
            Act::Sleep(worker) => {
                self.services.sleeping.insert(*worker);
                None
            }
            Act::Wait(nanos) => {
                self.services.advance(*nanos);
                None
            }
        }
    }

    /// Marks the workers of a task as busy for its expected length: they execute it at once.
    fn begin(&self, slot: &Slot, workers: &[WorkerId]) {
        if let Estimate::Known(length) = self.services.expected_length(workers[0], slot.head(), None) {
            let end = self.services.now() + length;
            workers.iter().for_each(|worker| self.services.set_busy_until(*worker, end));
        }
    }
}

/// The observable behaviour of a tree under `acts`.
fn history(
    shape: &Shape,
    scenario: &Scenario,
    acts: &[Act],
    without: Option<Shortcut>,
) -> Result<String, TestCaseError> {
    let registry = stock::registry(vec![Offer::of::<Probe>(), Offer::of::<Keep>()]);
    let mut maker = Maker { registry, without, parts: Vec::new(), workers: 0, teams: Vec::new() };
    maker.add(shape);
    let Maker { parts, teams, .. } = maker;
    let workers = WORKERS as usize;
    let services = FakeServices::expecting(workers, Scenario { teams: teams.clone(), ..scenario.clone() });
    let services = Arc::new(services.with_combined(teams).with_busy_times(workers));
    let mut history = String::new();
    let worker_facts = |worker| WorkerFacts {
        arch: scenario.arch(worker),
        memory_node: MemoryNode(scenario.workers[worker].2),
        relative_speedup: 1.0 + f64::from(scenario.workers[worker].1),
    };
    let workers: Vec<WorkerFacts> = (0..WORKERS as usize).map(worker_facts).collect();
    let ledger = Arc::new(Ledger::new());
    ledger.grow();
    let tree = Tree::assemble(parts, &workers, services.clone(), Arc::clone(&ledger), 7);
    let mut play = Play { tree, ledger, services, pushed: 0 };
    for act in acts {
        let _ = writeln!(history, "{act:?}");
        let pulled = play.act(act).map(Slot::id);
        let phases: Vec<Phase> = (0..play.pushed).map(|slot| play.ledger.slot(SlotId(slot)).phase()).collect();
        let requests = play.services.take_requests();
        let _ = writeln!(history, "{requests:?} {pulled:?} {phases:?}");
    }
    // Not even one about a declaration, where those are looked at.
    prop_assert_eq!(play.tree.faults(), []);
    Ok(history)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 600, max_shrink_iters: 2000, ..ProptestConfig::default() })]

    #[test]
    fn a_tree_does_the_same_without_each_shortcut(
        shape in shape(),
        scenario in scenario(),
        acts in prop::collection::vec(act(), 1..60),
    ) {
        let with_all = history(&shape, &scenario, &acts, None)?;
        for without in [Shortcut::ForwardsPull, Shortcut::EmptyUntilPushed, Shortcut::EndIsNoted, Shortcut::All] {
            let other = history(&shape, &scenario, &acts, Some(without))?;
            let differ = with_all.lines().zip(other.lines()).find(|(a, b)| a != b);
            prop_assert!(with_all == other, "without {:?}: {:?}\n{}", without, differ, with_all);
        }
    }
}

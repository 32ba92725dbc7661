//! What the host finds out by itself, instead of calling a component, is what the call would have said: in random trees, with
//! random lengths and loads, whatever is pushed and pulled.

mod components;
mod facts;
mod shape;

use components::{Keep, Probe};
use facts::{Facts, facts};
use proptest::prelude::*;
use sched_core::*;
use sched_host::tree::{Ledger, Phase, Services, Slot, Tree, WorkerFacts};
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

/// All that can be seen of a tree while things are done to it.
fn history(shape: &Shape, facts: &Facts, acts: &[Act], without: Option<Shortcut>) -> Result<String, TestCaseError> {
    let registry = stock::registry(vec![Offer::of::<Probe>(), Offer::of::<Keep>()]);
    let mut maker = Maker { registry, without, parts: Vec::new(), workers: 0, teams: Vec::new() };
    maker.add(shape);
    let Maker { parts, teams, .. } = maker;
    let count = teams.len();
    let workers = WORKERS as usize;
    let services = FakeServices::expecting(workers, Facts { teams: teams.clone(), ..facts.clone() });
    let services = Arc::new(services.with_combined(teams).with_busy_times(workers));
    let mut history = String::new();
    let worker_facts = |worker| WorkerFacts {
        arch: facts.arch(worker),
        memory_node: MemoryNode(facts.workers[worker].2),
        relative_speedup: 1.0 + f64::from(facts.workers[worker].1),
    };
    let workers: Vec<WorkerFacts> = (0..WORKERS as usize).map(worker_facts).collect();
    let ledger = Arc::new(Ledger::new());
    ledger.grow();
    let tree = Tree::assemble(parts, &workers, services.clone(), Arc::clone(&ledger), 7);
    let mut pushed = 0;
    // A worker that has a task executes it at once, and for as long as that is expected to take.
    let begin = |slot: &Slot, workers: &[WorkerId]| {
        if let Estimate::Known(length) = services.expected_length(workers[0], slot.head(), None) {
            let end = services.now() + length;
            workers.iter().for_each(|worker| services.set_busy_until(*worker, end));
        }
    };
    for act in acts {
        let _ = writeln!(history, "{act:?}");
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
                let members = &services.combined()[*team];
                let pulled = tree.pull_for_team(members[1], WorkerId(WORKERS + *team as u32));
                pulled.inspect(|slot| begin(slot, members))
            }
            Act::PullForTeam(_) => None,
            Act::Sleep(worker) => {
                services.sleeping.insert(*worker);
                None
            }
            Act::Wait(nanos) => {
                services.advance(*nanos);
                None
            }
        };
        let phases: Vec<Phase> = (0..pushed).map(|slot| ledger.slot(slot).phase()).collect();
        let requests = services.take_requests();
        let _ = writeln!(history, "{requests:?} {:?} {phases:?}", pulled.map(Slot::index));
    }
    prop_assert_eq!(tree.faults(), []);
    Ok(history)
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

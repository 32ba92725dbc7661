//! A task that comes straight back, for any sequence of releases, pushes and pulls: the worker goes on with the task
//! that its next pull would have given.

use super::shape::{Maker, Shape};
use proptest::prelude::*;
use sched_core::*;
use sched_host::tree::seat::DeferredWake;
use sched_host::tree::{Ledger, Phase, Slot, SlotId, Tree, WorkerFacts};
use sched_tests::fake_services::FakeServices;
use sched_tests::stock;
use std::sync::Arc;
use std::sync::atomic::Ordering::*;

/// CPU workers, then CUDA workers.
const ARCHS: [Arch; 4] = [Arch::CPU, Arch::CPU, Arch::CPU, Arch::CUDA];

/// Bits of architectures, and a priority.
type Spec = (u32, i32);

/// What is done to a tree.
#[derive(Clone, Debug)]
enum Act {
    /// The program, or a task that a worker executes, submits a ready task.
    Submit(Option<usize>, Spec),
    /// A worker ends a task, which makes these ready, and looks for the next one.
    End(usize, Vec<Spec>),
}

fn act(most: i32) -> impl Strategy<Value = Act> {
    let cpu_or_both = || prop_oneof![4 => Just(0b11), 2 => Just(0b01), 1 => Just(0b10)];
    let spec = move || (cpu_or_both(), 0..=most);
    prop_oneof![
        (prop::option::of(0..ARCHS.len()), spec()).prop_map(|(by, spec)| Act::Submit(by, spec)),
        (0..ARCHS.len(), prop::collection::vec(spec(), 0..4)).prop_map(|(worker, ready)| Act::End(worker, ready)),
    ]
}

/// A tree on which acts are played.
struct Play {
    tree: Tree,
    ledger: Arc<Ledger>,
    pushed: u32,
    /// Number of tasks that came straight back.
    kept: usize,
}

impl Play {
    fn new(root: &'static str) -> Play {
        let (registry, teams) = (stock::registry(Vec::new()), Vec::new());
        let mut maker = Maker { registry, without: None, parts: Vec::new(), workers: 0, teams };
        maker.add(&Shape::Of(root, 0, vec![Shape::Worker; ARCHS.len()]));
        let services = Arc::new(FakeServices::new(ARCHS.len()).with_busy_times(ARCHS.len()));
        let workers = ARCHS.map(|arch| WorkerFacts { arch, ..WorkerFacts::CPU });
        let ledger = Arc::new(Ledger::new());
        ledger.grow();
        let tree = Tree::assemble(maker.parts, &workers, services, Arc::clone(&ledger), 7);
        Play { tree, ledger, pushed: 0, kept: 0 }
    }

    fn task(&mut self, (archs, priority): Spec) -> &'static Slot {
        let slot = self.ledger.slot(SlotId(self.pushed));
        self.pushed += 1;
        let head = slot.head();
        head.reset();
        head.sequence.store(self.pushed.into(), Relaxed);
        head.archs.store(archs, Relaxed);
        head.priority.store(priority, Relaxed);
        slot.set_phase(Phase::Waiting);
        slot
    }

    /// Returns the task that a worker goes on with, or gets from its pull: what it would have gone on with is pushed
    /// last then.
    fn act(&mut self, act: &Act, with: bool) -> Option<u32> {
        match act {
            Act::Submit(by, spec) => {
                let slot = self.task(*spec);
                self.tree.push(slot, by.map(|worker| WorkerId(worker as u32)), None);
                None
            }
            Act::End(worker, ready) => {
                let id = WorkerId(*worker as u32);
                let mut deferred = DeferredWake::default();
                for spec in ready {
                    let slot = self.task(*spec);
                    let pushed = match self.tree.comes_straight_back(slot, ARCHS[*worker]) {
                        true => [deferred.keep(slot, false), None],
                        false => [deferred.take_kept(), Some(slot)],
                    };
                    pushed.into_iter().flatten().for_each(|slot| self.tree.push(slot, Some(id), None));
                }
                let kept = deferred.take_kept();
                if with && let Some(kept) = kept {
                    self.kept += 1;
                    return Some(kept.id().0);
                }
                kept.into_iter().for_each(|slot| self.tree.push(slot, Some(id), None));
                self.tree.pull(id).map(|slot| slot.id().0)
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, ..ProptestConfig::default() })]

    #[test]
    fn a_worker_goes_on_with_what_its_pull_would_have_given(
        // With priorities, and without.
        acts in prop_oneof![prop::collection::vec(act(0), 1..60), prop::collection::vec(act(2), 1..60)],
    ) {
        let (mut with, mut without) = (Play::new("work-stealing"), Play::new("work-stealing"));
        for (number, act) in acts.iter().enumerate() {
            let pulled = (with.act(act, true), without.act(act, false));
            prop_assert_eq!(pulled.0, pulled.1, "act {}: {:?}", number, act);
        }
        prop_assert_eq!(without.kept, 0);
    }
}

#[test]
fn nothing_comes_back_where_the_tree_may_have_a_more_urgent_task_or_does_not_declare_it() {
    let mut play = Play::new("work-stealing");
    let end = |play: &mut Play, spec: Spec| {
        let before = play.kept;
        let pulled = play.act(&Act::End(0, vec![spec]), true);
        (pulled, play.kept > before)
    };
    assert_eq!(end(&mut play, (0b11, 0)), (Some(0), true));
    // For workers of another architecture.
    assert_eq!(end(&mut play, (0b10, 0)), (None, false));
    assert_eq!(end(&mut play, (0b01, 0)), (Some(2), true));
    assert_eq!(end(&mut play, (0b01, 5)), (Some(3), false));
    // From now on one with a priority might be there.
    assert_eq!(end(&mut play, (0b01, 0)), (Some(4), false));
    let mut queue = Play::new("heteroprio");
    assert_eq!(end(&mut queue, (0b11, 0)), (Some(0), false));
}

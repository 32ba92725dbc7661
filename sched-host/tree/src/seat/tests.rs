//! A worker whose contexts change. (`tests/tests/seat.rs` has the others.)

use super::*;
use crate::tests::{Awake, Keeper, facts, part, tasks};
use crate::{Ledger, Part};
use sched_core::{Arch, adapt};
use std::sync::atomic::Ordering::Relaxed;

/// Worker 0, with one context at a time.
struct Mover {
    seat: Seat<Arc<Tree>>,
    deferred: DeferredWake,
    context: Arc<Tree>,
    version: u64,
    combined: CombinedWorkers<()>,
}

impl Seated for Mover {
    type Context = Arc<Tree>;
    type Purpose = ();

    fn seat(&mut self) -> &mut Seat<Arc<Tree>> {
        &mut self.seat
    }

    fn deferred(&mut self) -> &mut DeferredWake {
        &mut self.deferred
    }

    fn version(&self) -> u64 {
        self.version
    }

    fn served(&mut self) -> Vec<Arc<Tree>> {
        vec![Arc::clone(&self.context)]
    }

    fn combined(&self) -> Option<&CombinedWorkers<()>> {
        Some(&self.combined)
    }

    fn wake(&self, _worker: WorkerId) {}

    fn wake_any(&self, _suits: impl Fn(WorkerId) -> bool) {}

    fn is_like(&self, _other: WorkerId) -> bool {
        true
    }

    fn purpose(&mut self, _slot: &'static Slot, _combined: WorkerId) {}
}

#[test]
fn a_task_that_a_worker_would_go_on_with_stays_in_its_context_when_the_worker_leaves_that() {
    let (ledger, pair) = (Arc::new(Ledger::new()), || vec![Box::from([WorkerId(0), WorkerId(1)])]);
    let tree = |parts: Vec<Part>| {
        let services = Arc::new(Awake { combined: pair(), ..Awake::new(2) });
        Arc::new(Tree::assemble(parts, &facts(&[Arch::CPU; 2]), services, Arc::clone(&ledger), 0))
    };
    let keeper = |path, children: &[u32], workers: &[u32]| part(path, adapt(Keeper::default()), children, workers);
    let alone = tree(vec![keeper("root", &[1, 2], &[0, 1]), keeper("one", &[], &[0]), keeper("other", &[], &[1])]);
    let together = tree(vec![keeper("root", &[1], &[2]), keeper("both", &[], &[2])]);
    let mut worker = Mover {
        seat: Seat::new(WorkerId(0)),
        deferred: DeferredWake::default(),
        context: Arc::clone(&alone),
        version: 1,
        combined: CombinedWorkers::new(2, &pair()),
    };
    assert!(worker.look().is_none());
    let tasks = tasks(&ledger, 2);
    assert!(worker.deferred.keep(tasks[0], false).is_none());
    // It moves to a context with a parallel task, which its team may execute now.
    (worker.context, worker.version) = (Arc::clone(&together), 2);
    worker.combined.begin_use();
    tasks[1].head().width.store(2, Relaxed);
    worker.combined.note_pushed(tasks[1]);
    together.push(tasks[1], None, None);
    assert!(matches!(worker.look(), Some(Work::Together(_))));
    assert_eq!(alone.pull(WorkerId(1)).map(Slot::id), Some(tasks[0].id()));
}

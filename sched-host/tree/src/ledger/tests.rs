use super::*;
use crate::tests::Awake;
use std::sync::mpsc::channel;
use std::thread;

// What this test is for shows under Miri: CONTRIBUTING.md has the command.
#[test]
fn a_handle_leads_to_the_whole_slot() {
    let ledger = Ledger::new();
    let slot = &ledger.grow()[5];
    slot.renew(Phase::Waiting);
    let (entered, held) = (slot.enter(NodeNumber(3)), slot.handle());
    for handle in [entered, held] {
        let found = Slot::of(handle).expect("the handle is of the current generation");
        assert_eq!((found.id(), found.phase()), (SlotId(5), Phase::InTree(NodeNumber(3))));
        assert!(std::ptr::eq(found.home.load(Acquire), ledger.home));
    }
    slot.renew(Phase::Running);
    assert!(Slot::of(entered).is_none(), "the handle is stale");
}

#[test]
fn a_dropped_task_is_not_lost_where_its_component_moves_at_the_same_time() {
    let ledger = Ledger::new();
    let restrictions = Arc::clone(&ledger.restrictions);
    let fallback = Arc::new(Fallback::new(Arc::new([]), Arc::new(Awake::new(1)), restrictions));
    let first = ledger.take_numbers(2, Arc::clone(&fallback)).expect("there are numbers");
    let (from, to) = (first.of(NodeId(0)), first.of(NodeId(1)));
    let slot = &ledger.grow()[0];
    slot.enter(from);
    let (begun, begins) = channel();
    thread::scope(|scope| {
        let trees = ledger.home.trees.lock();
        scope.spawn(move || {
            begun.send(()).expect("the other end is there");
            lost(slot.handle());
        });
        begins.recv().expect("it begins");
        // Enough for it to come to the lock. It finds the task as well if it has not come to that.
        (0..10_000).for_each(|_| thread::yield_now());
        slot.move_with(from, to);
        drop(trees);
    });
    assert_eq!((slot.phase(), fallback.len()), (Phase::Fallback, 1));
}

use super::*;

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

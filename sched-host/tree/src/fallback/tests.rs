use super::*;
use crate::tests::tasks;
use crate::{Ledger, SlotId};
use sched_core::Arch;

fn numbers(slots: &[&Slot]) -> Vec<u32> {
    slots.iter().map(|slot| slot.id().0).collect()
}

/// Tasks for devices, and behind them one for cores after each two that can run anywhere.
fn stored(ledger: &Ledger) -> Stored {
    let mut stored = Stored::default();
    for (number, slot) in tasks(ledger, 900).into_iter().enumerate() {
        let archs: &[Arch] = match number {
            0..600 => &[Arch::CUDA],
            _ if number % 3 == 2 => &[Arch::CPU],
            _ => &[Arch::CPU, Arch::CUDA],
        };
        slot.head().archs.store(archs.iter().fold(0, |bits, arch| bits | 1 << arch.number()), Relaxed);
        stored.put(slot);
    }
    stored
}

#[test]
fn a_worker_looks_at_one_task_of_each_kind() {
    let ledger = Ledger::new();
    let mut stored = stored(&ledger);
    let (mut looks, mut taken) = (0, Vec::new());
    while let Some(slot) = stored.take(|slot| {
        looks += 1;
        slot.head().archs.load(Relaxed) & 1 << Arch::CPU.number() != 0
    }) {
        taken.push(slot);
    }
    assert_eq!(numbers(&taken), (600..900).collect::<Vec<_>>(), "in order of arrival");
    assert!(looks <= 3 * 301, "{looks} looks");
    assert_eq!((stored.len, stored.take(|_| true).map(Slot::id)), (600, Some(SlotId(0))));
}

#[test]
fn all_tasks_are_in_order_of_arrival() {
    let ledger = Ledger::new();
    let mut stored = stored(&ledger);
    assert_eq!(numbers(&stored.all()), (0..900).collect::<Vec<_>>());
    let everything: Vec<_> = std::iter::from_fn(|| stored.take(|_| true)).collect();
    assert_eq!(numbers(&everything), (0..900).collect::<Vec<_>>());
    assert!(stored.len == 0 && stored.queues.is_empty());
}

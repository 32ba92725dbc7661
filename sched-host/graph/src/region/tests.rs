//! Parts and their order, against elements one by one.

use super::*;
use proptest::prelude::*;
use std::collections::BTreeSet;

const SIDE: usize = 6;

fn range() -> impl Strategy<Value = Range<usize>> {
    (0..SIDE, 1..=SIDE).prop_map(|(start, length)| start..(start + length).min(SIDE))
}

fn region() -> impl Strategy<Value = Region> {
    (range(), range()).prop_map(|(rows, columns)| Region { rows, columns })
}

fn elements(region: &Region) -> BTreeSet<(usize, usize)> {
    region.rows.clone().flat_map(|row| region.columns.clone().map(move |column| (row, column))).collect()
}

fn mode() -> impl Strategy<Value = AccessMode> {
    use AccessMode::{Commute, Read, ReadWrite, Write};
    prop::sample::select(vec![Read, Read, Write, ReadWrite, Commute])
}

proptest! {
    #[test]
    fn regions_are_sets_of_elements(a in region(), b in region()) {
        let (these, those) = (elements(&a), elements(&b));
        prop_assert_eq!(elements(&a.intersection(&b)), these.intersection(&those).copied().collect());
        prop_assert_eq!(a.overlaps(&b), !these.is_disjoint(&those));
        prop_assert_eq!(a.contains(&b), these.is_superset(&those));
        let pieces: Vec<Region> = a.minus(&b).collect();
        prop_assert_eq!(pieces.iter().map(Region::len).sum::<usize>(), these.difference(&those).count());
        let together: BTreeSet<(usize, usize)> = pieces.iter().flat_map(elements).collect();
        prop_assert_eq!(together, these.difference(&those).copied().collect());
    }

    /// Tasks end while others are submitted; parts are added and removed.
    // Longer than 60 lines: an arm for each kind of step, and all change the same state.
    #[test]
    fn a_task_waits_for_all_that_conflict_with_it(
        steps in prop::collection::vec((any::<prop::sample::Index>(), mode(), region(), 0..6u8), 1..60),
    ) {
        let whole = Region { rows: 0..SIDE, columns: 0..SIDE };
        let mut order: RegionOrder<usize> = RegionOrder::new(whole);
        let mut parts = vec![PartId::WHOLE];
        // Each task: what it uses, how, and all that it waits for, directly or not.
        let mut tasks: Vec<(Region, AccessMode, PartId, BTreeSet<usize>)> = Vec::new();
        let mut ended = BTreeSet::new();
        for (index, mode, region, what) in steps {
            let part = *index.get(&parts);
            match what {
                0 => {
                    let of = order.region(part).clone();
                    let inside = region.intersection(&of);
                    let half = inside.rows.start + inside.rows.len() / 2;
                    let lower = Region { rows: half..inside.rows.end, columns: inside.columns.clone() };
                    parts.extend(order.add(part, &[inside, lower]));
                }
                1 if part != PartId::WHOLE => {
                    // As the runtime does it: what uses the part has ended.
                    let mut users: Vec<usize> = (0..tasks.len()).filter(|task| tasks[*task].2 == part).collect();
                    while let Some(user) = users.pop() {
                        if ended.insert(user) {
                            users.extend(tasks[user].3.iter().copied());
                        }
                    }
                    order.remove(part);
                    parts.retain(|other| *other != part);
                }
                2 => {
                    let free = |task: &usize| tasks[*task].3.is_subset(&ended);
                    if let Some(task) = (0..tasks.len()).find(|task| !ended.contains(task) && free(task)) {
                        ended.insert(task);
                    }
                }
                _ => {
                    let task = tasks.len();
                    let mut direct = BTreeSet::new();
                    let wait = |before| {
                        let waits = !ended.contains(&before);
                        if waits {
                            direct.insert(before);
                        }
                        waits
                    };
                    order.access(task, part, mode, wait, |before| ended.contains(&before));
                    let region = order.region(part).clone();
                    let conflicts = |(other, how, of, _): &(Region, AccessMode, PartId, BTreeSet<usize>)| {
                        let commute = (mode, *how) == (AccessMode::Commute, AccessMode::Commute) && *of == part;
                        let is_empty = other.is_empty() || region.is_empty();
                        let near = other.overlaps(&region) || *of == part || (is_empty && [*of, part].contains(&PartId::WHOLE));
                        near && (mode.writes() || how.writes()) && !commute
                    };
                    let expected: BTreeSet<usize> =
                        (0..task).filter(|other| !ended.contains(other) && conflicts(&tasks[*other])).collect();
                    prop_assert!(direct.is_subset(&expected), "task {} waits for what does not concern it", task);
                    let mut reached: BTreeSet<usize> = direct.iter().flat_map(|before| tasks[*before].3.clone()).collect();
                    reached.extend(&direct);
                    prop_assert!(expected.is_subset(&reached), "task {} overtakes one of {:?}", task, expected);
                    tasks.push((region, mode, part, reached));
                }
            }
        }
    }
}

#[test]
fn a_part_as_large_as_the_whole_does_not_hide_it_from_parts_without_elements() {
    let range = |rows| Region { rows, columns: 0..1 };
    let mut order = RegionOrder::new(range(0..6));
    let [all, nothing] = order.add(PartId::WHOLE, &[range(0..6), range(3..3)])[..] else { panic!("two parts") };
    let mut before = |task, part, mode| {
        let mut before = BTreeSet::new();
        let note = |other| {
            before.insert(other);
            true
        };
        order.access(task, part, mode, note, |_| false);
        before
    };
    assert_eq!(before("make", PartId::WHOLE, AccessMode::Write), BTreeSet::new());
    assert_eq!(before("change", all, AccessMode::Write), BTreeSet::from(["make"]));
    assert_eq!(before("look", nothing, AccessMode::Read), BTreeSet::from(["make"]));
    assert_eq!(before("show", PartId::WHOLE, AccessMode::Write), BTreeSet::from(["make", "change", "look"]));
}

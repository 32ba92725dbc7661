use super::*;
use proptest::collection::{btree_set, vec};
use proptest::prelude::*;
use std::collections::BTreeSet;

fn of(members: &BTreeSet<u32>) -> WorkerSet {
    members.iter().copied().map(WorkerId).collect()
}

fn listed(set: &WorkerSet) -> Vec<u32> {
    set.iter().map(|worker| worker.0).collect()
}

proptest! {
    #[test]
    fn it_does_what_a_set_does(steps in vec((any::<bool>(), 0u32..200), 0..100)) {
        let (mut set, mut model) = (WorkerSet::new(), BTreeSet::new());
        for (insert, worker) in steps {
            if insert {
                prop_assert_eq!(set.insert(WorkerId(worker)), model.insert(worker));
            } else {
                prop_assert_eq!(set.remove(WorkerId(worker)), model.remove(&worker));
            }
            prop_assert_eq!(set.len(), model.len());
            prop_assert_eq!(set.is_empty(), model.is_empty());
            prop_assert_eq!(set.contains(WorkerId(worker)), insert);
        }
        prop_assert_eq!(listed(&set), model.iter().copied().collect::<Vec<_>>());
        // Trailing empty words make no difference.
        prop_assert_eq!(&set, &of(&model));
        prop_assert_eq!(&WorkerSet::from_words(set.words()), &set);
    }

    #[test]
    fn two_sets_combine(a in btree_set(0u32..200, 0..40), b in btree_set(0u32..200, 0..40)) {
        let (mut union, mut both) = (of(&a), of(&a));
        union.union_with(&of(&b));
        both.intersect_with(&of(&b));
        prop_assert_eq!(listed(&union), a.union(&b).copied().collect::<Vec<_>>());
        prop_assert_eq!(listed(&both), a.intersection(&b).copied().collect::<Vec<_>>());
        prop_assert_eq!(of(&a) == of(&b), a == b);
        prop_assert_eq!(of(&a).is_subset(&of(&b)), a.is_subset(&b));
        prop_assert!(both.is_subset(&union));
    }
}

#[test]
fn architectures_have_names() {
    for number in 0..32 {
        let arch = Arch::new(number).expect("below 32");
        assert_eq!(Arch::from_name(&arch.to_string()), Some(arch));
    }
    assert_eq!([Arch::new(32), Arch::from_name("arch3"), Arch::from_name("gpu")], [None; 3]);
    let set: ArchSet = [Arch::CUDA, Arch::CPU].into_iter().collect();
    assert_eq!(format!("{set:?}"), r#"{"cpu", "cuda"}"#);
    assert!(set.contains(Arch::CUDA) && !set.contains(Arch::HIP) && !ArchSet::EMPTY.intersects(set));
}

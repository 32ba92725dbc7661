use std::collections::BTreeSet;
use std::error::Error;

use hwlocality::cpu::binding::CpuBindingFlags;
use proptest::prelude::*;

use super::restricted;
use crate::topology::{BindingError, BindingPlan, BindingWarning, Level, Neighbour, Surroundings, Topology};

fn pus(plan: &BindingPlan) -> Vec<u32> {
    plan.workers().iter().map(|place| place.pu).collect()
}

#[test]
fn cores_are_used_before_hyperthreads() -> Result<(), Box<dyn Error>> {
    let machine = Topology::from_synthetic("node:2 core:2 pu:2")?;
    assert_eq!(pus(&BindingPlan::new(&machine, 3)?), [0, 2, 4]);
    let full = BindingPlan::new(&machine, BindingPlan::default_workers(&machine))?;
    assert_eq!(pus(&full), [0, 2, 4, 6, 1, 3, 5, 7]);
    let nodes: Vec<_> = full.workers().iter().filter_map(|place| place.numa).collect();
    assert_eq!(nodes, [0, 0, 1, 1, 0, 0, 1, 1]);
    let cores: Vec<_> = full.workers().iter().filter_map(|place| place.core).collect();
    assert_eq!(cores, [0, 1, 2, 3, 0, 1, 2, 3]);
    assert!(full.warnings().is_empty());
    Ok(())
}

#[test]
fn pus_without_workers_are_free_those_of_whole_cores_first() -> Result<(), Box<dyn Error>> {
    let machine = Topology::from_synthetic("node:2 core:2 pu:2")?;
    let free = |workers: usize, numa| BindingPlan::new(&machine, workers).map(|plan| plan.free_pus(numa));
    assert_eq!(free(1, None)?, [2, 3, 4, 5, 6, 7]);
    assert_eq!((free(1, Some(0))?, free(1, Some(1))?), (vec![2, 3], vec![4, 5, 6, 7]));
    // Node 0 has no whole core left.
    assert_eq!(free(3, Some(0))?, [6, 7]);
    // Second hardware threads only.
    assert_eq!((free(4, None)?, free(5, Some(0))?), (vec![1, 3, 5, 7], vec![3]));
    assert_eq!((free(8, None)?, free(9, Some(0))?), (vec![], vec![]));
    Ok(())
}

#[test]
fn the_threads_of_devices_have_pus_of_their_own_by_default() -> Result<(), Box<dyn Error>> {
    let workers = |machine: &str, devices: usize| {
        Topology::from_synthetic(machine).map(|machine| BindingPlan::default_workers_beside(&machine, devices))
    };
    assert_eq!((workers("pu:4", 0)?, workers("pu:4", 1)?, workers("pu:4", 3)?), (4, 3, 1));
    assert_eq!((workers("pu:4", 4)?, workers("pu:4", 9)?), (1, 1), "the cores have one left in any case");
    Ok(())
}

#[test]
fn a_machine_without_cores_is_used_pu_by_pu() -> Result<(), Box<dyn Error>> {
    let machine = Topology::from_synthetic("pu:3")?;
    assert_eq!(pus(&BindingPlan::new(&machine, 3)?), [0, 1, 2]);
    Ok(())
}

#[test]
fn more_workers_than_pus_share_them_with_a_warning() -> Result<(), Box<dyn Error>> {
    let machine = Topology::from_synthetic("core:3 pu:1")?;
    let plan = BindingPlan::new(&machine, 5)?;
    assert_eq!(pus(&plan), [0, 1, 2, 0, 1]);
    assert_eq!(plan.workers_on(1), [1, 4]);
    assert_eq!(plan.warnings(), [BindingWarning::Oversubscribed { workers: 3..5, pus: 3 }]);
    let shared: Vec<bool> = plan.workers().iter().map(|place| place.shared).collect();
    assert_eq!(shared, [true, true, false, true, true]);
    Ok(())
}

#[test]
fn forbidden_pus_are_not_used_and_their_absence_is_told() -> Result<(), Box<dyn Error>> {
    let plan = BindingPlan::new(&restricted(), 4)?;
    assert_eq!(pus(&plan), [0, 2, 1, 3]);
    assert_eq!(plan.warnings(), [BindingWarning::Restricted { allowed: 4, machine: 8 }]);
    Ok(())
}

#[test]
fn warnings_read_well() {
    let reported = [
        BindingWarning::Oversubscribed { workers: 2..8, pus: 2 },
        BindingWarning::Oversubscribed { workers: 2..3, pus: 2 },
        BindingWarning::Restricted { allowed: 4, machine: 8 },
        BindingWarning::Redirected,
        BindingWarning::Quota { thousandths: 1500, pus: 4 },
        BindingWarning::Quota { thousandths: 2000, pus: 4 },
        BindingWarning::Neighbour { process: 4711, same_process: false, pus: vec![0, 1, 2, 5] },
        BindingWarning::Neighbour { process: 4711, same_process: true, pus: vec![3] },
    ]
    .map(|warning| warning.to_string())
    .join("\n");
    insta::assert_snapshot!(reported, @"
    oversubscribed: workers 2-7 share PUs with other workers, because only 2 may be used; timings and performance models will be unreliable (use at most 2 workers)
    oversubscribed: worker 2 shares its PU with other workers, because only 2 may be used; timings and performance models will be unreliable (use at most 2 workers)
    restricted: this process may use 4 of the machine's 8 PUs (affinity mask or cgroup)
    redirected: HWLOC_XMLFILE or HWLOC_SYNTHETIC makes hwloc describe another machine than this one, so no thread can be bound (unset the variable)
    quota: the control group allows this process the time of 1.5 PUs, and the workers run on 4; it will stop all of them repeatedly, and timings and performance models will be unreliable (use at most 1 worker)
    quota: the control group allows this process the time of 2 PUs, and the workers run on 4; it will stop all of them repeatedly, and timings and performance models will be unreliable (use at most 2 workers)
    shared: workers of another runtime, of process 4711, are bound to PUs 0-2, 5, which are to be used here too; they will take turns, and timings and performance models will be unreliable (give each runtime PUs of its own, with `taskset` for example)
    shared: workers of another runtime of this process are bound to PU 3, which is to be used here too; they will take turns, and timings and performance models will be unreliable (give each runtime PUs of its own, with `taskset` for example)
    ");
}

#[test]
fn a_plan_for_nobody_is_an_error() -> Result<(), Box<dyn Error>> {
    let machine = Topology::from_synthetic("pu:2")?;
    assert_eq!(BindingPlan::new(&machine, 0).err(), Some(BindingError::NoWorkers));
    Ok(())
}

#[test]
fn nobody_is_bound_by_a_plan_for_another_machine() -> Result<(), Box<dyn Error>> {
    let machine = Topology::from_synthetic("pu:2")?;
    let plan = BindingPlan::new(&machine, 2)?;
    let error = plan.bind_current_thread(0).expect_err("a synthetic machine has no threads");
    insta::assert_snapshot!(error, @r#"worker 0 cannot be bound: the plan is for synthetic topology "pu:2", not for this machine"#);
    let error = plan.bind_current_thread(2).expect_err("there are two workers");
    insta::assert_snapshot!(error, @"worker 2 does not exist: the plan is for 2 workers, numbered from 0");
    Ok(())
}

#[test]
fn binding_moves_the_calling_thread_and_no_other() -> Result<(), Box<dyn Error>> {
    let machine = Topology::this_machine()?;
    if !machine.is_this_machine() {
        return Ok(()); // HWLOC_SYNTHETIC and the like are set.
    }
    let plan = BindingPlan::new(&machine, BindingPlan::default_workers(&machine))?;
    let hwloc = machine.hwloc.as_ref().expect("hwloc explored it");
    let mine = || hwloc.cpu_binding(CpuBindingFlags::THREAD).map(|set| set.to_string());
    let before = mine()?;
    for place in plan.workers() {
        let bound = std::thread::scope(|scope| {
            let bind = || plan.bind_current_thread(place.worker).map(|()| mine());
            scope.spawn(bind).join().expect("binding does not panic")
        })??;
        assert_eq!(bound, format!("CpuSet({})", place.pu));
    }
    assert_eq!(mine()?, before);
    Ok(())
}

/// Levels in an order that hwloc accepts, each present or not.
fn machine() -> impl Strategy<Value = Topology> {
    let count = || prop::option::of(1_u32..4);
    (count(), count(), count(), count(), 1_u32..4).prop_map(|(package, l3, l2, core, pu)| {
        let levels = [("package", package), ("l3", l3), ("l2", l2), ("core", core), ("pu", Some(pu))];
        let words: Vec<String> = levels.iter().filter_map(|(name, n)| n.map(|n| format!("{name}:{n}"))).collect();
        Topology::from_synthetic(&words.join(" ")).expect("the levels are in order")
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn workers_that_fit_have_a_pu_each_and_a_core_each_if_these_suffice(
        machine in machine(),
        fraction in 0.0..1.0,
    ) {
        let workers = 1 + (machine.pus().len() as f64 * fraction) as usize;
        let plan = BindingPlan::new(&machine, workers).expect("one worker or more");
        let distinct: BTreeSet<u32> = pus(&plan).into_iter().collect();
        prop_assert_eq!(distinct.len(), workers);
        prop_assert!(distinct.iter().all(|pu| machine.allowed_pus().contains(pu)));
        prop_assert!(plan.workers().iter().all(|place| !place.shared));
        let cores = machine.level(Level::Core).len();
        let used: BTreeSet<_> = plan.workers().iter().filter_map(|place| place.core).collect();
        prop_assert_eq!(used.len(), workers.min(cores));
    }

    #[test]
    fn shared_pus_are_shared_evenly(machine in machine(), workers in 1_usize..500) {
        let plan = BindingPlan::new(&machine, workers).expect("one worker or more");
        let least = workers / machine.pus().len();
        for &pu in machine.pus() {
            let here = plan.workers_on(pu).len();
            prop_assert!(here == least || here == least + 1, "{here} workers on PU {pu}");
        }
        let oversubscribed = !plan.warnings().is_empty();
        prop_assert_eq!(oversubscribed, workers > machine.pus().len());
    }
}

#[test]
fn a_quota_and_a_neighbour_are_warned_of_where_they_meet_the_plan() -> Result<(), Box<dyn Error>> {
    let machine = Topology::this_machine()?;
    if !machine.is_this_machine() {
        return Ok(()); // HWLOC_SYNTHETIC and the like are set.
    }
    let mut plan = BindingPlan::new(&machine, 1)?;
    let before = plan.warnings().len();
    let pu = plan.workers()[0].pu;
    let neighbour = |process, pus| Neighbour { process, pus };
    let here = std::process::id();
    let neighbours = vec![neighbour(here, vec![pu]), neighbour(here + 1, vec![pu, 9999]), neighbour(1, vec![9999])];
    plan.warn_of(&Surroundings { quota: Some(999), neighbours });
    let expected = [
        BindingWarning::Quota { thousandths: 999, pus: 1 },
        BindingWarning::Neighbour { process: here, same_process: true, pus: vec![pu] },
        BindingWarning::Neighbour { process: here + 1, same_process: false, pus: vec![pu] },
    ];
    assert_eq!(plan.warnings()[before..], expected);

    let mut enough = BindingPlan::new(&machine, 1)?;
    enough.warn_of(&Surroundings { quota: Some(1000), neighbours: vec![neighbour(1, vec![9999])] });
    assert_eq!(enough.warnings().len(), before);

    let mut elsewhere = BindingPlan::new(&Topology::from_synthetic("pu:2")?, 2)?;
    elsewhere.warn_of(&Surroundings { quota: Some(1), neighbours: vec![neighbour(1, vec![0, 1])] });
    assert_eq!((elsewhere.warnings(), elsewhere.claim().is_none()), (&[][..], true), "it is not for this machine");
    Ok(())
}

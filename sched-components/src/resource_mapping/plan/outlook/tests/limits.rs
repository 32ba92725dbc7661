//! Plans where not all data fits into a memory.

use super::*;
use sched_core::{Passage, Route};
use std::time::Duration;

/// Bytes of each piece of data, each of which takes as many nanoseconds on its way from or to a device.
const BYTES: u64 = 10;

/// Main memory and two devices of this capacity, where an allocation takes so long, a lane for each of the three, and
/// tasks of this length behind these, with these accesses to that number of pieces of data.
pub(in crate::resource_mapping::plan) fn devices(
    length: u64,
    before: &[Vec<usize>],
    uses: &[Vec<Use>],
    data: usize,
    capacity: u64,
    allocation: u64,
) -> Outlook {
    let (count, memories) = (before.len(), 3);
    let mut outlook = graph(&vec![vec![length; memories]; count], before, &[NOW; 3]);
    outlook.memories = memories;
    outlook.lanes.iter_mut().enumerate().for_each(|(number, lane)| lane.memory = number);
    let route = |(from, to): (u32, u32)| {
        let links = if from == to { vec![] } else { vec![Passage { link: from * 3 + to, per_byte: 1.0 }] };
        let allocation = Duration::from_nanos(if to == 0 { 0 } else { allocation });
        Route { links, allocation, ..Route::default() }
    };
    let pairs = || (0..3).flat_map(|from| (0..3).map(move |to| (from, to)));
    outlook.network = Arc::new(Network::over(memories, &pairs().map(route).collect::<Vec<_>>()));
    outlook.traffic = outlook.network.quiet();
    outlook.flows = Flows::quiet(&outlook.network);
    outlook.is_close = true;
    outlook.transfers = pairs().map(|(from, to)| if from == to { 0 } else { BYTES }).collect();
    outlook.nearest = (0..3).flat_map(|to| [to, (to + 1) % 3, (to + 2) % 3]).collect();
    (outlook.size_of, outlook.bytes) = (vec![0; data], vec![BYTES; data]);
    outlook.copies = (0..data).flat_map(|_| [NOW, NEVER, NEVER]).collect();
    outlook.allocated = (0..data).flat_map(|_| [true, false, false]).collect();
    outlook.uses = uses.concat();
    let mut first = 0;
    let of = |uses: &Vec<Use>| {
        first += uses.len();
        first - uses.len()..first
    };
    outlook.uses_of = uses.iter().map(of).collect();
    let limit = Some(capacity).filter(|capacity| *capacity < BYTES * data as u64);
    outlook.replicas = Replicas::new(data, vec![None, limit, limit]);
    outlook.squads = Squads::new(&outlook);
    outlook
}

/// A piece of data out of six, and whether a task reads it, and writes it.
type Access = (usize, bool, bool);

/// The accesses of up to that number of tasks.
pub(in crate::resource_mapping::plan) fn accesses(tasks: usize) -> impl Strategy<Value = Vec<Vec<Access>>> {
    prop::collection::vec(prop::collection::vec((0..6_usize, any::<bool>(), any::<bool>()), 0..4), 1..tasks)
}

pub(in crate::resource_mapping::plan) fn uses(accesses: &[Vec<Access>]) -> Vec<Vec<Use>> {
    let access = |(data, reads, writes): &Access| Use { data: *data, reads: *reads, writes: *writes };
    accesses.iter().map(|accesses| accesses.iter().map(access).collect()).collect()
}

/// The starts and ends of tasks of 5 ns on one device, in this order, if they read these pieces of data, and the first
/// writes its own too or not.
fn on_one_device(read: &[usize], writes: bool, capacity: u64) -> Vec<(u64, u64)> {
    let access =
        |(number, data): (usize, &usize)| vec![Use { data: *data, reads: true, writes: writes && number == 0 }];
    let uses: Vec<Vec<Use>> = read.iter().enumerate().map(access).collect();
    let outlook = devices(5, &vec![vec![]; read.len()], &uses, 3, capacity, 0);
    let mut realised = Schedule::default();
    realised.realise(&outlook, &in_turn(&vec![1; read.len()]), NEVER - 1, &mut Scratch::default());
    realised.starts.iter().zip(&realised.ends).map(|(start, end)| (start - NOW, end - NOW)).collect()
}

#[test]
fn what_was_evicted_comes_again() {
    let of = |capacity| on_one_device(&[0, 1, 0], false, capacity);
    assert_eq!(of(30), [(10, 15), (20, 25), (25, 30)]);
    assert_eq!(of(20), [(10, 15), (20, 25), (25, 30)]);
    // The second has room when the first ends, and the third when the second does.
    assert_eq!(of(10), [(10, 15), (25, 30), (40, 45)]);
}

#[test]
fn what_is_the_only_copy_is_written_home_first() {
    assert_eq!(on_one_device(&[0, 1, 0], true, 20), [(10, 15), (20, 25), (25, 30)]);
    assert_eq!(on_one_device(&[0, 1, 0], true, 10), [(10, 15), (35, 40), (50, 55)]);
}

#[test]
fn a_task_whose_data_never_fits_is_in_the_plan_all_the_same() {
    assert_eq!(on_one_device(&[0, 1], false, 5), [(10, 15), (25, 30)]);
}

proptest! {
    /// Plans are valid with any room, those that know what is evicted and those that do not.
    #[test]
    fn every_task_is_executed_whatever_is_evicted(
        accesses in accesses(40),
        follows in prop::collection::vec(any::<[prop::sample::Index; 2]>(), 40),
        lanes in prop::collection::vec(0..3_usize, 40),
        keys in prop::collection::vec(0..50_u8, 40),
        capacity in 0..60_u64,
        length in 1..30_u64,
        allocation in 0..9_u64,
        [evicts, hasty]: [bool; 2],
    ) {
        let count = accesses.len();
        let before = &before(&follows)[..count];
        let outlook = devices(length, before, &uses(&accesses), 6, capacity, allocation);
        let mut scratch = Scratch::default();
        let keys = keys[..count].iter().map(|key| f64::from(*key)).collect();
        let taste = Taste { haul: 1.0, at_once: true, shares: true, evicts, hasty, ..in_order(&outlook, keys) };
        let mut dispatched = Schedule::default();
        dispatched.dispatch(&outlook, &taste, NEVER - 1, &mut scratch);
        let planned = in_turn(&lanes[..count]);
        let mut plans = vec![dispatched.clone()];
        for plan in [&dispatched, &planned] {
            let mut realised = Schedule::default();
            realised.realise(&outlook, plan, NEVER - 1, &mut scratch);
            prop_assert_eq!(&realised.lanes, &plan.lanes);
            plans.push(realised);
        }
        for plan in plans {
            for task in 0..count {
                prop_assert_eq!(plan.ends[task] - plan.starts[task], length);
                let ready = before[task].iter().map(|before| plan.ends[*before]).fold(NOW, u64::max);
                prop_assert!(plan.starts[task] >= ready);
                for other in (0..task).filter(|other| plan.lanes[*other] == plan.lanes[task]) {
                    let follow = plan.ends[other] <= plan.starts[task] || plan.ends[task] <= plan.starts[other];
                    prop_assert!(follow, "{} and {} at once", other, task);
                }
            }
            prop_assert_eq!(plan.end, plan.ends.iter().copied().fold(NOW, u64::max));
        }
    }
}

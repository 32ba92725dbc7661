use super::super::coming::Coming;
use super::super::schedule::{Schedule, Scratch, Taste};
use super::*;

/// A lane for each of these classes of workers, each with a memory of its own, and one ready task, which takes so long
/// on each. The last memory owns what it writes.
fn one_task(lengths: &[u64]) -> Outlook {
    let lane = |number: usize| Lane {
        worker: WorkerId(number as u32),
        child: Child(number as u32),
        memory: number,
        class: number,
        free: 0,
    };
    let (count, owner) = (lengths.len(), lengths.len() - 1);
    let elsewhere = lengths[..owner].iter().min().copied().unwrap_or(NEVER);
    let mut outlook = Outlook {
        lanes: (0..count).map(lane).collect(),
        classes: count,
        memories: count,
        sequences: vec![0],
        lengths: lengths.to_vec(),
        kinds: vec![0],
        count_kinds: 1,
        works: vec![true],
        owners: vec![Some((owner, elsewhere as f64 / lengths[owner] as f64))],
        of_owner: (0..count).map(|lane| lane == owner).collect(),
        is_sent: vec![false],
        waits: vec![0],
        successors_of: vec![Range::default()],
        uses_of: vec![Range::default()],
        ..Outlook::default()
    };
    outlook.squads = Squads::new(&outlook);
    outlook
}

#[test]
fn a_task_keeps_its_lane_although_it_is_not_to_leave_the_owner_of_its_data_any_more() {
    // The first cannot execute it.
    let outlook = one_task(&[NEVER, 41, 10]);
    let keys = vec![0.0];
    let by_class = vec![0.0; 3];
    let taste = |owned| Taste {
        keys: keys.clone(),
        by_kind: by_class.clone(),
        by_task: by_class.clone(),
        owned,
        haul: 0.0,
        at_once: false,
        shares: false,
    };
    let place = |owned, fixed: Option<&[usize]>| {
        let mut schedule = Schedule::default();
        schedule.choose(&outlook, &taste(owned), fixed, &mut Scratch::default());
        (schedule.lanes[0], schedule.starts[0], schedule.ends[0])
    };
    assert_eq!(place(Some(4.0), None), (2, 0, 10));
    assert_eq!(place(Some(4.2), Some(&[1])), (1, 0, 41));
    assert_eq!(place(Some(4.0), Some(&[1])), (1, 0, 41));
}

#[test]
fn a_task_behind_any_number_of_others_that_take_no_time_is_about_to_be_pushed() {
    let count = 300_000;
    let mut outlook = Outlook {
        sequences: (0..count as u64).collect(),
        works: vec![false; count],
        is_sent: vec![false; count],
        waits: vec![1; count],
        successors: (1..count).collect(),
        successors_of: (0..count).map(|task| task..(task + 1).min(count - 1)).collect(),
        ..Outlook::default()
    };
    let last = count - 1;
    (outlook.works[0], outlook.works[last], outlook.waits[0]) = (true, true, 0);
    let mut starts = vec![0; count];
    starts[last] = 7;
    let mut coming = Coming::default();
    coming.plan(&outlook, &starts, |_| true);
    assert_eq!(coming.first(5), u64::MAX);
    coming.ended(0, 5);
    assert_eq!(coming.first(5), 7);
}

//! Plans where memory takes time to be allocated.

use super::limits::devices;
use super::*;

/// A piece of data that a task uses.
fn used(data: usize, reads: bool) -> Vec<Use> {
    vec![Use { data, reads, writes: true }]
}

/// The starts of tasks of 5 ns on these lanes, one after the other, if each of them writes data of its own, where an
/// allocation takes so long, and memory is limited or not: by the close prediction, and by the cheap one.
fn starts(lanes: &[usize], allocation: u64, reads: bool, capacity: u64) -> [Vec<u64>; 2] {
    let count = lanes.len();
    let uses: Vec<Vec<Use>> = (0..count).map(|data| used(data, reads)).collect();
    let outlook = devices(5, &vec![vec![]; count], &uses, count + 1, capacity, allocation);
    let times = vec![NOW; count];
    let plan = Schedule { lanes: lanes.to_vec(), starts: times.clone(), ends: times, ..Schedule::default() };
    let (mut close, mut cheap, mut scratch) = (Schedule::default(), Schedule::default(), Scratch::default());
    close.realise(&outlook, &plan, NEVER - 1, &mut scratch);
    cheap.follow(&outlook, &plan, NEVER - 1, &mut scratch);
    [close, cheap].map(|realised| realised.starts.iter().map(|start| start - NOW).collect())
}

#[test]
fn what_is_only_written_gets_memory_when_a_worker_takes_the_task() {
    // The second is taken when the first begins, and so on.
    let of = |allocation| starts(&[1, 1, 1], allocation, false, 1000);
    assert_eq!(of(0), [[0, 5, 10], [0, 5, 10]]);
    assert_eq!(of(3), [[3, 8, 13], [3, 8, 13]]);
    assert_eq!(of(7), [[7, 14, 21], [7, 14, 21]]);
    // Nor is there more of it ahead where memory is limited.
    assert_eq!(starts(&[1, 1, 1], 7, false, 30)[0], [7, 14, 21]);
}

#[test]
fn the_machine_makes_one_allocation_at_a_time() {
    assert_eq!(starts(&[1, 2, 0], 7, false, 1000), [[7, 14, 0], [7, 14, 0]]);
}

#[test]
fn what_is_read_gets_memory_when_it_is_fetched() {
    // The second task waits for its transfer of 10 ns, behind the first one.
    assert_eq!(starts(&[1, 1], 3, true, 1000), [[13, 23], [13, 23]]);
}

#[test]
fn tasks_count_with_allocations_when_they_choose_unless_they_are_hasty() {
    let choose = |hasty, count: usize| {
        let uses: Vec<Vec<Use>> = (0..count).map(|data| used(data, false)).collect();
        let mut outlook = devices(5, &vec![vec![]; count], &uses, count, 1000, 3);
        // The lane of main memory takes 7 ns.
        outlook.lengths.iter_mut().step_by(3).for_each(|length| *length = 7);
        outlook.squads = Squads::new(&outlook);
        let taste = Taste { at_once: true, shares: true, hasty, ..in_order(&outlook, vec![0.0; count]) };
        let mut plan = Schedule::default();
        plan.dispatch(&outlook, &taste, NEVER - 1, &mut Scratch::default());
        (plan.lanes, plan.end - NOW)
    };
    assert_eq!(choose(true, 1), (vec![1], 8));
    assert_eq!(choose(false, 1), (vec![0], 7));
    // On the second device there is memory after 6 ns, and after 9 if the first one is behind another.
    assert_eq!(choose(true, 3), (vec![1, 2, 0], 11));
    assert_eq!(choose(false, 3), (vec![0, 1, 2], 11));
}

/// Lines of tasks of 5 ns on two devices, each of which writes one piece of data again and again.
#[test]
fn one_line_goes_on_while_memory_is_allocated_for_the_next() {
    let (lines, steps) = (8, 6_usize);
    let number = |step: usize, line: usize| step * lines + line;
    let each = || (0..steps).flat_map(|step| (0..lines).map(move |line| (step, line)));
    let before: Vec<Vec<usize>> =
        each().map(|(step, line)| step.checked_sub(1).map(|last| number(last, line)).into_iter().collect()).collect();
    let uses: Vec<Vec<Use>> = each().map(|(step, line)| used(line, step > 0)).collect();
    let mut outlook = devices(5, &before, &uses, lines, 1000, 20);
    // Main memory's lane would take all the time that there is.
    outlook.lengths.iter_mut().step_by(3).for_each(|length| *length = 1000);
    outlook.squads = Squads::new(&outlook);
    // Plans for the rest, of which little is new, too: tasks may be submitted one by one.
    for fresh in [1.0, 0.1] {
        let mut search = Search::new(&outlook, Dice(1), 1);
        search.begin(&Habits::default(), fresh, Orders::All, |_| true);
        // The first of eight allocations, and four lines of 30 ns on each device, behind each of which the next
        // allocation was asked for 5 ns before its end. Side by side, the last line would begin after 160 ns, with 20
        // tasks to go.
        assert!(search.length() <= 20 + 4 * 30 + 4 * 15 + 20, "{fresh}: {}", search.length());
    }
}

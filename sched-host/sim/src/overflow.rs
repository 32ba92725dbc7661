//! The check that the counters of a simulation cannot overflow.
//!
//! Nanoseconds and bytes are counted in 64 bits. Before the simulation begins, both are added up as if every task ran
//! alone where it takes longest and all of its data were transferred several times: if these sums are in range, no
//! addition needs a check later. On a cluster the sums are those of each node, and nodes may wait for each other; so
//! the clock is looked at too, before anything is added to it.

use super::SimError;
use super::lengths::Lengths;
use super::noise::Luck;
use super::platform::Platform;
use super::specs::Specs;
use sched_graph::{TaskGraph, TaskId};

/// Maximum number of nanoseconds (73 years), or bytes, of a simulation. Schedulers add expected lengths to times, so
/// this is less than the clock's range.
const MOST: f64 = (1u64 << 61) as f64;

/// Latest time of the clock of a cluster, in nanoseconds; what a node adds is in range then.
const LATEST: u64 = 1 << 62;

/// Checks that something may happen at this time in nanoseconds.
///
/// # Errors
/// [`SimError::TooLate`] if it is too late.
#[inline]
pub(super) fn check_time(time: u64) -> Result<(), SimError> {
    if time > LATEST { Err(SimError::TooLate { years: LATEST as f64 / 1e9 / YEAR }) } else { Ok(()) }
}

/// What one task adds at most.
struct Needs {
    nanos: f64,
    bytes: f64,
}

/// Approximate maximum number of transfers of a piece of data for one task: there, back, and again if it was evicted in
/// between.
const MOVES: f64 = 4.0;

/// Checks that time and bytes cannot overflow, also if kernels take what `luck` says.
///
/// # Errors
/// [`SimError::TooLong`] or [`SimError::TooLarge`] if they may.
pub(super) fn check(
    graph: &TaskGraph,
    specs: &Specs,
    platform: &Platform,
    lengths: &Lengths,
    luck: Option<&Luck>,
) -> Result<(), SimError> {
    let costs = &platform.overheads;
    let nanos = |times: &[std::time::Duration]| times.iter().map(|time| time.as_nanos() as f64).sum::<f64>();
    let each_task = nanos(&[costs.submission, costs.push, costs.wake_up, costs.kernel_queueing]);
    let each_access = nanos(&[costs.fetch, costs.transfer_queueing, costs.allocation]);
    let slowest = platform.links.iter().map(|link| 1.0 / link.bandwidth).fold(0.0, f64::max);
    let farthest = platform.routes.iter().map(|route| route.links.len()).max().unwrap_or(0) as f64;
    let latency = platform.routes.iter().map(|route| route.latency).max().unwrap_or(0) as f64;
    // Nothing takes no time, whatever the link: `0 * inf` would be no number, and would pass.
    let per_byte = if farthest > 0.0 { slowest * farthest } else { 0.0 };
    let needs = |data: f64, accesses: f64, kernel: f64| {
        let passing = if data > 0.0 { data * per_byte } else { 0.0 };
        let moving = passing + latency * accesses;
        Needs { nanos: kernel + each_task + each_access * MOVES * accesses + moving * MOVES, bytes: data * MOVES }
    };
    // Most simulations are so far from the limits that a task with the most of everything says enough.
    if luck.is_none() {
        let accesses = specs.most_accesses as f64;
        let largest = graph.data.iter().map(|datum| datum.bytes).max().unwrap_or(0) as f64;
        let each = needs(largest * accesses, accesses, lengths.longest_of_all() as f64);
        let tasks = graph.tasks.len() as f64;
        if is_in_range(each.nanos * tasks) && is_in_range(each.bytes * tasks) {
            return Ok(());
        }
    }
    let sizes: Vec<f64> = graph.data.iter().map(|datum| datum.bytes as f64).collect();
    let (mut time, mut bytes) = (0.0, 0.0);
    let (mut longest, mut largest) = ((0.0, TaskId(0)), (0.0, TaskId(0)));
    for (id, task) in graph.ids().zip(&graph.tasks) {
        let data: f64 = task.accesses.iter().map(|access| sizes[access.data.index()]).sum();
        let expected = lengths.longest(id);
        let kernel = luck.map_or(expected, |luck| luck.longest(graph, id, expected).max(expected));
        let Needs { nanos: took, bytes: moved } = needs(data, task.accesses.len() as f64, kernel as f64);
        time += took;
        bytes += moved;
        if took > longest.0 {
            longest = (took, id);
        }
        if data > largest.0 {
            largest = (data, id);
        }
    }
    match () {
        () if !is_in_range(bytes) => Err(SimError::TooLarge { task: largest.1.0, bytes: largest.0 }),
        () if !is_in_range(time) => {
            Err(SimError::TooLong { task: longest.1.0, seconds: longest.0 / 1e9, years: MOST / 1e9 / YEAR })
        }
        () => Ok(()),
    }
}

/// Checks that the sum of these times of tasks in nanoseconds cannot overflow.
///
/// # Errors
/// [`SimError::TooLong`] if it may.
pub(super) fn check_nanos(times: impl Iterator<Item = (TaskId, f64)>) -> Result<(), SimError> {
    let (mut sum, mut longest) = (0.0, (0.0, TaskId(0)));
    for (task, nanos) in times {
        sum += nanos;
        if nanos > longest.0 {
            longest = (nanos, task);
        }
    }
    match is_in_range(sum) {
        true => Ok(()),
        false => Err(SimError::TooLong { task: longest.1.0, seconds: longest.0 / 1e9, years: MOST / 1e9 / YEAR }),
    }
}

/// Whether a sum can be counted; what is no number cannot.
fn is_in_range(sum: f64) -> bool {
    sum <= MOST
}

/// Seconds of a year.
const YEAR: f64 = 365.25 * 86_400.0;

#[cfg(test)]
mod tests {
    use super::*;
    use sched_core::Arch;
    use sched_graph::{AccessMode, Datum, Task};
    use std::time::Duration;

    /// The result of the check for two tasks of this length, each of which reads its own data.
    fn checked(length: Duration, bytes: u64, platform: &Platform) -> String {
        let mut graph = TaskGraph::new("far");
        let kind = graph.add_kind("k");
        for _ in 0..2 {
            let data = graph.add_data(Datum::new(bytes));
            let mut task = Task::new(kind).access(data, AccessMode::Read);
            task.lengths = sched_graph::Lengths::default().with(Arch::CPU, length);
            graph.add_task(task);
        }
        let lengths = Lengths::new(&graph, platform, &[]).expect("a CPU can run it");
        check(&graph, &Specs::of(&graph), platform, &lengths, None)
            .map_or_else(|error| error.to_string(), |()| "it can be counted".to_owned())
    }

    #[test]
    fn a_task_without_data_does_not_hide_one_whose_data_never_arrive() {
        let mut platform = crate::platform::find("cpu9-gpu3").expect("it is shipped");
        platform.links.iter_mut().for_each(|link| link.bandwidth = 1e-310);
        let mut graph = TaskGraph::new("stopped");
        let (kind, byte) = (graph.add_kind("gemm"), graph.add_data(Datum::new(1)));
        let lengths = || sched_graph::Lengths::default().with(Arch::CPU, Duration::from_millis(1));
        graph.add_task(Task { lengths: lengths(), ..Task::new(kind) });
        graph.add_task(Task { lengths: lengths(), ..Task::new(kind).access(byte, AccessMode::Read) });
        let lengths = Lengths::new(&graph, &platform, &[]).expect("a CPU can run it");
        let error = check(&graph, &Specs::of(&graph), &platform, &lengths, None).expect_err("it would never end");
        assert!(error.to_string().ends_with("task 2 alone may take inf s"), "{error}");
    }

    #[test]
    fn simulations_that_could_overflow_are_refused() {
        let flat = Platform::flat(2, Duration::from_millis(1));
        let years = |years: u64| Duration::from_secs(years * 31_557_600);
        insta::assert_snapshot!(checked(years(30), u64::from(u32::MAX), &flat), @"it can be counted");
        insta::assert_snapshot!(checked(years(40), 1, &flat), @"tasks and transfers may take more than 73 years, the range of the clock; task 1 alone may take 1.262e9 s");
        insta::assert_snapshot!(checked(Duration::MAX, 1, &flat), @"tasks and transfers may take more than 73 years, the range of the clock; task 1 alone may take 1.845e10 s");
        insta::assert_snapshot!(checked(years(1), u64::MAX, &flat), @"the tasks access more data than can be counted; task 1 alone accesses 1.845e19 bytes");
        let slow = r#"platform "slow" {
            memory "a"
            memory "b"
            link "a" "b" bandwidth="0.001 B/s"
            workers "cpu" count=2 arch="cpu" memory="b"
        }"#;
        let slow = Platform::parse("slow.kdl", slow).expect("it is a platform");
        insta::assert_snapshot!(checked(years(1), 1 << 20, &slow), @"tasks and transfers may take more than 73 years, the range of the clock; task 1 alone may take 4.226e9 s");
        // A byte over this link takes longer than any number, and no bytes take no time.
        let mut stopped = slow;
        stopped.links.iter_mut().for_each(|link| link.bandwidth = 1e-310);
        insta::assert_snapshot!(checked(years(1), 0, &stopped), @"it can be counted");
        insta::assert_snapshot!(checked(years(1), 1, &stopped), @"tasks and transfers may take more than 73 years, the range of the clock; task 1 alone may take inf s");
    }
}

//! What messages between ranks cost.

use sched_cluster::{Cluster, ClusterError};
use sched_runtime::{Read, Write};
use std::time::{Duration, Instant};

/// The figures of a network between ranks.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct NetworkFigures {
    /// Time from the end of a task until a task of another rank begins that needs its value, if that is small.
    pub latency: Duration,
    /// Time that each of many values takes beside that of its bytes.
    pub message: Duration,
    /// Bytes per nanosecond (GB/s) of many values that caches do not hold, received where such values were before.
    pub bandwidth: f64,
    /// Time that a rank takes to submit a task of another.
    pub foreign_task: Duration,
}

/// Number of hops of a chain.
const HOPS: usize = 200;

/// Number of chains of each kind; the median counts.
const ROUNDS: usize = 9;

/// Bytes of the values by which bandwidth is measured.
const SIZES: [usize; 2] = [64 << 10, 1 << 20];

/// Bytes of all of them: more than caches hold, and less than the memory that is kept for the next ones to be received.
const STREAM: usize = 48 << 20;

/// Number of tasks of another rank that are submitted.
const FOREIGN: usize = 10_000;

/// Measures the network between the first two of several ranks, which have nothing else to do: latency by a chain of
/// tasks that alternate between both, bandwidth by many values that one sends to the other. (In a chain of large
/// values, these are in caches: that is four times as fast as what factorisations get.) All ranks call it.
///
/// # Errors
/// If a rank fails.
pub fn network(cluster: &Cluster) -> Result<NetworkFigures, ClusterError> {
    let foreign = (0..ROUNDS).map(|_| foreign(cluster)).collect::<Result<Vec<f64>, ClusterError>>();
    let foreign_task = Duration::from_secs_f64(sched_text::median(&mut foreign?));
    let times = (0..ROUNDS).map(|_| chain(cluster, 8)).collect::<Result<Vec<f64>, ClusterError>>();
    let hop = sched_text::median(&mut times?);
    let [short, long] = [stream(cluster, SIZES[0])?, stream(cluster, SIZES[1])?];
    let seconds = ((long - short) / (SIZES[1] - SIZES[0]) as f64).max(1e-15);
    let message = (short - SIZES[0] as f64 * seconds).clamp(0.0, hop);
    let [latency, message] = [hop - message, message].map(Duration::from_secs_f64);
    Ok(NetworkFigures { latency, message, bandwidth: 1e-9 / seconds, foreign_task })
}

/// Seconds of a hop between the first two ranks, of a value of this size.
fn chain(cluster: &Cluster, bytes: usize) -> Result<f64, ClusterError> {
    let runtime = cluster.runtime();
    let hop = runtime.codelet::<(Read<Vec<u8>>, Write<Vec<u8>>), ()>("hop");
    let hop = hop.cpu("hop", |_, (from, to)| to[0] = from[0].wrapping_add(1)).build();
    let room = move || vec![0_u8; bytes.max(1)];
    let x = cluster.register_on(0, room, room)?;
    let y = cluster.register_on(1 % cluster.ranks(), room, room)?;
    cluster.wait_all()?;
    let began = Instant::now();
    for index in 0..HOPS {
        let (from, to) = if index % 2 == 0 { (&x, &y) } else { (&y, &x) };
        cluster.submit_with(&hop, (), (from, to), |task| task)?;
    }
    cluster.wait_all()?;
    let took = began.elapsed().as_secs_f64() / HOPS as f64;
    cluster.unregister(x)?;
    cluster.unregister(y)?;
    Ok(took)
}

/// Seconds in which rank 1 gets one of many values of this size from rank 0.
fn stream(cluster: &Cluster, bytes: usize) -> Result<f64, ClusterError> {
    let room = move || vec![1_u8; bytes];
    let values = (0..STREAM / bytes).map(|_| cluster.register_on(0, room, room)).collect::<Result<Vec<_>, _>>()?;
    let mut times = Vec::with_capacity(ROUNDS);
    for _ in 0..ROUNDS {
        cluster.wait_all()?;
        let began = Instant::now();
        values.iter().try_for_each(|value| cluster.bring(value, 1 % cluster.ranks()))?;
        cluster.wait_all()?;
        times.push(began.elapsed().as_secs_f64() / values.len() as f64);
        // The next ones come where these are.
        values.iter().try_for_each(|value| cluster.flush(value))?;
    }
    values.into_iter().try_for_each(|value| cluster.unregister(value).map(drop))?;
    Ok(sched_text::median(&mut times))
}

/// Seconds in which rank 0 submits a task of rank 1.
fn foreign(cluster: &Cluster) -> Result<f64, ClusterError> {
    let runtime = cluster.runtime();
    let nothing = runtime.codelet::<(Read<u64>, Write<u64>), ()>("nothing").cpu("nothing", |_, _| {}).build();
    let x = cluster.register_on(1 % cluster.ranks(), || 0_u64, || 0)?;
    let y = cluster.register_on(1 % cluster.ranks(), || 0_u64, || 0)?;
    let submit = || (0..FOREIGN).try_for_each(|_| cluster.submit_with(&nothing, (), (&x, &y), |task| task).map(drop));
    cluster.wait_all()?;
    let began = Instant::now();
    if cluster.rank() == 0 {
        submit()?;
    }
    let took = began.elapsed().as_secs_f64() / FOREIGN as f64;
    // Those that run the tasks are not to take a core meanwhile.
    cluster.exchange(&[])?;
    if cluster.rank() > 0 {
        submit()?;
    }
    cluster.wait_all()?;
    cluster.unregister(x)?;
    cluster.unregister(y)?;
    Ok(took)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::testing::runtime;

    #[test]
    fn all_ranks_get_figures() {
        let figures = Cluster::local(3, |_| Ok(runtime("tree-eager", 1)), network).expect("the ranks start");
        for figures in figures {
            let figures = figures.expect("all is well");
            // Of a hop, the message may be all, where ranks share processors.
            assert!(figures.latency + figures.message > Duration::ZERO && figures.bandwidth > 0.0, "{figures:?}");
        }
    }
}

//! The time of a hop: a chain of empty tasks that alternates between two ranks, each with one worker.
//!
//! Run it with `cargo run --release -p sched-cluster --example hop` for ranks of one process, or build it with
//! `--features mpi` and run it with `mpirun -n 2 target/release/examples/hop`. The number of hops may follow.
#![allow(clippy::print_stdout, reason = "it is a program for people")]

use sched_cluster::{Cluster, ClusterError};
use sched_runtime::{Read, Runtime, StartError, Write};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Rounds, of which the fastest counts.
const ROUNDS: usize = 10;

fn start() -> Result<Runtime, StartError> {
    let registry = sched_tree::plugin::Registry::compiled_in();
    Runtime::builder().registry(Arc::new(registry)).workers(1).bind(false).build()
}

/// The time of `hops` hops.
fn chain(cluster: &Cluster, hops: usize) -> Result<Duration, ClusterError> {
    let runtime = cluster.runtime();
    let step = runtime.codelet::<(Read<u64>, Write<u64>), ()>("step").cpu("step", |_, (x, y)| *y = x + 1).build();
    let numbers = [0, 1].map(|rank| cluster.register_on(rank % cluster.ranks(), || 0, || 0_u64));
    let [x, y] = numbers;
    let (x, y) = (x?, y?);
    cluster.wait_all()?;
    let began = Instant::now();
    for hop in 0..hops {
        let (from, to) = if hop % 2 == 0 { (&x, &y) } else { (&y, &x) };
        cluster.submit(runtime.task(&step, (from, to)))?;
    }
    cluster.wait_all()?;
    let took = began.elapsed();
    let last = if hops.is_multiple_of(2) { x } else { y };
    if let Some(steps) = cluster.unregister(last)? {
        assert_eq!(steps, hops as u64, "every task ran in its turn");
    }
    Ok(took)
}

fn fastest(cluster: &Cluster, hops: usize) -> Result<(), ClusterError> {
    let mut least = Duration::MAX;
    for _ in 0..ROUNDS {
        least = least.min(chain(cluster, hops)?);
    }
    if cluster.rank() == 0 {
        let each = least.as_secs_f64() * 1e6 / hops.max(1) as f64;
        println!("{hops} hops between {} ranks: {each:.2} µs each", cluster.ranks());
    }
    Ok(())
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let hops = std::env::args().nth(1).map_or(Ok(10_000), |argument| argument.parse::<usize>())?;
    #[cfg(feature = "mpi")]
    fastest(&Cluster::mpi(start()?)?, hops)?;
    #[cfg(not(feature = "mpi"))]
    Cluster::local(2, |_| start(), |cluster| fastest(cluster, hops))?.into_iter().collect::<Result<Vec<()>, _>>()?;
    Ok(())
}

//! The time of a task that concerns other ranks alone: rank 1 submits tasks whose data rank 0 owns.
//!
//! Run it with `cargo run --release -p sched-cluster --example foreign`. The number of tasks may follow.
#![allow(clippy::print_stdout, reason = "it is a program for people")]

use sched_cluster::{Cluster, ClusterError};
use sched_runtime::{Read, ReadWrite, Runtime, StartError};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Rounds, of which the fastest counts.
const ROUNDS: usize = 10;

fn start() -> Result<Runtime, StartError> {
    let registry = sched_tree::plugin::Registry::compiled_in();
    Runtime::builder().registry(Arc::new(registry)).workers(1).bind(false).build()
}

/// The time in which rank 1 submits `tasks` tasks of rank 0, with three data each, which are built first or not at all.
fn foreign(cluster: &Cluster, tasks: usize, builds: bool) -> Result<Duration, ClusterError> {
    let runtime = cluster.runtime();
    let kernel = runtime.codelet::<(Read<u64>, Read<u64>, ReadWrite<u64>), ()>("gemm");
    let kernel = kernel.cpu("gemm", |_, (x, y, z)| *z = z.wrapping_add(x * y)).build();
    let data: Vec<_> = (0..128).map(|_| cluster.register_on(0, || 1, || 0_u64)).collect::<Result<_, _>>()?;
    let submit = || -> Result<Duration, ClusterError> {
        let began = Instant::now();
        for task in 0..tasks {
            let (x, y, z) = (&data[task % 32], &data[32 + task % 64], &data[96 + task % 32]);
            if builds {
                cluster.submit(runtime.task(&kernel, (x, y, z)))?;
            } else {
                cluster.submit_with(&kernel, (), (x, y, z), |task| task)?;
            }
        }
        Ok(began.elapsed())
    };
    // One after the other: rank 0 and its worker are not to share the processor with rank 1.
    cluster.wait_all()?;
    let took = if cluster.rank() == 1 { submit()? } else { Duration::ZERO };
    cluster.exchange(&[])?;
    if cluster.rank() == 0 {
        submit()?;
    }
    cluster.wait_all()?;
    Ok(took)
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let tasks = std::env::args().nth(1).map_or(Ok(100_000), |argument| argument.parse::<usize>())?;
    for (what, builds) in [("built", true), ("not built", false)] {
        let fastest = |cluster: &Cluster| {
            let mut least = Duration::MAX;
            for _ in 0..ROUNDS {
                least = least.min(foreign(cluster, tasks, builds)?);
            }
            Ok::<Duration, ClusterError>(least)
        };
        let least = Cluster::local(2, |_| start(), fastest)?.into_iter().nth(1).expect("there are two ranks")?;
        let each = least.as_secs_f64() * 1e9 / tasks.max(1) as f64;
        println!("{tasks} tasks of another rank, {what}: {each:.1} ns each");
    }
    Ok(())
}

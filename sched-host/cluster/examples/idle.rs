//! The processor time of ranks that wait: rank 0 runs one kernel that sleeps, and the others await its result.
//!
//! Build it with `cargo build --release -p sched-cluster --features mpi --example idle` and run it with `mpirun -n 2
//! target/release/examples/idle`. The seconds may follow. It reads `/proc`, so it needs Linux.
#![allow(clippy::print_stdout, reason = "it is a program for people")]

use sched_cluster::{Cluster, ClusterError};
use sched_runtime::{Read, ReadWrite, Runtime, StartError};
use std::sync::Arc;
use std::time::{Duration, Instant};

fn start() -> Result<Runtime, StartError> {
    let registry = sched_tree::plugin::Registry::compiled_in();
    Runtime::builder().registry(Arc::new(registry)).workers(1).bind(false).build()
}

/// The processor time of all threads of this process.
fn processor_time() -> Duration {
    let of_thread = |thread: std::io::Result<std::fs::DirEntry>| {
        let text = std::fs::read_to_string(thread.ok()?.path().join("schedstat")).ok()?;
        text.split(' ').next()?.parse::<u64>().ok()
    };
    let threads = std::fs::read_dir("/proc/self/task").into_iter().flatten();
    Duration::from_nanos(threads.filter_map(of_thread).sum())
}

fn wait(cluster: &Cluster, seconds: f64) -> Result<(), ClusterError> {
    let runtime = cluster.runtime();
    let sleep = runtime.codelet::<(ReadWrite<u64>,), f64>("sleep").cpu("sleep", |context, (x,)| {
        std::thread::sleep(Duration::from_secs_f64(*context.params));
        *x += 1;
    });
    let add = runtime.codelet::<(Read<u64>, ReadWrite<u64>), ()>("add").cpu("add", |_, (x, y)| *y += x).build();
    let sleep = sleep.build();
    let data: Vec<_> =
        (0..cluster.ranks()).map(|rank| cluster.register_on(rank, || 1, || 0_u64)).collect::<Result<_, _>>()?;
    cluster.wait_all()?;
    let (began, before) = (Instant::now(), processor_time());
    cluster.submit_with(&sleep, seconds, (&data[0],), |task| task)?;
    for own in &data[1..] {
        cluster.submit_with(&add, (), (&data[0], own), |task| task)?;
    }
    cluster.wait_all()?;
    let share = (processor_time() - before).as_secs_f64() / began.elapsed().as_secs_f64();
    let shares = cluster.exchange(&share.to_le_bytes())?;
    for (rank, share) in shares.iter().enumerate().filter(|_| cluster.rank() == 0) {
        let share = share.as_slice().try_into().map_or(f64::NAN, f64::from_le_bytes);
        println!("rank {rank}: {:.2} % of a processor in {seconds} s", 100.0 * share);
    }
    Ok(())
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let seconds = std::env::args().nth(1).map_or(Ok(5.0), |argument| argument.parse::<f64>())?;
    #[cfg(feature = "mpi")]
    wait(&Cluster::mpi(start()?)?, seconds)?;
    #[cfg(not(feature = "mpi"))]
    Cluster::local(2, |_| start(), |cluster| wait(cluster, seconds))?.into_iter().collect::<Result<Vec<()>, _>>()?;
    Ok(())
}

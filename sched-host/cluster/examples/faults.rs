//! What becomes of a program whose last rank goes wrong: each rank says what it learns, and fails.
//!
//! Build it with `cargo build -p sched-cluster --features mpi --example faults` and run it with `mpirun -n 3
//! target/debug/examples/faults FAULT`, where FAULT is `kernel`, `order`, `owner`, `policy`, `panic`, `error`, `return`,
//! `early`, `exit`, `abort`, `large` or `memory`, for which the last rank is to have less than 2 GiB (`ulimit -v`).
#![allow(clippy::print_stderr, reason = "it is a program for people")]

use sched_cluster::{Cluster, ClusterError};
use sched_runtime::{Read, ReadWrite, Runtime, StartError};
use std::io::Write;
use std::process::ExitCode;
use std::sync::Arc;

fn start(policy: &str) -> Result<Runtime, StartError> {
    let registry = sched_tree::plugin::Registry::compiled_in();
    Runtime::builder().registry(Arc::new(registry)).policy(policy).workers(1).bind(false).build()
}

/// A chain around the ranks, of which the last goes wrong in the middle.
fn chain(cluster: &Cluster, fault: &str) -> Result<(), ClusterError> {
    let (runtime, ranks) = (cluster.runtime(), cluster.ranks());
    let is_last = cluster.rank() + 1 == ranks;
    let fails = is_last && fault == "kernel";
    let step = runtime.codelet::<(Read<u64>, ReadWrite<u64>), u64>("step").cpu("step", move |context, (x, y)| {
        assert!(!fails || *context.params < 10, "the kernel has had enough");
        *y += x;
    });
    let (step, other) = (step.build(), runtime.codelet::<(Read<u64>, ReadWrite<u64>), u64>("other"));
    let other = other.cpu("other", |_, (x, y)| *y += x).build();
    let owner = |rank: usize| if is_last && fault == "owner" { 0 } else { rank };
    let data: Vec<_> =
        (0..ranks).map(|rank| cluster.register_on(owner(rank), || 1, || 0_u64)).collect::<Result<_, _>>()?;
    for round in 0..20_u64 {
        for rank in 0..ranks {
            let codelet = if is_last && fault == "order" && (round, rank) == (10, 0) { &other } else { &step };
            cluster.submit_with(codelet, round, (&data[rank], &data[(rank + 1) % ranks]), |task| task)?;
        }
        if is_last && round == 10 {
            match fault {
                "panic" => panic!("the program has had enough"),
                "return" => return Ok(()),
                "error" => return cluster.bring(&data[0], ranks),
                "exit" => std::process::exit(3),
                "abort" => std::process::abort(),
                _ => {}
            }
        }
    }
    cluster.wait_all()
}

/// The last rank gets 1.6 GiB, piece by piece; or it ends `early`, before it has asked for any.
fn fill(cluster: &Cluster, early: bool) -> Result<(), ClusterError> {
    const PIECE: usize = 8 << 20;
    let register = |_| cluster.register_on(0, || vec![1_u8; PIECE], || vec![0; PIECE]);
    // All of them first: a registration makes a piece to see its size, which aborts where no memory is left.
    let pieces: Vec<_> = (0..200).map(register).collect::<Result<_, _>>()?;
    if early && cluster.rank() + 1 == cluster.ranks() {
        return cluster.bring(&pieces[0], cluster.ranks());
    }
    for piece in &pieces {
        cluster.bring(piece, cluster.ranks() - 1)?;
    }
    cluster.wait_all()
}

/// A value of 2 GiB, which is not used, and takes no memory.
fn send_large(cluster: &Cluster) -> Result<(), ClusterError> {
    let large = cluster.register_on(0, || vec![0_u8; 1 << 31], || vec![0; 1 << 31])?;
    cluster.bring(&large, cluster.ranks() - 1)?;
    cluster.wait_all()
}

fn program(cluster: &Cluster, fault: &str) -> Result<(), ClusterError> {
    match fault {
        "memory" | "early" => fill(cluster, fault == "early"),
        "large" => send_large(cluster),
        _ => chain(cluster, fault),
    }
}

fn report(rank: usize, result: Result<(), ClusterError>) -> ExitCode {
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // In one piece: the lines of several processes would mingle.
            let line = format!("rank {rank} learns: {error}\n");
            let _ = std::io::stderr().write_all(line.as_bytes());
            ExitCode::FAILURE
        }
    }
}

#[cfg(feature = "mpi")]
fn run(fault: &str) -> Result<ExitCode, Box<dyn std::error::Error>> {
    // Any rank but the first, as the launchers of Open MPI and MPICH number them.
    let number = ["OMPI_COMM_WORLD_RANK", "PMI_RANK"].iter().find_map(|name| std::env::var(name).ok());
    let is_other = fault == "policy" && number.is_some_and(|number| number != "0");
    let cluster = Cluster::mpi(start(if is_other { "tree-ws" } else { "tree-eager" })?)?;
    let result = program(&cluster, fault);
    Ok(report(cluster.rank(), result.inspect_err(|error| cluster.end_others(&error.to_string()))))
}

#[cfg(not(feature = "mpi"))]
fn run(fault: &str) -> Result<ExitCode, Box<dyn std::error::Error>> {
    let body = |cluster: &Cluster| program(cluster, fault);
    let policy = |rank| if fault == "policy" && rank > 0 { "tree-ws" } else { "tree-eager" };
    let results = Cluster::local(3, |rank| start(policy(rank)), body)?;
    let codes = results.into_iter().enumerate().map(|(rank, result)| report(rank, result));
    Ok(codes.fold(ExitCode::SUCCESS, |all, code| if code == ExitCode::SUCCESS { all } else { code }))
}

fn main() -> ExitCode {
    let fault = std::env::args().nth(1).unwrap_or_default();
    run(&fault).unwrap_or_else(|error| {
        eprintln!("this rank learns: {error}");
        ExitCode::FAILURE
    })
}

//! The smallest program: hand over data, say what to do with it, submit tasks, wait, read.
//!
//! Run it with `cargo run --example vector_scale -- [policy]`: `tree-eager-prefetching`, say, or the path of a file.
#![allow(clippy::print_stdout, reason = "it is a program for people")]

use sched_host::runtime::{ReadWrite, Runtime};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    // One worker for each core.
    let policy = std::env::args().nth(1).unwrap_or_else(|| "tree-eager".to_owned());
    let runtime = Runtime::builder().policy(policy).build()?;

    // The runtime looks after the data from here on: a vector in four parts.
    let parts: Vec<_> = (0..4).map(|part| runtime.register(vec![f64::from(part); 250_000])).collect();

    // A codelet is a kernel by name. It reads and writes one vector; each task passes a factor along.
    let scale = runtime
        .codelet::<(ReadWrite<Vec<f64>>,), f64>("vector_scale")
        .cpu("scale_cpu", |context, (vector,)| vector.iter_mut().for_each(|value| *value *= context.params))
        .build();

    // Tasks on different parts run at once; those on the same part one after the other, in this order.
    for factor in [3.0, 0.5] {
        for part in &parts {
            runtime.task_with(&scale, factor, (part,)).submit()?;
        }
    }
    runtime.wait_all()?;

    for (number, part) in parts.iter().enumerate() {
        let vector = runtime.read(part)?;
        println!("part {number}: {} elements of {}", vector.len(), vector[0]);
    }
    for worker in runtime.stats() {
        println!("worker {} ran {} tasks", worker.id, worker.tasks);
    }
    Ok(())
}

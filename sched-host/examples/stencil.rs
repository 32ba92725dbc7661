//! Heat that spreads along a rod: the rod is cut into blocks, and in each step every block reads the ends of its
//! neighbours. A block that is ready runs, maybe in the next step while others are in this one: no step waits for all.
//!
//! Run it with `cargo run --release --example stencil -- [blocks] [steps]`.
#![allow(clippy::print_stdout, reason = "it is a program for people")]

use sched_host::runtime::{Handle, Many, Read, Runtime, Write};
use std::time::Instant;

const BLOCK: usize = 20_000;

/// One block after a step, given the neighbours' cells beside it.
fn spread(old: &[f64], left: f64, right: f64, new: &mut [f64]) {
    let last = old.len() - 1;
    for (cell, new) in new.iter_mut().enumerate() {
        let before = if cell == 0 { left } else { old[cell - 1] };
        let after = if cell == last { right } else { old[cell + 1] };
        *new = old[cell] + 0.25 * (before - 2.0 * old[cell] + after);
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1).map(|argument| argument.parse::<usize>());
    let mut number = |default| arguments.next().unwrap_or(Ok(default));
    let (blocks, steps) = (number(16)?.max(1), number(200)?);
    let runtime = Runtime::builder().policy("tree-eager").build()?;

    // Two rods: each step reads one and writes the other. The first block is hot.
    let rod = |hot: f64| -> Vec<Handle<Vec<f64>>> {
        let heat = |block| if block == 0 { hot } else { 0.0 };
        (0..blocks).map(|block| runtime.register_sized(vec![heat(block); BLOCK], 8 * BLOCK as u64)).collect()
    };
    let rods = [rod(100.0), rod(0.0)];

    // The block and its neighbours, as many as there are; `usize` is the block's place among them.
    let step = runtime
        .codelet::<(Many<Read<Vec<f64>>>, Write<Vec<f64>>), usize>("step")
        .cpu("step_cpu", |context, (near, new)| {
            let (here, old) = (*context.params, near[*context.params]);
            let left = if here > 0 { near[here - 1][BLOCK - 1] } else { old[0] };
            let right = near.get(here + 1).map_or(old[BLOCK - 1], |block| block[0]);
            spread(old, left, right, new);
        })
        .build();

    let began = Instant::now();
    for time in 0..steps {
        let (old, new) = (&rods[time % 2], &rods[(time + 1) % 2]);
        for block in 0..blocks {
            let first = block.saturating_sub(1);
            let near = old[first..(block + 2).min(blocks)].to_vec();
            // Earlier steps first: they hold more of the others up.
            let task = runtime.task_with(&step, block - first, (&near, &new[block]));
            task.priority(-(time as i32)).submit()?;
        }
    }
    runtime.wait_all()?;
    let took = began.elapsed();

    let rod = &rods[steps % 2];
    let mut heat = 0.0;
    for (number, block) in rod.iter().enumerate() {
        let cells = runtime.read(block)?;
        heat += cells.iter().sum::<f64>();
        if number < 2 {
            println!("block {number}: {:.3} at its left end, {:.3} at its right", cells[0], cells[BLOCK - 1]);
        }
    }
    println!("heat: {:.6} of {:.6} at the beginning", heat, 100.0 * BLOCK as f64);
    println!("{} tasks on {} workers in {took:.1?}", blocks * steps, runtime.workers());
    Ok(())
}

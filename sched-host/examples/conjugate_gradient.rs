//! Conjugate gradients for the heat of a rod at rest: −u″ = f, by the tridiagonal matrix of second differences.
//!
//! Each vector is one array. Tasks work on its parts; the matrix needs the neighbours' ends too, so it reads parts with
//! a halo. Scalar products are reductions, combined in order: the result has the same bits on any number of workers.
//! Iterations are submitted ahead, since tasks read scalars as data; only the test of convergence waits.
//!
//! rayon's loops over the same parts do the same, for comparison.
//!
//! Run it with `cargo run --release --example conjugate_gradient -- [unknowns] [parts] [most iterations]`.
#![allow(clippy::print_stdout, reason = "it is a program for people")]

use least::least;
use rayon::prelude::*;
use sched_host::runtime::{ArrayHandle, Codelet, Handle, Plan, Read, ReadWrite, Reduction, Redux, Runtime, Write};
use std::error::Error;

#[path = "shared/least.rs"]
mod least;

/// Iterations between two tests of convergence.
const AHEAD: usize = 10;
/// Part of the first residual that is left at the end.
const TOLERANCE: f64 = 1e-10;

/// A vector with its parts.
struct Vector {
    parts: Vec<ArrayHandle<f64>>,
    /// The parts with one more element on each side.
    wider: Vec<ArrayHandle<f64>>,
}

/// How a task uses a vector, or a number.
type Input = Read<[f64]>;
type Output = Write<[f64]>;
type Update = ReadWrite<[f64]>;
type Factor = Read<f64>;

/// The kernels, as tasks on parts.
struct Kernels {
    /// q ← A·p, from a part of p with its neighbours; the parameter is the place in it where the part of q begins.
    multiply: Codelet<(Input, Output), usize>,
    dot: Codelet<(Input, Input, Redux<f64>)>,
    /// x ← x + (a / b)·p, and r ← r - (a / b)·q.
    step: Codelet<(Factor, Factor, Input, Input, Update, Update)>,
    /// p ← r + (a / b)·p.
    turn: Codelet<(Factor, Factor, Input, Update)>,
    /// x ← y, then y ← 0.
    shift: Codelet<(Write<f64>, ReadWrite<f64>)>,
    clear: Codelet<(Write<f64>,)>,
}

/// A row of the matrix, at a place of a vector; beyond the ends of the rod is nothing.
fn row(p: &[f64], at: usize) -> f64 {
    let before = if at == 0 { 0.0 } else { p[at - 1] };
    2.0 * p[at] - before - p.get(at + 1).copied().unwrap_or(0.0)
}

fn kernels(runtime: &Runtime) -> Kernels {
    Kernels {
        multiply: runtime
            .codelet::<(Read<[f64]>, Write<[f64]>), usize>("multiply")
            .cpu("multiply_cpu", |context, (p, q)| {
                q.iter_mut().enumerate().for_each(|(at, q)| *q = row(p, at + context.params));
            })
            .build(),
        dot: runtime
            .codelet::<(Read<[f64]>, Read<[f64]>, Redux<f64>), ()>("dot")
            .cpu("dot_cpu", |_, (x, y, sum)| *sum += x.iter().zip(y).map(|(x, y)| x * y).sum::<f64>())
            .build(),
        step: runtime
            .codelet::<(Factor, Factor, Input, Input, Update, Update), ()>("step")
            .cpu("step_cpu", |_, (a, b, p, q, x, r)| {
                let factor = quotient(*a, *b);
                x.iter_mut().zip(p).for_each(|(x, p)| *x += factor * p);
                r.iter_mut().zip(q).for_each(|(r, q)| *r -= factor * q);
            })
            .build(),
        turn: runtime
            .codelet::<(Read<f64>, Read<f64>, Read<[f64]>, ReadWrite<[f64]>), ()>("turn")
            .cpu("turn_cpu", |_, (a, b, r, p)| {
                let factor = quotient(*a, *b);
                p.iter_mut().zip(r).for_each(|(p, r)| *p = r + factor * *p);
            })
            .build(),
        shift: runtime
            .codelet::<(Write<f64>, ReadWrite<f64>), ()>("shift")
            .cpu("shift_cpu", |_, (x, y)| *x = std::mem::take(y))
            .build(),
        clear: runtime.codelet::<(Write<f64>,), ()>("clear").cpu("clear_cpu", |_, (x,)| *x = 0.0).build(),
    }
}

/// Iterations that are submitted ahead may come after the exact solution.
fn quotient(a: f64, b: f64) -> f64 {
    if b == 0.0 { 0.0 } else { a / b }
}

fn vector(runtime: &Runtime, values: Vec<f64>, parts: usize) -> Result<(ArrayHandle<f64>, Vector), Box<dyn Error>> {
    let whole = runtime.array(values);
    let wider = whole.partition(&Plan::ranges(parts).halo(1))?.into_vec();
    let parts = whole.partition(&Plan::ranges(parts))?.into_vec();
    Ok((whole, Vector { parts, wider }))
}

/// Sum of the products, after all that was submitted before.
fn dot(
    runtime: &Runtime,
    kernels: &Kernels,
    x: &Vector,
    y: &Vector,
    sum: &Reduction<f64>,
) -> Result<(), Box<dyn Error>> {
    for (x, y) in x.parts.iter().zip(&y.parts) {
        runtime.task(&kernels.dot, (x, y, sum)).submit()?;
    }
    Ok(())
}

/// The solution, the number of iterations, and the last residual.
fn solve(runtime: &Runtime, load: &[f64], parts: usize, most: usize) -> Result<(Vec<f64>, usize, f64), Box<dyn Error>> {
    let kernels = kernels(runtime);
    let (solution, x) = vector(runtime, vec![0.0; load.len()], parts)?;
    let (_, r) = vector(runtime, load.to_vec(), parts)?;
    let (_, p) = vector(runtime, load.to_vec(), parts)?;
    let (_, q) = vector(runtime, vec![0.0; load.len()], parts)?;
    let sum = || runtime.reduction_in_order(0.0, || 0.0, |sum, part| *sum += part);
    // Squares of the residual, of this iteration and of the next, and p·A·p.
    let (next, curvature) = (sum(), sum());
    let now: Handle<f64> = runtime.register(0.0);
    dot(runtime, &kernels, &r, &r, &next)?;
    runtime.task(&kernels.shift, (&now, &next)).submit()?;
    let first = *runtime.read(&now)?;
    let (mut iterations, mut left) = (0, first);
    while left > TOLERANCE * TOLERANCE * first && iterations < most {
        for _ in 0..AHEAD {
            for ((part, wider), q) in p.parts.iter().zip(&p.wider).zip(&q.parts) {
                let begin = part.range().start - wider.range().start;
                runtime.task_with(&kernels.multiply, begin, (wider, q)).submit()?;
            }
            runtime.task(&kernels.clear, (&curvature,)).submit()?;
            dot(runtime, &kernels, &p, &q, &curvature)?;
            for part in 0..parts {
                let (x, r, p, q) = (&x.parts[part], &r.parts[part], &p.parts[part], &q.parts[part]);
                runtime.task(&kernels.step, (&now, &curvature, p, q, x, r)).submit()?;
            }
            dot(runtime, &kernels, &r, &r, &next)?;
            for (r, p) in r.parts.iter().zip(&p.parts) {
                runtime.task(&kernels.turn, (&next, &now, r, p)).submit()?;
            }
            runtime.task(&kernels.shift, (&now, &next)).submit()?;
        }
        iterations += AHEAD;
        left = *runtime.read(&now)?;
    }
    let solution = runtime.read(&solution)?.to_vec();
    Ok((solution, iterations, (left / first).sqrt()))
}

/// The same by rayon, which waits for each loop.
fn solve_by_rayon(load: &[f64], parts: usize, most: usize) -> (Vec<f64>, usize) {
    let grain = load.len().div_ceil(parts);
    let dot = |x: &[f64], y: &[f64]| -> f64 {
        let products = x.par_chunks(grain).zip(y.par_chunks(grain));
        products.map(|(x, y)| x.iter().zip(y).map(|(x, y)| x * y).sum::<f64>()).sum()
    };
    let (mut x, mut r, mut p, mut q) = (vec![0.0; load.len()], load.to_vec(), load.to_vec(), vec![0.0; load.len()]);
    let (mut now, mut iterations) = (dot(&r, &r), 0);
    let first = now;
    while now > TOLERANCE * TOLERANCE * first && iterations < most {
        for _ in 0..AHEAD {
            q.par_chunks_mut(grain).enumerate().for_each(|(part, q)| {
                q.iter_mut().zip(part * grain..).for_each(|(q, at)| *q = row(&p, at));
            });
            let step = quotient(now, dot(&p, &q));
            let vectors = x.par_chunks_mut(grain).zip(r.par_chunks_mut(grain));
            vectors.zip(p.par_chunks(grain)).zip(q.par_chunks(grain)).for_each(|(((x, r), p), q)| {
                x.iter_mut().zip(p).for_each(|(x, p)| *x += step * p);
                r.iter_mut().zip(q).for_each(|(r, q)| *r -= step * q);
            });
            let next = dot(&r, &r);
            let factor = quotient(next, now);
            p.par_chunks_mut(grain).zip(r.par_chunks(grain)).for_each(|(p, r)| {
                p.iter_mut().zip(r).for_each(|(p, r)| *p = r + factor * *p);
            });
            now = next;
        }
        iterations += AHEAD;
    }
    (x, iterations)
}

/// The solution by elimination, in plain loops.
fn solve_directly(load: &[f64]) -> Vec<f64> {
    let (mut above, mut x) = (vec![0.0; load.len()], load.to_vec());
    for at in 0..load.len() {
        let (before, carried) = if at == 0 { (0.0, 0.0) } else { (above[at - 1], x[at - 1]) };
        let pivot = 2.0 - before;
        above[at] = 1.0 / pivot;
        x[at] = (load[at] + carried) / pivot;
    }
    for at in (1..load.len()).rev() {
        x[at - 1] += above[at - 1] * x[at];
    }
    x
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1).map(|argument| argument.parse::<usize>());
    let mut number = |default| arguments.next().unwrap_or(Ok(default));
    let unknowns = number(2000)?.max(1);
    let parts = number(8)?.clamp(1, unknowns);
    let most = number(2 * unknowns)?;
    let runtime = Runtime::builder().build()?;
    let load: Vec<f64> = (0..unknowns).map(|at| 1.0 + (at as f64 * 0.01).sin()).collect();
    let (solved, took) = least(|| solve(&runtime, &load, parts, most));
    let (x, iterations, residual) = solved?;
    let pool = rayon::ThreadPoolBuilder::new().num_threads(runtime.workers()).build()?;
    let ((by_rayon, in_rayon), rayon_took) = least(|| pool.install(|| solve_by_rayon(&load, parts, most)));
    runtime.wait_all()?;
    println!(
        "{unknowns} unknowns in {parts} parts: {iterations} iterations in {took:.1?}, {in_rayon} in {rayon_took:.1?} by rayon"
    );
    let exact = solve_directly(&load);
    let (error, between) = (distance(&x, &exact), distance(&x, &by_rayon));
    println!("residual {residual:.1e} of the first; {error:.1e} from the solution by elimination");
    assert!(error < 1e-6 || iterations >= most, "it is the solution");
    assert!(between < 1e-6, "rayon computes the same");
    Ok(())
}

/// Norm of the difference of two vectors, as a part of that of the second.
fn distance(x: &[f64], y: &[f64]) -> f64 {
    let norm = |values: &mut dyn Iterator<Item = f64>| values.map(|value| value * value).sum::<f64>().sqrt();
    norm(&mut x.iter().zip(y).map(|(x, y)| x - y)) / norm(&mut y.iter().copied())
}

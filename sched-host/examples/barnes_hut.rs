//! Forces among bodies in a plane, by a tree whose distant nodes stand for their bodies (Barnes and Hut, 1986).
//!
//! Both passes are recursions in which a task ends with the tasks that are nested in it. The first one summarises: a
//! node is ready when its children are, without a counter. The second one divides the bodies whose forces are computed;
//! all of its tasks read the same tree. Bodies are sorted along a curve, so the bodies and the nodes of each subtree
//! are parts of one array.
//!
//! rayon's recursion does the same on as many threads, for comparison.
//!
//! Run it with `cargo run --release --example barnes_hut -- [bodies]`.
#![allow(clippy::print_stdout, reason = "it is a program for people")]

use least::least;
use rayon::prelude::*;
use sched_host::runtime::{ArrayHandle, Codelet, Plan, Read, ReadWrite, Runtime, Write};
use std::error::Error;
use std::time::Instant;

#[path = "shared/least.rs"]
mod least;

/// Most bodies of a leaf, of a task that summarises a subtree alone, and of one that computes forces.
const LEAF: usize = 16;
const SUBTREE: usize = 1024;
const GRAIN: usize = 20;
/// Most parts into which a task divides the bodies whose forces are computed.
const FANOUT: usize = 8;
/// A node stands for its bodies where it is this many times as far away as it is wide.
const FAR: f64 = 2.0;
/// Softens the force between bodies that are near.
const SOFT: f64 = 1e-4;

type Force = [f64; 2];

#[derive(Clone, Copy, Default)]
struct Body {
    at: [f64; 2],
    mass: f64,
}

/// A subtree: its mass, and the corners of its box.
#[derive(Clone, Copy, Default)]
struct Node {
    centre: Body,
    low: [f64; 2],
    high: [f64; 2],
}

/// Number of nodes of the tree over some bodies. A node stands before those of its left half, and these before those of
/// its right half.
fn nodes_over(bodies: usize) -> usize {
    if bodies <= LEAF { 1 } else { 1 + nodes_over(bodies / 2) + nodes_over(bodies - bodies / 2) }
}

fn leaf(bodies: &[Body]) -> Node {
    let point = |body: &Body| Node { centre: *body, low: body.at, high: body.at };
    bodies.iter().map(point).reduce(join).unwrap_or_default()
}

fn join(a: Node, b: Node) -> Node {
    let mass = a.centre.mass + b.centre.mass;
    let mean = |axis: usize| (a.centre.at[axis] * a.centre.mass + b.centre.at[axis] * b.centre.mass) / mass;
    Node {
        centre: Body { at: [mean(0), mean(1)], mass },
        low: [a.low[0].min(b.low[0]), a.low[1].min(b.low[1])],
        high: [a.high[0].max(b.high[0]), a.high[1].max(b.high[1])],
    }
}

fn pull(on: &Body, from: &Body, force: &mut Force) {
    let [dx, dy] = [from.at[0] - on.at[0], from.at[1] - on.at[1]];
    let square = dx * dx + dy * dy + SOFT;
    let strength = on.mass * from.mass / (square * square.sqrt());
    force[0] += strength * dx;
    force[1] += strength * dy;
}

/// Adds the force of a subtree on a body.
fn attract(body: &Body, bodies: &[Body], nodes: &[Node], force: &mut Force) {
    let Node { centre, low, high } = &nodes[0];
    let wide = (high[0] - low[0]).max(high[1] - low[1]);
    let distance = (centre.at[0] - body.at[0]).hypot(centre.at[1] - body.at[1]);
    if distance > FAR * wide {
        pull(body, centre, force);
    } else if nodes.len() == 1 {
        bodies.iter().for_each(|other| pull(body, other, force));
    } else {
        let (left, right) = bodies.split_at(bodies.len() / 2);
        let (of_left, of_right) = nodes[1..].split_at(nodes_over(left.len()));
        attract(body, left, of_left, force);
        attract(body, right, of_right, force);
    }
}

/// Summarises a subtree.
type Summarise = Codelet<(Read<[Body]>, ReadWrite<[Node]>), Subtree>;

struct Subtree {
    bodies: ArrayHandle<Body>,
    nodes: ArrayHandle<Node>,
    summarise: Summarise,
    /// The first node, from its children; the parameter is the place of the second one.
    join: Codelet<(ReadWrite<[Node]>,), usize>,
}

/// Computes the forces on some bodies, by parts of them.
type Attract = Codelet<(Read<[Body]>, Read<[Body]>, Read<[Node]>, Write<[Force]>), Targets>;

struct Targets {
    all: ArrayHandle<Body>,
    nodes: ArrayHandle<Node>,
    on: ArrayHandle<Body>,
    forces: ArrayHandle<Force>,
    attract: Attract,
}

fn summarising(runtime: &Runtime) -> Summarise {
    let kernel = |context: &sched_host::runtime::Context<'_, Subtree>, (bodies, nodes): (&[Body], &mut [Node])| {
        if bodies.len() <= SUBTREE {
            summarise_plainly(bodies, nodes);
            return Ok(());
        }
        let Subtree { bodies: of_bodies, nodes: of_nodes, summarise, join } = context.params;
        let (half, right) = (bodies.len() / 2, 1 + nodes_over(bodies.len() / 2));
        let plan = Plan::these_ranges([0..half, half..bodies.len()]);
        let halves = of_bodies.partition(&plan).map_err(|error| error.to_string())?;
        let plan = Plan::these_ranges([1..right, right..nodes.len()]);
        let children = of_nodes.partition(&plan).map_err(|error| error.to_string())?;
        let nest = context.nest();
        for (bodies, nodes) in halves.iter().zip(&children) {
            let (summarise, join) = (summarise.clone(), join.clone());
            let subtree = Subtree { bodies: bodies.clone(), nodes: nodes.clone(), summarise, join };
            let task = nest.task_with(&context.params.summarise, subtree, (bodies, nodes));
            task.submit().map_err(|error| error.to_string())?;
        }
        // It names the nodes of both, so it comes after them.
        nest.task_with(join, right, (of_nodes,)).submit().map(|_| ()).map_err(|error| error.to_string())
    };
    runtime.codelet("summarise").cpu("summarise", kernel).nests().build()
}

fn attracting(runtime: &Runtime) -> Attract {
    type Views<'a> = (&'a [Body], &'a [Body], &'a [Node], &'a mut [Force]);
    let kernel = |context: &sched_host::runtime::Context<'_, Targets>, (on, all, nodes, forces): Views<'_>| {
        if on.len() <= GRAIN {
            for (body, force) in on.iter().zip(forces) {
                *force = Force::default();
                attract(body, all, nodes, force);
            }
            return Ok(());
        }
        let Targets { all, nodes, on, forces, attract } = context.params;
        let plan = Plan::ranges(on.len().div_ceil(GRAIN).min(FANOUT));
        let bodies = on.partition(&plan).map_err(|error| error.to_string())?;
        let parts = forces.partition(&plan).map_err(|error| error.to_string())?;
        let nest = context.nest();
        for (on, forces) in bodies.iter().zip(&parts) {
            let (all, nodes, attract) = (all.clone(), nodes.clone(), attract.clone());
            let targets = Targets { all, nodes, on: on.clone(), forces: forces.clone(), attract };
            let data = (on, &context.params.all, &context.params.nodes, forces);
            nest.task_with(&context.params.attract, targets, data).submit().map_err(|error| error.to_string())?;
        }
        Ok::<(), String>(())
    };
    runtime.codelet("attract").cpu("attract", kernel).nests().build()
}

/// The forces, by two tasks.
fn forces(runtime: &Runtime, bodies: &[Body]) -> Result<Vec<Force>, Box<dyn Error>> {
    let (summarise, attract) = (summarising(runtime), attracting(runtime));
    let join = runtime.codelet::<(ReadWrite<[Node]>,), usize>("join").cpu("join", |context, (nodes,)| {
        nodes[0] = join(nodes[1], nodes[*context.params]);
    });
    let join = join.build();
    let nodes = runtime.array(vec![Node::default(); nodes_over(bodies.len())]);
    let forces = runtime.array(vec![Force::default(); bodies.len()]);
    let all = runtime.array(bodies.to_vec());
    let subtree =
        Subtree { bodies: all.clone(), nodes: nodes.clone(), summarise: summarise.clone(), join: join.clone() };
    runtime.task_with(&summarise, subtree, (&all, &nodes)).submit()?;
    let targets = Targets {
        all: all.clone(),
        nodes: nodes.clone(),
        on: all.clone(),
        forces: forces.clone(),
        attract: attract.clone(),
    };
    // Behind the first one, which ends when the tree is complete.
    runtime.task_with(&attract, targets, (&all, &all, &nodes, &forces)).submit()?;
    let forces = runtime.read(&forces)?.to_vec();
    Ok(forces)
}

/// Summarises a subtree by plain recursion.
fn summarise_plainly(bodies: &[Body], nodes: &mut [Node]) {
    if nodes.len() == 1 {
        nodes[0] = leaf(bodies);
        return;
    }
    let (left, right) = bodies.split_at(bodies.len() / 2);
    let second = 1 + nodes_over(left.len());
    summarise_plainly(left, &mut nodes[1..second]);
    summarise_plainly(right, &mut nodes[second..]);
    nodes[0] = join(nodes[1], nodes[second]);
}

/// Summarises a subtree by rayon's tasks.
fn summarise_by_rayon(bodies: &[Body], nodes: &mut [Node]) {
    if bodies.len() <= SUBTREE {
        return summarise_plainly(bodies, nodes);
    }
    let (left, right) = bodies.split_at(bodies.len() / 2);
    let second = 1 + nodes_over(left.len());
    let (top, of_right) = nodes.split_at_mut(second);
    rayon::join(|| summarise_by_rayon(left, &mut top[1..]), || summarise_by_rayon(right, of_right));
    nodes[0] = join(nodes[1], nodes[second]);
}

/// The forces, by rayon's tasks.
fn forces_by_rayon(bodies: &[Body]) -> Vec<Force> {
    let mut nodes = vec![Node::default(); nodes_over(bodies.len())];
    summarise_by_rayon(bodies, &mut nodes);
    let mut forces = vec![Force::default(); bodies.len()];
    forces.par_chunks_mut(GRAIN).zip(bodies.par_chunks(GRAIN)).for_each(|(forces, on)| {
        on.iter().zip(forces).for_each(|(body, force)| attract(body, bodies, &nodes, force));
    });
    forces
}

/// Bodies of two clouds, along a curve on which neighbours are near (the bits of both coordinates in turn).
fn make(count: usize) -> Vec<Body> {
    let mut state = 42_u64;
    let mut random = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 40) as f64 / (1_u64 << 24) as f64
    };
    let body = |number: usize| {
        let (angle, radius) = (random() * std::f64::consts::TAU, random().powi(2) * 0.2);
        let middle = if number.is_multiple_of(2) { 0.3 } else { 0.7 };
        Body { at: [middle + radius * angle.cos(), middle + radius * angle.sin()], mass: 0.5 + random() }
    };
    let mut bodies: Vec<Body> = (0..count).map(body).collect();
    let place = |body: &Body| {
        let spread = |x: f64| (0..16).fold(0, |bits, bit| bits | ((x * 65536.0) as u64 >> bit & 1) << (2 * bit));
        spread(body.at[0]) | spread(body.at[1]) << 1
    };
    bodies.sort_by_key(place);
    bodies
}

fn main() -> Result<(), Box<dyn Error>> {
    let count = std::env::args().nth(1).map_or(Ok(4000), |argument| argument.parse::<usize>())?.max(1);
    let runtime = Runtime::builder().build()?;
    let bodies = make(count);
    let (found, took) = least(|| forces(&runtime, &bodies));
    let found = found?;
    runtime.wait_all()?;
    let pool = rayon::ThreadPoolBuilder::new().num_threads(runtime.workers()).build()?;
    let (by_rayon, rayon_took) = least(|| pool.install(|| forces_by_rayon(&bodies)));
    let began = Instant::now();
    let mut nodes = vec![Node::default(); nodes_over(count)];
    summarise_plainly(&bodies, &mut nodes);
    let plain = bodies.iter().map(|body| {
        let mut force = Force::default();
        attract(body, &bodies, &nodes, &mut force);
        force
    });
    let plain: Vec<Force> = plain.collect();
    let plainly = began.elapsed();
    assert!(found == plain && by_rayon == plain, "tasks compute what plain recursion does, bit by bit");
    // Some bodies against all others, one by one.
    let (mut error, mut size) = (0.0, 0.0);
    for (body, force) in bodies.iter().zip(&found).step_by(count.div_ceil(100)) {
        let mut exact = Force::default();
        bodies.iter().for_each(|other| pull(body, other, &mut exact));
        error += (force[0] - exact[0]).hypot(force[1] - exact[1]);
        size += exact[0].hypot(exact[1]);
    }
    println!(
        "{count} bodies, {} nodes: {took:.1?} on {} workers, {rayon_took:.1?} by rayon, {plainly:.1?} plainly",
        nodes.len(),
        runtime.workers()
    );
    println!("{:.2} % from the sum over all pairs", 100.0 * error / size);
    assert!(error <= 0.05 * size, "distant nodes stand for their bodies");
    Ok(())
}

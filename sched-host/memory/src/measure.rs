//! Measures transfers between memory nodes.

use parking_lot::Mutex;
use sched_machine::topology::BindingPlan;
use sched_model::{Bus, NodeMatrix};
use sched_text::median;
use std::io;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;
use std::time::Instant;

/// Bytes copied to measure bandwidth: more than a core's own caches hold.
const LARGE: usize = 4 << 20;
/// Bytes copied to measure latency: one cache line.
const SMALL: usize = 64;
/// Number of copies of each size; their median counts.
const ROUNDS: usize = 7;

/// Measures copies between memory nodes: the workers of `plan` with the numbers `nodes[n]` are on memory node *n*.
/// Without a plan no thread is bound, so that all pairs of nodes measure the same.
///
/// For each pair, a thread on one node writes a buffer, and a thread on the other copies it to its own memory, which it
/// touched before; the median of several copies counts. A pair takes some ten milliseconds. Nodes without workers have
/// no links.
///
/// # Errors
/// If the system provides no threads.
pub fn measure(nodes: &[Vec<usize>], plan: Option<&BindingPlan>) -> io::Result<Bus> {
    let count = nodes.len();
    let (mut bandwidth, mut latency) = (vec![f64::NAN; count * count], vec![f64::NAN; count * count]);
    let mut unbound = None;
    for from in (0..count).filter(|node| !nodes[*node].is_empty()) {
        for to in (0..count).filter(|node| !nodes[*node].is_empty()) {
            let pair = from * count + to;
            (bandwidth[pair], latency[pair]) = match (from == to, plan, unbound) {
                (true, ..) => (0.0, 0.0),
                (_, None, Some(link)) => link,
                _ => *unbound.insert(link(&nodes[from], &nodes[to], plan)?),
            };
        }
    }
    let (bandwidth, latency) = (NodeMatrix::new(count, bandwidth), NodeMatrix::new(count, latency));
    Ok(Bus { bandwidth, latency, ..Bus::default() })
}

/// Like [`measure`], but measures each configuration only once per process.
///
/// # Errors
/// As for [`measure`].
pub fn measure_once(nodes: &[Vec<usize>], plan: Option<&BindingPlan>) -> io::Result<Bus> {
    /// The PUs of each node; or the number of nodes, if no thread is bound.
    type Key = (usize, Option<Vec<Vec<u32>>>);
    static MEASURED: Mutex<Vec<(Key, Bus)>> = Mutex::new(Vec::new());
    let pus = |plan: &BindingPlan| -> Vec<Vec<u32>> {
        let of = |workers: &Vec<usize>| workers.iter().map(|worker| plan.workers()[*worker].pu).collect();
        nodes.iter().map(of).collect()
    };
    let key = (nodes.len(), plan.map(pus));
    // Locked during the measurement: two concurrent ones would disturb each other.
    let mut measured = MEASURED.lock();
    if let Some((_, bus)) = measured.iter().find(|(known, _)| *known == key) {
        return Ok(bus.clone());
    }
    let bus = measure(nodes, plan)?;
    measured.push((key, bus.clone()));
    Ok(bus)
}

/// Bandwidth in bytes per microsecond and latency in microseconds, from the node of some workers to that of others.
fn link(from: &[usize], to: &[usize], plan: Option<&BindingPlan>) -> io::Result<(f64, f64)> {
    let (give, given) = sync_channel(0);
    let (give_back, given_back) = sync_channel(1);
    thread::scope(|scope| {
        let owner = || thread::Builder::new().name("bus-from".to_owned());
        let copier = || thread::Builder::new().name("bus-to".to_owned());
        owner().spawn_scoped(scope, move || {
            bind(plan, from);
            own(&give, &given_back);
        })?;
        let copies = copier().spawn_scoped(scope, move || {
            bind(plan, to);
            copy(&given, &give_back)
        })?;
        let [small, large] = copies.join().unwrap_or_else(|payload| std::panic::resume_unwind(payload));
        let bandwidth = (LARGE - SMALL) as f64 / (large - small).max(1e-3);
        // Rounded to significant digits.
        Ok((bandwidth.round().max(1.0), (small * 1e3).round() / 1e3))
    })
}

fn bind(plan: Option<&BindingPlan>, workers: &[usize]) {
    if let Some(Err(why)) = plan.map(|plan| plan.bind_current_thread_to(workers)) {
        tracing::warn!("a thread that measures transfers is not bound: {why}");
    }
}

/// Writes a buffer repeatedly, each time that it comes back.
fn own(give: &SyncSender<Vec<u8>>, given_back: &Receiver<Vec<u8>>) {
    let mut buffer = vec![1u8; LARGE];
    while give.send(buffer).is_ok() {
        let Ok(back) = given_back.recv() else { return };
        buffer = back;
        let other = buffer[0].wrapping_add(1);
        buffer.fill(other);
    }
}

/// Copies the received buffers to memory of its own; returns the microseconds of small and large copies.
fn copy(given: &Receiver<Vec<u8>>, give_back: &SyncSender<Vec<u8>>) -> [f64; 2] {
    let mut here = vec![0u8; LARGE];
    [SMALL, LARGE].map(|size| {
        let times = (0..=ROUNDS).filter_map(|_| {
            let buffer = given.recv().ok()?;
            let began = Instant::now();
            here[..size].copy_from_slice(std::hint::black_box(&buffer[..size]));
            std::hint::black_box(&mut here);
            let micros = began.elapsed().as_secs_f64() * 1e6;
            give_back.send(buffer).ok()?;
            Some(micros)
        });
        // The first copy warms up.
        median(&mut times.skip(1).collect::<Vec<_>>())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_pair_of_nodes_with_workers_gets_a_link() -> io::Result<()> {
        let bus = measure(&[vec![0], Vec::new(), vec![1]], None)?;
        assert_eq!(bus.nodes(), 3);
        assert_eq!((bus.transfer(0, 0, 1 << 20), bus.transfer(0, 1, 1)), (Some(0.0), None));
        let (small, large) = (bus.transfer(0, 2, 64), bus.transfer(0, 2, 1 << 20));
        assert!(small > Some(0.0) && large > small, "{small:?} {large:?}");
        assert_eq!(bus.transfer(2, 0, 1 << 20), large, "nothing is bound, so that all pairs are equal");
        assert_eq!(measure_once(&[vec![0], vec![1]], None)?, measure_once(&[vec![0], vec![1]], None)?);
        Ok(())
    }
}

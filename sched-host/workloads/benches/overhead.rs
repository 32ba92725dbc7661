//! The cost of scheduling an empty task, compared with rayon and with a deque behind a mutex. The components are
//! compiled in here; `sched bench overhead` measures them as plugins.

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use sched_runtime::Runtime;
use sched_tree::plugin::Registry;
use sched_workloads::bench::{Contest, Shape};
use std::sync::Arc;
use std::time::{Duration, Instant};

const TASKS: usize = 10_000;

/// Repeats `run` as often as Criterion asks, and returns the total time.
fn repeat(times: u64, run: impl Fn() -> Duration) -> Duration {
    (0..times).map(|_| run()).sum()
}

fn graphs(criterion: &mut Criterion) {
    let registry = Arc::new(Registry::compiled_in());
    for shape in Shape::ALL {
        for workers in [1, 2] {
            let builder = Runtime::builder().registry(Arc::clone(&registry)).policy("tree-eager").workers(workers);
            let contest = Contest::new(builder, workers, shape, TASKS).expect("a runtime with compiled-in components");
            let mut group = criterion.benchmark_group(format!("{shape}, {workers} workers"));
            group.throughput(Throughput::Elements(contest.tasks() as u64)).sample_size(20);
            let ours = || contest.ours().expect("no run stalls");
            group.bench_function("tree-eager", |bencher| bencher.iter_custom(|times| repeat(times, ours)));
            group.bench_function("rayon", |bencher| bencher.iter_custom(|times| repeat(times, || contest.rayon())));
            group.bench_function("deque", |bencher| bencher.iter_custom(|times| repeat(times, || contest.floor())));
            group.finish();
        }
    }
}

fn push_and_pull(criterion: &mut Criterion) {
    let registry = Arc::new(Registry::compiled_in());
    for policy in ["tree-eager", "tree-eager-prefetching"] {
        let builder = Runtime::builder().registry(Arc::clone(&registry)).policy(policy).workers(1);
        let tree = builder.bare_tree().expect("a tree of compiled-in components");
        criterion.bench_function(&format!("push and pull, {policy}"), |bencher| {
            bencher.iter_custom(|times| {
                let began = Instant::now();
                tree.pairs(u32::try_from(times).unwrap_or(u32::MAX)).expect("the tree gives tasks back");
                began.elapsed()
            });
        });
    }
}

criterion_group!(benches, graphs, push_and_pull);
criterion_main!(benches);

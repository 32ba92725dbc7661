//! What StarPU's examples do, and tables of what StarPU takes.

use sched_host::graph::{AccessMode, DataId, Datum, Task, TaskGraph, WontUse};

/// The best makespan in a table of StarPU's, of those whose line begins with `key`, and whose it is.
#[must_use]
pub fn best(table: &str, key: &str, unit: f64) -> Option<(f64, String)> {
    let of = |line: &str| {
        let (policy, makespan) = line.strip_prefix(key)?.split_once(',')?;
        Some((makespan.parse::<f64>().ok()? * unit, policy.to_owned()))
    };
    table.lines().filter_map(of).min_by(|one, other| one.0.total_cmp(&other.0))
}

/// The graph that StarPU's example makes: order, priorities, and hints when data is not used any more.
#[must_use]
pub fn cholesky(tiles: usize) -> TaskGraph {
    let mut graph = TaskGraph::new(format!("cholesky of {tiles} × {tiles} tiles"));
    let [potrf, trsm, syrk, gemm] = ["potrf", "trsm", "syrk", "gemm"].map(|kind| graph.add_kind(kind));
    let tile: Vec<_> = (0..tiles * tiles).map(|_| graph.add_data(Datum::new(960 * 960 * 4))).collect();
    let at = |row: usize, column: usize| tile[row * tiles + column];
    let add = |graph: &mut TaskGraph, kind, k: usize, away: usize, reads: &[DataId], written| {
        let mut task = reads.iter().fold(Task::new(kind), |task, data| task.access(*data, AccessMode::Read));
        task.priority = 2 * tiles as i32 - 2 * k as i32 - away as i32;
        graph.add_task(task.access(written, AccessMode::ReadWrite));
    };
    let wont_use = |graph: &mut TaskGraph, data| {
        let submitted = graph.tasks.len() as u32;
        graph.wont_use.push(WontUse { submitted, data });
    };
    for k in 0..tiles {
        add(&mut graph, potrf, k, 0, &[], at(k, k));
        for i in k + 1..tiles {
            add(&mut graph, trsm, k, i, &[at(k, k)], at(i, k));
        }
        wont_use(&mut graph, at(k, k));
        for i in k + 1..tiles {
            add(&mut graph, syrk, k, i, &[at(i, k)], at(i, i));
            for j in i + 1..tiles {
                add(&mut graph, gemm, k, i + j, &[at(j, k), at(i, k)], at(j, i));
            }
            wont_use(&mut graph, at(i, k));
        }
    }
    graph
}

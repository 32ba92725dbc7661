//! The table of the nodes of a cluster.

use super::Node;
use crate::table;
use sched_text::median;

/// Maximum number of nodes with a row each; of more, the table shows the extremes.
const MOST: usize = 32;

/// A row for each node; of many nodes, the least, the median and the greatest of each figure.
pub(super) fn table(nodes: &[Node]) -> String {
    let header = ["NODE", "TASKS", "BUSY (%)", "END (S)", "SENT (MB)", "MESSAGES", "RECEIVED (MB)"];
    let figures = |node: &Node| -> [f64; 6] {
        let megabytes = |bytes: u64| bytes as f64 / 1e6;
        let sent = node.sent as f64;
        let (out, back) = (megabytes(node.sent_bytes), megabytes(node.received_bytes));
        [node.tasks as f64, 100.0 * node.busy_share, node.makespan_s, out, sent, back]
    };
    let row = |name: String, [tasks, busy, end, out, sent, back]: [f64; 6]| {
        [
            name,
            format!("{tasks:.0}"),
            format!("{busy:.1}"),
            format!("{end:.6}"),
            format!("{out:.3}"),
            format!("{sent:.0}"),
            format!("{back:.3}"),
        ]
    };
    if nodes.len() <= MOST {
        let rows = nodes.iter().map(|node| row(node.node.to_string(), figures(node)));
        return table::table(header, rows, 0..header.len());
    }
    let all: Vec<[f64; 6]> = nodes.iter().map(figures).collect();
    let of_each = |of: fn(&mut Vec<f64>) -> f64| -> [f64; 6] {
        std::array::from_fn(|figure| of(&mut all.iter().map(|node| node[figure]).collect()))
    };
    let rows = [
        row("least".to_owned(), of_each(|all| all.iter().copied().fold(f64::INFINITY, f64::min))),
        row("median".to_owned(), of_each(|all| median(all))),
        row("most".to_owned(), of_each(|all| all.iter().copied().fold(0.0, f64::max))),
    ];
    table::table(header, rows, 1..header.len())
}

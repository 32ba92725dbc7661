//! The machine as a tree of text lines.

use std::fmt::Write as _;

use super::{Contents, Stack, Use, label, summary, usage, use_of, workers, workers_of_node};
use crate::topology::{BindingPlan, Level, Object, Topology};
use sched_text::amount::bytes;
use sched_text::ranges;

/// The tree, the memory nodes, and the warnings, for a terminal.
///
/// ```
/// # use sched_machine::topology::{draw, BindingPlan, Topology};
/// let machine = Topology::from_synthetic("package:1 core:2 pu:2")?;
/// let picture = draw::text(&machine, &BindingPlan::new(&machine, 2)?);
/// assert!(picture.contains("├─ core 0: pu 0 [worker 0], pu 1 (free)"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[must_use]
pub fn text(topology: &Topology, plan: &BindingPlan) -> String {
    let mut out = format!("{}\n{}\n{}\n\n", topology.source(), summary(topology), usage(topology, plan));
    tree(&mut out, topology, plan, &Stack::new(topology.root()), "", "");
    memory(&mut out, topology, plan);
    combined(&mut out, plan);
    if !plan.warnings().is_empty() {
        out.push('\n');
    }
    for warning in plan.warnings() {
        writeln!(out, "warning: {warning}").expect("writing to a string never fails");
    }
    out
}

/// Prints one stack: `head` precedes its first line, `indent` the lines below.
fn tree(out: &mut String, topology: &Topology, plan: &BindingPlan, stack: &Stack<'_>, head: &str, indent: &str) {
    out.push_str(head);
    out.push_str(&stack.objects.iter().map(|object| label(object)).collect::<Vec<_>>().join(" · "));
    match &stack.contents {
        Contents::Pus(pus) if pus.is_empty() => {
            if let Some(node) = stack.objects.last().filter(|object| object.level == Level::Numa) {
                out.push_str(&match node.pus.as_slice() {
                    [] => " local to no PU".to_owned(),
                    pus => format!(" for PUs {}", ranges(pus.iter().copied())),
                });
            }
            out.push('\n');
        }
        Contents::Pus(pus) => {
            let shown: Vec<String> = pus.iter().map(|pu| pu_text(topology, plan, pu)).collect();
            writeln!(out, ": {}", shown.join(", ")).expect("writing to a string never fails");
        }
        Contents::Stacks(stacks) => {
            out.push('\n');
            for (at, below) in stacks.iter().enumerate() {
                let (branch, rest) = if at + 1 == stacks.len() { ("└─ ", "   ") } else { ("├─ ", "│  ") };
                tree(out, topology, plan, below, &format!("{indent}{branch}"), &format!("{indent}{rest}"));
            }
        }
    }
}

fn pu_text(topology: &Topology, plan: &BindingPlan, pu: &Object) -> String {
    match use_of(topology, plan, pu.index()) {
        Use::Workers(numbers) => format!("{} [{}]", pu.title(), workers(numbers)),
        Use::Free => format!("{} (free)", pu.title()),
        Use::Forbidden => format!("{} (forbidden)", pu.title()),
    }
}

fn combined(out: &mut String, plan: &BindingPlan) {
    if plan.combined().is_empty() {
        return;
    }
    out.push_str("\ncombined workers\n");
    for combined in plan.combined() {
        writeln!(out, "  {} of {}", workers(&combined.members), combined.within)
            .expect("writing to a string never fails");
    }
}

fn memory(out: &mut String, topology: &Topology, plan: &BindingPlan) {
    let nodes = topology.level(Level::Numa);
    if nodes.is_empty() {
        return;
    }
    let rows: Vec<[String; 4]> = nodes
        .iter()
        .map(|node| {
            [
                node.title(),
                node.memory_bytes.map_or_else(|| "size unknown".to_owned(), bytes),
                if node.pus.is_empty() {
                    "no PUs".to_owned()
                } else {
                    format!("PUs {}", ranges(node.pus.iter().copied()))
                },
                workers(&workers_of_node(plan, node)),
            ]
        })
        .collect();
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
    let (name, memory, pus) = (width(0), width(1), width(2));
    out.push_str("\nmemory nodes\n");
    for row in &rows {
        writeln!(out, "  {:name$}  {:>memory$}  {:pus$}  {}", row[0], row[1], row[2], row[3])
            .expect("writing to a string never fails");
    }
}

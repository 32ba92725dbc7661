//! The machine as a Graphviz graph.

use std::fmt::Write as _;

use super::{Contents, Stack, Use, label, summary, usage, use_of, workers};
use crate::topology::{BindingPlan, Object, Topology};
use sched_text::dot::quoted;

/// The tree in the DOT language: `sched topology --format dot | dot -Tsvg > machine.svg`.
#[must_use]
pub fn dot(topology: &Topology, plan: &BindingPlan) -> String {
    let mut title = vec![topology.source().to_string(), summary(topology), usage(topology, plan)];
    title.extend(plan.warnings().iter().map(|warning| format!("warning: {warning}")));
    let mut graph = Graph { out: String::from("graph topology {\n"), next: 0 };
    graph.line(&format!(
        "graph [label={}, labelloc=t, rankdir=LR, fontname=\"sans-serif\"];",
        quoted(&title.join("\n"))
    ));
    graph.line("node [shape=box, style=filled, fillcolor=\"#f1f5f9\", color=\"#94a3b8\", fontname=\"sans-serif\"];");
    graph.line("edge [color=\"#94a3b8\"];");
    graph.stack(topology, plan, &Stack::new(topology.root()));
    graph.out.push_str("}\n");
    graph.out
}

struct Graph {
    out: String,
    next: usize,
}

impl Graph {
    fn line(&mut self, line: &str) {
        writeln!(self.out, "  {line}").expect("writing to a string never fails");
    }

    fn node(&mut self, lines: &[String], attributes: &str) -> usize {
        let id = self.next;
        self.next += 1;
        self.line(&format!("n{id} [label={}{attributes}];", quoted(&lines.join("\n"))));
        id
    }

    fn stack(&mut self, topology: &Topology, plan: &BindingPlan, stack: &Stack<'_>) -> usize {
        let lines: Vec<String> = stack.objects.iter().map(|object| label(object)).collect();
        let id = self.node(&lines, "");
        let below: Vec<usize> = match &stack.contents {
            Contents::Pus(pus) => pus.iter().map(|pu| self.pu(topology, plan, pu)).collect(),
            Contents::Stacks(stacks) => stacks.iter().map(|below| self.stack(topology, plan, below)).collect(),
        };
        for child in below {
            self.line(&format!("n{id} -- n{child};"));
        }
        id
    }

    fn pu(&mut self, topology: &Topology, plan: &BindingPlan, pu: &Object) -> usize {
        match use_of(topology, plan, pu.index()) {
            Use::Workers(numbers) => {
                let colour = if numbers.len() > 1 { "#b45309" } else { "#0f766e" };
                let look = format!(", fillcolor=\"{colour}\", fontcolor=white");
                self.node(&[pu.title(), workers(numbers)], &look)
            }
            Use::Free => self.node(&[pu.title(), "free".to_owned()], ", fillcolor=white"),
            Use::Forbidden => {
                self.node(&[pu.title(), "forbidden".to_owned()], ", style=\"filled,dashed\", fontcolor=\"#94a3b8\"")
            }
        }
    }
}

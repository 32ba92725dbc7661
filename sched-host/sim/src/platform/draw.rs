//! Drawings of a platform: its memory nodes, the workers near each, and the costs of transfers between them.

use super::{Platform, WorkerClass};
use sched_core::MemoryNode;
use sched_machine::topology::CombinedWorker;
use sched_text::amount::decimal_bytes as bytes;
use sched_text::dot::quoted;
use sched_text::ranges;
use sched_text::xml::escaped;
use serde::Serialize;
use std::fmt::Write as _;

/// A memory node in all drawings.
struct Row<'p> {
    name: &'p str,
    /// Size, and whether it is that of a device.
    size: String,
    /// Workers near it, by class.
    workers: Vec<(&'p WorkerClass, Vec<u32>)>,
}

impl Platform {
    fn rows<'p>(&'p self) -> Vec<Row<'p>> {
        let row = |(node, memory): (MemoryNode, &'p super::Memory)| {
            let near = |class: usize| -> Vec<u32> {
                let workers = (0..).zip(&self.workers);
                let near = workers.filter(|(_, worker)| worker.memory == node && worker.class == class);
                near.map(|(number, _)| number).collect()
            };
            let workers = self.classes.iter().enumerate().map(|(class, it)| (it, near(class)));
            let capacity = memory.capacity.map_or_else(|| "any size".to_owned(), |size| bytes(size as f64));
            let device = if memory.device { ", device" } else { "" };
            Row {
                name: &memory.name,
                size: format!("{capacity}{device}"),
                workers: workers.filter(|(_, near)| !near.is_empty()).collect(),
            }
        };
        self.memory_nodes().zip(&self.memories).map(row).collect()
    }

    /// `12 workers (9 cpu, 3 gpu), 4 memories`.
    fn summary(&self) -> String {
        let counts = self.classes.iter().zip(self.workers_by_class());
        let counts: Vec<String> = counts.map(|(class, count)| format!("{count} {}", class.name)).collect();
        let plural = |count: usize, one: &str, many: &str| format!("{count} {}", if count == 1 { one } else { many });
        let workers = plural(self.workers.len(), "worker", "workers");
        format!("{workers} ({}), {}", counts.join(", "), plural(self.memories.len(), "memory", "memories"))
    }

    /// Pairs of memory nodes with a route between them, each with the latency and bandwidth of a transfer without
    /// contention.
    fn transfers(&self) -> Vec<Transfer<'_>> {
        let pairs = self.memory_nodes().flat_map(|from| self.memory_nodes().map(move |to| (from, to)));
        let transfer = |(from, to): (MemoryNode, MemoryNode)| {
            Some(Transfer {
                from: &self.memories[from.index()].name,
                to: &self.memories[to.index()].name,
                latency_us: self.latency(from, to),
                bandwidth_mb_s: self.bandwidth(from, to)? * 1e3,
            })
        };
        pairs.filter(|(from, to)| from != to).filter_map(transfer).collect()
    }

    /// The platform as lines of text, for a terminal.
    ///
    /// ```
    /// let platform = sched_sim::platform::find("cpu9-gpu3")?;
    /// assert!(platform.to_text().contains("ram: any size; workers 0-8 (cpu)"));
    /// # Ok::<(), sched_text::Findings>(())
    /// ```
    #[must_use]
    pub fn to_text(&self) -> String {
        let mut text = format!("platform {}\n{}\n\nmemories\n", self.name, self.summary());
        // Writing to a string does not fail.
        for row in self.rows() {
            let _ = writeln!(text, "  {}: {}; {}", row.name, row.size, near(&row));
        }
        text.push_str("\nclasses of workers\n");
        for class in &self.classes {
            let in_flight = match class.pipeline {
                1 => String::new(),
                tasks => format!(", {tasks} tasks in flight"),
            };
            let _ = writeln!(text, "  {}: {}, speed {}{in_flight}", class.name, class.arch, class.speed);
        }
        let combined = self.combined_workers();
        if !combined.is_empty() {
            text.push_str("\ncombined workers\n");
        }
        for team in combined {
            let members = ranges(team.members.iter().map(|member| *member as u32));
            let _ = writeln!(text, "  workers {members} of {}", team.within);
        }
        let transfers = self.transfers();
        if !transfers.is_empty() {
            text.push_str("\ntransfers, each alone\n");
        }
        for transfer in transfers {
            let _ = writeln!(text, "  {} → {}: {}", transfer.from, transfer.to, transfer.words());
        }
        text
    }

    /// A graph in the DOT language: a box for each memory node with the workers near it, and an edge for each route.
    #[must_use]
    pub fn to_dot(&self) -> String {
        let title = quoted(&format!("{}: {}", self.name, self.summary()));
        let mut text = format!("digraph platform {{\n  graph [label={title}, labelloc=t, fontname=\"sans-serif\"];\n");
        text.push_str("  node [shape=box, style=filled, fillcolor=\"#f1f5f9\", fontname=\"sans-serif\"];\n");
        text.push_str("  edge [color=\"#94a3b8\", fontname=\"sans-serif\", fontsize=10];\n");
        for row in self.rows() {
            let label = quoted(&format!("{} ({}): {}", row.name, row.size, near(&row)));
            let _ = writeln!(text, "  {} [label={label}];", quoted(row.name));
        }
        for transfer in self.transfers() {
            let (from, to) = (quoted(transfer.from), quoted(transfer.to));
            let _ = writeln!(text, "  {from} -> {to} [label={}];", quoted(&transfer.words()));
        }
        text.push_str("}\n");
        text
    }

    /// A drawing in SVG: a box for each memory node, with a small box for each worker near it.
    #[must_use]
    pub fn to_svg(&self) -> String {
        const MARGIN: usize = 20;
        const LINE: usize = 20;
        const BOX: usize = 34;
        const COLUMNS: usize = 24;
        let width = 2 * MARGIN + COLUMNS * BOX + 20;
        let (mut body, mut y) = (String::new(), MARGIN + LINE);
        // Writing to a string does not fail.
        let _ = writeln!(
            body,
            "<text x=\"{MARGIN}\" y=\"{y}\" font-size=\"16\" font-weight=\"bold\">{}</text>",
            escaped(&self.name)
        );
        y += LINE;
        let _ = writeln!(body, "<text x=\"{MARGIN}\" y=\"{y}\" fill=\"#475569\">{}</text>", escaped(&self.summary()));
        y += LINE;
        for row in self.rows() {
            let near: Vec<(&WorkerClass, u32)> =
                row.workers.iter().flat_map(|(class, near)| near.iter().map(move |worker| (*class, *worker))).collect();
            let height = LINE + 8 + near.len().div_ceil(COLUMNS) * (BOX - 8);
            let label = escaped(&format!("{} ({})", row.name, row.size));
            let _ = writeln!(
                body,
                "<rect x=\"{MARGIN}\" y=\"{y}\" width=\"{}\" height=\"{height}\" rx=\"3\" fill=\"#f1f5f9\" stroke=\"#94a3b8\"/>\n\
                 <text x=\"{}\" y=\"{}\">{label}</text>",
                width - 2 * MARGIN,
                MARGIN + 8,
                y + 16
            );
            for (place, (class, worker)) in near.into_iter().enumerate() {
                let (x, top) = (MARGIN + 10 + place % COLUMNS * BOX, y + LINE + 4 + place / COLUMNS * (BOX - 8));
                let fill = if class.arch == sched_core::Arch::CPU { "#0f766e" } else { "#4c1d95" };
                let _ = writeln!(
                    body,
                    "<g><rect x=\"{x}\" y=\"{top}\" width=\"{}\" height=\"{}\" rx=\"3\" fill=\"{fill}\"/>\
                     <text x=\"{}\" y=\"{}\" fill=\"white\" text-anchor=\"middle\" font-size=\"10\">{worker}</text>\
                     <title>worker {worker}: {}</title></g>",
                    BOX - 4,
                    BOX - 12,
                    x + (BOX - 4) / 2,
                    top + 15,
                    escaped(&class.name)
                );
            }
            y += height + 8;
        }
        for transfer in self.transfers() {
            y += LINE - 4;
            let words = format!("{} → {}: {}", transfer.from, transfer.to, transfer.words());
            let _ = writeln!(body, "<text x=\"{MARGIN}\" y=\"{y}\" fill=\"#475569\">{}</text>", escaped(&words));
        }
        y += MARGIN;
        format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{y}\" viewBox=\"0 0 {width} {y}\" \
             font-family=\"Helvetica, Arial, 'DejaVu Sans', sans-serif\" font-size=\"12\">\n\
             <rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n{body}</svg>\n"
        )
    }

    /// One JSON object, indented. Its keys, which later versions keep: `source` (`kind` and `name`), `classes`,
    /// `memory_nodes`, `workers`, `combined_workers` and `transfers`.
    ///
    /// # Panics
    /// Never: the document has only string keys and plain values.
    #[must_use]
    pub fn to_json(&self) -> String {
        let class = |class: &'_ WorkerClass| ClassRow {
            name: class.name.clone(),
            arch: class.arch.to_string(),
            speed: class.speed,
            tasks_in_flight: class.pipeline,
        };
        let memory = |memory: &super::Memory| MemoryRow {
            name: memory.name.clone(),
            memory_bytes: memory.capacity,
            device: memory.device,
        };
        let worker = |(number, worker): (usize, &super::Worker)| WorkerRow {
            worker: number,
            class: &self.classes[worker.class].name,
            memory_node: worker.memory.0,
            package: worker.package,
        };
        let document = Document {
            source: SourceRow { kind: "platform", name: &self.name },
            classes: self.classes.iter().map(class).collect(),
            memory_nodes: self.memories.iter().map(memory).collect(),
            workers: self.workers.iter().enumerate().map(worker).collect(),
            combined_workers: self.combined_workers(),
            transfers: self.transfers(),
        };
        let text = serde_json::to_string_pretty(&document).expect("string keys and plain values are JSON");
        format!("{text}\n")
    }
}

/// `workers 0-8 (cpu)`.
fn near(row: &Row<'_>) -> String {
    let of_class = |(class, near): &(&WorkerClass, Vec<u32>)| {
        let noun = if near.len() == 1 { "worker" } else { "workers" };
        format!("{noun} {} ({})", ranges(near.iter().copied()), class.name)
    };
    match row.workers.is_empty() {
        true => "no workers".to_owned(),
        false => row.workers.iter().map(of_class).collect::<Vec<_>>().join(", "),
    }
}

#[derive(Serialize)]
struct Transfer<'p> {
    from: &'p str,
    to: &'p str,
    latency_us: f64,
    bandwidth_mb_s: f64,
}

impl Transfer<'_> {
    fn words(&self) -> String {
        format!("{}/s after {} µs", bytes(self.bandwidth_mb_s * 1e6), self.latency_us)
    }
}

#[derive(Serialize)]
struct Document<'p> {
    source: SourceRow<'p>,
    classes: Vec<ClassRow>,
    memory_nodes: Vec<MemoryRow>,
    workers: Vec<WorkerRow<'p>>,
    combined_workers: Vec<CombinedWorker>,
    transfers: Vec<Transfer<'p>>,
}

#[derive(Serialize)]
struct SourceRow<'p> {
    kind: &'static str,
    name: &'p str,
}

#[derive(Serialize)]
struct ClassRow {
    name: String,
    arch: String,
    speed: f64,
    tasks_in_flight: usize,
}

#[derive(Serialize)]
struct MemoryRow {
    name: String,
    memory_bytes: Option<u64>,
    device: bool,
}

#[derive(Serialize)]
struct WorkerRow<'p> {
    worker: usize,
    class: &'p str,
    memory_node: u32,
    package: Option<u32>,
}

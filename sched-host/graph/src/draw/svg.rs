//! A graph as a drawing of its own.

use super::layout::Layout;
use super::sketch::{Node, Sketch};
use crate::{Dependencies, Summary, TaskGraph};
use sched_text::xml::escaped;
use std::fmt::Write;

/// Fill and ink of the kinds, in turns.
pub(super) const PALETTE: [(&str, &str); 10] = [
    ("#0f766e", "white"),
    ("#fbbf24", "#0f172a"),
    ("#1d4ed8", "white"),
    ("#fda4af", "#0f172a"),
    ("#7c3aed", "white"),
    ("#a3e635", "#0f172a"),
    ("#b91c1c", "white"),
    ("#7dd3fc", "#0f172a"),
    ("#475569", "white"),
    ("#fdba74", "#0f172a"),
];

// All lengths are in pixels.
const MARGIN: f64 = 24.0;
const LINE: f64 = 20.0;
/// An average character of the 11-pixel font.
const CHAR: f64 = 6.2;
/// The same of the bold 16-pixel font.
const HEAD_CHAR: f64 = 9.5;
/// Characters in the widest box.
const LABEL: usize = 24;
const NARROWEST: f64 = 640.0;

/// How large nodes are, and what stands in them.
struct Size {
    width: f64,
    height: f64,
    gap: f64,
    labels: bool,
}

impl Size {
    /// Labels as far as the picture stays of a width that can be looked at.
    fn of(sketch: &Sketch, layout: &Layout) -> Size {
        let longest = sketch.nodes.iter().map(|node| node.label.chars().count()).max().unwrap_or(0);
        let width = (longest.min(LABEL) as f64 * CHAR + 14.0).max(40.0);
        if layout.width * (width + 12.0) <= 4000.0 {
            Size { width, height: 24.0, gap: 12.0, labels: true }
        } else {
            Size { width: 14.0, height: 14.0, gap: 6.0, labels: false }
        }
    }
}

/// A drawing of the graph, from the tasks that wait for nothing at the top to the last ones at the bottom: a box for each
/// task, or for each group of a large graph, with the colour of its kind. The critical path is outlined; tooltips tell
/// details. It needs no style sheet or font from elsewhere.
#[must_use]
pub fn svg(graph: &TaskGraph, dependencies: &Dependencies) -> String {
    let sketch = Sketch::of(graph, dependencies);
    let layout = Layout::of(&sketch);
    let size = Size::of(&sketch, &layout);
    let summary = Summary::of(graph, dependencies);
    let width = (layout.width * (size.width + size.gap)).max(NARROWEST) + 2.0 * MARGIN;
    let indent = (width - layout.width * (size.width + size.gap)) / 2.0;

    let mut out = String::new();
    let mut y = MARGIN + LINE / 2.0;
    let head = "font-size=\"16\" font-weight=\"bold\" fill=\"#0f172a\"";
    text(&mut out, MARGIN, y, head, &shortened(&graph.name, ((width - 2.0 * MARGIN) / HEAD_CHAR) as usize));
    y += LINE;
    let [tasks, depth] = [summary.tasks, summary.depth].map(|count| counted(count, "task", "tasks"));
    let dependencies = counted(summary.dependencies, "dependency", "dependencies");
    let told = format!("{tasks}, {dependencies}; longest chain {depth}; parallelism {:.1}", summary.parallelism);
    text(&mut out, MARGIN, y, "fill=\"#475569\"", &told);
    y += LINE;
    if let Some(note) = &sketch.note {
        text(&mut out, MARGIN, y, "fill=\"#b45309\"", note);
        y += LINE;
    }
    y = legend(&mut out, &summary, graph, width, y) + LINE;

    let row = size.height + if size.labels { 40.0 } else { 30.0 };
    let place = |node: usize| {
        let x = indent + layout.across[node] * (size.width + size.gap) + size.gap / 2.0;
        (x, y + sketch.nodes[node].level as f64 * row)
    };
    for (from, to, count) in &sketch.edges {
        edge(&mut out, &sketch, &size, (*from, *to, *count), place(*from), place(*to));
    }
    for (number, node) in sketch.nodes.iter().enumerate() {
        draw_node(&mut out, node, &size, place(number));
    }
    let height = y + (layout.layers as f64 * row - (row - size.height)).max(0.0) + MARGIN;
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width:.0}\" height=\"{height:.0}\" viewBox=\"0 0 {width:.0} {height:.0}\" \
         font-family=\"Helvetica, Arial, 'DejaVu Sans', sans-serif\" font-size=\"11\">\n\
         <title>{}</title>\n\
         <rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n{out}</svg>\n",
        escaped(&graph.name)
    )
}

/// The kinds with their colours and numbers of tasks. Where it ends.
fn legend(out: &mut String, summary: &Summary, graph: &TaskGraph, width: f64, mut y: f64) -> f64 {
    let mut x = MARGIN;
    for kind in &summary.kinds {
        let number = graph.kinds.iter().position(|known| known.name == kind.name).unwrap_or(0);
        let told = format!("{} ({})", kind.name, kind.tasks);
        let room = 24.0 + told.chars().count() as f64 * CHAR + 14.0;
        if x + room > width - MARGIN && x > MARGIN {
            x = MARGIN;
            y += LINE;
        }
        let (fill, _) = PALETTE[number % PALETTE.len()];
        writeln!(out, "<rect x=\"{x:.1}\" y=\"{:.1}\" width=\"16\" height=\"12\" rx=\"3\" fill=\"{fill}\"/>", y - 10.0)
            .expect("writing to a string never fails");
        text(out, x + 22.0, y, "fill=\"#334155\"", &told);
        x += room;
    }
    y
}

fn edge(
    out: &mut String,
    sketch: &Sketch,
    size: &Size,
    (from, to, count): (usize, usize, usize),
    (x1, y1): (f64, f64),
    (x2, y2): (f64, f64),
) {
    let critical = sketch.is_critical(from, to);
    let look =
        if critical { "stroke=\"#dc2626\" stroke-width=\"2\"" } else { "stroke=\"#94a3b8\" stroke-opacity=\"0.7\"" };
    let middle = size.width / 2.0;
    let path = if y2 > y1 {
        let (x1, y1, x2) = (x1 + middle, y1 + size.height, x2 + middle);
        let bend = (y2 - y1) / 2.0;
        format!("M{x1:.1} {y1:.1}C{x1:.1} {:.1} {x2:.1} {:.1} {x2:.1} {y2:.1}", y1 + bend, y2 - bend)
    } else {
        // Groups of one level, or a group and itself: an arc above them.
        let (x1, x2) = (x1 + middle - 6.0, x2 + middle + 6.0);
        format!("M{x1:.1} {y1:.1}C{x1:.1} {:.1} {x2:.1} {:.1} {x2:.1} {y2:.1}", y1 - 24.0, y2 - 24.0)
    };
    write!(out, "<path d=\"{path}\" fill=\"none\" {look}>").expect("writing to a string never fails");
    let (before, after) = (&sketch.nodes[from].label, &sketch.nodes[to].label);
    let told = match count {
        1 => format!("{before} → {after}"),
        count => format!("{before} → {after}: {count} dependencies"),
    };
    writeln!(out, "<title>{}</title></path>", escaped(&told)).expect("writing to a string never fails");
}

fn draw_node(out: &mut String, node: &Node, size: &Size, (x, y): (f64, f64)) {
    let (fill, ink) = PALETTE[node.kind % PALETTE.len()];
    let outline = if node.critical.is_some() { " stroke=\"#dc2626\" stroke-width=\"3\"" } else { "" };
    let (width, height) = (size.width, size.height);
    write!(out, "<g><rect x=\"{x:.1}\" y=\"{y:.1}\" width=\"{width:.1}\" height=\"{height:.1}\" rx=\"4\" fill=\"{fill}\"{outline}/>")
        .expect("writing to a string never fails");
    if size.labels {
        let look = format!("fill=\"{ink}\" text-anchor=\"middle\"");
        text(out, x + width / 2.0, y + height / 2.0 + 4.0, &look, &shortened(&node.label, LABEL));
    }
    writeln!(out, "<title>{}</title></g>", escaped(&node.hint)).expect("writing to a string never fails");
}

/// The beginning and the end of what is longer than so many characters.
fn shortened(words: &str, most: usize) -> String {
    let count = words.chars().count();
    if count <= most {
        return words.to_owned();
    }
    let start: String = words.chars().take((most - 1) / 2).collect();
    let end: String = words.chars().skip(count - most / 2).collect();
    format!("{start}…{end}")
}

fn counted(count: usize, one: &str, many: &str) -> String {
    format!("{count} {}", if count == 1 { one } else { many })
}

fn text(out: &mut String, x: f64, y: f64, look: &str, words: &str) {
    writeln!(out, "<text x=\"{x:.1}\" y=\"{y:.1}\" {look}>{}</text>", escaped(words))
        .expect("writing to a string never fails");
}

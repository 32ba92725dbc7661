//! A graph as a drawing of its own.

use super::layout::Layout;
use super::sketch::{Node, Sketch};
use crate::{Dependencies, Summary, TaskGraph};
use sched_text::count;
use sched_text::svg::{EDGE, KernelColours, MUTED, Pen, Px, Swatch, WARNING, curve, ink_on, shortened, text_width};

// All lengths are in pixels.
const MARGIN: f64 = 24.0;
const LINE: f64 = 20.0;
const FONT: f64 = 11.0;
/// Characters in the widest box.
const LONGEST: usize = 24;
const NARROWEST: f64 = 640.0;
const CRITICAL: &str = "#dc2626";

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
        let widths = sketch.nodes.iter().map(|node| text_width(&shortened(&node.label, LONGEST), FONT));
        let width = (widths.fold(0.0, f64::max) + 14.0).max(40.0);
        if layout.width * (width + 12.0) <= 4000.0 {
            Size { width, height: 24.0, gap: 12.0, labels: true }
        } else {
            Size { width: 14.0, height: 14.0, gap: 6.0, labels: false }
        }
    }
}

/// A drawing of the graph, from the tasks that wait for nothing at the top to the last ones at the bottom: a box for
/// each task, or for each group of a large graph, with the colour of its kind. The critical path is outlined; tooltips
/// tell details. It needs no style sheet or font from elsewhere.
#[must_use]
pub fn svg(graph: &TaskGraph, dependencies: &Dependencies) -> String {
    let sketch = Sketch::of(graph, dependencies);
    let layout = Layout::of(&sketch);
    let size = Size::of(&sketch, &layout);
    let summary = Summary::of(graph, dependencies);
    let width = (layout.width * (size.width + size.gap)).max(NARROWEST) + 2.0 * MARGIN;
    let indent = (width - layout.width * (size.width + size.gap)) / 2.0;

    let colours = KernelColours::of(graph.kinds.iter().map(|kind| kind.name.as_str()));

    let mut pen = Pen::new(FONT);
    let mut y = MARGIN + LINE / 2.0;
    pen.heading((MARGIN, y), width - 2.0 * MARGIN, &graph.name);
    y += LINE;
    let dependencies = match summary.dependencies {
        1 => "1 dependency".to_owned(),
        several => format!("{several} dependencies"),
    };
    let [tasks, depth] = [summary.tasks, summary.depth].map(|number| count(number, "task"));
    let facts = format!("{tasks}, {dependencies}; longest chain {depth}; parallelism {:.1}", summary.parallelism);
    pen.text((MARGIN, y), &format!("fill=\"{MUTED}\""), &facts);
    y += LINE;
    if let Some(note) = &sketch.note {
        pen.text((MARGIN, y), &format!("fill=\"{WARNING}\""), note);
        y += LINE;
    }
    let kinds = summary.kinds.iter();
    let swatches: Vec<Swatch> =
        kinds.map(|kind| Swatch::filled(colours.get(&kind.name), format!("{} ({})", kind.name, kind.tasks))).collect();
    y = pen.legend(&swatches, MARGIN, width - MARGIN, y) + LINE;

    let row = size.height + if size.labels { 40.0 } else { 30.0 };
    let place = |node: usize| {
        let x = indent + layout.across[node] * (size.width + size.gap) + size.gap / 2.0;
        (x, y + sketch.nodes[node].level as f64 * row)
    };
    for (from, to, count) in &sketch.edges {
        edge(&mut pen, &sketch, &size, (*from, *to, *count), place(*from), place(*to));
    }
    for (number, node) in sketch.nodes.iter().enumerate() {
        draw_node(&mut pen, node, colours.get(&graph.kinds[node.kind].name), &size, place(number));
    }
    let height = y + (layout.layers as f64 * row - (row - size.height)).max(0.0) + MARGIN;
    pen.finish(&graph.name, width, height)
}

fn edge(
    pen: &mut Pen,
    sketch: &Sketch,
    size: &Size,
    (from, to, count): (usize, usize, usize),
    (x1, y1): (f64, f64),
    (x2, y2): (f64, f64),
) {
    let look = match sketch.is_critical(from, to) {
        true => format!("stroke=\"{CRITICAL}\" stroke-width=\"2\""),
        false => format!("stroke=\"{EDGE}\" stroke-opacity=\"0.7\""),
    };
    let middle = size.width / 2.0;
    let path = if y2 > y1 {
        let (begin, end) = ((x1 + middle, y1 + size.height), (x2 + middle, y2));
        curve(begin, end, (y2 - y1) / 2.0)
    } else {
        // Groups of one level, or a group and itself: an arc above them.
        let (x1, x2) = (Px(x1 + middle - 6.0), Px(x2 + middle + 6.0));
        format!("M{x1} {}C{x1} {} {x2} {} {x2} {}", Px(y1), Px(y1 - 24.0), Px(y2 - 24.0), Px(y2))
    };
    let (before, after) = (&sketch.nodes[from].label, &sketch.nodes[to].label);
    let tooltip = match count {
        1 => format!("{before} → {after}"),
        count => format!("{before} → {after}: {count} dependencies"),
    };
    pen.path(&path, &look, Some(&tooltip));
}

fn draw_node(pen: &mut Pen, node: &Node, fill: &str, size: &Size, (x, y): (f64, f64)) {
    let outline = match node.critical {
        Some(_) => format!(" stroke=\"{CRITICAL}\" stroke-width=\"3\""),
        None => String::new(),
    };
    let (width, height) = (size.width, size.height);
    pen.group(&node.hint, |pen| {
        pen.rect((x, y), (width, height), &format!("rx=\"4\" fill=\"{fill}\"{outline}"));
        if size.labels {
            let look = format!("fill=\"{}\" text-anchor=\"middle\"", ink_on(fill));
            pen.text((x + width / 2.0, y + height / 2.0 + 4.0), &look, &shortened(&node.label, LONGEST));
        }
    });
}

//! The machine as nested boxes, in the style of `lstopo`.

use super::boxes::{FONT, Frame, Item, PAD, PU_HEIGHT, STRIP};
use super::{Stack, Use, label, summary, usage, use_of, workers};
use crate::topology::{BindingPlan, Level, Object, Topology};
use sched_text::ranges;
use sched_text::svg::{EDGE, MUTED, Pen, Swatch, WARNING, columns, wrapped};

// All lengths are in pixels.
const MARGIN: usize = 20;
const LINE: usize = 18;
const NARROWEST: usize = 560;

/// A drawing of the machine: nested boxes, a coloured strip for each object, and the PUs with their workers.
///
/// It needs no external style sheet or font; tooltips show details of PUs and memory nodes.
#[must_use]
pub fn svg(topology: &Topology, plan: &BindingPlan) -> String {
    let machine = Frame::new(&Stack::new(topology.root()));
    let width = machine.width.max(NARROWEST) + 2 * MARGIN;
    let mut pen = Pen::new(FONT);

    let mut y = MARGIN + LINE;
    let room = (width - 2 * MARGIN) as f64;
    for line in wrapped(&topology.source().to_string(), columns(room, 16.0)) {
        pen.heading(pixels((MARGIN, y)), f64::INFINITY, &line);
        y += LINE + 4;
    }
    for line in wrapped(&format!("{}; {}", summary(topology), usage(topology, plan)), columns(room, FONT)) {
        pen.text(pixels((MARGIN, y)), &format!("fill=\"{MUTED}\""), &line);
        y += LINE;
    }
    machine.draw(&mut pen, topology, plan, (MARGIN, y), (machine.width, machine.height));
    y += machine.height + MARGIN + LINE;
    let last = pen.legend(&legend(topology, plan), MARGIN as f64, (width - MARGIN) as f64, y as f64);
    y = last as usize + MARGIN;
    for warning in plan.warnings() {
        for line in wrapped(&format!("warning: {warning}"), columns(room, FONT)) {
            pen.text(pixels((MARGIN, y)), &format!("fill=\"{WARNING}\""), &line);
            y += LINE;
        }
    }
    pen.finish(&topology.source().to_string(), width as f64, y as f64)
}

fn pixels((x, y): (usize, usize)) -> (f64, f64) {
    (x as f64, y as f64)
}

impl Frame<'_> {
    fn draw(&self, pen: &mut Pen, topology: &Topology, plan: &BindingPlan, at: (usize, usize), room: (usize, usize)) {
        let (x, y) = at;
        let (_, _, edge) = colours(self.strips[0].level);
        for (row, object) in self.strips.iter().enumerate() {
            let (fill, ink, _) = colours(object.level);
            let top = y + row * STRIP;
            let tooltip = match object.level {
                Level::Numa => {
                    format!("{}: memory local to PUs {}", object.title(), ranges(object.pus.iter().copied()))
                }
                _ => label(object),
            };
            pen.group(&tooltip, |pen| {
                pen.rect(pixels((x, top)), pixels((room.0, STRIP)), &format!("fill=\"{fill}\""));
                pen.text(pixels((x + PAD, top + 15)), &format!("fill=\"{ink}\""), &label(object));
            });
        }
        // Space left over by a long label or a wider neighbour is divided among the columns.
        let extra = room.0.saturating_sub(self.needed) / self.columns;
        for cell in &self.cells {
            let at = (x + cell.at.0 + cell.column * extra, y + cell.at.1);
            let room = (cell.room.0 + extra, cell.room.1);
            match &cell.item {
                Item::Frame(frame) => frame.draw(pen, topology, plan, at, room),
                Item::Pu(pu) => draw_pu(pen, topology, plan, pu, at, room.0),
            }
        }
        pen.rect(pixels(at), pixels(room), &format!("rx=\"2\" fill=\"none\" stroke=\"{edge}\""));
    }
}

fn draw_pu(pen: &mut Pen, topology: &Topology, plan: &BindingPlan, pu: &Object, at: (usize, usize), width: usize) {
    let used = use_of(topology, plan, pu.index());
    let (look, ink, shown, hint) = match used {
        Use::Workers([only]) => (WORKER, "white", format!("worker {only}"), format!("worker {only} is bound here")),
        Use::Workers(several) => {
            (SHARED, "white", format!("{} workers", several.len()), format!("{} take turns here", workers(several)))
        }
        Use::Free => (FREE, MUTED, "free".to_owned(), "no worker is bound here".to_owned()),
        Use::Forbidden => (FORBIDDEN, EDGE, "forbidden".to_owned(), "this process may not run here".to_owned()),
    };
    let middle = at.0 + width / 2;
    let centred = format!("fill=\"{ink}\" text-anchor=\"middle\"");
    pen.group(&format!("{}: {hint}", pu.title()), |pen| {
        pen.rect(pixels(at), pixels((width, PU_HEIGHT)), &format!("rx=\"3\" {look}"));
        pen.text(pixels((middle, at.1 + 16)), &format!("{centred} font-weight=\"bold\""), &shown);
        pen.text(pixels((middle, at.1 + 32)), &format!("{centred} font-size=\"11\""), &pu.title());
    });
}

const WORKER: &str = "fill=\"#0f766e\" stroke=\"#115e59\"";
const SHARED: &str = "fill=\"#b45309\" stroke=\"#92400e\"";
const FREE: &str = "fill=\"white\" stroke=\"#94a3b8\"";
const FORBIDDEN: &str = "fill=\"#f1f5f9\" stroke=\"#cbd5e1\" stroke-dasharray=\"3 3\"";

/// The looks of PUs that occur.
fn legend(topology: &Topology, plan: &BindingPlan) -> Vec<Swatch> {
    let uses: Vec<Use<'_>> = topology.pus().iter().map(|&pu| use_of(topology, plan, pu)).collect();
    let occurs = |wanted: fn(&Use<'_>) -> bool| uses.iter().any(wanted);
    let entries = [
        (WORKER, "one worker bound", occurs(|u| matches!(u, Use::Workers([_])))),
        (SHARED, "several workers take turns", occurs(|u| matches!(u, Use::Workers([_, _, ..])))),
        (FREE, "free", occurs(|u| matches!(u, Use::Free))),
        (FORBIDDEN, "forbidden to this process", occurs(|u| matches!(u, Use::Forbidden))),
    ];
    let occurring = entries.into_iter().filter(|(_, _, occurs)| *occurs);
    occurring.map(|(look, words, _)| Swatch { look: look.to_owned(), words: words.to_owned() }).collect()
}

/// Fill, text colour and border of an object's strip.
fn colours(level: Level) -> (&'static str, &'static str, &'static str) {
    match level {
        Level::Machine => ("#334155", "white", "#334155"),
        Level::Package => ("#fde4c3", "#7c2d12", "#e2a365"),
        Level::Numa => ("#c7ecd3", "#14532d", "#7cc796"),
        Level::Group | Level::Die => ("#ebe4fd", "#4c1d95", "#b9a5f0"),
        Level::L5 | Level::L4 | Level::L3 => ("#cfe1fb", "#1e3a8a", "#93b8ee"),
        Level::L2 | Level::L1 => ("#e4effd", "#1e3a8a", "#b5d0f3"),
        Level::Core | Level::Pu => ("#e9edf2", "#334155", "#b8c2cf"),
    }
}

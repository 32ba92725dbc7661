//! The machine as nested boxes, in the style of `lstopo`.

use std::fmt::Write as _;

use super::boxes::{CHAR, Frame, Item, PAD, PU_HEIGHT, STRIP};
use super::{Stack, Use, label, summary, usage, use_of, workers};
use crate::topology::{BindingPlan, Level, Object, Topology};
use sched_text::ranges;
use sched_text::xml::escaped;

// All lengths are in pixels.
const MARGIN: usize = 20;
const LINE: usize = 18;
/// Average character width of prose in the 12-pixel font; labels may need [`CHAR`].
const PROSE: usize = 6;
const NARROWEST: usize = 560;

/// A drawing of the machine: nested boxes, a coloured strip for each object, and the PUs with their workers.
///
/// It needs no external style sheet or font; tooltips show details of PUs and memory nodes.
#[must_use]
pub fn svg(topology: &Topology, plan: &BindingPlan) -> String {
    let machine = Frame::new(&Stack::new(topology.root()));
    let width = machine.width.max(NARROWEST) + 2 * MARGIN;
    let mut out = String::new();

    let mut y = MARGIN + LINE;
    let columns = (width - 2 * MARGIN) / PROSE;
    for line in wrapped(&topology.source().to_string(), columns * 2 / 3) {
        text(&mut out, MARGIN, y, "font-size=\"16\" font-weight=\"bold\" fill=\"#0f172a\"", &line);
        y += LINE + 4;
    }
    for line in wrapped(&format!("{}; {}", summary(topology), usage(topology, plan)), columns) {
        text(&mut out, MARGIN, y, "fill=\"#475569\"", &line);
        y += LINE;
    }
    machine.draw(&mut out, topology, plan, (MARGIN, y), (machine.width, machine.height));
    y += machine.height + MARGIN;
    legend(&mut out, topology, plan, y);
    y += LINE + MARGIN;
    for warning in plan.warnings() {
        for line in wrapped(&format!("warning: {warning}"), columns) {
            text(&mut out, MARGIN, y, "fill=\"#b45309\"", &line);
            y += LINE;
        }
    }
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{y}\" viewBox=\"0 0 {width} {y}\" \
         font-family=\"Helvetica, Arial, 'DejaVu Sans', sans-serif\" font-size=\"12\">\n\
         <rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n{out}</svg>\n"
    )
}

impl Frame<'_> {
    fn draw(
        &self,
        out: &mut String,
        topology: &Topology,
        plan: &BindingPlan,
        at: (usize, usize),
        room: (usize, usize),
    ) {
        let (x, y) = at;
        let (_, _, edge) = colours(self.strips[0].level);
        for (row, object) in self.strips.iter().enumerate() {
            let (fill, ink, _) = colours(object.level);
            let top = y + row * STRIP;
            out.push_str("<g>");
            rect(out, (x, top), (room.0, STRIP), &format!("fill=\"{fill}\""));
            text(out, x + PAD, top + 15, &format!("fill=\"{ink}\""), &label(object));
            if object.level == Level::Numa {
                tooltip(
                    out,
                    &format!("{}: memory local to PUs {}", object.title(), ranges(object.pus.iter().copied())),
                );
            }
            out.push_str("</g>\n");
        }
        // Space left over by a long label or a wider neighbour is divided among the columns.
        let extra = room.0.saturating_sub(self.needed) / self.columns;
        for cell in &self.cells {
            let at = (x + cell.at.0 + cell.column * extra, y + cell.at.1);
            let room = (cell.room.0 + extra, cell.room.1);
            match &cell.item {
                Item::Frame(frame) => frame.draw(out, topology, plan, at, room),
                Item::Pu(pu) => draw_pu(out, topology, plan, pu, at, room.0),
            }
        }
        rect(out, at, room, &format!("rx=\"2\" fill=\"none\" stroke=\"{edge}\""));
        out.push('\n');
    }
}

fn draw_pu(out: &mut String, topology: &Topology, plan: &BindingPlan, pu: &Object, at: (usize, usize), width: usize) {
    let used = use_of(topology, plan, pu.index());
    let (look, ink, shown, hint) = match used {
        Use::Workers([only]) => (WORKER, "white", format!("worker {only}"), format!("worker {only} is bound here")),
        Use::Workers(several) => {
            (SHARED, "white", format!("{} workers", several.len()), format!("{} take turns here", workers(several)))
        }
        Use::Free => (FREE, "#475569", "free".to_owned(), "no worker is bound here".to_owned()),
        Use::Forbidden => (FORBIDDEN, "#94a3b8", "forbidden".to_owned(), "this process may not run here".to_owned()),
    };
    out.push_str("<g>");
    rect(out, at, (width, PU_HEIGHT), &format!("rx=\"3\" {look}"));
    let middle = at.0 + width / 2;
    let centred = format!("fill=\"{ink}\" text-anchor=\"middle\"");
    text(out, middle, at.1 + 16, &format!("{centred} font-weight=\"bold\""), &shown);
    text(out, middle, at.1 + 32, &format!("{centred} font-size=\"11\""), &pu.title());
    tooltip(out, &format!("{}: {hint}", pu.title()));
    out.push_str("</g>\n");
}

const WORKER: &str = "fill=\"#0f766e\" stroke=\"#115e59\"";
const SHARED: &str = "fill=\"#b45309\" stroke=\"#92400e\"";
const FREE: &str = "fill=\"white\" stroke=\"#94a3b8\"";
const FORBIDDEN: &str = "fill=\"#f1f5f9\" stroke=\"#cbd5e1\" stroke-dasharray=\"3 3\"";

/// Explains the colours in use.
fn legend(out: &mut String, topology: &Topology, plan: &BindingPlan, y: usize) {
    let uses: Vec<Use<'_>> = topology.pus().iter().map(|&pu| use_of(topology, plan, pu)).collect();
    let occurs = |wanted: fn(&Use<'_>) -> bool| uses.iter().any(wanted);
    let entries = [
        (WORKER, "one worker bound", occurs(|u| matches!(u, Use::Workers([_])))),
        (SHARED, "several workers take turns", occurs(|u| matches!(u, Use::Workers([_, _, ..])))),
        (FREE, "free", occurs(|u| matches!(u, Use::Free))),
        (FORBIDDEN, "forbidden to this process", occurs(|u| matches!(u, Use::Forbidden))),
    ];
    let mut x = MARGIN;
    for (look, shown, _) in entries.into_iter().filter(|entry| entry.2) {
        rect(out, (x, y), (16, 14), &format!("rx=\"3\" {look}"));
        text(out, x + 22, y + 12, "fill=\"#475569\"", shown);
        out.push('\n');
        x += 22 + shown.len() * CHAR + 16;
    }
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

fn rect(out: &mut String, (x, y): (usize, usize), (width, height): (usize, usize), look: &str) {
    write!(out, "<rect x=\"{x}\" y=\"{y}\" width=\"{width}\" height=\"{height}\" {look}/>")
        .expect("writing to a string never fails");
}

fn text(out: &mut String, x: usize, y: usize, look: &str, words: &str) {
    writeln!(out, "<text x=\"{x}\" y=\"{y}\" {look}>{}</text>", escaped(words))
        .expect("writing to a string never fails");
}

fn tooltip(out: &mut String, words: &str) {
    write!(out, "<title>{}</title>", escaped(words)).expect("writing to a string never fails");
}

/// Splits text into lines of at most `columns` characters; longer words stay whole.
fn wrapped(words: &str, columns: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    let mut room = columns;
    for word in words.split_whitespace() {
        let length = word.chars().count() + 1;
        let line = lines.len() - 1;
        if length > room && !lines[line].is_empty() {
            lines.push(word.to_owned());
            room = columns.saturating_sub(length);
        } else {
            if !lines[line].is_empty() {
                lines[line].push(' ');
            }
            lines[line].push_str(word);
            room = room.saturating_sub(length);
        }
    }
    lines
}

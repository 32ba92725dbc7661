//! The layout of the drawing's boxes.

use super::{Contents, Stack, label};
use crate::topology::Object;
use sched_text::svg::text_width;

// All lengths are in pixels.
pub(super) const PAD: usize = 8;
pub(super) const STRIP: usize = 22;
pub(super) const PU_HEIGHT: usize = 40;
pub(super) const FONT: f64 = 12.0;
const PU_WIDTH: usize = 74;

/// A box with the positions of everything inside; sizes are minimal.
pub(super) struct Frame<'a> {
    pub(super) width: usize,
    pub(super) height: usize,
    pub(super) strips: Vec<&'a Object>,
    pub(super) cells: Vec<Cell<'a>>,
    pub(super) columns: usize,
    /// The width that the cells need; a long label may make the box wider.
    pub(super) needed: usize,
}

/// An item inside a frame, at an offset from the frame's corner, with the space that it may fill.
pub(super) struct Cell<'a> {
    pub(super) column: usize,
    pub(super) at: (usize, usize),
    pub(super) room: (usize, usize),
    pub(super) item: Item<'a>,
}

pub(super) enum Item<'a> {
    Frame(Frame<'a>),
    Pu(&'a Object),
}

impl Item<'_> {
    fn size(&self) -> (usize, usize) {
        match self {
            Item::Frame(frame) => (frame.width, frame.height),
            Item::Pu(_) => (PU_WIDTH, PU_HEIGHT),
        }
    }
}

impl<'a> Frame<'a> {
    pub(super) fn new(stack: &Stack<'a>) -> Self {
        let items: Vec<Item<'a>> = match &stack.contents {
            Contents::Pus(pus) => pus.iter().map(|&pu| Item::Pu(pu)).collect(),
            Contents::Stacks(stacks) => stacks.iter().map(|stack| Item::Frame(Frame::new(stack))).collect(),
        };
        let strips = stack.objects.clone();
        let title = strips.iter().map(|object| text_width(&label(object), FONT).ceil() as usize).max().unwrap_or(0);
        let top = strips.len() * STRIP + PAD;
        let (cells, (inner_width, inner_height)) = grid(items, top);
        let needed = inner_width + 2 * PAD;
        Frame {
            width: needed.max(title + 3 * PAD),
            needed,
            height: top + inner_height + PAD,
            strips,
            columns: cells.iter().map(|cell| cell.column + 1).max().unwrap_or(1),
            cells,
        }
    }
}

/// Arranges items in rows and columns, `top` pixels below the frame's edge; returns the space they need.
fn grid(items: Vec<Item<'_>>, top: usize) -> (Vec<Cell<'_>>, (usize, usize)) {
    let sizes: Vec<(usize, usize)> = items.iter().map(Item::size).collect();
    let columns = columns(&sizes);
    let widths: Vec<usize> =
        (0..columns).map(|c| sizes.iter().skip(c).step_by(columns.max(1)).map(|s| s.0).max().unwrap_or(0)).collect();
    let heights: Vec<usize> =
        sizes.chunks(columns.max(1)).map(|row| row.iter().map(|s| s.1).max().unwrap_or(0)).collect();
    let offset = |sizes: &[usize]| sizes.iter().sum::<usize>() + sizes.len() * PAD;
    let cells = items.into_iter().enumerate().map(|(i, item)| {
        let (row, column) = (i / columns, i % columns);
        let at = (PAD + offset(&widths[..column]), top + offset(&heights[..row]));
        Cell { column, at, room: (widths[column], heights[row]), item }
    });
    (cells.collect(), (offset(&widths).saturating_sub(PAD), offset(&heights).saturating_sub(PAD)))
}

/// Number of columns that makes a block slightly wider than high, without a ragged last row if possible.
fn columns(sizes: &[(usize, usize)]) -> usize {
    let width = sizes.iter().map(|s| s.0).max().unwrap_or(1) + PAD;
    let height = sizes.iter().map(|s| s.1).max().unwrap_or(1) + PAD;
    let cost = |columns: usize| {
        let rows = sizes.len().div_ceil(columns);
        let shape = (columns * width) as f64 / (rows * height) as f64;
        let ragged = (rows * columns - sizes.len()) as f64 / sizes.len() as f64;
        (shape / 1.6).ln().abs() + ragged
    };
    (1..=sizes.len()).min_by(|&a, &b| cost(a).total_cmp(&cost(b))).unwrap_or(0)
}
